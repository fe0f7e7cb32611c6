"""What schedules lose against the optimum of the same rounds."""

import math

import numpy as np
import polars as pl
import pytest

from agewise import Scenario, Streams, Uplink, gap, schedule_traffic, simulate
from agewise.age import f_alpha, next_ages
from agewise.spectrum.exact import solve
from agewise.studies import Losses, gap_scenario
from agewise.studies.optimality import _REGIMES, with_optimum
from tests.scenarios import tiny

SCENARIO = tiny(**{"run.rounds": 9, "channel.link.edge_snr_db": 5.0})


def solved(every, work_limit=3_000_000):
    return with_optimum(SCENARIO, every, work_limit)


def losses(rounds, weights, optima, bounds):
    return Losses(np.array(rounds), *(np.array(one) for one in (weights, optima, bounds)))


def test_losses_by_hand():
    some = losses([0, 1, 2], [0.0, 3.0, 2.0], [0.0, 4.0, 2.0], [0.0, 4.0, 2.5])
    assert some.per_round == pytest.approx(1 / 8)  # a round without any weight has none to lose
    assert some.over_run == pytest.approx(1 / 6)
    assert some.proven == 2
    for nothing in (losses([0], [0.0], [0.0], [0.0]), losses([], [], [], [])):
        assert math.isnan(nothing.per_round)
        assert math.isnan(nothing.over_run)


def test_losses_of_a_run_are_those_of_its_rounds():
    """Worked out beside the run, from its channel and from ages of Eq. 2."""
    history = simulate(solved(2), "max-pack", 4)
    found = Losses.of(history)
    assert found.rounds.tolist() == [1, 3, 5, 7]
    channel = SCENARIO.make_channel(Streams(4))
    ages, weights, optima = np.zeros(12, np.int64), [], []
    for t, scheduled in enumerate(history.scheduled):
        of_ue = f_alpha(ages, 0.5)
        if t in found.rounds:
            uplink = Uplink(channel.block(t).seen, channel.power_budget, 4.0)
            weights.append(of_ue[scheduled].sum())
            optima.append(solve(uplink, of_ue).value)
        ages = next_ages(ages, scheduled)
    np.testing.assert_allclose(found.weights, weights)
    np.testing.assert_allclose(found.optima, optima)
    assert found.proven == 4
    assert 0 < found.per_round < 1


def test_the_optimum_changes_nothing_else():
    plain, beside = (simulate(one, "age-based", 2) for one in (SCENARIO, solved(3)))
    assert plain.owner.tolist() == beside.owner.tolist()
    assert plain.accuracy.tolist() == beside.accuracy.tolist()
    assert Losses.of(plain).rounds.size == 0


def test_the_optimal_policy_loses_nothing_and_greedy_little():
    lost = {
        name: Losses.of(simulate(solved(1), name, 1)).over_run
        for name in ("age-based:packing=exact", "age-based", "random")
    }
    assert lost["age-based:packing=exact"] == pytest.approx(0.0, abs=1e-12)
    assert 0 <= lost["age-based"] < lost["random"]


def test_gap_over_regimes(tmp_path):
    options = {"every": 3, "engine": "inline", "quiet": True}
    vary = {"threshold.rate": [2.0, 6.0]}
    made = gap(SCENARIO, ["age-based", "random"], vary, 2, tmp_path / "gap", **options)
    table = made.table.to_polars()
    assert table["threshold.rate"].to_list() == [2.0, 2.0, 6.0, 6.0]
    assert table["rounds"].to_list() == [6] * 4
    assert table["unproven"].sum() == 0
    assert ((table["loss_per_round"] >= 0) & (table["loss_per_round"] <= 1)).all()
    by_policy = [
        table.filter(pl.col("policy") == str(key))["loss_per_round"] for key in made.result.policies
    ]
    assert (by_policy[1] > by_policy[0]).all()
    row = table.row(0, named=True)
    single = [
        Losses.of(simulate(solved(3).with_(**{"threshold.rate": 2.0}), "age-based", seed))
        for seed in (0, 1)
    ]
    assert row["loss_per_round"] == pytest.approx(np.mean([one.per_round for one in single]))
    assert row["loss_over_run"] == pytest.approx(np.mean([one.over_run for one in single]))
    runs = made.result.histories("age-based", {"threshold.rate": 2.0})
    bounds = [schedule_traffic(SCENARIO.with_(**{"threshold.rate": 2.0}), "random", 9, seed=seed)
              for seed in runs]  # fmt: skip
    above = [
        run.ages.mean() / one.age_bound - 1 for run, one in zip(runs.values(), bounds, strict=True)
    ]
    assert row["above_bound"] == pytest.approx(np.mean(above))
    assert (table["above_bound"] >= 0).all()
    assert [file.name for file in made.figures] == ["gap.png", "gap.pdf"]
    assert all(file.stat().st_size > 5000 for file in made.figures)
    files = {file: file.stat().st_mtime_ns for file in made.result.path.rglob("*.parquet")}
    fewer = gap(SCENARIO, ["random"], {"threshold.rate": [6.0]}, 1, tmp_path / "gap", **options)
    assert [row.seeds for row in fewer.table.rows] == [1]
    assert {file: file.stat().st_mtime_ns for file in files} == files, "what is there stays"


def test_a_limited_search_is_said_to_be_unproven(tmp_path):
    made = gap(
        SCENARIO, ["random"], {"threshold.rate": [6.0]}, 2, tmp_path, every=1, work_limit=0,
        engine="inline", quiet=True,
    )  # fmt: skip
    assert made.table.rows[0].unproven > 0
    assert made.result.scenario.run.optimum.work_limit == 0


@pytest.mark.parametrize("every", [0, 10, 1.5])
def test_rounds_that_a_run_does_not_have(tmp_path, every):
    with pytest.raises(ValueError, match="every must be "):
        gap(SCENARIO, ["random"], None, 1, tmp_path / "gap", every=every)
    assert not (tmp_path / "gap").exists()


def test_the_default_regimes_are_scenarios():
    assert gap_scenario() == Scenario.preset("paper").with_(**{"run.rounds": 50})
    last = gap_scenario().with_(**{name: values[-1] for name, values in _REGIMES.items()})
    assert (last.channel.link.edge_snr_db, last.rate_threshold) == (20.0, 6.0)
