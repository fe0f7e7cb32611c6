"""The benchmark: its scenarios, what it measures, its ranking and its page."""

from dataclasses import replace

import numpy as np
import pytest

import agewise
from agewise import PolicyKey, Scenario, statistics
from agewise.cost import SlotTiming
from agewise.policies import AgeBased, MaxPack, Random, make_policy, names
from agewise.scenario import SampledOptimum
from benchmarks.documents import (
    aggregations,
    benchmark_page,
    benchmark_plans,
    benchmark_scenarios,
    tune,
)
from benchmarks.documents import benchmark as ranking
from benchmarks.documents.benchmark import benchmark
from tests.scenarios import tiny

POLICIES = ["random", "max-pack", "age-based"]
RANDOM, MAX_PACK, AGE_BASED = Random().key, MaxPack().key, AgeBased().key


class Small(benchmark_scenarios.BenchmarkScenario):
    """A scenario of the benchmark on small synthetic data."""

    @property
    def scenario(self):
        return tiny(**{"run.rounds": 60, "channel.link.edge_snr_db": 5.0}).with_(**self.changes)


DEADLINE = {
    "timing": {"kind": "slots", "deadline_slots": 2.0, "eligible": "everyone"},
    "devices.computing": {"kind": "slots", "median_slots": 1.0, "sigma": 0.5},
}
FEW = {
    "plain": Small("a small cell", 0.3),
    "late": Small("updates after the deadline are lost", 0.99, DEADLINE),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A benchmark of two small scenarios in place of the usual ones."""
    with pytest.MonkeyPatch.context() as patched:
        for module in (ranking, benchmark_page, benchmark_plans, aggregations):
            patched.setattr(module, "SCENARIOS", FEW)
        out = tmp_path_factory.mktemp("benchmark")
        yield benchmark(POLICIES, seeds=3, out=out, engine="inline", quiet=True)


def test_what_is_planned_is_what_was_run(made):
    """A dry run counts the runs that the benchmark makes, in the folders that it fills."""
    out = made.results["plain"].path.parent
    planned = benchmark_plans.BenchmarkPlan.of(POLICIES, None, 3, 30).by_folder(out)
    assert {folder.name: len(plan.runs()) for folder, plan in planned.items()} == {
        "plain-optimum": 9, "late-optimum": 9, "plain": 9, "late": 9,
    }  # fmt: skip
    there = agewise.experiment.forecast(planned, out)
    assert (there.runs, there.finished, there.rounds) == (36, 36, 0)
    more = benchmark_plans.BenchmarkPlan.of(None, ["late"], 3, 30).by_folder(out)
    assert list(more)[-1] == out / "late-aggregations"


def test_the_scenarios_cover_the_regimes():
    """Threshold, heterogeneity, size and deadlines; a change of any of it is another version."""
    assert benchmark_scenarios.VERSION == 4
    made = {name: one.scenario for name, one in benchmark_scenarios.SCENARIOS.items()}
    assert len(made) == 13
    assert all(isinstance(one, Scenario) and one.run.rounds == 60 for one in made.values())
    thresholds = {one.threshold.rate for one in made.values() if one.threshold.kind == "rate"}
    assert len(thresholds) >= 3
    assert len({one.data.partition.kind for one in made.values()}) >= 2
    assert len({one.cell.ues for one in made.values()}) >= 2
    assert isinstance(made["deadline"].timing, SlotTiming)
    assert made["deadline"].timing.eligible == "in-time"
    assert "offers every policy only UEs" in benchmark_scenarios.SCENARIOS["deadline"].summary
    assert made["one-digit"].data.partition.classes_per_ue == 1
    assert made["weak-uneven"].devices.samples_sigma == 1.0


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
    assert result.scenario.run.optimum.kind == "never"
    solved = agewise.Result.open(result.path.parent / "plain-optimum")
    assert solved.scenario.run.optimum == SampledOptimum(every=30, work_limit=1_000_000)
    shares = []
    for seed in range(3):
        one = solved.history("random", seed)
        assert (one.accuracy == histories[seed].accuracy).all(), "to look on changes nothing"
        weights, optima = (one.numbers(name)[[29, 59]] for name in ("weight", "optimum"))
        shares.append((1 - weights / optima).mean())
    assert made.losses["plain"][RANDOM].mean == pytest.approx(np.mean(shares))
    late = [made.results["late"].history("random", seed) for seed in range(3)]
    arrived = [h.frame["received"].list.len().sum() for h in late]
    assert sum(arrived) < sum(h.frame["scheduled"].list.len().sum() for h in late)
    np.testing.assert_allclose(made.measures["late"][RANDOM].ues, np.array(arrived) / 60)


def test_the_table_pairs_the_seeds(made):
    for scenario, measures in made.measures.items():
        rows = {row.policy: row for row in made.table(scenario)}
        paired = [
            statistics.contrast(measures[policy].score, measures[MAX_PACK].score)
            for policy in (AGE_BASED, RANDOM)
        ]
        assert rows[MAX_PACK].score.gain is None
        gains = [rows[policy].score.gain for policy in (AGE_BASED, RANDOM)]
        assert gains[0].mean == pytest.approx(paired[0].mean)
        assert gains == statistics.correct(paired)
        assert {row.group for row in rows.values()} == {1}, "three seeds tell nobody apart"
    overall = {row.policy: row for row in made.overall()}
    means = np.mean([of[RANDOM].score for of in made.measures.values()], axis=0)
    assert overall[RANDOM].score.mean == pytest.approx(means.mean())


def scored(**levels):
    """A benchmark in which policies have these scores, one per scenario, over ten seeds."""
    noise = np.random.default_rng(1).normal(0, 0.002, (5, 10))
    noise -= noise.mean(axis=1, keepdims=True)
    measures = {}
    for place in range(len(next(iter(levels.values())))):
        measures[f"s{place}"] = {
            PolicyKey(name, {"packing": "exact"} if name == "optimal" else {}): measured(
                level[place] + noise[i]
            )
            for i, (name, level) in enumerate(levels.items())
        }
    return ranking.Benchmark({}, measures, {}, None)


def measured(score):
    ones = np.ones(score.size)
    return ranking.Measures(
        list(range(score.size)), ones[:, None], np.repeat(score[:, None], 4, axis=1), *(ones,) * 5
    )


def test_ties_share_a_group():
    level = [0.8, 0.8, 0.8]
    made = scored(a=level, b=level, c=[0.7] * 3, d=[0.7] * 3, optimal=[0.9] * 3)
    groups = {row.policy.name: row.group for row in made.overall()}
    assert groups == {"a": 1, "b": 1, "c": 2, "d": 2, "optimal": None}
    assert made.overall()[-1].policy.name == "optimal", "other seeds, so not in the order"


def test_an_overall_ranking_must_not_hang_on_one_scenario():
    fair = scored(a=[0.82, 0.83, 0.82], b=[0.7, 0.71, 0.7])
    assert fair.decided_by_one() == []
    one = scored(a=[0.80, 0.80, 0.99], b=[0.81, 0.81, 0.60])
    assert one.decided_by_one() == ["Without `s2`, b leads."]
    close = scored(a=[0.8, 0.8, 0.8015], b=[0.8005, 0.8005, 0.7995])
    assert close.decided_by_one() == ["Without `s2`, b comes before a."]
    assert "too few to rank over" in scored(a=[0.8, 0.8], b=[0.7, 0.7]).decided_by_one()[0]


def test_tuned_forms_are_valid_and_are_run():
    """Each is another form of its policy, and the paper's age-based stays in the list."""
    for name, written in benchmark_scenarios.TUNED.items():
        assert make_policy(written).name == name
        assert make_policy(written) != make_policy(name)
    listed = [make_policy(policy) for policy in benchmark_scenarios.benchmark_policies()]
    assert {policy.name for policy in listed} == set(names())
    assert AgeBased() in listed
    assert len(listed) == len(set(listed))


def test_every_policy_has_a_grid_with_its_default():
    assert {*tune.GRIDS, *tune.NOTHING} == {*names(), "age-based:packing=auction"}
    assert not set(tune.SEEDS) & set(range(1000))
    for name in tune.GRIDS:
        assert make_policy(name).key in tune.grid(name)


def test_a_form_is_chosen_only_if_it_beats_the_default_beyond_its_interval():
    rng = np.random.default_rng(2)
    default = 0.8 + 0.01 * rng.normal(size=10)
    scores = dict.fromkeys(tune.grid("markov"), default - 0.1)
    scores[make_policy("markov").key] = default
    half, more = (make_policy("markov", load=load).key for load in (0.5, 1.5))
    scores[half] = default + 0.001 + 0.01 * rng.normal(size=10)
    assert tune.chosen("markov", tune.tried_forms("markov", scores)).policy == make_policy("markov")
    scores[more] = default + 0.02 + 0.001 * rng.normal(size=10)
    tried = tune.tried_forms("markov", scores)
    assert tune.tuned({"markov": tried}) == {"markov": "markov:load=1.5"}
    section = tune.section("markov", tried)
    assert section.count("**in the benchmark**") == 1
    assert "| load=1.5 |" in section.splitlines()[4]


def test_aggregations_are_compared_with_the_average(made, tmp_path):
    options = agewise.experiment.RunOptions(engine="inline", quiet=True)
    table = aggregations.compare_aggregations(["plain"], [0, 1], tmp_path, options)
    found = table.estimates("plain")
    assert len(found) == len(aggregations.POLICIES) * len(aggregations.AGGREGATIONS)
    scores = table.scores["plain"]
    raw = []
    for (policy, aggregation), each in found.items():
        assert each.mean == pytest.approx(scores[policy, aggregation].mean())
        if aggregation != "average":
            paired = statistics.contrast(scores[policy, aggregation], scores[policy, "average"])
            assert each.gain.mean == pytest.approx(paired.mean)
            raw.append(paired)
    gains = [each.gain for each in found.values() if each.gain is not None]
    assert gains == statistics.correct(raw)
    with_second = replace(made, aggregations=table)
    page = benchmark_page.write_benchmark_page(with_second, tmp_path / "page.md").read_text("utf-8")
    assert "Too few seeds for a verdict: 2" in page
    assert "| memory, agreement | max-pack | " in page


def test_rounds_to_the_target(made):
    taken = {row.policy: row.taken for row in made.table("plain")}
    for policy, own in made.measures["plain"].items():
        first = [int((curve >= 0.3).argmax()) + 1 for curve in own.curves]
        assert taken[policy].reached == 3
        assert taken[policy].median == sorted(first)[1]
    assert {row.taken.reached for row in made.table("late")} == {0}


def test_it_goes_on_where_it_was_and_takes_more(made):
    out = made.results["plain"].path.parent
    before = {file: file.stat().st_mtime_ns for file in out.rglob("runs/*.parquet")}
    assert len(before) == 36, "each policy and seed with and without the optimum"
    more = benchmark(
        [*POLICIES, "round-robin"], seeds=3, out=out, engine="inline", quiet=True, baseline="random"
    )
    assert len(more.table("late")) == 4
    assert more.baseline == RANDOM
    rows = more.table("plain")
    assert [row.policy for row in rows if row.score.gain is None] == [RANDOM]
    for file, then in before.items():
        assert file.stat().st_mtime_ns == then
    fewer = benchmark(POLICIES[:2], seeds=2, out=out, engine="inline", quiet=True)
    assert len(fewer.table("plain")) == 2
    assert fewer.measures["plain"][RANDOM].seeds == [0, 1]


def test_the_page(made, tmp_path):
    text = benchmark_page.write_benchmark_page(made, tmp_path / "page.md").read_text(
        encoding="utf-8"
    )
    assert "3 policies on 2 of 2 scenarios" in text
    assert "after 10, 20, 40 and 60 rounds" in text
    assert text.count("| baseline |") == 2
    assert "difference in score from max-pack, " in text
    assert text.count("Too few seeds for a verdict: 3; ") == 2
    assert "There is no overall ranking" in text
    for heading in ("## All scenarios", "## plain", "## late"):
        assert heading in text
    assert f"{100 * made.table('plain')[0].score.mean:.1f} (" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 2 * (2 + 3)
    headline = benchmark_page.headline(made)
    assert "| random | " in headline
    assert "Too few seeds for a verdict: 3; " in headline


def test_exact_policies_have_few_seeds_and_say_so(made, tmp_path):
    out = made.results["plain"].path.parent
    policies = ["random", "max-pack", "max-pack:packing=exact"]
    options = {"out": out, "engine": "inline", "quiet": True, "write": tmp_path / "page.md"}
    six = benchmark(policies, ["plain"], seeds=6, **options)
    counts = [len(one.seeds) for one in six.measures["plain"].values()]
    assert counts == [6, 6, 5]
    last, exact = six.table("plain")[-1], make_policy("max-pack:packing=exact")
    assert (last.policy, last.group) == (exact.key, None)
    first, second = (six.measures["plain"][p.key].by_seed for p in (exact, MaxPack()))
    gains = [first[seed] - second[seed] for seed in range(5)]
    assert last.score.gain.mean == pytest.approx(np.mean(gains))
    text = (tmp_path / "page.md").read_text("utf-8")
    assert "6 seeds; max-pack:packing=exact, which solves every round exactly, has 5 seeds" in text


def test_the_command_writes_the_page_and_says_how_long(made, tmp_path, capsys):
    out = made.results["plain"].path.parent
    chosen = ["--policy", "random", "--policy", "max-pack", "--scenario", "plain"]
    arguments = [*chosen, "--seeds", "2", "--out", str(out)]
    ranking.main([*arguments, "--dry-run"])
    assert capsys.readouterr().out.startswith("8 runs, of which 8 are in ")
    ranking.main([*arguments, "--write", str(tmp_path / "page.md")])
    assert "| random | " in capsys.readouterr().out
    assert "2 policies on 1 of 2" in (tmp_path / "page.md").read_text(encoding="utf-8")
    with pytest.raises(SystemExit):
        ranking.main(["--scenario", "papers"])
    assert "no scenario 'papers'; there are " in capsys.readouterr().err
