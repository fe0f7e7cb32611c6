"""The numbers behind the charts: what the finished seeds of one variation say, policy by policy."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from agewise import data, statistics
from agewise.radio import CellChannel
from agewise.random import Streams
from agewise.report.names import short_names

if TYPE_CHECKING:
    from agewise.experiment import Result
    from agewise.records import History
    from agewise.scenario import Scenario

#: Rings around the access point over which the service is averaged.
RINGS = 10
Numbers = NDArray[np.float64]

#: Variations of a sweep mostly share their data set.
_load = functools.lru_cache(maxsize=2)(data.load)


@dataclass(frozen=True, eq=False)
class Curves:
    """One policy: ``[round]`` each, means over the seeds; ``served`` is ``[ring]``.

    ``place`` is that of the policy among all of the result, which decides its colour.

    ``accuracy`` has an interval; ``served`` is the share of rounds in which a UE of the ring was
    received, NaN for a ring without UEs. ``diversity`` is NaN in rounds without any update.
    """

    place: int
    accuracy: statistics.Interval
    reached: Numbers
    age_mean: Numbers
    age_95: Numbers
    age_peak: Numbers
    diversity: Numbers
    served: Numbers
    seeds: int


@dataclass(frozen=True, eq=False)
class Labels:
    """``counts[ue, class]`` of the partition of one seed."""

    counts: NDArray[np.int64]
    names: tuple[str, ...]
    seed: int


def curves(result: "Result", variation: Mapping[str, Any]) -> dict[str, Curves]:
    """The curves of every policy that has a finished seed, by its short name."""
    scenario = result.scenario.with_(**variation)
    names = short_names(result.policies)
    found = {name: result.histories(policy, variation) for policy, name in names.items()}
    places = {seed: distances(scenario, seed) for runs in found.values() for seed in runs}
    return {
        name: _curves(place, runs, scenario, places)
        for place, (name, runs) in enumerate(found.items())
        if runs
    }


def distances(scenario: "Scenario", seed: int) -> Numbers:
    """``[ue]``: metres from the access point, worked out anew from the seed."""
    channel = CellChannel.of(scenario.cell, scenario.channel, Streams(seed))
    return np.asarray(np.hypot(*channel.positions_m.T))


def ring_centres(radius_m: float) -> Numbers:
    """``[ring]``: metres from the access point to the middle of each ring."""
    return np.asarray((np.arange(RINGS) + 0.5) * radius_m / RINGS)


def labels(scenario: "Scenario", seed: int) -> Labels:
    """What each UE holds; ``ValueError`` if the data are no longer there."""
    dataset = _load(scenario.data)
    partition = data.divide(dataset.train.labels, scenario.data, scenario.cell.ues, Streams(seed))
    counts = partition.label_counts(dataset.train.labels, dataset.class_count)
    return Labels(counts, dataset.names, seed)


def _curves(
    place: int,
    runs: Mapping[int, "History"],
    scenario: "Scenario",
    places: Mapping[int, Numbers],
) -> Curves:
    histories = list(runs.values())
    ages = np.array([history.ages for history in histories])
    frames = [history.frame for history in histories]
    diversity = np.array([f["gradient_diversity"].fill_null(np.nan).to_numpy() for f in frames])
    share = np.concatenate([history.participation / len(history) for history in histories])
    distance = np.concatenate([places[seed] for seed in runs])
    ring = np.minimum(distance / scenario.cell.radius_m * RINGS, RINGS - 1).astype(np.int64)
    return Curves(
        place=place,
        accuracy=statistics.mean_interval([history.accuracy for history in histories]),
        reached=np.mean([frame["reached"].to_numpy() for frame in frames], axis=0),
        age_mean=ages.mean(axis=(0, 2)),
        age_95=np.percentile(ages, 95, axis=2).mean(axis=0),
        age_peak=ages.max(axis=2).mean(axis=0),
        diversity=_mean(np.nansum(diversity, axis=0), (~np.isnan(diversity)).sum(axis=0)),
        served=_mean(np.bincount(ring, share, RINGS), np.bincount(ring, minlength=RINGS)),
        seeds=len(histories),
    )


def _mean(total: NDArray[Any], count: NDArray[Any]) -> Numbers:
    """Total by count; NaN where there is nothing to average."""
    with np.errstate(invalid="ignore"):
        return np.asarray(total / count)
