"""The paper's figure, claims and map: the verdict follows from the numbers, in every direction."""

import json
import re

import matplotlib as mpl
import numpy as np
import pytest

import agewise
from agewise import statistics
from agewise.experiment import LearningCurve, RunMetrics
from agewise.policies import AgeBased, MaxPack
from agewise.report._claims import Pair, judge
from agewise.statistics import AXES, Estimate
from agewise.studies import map_scenario, paper
from agewise.tables import Explanation, Row
from agewise.tables._words import at_text, points_text
from tests.scenarios import tiny

mpl.use("Agg")


def runs(gain_early, gain_late, seed=0):
    """Twenty runs of 100 rounds around 0.7 plus these gains, with the level of each."""
    rng = np.random.default_rng(seed)
    level = 0.7 + 0.002 * rng.normal(size=(20, 1))
    accuracy = level + np.concatenate((np.full(40, gain_early), np.full(60, gain_late)))
    return curve(accuracy + 0.001 * rng.normal(size=accuracy.shape)), 10 + 0.01 * level[:, 0]


def curve(accuracy):
    seeds, rounds = accuracy.shape
    return LearningCurve(list(range(seeds)), accuracy, np.tile(np.arange(1.0, rounds + 1), (20, 1)))


def judged(first, second, points=(10, 20, 40, 100), explained=None, ues=0):
    """The claims of these two alone, each a learning curve and the spread of its updates."""
    pairs = [first[0].gain_at(second[0], point) for point in points]
    at = {
        point: Estimate(0.7, 0.7, 0.7, gain)
        for point, gain in zip(points, statistics.correct(pairs), strict=True)
    }
    ones = np.ones(20)
    metrics = tuple(
        RunMetrics(ones, heard, *(ones,) * 4, spread, ones)
        for heard, (_, spread) in ((40 + ues + np.arange(20) % 3 - 1, first), (40 * ones, second))
    )
    return judge(
        Pair((first[0], second[0]), metrics), Row(AgeBased().key, {}, 20, at, {}), explained
    )


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
    claims = judged(runs(early, late, seed=1), runs(0, 0))
    assert [claim.verdict for claim in claims[:2]] == [higher, pronounced]
    found = re.search(r"([+-]\S+) points at round 100", claims[0].evidence)[1]
    assert float(found) == pytest.approx(100 * late, abs=0.1)


def test_the_third_claim_needs_both_more_diversity_and_a_link():
    base, spread = runs(0, 0)
    rng = np.random.default_rng(3)
    wider = rng.random(20)
    gain = (0.02 + 0.05 * wider)[:, None]
    linked = curve(base.accuracy + gain), spread + 1 + wider
    noise = 0.01 * rng.normal(size=(20, 1))
    unlinked = curve(base.accuracy + 0.03 + noise), spread + 1 + wider

    def third(first):
        return judged(first, (base, spread))[2].verdict

    assert third(linked) == "holds"
    assert third(unlinked) == "not shown with 20 seeds"
    assert third((linked[0], spread + wider - 0.5)) == "not shown with 20 seeds"
    assert third((linked[0], spread - 1 + wider)) == "does not hold"


def test_the_third_claim_as_coverage_needs_more_ues_and_a_gain_by_them():
    first = runs(0.05, 0.05)

    def fourth(ues, step):
        scores = 0.8 + np.random.default_rng(1).normal(scale=0.001, size=(20, 7))
        scores[:, 3:] += step
        explained = Explanation("age-based", "max-pack", range(20), scores)
        claim = judged(first, runs(0, 0), explained=explained, ues=ues)[3]
        assert claim.claim.endswith("contributes to the gain"), "other steps may add more"
        return claim.verdict

    assert fourth(50, 0.02) == "holds"
    assert fourth(50, 0.0) == fourth(0, 0.02) == "not shown with 20 seeds"
    assert fourth(50, -0.02) == "does not hold"
    unexplained = judged(first, runs(0, 0))[3]
    assert unexplained.verdict == "cannot be judged"
    assert re.match(r"\d+(\.[1-9])? phones are heard against", unexplained.evidence)


def test_short_runs_cannot_be_judged_on_early_rounds():
    long, spread = runs(0, 0)
    cut = curve(long.accuracy[:, :30]), spread
    assert judged(cut, cut, (10, 20, 30))[1].verdict == "cannot be judged"


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
    assert len(made.claims) == 4
    assert len(made.result.accuracy(MaxPack())) == 4
    assert len(made.result.accuracy(AgeBased())) == 2


def test_map_holds_the_paired_gains(tmp_path, monkeypatch):
    monkeypatch.setattr(paper, "_THRESHOLDS", (2.0, 5.0))
    one_class = {"data.partition": "shards", "data.partition.classes_per_ue": 1}
    monkeypatch.setattr(
        paper, "_PARTITIONS", {"all alike": {"data.partition": "iid"}, "1 class": one_class}
    )
    monkeypatch.setattr(paper, "_ALPHAS", (0.0, 1.0))
    drawn = agewise.reproduce_map(
        tiny(**{"run.rounds": 4}), 3, tmp_path / "map", engine="inline", quiet=True
    )
    assert drawn.map.gains.shape == drawn.map.p_values.shape == (2, 2, 2)
    for layer, alpha in enumerate((0.0, 1.0)):
        for row, likeness in enumerate(({"data.partition": "iid"}, one_class)):
            for column, threshold in enumerate((2.0, 5.0)):
                variation = {"threshold.rate": threshold, **likeness}
                aged = drawn.result.accuracy(AgeBased(alpha=alpha), variation)
                packed = drawn.result.accuracy(MaxPack(), variation)
                expected = (aged - packed)[:, -1].mean()
                assert drawn.map.gains[layer, row, column] == pytest.approx(expected)
    assert sum(drawn.map.counts()) == 8
    assert drawn.map.where == "after 4 rounds"
    last = drawn.map.table(1).to_markdown().splitlines()[-1]
    assert points_text(drawn.map.gains[1, 1, 1]) in last
    assert all(file.exists() for file in drawn.figures)


def test_every_square_of_the_whole_map_is_a_scenario():
    base = map_scenario()
    assert base == agewise.Scenario.preset("paper").with_(**{"run.rounds": 40})
    kinds = [base.with_(**likeness).data.partition for likeness in paper._PARTITIONS.values()]
    assert [kind.kind for kind in kinds] == ["iid", "dirichlet", "shards", "shards"]
    assert kinds[1].concentration == 0.5
    assert [kind.classes_per_ue for kind in kinds[2:]] == [2, 1]


def test_map_at_equal_costs(tmp_path, monkeypatch):
    """Over joules a square has the gain at the last point of the table."""
    monkeypatch.setattr(paper, "_THRESHOLDS", (2.0, 5.0))
    monkeypatch.setattr(paper, "_PARTITIONS", {"all alike": {"data.partition": "iid"}})
    monkeypatch.setattr(paper, "_ALPHAS", (0.0, 1.0))
    timed = tiny(
        **{
            "run.rounds": 4,
            "cell.subchannel_bandwidth_hz": 180e3,
            "threshold": {"kind": "payload", "payload_bits": 72_000, "deadline_s": 0.1},
            "timing": {
                "kind": "seconds", "downlink": {"kind": "constant", "seconds": 0.01},
                "transmit_power_w": 0.1,
            },
            "devices.computing": {
                "kind": "log-normal", "median_s": 0.1, "sigma": 0.5, "power_w": 1.0,
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
        last = np.array([max(drawn.result.table("joules").at)])
        for layer, each in enumerate(aged):
            gains = [
                (_accuracies_by(each[seed], last) - _accuracies_by(packed[seed], last)).item()
                for seed in range(3)
            ]
            assert drawn.map.gains[layer, 0, column] == pytest.approx(np.mean(gains), abs=1e-12)
    assert drawn.map.where == at_text(last.item(), AXES["joules"])
    with pytest.raises(ValueError, match=r"there are no joules with timing.kind = none"):
        agewise.reproduce_map(tiny(), 1, tmp_path / "other", over="joules")


def _accuracies_by(run, joules):
    """``[part]``: the accuracy of the last round that ended with at most this energy, by hand."""
    ended = (np.cumsum(run.numbers("joules")) <= joules[:, None] * (1 + 1e-12)).sum(axis=1)
    return np.concatenate(([np.nan], run.accuracy))[ended]


def test_the_map_over_seconds_is_of_the_timed_preset():
    timed = map_scenario("seconds")
    assert timed == agewise.Scenario.preset("physical-timed").with_(**{"run.rounds": 40})
    plan = paper._map_plan(timed, 1)
    rates = [timed.with_(**each).rate_threshold for each in plan.variations[:4]]
    assert rates == pytest.approx([1.0, 2.0, 4.0, 6.0], rel=1e-12)
