"""The benchmark: its scenarios, what it measures, what it shows, and how it is tuned."""

import csv

import matplotlib as mpl
import numpy as np
import pytest

import agewise
from agewise import Scenario, statistics
from agewise.cost import SlotTiming
from agewise.experiment import LearningCurve, RunOptions
from agewise.policies import AgeBased, make_policy, names
from benchmarks.documents import aggregations, benchmark_page, benchmark_scenarios, phase, tune
from benchmarks.documents import benchmark as ranking
from benchmarks.documents.benchmark import Measures, benchmark
from benchmarks.documents.pages import between, compact, folded
from tests.scenarios import tiny

mpl.use("Agg")

FORMS = {
    "max-pack": "max-pack",
    "age-based": "age-based:alpha=0",
    "round-robin": "round-robin",
    "best-norm": "best-norm",
    "best-norm, fresh norms": "best-norm:norms=fresh",
}
INLINE = RunOptions(engine="inline", quiet=True, fail_fast=True)


class Small(benchmark_scenarios.BenchmarkScenario):
    """A scenario of the benchmark on small synthetic data."""

    @property
    def scenario(self):
        changes = {"run.rounds": 20, "run.evaluate_every": 5, "channel.link.edge_snr_db": 5.0}
        return tiny(**changes).with_(**self.changes)


FEW = {
    "plain": Small("a small cell", seeds=12),
    "late": Small(
        "updates after the deadline are lost", benchmark_scenarios._deadline("everyone"), seeds=3
    ),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A benchmark of two small scenarios in place of the usual ones, and its folder."""
    with pytest.MonkeyPatch.context() as patched:
        for module in (ranking, benchmark_page, benchmark_scenarios):
            patched.setattr(module, "SCENARIOS", FEW)
        patched.setattr(ranking, "benchmark_policies", lambda _: FORMS)
        out = tmp_path_factory.mktemp("benchmark")
        yield benchmark(out=out, options=INLINE), out


def test_the_scenarios_cover_the_regimes():
    """Threshold, heterogeneity, size and deadlines; a change of any of it is another version."""
    assert benchmark_scenarios.VERSION == 4
    made = {name: one.scenario for name, one in benchmark_scenarios.SCENARIOS.items()}
    assert len(made) == 15
    assert all(isinstance(one, Scenario) and one.run.rounds == 60 for one in made.values())
    thresholds = {one.threshold.rate for one in made.values() if one.threshold.kind == "rate"}
    assert len(thresholds) >= 3
    assert len({one.data.partition.kind for one in made.values()}) >= 2
    assert len({one.cell.ues for one in made.values()}) >= 2
    kinds = {name: made[f"deadline{name}"] for name in ("", "-unfiltered", "-retry")}
    assert all(isinstance(one.timing, SlotTiming) for one in kinds.values())
    assert [one.timing.eligible for one in kinds.values()] == ["in-time", "everyone", "everyone"]
    assert [one.retry.kind for one in kinds.values()] == ["none", "none", "back-off"]
    assert made["one-digit"].data.partition.classes_per_ue == 1
    assert made["weak-uneven"].devices.samples_sigma == 1.0


def test_behind_the_filter_retry_changes_nothing(tmp_path):
    """Nobody fails who is offered only if in time: one filtered scenario is enough."""
    filtered = tiny(**benchmark_scenarios._deadline("in-time"))
    runs = [
        agewise.run(one, "age-based", 2, tmp_path / name, quiet=True).history("age-based", 1)
        for name, one in {"a": filtered, "b": filtered.with_(retry="back-off")}.items()
    ]
    assert (runs[0].owner == runs[1].owner).all()
    assert (runs[0].accuracy == runs[1].accuracy).all()


def test_what_runs_where():
    """Each policy once in its best form, baselines also as in the paper, bounds by themselves."""
    rounds, late = map(benchmark_scenarios.benchmark_policies, ("paper", "periodic"))
    policies = {make_policy(text).name for text in late.values()}
    assert policies == set(names())
    assert policies - {make_policy(text).name for text in rounds.values()} == {
        *benchmark_scenarios.LATE
    }
    assert rounds["max-pack"] == "max-pack"
    assert AgeBased() in map(make_policy, rounds.values())
    bounds = [name for name in rounds if benchmark_scenarios.is_bound(name)]
    assert all(make_policy(rounds[name]).probes for name in bounds)
    assert len(bounds) == len(benchmark_scenarios.FRESH)
    for name, text in benchmark_scenarios.tuned("policies").items():
        assert make_policy(text).name == name
        assert make_policy(text) != make_policy(name)


def test_what_is_planned_is_what_was_run(made):
    _, out = made
    planned = ranking.plans(out=out)
    assert {folder.name: len(plan.runs()) for folder, plan in planned.items()} == {
        "plain": 48, "plain-bounds": 10, "late": 12, "late-bounds": 3,
    }  # fmt: skip
    there = agewise.experiment.forecast(planned, out)
    assert (there.runs, there.finished, there.rounds) == (73, 73, 0)
    with pytest.raises(ValueError, match="no scenario 'papers'; there are plain"):
        ranking.plans(["papers"])


def test_measures_are_those_of_the_histories(made):
    found, out = made
    result = agewise.Result.open(out / "late")
    own = found.measures["late"]["round-robin"]
    histories = [result.history("round-robin", seed) for seed in range(3)]
    scores = [h.accuracy[[4, 9, 14, 19]].mean() for h in histories]
    np.testing.assert_allclose(own.score, scores, rtol=1e-12)
    np.testing.assert_allclose(own.age, [h.ages.mean() for h in histories])
    np.testing.assert_allclose(own.fairness, [statistics.jain(h.participation) for h in histories])
    arrived = np.array([h.frame["received"].list.len().sum() for h in histories])
    scheduled = np.array([h.frame["scheduled"].list.len().sum() for h in histories])
    assert (arrived < scheduled).any()
    np.testing.assert_allclose(own.uploads, arrived / 20)
    np.testing.assert_allclose(own.arrived, arrived / scheduled)


def test_rows_have_three_families_and_bounds_lead_nowhere(made):
    found, _ = made
    rows = {row.policy: row for row in found.table("plain")}
    scores = {name: one.score for name, one in found.measures["plain"].items()}
    rivals = [name for name in scores if not benchmark_scenarios.is_bound(name)]
    gains = [
        statistics.contrast(scores[name], scores["max-pack"])
        for name in rivals
        if name != "max-pack"
    ]
    assert [rows[name].gain for name in rivals if name != "max-pack"] == statistics.correct(gains)
    for name, row in rows.items():
        if row.lead is not None:
            both = min(scores["age-based"].size, scores[name].size)
            ahead = (scores["age-based"][:both] - scores[name][:both]).mean()
            assert row.lead.mean == pytest.approx(ahead)
    assert rows["max-pack"].gain is rows["age-based"].lead is None
    best = max(rivals, key=lambda name: scores[name].mean())
    assert rows[best].behind is None
    assert rows[best].leads
    bound = found.table("plain")[-1]
    assert bound.policy == "best-norm, fresh norms"
    assert bound.measures.score.size == benchmark_scenarios.FRESH_SEEDS
    assert not bound.leads


def test_who_is_behind_the_best_is_shown():
    noise = np.random.default_rng(1).normal(0, 0.002, (4, 10))
    levels = {"max-pack": 0.8, "age-based": 0.85, "round-robin": 0.8502, "best-norm": 0.8}
    ones = np.ones(10)
    measures = {
        name: Measures(level + noise[i], *(ones,) * 4)
        for i, (name, level) in enumerate(levels.items())
    }
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ranking, "benchmark_policies", lambda _: FORMS)
        tables = {"one": ranking.Benchmark({"one": measures}, {"one": 10}).table("one")}
    assert {row.policy for row in tables["one"] if row.leads} == {"age-based", "round-robin"}
    assert benchmark_page.leading(tables)["max-pack"] == 0
    assert benchmark_page.shown_against(tables, "best-norm") == (1, 0)
    assert benchmark_page.shown_against(tables, "round-robin") == (0, 0)


def test_the_page_its_picture_and_its_numbers(made, tmp_path):
    found, _ = made
    text = benchmark_page.write_benchmark_page(found, tmp_path).read_text(encoding="utf-8")
    assert "5 policies on 2 scenarios of 60 rounds, 12 seeds (3 in late" in text
    assert "makes 6 families with 22 statements" in text
    assert (tmp_path / "images/benchmark.svg").stat().st_size > 1000
    with (tmp_path / "data/benchmark.csv").open() as file:
        rows = {(row["scenario"], row["policy"]): row for row in csv.DictReader(file)}
    assert len(rows) == 10
    row = rows["plain", "round-robin"]
    own = found.measures["plain"]["round-robin"]
    assert float(row["score"]) == pytest.approx(own.score.mean(), rel=1e-4)
    assert rows["plain", "age-based"]["form"] == "age-based:alpha=0"
    assert f"|{own.uploads.mean():.1f}|{own.age.mean():.1f}|" in text
    arrived = min(one.arrived.mean() for one in found.measures["late"].values())
    assert f"down to {100 * arrived:.0f}% of the uploads arrive" in text


def test_every_policy_has_a_grid_with_its_default_and_packings():
    assert {*tune.GRIDS, *tune.NOTHING} == set(names())
    assert not set(tune.ALL) & set(range(1000))
    for name in tune.GRIDS:
        made = [make_policy(name, **varied) for varied in tune.forms(name)]
        assert make_policy(name) in made
        assert len(set(map(str, made))) == len(made)
        if "packing" in made[0].parameters:
            assert len({one.parameters["packing"] for one in made}) >= 2


def test_an_end_by_nature_is_no_edge():
    tried = tune.forms("age-based")
    assert tune.edges({"alpha": -2.0}, tried) == ["alpha=-2"]
    assert tune.edges({"alpha": 1.0}, tried) == []


def test_no_form_that_runs_is_at_the_edge_of_its_grid():
    for name, text in benchmark_scenarios.tuned("policies").items():
        tried = tune.forms(name)
        best = next(varied for varied in tried if tune.written(name, varied) == text)
        assert tune.edges(best, tried) == [], name
    for scenario, own in benchmark_scenarios.tuned("aggregations").items():
        for name, form in own.items():
            assert form in aggregations.FORMS[name]
            tried = [aggregations.numbers(each) for each in aggregations.FORMS[name]]
            assert tune.edges(aggregations.numbers(form), tried) == [], (scenario, name)


def test_aggregations_have_about_as_many_forms_each_and_all_are_tuned_where_they_run():
    counts = {name: len(own) for name, own in aggregations.FORMS.items()}
    assert counts == dict.fromkeys(aggregations.FORMS, 36) | {"average": 42}
    for name, own in aggregations.FORMS.items():
        assert len({repr(form) for form in own}) == len(own), name
        assert min(form["learn.step_size"] for form in own) <= 0.001
    scenarios = benchmark_scenarios.tuned("aggregations")
    assert list(scenarios) == list(tune.tuned_on())
    assert {*aggregations.CHOSEN, *phase.TUNED_ON.values()} == set(scenarios)
    assert all(list(own) == list(aggregations.FORMS) for own in scenarios.values())
    assert list(phase.TUNED_ON) == list(phase.DATA)
    rows = {row: phase.DATA[row] for row in ("Dirichlet 0.5", "2 digits", "1 digit")}
    for row, partition in rows.items():
        scenario = tune.tuned_on()[phase.TUNED_ON[row]]
        assert scenario.with_(**{"data.partition": partition}) == scenario


def test_forms_that_do_the_same_take_one_place_among_the_best():
    scores = [0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4]
    tried = [
        tune.Tried("x", {"number": number}, np.array([score, score]), number in (2, 7))
        for number, score in enumerate(scores)
    ]
    found = [one.varied["number"] for one in tune.best_quarter(tried[:-1])]
    assert found == [2, 3, 4]  # the default stands for those that do the same
    assert [one.varied["number"] for one in tune.best_quarter([*tried[:2], *tried[3:]])] == [
        0, 3, 4, 7,
    ]  # fmt: skip


def test_aggregations_are_tuned_in_each_scenario(tmp_path, monkeypatch):
    """All forms on few seeds, the best on all; forms that do the same are not run again."""
    forms = {name: aggregations.FORMS[name][::12] for name in ("average", "Adam")}
    monkeypatch.setattr(aggregations, "FORMS", forms)
    scenarios = {
        "plain": FEW["plain"].scenario,
        "other": FEW["plain"].scenario.with_(**{"threshold.rate": 1.0}),
    }
    monkeypatch.setattr(tune, "tuned_on", lambda: scenarios)
    every = {name: name for name in aggregations.TUNED_WITH}
    monkeypatch.setattr(tune, "benchmark_policies", lambda _: every)
    found = tune.tune_aggregations(tmp_path, INLINE, [1000], [1000, 1001])
    assert list(found) == ["plain", "other"]
    for own in found.values():
        assert {name: len(tried) for name, tried in own.items()} == {"average": 4, "Adam": 3}
        for tried in own.values():
            finalists = [one for one in tried if one.scores.size == 2 * 3]
            assert 2 <= len(finalists) <= 3
            assert tried[0].mean == max(one.mean for one in finalists)
    assert len(tune.aggregation_rows(found)) == 2 * (4 + 3)
    text = tune.aggregations_markdown(found)
    assert "|plain|" in text
    assert f": {100 * found['other']['Adam'][0].mean:.1f}" in text


def test_the_best_form_is_found_whatever_the_default(tmp_path, monkeypatch):
    """All forms on few seeds, the best quarter and the default on all."""
    monkeypatch.setattr(tune, "SCENARIOS", {"plain": FEW["plain"]})
    monkeypatch.setattr(
        tune, "GRIDS", {name: tune.GRIDS[name] for name in ("markov", "max-weight")}
    )
    monkeypatch.setattr(tune, "LATE", ())
    tried = tune.tune_policies(tmp_path, INLINE, [1000], range(1000, 1005))
    own = tried["markov"]
    assert len(own) == len(tune.forms("markov"))
    finalists = [one for one in own if one.scores.size == 5]
    assert any(one.is_default for one in finalists)
    assert 3 <= len(finalists) <= 4
    assert own[0].mean == max(one.mean for one in finalists)
    assert tune.edges({"load": 3.0}, tune.forms("markov")) == ["load=3"]
    assert tune.edges({"load": 1.0}, tune.forms("markov")) == []
    text = tune.policies_markdown(tried)
    assert f"|markov|{len(own)}|" in text


def test_aggregations_are_compared_with_the_average_and_with_max_pack(tmp_path, monkeypatch):
    forms = {name: aggregations.FORMS[name][2] for name in ("average", "memory")}
    monkeypatch.setattr(aggregations, "SCENARIOS", FEW)
    monkeypatch.setattr(aggregations, "tuned", lambda _: {"plain": forms})
    monkeypatch.setattr(aggregations, "POLICIES", ("age-based", "max-pack"))
    monkeypatch.setattr(aggregations, "benchmark_policies", lambda _: FORMS)
    found = aggregations.compare_aggregations(6, tmp_path, INLINE, ["plain"])
    scores = found.scores["plain"]
    assert found.seeds("plain") == 6
    over = found.over_average("plain")
    assert list(over) == [("memory", "age-based"), ("memory", "max-pack")]
    gap = scores["memory", "max-pack"] - scores["average", "max-pack"]
    assert over["memory", "max-pack"].mean == pytest.approx(gap.mean())
    gain = found.over_max_pack("plain")["memory", "age-based"].mean
    assert gain == pytest.approx(
        (scores["memory", "age-based"] - scores["memory", "max-pack"]).mean()
    )
    assert len(aggregations.aggregation_rows(found)) == 4
    assert "memory" in aggregations.added_table(found).to_markdown()


def test_the_phase_map_and_its_page(tmp_path, monkeypatch):
    forms = {name: aggregations.FORMS[name][2] for name in ("average", "Adam")}
    monkeypatch.setattr(phase, "SCENARIOS", {"paper": FEW["plain"]})
    others = {name: aggregations.FORMS[name][20] for name in forms}
    every = dict.fromkeys(phase.TUNED_ON.values(), forms) | {"one-digit": others}
    monkeypatch.setattr(phase, "tuned", lambda _: every)
    monkeypatch.setattr(phase, "THRESHOLDS", (1.0, 4.0))
    found = phase.measure_phase(5, tmp_path / "runs", INLINE)
    assert len(found.scores) == 2 * 4 * 2 * 3
    gains = found.gains("Adam", "age-based")
    own, other = (found.scores["Adam", "1 digit", 4.0, p] for p in ("age-based", "max-pack"))
    assert gains["1 digit", 4.0].mean == pytest.approx((own - other).mean())
    assert len(phase.phase_rows(found)) == 2 * 4 * 2 * 2
    digit = {**others["Adam"], "data.partition": phase.DATA["1 digit"], "threshold.rate": 4.0}
    alone = agewise.run(FEW["plain"].scenario.with_(**digit), "age-based", 5, quiet=True)
    assert own.tolist() == LearningCurve.of(alone.histories("age-based")).score.tolist()
    text = phase.guide_markdown(found)
    assert "240 runs" in text
    assert len(text.split()) < 800
    assert phase.draw_phase(found, tmp_path / "phase.svg").exists()


def test_pages_are_compact_and_long_tables_are_folded():
    table = "| a | b |\n|---|---:|\n" + "| 1 | 2 ± 3 |\n" * 9
    assert compact(table).splitlines()[2] == "|1|2±3|"
    assert "<details>" in folded(f"## Head\n\n{table}\nText.\n")
    assert "<details>" not in folded("| a |\n|---|\n| 1 |\n")
    text = "x\n<!-- here -->\nold\n<!-- end -->\ny\n<!-- there -->\nkept\n<!-- end -->\n"
    made = between(text, "here", "new")
    assert made == text.replace("old", "new")
