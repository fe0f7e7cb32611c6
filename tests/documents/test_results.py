"""docs/results.md is made of the studies and says what they say."""

import matplotlib as mpl
import pytest

import agewise
from agewise import statistics
from agewise.experiment import RunOptions
from agewise.tables._words import percent_text, points_text
from benchmarks.documents import aggregations, benchmark_page, benchmark_scenarios, phase, results
from benchmarks.documents import benchmark as ranking
from benchmarks.documents.aggregations import FORMS, aggregation_rows, compare_aggregations
from benchmarks.documents.pages import contrast_in, limits, read_csv, write_csv
from tests.scenarios import tiny

mpl.use("Agg")

INLINE = RunOptions(engine="inline", quiet=True, fail_fast=True)
POLICIES = {name: name for name in ("max-pack", "age-based", "round-robin", "fed-cs", "oort")} | {
    "max-pack, tuned": "max-pack:packing=in-order"
}
NAMES = ("paper", "one-digit", "deadline", "deadline-unfiltered", "deadline-retry")


class Small(benchmark_scenarios.BenchmarkScenario):
    """A small scenario of a few rounds."""

    @property
    def scenario(self):
        return tiny(**{"run.rounds": 10, "run.evaluate_every": 5})


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """All studies, small."""
    out = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patched:
        scenarios = {name: Small(name, seeds=5) for name in NAMES}
        forms = {name: FORMS[name][2] for name in ("average", "memory", "Adam")}
        every = dict.fromkeys([*aggregations.CHOSEN, *phase.TUNED_ON.values()], forms)
        for module in (ranking, aggregations, phase, benchmark_scenarios):
            patched.setattr(module, "SCENARIOS", scenarios)
        for module in (ranking, aggregations):
            patched.setattr(module, "benchmark_policies", lambda _: POLICIES)
        for module in (aggregations, phase):
            patched.setattr(module, "tuned", lambda _: every)
        patched.setattr(aggregations, "POLICIES", tuple(POLICIES)[:3])
        patched.setattr(results, "POINTS", (5, 10))
        options = {"engine": "inline", "quiet": True}
        study = agewise.reproduce(tiny(**{"run.rounds": 10}), 6, out / "paper", **options)
        kinds = {"published": (study.result, range(3)), "fresh": (study.result, range(3, 6))}
        ranked = ranking.benchmark(out=out / "benchmark", options=INLINE)
        compared = compare_aggregations(5, out / "aggregations", INLINE, ["paper", "one-digit"])
        rows = (
            benchmark_page._numbers({name: ranked.table(name) for name in NAMES}),
            aggregation_rows(compared),
            phase.phase_rows(phase.measure_phase(2, out / "phase", INLINE)),
        )
        yield results.Studies(
            results.Figure.of(kinds),
            study,
            agewise.explain(study.result, quiet=True),
            *(read_csv(write_csv(out / "rows.csv", each)) for each in rows),
        )


def test_gains_are_told_on_both_kinds_of_seeds(made):
    histories = [made.reproduction.result.histories(policy) for policy in ("age-based", "max-pack")]
    pair, width = results.LEADS[0], len(made.figure.gains[results.LEADS[0], "fresh"])
    assert width == 3
    for kind, seeds in {"published": range(3), "fresh": range(3, 6)}.items():
        own, other = ([runs[seed].accuracy for seed in seeds] for runs in histories)
        gap = statistics.contrast([x[4] for x in own], [x[4] for x in other])
        assert made.figure.gains[pair, kind][0].mean == pytest.approx(gap.mean)
        mean = statistics.contrast([x.mean() for x in own], [x.mean() for x in other])
        assert made.figure.gains[pair, kind][-1].mean == pytest.approx(mean.mean)


def test_differences_are_read_as_they_were_written():
    gain = statistics.Contrast(0.0123, 0.001, 0.0236, 0.0314, 20)
    for written in (gain, None):
        row = {name: str(x) for name, x in limits("gain", written).items()} | {"seeds": "20"}
        assert contrast_in(row, "gain") == written


def test_the_page_says_what_was_measured(made, monkeypatch):
    monkeypatch.setattr(results, "POINTS", (5, 10))
    text = results.results_markdown(made)
    short = text.split("## In short\n")[1].split("\n## ")[0]
    for policy in ("age-based", "round-robin"):
        assert points_text(made.standing("paper", policy).gain.mean) in short
    for name in ("deadline", "deadline-unfiltered", "deadline-retry"):
        assert points_text(made.best_max_pack(name).lead.mean) in short
    digit = made.added("one-digit", "Adam", "age-based", "max_pack")
    assert f"it is {points_text(digit.mean)}" in short
    even, aged = (percent_text(made.explanation.scores[:, stage].mean()) for stage in (4, 6))
    assert f"drawn evenly from all UEs, reach {even}%, age-based {aged}%" in short
    rules = text.split("## Under which aggregation\n")[1].split("\n## ")[0]
    average = made.added("one-digit", "average", "age-based", "max_pack")
    for gain in (made.standing("one-digit", "age-based").gain, average):
        assert points_text(gain.mean) in rules
    for claim in made.reproduction.claims:
        assert f"**{claim.claim}: {claim.verdict}.**" in text
        assert f"{claim.claim}: {claim.verdict}" in short
    assert all(sentence in text for sentence in made.explanation.sentences)
    assert "## Paces" in text
    assert "six seeds cannot tell" in short


def test_the_gain_is_over_max_pack_in_its_better_form(made):
    """In each scenario that of the two with the higher score, of which age-based gains less."""
    for name, rows in made.tables.items():
        both = {row.policy: row for row in rows if row.policy in (results.BASELINE, results.TUNED)}
        assert len(both) == 2
        best = max(both.values(), key=lambda row: row.score)
        assert made.best_max_pack(name) == best
        assert best.lead.mean == min(row.lead.mean for row in both.values())
    assert points_text(made.best_max_pack("paper").lead.mean) in results.readme_part(made)
