"""One setting of a result: its finished runs, and what the pictures show of them."""

import functools
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from agewise import statistics
from agewise.age import Form, f_alpha
from agewise.experiment import LearningCurve, Result, RunMetrics
from agewise.experiment.summary import mean_points
from agewise.policies import AgeBased
from agewise.records import History, PolicyKey
from agewise.report import numbers
from agewise.report.numbers import Numbers, RoundMeans, Variation
from agewise.report.pictures import Need
from agewise.report.verdict import compared
from agewise.scenario import Scenario
from agewise.tables import GainMap, ResultTable, Row
from agewise.tables.words import short_names

#: How many subchannels more make the difference between two UEs plain.
_ENOUGH = 3


@dataclass(frozen=True, eq=False)
class Filled:
    """What one UE was given in a round: its subchannels' gains and powers, in shares of P."""

    ue: int
    distance_m: float | None
    gain: Numbers
    power: Numbers


@dataclass(frozen=True, eq=False)
class Ranking:
    """The UEs of a round by f(age) per subchannel needed, the highest first.

    ``score[place]`` is that of the UE at a place, ``chosen`` are the places of those that upload,
    ``owner[subchannel]`` is the place of its owner or -1, and ``gain[place, subchannel]`` are the
    gains that were offered, if they are kept.
    """

    t: int
    score: Numbers
    chosen: NDArray[np.int64]
    owner: NDArray[np.int64]
    gain: NDArray[np.float32] | None


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
        """The finished runs of each policy by its short name, then by seed."""
        names = short_names(self.result.policies)
        wanted = self.result.policies if self.policies is None else self.policies
        found = {
            names[key]: self.result.histories(key, self.variation)
            for key in self.result.policies
            if key in wanted
        }
        return {name: runs for name, runs in found.items() if runs}

    @functools.cached_property
    def indices(self) -> dict[str, int]:
        """The index of each policy among all of the result, which decides its colour."""
        return {
            name: index for index, name in enumerate(short_names(self.result.policies).values())
        }

    @functools.cached_property
    def pair(self) -> list[str]:
        """The policies that are compared, a rival and the baseline, as far as they have runs."""
        names = short_names(self.result.policies)
        pair = [names[key] for key in compared(self.result) if names[key] in self.runs]
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
        """A policy's name in a title: the bare one if the pair has no other policy of it."""
        keys = dict(
            zip(short_names(self.result.policies).values(), self.result.policies, strict=True)
        )
        others = [keys[other].name for other in self.pair if other != name]
        alike = keys[name].name in others or name not in self.pair
        return name if alike else keys[name].name

    @functools.cached_property
    def round_means(self) -> dict[str, RoundMeans]:
        """The means of every policy round by round."""
        radius_m = self.scenario.channel.reach_m
        return {n: RoundMeans.of(list(runs.values()), radius_m) for n, runs in self.runs.items()}

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
        seeds = self.common_seeds(*self.pair)
        first, second = (
            self.accuracies[name][[list(self.runs[name]).index(seed) for seed in seeds]]
            for name in self.pair
        )
        return None if np.isnan(first - second).all() else first - second

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
        return numbers.distances_m(self.history(name))

    def last_positions_m(self, name: str) -> Numbers | None:
        """``[ue, (x, y)]`` in the last round of that run, if known."""
        history = self.history(name)
        moved = history.positions_m
        return history.info.positions_m if moved is None else moved[-1].astype(np.float64)

    @functools.cached_property
    def oldest(self) -> float:
        """The age from which all look alike: twice what the fresher policy seldom passes."""
        seldom = min(float(np.percentile(self.history(name).ages, 99)) for name in self.pair)
        most = max(float(self.history(name).ages.max()) for name in self.pair)
        return _rounded_up(max(4.0, min(2 * seldom, most)))

    @functools.cached_property
    def rows(self) -> dict[str, Row]:
        """The rows of the result's table that are of this setting, by the policy's short name."""
        table = self.result.table(self.axis) if self.table is None else self.table
        return table.by_policy(self.variation)

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
        return self.result.map(self.axis) if swept else None

    def has(self, need: Need | None) -> bool:
        """Whether the runs tell what a picture needs."""
        match need:
            case None:
                return True
            case Need.PAIR:
                return self.gains is not None
            case Need.RIVALS:
                return bool(self.against_baseline and self.mean_gains)
            case Need.PLACES:
                return all(self.last_positions_m(name) is not None for name in self.pair)
            case Need.RINGS:
                return all(each.served is not None for each in self.round_means.values())
            case Need.CLASSES:
                return self.class_gains is not None
            case Need.LABELS:
                return self.labels is not None
            case Need.WATER:
                return self.filled is not None
            case Need.OFFER:
                return any(self.ranking(name) is not None for name in self.pair)
            case Need.SWEEP:
                return self.map is not None

    @functools.cached_property
    def labels(self) -> tuple[NDArray[np.int64], tuple[str, ...]] | None:
        """``[ue, class]`` of the samples with the lowest seed, and the names of the classes.

        Policies of one seed meet the same samples, so that any of them will do.
        """
        found = [run.info for runs in self.runs.values() for run in runs.values()]
        for info in sorted(found, key=lambda info: info.seed):
            if info.label_counts is not None:
                return info.label_counts, info.class_names
        return None

    def last_ages(self, name: str) -> NDArray[np.int64]:
        """The ages after the last round, of the UEs of all seeds."""
        return np.concatenate([history.ages[-1] for history in self.runs[name].values()])

    @functools.cached_property
    def class_gains(self) -> tuple[Numbers, Numbers] | None:
        """``[seed, class]`` twice: mean distance of a class's samples, and its gain at the end."""
        if self.baseline is None:
            return None
        rows = []
        for seed in self.common_seeds(*self.pair):
            first, second = (self.runs[name][seed] for name in self.pair)
            where, held = numbers.distances_m(first), first.info.label_counts
            known = ~np.isnan(first.class_accuracy).all(axis=1)
            if where is None or held is None or not known.any():
                return None
            last = int(np.flatnonzero(known)[-1])
            distance = where @ held / np.maximum(held.sum(axis=0), 1)
            rows.append((distance, first.class_accuracy[last] - second.class_accuracy[last]))
        whole = [row for row in rows if not (np.isnan(row[0]) | np.isnan(row[1])).any()]
        return (np.array([d for d, _ in whole]), np.array([g for _, g in whole])) if whole else None

    @functools.cached_property
    def filled(self) -> tuple[int, list[Filled]] | None:
        """A round of the rival with a UE that needs few subchannels, and one that needs many.

        The round is the one nearest to the middle in which the difference is large enough to see.
        """
        history = self.history(self.rival)
        owner, gain, power = history.owner, history.gain, history.power
        places = numbers.round_distances_m(history)
        best: tuple[float, int, list[Filled]] | None = None
        for t, scheduled in enumerate(history.scheduled):
            where = None if places is None else places[t % len(places)]
            found = (_filled(owner[t] == ue, gain[t], power[t], ue, where) for ue in scheduled)
            filled = [each for each in found if each]
            if len(filled) < 2:
                continue
            low, high = min(filled, key=_cost), max(filled, key=_cost)
            more = high.gain.size - low.gain.size
            worth = min(more, _ENOUGH) - abs(t / self.rounds - 0.5)
            if more and (best is None or worth > best[0]):
                best = worth, t, [low, high]
        return None if best is None else (best[1], best[2])

    def choice(self, name: str, t: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The ages before round ``t`` of the run to look at, and who uploads in it."""
        history = self.history(name)
        before = history.ages[t - 1] if t else np.zeros(self.ues, np.int64)
        return before, history.scheduled[t]

    @functools.cached_property
    def weighing(self) -> tuple[float, Form]:
        """Alpha and form of the f_alpha by which ages are weighed.

        They are those of the age-based policy of the pair, else those that the scenario names.
        """
        keys = {name: key for key, name in short_names(self.result.policies).items()}
        for name in self.pair:
            if keys[name].name == AgeBased.name:
                policy = AgeBased(**keys[name].parameters)  # type: ignore[arg-type]
                return policy.alpha, policy.form
        return self.scenario.run.age_alpha, "paper"

    def ranking(self, name: str) -> Ranking | None:
        """The UEs of the round whose offer is recorded, in the run to look at."""
        history = self.history(name)
        offer = history.eligible
        if offer is None:
            return None
        (ages, chosen), need = self.choice(name, offer.t), offer.need
        weights = f_alpha(ages, *self.weighing)
        score = np.where(need > 0, weights / np.maximum(need, 1), 0.0)
        order = np.lexsort((np.where(need > 0, need, need.max(initial=0) + 1), -score))
        place = np.append(np.argsort(order), -1)  # the last is nobody's
        return Ranking(
            t=offer.t,
            score=score[order],
            chosen=np.sort(place[chosen]),
            owner=place[history.owner[offer.t]],
            gain=None if offer.gain is None else offer.gain[order],
        )


def _cost(ue: Filled) -> tuple[float, float]:
    """Subchannels first, then distance."""
    return (float(ue.gain.size), ue.distance_m or 0.0)


def _filled(
    own: NDArray[np.bool_], gains: Numbers, powers: Numbers, ue: int, where: Numbers | None
) -> Filled | None:
    gain, power = gains[own], powers[own]
    total = float(power.sum())
    if not own.any() or total <= 0 or (gain <= 0).any():
        return None
    distance = None if where is None else float(where[ue])
    return Filled(int(ue), distance, gain * total, power / total)


def _last_known(values: Numbers) -> float:
    known = values[~np.isnan(values)]
    return float(known[-1]) if known.size else math.nan


def _rounded_up(value: float) -> float:
    """The next number with one digit, or with two that end in 5."""
    step = 10.0 ** math.floor(math.log10(value))
    return next(step * x for x in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if step * x >= value - 1e-9)
