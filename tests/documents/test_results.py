"""docs/results.md is made of the studies and says what they say."""

import matplotlib as mpl
import pytest

import agewise
from agewise import statistics
from agewise.experiment import RunOptions
from agewise.tables._words import points_text
from benchmarks.documents import aggregations, benchmark_scenarios, phase, results
from benchmarks.documents import benchmark as ranking
from benchmarks.documents.aggregations import FORMS, compare_aggregations
from tests.scenarios import tiny

mpl.use("Agg")

INLINE = RunOptions(engine="inline", quiet=True, fail_fast=True)
POLICIES = {name: name for name in ("max-pack", "age-based", "round-robin", "fed-cs")}
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
        forms = {name: FORMS[name][2] for name in ("average", "Adam")}
        for module in (ranking, aggregations, phase, benchmark_scenarios):
            patched.setattr(module, "SCENARIOS", scenarios)
        for module in (ranking, aggregations):
            patched.setattr(module, "benchmark_policies", lambda _: POLICIES)
        for module in (aggregations, phase):
            patched.setattr(module, "tuned", lambda _: forms)
        patched.setattr(aggregations, "POLICIES", tuple(POLICIES)[:3])
        patched.setattr(results, "POINTS", (5, 10))
        options = {"engine": "inline", "quiet": True}
        study = agewise.reproduce(tiny(**{"run.rounds": 10}), 6, out / "paper", **options)
        kinds = {"published": (study.result, range(3)), "fresh": (study.result, range(3, 6))}
        yield results.Studies(
            results.Figure.of(kinds),
            study,
            agewise.explain(study.result, quiet=True),
            ranking.benchmark(out=out / "benchmark", options=INLINE),
            compare_aggregations(5, out / "aggregations", INLINE, ["paper", "one-digit"]),
            phase.measure_phase(5, out / "phase", INLINE),
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


def test_the_page_says_what_was_measured(made, monkeypatch):
    monkeypatch.setattr(results, "POINTS", (5, 10))
    text = results.results_markdown(made)
    short = text.split("## In short\n")[1].split("\n## ")[0]
    for policy in ("age-based", "round-robin"):
        assert points_text(made.row("paper", policy).gain.mean) in short
    for name in ("deadline", "deadline-unfiltered", "deadline-retry"):
        assert points_text(made.row(name, "age-based").gain.mean) in short
    digit = made.aggregations.over_max_pack("one-digit")["Adam", "age-based"]
    assert f"it is {points_text(digit.mean)}" in short
    for claim in made.reproduction.claims:
        assert f"**{claim.claim}: {claim.verdict}.**" in text
        assert f"{claim.claim}: {claim.verdict}" in short
    assert all(sentence in text for sentence in made.explanation.sentences)
    assert "## Paces" in text
    assert "six seeds cannot tell" in short
