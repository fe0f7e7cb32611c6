"""The benchmark: every policy on fixed scenarios, what it gains and who cannot be told apart.

``make study NAME=benchmark`` runs all of it and writes docs/benchmark.md; ``python -m
benchmarks.documents.benchmark --help`` says how to run a part. It goes on where it was stopped.
"""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import polars as pl
from numpy.typing import NDArray

from agewise import statistics
from agewise.engines import make_engine
from agewise.experiment import (
    Measured,
    Plan,
    Result,
    StudyOptions,
    default_baseline,
    execute_study,
    find_policy,
    forecast_all,
)
from agewise.experiment.summary import corrected_together
from agewise.records import History, PolicyKey
from agewise.report.text import FEWEST_SEEDS, is_sure, short_names
from agewise.scheduling import Policy
from agewise.studies.optimality import losses_of
from benchmarks.documents.aggregations import AggregationTable, compare_aggregations
from benchmarks.documents.benchmark_page import headline, write_benchmark_page
from benchmarks.documents.benchmark_plans import BenchmarkPlan, solved_folder
from benchmarks.documents.benchmark_scenarios import CHECKPOINTS, EXACT, ROUNDS, SCENARIOS
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
        measured, runs = Measured.of(histories), list(histories.values())
        return cls(
            seeds=measured.seeds,
            curves=measured.accuracy,
            accuracy=np.stack([measured.at(point) for point in CHECKPOINTS], axis=1),
            ues=measured.ues_per_round,
            arrived=np.array([_arrived(run) for run in runs]),
            ages=measured.age_mean,
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

    def table(self, scenario: str) -> pl.DataFrame:
        """A row per policy in one scenario, the largest gain first.

        ``gain`` is the paired difference in score from the baseline on the seeds of both, with
        p-values corrected (Holm) over the policies of the scenario; policies of one ``group``
        were not shown to differ from its first. Exact policies, with few seeds, have no group.
        Besides the accuracies at the checkpoints, and the rounds to the scenario's target.
        """
        measures = self.measures[scenario]
        scores = {policy: one.by_seed for policy, one in measures.items()}
        rows = []
        for policy, measured in measures.items():
            row: dict[str, Any] = {"policy": str(policy), "seeds": len(measured.seeds)}
            row |= _interval("score", measured.score) | self._gain(policy, scores)
            for i, point in enumerate(CHECKPOINTS):
                row |= _interval(f"accuracy@{point}", measured.accuracy[:, i])
            target = SCENARIOS[scenario].target
            taken = statistics.time_to_target(measured.curves, target, horizon=ROUNDS)
            row |= {"rounds_to_target": taken.median, "reached": taken.reached}
            lost = self.losses[scenario][policy]
            row |= _means([measured]) | {"loss": lost.mean, "unproven": lost.unproven}
            rows.append(row)
        return _ordered(rows, _groups(scores))

    def overall(self, without: str | None = None) -> pl.DataFrame:
        """As `table`, of the mean scores over the scenarios, or over all but one of them."""
        counted = [of for name, of in self.measures.items() if name != without]
        scores = {policy: _mean_scores(policy, counted) for policy in self.policies}
        rows = [
            {"policy": str(policy), "seeds": len(by_seed)}
            | _interval("score", np.array(list(by_seed.values())))
            | self._gain(policy, scores)
            | _means([of[policy] for of in counted])
            for policy, by_seed in scores.items()
        ]
        return _ordered(rows, _groups(scores))

    def decided_by_one(self) -> list[str]:
        """Why there is no overall ranking: a sentence for each scenario that decides it.

        The leading group must be in the same order whichever scenario is left out. With fewer
        than three scenarios there is nothing to rank over.
        """
        if len(self.measures) < 3:
            return ["Fewer than three scenarios are too few to rank over."]
        names = {str(policy): name for policy, name in short_names(self.policies).items()}
        order = _leading(self.overall())
        found = []
        for scenario in self.measures:
            without = self.overall(without=scenario)["policy"].to_list()
            other = sorted(order, key=without.index)
            changed = [pair for pair in zip(order, other, strict=True) if pair[0] != pair[1]]
            if changed:
                before, now = (names[policy] for policy in changed[0])
                found.append(f"Without `{scenario}`, {now} comes before {before}.")
            elif without[0] not in order:
                found.append(f"Without `{scenario}`, {names[without[0]]} leads.")
        return found

    def _gain(self, policy: PolicyKey, scores: Scores) -> dict[str, Any]:
        """The paired gain of ``scores[policy][seed]`` over the baseline's."""
        if self.baseline is None or policy == self.baseline:
            return dict.fromkeys(("gain", "gain_low", "gain_high", "p"))
        paired = _paired(scores[policy], scores[self.baseline])
        return {
            "gain": paired.difference,
            "gain_low": paired.low,
            "gain_high": paired.high,
            "p": paired.p_value,
        }


def benchmark(
    policies: Sequence[Policy | str] | None = None,
    scenarios: Iterable[str] | None = None,
    seeds: int | Iterable[int] = 30,
    out: Path | str = "runs/benchmark",
    *,
    every: int = 30,
    baseline: Policy | str | None = None,
    write: Path | str | None = None,
    **options: Unpack[StudyOptions],
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
    measures: dict[str, dict[PolicyKey, Measures]] = {}
    losses: dict[str, dict[PolicyKey, OptimumLoss]] = {}
    for name, solved in planned.solved.items():
        results[name], histories = _histories(solved, folder / solved_folder(name), options)
        losses[name] = {policy: _loss(runs) for policy, runs in histories.items()}
        if name in planned.fast:
            results[name], many = _histories(planned.fast[name], folder / name, options)
            histories |= many
        measures[name] = {policy: Measures.of(histories[policy]) for policy in asked.keys}
    second = None
    if planned.aggregations:
        second = compare_aggregations(list(measures), asked.seeds, folder, options)
    made = Benchmark(results, measures, losses, compared, second)
    write_document(folder / "headline.md", headline(made))
    if write is not None:
        write_benchmark_page(made, write)
    return made


def _histories(
    plan: Plan, folder: Path, options: StudyOptions
) -> tuple[Result, dict[PolicyKey, dict[int, History]]]:
    """The runs of a plan; the folder may hold more policies and seeds from before."""
    result = execute_study(plan, folder, options)
    histories = {}
    for policy in plan.keys:
        finished = result.histories(policy)
        histories[policy] = {seed: finished[seed] for seed in plan.seeds}
    return result, histories


def _loss(histories: Mapping[int, History]) -> OptimumLoss:
    losses = [losses_of(run) for run in histories.values()]
    known = [one.per_round for one in losses if not np.isnan(one.per_round)]
    unproven = sum(one.rounds.size - one.proven for one in losses)
    return OptimumLoss(float(np.mean(known)) if known else float("nan"), unproven, len(losses))


def _mean_scores(
    policy: PolicyKey, scenarios: Sequence[Mapping[PolicyKey, Measures]]
) -> dict[int, float]:
    """The mean over the scenarios of a policy's score, by seed."""
    scores = [of[policy].by_seed for of in scenarios]
    return {seed: float(np.mean([one[seed] for one in scores])) for seed in scores[0]}


def _paired(first: Mapping[int, float], second: Mapping[int, float]) -> statistics.Paired:
    """The paired difference on the seeds that both have."""
    common = sorted(first.keys() & second.keys())
    return statistics.paired_difference(
        [first[seed] for seed in common], [second[seed] for seed in common]
    )


def _groups(scores: Scores) -> dict[str, int]:
    """Rank groups: the best of those left with all that were not shown to be behind it.

    Each group takes one family of tests: the best of those left against the others left (paired
    t tests, corrected together (Holm), 5% level). Exact policies take no part.
    """
    left = [policy for policy in scores if policy.name not in EXACT]
    left.sort(key=lambda policy: -float(np.mean(list(scores[policy].values()))))
    groups: dict[str, int] = {}
    number = 0
    while left:
        number += 1
        best, others = left[0], left[1:]
        paired = [_paired(scores[best], scores[policy]) for policy in others]
        p_values = statistics.holm([one.p_value for one in paired])
        behind = [
            policy
            for policy, one, p in zip(others, paired, p_values.tolist(), strict=True)
            if is_sure(p) and one.difference > 0 and one.pairs >= FEWEST_SEEDS
        ]
        groups |= {str(policy): number for policy in left if policy not in behind}
        left = behind
    return groups


def _ordered(rows: list[dict[str, Any]], groups: Mapping[str, int]) -> pl.DataFrame:
    """The rows with p-values corrected (Holm) over all of them, in the order of their scores.

    Exact policies, whose few seeds make another score, come last.
    """
    for row in rows:
        row["group"] = groups.get(row["policy"])
    table = corrected_together(pl.DataFrame(rows, infer_schema_length=None), ["p"])
    return table.sort(pl.col("group").is_null(), pl.col("score"), descending=[False, True])


def _leading(table: pl.DataFrame) -> list[str]:
    """The policies of the first group, in the order of the table."""
    return table.filter(pl.col("group") == 1)["policy"].to_list()


def _arrived(history: History) -> float:
    """The share of scheduled updates that arrived; 1 if there were none."""
    received, scheduled = (
        int(history.frame[name].list.len().sum()) for name in ("received", "scheduled")
    )
    return received / scheduled if scheduled else 1.0


def _interval(name: str, values: NDArray[np.float64]) -> dict[str, Any]:
    interval = statistics.mean_interval(values)
    return {name: interval.mean, f"{name}_low": interval.low, f"{name}_high": interval.high}


def _means(measures: Sequence[Measures]) -> dict[str, Any]:
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
    parser.add_argument("--write", type=Path, help="write a Markdown page here")
    parser.add_argument("--baseline")
    parser.add_argument("--workers", type=int, help="processes; one per core by default")
    parser.add_argument("--dry-run", action="store_true", help="say how long; run nothing")
    given = parser.parse_args(arguments)
    try:
        if given.dry_run:
            planned = BenchmarkPlan.of(
                given.policy, given.scenario, given.seeds, given.every, given.baseline
            )
            engine = make_engine("local", given.workers)
            print(forecast_all(planned.by_folder(given.out), given.out, engine))
            return
        made = benchmark(
            given.policy,
            given.scenario,
            given.seeds,
            given.out,
            every=given.every,
            baseline=given.baseline,
            write=given.write,
            workers=given.workers,
        )
    except ValueError as error:
        parser.error(str(error))
    print(headline(made))


if __name__ == "__main__":
    main()
