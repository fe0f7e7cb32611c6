"""Figures for papers: one of each kind."""

import re

import matplotlib as mpl
import numpy as np
import pytest

from agewise.report import (
    accuracy_curves,
    charts,
    draw_figure,
    gain_curve,
    gain_map,
    label_distribution,
)
from agewise.report.figures import KINDS, policy_lines
from agewise.report.numbers import Curves
from agewise.statistics import mean_interval

mpl.use("Agg")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_one_column_wide_with_embedded_fonts(kind, swept, tmp_path):
    pdf = draw_figure(swept, kind, tmp_path / f"{kind}.pdf").read_bytes()
    width = float(re.search(rb"/MediaBox \[ 0 0 ([\d.]+)", pdf)[1])
    assert width == pytest.approx(3.5 * 72)
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf
    again = draw_figure(swept, kind, tmp_path / "again.pdf").read_bytes()
    assert again == pdf


def test_lines_are_the_numbers_that_were_given():
    import matplotlib.pyplot as plt

    given = {"a": (np.arange(3.0), np.array([1.0, np.nan, 3.0]))}
    axis = policy_lines(given, "x", "y")
    np.testing.assert_array_equal(axis.lines[0].get_xydata(), [[0, 1], [2, 3]])
    assert policy_lines(given, "x", "y", axis, markers=True) is axis
    plt.close(axis.figure)


@pytest.mark.parametrize(("seeds", "lines", "bands"), [(4, 5, 0), (5, 1, 1)])
def test_few_seeds_are_drawn_as_they_are(seeds, lines, bands):
    """An interval of fewer than five seeds would say more than is known."""
    import matplotlib.pyplot as plt

    runs = np.random.default_rng(1).random((seeds, 6))
    mean = mean_interval(runs)
    for axis in (
        accuracy_curves({"a": mean}, runs={"a": runs}),
        gain_curve(mean, 3, runs=runs),
    ):
        drawn = [line for line in axis.lines if len(line.get_xdata()) == 6]
        assert (len(drawn), len(axis.collections)) == (lines, bands)
        plt.close(axis.figure)
    curves = Curves(0, mean, runs, *(np.zeros(6),) * 5, None, seeds)
    traces = charts.accuracy({"a": curves})["data"]
    assert sum("fill" in trace for trace in traces) == bands
    assert len(traces) == (lines if not bands else 3)


def test_bars_are_the_counts():
    import matplotlib.pyplot as plt

    counts = np.array([[3, 0, 1], [0, 5, 2]])
    axis = label_distribution(counts, ("cat", "dog", "owl"))
    heights = np.array([bar.get_height() for bar in axis.patches]).reshape(3, 2).T
    floors = np.array([bar.get_y() for bar in axis.patches]).reshape(3, 2).T
    np.testing.assert_array_equal(heights, counts)
    np.testing.assert_array_equal(floors, np.cumsum(counts, axis=1) - counts)
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["cat", "dog", "owl"]
    plt.close(axis.figure)


def test_bars_are_drawn_on_a_given_axis_and_need_matplotlib(monkeypatch):
    import matplotlib.pyplot as plt

    _, given = plt.subplots()
    assert label_distribution(np.ones((2, 12), int), tuple("abcdefghijkl"), given) is given
    plt.close(given.figure)
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.pyplot", None)
    with pytest.raises(ModuleNotFoundError, match=r"agewise\[plot\]"):
        label_distribution(np.ones((1, 1), int), ("a",))


def test_maps_have_stars_for_sure_squares_and_a_dash_for_no_square():
    import matplotlib.pyplot as plt

    gains = np.array([[0.021, -0.0001], [-0.034, np.nan]])
    axis = gain_map(gains, np.array([[0.0004, 0.7], [0.02, np.nan]]), ["1", "4"], ["a", "b"], 0.05)
    assert [text.get_text() for text in axis.texts] == ["+2.1***", "+0.0", "-3.4*", "-"]
    plt.close(axis.figure)


def test_a_trace_has_every_figure_but_the_distances(traced, tmp_path):
    out = tmp_path / "x.pdf"
    for kind in ("accuracy", "reached", "ages", "diversity", "labels"):
        assert draw_figure(traced.path, kind, out) == out
    with pytest.raises(ValueError, match="do not say where the UEs are"):
        draw_figure(traced, "distance", out)


def test_mistakes_are_one_sentence(compared, swept, tmp_path):
    out = tmp_path / "x.pdf"
    with pytest.raises(ValueError, match="no figure 'pie'; there are accuracy, reached, ages"):
        draw_figure(swept, "pie", out)
    with pytest.raises(ValueError, match="a map needs a sweep"):
        draw_figure(compared, "map", out)
    with pytest.raises(ValueError, match="no finished setting has rate=9; there are"):
        draw_figure(swept, "ages", out, {"threshold.rate": 9.0})
    with pytest.raises(ValueError, match="not supported"):
        draw_figure(swept, "ages", tmp_path / "x.nonsense")
    assert not any(tmp_path.iterdir())
