"""The benchmark: every policy on fixed scenarios, measured and ranked."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import rankdata

from agewise import statistics
from agewise.engines import Engine, make_engine
from agewise.experiment import (
    Measured,
    Plan,
    Result,
    default_baseline,
    execute,
    find_policy,
)
from agewise.frames import require_frames
from agewise.policies import names
from agewise.records import History, PolicyKey
from agewise.scheduling import Policy
from agewise.studies.benchmark_page import write_benchmark_page
from agewise.studies.benchmark_scenarios import CHECKPOINTS, ROUNDS, SCENARIOS
from agewise.studies.optimality import losses_of, with_optimum

#: Of the optimum in a benchmark: enough for nearly all rounds, and bounded for the others.
WORK_LIMIT = 1_000_000


@dataclass(frozen=True, eq=False)
class Measures:
    """What one policy did in one scenario.

    ``[seed]`` each, except ``curves[seed, round]`` and ``accuracy[seed, checkpoint]``. ``ues``
    counts the updates that arrived in a round, and ``arrived`` is their share of those scheduled;
    ``ages`` are means over UEs and rounds, ``fairness`` is Jain's index of how often the updates
    of each UE arrived, ``loss`` the share of the optimal weight that a round lost.
    """

    seeds: list[int]
    curves: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    ues: NDArray[np.float64]
    arrived: NDArray[np.float64]
    ages: NDArray[np.float64]
    fairness: NDArray[np.float64]
    subchannels: NDArray[np.float64]
    loss: NDArray[np.float64]
    unproven: int

    @classmethod
    def of(cls, histories: Mapping[int, History]) -> "Measures":
        """The measures of these runs, by seed."""
        measured, runs = Measured.of(histories), list(histories.values())
        losses = [losses_of(run) for run in runs]
        return cls(
            seeds=measured.seeds,
            curves=measured.accuracy,
            accuracy=np.stack([measured.at(point) for point in CHECKPOINTS], axis=1),
            ues=measured.ues_per_round,
            arrived=np.array([_arrived(run) for run in runs]),
            ages=measured.age_mean,
            fairness=np.array([statistics.jain(run.participation) for run in runs]),
            subchannels=np.array([run.numbers("subchannels_used").mean() for run in runs]),
            loss=np.array([one.per_round for one in losses]),
            unproven=sum(one.rounds.size - one.proven for one in losses),
        )

    @property
    def score(self) -> NDArray[np.float64]:
        """``[seed]``: the mean accuracy over the checkpoints."""
        return np.asarray(self.accuracy.mean(axis=1))


@dataclass(frozen=True, eq=False)
class Benchmark:
    """What every policy did in every scenario: ``measures[scenario][policy]``.

    ``baseline`` is the policy that the others are compared with, ``None`` if there is one only.
    """

    results: Mapping[str, Result]
    measures: Mapping[str, Mapping[PolicyKey, Measures]]
    baseline: PolicyKey | None

    @property
    def policies(self) -> list[PolicyKey]:
        """The policies, in the order in which they were given."""
        return list(next(iter(self.measures.values())))

    def ranking(self) -> pl.DataFrame:
        """A row per policy: means over the scenarios, intervals over the seeds, the best first.

        ``score`` is the mean accuracy over scenarios and checkpoints; ``gain`` its paired
        difference from the baseline, with a p-value corrected (Holm) over the policies; ``rank``
        the mean of the ranks by score in each scenario and seed, equals sharing theirs.
        """
        policies, of_scenarios = self.policies, self.measures.values()
        scores = np.array([[of[policy].score for of in of_scenarios] for policy in policies])
        ranks = np.asarray(rankdata(-scores, axis=0))
        means = dict(zip(policies, scores.mean(axis=1), strict=True))
        rows = [
            {"policy": str(policy)}
            | _interval("score", means[policy])
            | _interval("rank", ranks[i].mean(axis=0))
            | self._gain(policy, means)
            | _means([of[policy] for of in of_scenarios])
            for i, policy in enumerate(policies)
        ]
        return _corrected(rows)

    def table(self, scenario: str) -> pl.DataFrame:
        """A row per policy in one scenario, the best first.

        With the accuracies at the checkpoints, and the rounds to the scenario's target.
        """
        measures = self.measures[scenario]
        scores = {policy: one.score for policy, one in measures.items()}
        rows = []
        for policy, measured in measures.items():
            row: dict[str, Any] = {"policy": str(policy), "seeds": len(measured.seeds)}
            row |= _interval("score", measured.score) | self._gain(policy, scores)
            for i, point in enumerate(CHECKPOINTS):
                row |= _interval(f"accuracy@{point}", measured.accuracy[:, i])
            target = SCENARIOS[scenario].target
            taken = statistics.time_to_target(measured.curves, target, horizon=ROUNDS)
            row |= {"rounds_to_target": taken.median, "reached": taken.reached}
            rows.append(row | _means([measured]))
        return _corrected(rows)

    def _gain(
        self, policy: PolicyKey, scores: Mapping[PolicyKey, NDArray[np.float64]]
    ) -> dict[str, Any]:
        """The paired gain of ``scores[policy][seed]`` over the baseline's."""
        if self.baseline is None or policy == self.baseline:
            return dict.fromkeys(("gain", "gain_low", "gain_high", "p"))
        paired = statistics.paired_difference(scores[policy], scores[self.baseline])
        return {
            "gain": paired.difference,
            "gain_low": paired.low,
            "gain_high": paired.high,
            "p": paired.p_value,
        }


def benchmark(
    policies: Sequence[Policy | str] | None = None,
    scenarios: Iterable[str] | None = None,
    seeds: int | Iterable[int] = 10,
    out: Path | str = "runs/benchmark",
    *,
    every: int = 30,
    baseline: Policy | str | None = None,
    write: Path | str | None = None,
    engine: str | Engine = "local",
    workers: int | None = None,
    address: str | None = None,
    quiet: bool = False,
) -> Benchmark:
    """All registered policies on all scenarios of the benchmark, or these.

    The optimum is worked out in ``every`` so many rounds, and a Markdown page written to
    ``write``, if given. Everything is kept in the folder ``out``: a benchmark that was stopped
    goes on where it was, and policies and seeds may be added later. The other options are those
    of `agewise.compare`.
    """
    chosen, runner = list(scenarios or SCENARIOS), make_engine(engine, workers, address)
    unknown = [name for name in chosen if name not in SCENARIOS]
    if unknown:
        raise ValueError(
            f"the benchmark has no scenario {unknown[0]!r}; there are {', '.join(SCENARIOS)}"
        )
    plans = {
        name: Plan.of(
            with_optimum(SCENARIOS[name].scenario, every, WORK_LIMIT),
            policies or names(),
            seeds,
            baseline=baseline,
        )
        for name in chosen
    }
    keys = plans[chosen[0]].keys
    compared = default_baseline(keys) if baseline is None else find_policy(baseline, keys)
    results: dict[str, Result] = {}
    measures: dict[str, dict[PolicyKey, Measures]] = {}
    for name, plan in plans.items():
        result = execute(plan, Path(out) / name, runner, quiet=quiet, fail_fast=True)
        results[name], measures[name] = result, {}
        for policy in plan.keys:
            histories = result.histories(policy)  # there may be more seeds from before
            measures[name][policy] = Measures.of({seed: histories[seed] for seed in plan.seeds})
    made = Benchmark(results, measures, compared)
    if write is not None:
        write_benchmark_page(made, write)
    return made


def _arrived(history: History) -> float:
    """The share of scheduled updates that arrived; 1 if there were none."""
    received, scheduled = (
        int(history.frame[name].list.len().sum()) for name in ("received", "scheduled")
    )
    return received / scheduled if scheduled else 1.0


def _interval(name: str, values: NDArray[np.float64]) -> dict[str, Any]:
    interval = statistics.mean_interval(values)
    return {name: interval.mean, f"{name}_low": interval.low, f"{name}_high": interval.high}


def _means(measures: list[Measures]) -> dict[str, Any]:
    """Means over seeds, then over scenarios."""

    def mean(name: str) -> float:
        return float(np.mean([np.nanmean(getattr(one, name)) for one in measures]))

    columns = {"age": "ages"} | {
        name: name for name in ("ues", "arrived", "fairness", "subchannels", "loss")
    }
    return {column: mean(name) for column, name in columns.items()} | {
        "unproven": sum(one.unproven for one in measures)
    }


def _corrected(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """The rows with p-values corrected (Holm) over all of them, the best score first."""
    require_frames()
    table = pl.DataFrame(rows, infer_schema_length=None)
    p_values = table["p"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    corrected = pl.Series("p", statistics.holm(p_values)).fill_nan(None)
    return table.with_columns(corrected).sort("score", descending=True)
