"""The paper's figure, claims and map: the verdict follows from the numbers, in every direction."""

import json
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest

import agewise
from agewise import statistics
from agewise.experiment import Measured
from agewise.policies import AgeBased, MaxPack
from agewise.report.claims import judge
from agewise.studies import map as map_module
from agewise.studies import map_scenario
from benchmarks.documents.results import map_markdown
from tests.scenarios import tiny

mpl.use("Agg")


def measured(gain_early, gain_late, diversity, spread, seed=0):
    """Twenty runs of 100 rounds around 0.7 plus these gains."""
    rng = np.random.default_rng(seed)
    level = 0.7 + 0.002 * rng.normal(size=(20, 1))
    accuracy = level + np.concatenate((np.full(40, gain_early), np.full(60, gain_late)))
    accuracy = accuracy + 0.001 * rng.normal(size=accuracy.shape)
    ones, rounds = np.ones(20), np.tile(np.arange(1.0, 101.0), (20, 1))
    spreads = spread + 0.01 * level[:, 0]
    return Measured(
        list(range(20)), *(ones,) * 5, diversity * ones, spreads, accuracy, spent=rounds
    )


def row_of(first, second, points=(10, 20, 40, 100)):
    """The row that the table of these two alone would have."""
    paired = [statistics.paired_difference(first.at(point), second.at(point)) for point in points]
    p_values = statistics.holm([one.p_value for one in paired])
    row = {f"gain@{at}": one.difference for at, one in zip(points, paired, strict=True)}
    return row | {f"p@{at}": p for at, p in zip(points, p_values.tolist(), strict=True)}


@pytest.mark.parametrize(
    ("early", "late", "higher", "pronounced"),
    [
        (0.05, 0.02, "holds", "holds"),
        (0.02, 0.05, "holds", "does not hold"),
        (0.03, 0.0, "holds in part", "holds"),
        (0.0, 0.0, "not shown with 20 seeds", "not shown with 20 seeds"),
        (-0.04, -0.04, "does not hold", "does not hold"),
        (-0.04, 0.04, "holds in part", "does not hold"),
    ],
)
def test_the_first_two_claims(early, late, higher, pronounced):
    first, second = measured(early, late, 0.5, 10, seed=1), measured(0, 0, 0.5, 10)
    claims = judge(first, second, row_of(first, second), 100)
    assert [claim.verdict for claim in claims[:2]] == [higher, pronounced]
    assert f"{100 * late:+.1f} points at round 100" in claims[0].evidence.replace("-0.0", "+0.0")


def test_the_third_claim_needs_both_more_diversity_and_a_link():
    base = measured(0, 0, 0.5, 10.0)
    rng = np.random.default_rng(3)
    wider = rng.random(20)
    gain = (0.02 + 0.05 * wider)[:, None]
    linked = Measured(
        base.seeds, *(base.ues_per_round,) * 5, base.diversity, base.spread + 1 + wider,
        base.accuracy + gain, base.spent,
    )  # fmt: skip
    assert judge(linked, base, row_of(linked, base), 100)[2].verdict == "holds"
    unlinked = Measured(
        base.seeds, *(base.ues_per_round,) * 5, base.diversity, base.spread + 1 + wider,
        base.accuracy + 0.03 + 0.01 * rng.normal(size=(20, 1)), base.spent,
    )  # fmt: skip
    assert judge(unlinked, base, row_of(unlinked, base), 100)[2].verdict == "holds in part"
    narrower = Measured(
        base.seeds, *(base.ues_per_round,) * 5, base.diversity, base.spread - 1 - 0.1 * wider,
        base.accuracy + 0.03, base.spent,
    )  # fmt: skip
    assert judge(narrower, base, row_of(narrower, base), 100)[2].verdict == "does not hold"


def test_short_runs_cannot_be_judged_on_early_rounds():
    short = measured(0, 0, 0.5, 10)
    cut = replace(short, accuracy=short.accuracy[:, :30], spent=short.spent[:, :30])
    assert judge(cut, cut, row_of(cut, cut, (10, 20, 30)), 30)[1].verdict == "cannot be judged"


def test_reproduce_runs_judges_and_draws(tmp_path):
    made = agewise.reproduce(
        tiny(**{"run.rounds": 6}), 3, tmp_path / "small", engine="inline", quiet=True
    )
    assert len(made.result.entries) == 6 * 3
    assert [claim.verdict for claim in made.claims][1] == "cannot be judged"
    for file in made.figures:
        assert file.read_bytes()[:4] in (b"\x89PNG", b"%PDF")
    assert b"Type3" not in made.figures[1].read_bytes(), "fonts are embedded as outlines"
    before = [file.read_bytes() for file in made.figures]
    agewise.reproduce(tiny(**{"run.rounds": 6}), 3, tmp_path / "small", engine="inline", quiet=True)
    assert [file.read_bytes() for file in made.figures] == before, "the same figure, same bytes"
    assert json.loads((tmp_path / "small" / "experiment.json").read_text())["seeds"] == [0, 1, 2]


def test_fewer_seeds_than_the_folder_holds(tmp_path):
    """A comparison that was stopped may have left more seeds of one policy than of another."""
    scenario, options = tiny(**{"run.rounds": 3}), {"engine": "inline", "quiet": True}
    agewise.compare(scenario, [MaxPack()], 4, tmp_path, **options)
    made = agewise.reproduce(scenario, 2, tmp_path, **options)
    assert len(made.claims) == 3
    assert len(made.result.accuracy(MaxPack())) == 4
    assert len(made.result.accuracy(AgeBased())) == 2


def test_map_holds_the_paired_gains(tmp_path, monkeypatch):
    monkeypatch.setattr(map_module, "THRESHOLDS", (2.0, 5.0))
    one_class = {"data.partition": "shards", "data.partition.classes_per_ue": 1}
    monkeypatch.setattr(
        map_module, "LIKENESS", {"all alike": {"data.partition": "iid"}, "1 class": one_class}
    )
    monkeypatch.setattr(map_module, "ALPHAS", (0.0, 1.0))
    drawn = agewise.reproduce_map(
        tiny(**{"run.rounds": 4}), 3, tmp_path / "map", engine="inline", quiet=True
    )
    assert drawn.gains.shape == drawn.p_values.shape == (2, 2, 2)
    for layer, alpha in enumerate((0.0, 1.0)):
        for row, likeness in enumerate(({"data.partition": "iid"}, one_class)):
            for column, threshold in enumerate((2.0, 5.0)):
                variation = {"threshold.rate": threshold, **likeness}
                aged = drawn.result.accuracy(AgeBased(alpha=alpha), variation)
                packed = drawn.result.accuracy(MaxPack(), variation)
                expected = (aged - packed).mean()
                assert drawn.gains[layer, row, column] == pytest.approx(expected)
    assert sum(drawn.counts()) == 8
    written = map_markdown(drawn)
    assert "all 8 of them (squares of all maps) corrected together (Holm)" in written
    assert f"{100 * drawn.gains[1, 1, 1]:+.1f}" in written.splitlines()[-1]
    assert all(file.exists() for file in drawn.figures)


def test_every_square_of_the_whole_map_is_a_scenario():
    base = map_scenario()
    assert base == agewise.Scenario.preset("paper").with_(**{"run.rounds": 40})
    kinds = [base.with_(**likeness).data.partition for likeness in map_module.LIKENESS.values()]
    assert [kind.kind for kind in kinds] == ["iid", "dirichlet", "shards", "shards"]
    assert kinds[1].concentration == 0.5
    assert [kind.classes_per_ue for kind in kinds[2:]] == [2, 1]


def test_map_at_equal_costs(tmp_path, monkeypatch):
    """Over joules a square has the mean gain up to what its cheapest run spent."""
    monkeypatch.setattr(map_module, "THRESHOLDS", (2.0, 5.0))
    monkeypatch.setattr(map_module, "LIKENESS", {"all alike": {"data.partition": "iid"}})
    monkeypatch.setattr(map_module, "ALPHAS", (0.0, 1.0))
    timed = tiny(
        **{
            "run.rounds": 4,
            "cell.subchannel_bandwidth_hz": 180e3,
            "threshold": {"kind": "payload", "payload_bits": 72_000, "deadline_s": 0.1},
            "timing": {
                "kind": "seconds", "downlink_s": 0.01, "transmit_power_w": 0.1,
                "computing": {"kind": "log-normal", "median_s": 0.1, "sigma": 0.5, "power_w": 1.0},
            },
        }
    )  # fmt: skip
    drawn = agewise.reproduce_map(
        timed, 3, tmp_path / "map", over="joules", engine="inline", quiet=True
    )
    for column, rate in enumerate((2.0, 5.0)):
        variation = drawn.result.variations[column]
        square = timed.with_(**variation)
        assert square.rate_threshold == pytest.approx(rate, rel=1e-12)
        packed, *aged = (
            drawn.result.histories(policy, variation)
            for policy in (MaxPack(), AgeBased(alpha=0.0), AgeBased(alpha=1.0))
        )
        runs = [run for each in (packed, *aged) for run in each.values()]
        parts = min(run.numbers("joules").sum() for run in runs) * np.arange(1, 101) / 100
        for layer, each in enumerate(aged):
            gains = [
                np.nanmean(_accuracies_by(each[seed], parts) - _accuracies_by(packed[seed], parts))
                for seed in range(3)
            ]
            assert drawn.gains[layer, 0, column] == pytest.approx(np.mean(gains), abs=1e-12)
    written = map_markdown(drawn)
    assert "mean over energy up to what the cheapest run of the square spent" in written
    with pytest.raises(ValueError, match=r"there are no joules with timing.kind = none"):
        agewise.reproduce_map(tiny(), 1, tmp_path / "other", over="joules")


def _accuracies_by(run, joules):
    """``[part]``: the accuracy of the last round that ended with at most this energy, by hand."""
    ended = (np.cumsum(run.numbers("joules")) <= joules[:, None] * (1 + 1e-12)).sum(axis=1)
    return np.concatenate(([np.nan], run.accuracy))[ended]


def test_the_map_over_seconds_is_of_the_timed_preset():
    timed = map_scenario("seconds")
    assert timed == agewise.Scenario.preset("physical-timed").with_(**{"run.rounds": 40})
    plan = map_module.map_plan(timed, 1)
    rates = [timed.with_(**each).rate_threshold for each in plan.variations[:4]]
    assert rates == pytest.approx([1.0, 2.0, 4.0, 6.0], rel=1e-12)
