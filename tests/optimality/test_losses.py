"""What schedules lose against the optimum of the same rounds."""

import json
import math

import numpy as np
import polars as pl
import pytest

from agewise import Streams, compare, gap, simulate
from agewise.age import f_alpha, next_ages
from agewise.engines import Inline
from agewise.optimality import Losses, losses_of, losses_of_run
from agewise.radio import CellChannel, power_budget
from agewise.spectrum import Uplink
from agewise.spectrum.exact import solve
from tests.scenarios import tiny

SCENARIO = tiny(**{"run.rounds": 9, "channel.link.edge_snr_db": 5.0})


def test_losses_by_hand():
    losses = Losses([0, 1, 2], [0.0, 3.0, 2.0], [0.0, 4.0, 2.0], [0.0, 4.0, 2.5])
    assert losses.per_round == pytest.approx(1 / 8)  # a round without any weight has none to lose
    assert losses.over_run == pytest.approx(1 / 6)
    assert losses.proven == 2
    nothing = Losses([0], [0.0], [0.0], [0.0])
    assert math.isnan(nothing.per_round)
    assert math.isnan(nothing.over_run)


def test_losses_of_a_run_are_those_of_its_rounds():
    """Worked out beside the run, from its channel and from ages of Eq. 2."""
    history = simulate(SCENARIO, "max-pack", 4)
    found = losses_of_run(history, every=2)
    assert found.rounds == [1, 3, 5, 7]
    channel = CellChannel.of(SCENARIO.cell, SCENARIO.channel, Streams(4))
    ages, values, optima = np.zeros(12, np.int64), [], []
    for t in range(9):
        weights = f_alpha(ages, 0.5)
        scheduled = history.frame["scheduled"][t].to_list()
        if t in found.rounds:
            uplink = Uplink(channel.gains(t), power_budget(SCENARIO.channel), 4.0)
            values.append(weights[scheduled].sum())
            optima.append(solve(uplink, weights).value)
        ages = next_ages(ages, np.array(scheduled, np.int64))
    np.testing.assert_allclose(found.values, values)
    np.testing.assert_allclose(found.optima, optima)
    assert found.proven == 4
    assert 0 < found.per_round < 1


def test_the_optimal_policy_loses_nothing_and_greedy_little():
    losses = {
        name: losses_of_run(simulate(SCENARIO, name, 1), every=1).over_run
        for name in ("optimal", "age-based", "random")
    }
    assert losses["optimal"] == pytest.approx(0.0, abs=1e-12)
    assert 0 <= losses["age-based"] < losses["random"]


def test_what_is_solved_is_kept_and_what_is_damaged_solved_again(tmp_path, monkeypatch):
    result = compare(SCENARIO, ["random"], 2, tmp_path / "r", engine="inline", quiet=True)
    first = [own for _, own in losses_of(result, Inline(), every=3, quiet=True)]
    files = sorted((tmp_path / "r" / "optimum").iterdir())
    assert len(files) == len(first) == 2
    files[0].write_text(files[0].read_text()[:-20])
    solved = []
    real = losses_of_run
    monkeypatch.setattr(
        "agewise.optimality.losses.losses_of_run",
        lambda *given: solved.append(given[0].info.seed) or real(*given),
    )
    again = [own for _, own in losses_of(result, Inline(), every=3, quiet=True)]
    assert solved == [0]
    assert again == first
    losses_of(result, Inline(), every=3, work_limit=5, quiet=True)
    assert solved == [0, 0, 1]
    assert json.loads(files[1].read_text())["work_limit"] == 5


def test_gap_over_regimes(tmp_path):
    made = gap(
        SCENARIO, ["age-based", "random"], {"channel.rate_threshold": [2.0, 6.0]}, 2,
        tmp_path / "gap", every=3, engine="inline", quiet=True,
    )  # fmt: skip
    table = made.table
    assert table["channel.rate_threshold"].to_list() == [2.0, 2.0, 6.0, 6.0]
    assert table["rounds"].to_list() == [6] * 4
    assert table["unproven"].sum() == 0
    assert ((table["loss_per_round"] >= 0) & (table["loss_per_round"] <= 1)).all()
    of_random = table.filter(pl.col("policy") == "random")["loss_per_round"]
    of_abs = table.filter(pl.col("policy").str.starts_with("age-based"))["loss_per_round"]
    assert (of_random > of_abs).all()
    row = table.row(0, named=True)
    single = [
        losses_of_run(made.result.history("age-based", seed, {"channel.rate_threshold": 2.0}), 3)
        for seed in (0, 1)
    ]
    assert row["loss_per_round"] == pytest.approx(np.mean([one.per_round for one in single]))
    assert row["loss_over_run"] == pytest.approx(np.mean([one.over_run for one in single]))
    assert [file.name for file in made.figures] == ["gap.png", "gap.pdf"]
    assert all(file.stat().st_size > 5000 for file in made.figures)
