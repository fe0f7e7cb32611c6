"""The numbers behind charts, maps and the replay, from the records of finished runs alone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agewise import statistics
from agewise.experiment import Course, Result
from agewise.policies import Policy
from agewise.records import History, PolicyKey
from agewise.report.text import (
    FEWEST_SEEDS,
    LEVELS,
    family_text,
    short_names,
    value_text,
    variation_text,
)
from agewise.scenario import Scenario

#: Rings around the access point over which the service is averaged.
RINGS = 10
#: So many points of an axis other than rounds are looked at.
POINTS = 100
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


@dataclass(frozen=True, eq=False)
class SweepMap:
    """``gains[policy, row, column]`` of mean accuracy over the baseline, with corrected p-values.

    The mean is over the points of ``axis``. NaN where a policy and the baseline have no finished
    seed in common; ``pairs`` says how many they have.
    """

    policies: list[str]
    baseline: str
    column_name: str
    columns: list[str]
    rows: list[str]
    gains: Numbers
    p_values: Numbers
    pairs: NDArray[np.int64]
    axis: statistics.Axis

    def counts(self, policy: int) -> tuple[int, int, int]:
        """In how many squares a policy is shown to win, neither, and to lose, at the 5% level."""
        return count_squares(self.gains[policy], self.p_values[policy], self.pairs[policy])

    @property
    def family(self) -> str:
        """The sentence on the tests behind the p-values."""
        tests = int(np.sum(~np.isnan(self.p_values)))
        return family_text(tests, self.baseline, "squares of all maps")

    @property
    def measured(self) -> str:
        """What a gain is the mean over."""
        if self.axis.column is None:
            return "the mean over the rounds"
        return f"the mean over {self.axis.what} up to what the cheapest run of the setting spent"

    @property
    def limit(self) -> float:
        """The largest gain or loss, at least one percentage point."""
        known = np.abs(self.gains[~np.isnan(self.gains)])
        return max(0.01, float(known.max(initial=0.0)))


def count_squares(
    gains: Numbers, p_values: Numbers, pairs: NDArray[np.int64] | int
) -> tuple[int, int, int]:
    """How many gains are shown to be positive, neither, and negative: 5% level, enough pairs."""
    shown = (p_values < LEVELS[0]) & (np.asarray(pairs) >= FEWEST_SEEDS)
    wins, losses = int(np.sum(shown & (gains > 0))), int(np.sum(shown & (gains < 0)))
    return wins, int(np.sum(~np.isnan(gains))) - wins - losses, losses


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


def grid(runs: Iterable[History], axis: statistics.Axis) -> Numbers:
    """``[point]``: where to look at these runs: every round, or parts of what the cheapest spent.

    Runs that spent nothing are left aside; ``ValueError`` if all are such.
    """
    spent = [axis.spent(history) for history in runs]
    if axis.column is None:
        return max(spent, key=len)
    ends = [float(each[-1]) for each in spent if each[-1] > 0.0]
    if not ends:
        raise ValueError(f"the runs spent no {axis.name}: look at them over rounds")
    return np.linspace(0.0, min(ends), POINTS + 1)[1:]


def sweep_map(result: Result, axis: statistics.Axis = statistics.AXES["rounds"]) -> SweepMap | None:
    """The map of a sweep over at least two variations with at least two policies, else nothing."""
    baseline = result.baseline
    if len(result.variations) < 2 or baseline is None:
        return None
    names = short_names(result.policies)
    others = [policy for policy in result.policies if policy != baseline]
    column_name, columns, rows = layout(result.variations)
    shape = (len(others), len(rows), len(columns))
    gains, p_values = np.full(shape, np.nan), np.full(shape, np.nan)
    pairs = np.zeros(shape, np.int64)
    for variation in result.variations:
        square = (
            rows.index(_rest(variation, column_name)),
            columns.index(variation[column_name] if column_name else None),
        )
        runs = histories(result, variation)
        every = [run for by_seed in runs.values() for run in by_seed.values()]
        points = grid(every, axis) if every else np.empty(0)
        for layer, policy in enumerate(others):
            paired = _common_gain(runs[policy], runs[baseline], axis, points)
            gains[layer, *square], p_values[layer, *square] = paired.difference, paired.p_value
            pairs[layer, *square] = paired.pairs
    return SweepMap(
        policies=[names[policy] for policy in others],
        baseline=names[baseline],
        column_name=column_name or "",
        columns=[value_text(value) for value in columns],
        rows=[variation_text(row) for row in rows],
        gains=gains,
        p_values=statistics.holm(p_values.ravel()).reshape(shape),
        pairs=pairs,
        axis=axis,
    )


def layout(variations: Sequence[Variation]) -> tuple[str | None, list[Any], list[Variation]]:
    """The name along the columns, its values, and what each row changes besides.

    The name is the first, numbers before words, whose values make a full rectangle with the
    rest; without one every variation is a row by itself.
    """
    names = [name for name in variations[0] if all(name in varied for varied in variations)]
    for name in sorted(names, key=lambda name: not isinstance(variations[0][name], int | float)):
        columns = _distinct([varied[name] for varied in variations])
        rows = _distinct([_rest(varied, name) for varied in variations])
        if len(columns) * len(rows) == len(variations):
            return name, columns, rows
    return None, [None], list(variations)


def _common_gain(
    runs: Mapping[int, History],
    reference: Mapping[int, History],
    axis: statistics.Axis,
    points: Numbers,
) -> statistics.Paired:
    """The mean gain on the seeds that both finished."""
    common = [seed for seed in runs if seed in reference]
    if not common:
        return statistics.paired_difference([], [])
    first, second = (
        accuracies({seed: each[seed] for seed in common}, axis, points)
        for each in (runs, reference)
    )
    return mean_gain(first, second)


def mean_gain(first: Numbers, second: Numbers) -> statistics.Paired:
    """The paired difference of accuracies ``[seed, point]``, the mean over points that both know.

    NaN if a run did not come to the last point.
    """
    gaps = first - second
    gains = [float(np.nanmean(gap)) if not np.isnan(gap[-1]) else float("nan") for gap in gaps]
    return statistics.paired_difference(gains, np.zeros(len(gains)))


def accuracies(runs: Mapping[int, History], axis: statistics.Axis, points: Numbers) -> Numbers:
    """``[seed, point]`` of these runs; over rounds NaN in those that were not evaluated."""
    course = Course.of(runs, axis)
    if axis.column is None:
        return course.accuracy
    return statistics.accuracy_at(course.accuracy, course.spent, points)


def _mean(total: NDArray[Any], count: NDArray[Any]) -> Numbers:
    """Total by count; NaN where there is nothing to average."""
    with np.errstate(invalid="ignore"):
        return np.asarray(total / count)


def _rest(variation: Variation, column: str | None) -> Variation:
    return {name: value for name, value in variation.items() if name != column}


def _distinct(values: list[Any]) -> list[Any]:
    return [value for i, value in enumerate(values) if value not in values[:i]]
