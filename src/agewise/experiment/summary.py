"""The table of a result: what each policy reached, and how sure that is."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from agewise import statistics
from agewise.experiment.plan import as_columns
from agewise.frames import require_frames
from agewise.records import History, PolicyKey

if TYPE_CHECKING:
    from agewise.experiment.result import Result

#: Rounds at which accuracies are compared, as far as a run goes, and its last.
CHECKPOINTS = (10, 20, 40)


@dataclass(frozen=True, eq=False)
class Course:
    """Accuracy of the finished seeds over what they had spent, ``[seed, round]`` each."""

    seeds: list[int]
    accuracy: NDArray[np.float64]
    spent: NDArray[np.float64]

    @classmethod
    def of(
        cls, histories: Mapping[int, History], axis: statistics.Axis = statistics.AXES["rounds"]
    ) -> "Course":
        """Of these runs; ``ValueError`` if one does not know what it spent."""
        return cls(
            seeds=list(histories),
            accuracy=np.array([history.accuracy for history in histories.values()]),
            spent=np.array([axis.spent(history) for history in histories.values()]),
        )

    def at(self, point: float) -> NDArray[np.float64]:
        """``[seed]``: accuracy at this point (round, second, joule), as last measured by then.

        NaN for a run that has ended before.
        """
        return statistics.accuracy_at(self.accuracy, self.spent, [point])[:, 0]

    def gain_over(self, baseline: "Course", point: float) -> statistics.Paired | None:
        """The gain in accuracy at this point on the seeds that both finished, if there are any."""
        common = sorted(set(self.seeds) & set(baseline.seeds))
        if not common:
            return None
        here, there = (
            one.at(point)[[one.seeds.index(seed) for seed in common]] for one in (self, baseline)
        )
        return statistics.paired_difference(here, there)

    def to_target(self, target: float, horizon: float | None = None) -> statistics.TimeToTarget:
        """What it took until the accuracy was first at least ``target``."""
        return statistics.time_to_target(self.accuracy, target, cost=self.spent, horizon=horizon)


@dataclass(frozen=True, eq=False)
class Measured:
    """What the finished seeds of one policy under one variation did, ``[seed]`` each.

    ``diversity`` is the gradient diversity, which is 1/S for S equal updates and 1 for S
    orthogonal ones; ``spread`` is S times that, which does not depend on how many there are: 1 if
    all updates are equal, S if they are orthogonal, more if they oppose each other.
    ``age_mean_peak`` is the mean of the ages just before an update arrived, ``age_largest`` the
    largest age of any UE in any round. ``outage`` is the share of scheduled uploads that were lost
    because their true rate was below the threshold.
    """

    seeds: list[int]
    ues_per_round: NDArray[np.float64]
    distinct_ues: NDArray[np.float64]
    age_mean: NDArray[np.float64]
    age_largest: NDArray[np.float64]
    age_mean_peak: NDArray[np.float64]
    diversity: NDArray[np.float64]
    spread: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    spent: NDArray[np.float64]
    outage: NDArray[np.float64] = field(default_factory=lambda: np.zeros(1))

    @classmethod
    def of(
        cls, histories: Mapping[int, History], axis: statistics.Axis = statistics.AXES["rounds"]
    ) -> "Measured":
        """Means over the rounds of each run.

        ``accuracy`` is ``[seed, round]``, and so is ``spent``: how much of the axis by the end of
        each round.
        """
        rows = np.array([_one(history) for history in histories.values()]).reshape(-1, 8)
        course = Course.of(histories, axis)
        served, distinct, age_mean, age_largest, age_mean_peak, diversity, spread, outage = rows.T
        return cls(
            seeds=course.seeds,
            ues_per_round=served,
            distinct_ues=distinct,
            age_mean=age_mean,
            age_largest=age_largest,
            age_mean_peak=age_mean_peak,
            diversity=diversity,
            spread=spread,
            accuracy=course.accuracy,
            spent=course.spent,
            outage=outage,
        )

    @property
    def course(self) -> Course:
        """Accuracies over what was spent."""
        return Course(self.seeds, self.accuracy, self.spent)

    def at(self, point: float) -> NDArray[np.float64]:
        """``[seed]``: accuracy at this point of the axis (`Course.at`)."""
        return self.course.at(point)


def checkpoints(rounds: int) -> list[int]:
    """The rounds to compare at in a run of this length."""
    return [*(point for point in CHECKPOINTS if point < rounds), rounds]


def cost_points(histories: Iterable[History], axis: statistics.Axis) -> list[float]:
    """A quarter, half and all of what the cheapest of these runs spent, to two digits.

    Runs that spent nothing, because nobody was ever scheduled, have no say unless all are such.
    """
    spent = [float(axis.spent(history)[-1]) for history in histories]
    least = min((each for each in spent if each > 0.0), default=0.0)
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


def point_name(point: float) -> str:
    """How a point stands in the names of columns.

    >>> point_name(10), point_name(0.25), point_name(1_200_000.0)
    ('10', '0.25', '1200000')
    """
    return f"{point:.12g}"


def summarise(
    result: "Result", axis: statistics.Axis, points: Sequence[float] | None = None
) -> pl.DataFrame:
    """A row per variation and policy, with accuracies at these points of the axis.

    All p-values of the table are one family of tests, corrected together (Holm): every policy
    against the baseline, at every checkpoint, under every variation.
    """
    rows: list[dict[str, Any]] = []
    baseline = result.baseline
    if points is None and axis.column is not None:
        points = cost_points(_every_history(result), axis)
    for variation in result.variations:
        rounds = result.scenario.with_(**variation).run.rounds
        at = checkpoints(rounds) if points is None else list(points)
        measured = {
            policy: Measured.of(result.histories(policy, variation), axis)
            for policy in result.policies
        }
        for policy, runs in measured.items():
            if runs.seeds:
                against = measured[baseline] if baseline and baseline != policy else None
                failed = {"failed": result.failures(policy, variation)}
                rows.append(as_columns(variation) | _row(policy, runs, against, at) | failed)
    require_frames()
    table = pl.DataFrame(rows, infer_schema_length=None)
    return corrected_together(table, [name for name in table.columns if name.startswith("p@")])


def summarise_targets(result: "Result", target: float, axis: statistics.Axis) -> pl.DataFrame:
    """A row per variation and policy: what runs spent until their accuracy was the target.

    Runs that did not get there are censored (`agewise.statistics.time_to_target`); restricted
    means of one variation are up to the same horizon.
    """
    rows: list[dict[str, Any]] = []
    for variation in result.variations:
        runs = {
            policy: Course.of(found, axis)
            for policy in result.policies
            if (found := result.histories(policy, variation))
        }
        times = {policy: one.to_target(target) for policy, one in runs.items()}
        horizon = min((one.horizon for one in times.values()), default=0.0)
        for policy, one in times.items():
            limited = runs[policy].to_target(target, horizon)
            rows.append(
                as_columns(variation)
                | {
                    "policy": str(policy),
                    "seeds": one.runs,
                    "reached": one.reached,
                    "median": one.median,
                    "low": one.low,
                    "high": one.high,
                    "restricted_mean": limited.restricted_mean,
                    "horizon": horizon,
                }
            )
    require_frames()
    return pl.DataFrame(rows, infer_schema_length=None)


def _every_history(result: "Result") -> Iterator[History]:
    for variation in result.variations:
        for policy in result.policies:
            yield from result.histories(policy, variation).values()


def corrected_together(table: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
    """The table with the p-values of all these columns corrected as one family (Holm)."""
    raw = table.select(pl.col(columns).cast(pl.Float64).fill_null(np.nan)).to_numpy()
    adjusted = statistics.holm(raw.ravel()).reshape(raw.shape)
    return table.with_columns(
        pl.Series(name, adjusted[:, i]).fill_nan(None) for i, name in enumerate(columns)
    )


def _row(
    policy: PolicyKey, runs: Measured, baseline: Measured | None, points: Sequence[float]
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "policy": str(policy),
        "seeds": len(runs.seeds),
        "ues_per_round": float(runs.ues_per_round.mean()),
        "distinct_ues": float(runs.distinct_ues.mean()),
        "age_mean": float(runs.age_mean.mean()),
        "age_largest": float(runs.age_largest.mean()),
        "age_mean_peak": _mean_of_known(runs.age_mean_peak),
        "diversity": _mean_of_known(runs.diversity),
        "spread": _mean_of_known(runs.spread),
        "outage": float(runs.outage.mean()),
        "spent": float(runs.spent[:, -1].mean()),
    }
    course = runs.course
    for point in points:
        name, interval = point_name(point), statistics.mean_interval(course.at(point))
        row[f"accuracy@{name}"] = interval.mean
        row[f"low@{name}"], row[f"high@{name}"] = interval.low, interval.high
        paired = course.gain_over(baseline.course, point) if baseline else None
        row[f"gain@{name}"] = paired.difference if paired else None
        row[f"p@{name}"] = paired.p_value if paired else None
    return row


def _mean_of_known(values: NDArray[np.float64]) -> float | None:
    """The mean over the runs in which any update arrived."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else None


def _one(history: History) -> tuple[float, ...]:
    frame = history.frame
    served = frame["received"].list.len().to_numpy()
    diversity = history.numbers("gradient_diversity")
    active = ~np.isnan(diversity)
    any_active = bool(active.any())
    ages = statistics.age_statistics(history.ages)
    scheduled = int(frame["scheduled"].list.len().sum())
    return (
        float(served.mean()),
        float(np.count_nonzero(history.participation)),
        ages.mean,
        ages.largest,
        ages.mean_peak,
        float(diversity[active].mean()) if any_active else float("nan"),
        float((diversity * served)[active].mean()) if any_active else float("nan"),
        history.outcome_counts["outage"] / max(scheduled, 1),
    )
