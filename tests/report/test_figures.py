"""Figures for papers: one of each kind, and the numbers in them."""

import csv
import errno
import io
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_pgf import LatexManager
from matplotlib.text import Text

import agewise
from agewise import Scenario
from agewise.report import PICTURES, _curves, _idea, draw_figure, gain_map
from agewise.report._setting import Setting
from agewise.report._style import (
    DARK,
    INKS,
    LIGHT,
    height_of_names,
    name_ends,
    new_figure,
    page_style,
    paper_style,
    save,
)
from agewise.report.figures import figure_csv
from agewise.statistics import AXES, Contrast, mean_interval
from agewise.tables import GainMap
from tests.scenarios import tiny

TWO_PARTS = {"heat", "cell"}


def new_axis():
    return new_figure(3.5, 2.6).subplots()


def drawn(kind, setting, names=None):
    """The axes of a picture of this setting, or of what stands for one."""
    figure = new_figure(3.5, 2.6)
    assert PICTURES[kind].draw(setting, names or list(setting.indices), figure) is not None
    return figure.axes


def a_setting(**known):
    """What stands for a setting of the policies a and b."""
    usual = {
        "indices": {"a": 0, "b": 1}, "pair": ["b", "a"], "display_name": str, "listed": str,
        "seed": 0, "end": 8.0,
        "axis": AXES["rounds"], "over_rounds": True, "baseline": "c", "points": np.arange(1.0, 7),
    }  # fmt: skip
    return SimpleNamespace(**usual | known)


#: Pictures that need more than two policies on a few seeds.
ELSEWHERE = {"waterfall", "devices", "staleness"}
RADIO = {name for name, picture in PICTURES.items() if picture.section == "radio"}


@pytest.mark.parametrize("kind", [name for name in PICTURES if name not in ELSEWHERE | RADIO])
def test_every_kind_has_a_columns_width_and_embedded_fonts(kind, compared, swept, tmp_path):
    result = swept if kind == "map" else compared
    pdf = draw_figure(result, kind, tmp_path / f"{kind}.pdf").path.read_bytes()
    width = float(re.search(rb"/MediaBox \[ 0 0 ([\d.]+)", pdf)[1])
    assert width == pytest.approx((7.16 if kind in TWO_PARTS else 3.5) * 72)
    assert b"STIX" in pdf
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf
    if kind in ("accuracy", "map"):  # pages show that the others are the same again
        assert draw_figure(result, kind, tmp_path / "again.pdf").path.read_bytes() == pdf


def test_the_channel_is_drawn_once_it_was_measured(compared, tmp_path):
    for kind in RADIO:
        with pytest.raises(ValueError, match="needs a channel that was measured"):
            draw_figure(compared, kind)
    kept = agewise.keep_channel_of(compared)
    try:
        for kind in RADIO:
            pdf = draw_figure(compared, kind, tmp_path / f"{kind}.pdf").path.read_bytes()
            assert b"/Type3" not in pdf
        text = draw_figure(compared, "snr", tmp_path / "x.csv").path.read_text()
        assert text.startswith("part,what,series,x,y,value")
    finally:
        kept.unlink()


def test_late_updates_are_as_stale_as_recorded():
    runs = {0: SimpleNamespace(staleness=[np.array([0, 1]), np.array([1, 3])])}
    (axis,) = drawn("staleness", a_setting(runs={"a": runs, "b": runs}, listed=str), ["a"])
    assert axis.lines[0].get_ydata().tolist() == [25.0, 50.0, 0.0, 25.0]


def test_width_limits_policies_and_style_are_as_asked(compared, tmp_path):
    def drawn(**options):
        return draw_figure(compared, "accuracy", tmp_path / "a.svg", **options).path.read_text()

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
    assert (
        limits.path.read_text()
        == draw_figure(compared, "accuracy", tmp_path / "b.csv").path.read_text()
    )
    assert drawn(ylim=(0.0, 1.0)) != usual


def test_the_csv_has_the_numbers_of_the_runs(compared, swept, tmp_path):
    def rows(result, kind):
        text = draw_figure(result, kind, tmp_path / "x.csv").path.read_text()
        return list(csv.DictReader(io.StringIO(text)))

    lines = [row for row in rows(compared, "accuracy") if row["series"] == "round-robin"]
    np.testing.assert_allclose([float(row["x"]) for row in lines], np.arange(1, 9))
    mean = compared.accuracy("round-robin").mean(axis=0)
    np.testing.assert_allclose([float(row["y"]) for row in lines], mean, rtol=1e-6)
    largest = [row for row in rows(compared, "ages") if row["part"] == "largest age (rounds)"]
    peaks = [compared.history("round-robin", seed).ages.max(axis=1) for seed in range(3)]
    drawn = [float(row["y"]) for row in largest if row["series"] == "round-robin"]
    np.testing.assert_allclose(drawn, np.mean(peaks, axis=0), rtol=1e-6)
    heat = [row for row in rows(compared, "heat") if row["part"] == "age-based"]
    assert len(heat) == 8 * 12
    squares = {(row["x"], row["y"]): row["value"] for row in rows(swept, "map")}
    assert set(squares) == {(x, y) for x in "14" for y in ("partition=iid", "partition=shards")}


def test_every_picture_is_described():
    """Names, titles and sentences of commands and documents come from the one list."""
    for name, picture in PICTURES.items():
        assert picture.name == name
        assert picture.title
        assert picture.sentence.endswith(".")


def test_the_list_is_read_without_what_draws():
    code = "import sys, agewise.report.pictures; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_ends_of_a_band_are_those_of_the_interval():
    runs = np.random.default_rng(2).random((6, 5))
    axis = new_axis()
    interval = _curves._line_with_band(axis, np.arange(5.0), runs, 0, "a")
    np.testing.assert_array_equal(interval.low, mean_interval(runs).low)
    rows = list(csv.DictReader(io.StringIO(figure_csv(axis.figure))))
    for which in ("low", "high"):
        drawn = [float(row["y"]) for row in rows if row["series"] == f"{which} 1"]
        np.testing.assert_allclose(drawn, getattr(interval, which), rtol=1e-6)


def test_lines_are_the_numbers_that_were_given():
    axis, given = new_axis(), {"a": (np.arange(3.0), np.array([1.0, np.nan, 3.0]))}
    _curves._draw_lines(axis, a_setting(), given, "x", "y", markers=True)
    np.testing.assert_array_equal(axis.lines[0].get_xydata(), [[0, 1], [2, 3]])


@pytest.mark.parametrize(("seeds", "runs_drawn", "bands"), [(4, 4, 0), (5, 0, 1)])
def test_few_seeds_are_drawn_as_they_are(seeds, runs_drawn, bands):
    """An interval of fewer than five seeds would say more than is known."""
    runs = np.random.default_rng(1).random((seeds, 6))
    axis, gains = new_axis(), new_axis()
    _curves._line_with_band(axis, np.arange(6.0), runs, 0, "a")
    assert (len(axis.lines), len(axis.collections)) == (1 + runs_drawn, bands)
    _curves._line_with_band(gains, np.arange(6.0), runs, 0, "mean", thin="black")
    assert (len(gains.lines), len(gains.collections)) == (1 + seeds, bands)


def test_rounds_are_whole_and_accuracies_within_0_and_1(compared):
    setting = Setting(compared, {})
    (axis,) = drawn("accuracy", setting)
    axis.figure.draw_without_rendering()
    ticks = axis.get_xticks()
    assert (ticks == np.round(ticks)).all()
    assert 0 <= axis.get_ylim()[0] < axis.get_ylim()[1] <= 1
    over = Setting(compared, {}, axis=AXES["channel-uses"])
    (other,) = drawn("accuracy", over)
    assert (other.get_xlabel(), other.get_xlim()) == (
        AXES["channel-uses"].label,
        (0.0, over.points[-1]),
    )
    assert other.lines[-1].get_xdata()[-1] == over.points[-1]


def test_rows_of_the_heat_map_are_ues_from_near_to_far():
    def heat(distance_m):
        ages = np.array([[0, 5, 1], [1, 6, 0]])
        setting = a_setting(
            oldest=4.0, ues=3, history=lambda _: SimpleNamespace(ages=ages),
            distances_m=lambda _: distance_m,
        )  # fmt: skip
        return drawn("heat", setting, ["a"])[0]

    axis = heat(np.array([30.0, 20.0, 90.0]))
    squares = np.asarray(axis.images[0].get_array())
    np.testing.assert_allclose(squares, [[1, 1], [0, 0.25], [0.25, 0]])
    assert [label.get_text() for label in axis.get_yticklabels()] == ["25", "50"]
    assert axis.get_yticks().tolist() == [1, 2]  # how many UEs are nearer
    assert heat(None).get_ylabel() == "UEs"


def test_shares_of_ages_are_steps_up_to_one():
    setting = a_setting(ages=lambda _: np.array([[[9, 9], [0, 0]], [[9, 9], [2, 3]]]))
    (axis,) = drawn("distribution", setting, ["a"])
    np.testing.assert_allclose(axis.lines[0].get_ydata(), [0.5, 0.5, 0.75, 1.0])


def test_water_stands_at_one_level_above_the_inverse_gains(monkeypatch):
    far = _idea.Filled(3, 90.0, np.array([4.0, 10.0]), np.array([0.425, 0.575]))
    near = _idea.Filled(1, 9.0, np.array([40.0]), np.array([1.0]))
    monkeypatch.setattr(_idea, "find_filled", lambda _: (4, near, far))
    (axis,) = drawn("water", a_setting(scenario=Scenario.preset("paper")))
    bars = np.array([(bar.get_y(), bar.get_y() + bar.get_height()) for bar in axis.patches])
    bottom = 0.4 / 40
    expected = [[bottom, 0.025], [0.025, 1.025], [bottom, 0.1], [bottom, 0.25], [0.1, 0.675],
                [0.25, 0.675]]  # fmt: skip
    np.testing.assert_allclose(bars, expected)
    assert axis.get_yscale() == "log", "so that the height of power is its rate"
    bits = 0.5 * np.log2(1 + np.array([40.0, 5.75, 1.7]))
    assert [text.get_text() for text in axis.texts] == [f"{each:.1f} bit" for each in bits]


def test_of_phones_with_equal_scores_those_that_upload_come_first():
    kept = SimpleNamespace(t=0, need=np.array([1, 1, 0, 1, 1]), gain=None)
    history = SimpleNamespace(eligible=kept, owner=[np.array([4, 3])])
    setting = a_setting(
        history=lambda _: history, choice=lambda *_: (np.full(5, 9), np.array([3, 4])),
        result=SimpleNamespace(compared=[]), scenario=Scenario.preset("paper"),
    )  # fmt: skip
    assert _idea.rank(setting, "a").chosen.tolist() == [0, 1]
    assert _idea._weight_text(0.5, "paper") == "f(age) = 2·age<sup>0.5</sup>"


@pytest.mark.parametrize("needed", [2.0, None])
def test_what_a_subchannel_needs_is_told_where_it_is_drawn(needed):
    view = SimpleNamespace(mean_snr_db=np.arange(9.0), rate_threshold=needed)
    figure = new_figure(3.5, 2.6)
    shown = PICTURES["snr"].draw(a_setting(radio=view), [], figure)
    dashed = [line for line in figure.axes[0].lines if line.get_linestyle() == "--"]
    assert ("dashed line" in shown.measured) == bool(dashed) == (needed is not None)


def test_the_chosen_stand_at_their_rank_and_the_cut_after_as_many():
    axis, score = new_axis(), np.array([4.0, 2.0, 1.0, 0.0])
    _idea._draw_ranks(axis, _idea.Ranking(4, score, np.array([0, 2]), np.array([0]), None), 0)
    bars = [bar for bar in axis.patches if hasattr(bar, "get_height")]
    assert [round(bar.get_x() + 0.5) for bar in bars] == [0, 2]
    assert axis.lines[0].get_xdata() == [1.5, 1.5]
    assert [text.get_text() for text in axis.texts] == ["cut after 2"]


def test_gains_are_in_decibels_with_what_was_given_to_whom():
    gain, axis, none = np.geomspace(1.0, 1e4, 6, dtype=np.float32), new_axis(), new_axis()
    _idea._draw_gains(axis, gain.reshape(3, 2), np.array([2, -1]), 0)  # every 8 dB
    # From 5 % to 95 % of 40 dB: the lowest and the highest are cut off.
    expected = np.clip((np.arange(6) * 8 - 2) / 36, 0, 1).reshape(3, 2).T
    np.testing.assert_allclose(np.asarray(axis.images[0].get_array()), expected, atol=1e-5)
    assert axis.lines[0].get_xydata().tolist() == [[2, 1]]
    _idea._draw_gains(none, 0 * gain.reshape(3, 2), np.array([-1, -1]), 0)
    assert not np.asarray(none.images[0].get_array()).any()


def test_the_forest_has_the_largest_gain_on_top():
    gains = {"a": Contrast(-0.01, -0.02, 0.0, 0.5, 9), "b": Contrast(0.02, 0.01, 0.03, 0.004, 9)}
    (axis,) = drawn("forest", a_setting(against_baseline=gains))
    assert [label.get_text() for label in axis.get_yticklabels()] == ["a", "b"]
    assert [text.get_text() for text in axis.texts] == ["-1.0", "+2.0**"]
    spans = [line.get_xdata() for line in axis.lines if len(np.atleast_1d(line.get_xdata())) == 2]
    np.testing.assert_allclose(spans[1:], [[-2, 0], [1, 3]])


@pytest.mark.parametrize("style", [page_style, paper_style])
@pytest.mark.parametrize("count", [3, 9, 18])
def test_names_of_points_are_inside_the_axes_and_apart(count, style):
    numbers = np.random.default_rng(count).normal(size=(count, 2, 1))
    indices = {f"policy-of-number-{i}": i for i in range(count)}
    metrics = {
        name: SimpleNamespace(ues_per_round=15 + x, age_mean=9 + y)
        for name, (x, y) in zip(indices, numbers, strict=True)
    }
    with style():
        figure = new_figure(4.0, 3.6)
        setting = a_setting(indices=indices, metrics=metrics, pair=list(indices)[:2])
        PICTURES["trade-off"].draw(setting, list(indices), figure)
        assert_apart(figure)
        inside, boxes = figure.axes[0].bbox, boxes_of_names(figure)
        assert all(inside.x0 <= box.x0 and box.x1 <= inside.x1 for box in boxes)
        assert all(inside.y0 <= box.y0 and box.y1 <= inside.y1 for box in boxes)


@pytest.mark.parametrize("count", [2, 9, 18])
def test_names_of_lines_are_apart(count):
    ends = {f"policy {i}": 0.9 + 0.001 * i for i in range(count)}
    with page_style():
        figure = new_figure(4.0, max(3.2, height_of_names(count)))
        figure.subplots_adjust(bottom=0.15, top=0.97)
        figure.subplots()
        indices = dict(zip(ends, range(count), strict=True))
        name_ends(figure.axes[0], ends, indices, figure.get_figheight())
        assert_apart(figure)


def boxes_of_names(figure):
    return [Text.get_window_extent(text) for text in figure.axes[0].texts]


def assert_apart(figure):
    figure.draw_without_rendering()
    boxes = boxes_of_names(figure)
    assert boxes
    for index, box in enumerate(boxes):
        assert not box.count_overlaps(boxes[:index])


def test_maps_have_stars_for_sure_squares_and_pale_ones_without():
    found = ((0, 0, 0.021, 0.0004), (0, 1, -0.021, 0.7), (1, 0, -0.034, 0.02))
    squares = {(0, y, x): Contrast(gain, gain, gain, p, 20) for y, x, gain, p in found}
    axis = new_axis()
    made = GainMap(["a"], "b", "", ["a", "b"], "", ["1", "4"], {}, squares, "", AXES["rounds"])
    gain_map(made, 0, axis)
    assert [text.get_text() for text in axis.texts] == ["+2.1***", "-2.1", "-3.4*", "–"]
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


def test_a_figure_shows_itself_and_needs_no_file(compared):
    figure = draw_figure(compared, "forest")
    assert figure.path is None
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_policies_are_called_what_a_paper_calls_them(compared, tmp_path):
    labels = {"age-based": "ABS", "max-pack:ties=lowest-index": "MaxPack (first)"}
    for kind in ("accuracy", "forest", "gain", "trade-off", "heat"):
        figure = draw_figure(compared, kind, labels=labels)
        figure.draw_without_rendering()
        shown = " ".join(text.get_text() for text in figure.findobj(Text))
        assert "age-based" not in shown, kind
        assert "ABS" in shown, kind
        assert "lowest-index" not in shown, kind
    numbers = draw_figure(compared, "accuracy", tmp_path / "a.csv", labels=labels).path.read_text()
    assert "line,MaxPack (first),1," in numbers
    assert "line,max-pack,1," in numbers
    with pytest.raises(ValueError, match="'random' is not one of the policies"):
        draw_figure(compared, "ages", labels={"random": "R"})


def test_alpha_is_a_greek_letter_in_a_paper(tmp_path):
    policies = ["age-based:alpha=0", "max-pack"]
    result = agewise.compare(tiny(), policies, 1, tmp_path / "a", engine="inline", quiet=True)
    figure = draw_figure(result, "accuracy", tmp_path / "a.pdf")
    assert "age-based:α=0" in [text.get_text() for text in figure.findobj(Text)]
    assert r"age-based:$\alpha$=0" in result.table().accuracy().to_latex()


def test_a_trace_has_every_figure_but_those_of_places(traced, tmp_path):
    out = tmp_path / "x.csv"
    without = {"distance", "classes", "cell"}
    for kind in set(PICTURES) - without - ELSEWHERE - RADIO - {"map", "water"}:
        assert draw_figure(traced.path, kind, out).path == out
    for kind in without:
        with pytest.raises(ValueError, match=f"figure {kind} needs .* where the UEs are"):
            draw_figure(traced, kind, out)


def test_mistakes_are_one_sentence(compared, swept, tmp_path):
    out = tmp_path / "x.pdf"
    for given, said in (
        ((swept, "pie", out), "no figure 'pie'; there are gain, forest, accuracy, costs"),
        ((swept, "gian", out), "no figure 'gian'; did you mean gain?"),
        ((compared, "map", out), "map needs a sweep"),
        ((swept, "ages", out, {"threshold.rate": 9.0}), "no finished setting has rate=9; there"),
        ((swept, "ages", tmp_path / "x.nonsense"), "x.nonsense: a figure ends in .pdf, .pgf, "),
        ((swept, "ages", ".pdf"), "^.pdf: give a name before .pdf$"),
        ((swept, "ages", "f"), "^f: a figure ends in "),
        ((swept, "ages", tmp_path / "x.pgf"), "needs LaTeX"),
    ):
        with pytest.raises(ValueError, match=said):
            draw_figure(*given)
    for options, said in (
        ({"width": "wide"}, "column, page, or inches from 1 to 20, not 'wide'"),
        ({"setting": "rate=4"}, "setting must be values by names of fields, not 'rate=4'"),
        ({"style": "nice"}, "no style 'nice' and no file of that name; there are paper, slides"),
        ({"policies": ["random"]}, "random"),
    ):
        with pytest.raises(ValueError, match=said):
            draw_figure(compared, "ages", out, **options)
    assert not any(tmp_path.iterdir())
    wrong = tmp_path / "wrong.mplstyle"
    for content, said in (("a,b\n1,2\n", "'a,b'"), ("line.width: 2\n", "'line.width: 2'"),
                          ("lines.linewidth: wide\n", "wide")):  # fmt: skip
        wrong.write_text(f"# a style\nlines.linewidth: 2  # points\n{content}")
        with pytest.raises(ValueError, match=f"wrong.mplstyle: no style: .*{said}"):
            draw_figure(compared, "ages", out, style=str(wrong))


@pytest.mark.parametrize("ending", ["pdf", "svg", "png", "csv"])
def test_a_full_disk_is_said_of_the_file(compared, tmp_path, monkeypatch, ending):
    """The system says so when content is written or flushed, and names no file."""

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        draw_figure(compared, "ages", tmp_path / f"x.{ending}")
    assert caught.value.filename == str(tmp_path / f"x.{ending}")
    assert not any(tmp_path.iterdir())


def test_accuracy_is_drawn_over_what_rounds_cost(compared, tmp_path):
    drawn = draw_figure(compared, "accuracy", tmp_path / "u.csv", over="channel-uses").path
    rows = list(csv.DictReader(io.StringIO(drawn.read_text())))
    line = [row for row in rows if row["series"] == "round-robin"]
    spent = np.array(
        [np.cumsum(compared.history("round-robin", s).numbers("channel_uses")) for s in range(3)]
    )
    last = float(line[-1]["x"])
    assert last <= spent[:, -1].min() * (1 + 1e-7)
    accuracy = compared.accuracy("round-robin")
    when = [np.flatnonzero(each <= last * (1 + 1e-7))[-1] for each in spent]
    assert float(line[-1]["y"]) == pytest.approx(np.mean(accuracy[np.arange(3), when]), rel=1e-6)


STUB = """#!{python}
import sys
heard = open({heard!r}, "a")
for line in sys.stdin:
    heard.write(line)
    heard.flush()
    if "pgf_backend_query_start" in line:
        print("*pgf_backend_query_start\\n*", end="", flush=True)
    elif "typeout" in line:
        print("10.0pt,6.0pt,2.0pt\\n\\n*", end="", flush=True)
"""


@pytest.fixture
def latex(tmp_path, monkeypatch):
    """What stands for LaTeX, which measures every text alike: the file of what it was told."""
    heard = tmp_path / "heard.tex"
    (tmp_path / "bin").mkdir()
    stub = tmp_path / "bin" / "xelatex"
    stub.write_text(STUB.format(python=sys.executable, heard=str(heard)))
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", str(stub.parent), prepend=":")
    LatexManager._get_cached_or_new_impl.cache_clear()
    yield heard
    LatexManager._get_cached_or_new_impl.cache_clear()


def test_a_figure_for_latex(compared, latex, tmp_path):
    for kind in ("accuracy", "gain", "forest"):
        drawn = draw_figure(compared, kind, tmp_path / f"{kind}.pgf").path.read_text()
        assert drawn.count(r"\begin{pgfpicture}") == drawn.count(r"\end{pgfpicture}") == 1
        assert "age-based" in drawn
        again = draw_figure(compared, kind, tmp_path / "again.pgf").path.read_text()
        assert again == drawn
    with pytest.raises(ValueError, match=r"heat.pgf: the figure has pixels"):
        draw_figure(compared, "heat", tmp_path / "heat.pgf")
    names = {"accuracy.pgf", "gain.pgf", "forest.pgf", "again.pgf", "bin", latex.name}
    assert {file.name for file in tmp_path.iterdir()} == names


def test_no_name_commands_latex(latex, tmp_path):
    evil = r"\input{/etc/passwd} \write18{x} 50% $x$ a_b ^^5cinput{y}"
    with paper_style(), mpl.rc_context({"text.parse_math": False}):
        axis = new_axis()
        axis.plot([0, 1], label=evil)
        axis.set(title=f"{evil}\n{evil}", xlabel=evil)
        axis.set_yticks([0, 1], [evil, "b"])
        axis.legend()
        axis.annotate(evil, (0, 0))
        save(axis.figure, tmp_path / "x.pgf")
    for told in (tmp_path / "x.pgf", latex):
        text = told.read_text()
        assert r"\textbackslash{}write18\{x\}" in text
        shown = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
        for command in (r"\input", r"\write18", "^^5c", "$x$"):
            assert command not in shown


def test_a_style_cannot_hand_names_to_latex(compared, tmp_path):
    (tmp_path / "own.mplstyle").write_text("text.usetex: True\n")
    style = str(tmp_path / "own.mplstyle")
    assert draw_figure(compared, "accuracy", tmp_path / "x.pdf", style=style).path.exists()
