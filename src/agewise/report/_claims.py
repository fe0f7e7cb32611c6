"""The paper's three claims, judged on paired runs; the third in two readings."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from agewise.experiment import LearningCurve, Result, RunMetrics
from agewise.policies import AgeBased, MaxPack
from agewise.statistics import AXES, Axis, Contrast, Verdict, contrast, correlation
from agewise.tables import Explanation, Row
from agewise.tables._words import (
    at_text,
    judged_text,
    not_shown,
    points_text,
    signed_text,
    too_few,
)

#: The paper says the gain is most pronounced "when the communication rounds are less than 40".
EARLY = 40
#: What is said of a claim that was shown, shown in part, and of which the contrary was shown.
HOLDS, IN_PART, REFUTED = "holds", "holds in part", "does not hold"
#: What is said of a claim that was not measured.
UNJUDGED = "cannot be judged"
#: Which tests are behind the claims.
CLAIMS_NOTE = (
    "Claim 1 takes its p-values from the table of accuracies. The others are separate questions, 3 "
    "and 4 two readings of what the paper says of diversity: all parts of each must be shown, so "
    "they are not corrected for each other."
)


def claims_note(axis: Axis) -> str:
    """Which tests are behind the claims, and what is judged over another axis than rounds."""
    if axis.column is None:
        return CLAIMS_NOTE
    return (
        f"Claim 1 is judged {axis.equal}; the others are about rounds, as in the paper. "
        f"{CLAIMS_NOTE}"
    )


@dataclass(frozen=True)
class Claim:
    """What the paper says, whether it holds here, and the numbers that say so."""

    claim: str
    verdict: str
    evidence: str


@dataclass(frozen=True, eq=False)
class Pair:
    """Age-based and max-pack on the same seeds: their learning curves and metrics."""

    curves: Sequence[LearningCurve]
    metrics: Sequence[RunMetrics]

    @property
    def gain(self) -> NDArray[np.float64]:
        """``[seed, round]`` of accuracy."""
        age_based, max_pack = self.curves
        return age_based.accuracy - max_pack.accuracy


def claims_of(
    result: Result, axis: Axis = AXES["rounds"], at: Sequence[float] | None = None
) -> list[Claim]:
    """The claims, where the two policies that they are about finished seeds in common.

    They are about one scenario: a sweep has none. The first is judged at the points of
    ``result.table(axis, at)``.
    """
    both = [AgeBased().key, MaxPack().key]
    if result.variations != [{}] or not set(both) <= set(result.policies):
        return []
    aged, packed = (result.histories(policy) for policy in both)
    common = [seed for seed in aged if seed in packed]
    if not common:
        return []
    runs = [{seed: histories[seed] for seed in common} for histories in (aged, packed)]
    pair = Pair([LearningCurve.of(each) for each in runs], [RunMetrics.of(each) for each in runs])
    if np.isnan(pair.gain).all(axis=1).any():
        return []  # a policy in the shadow of a live one trained nothing
    against = result if result.baseline == both[1] else replace(result, baseline=both[1])
    row = next(row for row in against.table(axis, at).rows if row.policy == both[0])
    explained = Explanation.read(result.path)
    if explained and [explained.rival, explained.baseline] != list(map(str, both)):
        explained = None
    return judge(pair, row, explained, axis)


def judge(
    pair: Pair, row: Row, explained: Explanation | None = None, axis: Axis = AXES["rounds"]
) -> list[Claim]:
    """The claims for age-based against max-pack with the same seeds and rule for ties.

    ``row`` is that of age-based in the table of the result, by whose gains the first claim is
    judged. The paper's third is judged in both readings, the second only if the gain was
    ``explained``.
    """
    return [_higher(row, axis), _early(pair), _diversity(pair), _coverage(pair, explained)]


def _judged(seeds: int, parts: Sequence[Verdict], *, all_needed: bool = False) -> str:
    """The verdict on a claim of several parts, of which it may need all.

    That a part was not shown says nothing against it.

    >>> _judged(20, ["better", "better"]), _judged(20, ["better", "not shown"])
    ('holds', 'holds in part')
    >>> _judged(20, ["better", "worse"], all_needed=True), _judged(20, ["not shown"])
    ('does not hold', 'not shown with 20 seeds')
    """
    if few := too_few(seeds):
        return few
    if "better" in parts and (set(parts) == {"better"} or not all_needed):
        return HOLDS if set(parts) == {"better"} else IN_PART
    return REFUTED if "worse" in parts else not_shown(seeds)


def _higher(row: Row, axis: Axis) -> Claim:
    gains = row.gains
    evidence = ", ".join(
        f"{points_text(gain.mean)} points "
        f"{f'at round {at:g}' if axis.column is None else at_text(at, axis)}{_in_brackets(gain)}"
        for at, gain in gains.items()
    )
    claim = "age-based (ABS) reaches a higher accuracy than max-pack"
    if axis.column is not None:
        claim += f" {axis.equal}"
    parts = [gain.verdict for gain in gains.values()]
    seeds = min((gain.pairs for gain in gains.values()), default=row.seeds)
    return Claim(claim, _judged(seeds, parts), evidence or "nothing was measured at these points")


def _early(pair: Pair) -> Claim:
    claim, gain = f"the gain is most pronounced before round {EARLY}", pair.gain
    seeds, rounds = gain.shape
    if rounds <= EARLY:
        return Claim(claim, UNJUDGED, f"the runs have only {rounds} rounds")
    if np.isnan(gain[:, :EARLY]).all(axis=1).any():
        return Claim(claim, UNJUDGED, f"nothing was measured up to round {EARLY}")
    before, after = np.nanmean(gain[:, :EARLY], axis=1), np.nanmean(gain[:, EARLY:], axis=1)
    early, more = contrast(before, np.zeros_like(before)), contrast(before, after)
    evidence = (
        f"mean gain {points_text(early.mean)} points up to round {EARLY}{_in_brackets(early)} "
        f"and {points_text(after.mean())} after; difference {points_text(more.mean)}"
        f"{_in_brackets(more)}"
    )
    # There must be a gain, and more of it than later: both have to be shown, which makes one test
    # of the two (intersection and union) without a correction.
    verdict = _judged(seeds, [early.verdict, more.verdict], all_needed=True)
    return Claim(claim, verdict, evidence)


def _diversity(pair: Pair) -> Claim:
    """Explained means: the updates of a round are more diverse, and more so in runs that gain.

    The spread (diversity times the number of updates) is judged, because the diversity itself falls
    with the number of updates, and max-pack collects more.
    """
    first, second = pair.metrics
    more, gain = contrast(first.spread, second.spread), np.nanmean(pair.gain, axis=1)
    wider = first.spread - second.spread
    parts = [more.verdict]
    evidence = (
        f"each on its own models, the diversity is {first.diversity.mean():.2f} against "
        f"{second.diversity.mean():.2f}; times the number of updates {first.spread.mean():.1f} "
        f"against {second.spread.mean():.1f}{_in_brackets(more)}"
    )
    if gain.size > 2 and min(gain.std(), wider.std()) > 1e-9:
        linked = correlation(wider, gain)
        parts.append(linked.verdict)
        evidence += (
            f"; correlation with the gain over seeds {signed_text(linked.mean, 2)}"
            f"{_in_brackets(linked)}"
        )
    else:
        parts.append("not shown")
    claim = "gradient diversity within a round explains the gain"
    return Claim(claim, _judged(more.pairs, parts, all_needed=True), evidence)


def _coverage(pair: Pair, explained: Explanation | None) -> Claim:
    """Contributes means: more UEs are heard, and to hear all of them evenly is worth something."""
    claim = "gradient diversity, as coverage over rounds, contributes to the gain"
    first, second = (each.distinct_ues for each in pair.metrics)
    wider = contrast(first, second)
    many, others = (f"{each.mean():.1f}".removesuffix(".0") for each in (first, second))
    evidence = f"{many} phones are heard against {others}{_in_brackets(wider)}"
    if explained is None:
        return Claim(claim, UNJUDGED, f"{evidence}; agewise explain measures what that is worth")
    worth = explained.coverage
    evidence += f"; coverage is worth {points_text(worth.mean)} points{_in_brackets(worth)}"
    seeds = min(wider.pairs, worth.pairs)
    return Claim(claim, _judged(seeds, [wider.verdict, worth.verdict], all_needed=True), evidence)


def _in_brackets(gain: Contrast) -> str:
    """The p-value behind a number; nothing with too few seeds."""
    return f" ({judged_text(gain)})" if judged_text(gain) else ""
