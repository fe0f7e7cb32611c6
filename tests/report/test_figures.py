"""Figures for papers: one of each kind, and the numbers in them."""

import csv
import io
import re

import matplotlib as mpl
import numpy as np
import pytest

from agewise.report import (
    accuracy_curves,
    age_distribution,
    age_heat_map,
    chosen_ages,
    draw_figure,
    forest,
    gain_curve,
    gain_map,
    label_distribution,
    policy_lines,
    water_filling,
)
from agewise.report.figure_data import figure_csv
from agewise.report.figures import KINDS
from agewise.report.style import DARK, INKS, LIGHT
from agewise.statistics import Paired, mean_interval

TWO_PARTS = {"heat"}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_columns_width_and_embedded_fonts(kind, swept, tmp_path):
    pdf = draw_figure(swept, kind, tmp_path / f"{kind}.pdf").read_bytes()
    width = float(re.search(rb"/MediaBox \[ 0 0 ([\d.]+)", pdf)[1])
    assert width == pytest.approx((7.16 if kind in TWO_PARTS else 3.5) * 72)
    assert b"STIX" in pdf
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf
    assert draw_figure(swept, kind, tmp_path / "again.pdf").read_bytes() == pdf


def test_width_limits_policies_and_style_are_as_asked(compared, tmp_path):
    def drawn(**options):
        return draw_figure(compared, "accuracy", tmp_path / "a.svg", **options).read_text()

    usual = drawn()
    assert 'width="252pt"' in usual
    assert 'width="515.52pt"' in drawn(width="page")
    assert 'width="144pt"' in drawn(width=2)
    few = drawn(policies=["round-robin", "age-based"])
    assert len(few) < len(usual)
    assert "#0072b2" in few  # a policy keeps its colour
    assert "#c4558f" in few
    assert "#d55e00" not in few
    assert drawn(style="slides") != usual
    assert drawn(style="ggplot") != usual
    limits = draw_figure(compared, "accuracy", tmp_path / "a.csv", ylim=(0.0, 1.0))
    assert limits.read_text() == draw_figure(compared, "accuracy", tmp_path / "b.csv").read_text()
    assert drawn(ylim=(0.0, 1.0)) != usual


def test_the_csv_has_the_numbers_of_the_runs(compared, swept, tmp_path):
    def rows(result, kind):
        text = draw_figure(result, kind, tmp_path / "x.csv").read_text()
        return list(csv.DictReader(io.StringIO(text)))

    lines = [row for row in rows(compared, "accuracy") if row["series"] == "round-robin"]
    np.testing.assert_allclose([float(row["x"]) for row in lines], np.arange(1, 9))
    mean = compared.accuracy("round-robin").mean(axis=0)
    np.testing.assert_allclose([float(row["y"]) for row in lines], mean, rtol=1e-6)
    heat = [row for row in rows(compared, "heat") if row["part"] == "age-based"]
    assert len(heat) == 8 * 12
    squares = {(row["x"], row["y"]): row["value"] for row in rows(swept, "map")}
    assert set(squares) == {(x, y) for x in "14" for y in ("partition=iid", "partition=shards")}
    bars = rows(compared, "labels")
    counts = compared.history("age-based", 0).info.label_counts
    assert sum(float(row["y"]) for row in bars) == counts.sum()


def test_the_ends_of_a_band_are_those_of_the_interval():
    runs = np.random.default_rng(2).random((6, 5))
    interval = mean_interval(runs)
    axis = accuracy_curves({"a": interval}, runs={"a": runs})
    rows = list(csv.DictReader(io.StringIO(figure_csv(axis.figure))))
    for which in ("low", "high"):
        drawn = [float(row["y"]) for row in rows if row["series"] == f"{which} 1"]
        np.testing.assert_allclose(drawn, getattr(interval, which), rtol=1e-6)


def test_lines_are_the_numbers_that_were_given():
    given = {"a": (np.arange(3.0), np.array([1.0, np.nan, 3.0]))}
    axis = policy_lines(given, "x", "y")
    np.testing.assert_array_equal(axis.lines[0].get_xydata(), [[0, 1], [2, 3]])
    assert policy_lines(given, "x", "y", axis, markers=True) is axis


@pytest.mark.parametrize(("seeds", "runs_drawn", "bands"), [(4, 4, 0), (5, 0, 1)])
def test_few_seeds_are_drawn_as_they_are(seeds, runs_drawn, bands):
    """An interval of fewer than five seeds would say more than is known."""
    runs = np.random.default_rng(1).random((seeds, 6))
    axis = accuracy_curves({"a": mean_interval(runs)}, runs={"a": runs})
    assert (len(axis.lines), len(axis.collections)) == (1 + runs_drawn, bands)
    gains = gain_curve(mean_interval(runs), None, runs=runs)
    assert len([line for line in gains.lines if len(line.get_xdata()) == 6]) == 1 + seeds
    assert len(gains.collections) == bands


def test_rounds_are_whole_and_accuracies_within_0_and_1():
    runs = np.linspace(0.9, 1.0, 12).reshape(1, 12) + np.zeros((6, 1))
    runs += np.random.default_rng(0).normal(0, 0.05, runs.shape)
    axis = accuracy_curves({"a": mean_interval(runs)}, runs={"a": runs})
    axis.figure.draw_without_rendering()
    ticks = axis.get_xticks()
    assert (ticks == np.round(ticks)).all()
    assert 0 <= axis.get_ylim()[0] < axis.get_ylim()[1] <= 1
    other = accuracy_curves({"a": mean_interval(runs)}, over=("time (s)", np.arange(12) / 2))
    assert (other.get_xlabel(), other.get_xlim()) == ("time (s)", (0.0, 5.5))
    assert other.lines[0].get_xdata()[-1] == 5.5


def test_bars_are_the_counts():
    counts = np.array([[3, 0, 1], [0, 5, 2]])
    axis = label_distribution(counts, ("cat", "dog", "owl"))
    heights = np.array([bar.get_height() for bar in axis.patches]).reshape(3, 2).T
    floors = np.array([bar.get_y() for bar in axis.patches]).reshape(3, 2).T
    np.testing.assert_array_equal(heights, counts)
    np.testing.assert_array_equal(floors, np.cumsum(counts, axis=1) - counts)
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["cat", "dog", "owl"]


def test_rows_of_the_heat_map_are_ues_from_near_to_far():
    ages = np.array([[0, 5, 1], [1, 6, 0]])
    axis = age_heat_map(ages, np.array([30.0, 20.0, 90.0]), 4.0)
    drawn = np.asarray(axis.images[0].get_array())
    np.testing.assert_allclose(drawn, [[1, 1], [0, 0.25], [0.25, 0]])
    assert [label.get_text() for label in axis.get_yticklabels()] == ["25", "50"]
    assert axis.get_yticks().tolist() == [1, 2]  # how many UEs are nearer
    assert age_heat_map(ages, None, 4.0).get_ylabel() == "UE"


def test_shares_of_ages_are_steps_up_to_one():
    axis = age_distribution({"a": np.array([0, 0, 2, 3])})
    np.testing.assert_allclose(axis.lines[0].get_ydata(), [0.5, 0.5, 0.75, 1.0])


def test_water_stands_at_one_level_above_the_inverse_gains():
    gain, power = np.array([4.0, 10.0]), np.array([0.425, 0.575])
    axis = water_filling([("far", gain, power)])
    tops = [bar.get_y() + bar.get_height() for bar in axis.patches[2:]]
    np.testing.assert_allclose(tops, [0.675, 0.675])
    np.testing.assert_allclose([bar.get_height() for bar in axis.patches[:2]], [0.1, 0.25])
    bits = 0.5 * np.log2(1 + np.array([5.75, 1.7]))
    assert [text.get_text() for text in axis.texts] == [f"{each:.1f} bit" for each in bits]


def test_the_chosen_stand_at_their_rank_by_age():
    axis = chosen_ages(np.array([1, 9, 4]), np.array([0, 1]), np.array([1, 3]))
    bars = [bar for bar in axis.patches if hasattr(bar, "get_height")]
    assert [round(bar.get_x() + 0.5) for bar in bars] == [0, 2]
    assert [text.get_text() for text in axis.texts] == ["3"]


def test_the_forest_has_the_largest_gain_on_top():
    gains = {"a": Paired(-0.01, -0.02, 0.0, 0.5, 9), "b": Paired(0.02, 0.01, 0.03, 0.001, 9)}
    axis = forest(gains, p_values={"a": None, "b": 0.004})
    assert [label.get_text() for label in axis.get_yticklabels()] == ["a", "b"]
    assert [text.get_text() for text in axis.texts] == ["-1.0", "+2.0**"]
    spans = [line.get_xdata() for line in axis.lines if len(np.atleast_1d(line.get_xdata())) == 2]
    np.testing.assert_allclose(spans[1:], [[-2, 0], [1, 3]])


def test_maps_have_stars_for_sure_squares_and_pale_ones_without():
    gains = np.array([[0.021, -0.021], [-0.034, np.nan]])
    axis = gain_map(gains, np.array([[0.0004, 0.7], [0.02, np.nan]]), ["1", "4"], ["a", "b"], 0.05)
    assert [text.get_text() for text in axis.texts] == ["+2.1***", "-2.1", "-3.4*", "-"]
    covers = [square.get_alpha() for square in axis.patches]
    assert covers[1] == pytest.approx(0.3 * covers[0])
    assert covers[3] == 0
    blue, red = mpl.colors.to_rgb(INKS["win"][0]), mpl.colors.to_rgb(INKS["lose"][0])
    assert [square.get_facecolor()[:3] for square in axis.patches[:3]] == [blue, red, red]


@pytest.mark.parametrize("shade", [0, 1])
def test_lines_stand_out_from_the_page(shade):
    """A contrast of at least 3:1 (WCAG 1.4.11) to the page and to a card, in light and dark."""

    def luminance(colour):
        parts = np.array(mpl.colors.to_rgb(colour))
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    backs = [("#ffffff", "#13161b")[shade], INKS["card"][shade]]
    lines = [*(LIGHT, DARK)[shade], *(INKS[name][shade] for name in ("ink", "soft", "others"))]
    for back in backs:
        for line in lines:
            dark, light = sorted((luminance(back), luminance(line)))
            assert (light + 0.05) / (dark + 0.05) >= 3, (line, back)


def test_a_trace_has_every_figure_but_those_over_distance(traced, tmp_path):
    out = tmp_path / "x.csv"
    for kind in set(KINDS) - {"distance", "classes", "map"}:
        assert draw_figure(traced.path, kind, out) == out
    with pytest.raises(ValueError, match="do not say where the UEs are"):
        draw_figure(traced, "distance", out)
    with pytest.raises(ValueError, match="where the UEs are"):
        draw_figure(traced, "classes", out)


def test_mistakes_are_one_sentence(compared, swept, tmp_path):
    out = tmp_path / "x.pdf"
    for given, said in (
        ((swept, "pie", out), "no figure 'pie'; there are accuracy, gain, costs, heat"),
        ((compared, "map", out), "a map needs a sweep"),
        ((swept, "ages", out, {"threshold.rate": 9.0}), "no finished setting has rate=9; there"),
        ((swept, "ages", tmp_path / "x.nonsense"), "not supported"),
        ((swept, "ages", tmp_path / "x.pgf"), "needs LaTeX"),
    ):
        with pytest.raises(ValueError, match=said):
            draw_figure(*given)
    for options, said in (
        ({"width": "wide"}, "column, page, or inches from 1 to 20, not 'wide'"),
        ({"style": "nice"}, "no style 'nice' and no file of that name; there are paper, slides"),
        ({"policies": ["random"]}, "random"),
    ):
        with pytest.raises(ValueError, match=said):
            draw_figure(compared, "ages", out, **options)
    assert not any(tmp_path.iterdir())


def test_accuracy_is_drawn_over_what_rounds_cost(compared, tmp_path):
    drawn = draw_figure(compared, "accuracy", tmp_path / "u.csv", over="uses")
    rows = list(csv.DictReader(io.StringIO(drawn.read_text())))
    line = [row for row in rows if row["series"] == "round-robin"]
    spent = np.array(
        [np.cumsum(compared.history("round-robin", s).numbers("uses")) for s in range(3)]
    )
    last = float(line[-1]["x"])
    assert last <= spent[:, -1].min() * (1 + 1e-7)
    accuracy = compared.accuracy("round-robin")
    when = [np.flatnonzero(each <= last * (1 + 1e-7))[-1] for each in spent]
    assert float(line[-1]["y"]) == pytest.approx(np.mean(accuracy[np.arange(3), when]), rel=1e-6)
