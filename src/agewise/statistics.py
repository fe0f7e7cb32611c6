"""Statistics over seeds: intervals, paired comparisons, rounds to a target, fairness, ages.

SciPy is imported where it is used, because it takes longer to import than all the rest.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy  # whose parts are imported when first used
from numpy.typing import ArrayLike, NDArray

from agewise.checks import real_number
from agewise.random import Streams

if TYPE_CHECKING:
    from agewise.records import History


@dataclass(frozen=True)
class Axis:
    """What results are shown over: rounds, or what rounds cost.

    ``label`` is for charts, ``unit`` for numbers, ``what`` for what is added up, ``one`` for one
    of it and ``equal`` for a comparison at the same amount of it; ``column`` is that of a history,
    ``None`` for the count of rounds.
    """

    name: str
    label: str
    unit: str
    what: str
    one: str
    equal: str
    column: str | None
    needs_seconds: bool = False

    def cost(self, history: "History") -> NDArray[np.float64]:
        """``[round]``: the cost from the start of the run to the end of each round.

        ``ValueError`` if the run does not know.
        """
        if self.column is None:
            return np.arange(1.0, len(history) + 1.0)
        self.require(history.info.scenario)
        costs = history.numbers(self.column)
        if np.isnan(costs).any():
            raise ValueError(f"the run does not know its {self.name}: look at it over rounds")
        return np.asarray(np.cumsum(costs))

    def require(self, scenario: Mapping[str, Any]) -> None:
        """``ValueError`` unless runs of this resolved scenario know what they spend."""
        kind = scenario["timing"]["kind"]
        if self.needs_seconds and kind != "seconds":
            raise ValueError(
                f"there are no {self.name} with timing.kind = {kind}: set timing to kind = "
                '"seconds" (docs/accounting.md), as the preset physical-timed does, and run again, '
                "or take rounds, channel-uses or bits"
            )


#: By name: all that ``--over`` takes.
AXES = {
    axis.name: axis
    for axis in (
        Axis("rounds", "rounds", "rounds", "rounds", "round", "in as many rounds", None),
        Axis("seconds", "time (s)", "s", "time", "second", "in the same time", "seconds", True),
        Axis(
            "joules", "energy of all UEs (J)", "J", "energy", "joule", "with the same energy",
            "joules", True,
        ),
        Axis(
            "channel-uses", "real channel uses (airtime)", "uses", "channel uses", "channel use",
            "with as many channel uses", "channel_uses",
        ),
        Axis("bits", "bits sent", "bit", "bits sent", "bit", "with as many bits sent", "bits"),
    )
}  # fmt: skip


def axis_of(over: str | Axis) -> Axis:
    """The axis of this name; airtime is counted in channel uses.

    >>> axis_of("joules").label
    'energy of all UEs (J)'
    """
    if isinstance(over, Axis):
        return over
    over = "channel-uses" if over == "airtime" else over
    if over not in AXES:
        raise ValueError(f"results are shown over {', '.join(AXES)}, not over {over!r}")
    return AXES[over]


#: The levels of one, two and three stars; at the first a difference counts as shown.
LEVELS = (0.05, 0.01, 0.001)
#: With fewer seeds in common no verdict is given.
FEWEST_SEEDS = 5
Verdict = Literal["better", "worse", "not shown", "too few seeds"]
#: With fewer seeds the correlation of many contrasts is too rough (`benchmarks/families.py`).
_CORRELATED_SEEDS = 20
_DRAWS, _AT_ONCE = 100_000, 5_000  # of the largest of many normal numbers
#: Which test an interval and a p-value come from.
_Method = Literal["paired t test", "max-t", "Bonferroni"]


@dataclass(frozen=True, eq=False)
class Interval:
    """``[point]`` each: means over seeds with the limits of their confidence intervals."""

    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


@dataclass(frozen=True)
class Contrast:
    """Mean paired difference over ``pairs`` seeds, its 95% limits and two-sided p-value.

    Limits and p-value come from one ``method`` and agree: the limits hold 0 unless p < 0.05.
    ``gaps`` are the differences by seed. All numbers are NaN where a run on either side is not
    known.
    """

    mean: float
    low: float
    high: float
    p: float
    pairs: int
    method: _Method = "paired t test"
    gaps: Mapping[int, float] = field(default_factory=dict, repr=False, compare=False)

    @property
    def verdict(self) -> Verdict:
        """What the test shows: the one gate of all words, stars, colours and titles."""
        if self.pairs < FEWEST_SEEDS:
            return "too few seeds"
        if not self.p < LEVELS[0]:
            return "not shown"
        return "better" if self.mean > 0 else "worse"

    @property
    def shown(self) -> bool:
        """Whether a difference is shown, in either direction."""
        return self.verdict in ("better", "worse")

    @property
    def known(self) -> bool:
        """Whether there is a difference to tell of."""
        return not math.isnan(self.mean)


@dataclass(frozen=True)
class Estimate:
    """Mean over seeds with its 95% interval, and the ``gain`` over a baseline where there is one.

    A single seed has NaN limits. ``few`` are the numbers of fewer than five seeds, which say more
    than the interval.
    """

    mean: float
    low: float
    high: float
    gain: Contrast | None = None
    few: tuple[float, ...] = ()

    @property
    def known(self) -> bool:
        """Whether all seeds have a number."""
        return not math.isnan(self.mean)


@dataclass(frozen=True, eq=False)
class TimeToTarget:
    """How long ``runs`` runs took to a target, which ``reached`` of them reached.

    ``times[seed]`` is in rounds, or in the unit of the cost; NaN for runs that did not reach the
    target by ``horizon``. ``median`` is NaN where more than half of the runs are expected to take
    longer than the horizon; ``low`` and ``high`` are NaN where the band does not fall to one half.
    """

    times: NDArray[np.float64]
    reached: int
    runs: int
    median: float
    low: float
    high: float
    restricted_mean: float
    horizon: float

    @property
    def by_half(self) -> bool:
        """Whether half of the runs reached the target, so that a median is worth telling.

        Where runs are censored at different costs, the curve may fall to one half by its last run
        alone.
        """
        return not math.isnan(self.median) and 2 * self.reached >= self.runs


@dataclass(frozen=True)
class AgeStatistics:
    """Over all rounds and UEs of a run: the mean, 95th percentile and largest age.

    ``mean_peak`` is what the literature calls the peak age: the mean of the ages just before they
    were set back to 0; NaN if none ever was.
    """

    mean: float
    percentile_95: float
    largest: float
    mean_peak: float


def mean_interval(values: ArrayLike, confidence: float = 0.95) -> Interval:
    """Means of ``values[seed, point]`` over the seeds, with Student's t intervals.

    A point that is not finite for some seed, as in rounds that are not evaluated, has NaN for
    all three; a single seed has NaN limits.

    >>> mean_interval([[1.0, 5.0], [3.0, 5.0]]).mean
    array([2., 5.])
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0 or len(array) == 0:
        raise ValueError(f"values must have at least one seed (row), not shape {array.shape}")
    mean, _, half = _mean_error_half(array, confidence)
    return Interval(mean, mean - half, mean + half)


def estimate(values: ArrayLike, gain: Contrast | None = None) -> Estimate:
    """Mean of ``values[seed]`` with its 95% interval (`mean_interval`).

    >>> estimate([1.0, 2.0, 3.0]).mean
    2.0
    """
    found, numbers = mean_interval(values), np.asarray(values, dtype=np.float64)
    few = tuple(numbers.tolist()) if 1 < numbers.size < FEWEST_SEEDS else ()
    return Estimate(float(found.mean), float(found.low), float(found.high), gain, few)


def contrast(first: ArrayLike, second: ArrayLike, seeds: Sequence[int] | None = None) -> Contrast:
    """Paired t test of ``first[seed] - second[seed]``, runs on common random numbers.

    ``seeds`` says which these are, from 0 on if left out. A NaN on either side makes the result
    NaN: to drop the pair would hide that a run failed.

    >>> contrast([0.9, 0.8], [0.9, 0.8])
    Contrast(mean=0.0, low=0.0, high=0.0, p=1.0, pairs=2, method='paired t test')
    """
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if one.ndim != 1 or one.shape != other.shape:
        raise ValueError(f"a pair takes one number of each per seed: {one.shape}, {other.shape}")
    pairs = one.size
    if pairs == 0:
        return Contrast(math.nan, math.nan, math.nan, math.nan, 0)
    with np.errstate(invalid="ignore"):  # inf - inf is NaN
        gaps = one - other
    mean, error, half = (float(x) for x in _mean_error_half(gaps, 1 - LEVELS[0]))
    if error == 0:  # no spread: t is infinite, or 0/0 where the two never differ
        p = 1.0 if mean == 0 else 0.0
    else:
        p = float(2 * scipy.special.stdtr(pairs - 1, -abs(mean / error)))
    by_seed = dict(zip(range(pairs) if seeds is None else seeds, gaps.tolist(), strict=True))
    return Contrast(mean, mean - half, mean + half, p, pairs, gaps=by_seed)


def correct(contrasts: Sequence[Contrast]) -> list[Contrast]:
    """The contrasts with limits and p-values that hold for all of them together.

    By single-step max-t if all have the same seeds, at least 20, so that the correlation of the
    tests can be estimated; else by Bonferroni. A NaN, a test that could not be made, does not
    count, and one test stays what it is.

    >>> both = correct([contrast([1, 2, 3], [0, 0, 0]), contrast([1, 1], [1, 1])])
    >>> [(round(each.p, 3), each.method) for each in both]
    [(0.148, 'Bonferroni'), (1.0, 'Bonferroni')]
    """
    made = [each for each in contrasts if not math.isnan(each.p)]
    if len(made) < 2:
        return list(contrasts)
    alone, seeds = np.array([each.p for each in made]), made[0].gaps.keys()
    method: _Method = "Bonferroni"
    joint, level = np.minimum(len(made) * alone, 1.0), LEVELS[0] / len(made)
    if len(seeds) >= _CORRELATED_SEEDS and all(each.gaps.keys() == seeds for each in made):
        gaps = np.array([[each.gaps[seed] for each in made] for seed in seeds])
        method, (joint, level) = "max-t", _max_t(alone, gaps)
    p_values = iter(joint.tolist())
    judged = []
    for each in contrasts:
        if not math.isnan(each.p):
            t = scipy.special.stdtrit(each.pairs - 1, 1 - np.array([level, LEVELS[0]]) / 2)
            half = float(t[0] / t[1]) * (each.high - each.mean)
            low, high, p = each.mean - half, each.mean + half, next(p_values)
            each = replace(each, low=low, high=high, p=p, method=method)
        judged.append(each)
    return judged


def _max_t(
    p_values: NDArray[np.float64], gaps: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """The chance that any test of ``gaps[seed, test]`` has so small a p-value if none is true.

    With it, the level at which each test is made so that this chance is 5%. Each t has Student's
    distribution and all have the correlation of the gaps, by way of normal numbers: a multivariate
    t has one variance for all tests, and with few seeds finds too much.
    """
    apart = gaps - gaps.mean(axis=0)
    length = np.sqrt((apart**2).sum(axis=0))
    apart = np.divide(apart, length, out=np.zeros_like(apart), where=length > 0)
    rng = Streams(0).own("max-t")  # the same draws, so the same numbers, for every family
    drawn = [
        np.abs(rng.standard_normal((_AT_ONCE, len(gaps))) @ apart).max(axis=1)
        for _ in range(_DRAWS // _AT_ONCE)
    ]
    largest = np.sort(np.concatenate(drawn))
    below = np.searchsorted(largest, -scipy.special.ndtri(p_values / 2))
    critical = largest[round((1 - LEVELS[0]) * _DRAWS)]
    level = 2 * float(scipy.special.ndtr(-critical))
    return np.maximum(1 - below / _DRAWS, p_values), min(level, LEVELS[0])


def correlation(x: ArrayLike, y: ArrayLike) -> Contrast:
    """Pearson's correlation of two lists that vary, at least three long, against none; no limits.

    >>> found = correlation([1, 2, 3, 4], [1, 3, 2, 5])
    >>> round(found.mean, 3), round(found.p, 3)
    (0.832, 0.168)
    """
    r = float(np.clip(np.corrcoef(np.asarray(x), np.asarray(y))[0, 1], -1.0, 1.0))
    freedom = np.size(x) - 2
    t = math.inf if abs(r) == 1 else abs(r) * math.sqrt(freedom / (1 - r * r))
    p = float(2 * scipy.special.stdtr(freedom, -t))
    return Contrast(r, math.nan, math.nan, p, np.size(x))


def time_to_target(
    accuracy: ArrayLike,
    target: float,
    confidence: float = 0.95,
    *,
    cost: ArrayLike | None = None,
    horizon: float | None = None,
) -> TimeToTarget:
    """How many rounds it takes until the accuracy is first at least ``target``.

    ``accuracy[seed, round]`` is NaN where it was not evaluated; a run that never reaches the
    target is right-censored at its last evaluation, so that it counts as slow and not as absent.
    The median, its limits (from the log-log band) and the restricted mean (the mean of the time
    or the horizon, whichever is less) are those of the Kaplan-Meier curve.

    ``cost[seed, round]`` (or ``[round]``) is the cost to the end of each round, say in seconds;
    left out, it is the number of rounds.
    ``horizon`` ends the watch early: restricted means compare only up to the same horizon. Left
    out, it is where the watch ends by itself.

    >>> slow = time_to_target([[0.5, 0.9, 0.8], [0.6, 0.7, 0.9], [0.1, 0.2, 0.3]], target=0.9)
    >>> slow.times, slow.median, slow.horizon
    (array([ 2.,  3., nan]), 3.0, 3.0)
    """
    _check_confidence(confidence)
    values = np.asarray(accuracy, dtype=np.float64)
    if values.ndim != 2 or values.size == 0 or np.isnan(values).all(axis=1).any():
        raise ValueError("accuracy must be [seed, round], with an evaluation in each run")
    spent = np.arange(1.0, values.shape[1] + 1.0) if cost is None else cost
    costs = np.broadcast_to(np.asarray(spent, dtype=np.float64), values.shape)
    if not (np.isfinite(costs).all() and (np.diff(costs, axis=1, prepend=0.0) >= 0).all()):
        raise ValueError("cost must be finite, not negative and must not fall")
    hits = values >= real_number("target", target)
    reached = hits.any(axis=1)
    watched = np.where(np.isnan(values), 0.0, costs).max(axis=1)  # until the last evaluation
    times = np.where(reached, costs[np.arange(len(values)), hits.argmax(axis=1)], watched)
    if horizon is not None:
        reached &= times <= real_number("horizon", horizon)
        times = np.minimum(times, horizon)
    ends, curve, low, high = _kaplan_meier(times, np.asarray(reached), confidence)
    # Past the last time the curve is not known, unless no run was left.
    known = float(times.max()) if curve[-1] > 0 else math.inf
    if horizon is None:
        horizon = min(known, float(watched.max()))
    if not 0 <= horizon <= known:
        raise ValueError(f"horizon must be from 0 to the last evaluation, {known:g}: {horizon:g}")
    widths = np.diff(ends, prepend=0.0, append=horizon)
    heights = np.concatenate([[1.0], curve])
    return TimeToTarget(
        times=np.where(reached, times, math.nan),
        reached=int(reached.sum()),
        runs=len(values),
        median=_falls_to_half(ends, curve),
        low=_falls_to_half(ends, low),
        high=_falls_to_half(ends, high),
        restricted_mean=float(widths @ heights),
        horizon=float(horizon),
    )


def accuracy_at(accuracy: ArrayLike, cost: ArrayLike, at: ArrayLike) -> NDArray[np.float64]:
    """``[seed, point]``: the accuracy of each run when it had cost as much as each point ``at``.

    ``accuracy[seed, round]`` is NaN where it was not evaluated, and ``cost[seed, round]`` is that
    to the end of each round. Nothing is extrapolated: NaN before the first evaluation, and beyond
    the end of a run.

    >>> accuracy_at([[0.5, 0.7, 0.9]], [[2.0, 4.0, 8.0]], [1.0, 5.0, 8.0, 9.0])
    array([[nan, 0.7, 0.9, nan]])
    """
    measured, costs = np.asarray(accuracy, np.float64), np.asarray(cost, np.float64)
    found = np.full((len(measured), np.size(at)), math.nan)
    for row, (run, spent) in enumerate(zip(measured, costs, strict=True)):
        known = np.flatnonzero(~np.isnan(run))
        last = np.searchsorted(spent[known], at, side="right") - 1
        inside = (last >= 0) & (np.asarray(at) <= spent[-1])
        found[row, inside] = run[known][last[inside]]
    return found


def jain(shares: ArrayLike) -> float | NDArray[np.float64]:
    """Jain's fairness index of ``shares[..., ue]``: 1 if all are equal, 1/n if one UE has all.

    NaN where all shares are 0.

    >>> jain([1, 1, 0, 0])
    0.5
    """
    array = np.asarray(shares, dtype=np.float64)
    if array.ndim == 0 or (array < 0).any():
        raise ValueError("shares must be non-negative numbers, one per UE")
    with np.errstate(invalid="ignore"):
        index = np.asarray(array.sum(-1) ** 2 / (array.shape[-1] * (array**2).sum(-1)))
    return index if index.ndim else float(index)


def age_statistics(ages: ArrayLike) -> AgeStatistics:
    """The mean, 95th percentile, largest and mean peak of ``ages[round, ue]`` after each round.

    All ages are 0 before the first round.

    >>> age_statistics([[0, 1], [1, 2], [0, 0]])
    AgeStatistics(mean=0.6666666666666666, percentile_95=1.75, largest=2.0, mean_peak=1.0)
    """
    array = np.asarray(ages, dtype=np.float64)
    if array.ndim != 2 or array.size == 0:
        raise ValueError(f"ages must be [round, ue] and not empty, not shape {array.shape}")
    before = np.concatenate([np.zeros_like(array[:1]), array[:-1]])
    peaks = before[array == 0]  # an age of 0 after a round says that it was set back in it
    return AgeStatistics(
        mean=float(array.mean()),
        percentile_95=float(np.percentile(array, 95)),
        largest=float(array.max()),
        mean_peak=float(peaks.mean()) if peaks.size else math.nan,
    )


def _check_confidence(confidence: float) -> None:
    if not 0 < real_number("confidence", confidence) < 1:
        raise ValueError(f"confidence must be between 0 and 1, not {confidence:g}")


def _mean_error_half(
    array: NDArray[np.float64], confidence: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The mean over axis 0, its standard error and half the width of its interval."""
    _check_confidence(confidence)
    count = len(array)
    finite = np.where(np.isfinite(array), array, math.nan)
    shifted = finite - finite[0]  # so that equal values have exactly no spread
    mean = np.asarray(finite[0] + shifted.mean(axis=0))
    if count == 1:
        return mean, np.full_like(mean, math.nan), np.full_like(mean, math.nan)
    error = np.asarray(shifted.std(axis=0, ddof=1) / math.sqrt(count))
    return mean, error, np.asarray(scipy.special.stdtrit(count - 1, (1 + confidence) / 2) * error)


def _kaplan_meier(
    times: NDArray[np.float64], reached: NDArray[np.bool_], confidence: float
) -> tuple[NDArray[np.float64], ...]:
    """The times at which runs ended, the share not there yet by then, and its log-log band.

    ``scipy.stats`` has the same, but takes half a second to import.
    """
    ends, place, count = np.unique(times, return_inverse=True, return_counts=True)
    arrived = np.bincount(place, weights=reached, minlength=ends.size)
    watched = count[::-1].cumsum()[::-1]  # runs that had not ended before
    curve = np.cumprod((watched - arrived) / watched)
    with np.errstate(divide="ignore", invalid="ignore"):  # no limits where the curve is 1 or 0
        greenwood = np.cumsum(arrived / (watched * (watched - arrived)))
        error = scipy.special.ndtri((1 + confidence) / 2) * np.sqrt(greenwood / np.log(curve) ** 2)
        middle = np.log(-np.log(curve))
    return ends, curve, np.exp(-np.exp(middle + error)), np.exp(-np.exp(middle - error))


def _falls_to_half(times: NDArray[np.float64], curve: NDArray[np.float64]) -> float:
    """The first time at which the curve is at most one half; NaN if it never is."""
    # A product such as 5/6 * 4/5 * 3/4 may end one rounding error above one half.
    low = np.flatnonzero(curve <= 0.5 + 1e-9)
    return float(times[low[0]]) if low.size else math.nan
