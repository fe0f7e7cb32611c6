"""What finished runs add up to: learning curves, metrics of runs, and the tables made of them."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agewise import statistics
from agewise.experiment.plan import variation_key
from agewise.records import History, PolicyKey
from agewise.statistics import AXES, Axis, Contrast
from agewise.tables import ResultTable, Row, TargetRow, TargetTable, Variation

if TYPE_CHECKING:
    from agewise.experiment.result import Result

#: Rounds at which accuracies are compared, as far as a run goes, and its last.
CHECKPOINTS = (10, 20, 40)
#: So many points of an x axis other than rounds make a mean over it.
_POINTS = 100
Runs = Mapping[int, History]


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """Accuracy of the finished seeds and the cost up to then, ``[seed, round]`` each."""

    seeds: list[int]
    accuracy: NDArray[np.float64]
    cost: NDArray[np.float64]
    axis: Axis = AXES["rounds"]

    @classmethod
    def of(cls, runs: Runs, axis: Axis = AXES["rounds"]) -> "LearningCurve":
        """Of these runs; ``ValueError`` if one does not know its cost."""
        return cls(
            seeds=list(runs),
            accuracy=np.array([history.accuracy for history in runs.values()]),
            cost=np.array([axis.cost(history) for history in runs.values()]),
            axis=axis,
        )

    @property
    def score(self) -> NDArray[np.float64]:
        """``[seed]``: the mean accuracy over all rounds in which it was measured."""
        return np.asarray(np.nanmean(self.accuracy, axis=1))

    def at(self, x: float) -> NDArray[np.float64]:
        """``[seed]``: accuracy at this point (round, second, joule), as last measured by then.

        NaN for a run that has ended before.
        """
        return statistics.accuracy_at(self.accuracy, self.cost, [x])[:, 0]

    def over(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """``[seed, point]``: accuracy at these points; over rounds that of every round."""
        if self.axis.column is None:
            return self.accuracy
        return statistics.accuracy_at(self.accuracy, self.cost, x)

    def gain_at(self, baseline: "LearningCurve", x: float) -> Contrast:
        """The paired gain at this point on the seeds that both finished."""
        here, there = self._common(baseline)
        seeds = [self.seeds[row] for row in here]
        return statistics.contrast(self.at(x)[here], baseline.at(x)[there], seeds)

    def mean_gain(self, baseline: "LearningCurve", x: NDArray[np.float64]) -> Contrast:
        """The paired gain on the seeds that both finished, the mean over points that both know.

        NaN if a run did not come to the last point.
        """
        gaps = self.gains(baseline, x)
        means = [float(np.nanmean(gap)) if not np.isnan(gap[-1]) else math.nan for gap in gaps]
        seeds = [self.seeds[row] for row in self._common(baseline)[0]]
        return statistics.contrast(means, np.zeros(len(means)), seeds)

    def gains(self, baseline: "LearningCurve", x: NDArray[np.float64]) -> NDArray[np.float64]:
        """``[seed, point]``: the gain on each seed that both finished."""
        here, there = self._common(baseline)
        return np.asarray(self.over(x)[here] - baseline.over(x)[there])

    def _common(self, other: "LearningCurve") -> tuple[list[int], list[int]]:
        """The rows of the seeds that both have."""
        common = [seed for seed in self.seeds if seed in other.seeds]
        here, there = ([one.seeds.index(seed) for seed in common] for one in (self, other))
        return here, there

    def to_target(self, target: float, horizon: float | None = None) -> statistics.TimeToTarget:
        """The cost until the accuracy was first at least ``target``."""
        return statistics.time_to_target(self.accuracy, target, cost=self.cost, horizon=horizon)


@dataclass(frozen=True, eq=False)
class RunMetrics:
    """What the finished seeds of one policy under one variation did, ``[seed]`` each.

    ``diversity`` is the gradient diversity, which is 1/S for S equal updates and 1 for S
    orthogonal ones; ``spread`` is S times that, which does not depend on how many there are: 1 if
    all updates are equal, S if they are orthogonal, more if they oppose each other.
    ``age_mean_peak`` is the mean of the ages just before an update arrived, ``age_largest`` the
    largest age of any UE in any round. ``outage`` is the share of scheduled uploads that were lost
    because their true rate was below the threshold.
    """

    ues_per_round: NDArray[np.float64]
    distinct_ues: NDArray[np.float64]
    age_mean: NDArray[np.float64]
    age_largest: NDArray[np.float64]
    age_mean_peak: NDArray[np.float64]
    diversity: NDArray[np.float64]
    spread: NDArray[np.float64]
    outage: NDArray[np.float64]

    @classmethod
    def of(cls, runs: Runs) -> "RunMetrics":
        """Means over the rounds of each run."""
        rows = [_metrics(history) for history in runs.values()]
        return cls(
            **{each.name: np.array([row[each.name] for row in rows]) for each in fields(cls)}
        )

    def means(self) -> dict[str, float | None]:
        """By name the mean over the runs that know one; ``None`` if none does."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        known = {name: values[~np.isnan(values)] for name, values in found.items()}
        return {name: float(x.mean()) if x.size else None for name, x in known.items()}


def _metrics(history: History) -> dict[str, float]:
    frame = history.frame
    served = frame["received"].list.len().to_numpy()
    diversity = history.numbers("gradient_diversity")
    active = ~np.isnan(diversity)
    ages = statistics.age_statistics(history.ages)
    scheduled = int(frame["scheduled"].list.len().sum())
    return {
        "ues_per_round": float(served.mean()),
        "distinct_ues": float(np.count_nonzero(history.participation)),
        "age_mean": ages.mean,
        "age_largest": ages.largest,
        "age_mean_peak": ages.mean_peak,
        "diversity": float(diversity[active].mean()) if active.any() else math.nan,
        "spread": float((diversity * served)[active].mean()) if active.any() else math.nan,
        "outage": history.outcome_counts["outage"] / max(scheduled, 1),
    }


def checkpoints(rounds: int) -> list[int]:
    """The rounds to compare at in a run of this length."""
    return [*(point for point in CHECKPOINTS if point < rounds), rounds]


def cost_points(runs: Iterable[History], axis: Axis) -> list[float]:
    """A quarter, half and all of the cost of the cheapest of these runs, to two digits.

    Runs without cost, because nobody was ever scheduled, have no say unless all are such.
    """
    costs = [float(axis.cost(history)[-1]) for history in runs]
    least = min((each for each in costs if each > 0.0), default=0.0)
    return sorted({_rounded_down(share * least) for share in (0.25, 0.5, 1.0)})


def _rounded_down(number: float) -> float:
    """The next smaller number of two digits.

    >>> _rounded_down(1987.0), _rounded_down(0.05)
    (1900.0, 0.05)
    """
    if number <= 0.0:
        return 0.0
    place = math.floor(math.log10(number)) - 1
    digits = math.floor(number / 10.0**place + 1e-9)
    return min(float(f"{digits}e{place}"), number)


def mean_points(runs: Iterable[History], axis: Axis) -> NDArray[np.float64]:
    """``[point]`` of an x axis for a mean over it: rounds, or parts of the cheapest run's cost.

    Runs without cost are left aside; ``ValueError`` if all are such.
    """
    costs = [axis.cost(history) for history in runs]
    if axis.column is None:
        return max(costs, key=len)
    ends = [float(each[-1]) for each in costs if each[-1] > 0.0]
    if not ends:
        raise ValueError(f"the runs spent no {axis.name}: look at them over rounds")
    return np.linspace(0.0, min(ends), _POINTS + 1)[1:]


def result_table(result: "Result", axis: Axis, at: Sequence[float] | None = None) -> ResultTable:
    """A row per variation and policy, with accuracies at these points of the x axis.

    Every policy is tested against the baseline at every point under every variation. The rival's
    gain at its last point is the primary one, in a sweep the gains of all policies there.
    """
    rows, baseline = list[Row](), result.baseline
    failed = Counter((variation_key(each.variation), each.policy) for each in result.failed)
    if at is None and axis.column is not None:
        at = cost_points(_every_run(_runs(result, v) for v in result.variations), axis)
    for variation in result.variations:
        rounds = result.scenario.with_(**variation).run.rounds
        points = checkpoints(rounds) if at is None else at
        runs = _runs(result, variation)
        curves = {policy: LearningCurve.of(found, axis) for policy, found in runs.items()}
        reference = None if baseline is None else curves.get(baseline)
        for policy, curve in curves.items():
            against = reference if policy != baseline else None
            estimates = {}
            for x in points:
                gain = None if against is None else curve.gain_at(against, x)
                gain = gain if gain is not None and gain.pairs else None
                estimates[float(x)] = statistics.estimate(curve.at(x), gain)
            metrics = RunMetrics.of(runs[policy]).means()
            metrics["cost"] = float(curve.cost[:, -1].mean())
            lost = failed[variation_key(variation), policy]
            rows.append(Row(policy, variation, len(curve.seeds), estimates, metrics, lost))
    rival = result.compared[0]
    return _judged(ResultTable(result.policies, result.variations, baseline, axis, rows, rival))


def _judged(table: ResultTable) -> ResultTable:
    """The table with its primary gains judged together, and all others together."""
    primary = table.primary
    rest = {place: gain for place, gain in table.gains.items() if place not in primary}
    judged = {
        place: gain
        for family in (primary, rest)
        for place, gain in zip(family, statistics.correct(list(family.values())), strict=True)
    }
    rows = []
    for index, row in enumerate(table.rows):
        at = {x: replace(each, gain=judged.get((index, x))) for x, each in row.at.items()}
        rows.append(replace(row, at=at))
    return replace(table, rows=rows)


def target_table(result: "Result", target: float, axis: Axis) -> TargetTable:
    """A row per variation and policy: the cost until the accuracy was the target.

    Runs that did not get there are censored (`agewise.statistics.time_to_target`); restricted
    means of one variation are up to the same horizon.
    """
    rows = []
    for variation in result.variations:
        runs = _runs(result, variation)
        curves = {policy: LearningCurve.of(found, axis) for policy, found in runs.items()}
        taken = {policy: curve.to_target(target) for policy, curve in curves.items()}
        horizon = min((one.horizon for one in taken.values()), default=0.0)
        for policy, one in taken.items():
            mean = curves[policy].to_target(target, horizon).restricted_mean
            taken_by_all = replace(one, restricted_mean=mean, horizon=horizon)
            rows.append(TargetRow(policy, variation, taken_by_all))
    return TargetTable(result.policies, result.variations, axis, target, rows)


def _runs(result: "Result", variation: Variation) -> dict[PolicyKey, dict[int, History]]:
    """The finished runs of every policy that has any."""
    found = {policy: result.histories(policy, variation) for policy in result.policies}
    return {policy: runs for policy, runs in found.items() if runs}


def _every_run(found: Iterable[Mapping[PolicyKey, Runs]]) -> list[History]:
    return [run for by_policy in found for runs in by_policy.values() for run in runs.values()]
