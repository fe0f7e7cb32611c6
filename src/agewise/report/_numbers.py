"""The numbers behind charts, maps and the replay, from the records of finished runs alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agewise.experiment import Result
from agewise.policies import Policy
from agewise.records import History, PolicyKey
from agewise.statistics import mean_interval

#: Rings around the access point over which the service is averaged.
RINGS = 10
Numbers = NDArray[np.float64]
Variation = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class RoundMeans:
    """``[round]`` each: means over the seeds of one policy; ``served`` is ``[ring]``.

    ``accuracy`` is NaN in rounds that were not evaluated, ``diversity`` in rounds without any
    update. ``served`` is the share of rounds in which a UE of the ring was received, NaN for a
    ring without UEs, and ``None`` where the positions are not known.
    """

    accuracy: Numbers
    reached: Numbers
    age_mean: Numbers
    age_95: Numbers
    age_largest: Numbers
    diversity: Numbers
    served: Numbers | None

    @classmethod
    def of(cls, runs: Sequence[History], radius_m: float | None) -> "RoundMeans":
        """Of these runs in a cell of this radius, if it is known."""
        ages = np.array([history.ages for history in runs])
        diversity = np.array([history.numbers("gradient_diversity") for history in runs])
        return cls(
            accuracy=mean_interval([history.accuracy for history in runs]).mean,
            reached=np.mean([history.numbers("reached") for history in runs], axis=0),
            age_mean=ages.mean(axis=(0, 2)),
            age_95=np.percentile(ages, 95, axis=2).mean(axis=0),
            age_largest=ages.max(axis=2).mean(axis=0),
            diversity=_ratio(np.nansum(diversity, axis=0), (~np.isnan(diversity)).sum(axis=0)),
            served=_served(runs, radius_m),
        )


def open_result(
    result: Result | Path | str, baseline: Policy | PolicyKey | str | None = None
) -> Result:
    """The result, or the one in this folder, with another baseline if one is given."""
    opened = result if isinstance(result, Result) else Result.open(result)
    return opened if baseline is None else replace(opened, baseline=opened.key(baseline))


def finished_variations(result: Result) -> list[Variation]:
    """The variations with a finished run, in the order of the sweep."""
    return [v for v in result.variations if any(entry.variation == v for entry in result.entries)]


def _served(runs: Sequence[History], radius_m: float | None) -> Numbers | None:
    """``[ring]``: the share of rounds in which a UE of the ring was received."""
    found = [round_distances_m(history) for history in runs]
    known = [distance for distance in found if distance is not None]
    if radius_m is None or len(known) < len(runs):
        return None
    heard, all_rounds = np.zeros(RINGS), np.zeros(RINGS)
    for history, distance in zip(runs, known, strict=True):
        ring = np.minimum(distance / radius_m * RINGS, RINGS - 1).astype(np.int64)
        rounds = np.repeat(np.arange(len(history)), [len(ues) for ues in history.received])
        received = ring[rounds % len(ring), np.concatenate(history.received)]
        heard += np.bincount(received, minlength=RINGS)
        all_rounds += np.bincount(ring.ravel(), minlength=RINGS) * len(history) / len(ring)
    return _ratio(heard, all_rounds)


def _ratio(total: NDArray[Any], count: NDArray[Any]) -> Numbers:
    """Total by count; NaN where there is nothing to average."""
    with np.errstate(invalid="ignore"):
        return np.asarray(total / count)


def distances_m(history: History) -> Numbers | None:
    """``[ue]``: metres from the access point, the mean over the rounds, if the record says."""
    found = round_distances_m(history)
    return None if found is None else np.asarray(found.mean(axis=0))


def round_distances_m(history: History) -> Numbers | None:
    """``[round, ue]`` where UEs move, ``[1, ue]`` where they stay; ``None`` if nobody knows."""
    positions = history.positions_m
    if positions is None:
        stay = history.info.positions_m
        return None if stay is None else np.hypot(stay[:, 0], stay[:, 1])[np.newaxis]
    return np.hypot(positions[:, :, 0], positions[:, :, 1]).astype(np.float64)
