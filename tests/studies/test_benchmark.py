"""The benchmark: its scenarios, what it measures, its ranking and its page."""

import numpy as np
import pytest

from agewise import Scenario, benchmark, statistics
from agewise.policies import AgeBased, MaxPack, Random
from agewise.scenario import SampledOptimum, SlotTiming
from agewise.studies import benchmark_page, benchmark_scenarios, ranking
from tests.scenarios import tiny

POLICIES = ["random", "max-pack", "age-based"]
RANDOM, MAX_PACK, AGE_BASED = Random().key, MaxPack().key, AgeBased().key


class Small(benchmark_scenarios.BenchmarkScenario):
    """A scenario of the benchmark on small synthetic data."""

    @property
    def scenario(self):
        return tiny(**{"run.rounds": 60, "channel.link.edge_snr_db": 5.0}).with_(**self.changes)


DEADLINE = {"kind": "slots", "compute_slots": 1.0, "compute_sigma": 0.5, "deadline_slots": 2.0}
FEW = {
    "plain": Small("a small cell", 0.3),
    "late": Small("updates after the deadline are lost", 0.99, {"timing": DEADLINE}),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A benchmark of two small scenarios in place of the usual ones."""
    with pytest.MonkeyPatch.context() as patched:
        for module in (ranking, benchmark_page):
            patched.setattr(module, "SCENARIOS", FEW)
        out = tmp_path_factory.mktemp("benchmark")
        yield benchmark(POLICIES, seeds=3, out=out, engine="inline", quiet=True)


def test_the_scenarios_cover_the_regimes():
    """Threshold, heterogeneity, size and deadlines; a change of any of it is another version."""
    assert benchmark_scenarios.VERSION == 1
    made = {name: one.scenario for name, one in benchmark_scenarios.SCENARIOS.items()}
    assert len(made) == 6
    assert all(isinstance(one, Scenario) and one.run.rounds == 60 for one in made.values())
    assert len({one.rate_threshold for one in made.values()}) >= 3
    assert len({one.data.partition.kind for one in made.values()}) >= 2
    assert len({one.cell.ues for one in made.values()}) >= 2
    assert isinstance(made["deadline"].timing, SlotTiming)
    assert made["one-digit"].data.partition.classes_per_ue == 1
    assert made["weak-uneven"].data.sizes.sigma == 1.0


def test_measures_are_those_of_the_histories(made):
    result = made.results["plain"]
    own = made.measures["plain"][RANDOM]
    histories = [result.history("random", seed) for seed in range(3)]
    np.testing.assert_allclose(
        own.accuracy, [[h.accuracy[point - 1] for point in (10, 20, 40, 60)] for h in histories]
    )
    np.testing.assert_allclose(own.score, own.accuracy.mean(axis=1))
    np.testing.assert_allclose(own.ages, [h.ages.mean() for h in histories])
    np.testing.assert_allclose(own.fairness, [statistics.jain(h.participation) for h in histories])
    np.testing.assert_allclose(own.subchannels, [(h.owner >= 0).sum() / 60 for h in histories])
    weights, optima = (np.array([h.numbers(name) for h in histories])[:, [29, 59]]
                       for name in ("weight", "optimum"))  # fmt: skip
    np.testing.assert_allclose(own.loss, (1 - weights / optima).mean(axis=1))
    assert result.scenario.run.optimum == SampledOptimum(every=30, work_limit=1_000_000)
    late = [made.results["late"].history("random", seed) for seed in range(3)]
    arrived = [h.frame["received"].list.len().sum() for h in late]
    assert sum(arrived) < sum(h.frame["scheduled"].list.len().sum() for h in late)
    np.testing.assert_allclose(made.measures["late"][RANDOM].ues, np.array(arrived) / 60)


def test_the_ranking_pairs_the_seeds(made):
    table = made.ranking()
    assert table["score"].to_list() == sorted(table["score"], reverse=True)
    rows = {row["policy"]: row for row in table.to_dicts()}
    scores = {
        policy: np.mean([of[policy].score for of in made.measures.values()], axis=0)
        for policy in (RANDOM, MAX_PACK, AGE_BASED)
    }
    for policy, score in scores.items():
        assert rows[str(policy)]["score"] == pytest.approx(score.mean())
        assert 1 <= rows[str(policy)]["rank"] <= 3
    assert sum(row["rank"] for row in rows.values()) == pytest.approx(6)
    assert made.baseline == MAX_PACK
    assert rows[str(MAX_PACK)]["gain"] is None
    paired = [
        statistics.paired_difference(scores[policy], scores[MAX_PACK])
        for policy in (AGE_BASED, RANDOM)
    ]
    assert rows[str(AGE_BASED)]["gain"] == pytest.approx(paired[0].difference)
    np.testing.assert_allclose(
        [rows[str(policy)]["p"] for policy in (AGE_BASED, RANDOM)],
        statistics.holm([one.p_value for one in paired]),
    )


def test_rounds_to_the_target(made):
    rows = {row["policy"]: row for row in made.table("plain").to_dicts()}
    for policy, own in made.measures["plain"].items():
        first = [int((curve >= 0.3).argmax()) + 1 for curve in own.curves]
        assert rows[str(policy)]["reached"] == 3
        assert rows[str(policy)]["rounds_to_target"] == sorted(first)[1]
    assert {row["reached"] for row in made.table("late").to_dicts()} == {0}


def test_it_goes_on_where_it_was_and_takes_more(made):
    out = made.results["plain"].path.parent
    before = {file: file.stat().st_mtime_ns for file in out.rglob("runs/*.parquet")}
    assert len(before) == 18
    more = benchmark(
        [*POLICIES, "round-robin"], seeds=3, out=out, engine="inline", quiet=True, baseline="random"
    )
    assert len(more.ranking()) == 4
    assert more.baseline == RANDOM
    assert [row["policy"] for row in more.ranking().to_dicts() if row["gain"] is None] == ["random"]
    for file, then in before.items():
        assert file.stat().st_mtime_ns == then
    fewer = benchmark(POLICIES[:2], seeds=2, out=out, engine="inline", quiet=True)
    assert len(fewer.ranking()) == 2
    assert fewer.measures["plain"][RANDOM].seeds == [0, 1]


def test_the_page(made, tmp_path):
    text = benchmark_page.write_benchmark_page(made, tmp_path / "page.md").read_text(
        encoding="utf-8"
    )
    assert "3 policies on 2 of 2 scenarios" in text
    assert "3 seeds of each" in text
    assert "after 10, 20, 40 and 60 rounds" in text
    assert text.count("| baseline |") == 3
    assert "difference in score from max-pack, " in text
    for heading in ("## All scenarios", "## plain", "## late"):
        assert heading in text
    best = made.ranking().row(0, named=True)
    assert f"{100 * best['score']:.1f} ± " in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 3 * (2 + 3)


def test_an_unknown_scenario(tmp_path):
    with pytest.raises(ValueError, match="no scenario 'papers'; there are "):
        benchmark(scenarios=["papers"], out=tmp_path)
