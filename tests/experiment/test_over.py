"""Results over rounds, seconds, joules, channel uses and bits."""

import json
import math

import numpy as np
import pytest
from typer.testing import CliRunner

import agewise
from agewise import Result, statistics
from agewise.cli import _printing as printing
from agewise.cli import app
from agewise.engines import Inline
from agewise.experiment._summary import cost_points
from agewise.statistics import AXES, accuracy_at
from agewise.tables import Column, Table
from tests.scenarios import in_seconds, tiny

SECONDS = in_seconds(slot_s=0.1, downlink_s=0.01, median_s=0.1, sigma=0.5, power_w=1.0)
POLICIES = ["max-pack", "age-based"]


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """Two policies, three seeds, evaluated in every second of nine rounds and in the last."""
    scenario = tiny(**SECONDS, **{"run.rounds": 9, "run.evaluate_every": 2})
    out = tmp_path_factory.mktemp("over") / "runs"
    return agewise.compare(scenario, POLICIES, 3, out, engine=Inline(), quiet=True)


def by_hand(history, column, point):
    """The last accuracy that was measured before more than this was spent."""
    spent, found = 0.0, math.nan
    for row in history.frame.iter_rows(named=True):
        spent += 1.0 if column is None else row[column]
        if spent > point:
            return found
        found = found if row["accuracy"] is None else row["accuracy"]
    return found if spent == point else math.nan


@pytest.mark.parametrize("name", AXES)
def test_accuracies_at_equal_costs(name, result):
    axis = AXES[name]
    least = min(axis.cost(run)[-1] for p in POLICIES for run in result.histories(p).values())
    most = max(axis.cost(run)[-1] for p in POLICIES for run in result.histories(p).values())
    points = [0.3 * least, 0.9 * least, 2.0 * most]
    for policy, row in zip(POLICIES, result.table(name, points).to_dicts(), strict=True):
        runs = result.histories(policy).values()
        for point, label in zip(points, [k for k in row if k.startswith("accuracy@")], strict=True):
            expected = np.mean([by_hand(run, axis.column, point) for run in runs])
            np.testing.assert_allclose(row[label], expected)
        assert row["cost"] == pytest.approx(np.mean([axis.cost(run)[-1] for run in runs]))
        assert math.isnan(row[label])  # every run has ended before
        assert row[label.replace("accuracy", "p")] is None


def test_points_that_nobody_chose(result):
    runs = [run for policy in POLICIES for run in result.histories(policy).values()]
    for name in ("seconds", "joules", "channel-uses", "bits"):
        least = min(AXES[name].cost(run)[-1] for run in runs)
        points = cost_points(runs, AXES[name])
        np.testing.assert_allclose(points, [0.25 * least, 0.5 * least, least], rtol=0.1)
        assert points[-1] <= least
        table = result.table(name).to_polars()
        assert [f"accuracy@{point:.12g}" in table.columns for point in points] == [True] * 3
        assert not table[f"accuracy@{points[-1]:.12g}"].is_nan().any()
    assert [n for n in result.table().to_polars().columns if n.startswith("accuracy")] == [
        "accuracy@9"
    ]


@pytest.mark.parametrize("name", AXES)
def test_what_it_takes_to_a_target(name, result):
    for policy, row in zip(POLICIES, result.to_target(0.6, name).to_dicts(), strict=True):
        runs = list(result.histories(policy).values())
        first = []
        for run in runs:
            reached = np.flatnonzero(run.accuracy >= 0.6)
            first.append(AXES[name].cost(run)[reached[0]] if reached.size else math.inf)
        assert row["reached"] == np.isfinite(first).sum() > 0
        if row["reached"] == 3:
            assert row["median"] == pytest.approx(np.median(first))
        assert row["restricted_mean"] <= row["horizon"]
    assert [row["reached"] for row in result.to_target(1.0, name).to_dicts()] == [0, 0]


def test_accuracy_at_against_a_plain_loop():
    rng = np.random.default_rng(8)
    accuracy, spent = rng.random((4, 12)), np.cumsum(rng.random((4, 12)), axis=1)
    accuracy[rng.random((4, 12)) < 0.5] = np.nan
    points = [*rng.uniform(0, 9, 30), spent[0, -1]]
    for row, found in enumerate(accuracy_at(accuracy, spent, points)):
        for point, value in zip(points, found, strict=True):
            seen = [a for a, s in zip(accuracy[row], spent[row], strict=True) if s <= point]
            known = [a for a in seen if not np.isnan(a)]
            expected = known[-1] if known and point <= spent[row, -1] else np.nan
            np.testing.assert_equal(value, expected)


def test_axes_that_runs_do_not_have(tmp_path):
    plain = agewise.compare(tiny(), POLICIES, 1, tmp_path / "x", engine=Inline(), quiet=True)
    assert len(plain.table("channel-uses").rows) == len(plain.table("bits").rows) == 2
    for name in ("seconds", "joules"):
        with pytest.raises(ValueError, match=f"no {name} with timing.kind = none: set timing to k"):
            plain.table(name)
        with pytest.raises(ValueError, match="docs/accounting.md"):
            plain.to_target(0.5, name)
        with pytest.raises(ValueError, match=f"no {name}"):
            agewise.reproduce(tiny(), 1, tmp_path / "y", over=name)
    assert not (tmp_path / "y").exists()
    with pytest.raises(
        ValueError, match="shown over rounds, seconds, joules, channel-uses, bits, not over"
    ):
        plain.table("hours")
    for points in ([], [0.0], [-1, 2], [math.nan]):
        with pytest.raises(ValueError, match="point"):
            plain.table("bits", points)


def test_the_command_line(result):
    def run(*words):
        return CliRunner().invoke(app, ["show", str(result.path), *words])

    said = run("--over", "joules", "--at", "0.5,1", "--target", "0.6")
    assert said.exit_code == 0
    text = " ".join(said.stdout.split())
    for part in ("0.5 J", "1 J", "Test accuracy over joules", "a run"):
        assert part in text
    assert "with that of each seed" in " ".join(run("--over", "joules").stdout.split())
    assert "Energy of all UEs (J) until the accuracy is 60.0%" in text
    described = json.loads(run("--over", "seconds", "--target", "0.6", "--json").stdout)
    assert described["over"] == "seconds"
    table = Result.open(result.path).table("seconds")
    assert [row["cost"] for row in described["rows"]] == [r.metrics["cost"] for r in table.rows]
    assert described["to_target"][0]["reached"] == result.to_target(0.6).rows[0].taken.reached
    assert "round 9" in " ".join(run().stdout.split())
    for words, mistake in (
        (("--over", "hours"), "shown over rounds"),
        (("--at", "1,x"), "--at 1,x: give numbers above 0"),
        (("--at", "0"), "give numbers above 0"),
        (("--target", "80"), "--target 80: must be above 0 to 1"),
    ):
        failed = run(*words)
        assert failed.exit_code != 0
        assert mistake in str(failed.exception) + failed.output


def test_paired_gains_are_of_the_same_costs(result):
    point = cost_points(result.histories("max-pack").values(), AXES["bits"])[0]
    row = result.table("bits", [point]).to_dicts()[1]
    here, there = (
        [by_hand(run, "bits", point) for run in result.histories(policy).values()]
        for policy in ("age-based", "max-pack")
    )
    expected = statistics.contrast(here, there)
    label = f"{point:.12g}"
    assert row[f"gain@{label}"] == pytest.approx(expected.mean, nan_ok=True)


def test_names_take_less_room_before_a_number_is_cut_off(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    columns = [Column("policy", kind="words"), Column("a run"), Column("until then")]
    rows = [["age-based", 30 * "1", 30 * "2"], ["variance over draws", 30 * "3", 30 * "4"]]
    printing.print_table(Table("", columns, rows))
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["age-based", 30 * "1", 30 * "2"] in shown
    assert ["variance", "over", 30 * "3", 30 * "4"] in shown
    assert ["draws"] in shown


def test_costs_to_a_target_are_written_out(result):
    options = ["--over", "bits", "--target", "0.3"]
    said = CliRunner().invoke(app, ["show", str(result.path), *options]).stdout
    row = result.to_target(0.3, "bits").to_dicts()[0]
    assert row["median"] >= 1e4, "which had been written with a power of ten"
    assert f" {row['median']:,.0f} " in said
    assert "e+" not in said
