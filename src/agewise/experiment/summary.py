"""The table of a result: what each policy reached, and how sure that is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from agewise import statistics
from agewise.experiment.runs import as_columns
from agewise.frames import require_frames
from agewise.records import History, PolicyKey

if TYPE_CHECKING:
    from agewise.experiment.result import Result

#: Rounds at which accuracies are compared, as far as a run goes, and its last.
CHECKPOINTS = (10, 20, 40)


@dataclass(frozen=True, eq=False)
class Measured:
    """What the finished seeds of one policy under one variation did, ``[seed]`` each.

    ``diversity`` is the gradient diversity, which is 1/S for S equal updates and 1 for S
    orthogonal ones; ``spread`` is S times that, which does not depend on how many there are: 1 if
    all updates are equal, S if they are orthogonal, more if they oppose each other.
    ``age_mean_peak`` is the mean of the ages just before an update arrived, ``age_largest`` the
    largest age of any UE in any round.
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

    @classmethod
    def of(cls, histories: Mapping[int, History]) -> "Measured":
        """Means over the rounds of each run; ``accuracy`` is ``[seed, round]``."""
        rows = np.array([_one(history) for history in histories.values()]).reshape(-1, 7)
        accuracy = np.array([history.accuracy for history in histories.values()])
        served, distinct, age_mean, age_largest, age_mean_peak, diversity, spread = rows.T
        return cls(
            seeds=list(histories),
            ues_per_round=served,
            distinct_ues=distinct,
            age_mean=age_mean,
            age_largest=age_largest,
            age_mean_peak=age_mean_peak,
            diversity=diversity,
            spread=spread,
            accuracy=accuracy,
        )

    def at(self, rounds: int) -> NDArray[np.float64]:
        """``[seed]``: accuracy after so many rounds, as last measured by then."""
        seen = self.accuracy[:, :rounds]
        last = rounds - 1 - np.argmax(~np.isnan(seen)[:, ::-1], axis=1)
        return np.asarray(seen[np.arange(len(seen)), last])


def checkpoints(rounds: int) -> list[int]:
    """The rounds to compare at in a run of this length."""
    return [*(point for point in CHECKPOINTS if point < rounds), rounds]


def summarise(result: "Result") -> pl.DataFrame:
    """A row per variation and policy.

    All p-values of the table are one family of tests, corrected together (Holm): every policy
    against the baseline, at every checkpoint, under every variation.
    """
    rows: list[dict[str, Any]] = []
    baseline = result.baseline
    for variation in result.variations:
        rounds = result.scenario.with_(**variation).run.rounds
        measured = {
            policy: Measured.of(result.histories(policy, variation)) for policy in result.policies
        }
        for policy, runs in measured.items():
            if runs.seeds:
                against = measured[baseline] if baseline and baseline != policy else None
                failed = {"failed": result.failures(policy, variation)}
                rows.append(as_columns(variation) | _row(policy, runs, against, rounds) | failed)
    require_frames()
    table = pl.DataFrame(rows, infer_schema_length=None)
    return corrected_together(table, [name for name in table.columns if name.startswith("p@")])


def corrected_together(table: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
    """The table with the p-values of all these columns corrected as one family (Holm)."""
    raw = table.select(pl.col(columns).cast(pl.Float64).fill_null(np.nan)).to_numpy()
    adjusted = statistics.holm(raw.ravel()).reshape(raw.shape)
    return table.with_columns(
        pl.Series(name, adjusted[:, i]).fill_nan(None) for i, name in enumerate(columns)
    )


def _row(
    policy: PolicyKey, runs: Measured, baseline: Measured | None, rounds: int
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
    }
    for point in checkpoints(rounds):
        interval = statistics.mean_interval(runs.at(point))
        row[f"accuracy@{point}"] = interval.mean
        row[f"low@{point}"], row[f"high@{point}"] = interval.low, interval.high
        paired = _paired(runs, baseline, point)
        row[f"gain@{point}"] = paired.difference if paired else None
        row[f"p@{point}"] = paired.p_value if paired else None
    return row


def _paired(runs: Measured, baseline: Measured | None, point: int) -> statistics.Paired | None:
    """The gain in accuracy over the baseline on the seeds that both finished, if there are any."""
    common = sorted(set(runs.seeds) & set(baseline.seeds)) if baseline else []
    if not (baseline and common):
        return None
    here, there = (
        one.at(point)[[one.seeds.index(seed) for seed in common]] for one in (runs, baseline)
    )
    return statistics.paired_difference(here, there)


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
    return (
        float(served.mean()),
        float(np.count_nonzero(history.participation)),
        ages.mean,
        ages.largest,
        ages.mean_peak,
        float(diversity[active].mean()) if any_active else float("nan"),
        float((diversity * served)[active].mean()) if any_active else float("nan"),
    )
