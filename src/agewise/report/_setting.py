"""One setting of a result: its finished runs, and what the pictures show of them."""

import functools
import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray

from agewise import statistics
from agewise.experiment import LearningCurve, Result, RunMetrics
from agewise.experiment._summary import mean_points
from agewise.policies import Policy
from agewise.random import Streams
from agewise.readers import load_arrays
from agewise.records import History, PolicyKey
from agewise.report._verdict import display_name
from agewise.scenario import Scenario
from agewise.tables import GainMap, ResultTable, Row, Variation

#: What was measured of the channel, in a results folder.
CHANNEL = "channel.npz"
#: What it may hold; what it does not is not known.
_MEASURED = (
    "mean_snr_db", "needed", "never_served", "rate_threshold", "positions_m", "line_of_sight",
    "reach_m", "area_snr_db", "line_of_sight_area",
)  # fmt: skip
#: Rings around the access point over which the service is averaged.
RINGS = 10
Numbers = NDArray[np.float64]


def open_result(
    result: Result | Path | str, baseline: Policy | PolicyKey | str | None = None
) -> Result:
    """The result, or the one in this folder, with another baseline if one is given."""
    opened = result if isinstance(result, Result) else Result.open(result)
    return opened if baseline is None else replace(opened, baseline=opened.key(baseline))


def finished_variations(result: Result) -> list[Variation]:
    """The variations with a finished run, in the order of the sweep."""
    return [v for v in result.variations if any(entry.variation == v for entry in result.entries)]


@dataclass(frozen=True, eq=False)
class Setting:
    """One variation of a result; policies without a finished run are left out.

    ``policies`` is a choice of those to show, all if it is ``None``. ``axis`` is what accuracies
    and gains are looked at over, and ``table`` the result's table over it, made when needed if it
    is not given.
    """

    result: Result
    variation: Variation
    policies: tuple[PolicyKey, ...] | None = None
    axis: statistics.Axis = statistics.AXES["rounds"]
    table: ResultTable | None = None

    @functools.cached_property
    def scenario(self) -> Scenario:
        """The scenario as varied."""
        return self.result.scenario.with_(**self.variation)

    @functools.cached_property
    def runs(self) -> dict[str, dict[int, History]]:
        """The finished runs of each policy by its name, then by seed."""
        wanted = self.result.policies if self.policies is None else self.policies
        found = {
            str(key): self.result.histories(key, self.variation)
            for key in self.result.policies
            if key in wanted
        }
        return {name: runs for name, runs in found.items() if runs}

    @functools.cached_property
    def indices(self) -> dict[str, int]:
        """The index of each policy among all of the result, which decides its colour."""
        return {name: index for index, name in enumerate(map(str, self.result.policies))}

    @functools.cached_property
    def pair(self) -> list[str]:
        """The policies that are compared, a rival and the baseline, as far as they have runs."""
        pair = [str(key) for key in self.result.compared if str(key) in self.runs]
        return pair or list(self.runs)[:1]

    @property
    def rival(self) -> str:
        """The policy that the question is about."""
        return self.pair[0]

    @property
    def baseline(self) -> str | None:
        """The policy that it is compared with."""
        return self.pair[1] if len(self.pair) > 1 else None

    def display_name(self, name: str) -> str:
        """A policy's name in a title."""
        return display_name(self.result.key(name), self.result)

    def listed(self, words: Mapping[str, str]) -> str:
        """Words on policies in a title, each behind the policy's name."""
        return ", ".join(f"{self.display_name(name)} {said}" for name, said in words.items())

    def mean_of(self, name: str, column: str) -> Numbers:
        """``[round]``: a column of the records, the mean over the seeds that know it."""
        values = np.array([run.numbers(column) for run in self.runs[name].values()])
        return _ratio(np.nansum(values, axis=0), (~np.isnan(values)).sum(axis=0))

    def ages(self, name: str) -> NDArray[np.int64]:
        """``[seed, round, ue]`` after each round."""
        return np.array([run.ages for run in self.runs[name].values()])

    def served(self, name: str) -> Numbers | None:
        """``[ring]``: the share of rounds in which a UE of the ring was received.

        NaN for a ring without UEs; ``None`` where nobody knows where they are.
        """
        radius_m = self.scenario.channel.reach_m
        heard, all_rounds = np.zeros(RINGS), np.zeros(RINGS)
        for history in self.runs[name].values():
            distance_m = round_distances_m(history)
            if radius_m is None or distance_m is None:
                return None
            ring = np.minimum(distance_m / radius_m * RINGS, RINGS - 1).astype(np.int64)
            rounds = np.repeat(np.arange(len(history)), [len(ues) for ues in history.received])
            received = ring[rounds % len(ring), np.concatenate(history.received)]
            heard += np.bincount(received, minlength=RINGS)
            all_rounds += np.bincount(ring.ravel(), minlength=RINGS) * len(history) / len(ring)
        return _ratio(heard, all_rounds)

    @functools.cached_property
    def metrics(self) -> dict[str, RunMetrics]:
        """What the finished seeds of every policy did."""
        return {name: RunMetrics.of(runs) for name, runs in self.runs.items()}

    @property
    def rounds(self) -> int:
        """How many rounds a run has."""
        return self.scenario.run.rounds

    @property
    def ues(self) -> int:
        """K, the number of UEs."""
        return self.scenario.cell.ues

    def common_seeds(self, first: str, second: str) -> list[int]:
        """The seeds that both policies finished."""
        return [seed for seed in self.runs[first] if seed in self.runs[second]]

    @functools.cached_property
    def learning_curves(self) -> dict[str, LearningCurve]:
        """The accuracies of every policy over the x axis."""
        return {name: LearningCurve.of(runs, self.axis) for name, runs in self.runs.items()}

    @functools.cached_property
    def points(self) -> Numbers:
        """``[point]`` of the axis: the rounds, or parts of the cost of the cheapest run."""
        return mean_points([run for each in self.runs.values() for run in each.values()], self.axis)

    @property
    def over_rounds(self) -> bool:
        """Whether the axis counts rounds."""
        return self.axis.column is None

    @functools.cached_property
    def accuracies(self) -> dict[str, Numbers]:
        """``[seed, point]`` of every policy; NaN in rounds that were not evaluated."""
        return {name: curve.over(self.points) for name, curve in self.learning_curves.items()}

    @functools.cached_property
    def means(self) -> dict[str, statistics.Interval]:
        """``[point]``: the mean accuracy of every policy over its seeds, with its interval."""
        return {name: statistics.mean_interval(each) for name, each in self.accuracies.items()}

    @functools.cached_property
    def gains(self) -> Numbers | None:
        """``[seed, point]``: the rival's accuracy minus the baseline's on common seeds."""
        if self.baseline is None:
            return None
        gains = self.learning_curves[self.rival].gains(
            self.learning_curves[self.baseline], self.points
        )
        return None if np.isnan(gains).all() else gains

    @functools.cached_property
    def mean_gains(self) -> dict[str, statistics.Contrast]:
        """The paired gain of every policy over the baseline, the mean over the points."""
        if self.baseline is None:
            return {}
        reference = self.learning_curves[self.baseline]
        found = {
            name: curve.mean_gain(reference, self.points)
            for name, curve in self.learning_curves.items()
            if name != self.baseline
        }
        return {name: gain for name, gain in found.items() if gain.known}

    def along(self, axis: statistics.Axis) -> "Setting":
        """The same setting over another axis."""
        return self if axis == self.axis else replace(self, axis=axis, table=None)

    @functools.cached_property
    def seed(self) -> int:
        """The seed to look at: with the median gain at the end, else the median accuracy."""
        seeds = self.common_seeds(self.pair[0], self.pair[-1]) or list(self.runs[self.rival])
        last = [_last_known(self.runs[self.rival][seed].accuracy) for seed in seeds]
        if self.baseline is not None and set(seeds) <= set(self.runs[self.baseline]):
            other = [_last_known(self.runs[self.baseline][seed].accuracy) for seed in seeds]
            last = [one - two for one, two in zip(last, other, strict=True)]
        order = np.argsort(np.nan_to_num(last), kind="stable")
        return seeds[int(order[(len(seeds) - 1) // 2])]

    def history(self, name: str) -> History:
        """The run of a policy on the seed to look at, else on its first."""
        runs = self.runs[name]
        return runs.get(self.seed) or next(iter(runs.values()))

    def distances_m(self, name: str) -> Numbers | None:
        """``[ue]``: metres from the AP in that run, the mean over its rounds, if known."""
        return distances_m(self.history(name))

    def last_positions_m(self, name: str) -> Numbers | None:
        """``[ue, (x, y)]`` in the last round of that run, if known."""
        places = places_m(self.history(name))
        return None if places is None else places[-1].astype(np.float64)

    @functools.cached_property
    def oldest(self) -> float:
        """The age from which all look alike: twice what the fresher policy seldom passes."""
        seldom = min(float(np.percentile(self.history(name).ages, 99)) for name in self.pair)
        most = max(float(self.history(name).ages.max()) for name in self.pair)
        return _rounded_up(max(4.0, min(2 * seldom, most)))

    @functools.cached_property
    def rows(self) -> dict[str, Row]:
        """The rows of the result's table that are of this setting, by the policy's name."""
        return self._table.by_policy(self.variation)

    @functools.cached_property
    def _table(self) -> ResultTable:
        return self.result.table(self.axis) if self.table is None else self.table

    @functools.cached_property
    def end(self) -> float:
        """The point of the axis at which policies are compared: the last that the pair knows."""
        return self.rows[self.rival].last

    @functools.cached_property
    def against_baseline(self) -> dict[str, statistics.Contrast]:
        """The gain of every policy over the baseline at the end, as in the result's table."""
        gains = {name: self.rows[name].gains for name in self.runs}
        return {name: each[self.end] for name, each in gains.items() if self.end in each}

    @functools.cached_property
    def map(self) -> GainMap | None:
        """The map of the sweep that the setting is part of."""
        swept = len(self.result.variations) > 1 and self.result.baseline is not None
        return self._table.map() if swept else None

    def by_class(self, name: str, value: Callable[[History], Numbers]) -> dict[str, float]:
        """The mean over UEs and seeds of ``value(history)[ue]``, for each class of devices."""
        devices, found = self.scenario.devices, defaultdict[str, list[float]](list)
        names = [label.rpartition(".")[2] for label, _ in devices.described()]
        for seed, history in self.runs[name].items():
            members, values = devices.members(self.ues, Streams(seed)), value(history)
            for place, label in enumerate(names):
                found[label].append(float(values[members == place].mean()))
        return {label: float(np.mean(means)) for label, means in found.items()}

    @functools.cached_property
    def radio(self) -> SimpleNamespace | None:
        """What was measured of the channel of the first seed, if the folder holds it."""
        try:
            held = load_arrays(self.result.path / CHANNEL)
        except FileNotFoundError:
            return None
        values = {name: held.get(name) for name in _MEASURED}
        single = {name: x.item() for name, x in values.items() if x is not None and not x.ndim}
        return SimpleNamespace(**values | single)

    @functools.cached_property
    def class_gains(self) -> tuple[Numbers, Numbers] | None:
        """``[seed, class]`` twice: mean distance of a class's samples, and its gain at the end."""
        if self.baseline is None:
            return None
        rows = []
        for seed in self.common_seeds(*self.pair):
            first, second = (self.runs[name][seed] for name in self.pair)
            where, held = distances_m(first), first.info.label_counts
            known = ~np.isnan(first.class_accuracy).all(axis=1)
            if where is None or held is None or not known.any():
                return None
            last = int(np.flatnonzero(known)[-1])
            distance = where @ held / np.maximum(held.sum(axis=0), 1)
            rows.append((distance, first.class_accuracy[last] - second.class_accuracy[last]))
        whole = [row for row in rows if not (np.isnan(row[0]) | np.isnan(row[1])).any()]
        return (np.array([d for d, _ in whole]), np.array([g for _, g in whole])) if whole else None

    def choice(self, name: str, t: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The ages before round ``t`` of the run to look at, and who uploads in it."""
        history = self.history(name)
        before = history.ages[t - 1] if t else np.zeros(self.ues, np.int64)
        return before, history.scheduled[t]


def _last_known(values: Numbers) -> float:
    known = values[~np.isnan(values)]
    return float(known[-1]) if known.size else math.nan


def _rounded_up(value: float) -> float:
    """The next number with one digit, or with two that end in 5."""
    step = 10.0 ** math.floor(math.log10(value))
    return next(step * x for x in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if step * x >= value - 1e-9)


def distances_m(history: History) -> Numbers | None:
    """``[ue]``: metres from the access point, the mean over the rounds, if the record says."""
    found = round_distances_m(history)
    return None if found is None else np.asarray(found.mean(axis=0))


def round_distances_m(history: History) -> Numbers | None:
    """``[round, ue]`` where UEs move, ``[1, ue]`` where they stay; ``None`` if nobody knows."""
    places = places_m(history)
    return None if places is None else np.hypot(places[..., 0], places[..., 1]).astype(np.float64)


def places_m(history: History) -> NDArray[np.floating] | None:
    """``[round, ue, (x, y)]``; one round stands for all where UEs stay."""
    if history.positions_m is not None:
        return history.positions_m
    stay = history.info.positions_m
    return None if stay is None else stay[np.newaxis]


def _ratio(total: Numbers, count: Numbers | NDArray[np.int64]) -> Numbers:
    """Total by count; NaN where there is nothing to average."""
    with np.errstate(invalid="ignore"):
        return np.asarray(total / count)
