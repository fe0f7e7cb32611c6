"""The benchmark: every policy on fixed scenarios, what it gains and who cannot be told apart.

``make study NAME=benchmark`` runs all of it and writes docs/benchmark.md; ``python -m
benchmarks.documents.benchmark --help`` says how to run a part. It goes on where it was stopped.
"""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agewise import statistics
from agewise.experiment import (
    LearningCurve,
    Plan,
    Result,
    RunMetrics,
    RunOptions,
    default_baseline,
    execute,
    find_policy,
    forecast,
)
from agewise.records import History, PolicyKey
from agewise.scheduling import Policy
from agewise.statistics import Contrast, Estimate, TimeToTarget
from agewise.studies.optimality import Losses
from benchmarks.documents.aggregations import AggregationTable, compare_aggregations
from benchmarks.documents.benchmark_page import headline, write_benchmark_page
from benchmarks.documents.benchmark_plans import BenchmarkPlan, solved_folder
from benchmarks.documents.benchmark_scenarios import CHECKPOINTS, ROUNDS, SCENARIOS, is_exact
from benchmarks.documents.results import write_document

Scores = Mapping[PolicyKey, Mapping[int, float]]


@dataclass(frozen=True, eq=False)
class Measures:
    """What one policy did in one scenario.

    ``[seed]`` each, except ``curves[seed, round]`` and ``accuracy[seed, checkpoint]``. ``ues``
    counts the updates that arrived in a round, and ``arrived`` is their share of those scheduled;
    ``ages`` are means over UEs and rounds, ``fairness`` is Jain's index of how often the updates
    of each UE arrived.
    """

    seeds: list[int]
    curves: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    ues: NDArray[np.float64]
    arrived: NDArray[np.float64]
    ages: NDArray[np.float64]
    fairness: NDArray[np.float64]
    subchannels: NDArray[np.float64]

    @classmethod
    def of(cls, histories: Mapping[int, History]) -> "Measures":
        """The measures of these runs, by seed."""
        curve, metrics = LearningCurve.of(histories), RunMetrics.of(histories)
        runs = list(histories.values())
        return cls(
            seeds=curve.seeds,
            curves=curve.accuracy,
            accuracy=np.stack([curve.at(point) for point in CHECKPOINTS], axis=1),
            ues=metrics.ues_per_round,
            arrived=np.array([_arrived(run) for run in runs]),
            ages=metrics.age_mean,
            fairness=np.array([statistics.jain(run.participation) for run in runs]),
            subchannels=np.array([run.numbers("subchannels_used").mean() for run in runs]),
        )

    @property
    def score(self) -> NDArray[np.float64]:
        """``[seed]``: the mean accuracy over the checkpoints."""
        return np.asarray(self.accuracy.mean(axis=1))

    @property
    def by_seed(self) -> dict[int, float]:
        """The score of each seed."""
        return dict(zip(self.seeds, self.score.tolist(), strict=True))


@dataclass(frozen=True)
class OptimumLoss:
    """The mean share of the optimal weight that a round lost, over ``seeds`` seeds.

    ``unproven`` counts rounds whose optimum is only known within a bound.
    """

    mean: float
    unproven: int
    seeds: int


@dataclass(frozen=True, eq=False)
class Ranked:
    """One policy in one scenario, or over all of them.

    The gain of ``score`` is the paired difference from the baseline on the seeds of both; policies
    of one ``group`` were not shown to differ from its first, and exact policies, with few seeds,
    have none. ``means`` are those of `Measures`. Over all scenarios there are neither accuracies
    ``at`` checkpoints, nor the rounds to the target, nor a loss.
    """

    policy: PolicyKey
    seeds: int
    score: Estimate
    group: int | None
    means: Mapping[str, float]
    at: Mapping[int, Estimate] = field(default_factory=dict)
    taken: TimeToTarget | None = None
    loss: OptimumLoss | None = None


@dataclass(frozen=True, eq=False)
class Benchmark:
    """What every policy did in every scenario: ``measures[scenario][policy]``.

    ``losses`` are against the optimum, of few seeds. ``baseline`` is the policy that the others
    are compared with, ``None`` if there is one only. ``aggregations`` is the second table, if it
    was asked for.
    """

    results: Mapping[str, Result]
    measures: Mapping[str, Mapping[PolicyKey, Measures]]
    losses: Mapping[str, Mapping[PolicyKey, OptimumLoss]]
    baseline: PolicyKey | None
    aggregations: AggregationTable | None = None

    @property
    def policies(self) -> list[PolicyKey]:
        """The policies, in the order in which they were given."""
        return list(next(iter(self.measures.values())))

    def table(self, scenario: str) -> list[Ranked]:
        """A row per policy in one scenario, the highest score first."""
        measures = self.measures[scenario]
        target = SCENARIOS[scenario].target
        rows = self._ranked({policy: one.by_seed for policy, one in measures.items()}, [measures])
        made = []
        for row in rows:
            own = measures[row.policy]
            at = {
                x: statistics.estimate(y) for x, y in zip(CHECKPOINTS, own.accuracy.T, strict=True)
            }
            taken = statistics.time_to_target(own.curves, target, horizon=ROUNDS)
            loss = self.losses[scenario][row.policy]
            made.append(replace(row, at=at, taken=taken, loss=loss))
        return made

    def overall(self, without: str | None = None) -> list[Ranked]:
        """As `table`, of the mean scores over the scenarios, or over all but one of them."""
        counted = [of for name, of in self.measures.items() if name != without]
        return self._ranked({p: _mean_scores(p, counted) for p in self.policies}, counted)

    def _ranked(
        self, scores: Scores, measures: Sequence[Mapping[PolicyKey, Measures]]
    ) -> list[Ranked]:
        """Rows in the order of their scores, with all gains as one family of tests.

        Exact policies, whose few seeds make another score, come last.
        """
        baseline, groups = self.baseline, _groups(scores)
        others = [policy for policy in scores if baseline not in (None, policy)]
        pairs = [_paired(scores[policy], scores[baseline]) for policy in others if baseline]
        gains = dict(zip(others, statistics.correct(pairs), strict=True))
        rows = [
            Ranked(
                policy,
                len(by_seed),
                statistics.estimate(list(by_seed.values()), gains.get(policy)),
                groups.get(policy),
                _means([of[policy] for of in measures]),
            )
            for policy, by_seed in scores.items()
        ]
        return sorted(rows, key=lambda row: (row.group is None, -row.score.mean))

    def decided_by_one(self) -> list[str]:
        """Why there is no overall ranking: a sentence for each scenario that decides it.

        The leading group must be in the same order whichever scenario is left out. With fewer
        than three scenarios there is nothing to rank over.
        """
        if len(self.measures) < 3:
            return ["Fewer than three scenarios are too few to rank over."]
        order = [row.policy for row in self.overall() if row.group == 1]
        found = []
        for scenario in self.measures:
            without = [row.policy for row in self.overall(without=scenario)]
            other = sorted(order, key=without.index)
            changed = [pair for pair in zip(order, other, strict=True) if pair[0] != pair[1]]
            if changed:
                before, now = changed[0]
                found.append(f"Without `{scenario}`, {now} comes before {before}.")
            elif without[0] not in order:
                found.append(f"Without `{scenario}`, {without[0]} leads.")
        return found


def benchmark(
    policies: Sequence[Policy | str] | None = None,
    scenarios: Iterable[str] | None = None,
    seeds: int | Iterable[int] = 30,
    out: Path | str = "runs/benchmark",
    *,
    every: int = 30,
    baseline: Policy | str | None = None,
    write: Path | str | None = None,
    **options: Any,
) -> Benchmark:
    """Run all registered policies in their tuned forms on all scenarios, or these.

    Exact policies, and the loss against the optimum, which is worked out once in ``every``
    rounds, take the first five of the seeds. Without ``policies`` there is also the table of
    policies by aggregations. A Markdown page is written to ``write``, if given. Everything is
    kept in the folder ``out``: a benchmark that was stopped goes on where it was, and policies
    and seeds may be added later. The other options are those of `agewise.compare`, but the first
    run that fails always ends it.
    """
    planned = BenchmarkPlan.of(policies, scenarios, seeds, every, baseline)
    asked = planned.asked
    compared = (
        default_baseline(asked.keys) if baseline is None else find_policy(baseline, asked.keys)
    )
    folder, results = Path(out), dict[str, Result]()
    chosen = replace(RunOptions.of(options), fail_fast=True)
    measures: dict[str, dict[PolicyKey, Measures]] = {}
    losses: dict[str, dict[PolicyKey, OptimumLoss]] = {}
    for name, solved in planned.solved.items():
        results[name], histories = _histories(solved, folder / solved_folder(name), chosen)
        losses[name] = {policy: _loss(runs) for policy, runs in histories.items()}
        if name in planned.fast:
            results[name], many = _histories(planned.fast[name], folder / name, chosen)
            histories |= many
        measures[name] = {policy: Measures.of(histories[policy]) for policy in asked.keys}
    second = None
    if planned.aggregations:
        second = compare_aggregations(list(measures), asked.seeds, folder, chosen)
    made = Benchmark(results, measures, losses, compared, second)
    write_document(folder / "headline.md", headline(made))
    if write is not None:
        write_benchmark_page(made, write)
    return made


def _histories(
    plan: Plan, folder: Path, options: RunOptions
) -> tuple[Result, dict[PolicyKey, dict[int, History]]]:
    """The runs of a plan; the folder may hold more policies and seeds from before."""
    result = execute(plan, folder, options)
    histories = {}
    for policy in plan.keys:
        finished = result.histories(policy)
        histories[policy] = {seed: finished[seed] for seed in plan.seeds}
    return result, histories


def _loss(histories: Mapping[int, History]) -> OptimumLoss:
    losses = [Losses.of(run) for run in histories.values()]
    known = [one.per_round for one in losses if not np.isnan(one.per_round)]
    unproven = sum(one.rounds.size - one.proven for one in losses)
    return OptimumLoss(float(np.mean(known)) if known else float("nan"), unproven, len(losses))


def _mean_scores(
    policy: PolicyKey, scenarios: Sequence[Mapping[PolicyKey, Measures]]
) -> dict[int, float]:
    """The mean over the scenarios of a policy's score, by seed."""
    scores = [of[policy].by_seed for of in scenarios]
    return {seed: float(np.mean([one[seed] for one in scores])) for seed in scores[0]}


def _paired(first: Mapping[int, float], second: Mapping[int, float]) -> Contrast:
    """The paired difference on the seeds that both have."""
    common = sorted(first.keys() & second.keys())
    return statistics.contrast([first[seed] for seed in common], [second[seed] for seed in common])


def _groups(scores: Scores) -> dict[PolicyKey, int]:
    """Rank groups: the best of those left with all that were not shown to be behind it.

    Each group takes one family of tests: the best of those left against the others left, at the
    5% level. Exact policies take no part.
    """
    left = [policy for policy in scores if not is_exact(policy)]
    left.sort(key=lambda policy: -float(np.mean(list(scores[policy].values()))))
    groups: dict[PolicyKey, int] = {}
    number = 0
    while left:
        number += 1
        best, others = left[0], left[1:]
        leads = statistics.correct([_paired(scores[best], scores[policy]) for policy in others])
        behind = [
            policy for policy, lead in zip(others, leads, strict=True) if lead.verdict == "better"
        ]
        groups |= {policy: number for policy in left if policy not in behind}
        left = behind
    return groups


def _arrived(history: History) -> float:
    """The share of scheduled updates that arrived; 1 if there were none."""
    received, scheduled = (
        int(history.frame[name].list.len().sum()) for name in ("received", "scheduled")
    )
    return received / scheduled if scheduled else 1.0


def _means(measures: Sequence[Measures]) -> dict[str, float]:
    """Means over seeds, then over scenarios."""

    def mean(name: str) -> float:
        return float(np.mean([np.nanmean(getattr(one, name)) for one in measures]))

    columns = {"age": "ages"} | {
        name: name for name in ("ues", "arrived", "fairness", "subchannels")
    }
    return {column: mean(name) for column, name in columns.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark, or a part of it, and print its headline."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policy", action="append", help="may be repeated; all by default")
    parser.add_argument("--scenario", action="append", help="may be repeated; all by default")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--every", type=int, default=30, help="solve every N-th round")
    parser.add_argument("--out", type=Path, default=Path("runs/benchmark"))
    parser.add_argument("--write", type=Path, help="the page; docs/benchmark.md for all of it")
    parser.add_argument("--baseline")
    parser.add_argument("--workers", type=int, help="processes; one per core by default")
    parser.add_argument("--dry-run", action="store_true", help="say how long; run nothing")
    given = parser.parse_args(arguments)
    whole = given.policy is given.scenario is None
    try:
        if given.dry_run:
            planned = BenchmarkPlan.of(
                given.policy, given.scenario, given.seeds, given.every, given.baseline
            )
            options = RunOptions(workers=given.workers)
            print(forecast(planned.by_folder(given.out), given.out, options))
            return
        made = benchmark(
            given.policy,
            given.scenario,
            given.seeds,
            given.out,
            every=given.every,
            baseline=given.baseline,
            write=given.write or (Path("docs/benchmark.md") if whole else None),
            workers=given.workers,
        )
    except ValueError as error:
        parser.error(str(error))
    print(headline(made))


if __name__ == "__main__":
    main()
