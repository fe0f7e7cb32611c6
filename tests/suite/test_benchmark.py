"""The benchmark: its suite, what it measures, its ranking and its page."""

import numpy as np
import pytest

from agewise import benchmark, statistics, suite
from agewise.policies import Random
from agewise.scenario import Scenario
from agewise.suite import scenarios
from agewise.suite.page import write_markdown
from tests.scenarios import tiny

POLICIES = ["random", "max-pack", "age-based"]
RANDOM = Random().key


class Small(scenarios.SuiteScenario):
    """A scenario of the suite on small synthetic data."""

    @property
    def scenario(self):
        return tiny(**{"run.rounds": 60, "channel.link.edge_snr_db": 5.0}).with_(**self.changes)


DEADLINE = {"compute_slots": 1.0, "compute_sigma": 0.5, "deadline_slots": 2.0}
FEW = {
    "plain": Small("a small cell", 0.3),
    "late": Small(
        "updates after the deadline are lost",
        0.99,
        {f"timing.{name}": value for name, value in DEADLINE.items()},
    ),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A benchmark of two small scenarios in place of the suite's."""
    with pytest.MonkeyPatch.context() as patched:
        for name in ("agewise.suite.run", "agewise.suite.page"):
            patched.setattr(f"{name}.SCENARIOS", FEW)
        out = tmp_path_factory.mktemp("benchmark")
        yield benchmark(POLICIES, seeds=3, out=out, engine="inline", quiet=True)


def test_the_suite_covers_the_regimes():
    """Threshold, heterogeneity, size and deadlines; a change of any of it is another version."""
    assert suite.VERSION == 1
    made = {name: one.scenario for name, one in suite.SCENARIOS.items()}
    assert len(made) == 6
    assert all(isinstance(one, Scenario) and one.run.rounds == 60 for one in made.values())
    assert len({one.channel.rate_threshold for one in made.values()}) >= 3
    assert len({one.data.partition for one in made.values()}) >= 2
    assert len({one.cell.ues for one in made.values()}) >= 2
    assert any(one.timing for one in made.values())


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
    late = [made.results["late"].history("random", seed) for seed in range(3)]
    arrived = [h.frame["received"].list.len().sum() for h in late]
    assert sum(arrived) < sum(h.frame["scheduled"].list.len().sum() for h in late)
    np.testing.assert_allclose(made.measures["late"][RANDOM].ues, np.array(arrived) / 60)


def test_the_ranking_pairs_the_seeds(made):
    table = made.ranking()
    assert table["score"].to_list() == sorted(table["score"], reverse=True)
    rows = {row["policy"].split("(")[0]: row for row in table.to_dicts()}
    scores = {
        policy.name: np.mean([of[policy].score for of in made.measures.values()], axis=0)
        for policy in made.measures["plain"]
    }
    for name, row in rows.items():
        assert row["score"] == pytest.approx(scores[name].mean())
        assert 1 <= row["rank"] <= 3
    assert sum(row["rank"] for row in rows.values()) == pytest.approx(6)
    assert rows["max-pack"]["gain"] is None
    paired = statistics.paired_difference(scores["age-based"], scores["max-pack"])
    assert rows["age-based"]["gain"] == pytest.approx(paired.difference)
    raw = [
        statistics.paired_difference(scores[name], scores["max-pack"]).p_value
        for name in ("age-based", "random")
    ]
    np.testing.assert_allclose(
        [rows[name]["p"] for name in ("age-based", "random")], statistics.holm(raw)
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
    solved = {file: file.stat().st_mtime_ns for file in out.rglob("optimum/*.json")}
    assert len(before) == len(solved) == 18
    more = benchmark([*POLICIES, "round-robin"], seeds=3, out=out, engine="inline", quiet=True)
    assert len(more.ranking()) == 4
    for file, then in (before | solved).items():
        assert file.stat().st_mtime_ns == then
    fewer = benchmark(POLICIES[:2], seeds=2, out=out, engine="inline", quiet=True)
    assert len(fewer.ranking()) == 2
    assert fewer.measures["plain"][RANDOM].seeds == [0, 1]


def test_the_page(made, tmp_path):
    text = write_markdown(made, tmp_path / "page.md").read_text(encoding="utf-8")
    assert "3 policies on 2 of 2 scenarios" in text
    assert "3 seeds of each" in text
    assert "after 10, 20, 40 and 60 rounds" in text
    assert text.count("| baseline |") == 3
    for heading in ("## All scenarios", "## plain", "## late"):
        assert heading in text
    best = made.ranking().row(0, named=True)
    assert f"{100 * best['score']:.1f} ± " in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 3 * (2 + 3)


def test_an_unknown_scenario(tmp_path):
    with pytest.raises(ValueError, match="no scenario 'papers'; there are "):
        benchmark(scenarios=["papers"], out=tmp_path)
