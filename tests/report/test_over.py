"""The page and the figures over seconds, joules, channel uses and bits."""

import base64
import csv
import io
import re
from html import unescape

import numpy as np
import pytest
from typer.testing import CliRunner

import agewise
from agewise import statistics
from agewise.cli import app
from agewise.experiment import LearningCurve
from agewise.experiment._summary import cost_points, mean_points
from agewise.report import PICTURES, _costs, _gains, draw_figure, new_figure
from agewise.report._claims import claims_note, claims_of
from agewise.report._setting import Setting
from agewise.report._verdict import verdict
from agewise.report.page import make_page
from agewise.statistics import AXES, Contrast, Estimate
from agewise.studies import usual_scenario
from agewise.tables import ResultTable, Row
from agewise.tables._words import (
    amount_text,
    at_text,
    head_text,
    limits_text,
    median_text,
    p_text,
    percent_text,
    points_text,
)
from tests.experiment.test_over import SECONDS
from tests.report.test_page import headline, pictures, plain
from tests.scenarios import tiny

SEEDS = 5


@pytest.fixture(scope="module")
def costly(tmp_path_factory):
    """Three policies whose rounds take seconds and joules."""
    out = tmp_path_factory.mktemp("over") / "costly"
    policies = ["max-pack", "age-based", "round-robin"]
    return agewise.compare(
        tiny(**SECONDS), policies, SEEDS, out, engine="inline", quiet=True
    )  # fmt: skip


@pytest.fixture(scope="module")
def pages(costly):
    return {name: make_page(costly, name) for name in ("rounds", "seconds", "joules")}


def curve(result, policy, axis, points):
    """``[seed, point]``, by hand."""
    found = []
    for run in result.histories(policy).values():
        spent = np.cumsum(run.numbers(axis.column))
        last = [np.flatnonzero(spent <= point * (1 + 1e-9)) for point in points]
        found.append([run.accuracy[rounds[-1]] if rounds.size else np.nan for rounds in last])
    return np.array(found)


@pytest.mark.parametrize("name", ["seconds", "joules"])
def test_curves_are_at_equal_costs(name, costly, pages):
    axis, drawn = AXES[name], pictures(pages[name])
    text, lines = drawn["s0-gain"]
    assert axis.label in text
    assert '"over": ""' in unescape(text), "no cursor of rounds stands on it"
    x, y, unit = lines["mean"]
    runs = [run for policy in costly.policies for run in costly.histories(policy).values()]
    least = min(axis.cost(run)[-1] for run in runs)
    assert x[-1] == pytest.approx(least, rel=1e-3)
    points = least * np.arange(1, 101) / 100
    first, second = (curve(costly, policy, axis, points) for policy in ("age-based", "max-pack"))
    gain = 100 * (first - second)
    known = ~np.isnan(gain.mean(axis=0))
    np.testing.assert_allclose(x, points[known], atol=2e-3 * least)
    np.testing.assert_allclose(y, gain.mean(axis=0)[known], atol=0.06 * unit)
    assert axis.label in drawn["s0-accuracy"][0]
    assert "could not be made" not in pages[name]


@pytest.mark.parametrize("name", ["seconds", "joules"])
def test_words_and_tables_are_of_the_axis(name, costly, pages):
    axis, page = AXES[name], unescape(pages[name])
    table = costly.table(name)
    row = table.by_policy({})["age-based"]
    *earlier, last = row.at
    answer = verdict(costly, table).answer
    reached = f"{percent_text(row.at[last].mean)}%"
    assert f"{at_text(last, axis)} age-based reaches {reached} and max-pack" in answer
    known = [point for point in earlier if point in row.gains]
    assert [amount_text(point, axis) in answer for point in known] == [True] * len(known)
    assert f"max-pack {axis.equal}" in headline(page)
    assert headline(page).endswith(f"points {at_text(last, axis)}")
    for point in (*earlier, last):
        assert f">{head_text(point, axis)}</th>" in page
    gain = row.gains[last]
    effect = f"{points_text(gain.mean)} points, 95% interval {limits_text(gain)}, {p_text(gain.p)}"
    assert effect in answer
    assert f"In points of test accuracy {at_text(last, axis)} on the same seeds" in page
    assert f"(policies and {name})" in page
    assert f">{axis.what}<br>a run</th>" in page
    saved = re.search(r'href="data:text/csv;base64,([^"]*)"', page)[1]
    assert base64.b64decode(saved).decode() == table.to_csv()
    assert not re.search(r"\d rounds</th>|after \d+ rounds age-based", page)


def test_claims_are_judged_at_equal_costs(costly, pages):
    axis = AXES["joules"]
    row = costly.table("joules").rows[1]
    first, second, *_ = claims_of(costly, axis)
    assert first.claim.endswith("higher accuracy than max-pack with the same energy")
    assert first.evidence == ", ".join(
        f"{points_text(row.gains[at].mean)} points at {at:g} J ({p_text(row.gains[at].p)})"
        for at in list(row.at)[1:]  # at the first some have not finished a round
    )
    assert second == claims_of(costly)[1], "the second is about rounds"
    assert "Claim 1 is judged with the same energy" in claims_note(axis)
    assert first.claim in pages["joules"]
    assert claims_of(costly, axis, [1e9])[0].evidence == "nothing was measured at these points"


def test_the_answer_has_the_unit_of_the_axis(costly):
    def answer(axis, at):
        rows = []
        for key in costly.policies:
            mine = key.name == "age-based"
            found = {x: Estimate(mean, mean, mean, gain if mine else None)
                     for x, mean, gain in at}  # fmt: skip
            if not mine:
                found = {x: Estimate(mean - gain.mean, mean, mean) for x, mean, gain in at}
            rows.append(Row(key, {}, 20, found, {}))
        table = ResultTable(costly.policies, [{}], costly.baseline, AXES[axis], rows)
        return verdict(costly, table).answer

    early = 0.25, 0.52, Contrast(0.02, 0.0, 0.04, 0.5, 20)
    late = 2.5, 0.77, Contrast(-0.03, -0.04, -0.02, 0.001, 20)
    assert answer("joules", [early, late]) == (
        "No: at 2.5 J age-based reaches 77.0% and max-pack 80.0% (-3.0 points, 95% interval -4.0 "
        "to -2.0, p = 0.001; 20 seeds); earlier, no difference is shown at 0.25 J."
    )
    assert "after 2.5 rounds age-based reaches" in answer("rounds", [early, late])
    unknown = Contrast(*(np.nan,) * 4, 20)
    missing = 2.5, np.nan, unknown
    assert "at 0.25 J age-based reaches 52.0%" in answer("joules", [early, missing])
    never = 0.25, 0.52, unknown
    assert "were not measured at 2.5 J" in answer("joules", [never, missing])


def test_every_axis_side_by_side(costly):
    setting = Setting(costly, {})
    target = _costs.usual_target(setting)
    ends = [costly.accuracy(policy)[:, -1].mean() for policy in ("age-based", "max-pack")]
    assert target == np.floor(100 * min(ends)) / 100 > 0
    views = _costs.axis_views(setting, target)
    assert [view.axis.name for view in views] == list(AXES)
    raw = []
    for view in views:
        axis = view.axis
        points = mean_points(
            [run for p in costly.policies for run in costly.histories(p).values()], axis
        )
        for name in ("age-based", "round-robin"):
            if axis.column is None:
                gap = costly.accuracy(name) - costly.accuracy("max-pack")
            else:
                first, second = (curve(costly, p, axis, points) for p in (name, "max-pack"))
                gap = first - second
            expected = statistics.contrast(np.nanmean(gap, axis=1), np.zeros(SEEDS))
            assert view.gains[name].mean == pytest.approx(expected.mean)
            raw.append(expected)
        told = {row["policy"].partition("(")[0]: row["median"]
                for row in costly.to_target(target, axis).to_dicts()}  # fmt: skip
        taken = {name: one.median for name, one in view.to_target.items()}
        assert taken == pytest.approx(told, nan_ok=True)
    found = [gain for view in views for gain in view.gains.values()]
    assert found == statistics.correct(raw)


def test_the_page_shows_them_whatever_its_axis(costly, pages):
    for page in pages.values():
        part = page[page.index('id="costs"') : page.index('id="why"')]
        assert "Per round, second, joule, channel use or bit?" in part
        drawn = pictures(page)["s0-costs"][0]
        assert [f"per {axis.one}" in drawn for axis in AXES.values()] == [True] * 5
        text = unescape(re.sub("<[^>]*>", " ", part))
        for view in _costs.axis_views(
            Setting(costly, {}), _costs.usual_target(Setting(costly, {}))
        ):
            assert median_text(view.to_target["round-robin"], view.axis)[0] in text
            assert points_text(view.gains["round-robin"].mean) in text
        assert f"of {SEEDS}" in text
        assert "all 10 (policies and costs)" in text
    assert "s0-over-rounds" in pictures(pages["joules"])
    assert "s0-over-joules" not in pictures(pages["joules"])


def test_what_runs_do_not_know_is_left_out(compared, pages):
    assert [v.axis.name for v in _costs.axis_views(Setting(compared, {}))] == [
        "rounds", "channel-uses", "bits",
    ]  # fmt: skip
    plain, unknown = make_page(compared), "Seconds and joules are not known"
    assert ">Per round, channel use or bit?</h2>" in plain
    assert unknown in plain
    assert unknown not in pages["rounds"]
    with pytest.raises(ValueError, match="no joules with timing.kind = none.*physical-timed"):
        make_page(compared, "joules")


def test_a_title_names_a_winner_only_where_one_is_shown(costly):
    setting = Setting(costly, {})

    def title(pairs, **gains):
        views = [
            _costs.AxisView(
                AXES[axis], 2.0, {"age-based": Contrast(x, x - 0.01, x + 0.01, p, pairs)}, {}
            )
            for axis, (x, p) in gains.items()
        ]
        return _gains._shown_apart(setting, views)

    few = title(2, rounds=(0.1, 0.001))
    assert few == "Mean gains over max-pack at equal cost: too few seeds for a verdict: 2"
    open_ = "a difference between age-based and max-pack is not shown"
    assert title(9, rounds=(0.1, 0.5)).endswith(f"{open_}, whatever is counted")
    turned = title(9, rounds=(0.1, 0.01), joules=(-0.1, 0.01), bits=(0.1, 0.3))
    assert "age-based is ahead of max-pack per round" in turned
    assert "age-based is behind max-pack per joule" in turned
    assert f"{open_} per bit" in turned


def test_gains_on_every_axis_are_joined(costly):
    setting, figure = Setting(costly, {}), new_figure(3.5, 2.6)
    PICTURES["costs"].draw(setting, list(setting.runs), figure)
    lines = {line.get_label(): line.get_xdata() for line in figure.axes[0].lines}
    views = _costs.axis_views(setting)
    for name in ("age-based", "round-robin"):
        expected = [100 * view.gains[name].mean for view in views]
        np.testing.assert_allclose(lines[name], expected)


def test_every_line_of_gains_has_a_name(costly, monkeypatch):
    """Of many policies those that lead are drawn, and those that were chosen."""
    monkeypatch.setattr(_gains, "_MANY", 2)

    def names(setting):
        figure = new_figure(3.5, 2.6)
        PICTURES["costs"].draw(setting, list(setting.runs), figure)
        joined = [line for line in figure.axes[0].lines if line.get_linestyle() == ":"]
        return {line.get_label() for line in joined}

    usual = Setting(costly, {})
    leaders = {_gains._leader(view, "max-pack") for view in _costs.axis_views(usual)}
    assert names(usual) == {"age-based"} | leaders - {"max-pack"}
    assert names(Setting(costly, {}, costly.policies)) == {"age-based", "round-robin"}


def test_a_median_needs_half_of_the_runs():
    accuracy = [[0.1, 0.2], [0.1, 0.2], [0.1, 0.9]]
    late = statistics.time_to_target(accuracy, 0.9, cost=[[1, 2], [1, 2], [1, 3]])
    assert (late.reached, late.median) == (1, 3.0), "by the last run alone"
    assert median_text(late, AXES["joules"]) == ("not reached by half", "")


@pytest.mark.parametrize(
    ("amount", "axis", "text"),
    [
        (1, "rounds", "1 round"), (40, "rounds", "40 rounds"), (0.76, "seconds", "0.76 s"),
        (0.004, "seconds", "4 ms"), (12_000, "seconds", "12,000 s"), (2.5, "joules", "2.5 J"),
        (0.0025, "joules", "2.5 mJ"), (25_000, "joules", "25 kJ"),
        (57_000, "channel-uses", "57,000 uses"),
        (1.9e6, "channel-uses", "1.9 million uses"),
        (160_000, "bits", "160 kbit"), (0, "joules", "0 mJ"),
    ],
)  # fmt: skip
def test_amounts_have_units_for_people(amount, axis, text):
    assert amount_text(amount, AXES[axis]) == text


def test_figures_over_costs(compared, costly, swept, tmp_path):
    def rows(result, kind, over):
        text = draw_figure(result, kind, tmp_path / "x.csv", over=over).path.read_text()
        return list(csv.DictReader(io.StringIO(text)))

    gain = [row for row in rows(costly, "gain", "joules") if row["series"] == "mean"]
    setting = Setting(costly, {}, axis=AXES["joules"])
    mean = 100 * setting.gains.mean(axis=0)
    known = ~np.isnan(mean)
    np.testing.assert_allclose([float(row["y"]) for row in gain], mean[known], atol=1e-5)
    np.testing.assert_allclose([float(r["x"]) for r in gain], setting.points[known], rtol=1e-5)
    row = costly.table("joules").rows[1]
    end = max(row.at)
    marks = [row for row in rows(costly, "forest", "joules") if row["series"] == "age-based"]
    assert float(marks[0]["x"]) == pytest.approx(100 * row.gains[end].mean, rel=1e-5)
    assert marks[0]["part"] == at_text(end, AXES["joules"])
    squares = {(row["x"], row["y"]): row["value"] for row in rows(swept, "map", "channel-uses")}
    assert len(squares) == 4
    assert len({row["series"] for row in rows(costly, "costs", "rounds")}) == 3
    for kind, why in (
        ("ages", "ages count rounds; gain, forest, accuracy, map are"),
        ("diversity", "the updates of one round"),
        ("costs", "it shows every axis"),
    ):
        with pytest.raises(ValueError, match=f"{kind} is not drawn over bits: .*{why}"):
            draw_figure(compared, kind, tmp_path / "y.csv", over="bits")


def test_the_map_of_a_sweep_is_at_equal_costs(swept):
    axis, variation = AXES["channel-uses"], {"threshold.rate": 1.0, "data.partition": "shards"}
    drawn = swept.map(axis)
    last = swept.table(axis).at[-1]
    first, second = (
        LearningCurve.of(swept.histories(p, variation), axis).at(last).mean()
        for p in ("age-based", "max-pack")
    )
    found = drawn.gains[0, drawn.rows.index("partition=shards"), 0]
    assert found == pytest.approx(first - second)
    page = make_page(swept, "channel-uses")
    assert f"Gain of age-based over max-pack {at_text(last, axis)}" in plain(page)
    assert "could not be made" not in page


def test_runs_that_spent_nothing(tmp_path):
    nobody = agewise.compare(
        tiny(**{"threshold.rate": 900.0, "run.rounds": 2}), ["age-based", "max-pack"], 2,
        tmp_path / "none", engine="inline", quiet=True,
    )  # fmt: skip
    assert 'id="costs"' not in make_page(nobody)
    with pytest.raises(
        ValueError, match="the runs spent no channel-uses: look at them over rounds"
    ):
        make_page(nobody, "channel-uses")
    runs = list(nobody.histories("max-pack").values())
    assert cost_points(runs, AXES["channel-uses"]) == [0.0]


def test_runs_that_spent_nothing_do_not_set_the_points(tmp_path):
    vary = {"threshold.rate": [4.0, 900.0]}
    swept = agewise.sweep(
        tiny(**{"run.rounds": 2}), ["age-based", "max-pack"], vary, 2, tmp_path / "mixed",
        engine="inline", quiet=True,
    )  # fmt: skip
    assert min(swept.table("channel-uses").at) > 0


def test_the_reproduction_has_a_preset_with_seconds():
    assert [usual_scenario(name) for name in AXES] == [
        "paper", "physical-timed", "physical-timed", "paper", "paper",
    ]  # fmt: skip
    timed, physical = (agewise.Scenario.preset(n) for n in ("physical-timed", "physical"))
    AXES["joules"].require(timed.resolved())
    assert timed.with_(timing="none", **{"devices.computing": None}) == physical


def test_commands_hand_axis_points_and_target_to_the_page(costly, tmp_path):
    def report(*words):
        return CliRunner().invoke(app, ["report", str(costly.path), *words])

    axis = ("--over", "joules", "--at", "0.9,1.5", "--target", "0.3")
    made = report("-o", str(tmp_path / "p.html"), *axis)
    assert made.exit_code == 0, made.output
    page = unescape((tmp_path / "p.html").read_text(encoding="utf-8"))
    assert headline(page).endswith("points at 1.5 J")
    assert ">0.9 J</th>" in page
    assert "<br>reached 30.0%</th>" in page
    wrong = report("--over", "hours")
    assert "shown over rounds, seconds" in str(wrong.exception) + wrong.output
