"""The numbers behind charts, maps and the replay, from the records of finished runs alone."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agewise import statistics
from agewise.experiment import Result
from agewise.policies import Policy
from agewise.records import History, PolicyKey
from agewise.scenario import Scenario
from agewise.tables.words import short_names

#: Rings around the access point over which the service is averaged.
RINGS = 10
Numbers = NDArray[np.float64]
Variation = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Curves:
    """One policy: ``[round]`` each, means over the seeds; ``served`` is ``[ring]``.

    ``index`` is that of the policy among all of the result, which decides its colour.

    ``accuracy`` has an interval; ``runs`` is ``[seed, round]`` of the same. ``diversity`` is NaN
    in rounds without any update. ``served`` is the share of rounds in which a UE of the ring was
    received, NaN for a ring without UEs, and ``None`` where the positions are not known.
    """

    index: int
    accuracy: statistics.Interval
    runs: Numbers
    reached: Numbers
    age_mean: Numbers
    age_95: Numbers
    age_largest: Numbers
    diversity: Numbers
    served: Numbers | None
    seeds: int


@dataclass(frozen=True, eq=False)
class Labels:
    """``counts[ue, class]`` of the samples in the runs of one seed."""

    counts: NDArray[np.int64]
    class_names: tuple[str, ...]


def open_result(
    result: Result | Path | str, baseline: Policy | PolicyKey | str | None = None
) -> Result:
    """The result, or the one in this folder, with another baseline if one is given."""
    opened = result if isinstance(result, Result) else Result.open(result)
    return opened if baseline is None else replace(opened, baseline=opened.key(baseline))


def finished_variations(result: Result) -> list[Variation]:
    """The variations with a finished run, in the order of the sweep."""
    return [v for v in result.variations if any(entry.variation == v for entry in result.entries)]


def histories(result: Result, variation: Variation) -> dict[PolicyKey, dict[int, History]]:
    """The finished runs of every policy, by seed."""
    return {policy: result.histories(policy, variation) for policy in result.policies}


def curves(result: Result, variation: Variation) -> dict[str, Curves]:
    """The curves of every policy that has a finished seed, by its short name."""
    scenario = result.scenario.with_(**variation)
    names = short_names(result.policies)
    return {
        names[policy]: _curves(index, list(runs.values()), scenario)
        for index, (policy, runs) in enumerate(histories(result, variation).items())
        if runs
    }


def _curves(index: int, runs: list[History], scenario: Scenario) -> Curves:
    ages = np.array([history.ages for history in runs])
    diversity = np.array([history.numbers("gradient_diversity") for history in runs])
    accuracy = np.array([history.accuracy for history in runs])
    return Curves(
        index=index,
        accuracy=statistics.mean_interval(accuracy),
        runs=accuracy,
        reached=np.mean([history.numbers("reached") for history in runs], axis=0),
        age_mean=ages.mean(axis=(0, 2)),
        age_95=np.percentile(ages, 95, axis=2).mean(axis=0),
        age_largest=ages.max(axis=2).mean(axis=0),
        diversity=_mean(np.nansum(diversity, axis=0), (~np.isnan(diversity)).sum(axis=0)),
        served=_served(runs, scenario),
        seeds=len(runs),
    )


def _served(runs: list[History], scenario: Scenario) -> Numbers | None:
    """``[ring]``: the share of rounds in which a UE of the ring was received."""
    radius_m, found = cell_radius_m(scenario), [round_distances_m(history) for history in runs]
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
    return _mean(heard, all_rounds)


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


def cell_radius_m(scenario: Scenario) -> float | None:
    """The radius of the cell; ``None`` for a trace, which does not say."""
    return scenario.channel.reach_m


def ring_centres_m(scenario: Scenario) -> Numbers | None:
    """``[ring]``: metres from the access point to the middle of each ring."""
    radius_m = cell_radius_m(scenario)
    return None if radius_m is None else (np.arange(RINGS) + 0.5) * radius_m / RINGS


def labels(result: Result, variation: Variation) -> Labels | None:
    """What each UE holds in the runs of the lowest finished seed, if their records say so.

    Policies of one seed meet the same samples, so that any of them will do.
    """
    runs = [run for by_seed in histories(result, variation).values() for run in by_seed.values()]
    for info in sorted((run.info for run in runs), key=lambda info: info.seed):
        if info.label_counts is not None:
            return Labels(info.label_counts, info.class_names)
    return None


def _mean(total: NDArray[Any], count: NDArray[Any]) -> Numbers:
    """Total by count; NaN where there is nothing to average."""
    with np.errstate(invalid="ignore"):
        return np.asarray(total / count)
