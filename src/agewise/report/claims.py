"""The paper's three claims, judged on paired runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats

from agewise import statistics
from agewise.experiment import Measured, Result
from agewise.files import read_sealed
from agewise.policies import AgeBased, MaxPack
from agewise.report.amounts import at_text
from agewise.report.text import (
    claim_text,
    is_sure,
    p_text,
    points_text,
)
from agewise.report.verdict import at_point, known_gains

#: The paper says the gain is most pronounced "when the communication rounds are less than 40".
EARLY = 40
_DIVERSITY = "gradient diversity explains the gain"
#: Which tests are behind the claims.
CLAIMS_NOTE = (
    "Claim 1 takes its p-values from the table of accuracies. Claims 2 and 3 are separate "
    "questions, each with a test of its own: all of its parts must be shown, so they are not "
    "corrected for each other."
)


def claims_note(axis: statistics.Axis) -> str:
    """Which tests are behind the claims, and what is judged over another axis than rounds."""
    if axis.column is None:
        return CLAIMS_NOTE
    return (
        f"Claim 1 is judged {axis.equal}; claims 2 and 3 are about rounds, as in the paper. "
        f"{CLAIMS_NOTE}"
    )


@dataclass(frozen=True)
class Claim:
    """What the paper says, whether it holds here, and the numbers that say so."""

    claim: str
    verdict: str
    evidence: str


def claims_of(
    result: Result,
    axis: statistics.Axis = statistics.AXES["rounds"],
    points: Sequence[float] | None = None,
) -> list[Claim]:
    """The claims, where the two policies that they are about finished seeds in common.

    They are about one scenario: a sweep has none. The first is judged at the ``points`` of the
    ``axis``, as in ``result.table(axis, points)``.
    """
    both = [AgeBased().key, MaxPack().key]
    if result.variations != [{}] or not set(both) <= set(result.policies):
        return []
    aged, packed = (result.histories(policy) for policy in both)
    common = [seed for seed in aged if seed in packed]
    if not common:
        return []
    age_based, max_pack = (
        Measured.of({seed: histories[seed] for seed in common}) for histories in (aged, packed)
    )
    if np.isnan(age_based.accuracy - max_pack.accuracy).all(axis=1).any():
        return []  # a policy in the shadow of a live one trained nothing
    against = result if result.baseline == both[1] else replace(result, baseline=both[1])
    tests = next(
        row for row in against.table(axis, points).to_dicts() if row["policy"] == str(both[0])
    )
    explained = read_sealed(result.path / "explanation.json")
    rounds = result.scenario.run.rounds
    return judge(age_based, max_pack, tests, rounds, explained, axis)


def judge(
    age_based: Measured,
    max_pack: Measured,
    tests: Mapping[str, Any],
    rounds: int,
    explained: Mapping[str, Any] | None = None,
    axis: statistics.Axis = statistics.AXES["rounds"],
) -> list[Claim]:
    """The claims for age-based against max-pack with the same seeds and rule for ties.

    ``tests`` is the row of age-based in the table of the result, whose gains and p-values the
    first claim is judged by, at its points of the ``axis``. The third is judged on the same models
    for both policies where they were ``explained``, and on each policy's own models otherwise.
    """
    return [
        _higher(tests, len(age_based.seeds), axis),
        _early(age_based, max_pack, rounds),
        _diversity(age_based, max_pack, explained),
    ]


def _higher(tests: Mapping[str, Any], seeds: int, axis: statistics.Axis) -> Claim:
    row = dict(tests)
    gains = known_gains(row)
    p_values = {at: at_point(row, "p", at) for at in gains}
    better = [is_sure(p_values[at]) and gain > 0 for at, gain in gains.items()]
    worse = [is_sure(p_values[at]) and gain < 0 for at, gain in gains.items()]
    evidence = ", ".join(
        f"{points_text(gain)} points {_where(at, axis)}{_in_brackets(p_values[at])}"
        for at, gain in gains.items()
    )
    verdict = claim_text(seeds, shown=better, refuted=worse)
    claim = "age-based (ABS) reaches a higher accuracy than max-pack"
    if axis.column is not None:
        claim += f" {axis.equal}"
    return Claim(claim, verdict, evidence or "nothing was measured at these points")


def _where(point: float, axis: statistics.Axis) -> str:
    return f"at round {point:g}" if axis.column is None else at_text(point, axis)


def _early(age_based: Measured, max_pack: Measured, rounds: int) -> Claim:
    claim = f"the gain is most pronounced before round {EARLY}"
    if rounds <= EARLY:
        return Claim(claim, "cannot be judged", f"the runs have only {rounds} rounds")
    gain = age_based.accuracy - max_pack.accuracy
    if np.isnan(gain[:, :EARLY]).all(axis=1).any():
        return Claim(claim, "cannot be judged", f"nothing was measured up to round {EARLY}")
    before, after = np.nanmean(gain[:, :EARLY], axis=1), np.nanmean(gain[:, EARLY:], axis=1)
    paired = statistics.paired_difference(before, after)
    early = statistics.paired_difference(before, np.zeros_like(before))
    p_more, p_early = paired.p_value, early.p_value
    evidence = (
        f"mean gain {points_text(before.mean())} points up to round {EARLY}{_in_brackets(p_early)} "
        f"and {points_text(after.mean())} after; difference {points_text(paired.difference)}"
        f"{_in_brackets(p_more)}"
    )
    # There must be a gain, and more of it than later: both have to be shown, which makes one test
    # of the two (intersection and union) without a correction.
    shown = is_sure(p_early) and early.difference > 0 and is_sure(p_more) and paired.difference > 0
    no_gain = is_sure(p_early) and early.difference < 0
    later = is_sure(p_more) and paired.difference < 0
    seeds = len(age_based.seeds)
    return Claim(claim, claim_text(seeds, shown=[shown], refuted=[no_gain, later]), evidence)


def _diversity(
    age_based: Measured, max_pack: Measured, explained: Mapping[str, Any] | None
) -> Claim:
    """Explained means: the updates are more diverse, and runs that gain more are so by more.

    The spread (diversity times the number of updates) is judged, because the diversity itself
    falls with the number of updates, and max-pack collects more; or the diversity on the same
    models, where that was measured.
    """
    diversity = statistics.paired_difference(age_based.diversity, max_pack.diversity)
    spread = statistics.paired_difference(age_based.spread, max_pack.spread)
    gain = np.nanmean(age_based.accuracy - max_pack.accuracy, axis=1)
    wider = age_based.spread - max_pack.spread
    seeds, more, p_more = len(age_based.seeds), spread.difference, spread.p_value
    evidence = (
        f"on their own models, diversity {age_based.diversity.mean():.2f} against "
        f"{max_pack.diversity.mean():.2f}"
        f"{_in_brackets(diversity.p_value)}; times the number of updates "
        f"{age_based.spread.mean():.1f} against {max_pack.spread.mean():.1f}"
        f"{_in_brackets(spread.p_value)}"
    )
    if explained is not None:
        row = next(row for row in explained["rows"] if row["measure"] == "diversity")
        seeds, more, p_more = explained["seeds"], row["difference"], row["difference_p"]
        aged, packed = (
            (row[f"{policy}@age_based"] + row[f"{policy}@max_pack"]) / 2
            for policy in ("age_based", "max_pack")
        )
        evidence = (
            f"on the same models the diversity of what is heard is {aged:.2f} against {packed:.2f}"
            f"{_in_brackets(p_more)}"
        )
    linked = opposed = False
    if gain.size > 2 and min(gain.std(), wider.std()) > 1e-9:
        link = stats.pearsonr(wider, gain)
        linked = is_sure(link.pvalue) and link.statistic > 0
        opposed = is_sure(link.pvalue) and link.statistic < 0
        evidence += f"; correlation with the gain over seeds {link.statistic:+.2f}"
        evidence += _in_brackets(link.pvalue)
    higher, lower = is_sure(p_more) and more > 0, is_sure(p_more) and more < 0
    verdict = claim_text(seeds, shown=[higher, linked], refuted=[lower, opposed])
    return Claim(_DIVERSITY, verdict, evidence)


def _in_brackets(p: float | None) -> str:
    """The p-value behind a number; nothing if there was no test."""
    return f" ({p_text(p)})" if p_text(p) else ""
