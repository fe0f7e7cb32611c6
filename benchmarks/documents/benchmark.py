"""The benchmark: every policy in its best form on fixed scenarios: ``make study NAME=benchmark``.

It goes on where it was stopped; ``python -m benchmarks.documents.benchmark --help`` says how to
run a part. The page is docs/benchmark.md, its numbers are docs/data/benchmark.csv.
"""

import argparse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agewise import statistics
from agewise.experiment import LearningCurve, Plan, RunMetrics, RunOptions, execute, forecast
from agewise.policies import make_policy
from agewise.records import History
from agewise.statistics import Contrast, Estimate
from benchmarks.documents.benchmark_page import write_benchmark_page
from benchmarks.documents.benchmark_scenarios import (
    AGE_BASED,
    BASELINE,
    FRESH_SEEDS,
    SCENARIOS,
    benchmark_policies,
    is_bound,
)

FOLDER = Path("runs/benchmark")


@dataclass(frozen=True, eq=False)
class Measures:
    """What one policy did in one scenario, ``[seed]`` each.

    ``uploads`` are updates that arrived in a round, ``arrived`` their share of those scheduled (1
    if there were none), ``age`` the mean over UEs and rounds, ``fairness`` Jain's index of how
    often the updates of each UE arrived.
    """

    score: NDArray[np.float64]
    uploads: NDArray[np.float64]
    arrived: NDArray[np.float64]
    age: NDArray[np.float64]
    fairness: NDArray[np.float64]

    @classmethod
    def of(cls, histories: Mapping[int, History]) -> "Measures":
        """The measures of these runs, by seed."""
        metrics, runs = RunMetrics.of(histories), list(histories.values())
        return cls(
            score=LearningCurve.of(histories).score,
            uploads=metrics.ues_per_round,
            arrived=np.array([_arrived(run) for run in runs]),
            age=metrics.age_mean,
            fairness=np.array([statistics.jain(run.participation) for run in runs]),
        )


@dataclass(frozen=True, eq=False)
class Row:
    """One policy in one scenario: its score, and three paired differences with limits each.

    ``gain`` is over max-pack, ``lead`` is age-based minus this policy, ``behind`` the best policy
    of the scenario minus this one; ``None`` of the policy with itself.
    """

    policy: str
    form: str
    measures: Measures
    score: Estimate
    gain: Contrast | None
    lead: Contrast | None
    behind: Contrast | None

    @property
    def leads(self) -> bool:
        """Whether it is a rival that is not shown to be behind the best."""
        return not is_bound(self.policy) and (
            self.behind is None or self.behind.verdict != "better"
        )


@dataclass(frozen=True, eq=False)
class Benchmark:
    """What every policy did: ``measures[scenario][policy]``, from so many ``seeds[scenario]``.

    Bounds have the first of the seeds only.
    """

    measures: Mapping[str, Mapping[str, Measures]]
    seeds: Mapping[str, int]

    def table(self, scenario: str) -> list[Row]:
        """A row per policy, the highest score first, and then the bounds.

        The differences of each kind are one family of tests, those of the bounds another, and
        bounds do not count when the best is sought.
        """
        measures, forms = self.measures[scenario], benchmark_policies(scenario)
        rivals = [policy for policy in measures if not is_bound(policy)]
        best = max(rivals, key=lambda policy: float(measures[policy].score.mean()))
        gains = self._differences(scenario, {p: (p, BASELINE) for p in measures})
        leads = self._differences(scenario, {p: (AGE_BASED, p) for p in measures})
        behind = self._differences(scenario, {p: (best, p) for p in rivals})
        rows = [
            Row(
                policy,
                forms[policy],
                own,
                statistics.estimate(own.score),
                gains.get(policy),
                leads.get(policy),
                behind.get(policy),
            )
            for policy, own in measures.items()
        ]
        return sorted(rows, key=lambda row: (is_bound(row.policy), -row.score.mean))

    def _differences(
        self, scenario: str, pairs: Mapping[str, tuple[str, str]]
    ) -> dict[str, Contrast]:
        """The first minus the second of each pair of policies, on the seeds that both have."""
        scores = {policy: one.score for policy, one in self.measures[scenario].items()}
        made = {}
        for policy, (first, second) in pairs.items():
            if first != second and {first, second} <= scores.keys():
                count = min(scores[first].size, scores[second].size)
                made[policy] = statistics.contrast(scores[first][:count], scores[second][:count])
        judged = dict[str, Contrast]()
        for bounds in (False, True):
            family = {p: each for p, each in made.items() if is_bound(p) == bounds}
            judged |= dict(zip(family, statistics.correct(list(family.values())), strict=True))
        return judged


def plans(
    scenarios: Iterable[str] | None = None, seeds: int | None = None, out: Path = FOLDER
) -> dict[Path, Plan]:
    """The runs of all scenarios, or these, by folder; with at most so many ``seeds`` of each."""
    chosen = list(scenarios or SCENARIOS)
    unknown = [name for name in chosen if name not in SCENARIOS]
    if unknown:
        raise ValueError(
            f"the benchmark has no scenario {unknown[0]!r}; there are {', '.join(SCENARIOS)}"
        )
    found = {}
    for name in chosen:
        described, forms = SCENARIOS[name], benchmark_policies(name)
        count = min(described.seeds, seeds or described.seeds)
        for bounds in (False, True):
            own = {text for policy, text in forms.items() if is_bound(policy) == bounds}
            kept = min(count, FRESH_SEEDS) if bounds else count
            folder = out / (f"{name}-bounds" if bounds else name)
            if own:
                found[folder] = Plan.of(described.scenario, sorted(own), kept)
    return found


def benchmark(
    scenarios: Iterable[str] | None = None,
    seeds: int | None = None,
    out: Path = FOLDER,
    options: RunOptions | None = None,
) -> Benchmark:
    """Run every policy on all scenarios, or these; the folder resumes and takes more later."""
    measures: dict[str, dict[str, Measures]] = {}
    used: dict[str, int] = {}
    for folder, plan in plans(scenarios, seeds, out).items():
        result, name = execute(plan, folder, options or RunOptions(fail_fast=True)), folder.name
        by_form = {}
        for policy in plan.policies:
            done = result.histories(policy)
            by_form[policy.key] = Measures.of({seed: done[seed] for seed in plan.seeds})
        name = name.removesuffix("-bounds")
        forms = {p: make_policy(text).key for p, text in benchmark_policies(name).items()}
        measures.setdefault(name, {}).update(
            {policy: by_form[key] for policy, key in forms.items() if key in by_form}
        )
        used[name] = max(used.get(name, 0), len(plan.seeds))
    return Benchmark(measures, used)


def _arrived(history: History) -> float:
    received, scheduled = (
        int(history.frame[name].list.len().sum()) for name in ("received", "scheduled")
    )
    return received / scheduled if scheduled else 1.0


def main(arguments: list[str] | None = None) -> None:
    """Run the benchmark, or a part of it, and write its page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenario", action="append", help="may be repeated; all by default")
    parser.add_argument("--seeds", type=int, help="at most so many of each scenario")
    parser.add_argument("--out", type=Path, default=FOLDER)
    parser.add_argument("--docs", type=Path, help="folder of the page; docs for all of it")
    parser.add_argument("--workers", type=int, help="processes; one per core by default")
    parser.add_argument("--dry-run", action="store_true", help="say how long; run nothing")
    given = parser.parse_args(arguments)
    options = RunOptions(workers=given.workers, fail_fast=True)
    try:
        if given.dry_run:
            print(forecast(plans(given.scenario, given.seeds, given.out), given.out, options))
            return
        made = benchmark(given.scenario, given.seeds, given.out, options)
    except ValueError as error:
        parser.error(str(error))
    if given.docs or not given.scenario:
        print(f"Page: {write_benchmark_page(made, given.docs or Path('docs'))}")


if __name__ == "__main__":
    main()
