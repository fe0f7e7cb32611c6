"""Who is ahead, and how sure that is."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from agewise import statistics
from agewise.experiment import default_baseline
from agewise.records import PolicyKey
from agewise.suite.measures import Measures
from agewise.suite.scenarios import CHECKPOINTS, ROUNDS

if TYPE_CHECKING:
    import polars


def ranking(measures: Mapping[str, Mapping[PolicyKey, Measures]]) -> "polars.DataFrame":
    """A row per policy: means over the scenarios, intervals over the seeds, the best first.

    ``score`` is the mean accuracy over scenarios and checkpoints; ``gain`` its paired difference
    from the baseline, with a p-value corrected (Holm) over the policies; ``rank`` the mean of the
    ranks by score in each scenario and seed.
    """
    import polars as pl

    policies = list(next(iter(measures.values())))
    scores = np.array([[own[policy].score for own in measures.values()] for policy in policies])
    ranks = _ranks(scores)
    baseline = default_baseline(policies)
    rows = []
    for i, policy in enumerate(policies):
        own = [of_scenario[policy] for of_scenario in measures.values()]
        row: dict[str, Any] = {"policy": str(policy)}
        row |= _interval("score", scores[i].mean(axis=0)) | _interval("rank", ranks[i].mean(axis=0))
        row |= _against(baseline, policy, policies, scores.mean(axis=1))
        row |= _means(own)
        rows.append(row)
    return _with_corrected_p(pl.DataFrame(rows, infer_schema_length=None))


def scenario_table(measures: Mapping[PolicyKey, Measures], target: float) -> "polars.DataFrame":
    """A row per policy in one scenario: accuracies at the checkpoints, rounds to the target."""
    import polars as pl

    policies = list(measures)
    scores = np.array([own.score for own in measures.values()])
    baseline = default_baseline(policies)
    rows = []
    for policy, own in measures.items():
        row: dict[str, Any] = {"policy": str(policy), "seeds": len(own.seeds)}
        row |= _interval("score", own.score)
        row |= _against(baseline, policy, policies, scores)
        for i, point in enumerate(CHECKPOINTS):
            row |= _interval(f"accuracy@{point}", own.accuracy[:, i])
        taken = statistics.time_to_target(own.curves, target, horizon=ROUNDS)
        row["rounds_to_target"] = taken.median
        row["reached"] = taken.reached
        row |= _means([own])
        rows.append(row)
    return _with_corrected_p(pl.DataFrame(rows, infer_schema_length=None))


def _ranks(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """``[policy, ...]``: 1 is the best; equals share the mean of their ranks."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(-scores, axis=0))


def _interval(name: str, values: NDArray[np.float64]) -> dict[str, Any]:
    interval = statistics.mean_interval(values)
    return {name: interval.mean, f"{name}_low": interval.low, f"{name}_high": interval.high}


def _against(
    baseline: PolicyKey | None,
    policy: PolicyKey,
    policies: list[PolicyKey],
    scores: NDArray[np.float64],
) -> dict[str, Any]:
    """The paired gain of ``scores[policy, seed]`` over the baseline's."""
    if baseline is None or policy == baseline:
        return {"gain": None, "gain_low": None, "gain_high": None, "p": None}
    own, other = scores[policies.index(policy)], scores[policies.index(baseline)]
    paired = statistics.paired_difference(own, other)
    return {
        "gain": paired.difference,
        "gain_low": paired.low,
        "gain_high": paired.high,
        "p": paired.p_value,
    }


def _means(own: list[Measures]) -> dict[str, Any]:
    """Means over seeds, then over scenarios."""
    return {
        "ues": float(np.mean([one.ues.mean() for one in own])),
        "arrived": float(np.mean([one.arrived.mean() for one in own])),
        "age": float(np.mean([one.ages.mean() for one in own])),
        "fairness": float(np.mean([one.fairness.mean() for one in own])),
        "subchannels": float(np.mean([one.subchannels.mean() for one in own])),
        "loss": float(np.mean([np.nanmean(one.loss) for one in own])),
        "unproven": sum(one.unproven for one in own),
    }


def _with_corrected_p(table: "polars.DataFrame") -> "polars.DataFrame":
    import polars as pl

    p_values = table["p"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    corrected = pl.Series("p", statistics.holm(p_values)).fill_nan(None)
    return table.with_columns(corrected).sort("score", descending=True)
