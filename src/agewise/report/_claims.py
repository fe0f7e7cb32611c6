"""The paper's three claims, judged on paired runs, and what differs on the same models."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from agewise.experiment import LearningCurve, Result, RunMetrics
from agewise.files import read_verified_json
from agewise.policies import AgeBased, MaxPack
from agewise.statistics import AXES, Axis, Contrast, Estimate, contrast, correlation
from agewise.tables import Column, Flat, Line, Row, Table
from agewise.tables._words import at_text, estimate_text, not_shown, p_text, points_text, too_few

#: What was measured on the same models, in a results folder.
EXPLANATION = "explanation.json"
#: The paper says the gain is most pronounced "when the communication rounds are less than 40".
EARLY = 40
#: What is said of a claim that was shown, shown in part, and of which the contrary was shown.
HOLDS, IN_PART, REFUTED = "holds", "holds in part", "does not hold"
#: Which tests are behind the claims.
CLAIMS_NOTE = (
    "Claim 1 takes its p-values from the table of accuracies. Claims 2 and 3 are separate "
    "questions, each with a test of its own: all of its parts must be shown, so they are not "
    "corrected for each other."
)


def claims_note(axis: Axis) -> str:
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
    return judge(pair, row, read_verified_json(result.path / EXPLANATION), axis)


def judge(
    pair: Pair, row: Row, explained: Flat | None = None, axis: Axis = AXES["rounds"]
) -> list[Claim]:
    """The claims for age-based against max-pack with the same seeds and rule for ties.

    ``row`` is that of age-based in the table of the result, by whose gains the first claim is
    judged. The third is judged on the same models for both policies where they were ``explained``,
    and on each policy's own models otherwise.
    """
    return [_higher(row, axis), _early(pair), _diversity(pair, explained)]


def _judged(seeds: int, *, shown: Sequence[bool], refuted: Sequence[bool]) -> str:
    """The verdict on a claim of several parts: which of them, or of their contraries, were shown.

    That a part was not shown says nothing against it.

    >>> _judged(20, shown=[True, True], refuted=[False, False])
    'holds'
    >>> _judged(20, shown=[False, False], refuted=[False, False])
    'not shown with 20 seeds'
    >>> _judged(20, shown=[False, False], refuted=[True, False])
    'does not hold'
    """
    if few := too_few(seeds):
        return few
    if any(shown):
        return HOLDS if all(shown) else IN_PART
    return REFUTED if any(refuted) else not_shown(seeds)


def _higher(row: Row, axis: Axis) -> Claim:
    gains = row.gains
    evidence = ", ".join(
        f"{points_text(gain.mean)} points "
        f"{f'at round {at:g}' if axis.column is None else at_text(at, axis)}{_in_brackets(gain.p)}"
        for at, gain in gains.items()
    )
    verdict = _judged(
        min((gain.pairs for gain in gains.values()), default=row.seeds),
        shown=[gain.verdict == "better" for gain in gains.values()],
        refuted=[gain.verdict == "worse" for gain in gains.values()],
    )
    claim = "age-based (ABS) reaches a higher accuracy than max-pack"
    if axis.column is not None:
        claim += f" {axis.equal}"
    return Claim(claim, verdict, evidence or "nothing was measured at these points")


def _early(pair: Pair) -> Claim:
    claim, gain = f"the gain is most pronounced before round {EARLY}", pair.gain
    seeds, rounds = gain.shape
    if rounds <= EARLY:
        return Claim(claim, "cannot be judged", f"the runs have only {rounds} rounds")
    if np.isnan(gain[:, :EARLY]).all(axis=1).any():
        return Claim(claim, "cannot be judged", f"nothing was measured up to round {EARLY}")
    before, after = np.nanmean(gain[:, :EARLY], axis=1), np.nanmean(gain[:, EARLY:], axis=1)
    early, more = contrast(before, np.zeros_like(before)), contrast(before, after)
    evidence = (
        f"mean gain {points_text(before.mean())} points up to round {EARLY}{_in_brackets(early.p)} "
        f"and {points_text(after.mean())} after; difference {points_text(more.mean)}"
        f"{_in_brackets(more.p)}"
    )
    # There must be a gain, and more of it than later: both have to be shown, which makes one test
    # of the two (intersection and union) without a correction.
    verdicts = [early.verdict, more.verdict]
    shown, refuted = verdicts == ["better", "better"], [each == "worse" for each in verdicts]
    return Claim(claim, _judged(seeds, shown=[shown], refuted=refuted), evidence)


def _diversity(pair: Pair, explained: Flat | None) -> Claim:
    """Explained means: the updates are more diverse, and runs that gain more are so by more.

    The spread (diversity times the number of updates) is judged, because the diversity itself
    falls with the number of updates, and max-pack collects more; or the diversity on the same
    models, where that was measured.
    """
    first, second = pair.metrics
    wider, gain = first.spread - second.spread, np.nanmean(pair.gain, axis=1)
    more = contrast(first.spread, second.spread)
    evidence = (
        f"on their own models, diversity {first.diversity.mean():.2f} against "
        f"{second.diversity.mean():.2f}"
        f"{_in_brackets(contrast(first.diversity, second.diversity).p)}; times the number of "
        f"updates {first.spread.mean():.1f} against {second.spread.mean():.1f}"
        f"{_in_brackets(more.p)}"
    )
    if explained is not None:
        row = next(row for row in explained["rows"] if row["measure"] == "diversity")
        found = (row[f"difference{end}"] for end in ("", "_low", "_high", "_p"))
        mean, low, high, p = (float("nan") if each is None else float(each) for each in found)
        more = Contrast(mean, low, high, p, pairs=explained["seeds"])
        evidence = (
            f"on the same models the diversity of what is heard is {row['age_based']:.2f} against "
            f"{row['max_pack']:.2f}{_in_brackets(more.p)}"
        )
    linked = opposed = False
    if gain.size > 2 and min(gain.std(), wider.std()) > 1e-9:
        r, p = correlation(wider, gain)
        linked, opposed = p < 0.05 and r > 0, p < 0.05 and r < 0
        evidence += f"; correlation with the gain over seeds {r:+.2f}{_in_brackets(p)}"
    verdict = _judged(
        more.pairs,
        shown=[more.verdict == "better", linked],
        refuted=[more.verdict == "worse", opposed],
    )
    return Claim("gradient diversity explains the gain", verdict, evidence)


def _in_brackets(p: float) -> str:
    """The p-value behind a number; nothing if there was no test."""
    return f" ({p_text(p)})" if p_text(p) else ""


def explanation_table(rows: Sequence[Flat]) -> Table:
    """What both policies hear on the same models, and the paired difference."""
    columns = [
        Column("measure", kind="words"),
        Column("age-based", ".2f"),
        Column("max-pack", ".2f"),
        Column("difference"),
    ]
    note = (
        "What both policies hear, compared on the same models; intervals are 95%, and p-values "
        "are corrected (Holm) for all of the table."
    )
    lines = []
    for row in rows:
        numbers = {name: math.nan if x is None else x for name, x in row.items()}
        mean, low, high, p = (numbers[f"difference{end}"] for end in ("", "_low", "_high", "_p"))
        said = [estimate_text(Estimate(mean, low, high), ".2f", 1.0), p_text(p)]
        difference = [Line(text) for text in said if text]
        lines.append([str(row["label"]), numbers["age_based"], numbers["max_pack"], difference])
    return Table("How the two policies differ in each measure", columns, lines, note)
