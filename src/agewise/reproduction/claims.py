"""The paper's three claims, judged on paired runs."""

from dataclasses import dataclass

import numpy as np

from agewise import statistics
from agewise.experiment import Measured, checkpoints

#: The paper says the gain is most pronounced "when the communication rounds are less than 40".
EARLY = 40
LEVEL = 0.05


@dataclass(frozen=True)
class Claim:
    """What the paper says, whether it holds here, and the numbers that say so."""

    claim: str
    verdict: str
    evidence: str


def judge(age_based: Measured, max_pack: Measured, rounds: int) -> list[Claim]:
    """The claims for ABS against MaxPack with the same seeds and rule for ties."""
    return [
        _higher(age_based, max_pack, rounds),
        _early(age_based, max_pack, rounds),
        _diversity(age_based, max_pack),
    ]


def _higher(age_based: Measured, max_pack: Measured, rounds: int) -> Claim:
    points = checkpoints(rounds)
    gains = [
        statistics.paired_difference(age_based.at(point), max_pack.at(point)) for point in points
    ]
    corrected = statistics.holm([gain.p_value for gain in gains])
    better = [p < LEVEL and g.difference > 0 for g, p in zip(gains, corrected, strict=True)]
    worse = [p < LEVEL and g.difference < 0 for g, p in zip(gains, corrected, strict=True)]
    if all(better):
        verdict = "holds"
    elif any(worse):
        verdict = "does not hold" if not any(better) else "holds in part"
    else:
        verdict = "holds in part" if any(better) else "does not hold"
    told = ", ".join(
        f"{100 * g.difference:+.1f} points at round {point} ({_p(p)})"
        for point, g, p in zip(points, gains, corrected, strict=True)
    )
    return Claim("ABS reaches a higher accuracy than MaxPack", verdict, told)


def _early(age_based: Measured, max_pack: Measured, rounds: int) -> Claim:
    claim = f"the gain is most pronounced before round {EARLY}"
    if rounds <= EARLY:
        return Claim(claim, "cannot be judged", f"the runs have only {rounds} rounds")
    gain = age_based.accuracy - max_pack.accuracy
    before, after = np.nanmean(gain[:, :EARLY], axis=1), np.nanmean(gain[:, EARLY:], axis=1)
    paired = statistics.paired_difference(before, after)
    told = (
        f"mean gain {100 * before.mean():+.1f} points up to round {EARLY} and "
        f"{100 * after.mean():+.1f} after ({_p(paired.p_value)})"
    )
    if paired.p_value < LEVEL and before.mean() > 0:
        return Claim(claim, "holds" if paired.difference > 0 else "does not hold", told)
    return Claim(claim, "does not hold", told)


def _diversity(age_based: Measured, max_pack: Measured) -> Claim:
    """Explained means: ABS's updates are more diverse, and runs that gain more are so by more.

    The spread (diversity times the number of updates) is judged, because the diversity itself
    falls with the number of updates, and MaxPack collects more.
    """
    from scipy import stats

    claim = "gradient diversity explains the gain"
    raw = statistics.paired_difference(age_based.diversity, max_pack.diversity)
    spread = statistics.paired_difference(age_based.spread, max_pack.spread)
    gain = np.nanmean(age_based.accuracy - max_pack.accuracy, axis=1)
    wider = age_based.spread - max_pack.spread
    told = (
        f"diversity {age_based.diversity.mean():.2f} against {max_pack.diversity.mean():.2f} "
        f"({_p(raw.p_value)}); times the number of updates {age_based.spread.mean():.1f} against "
        f"{max_pack.spread.mean():.1f} ({_p(spread.p_value)})"
    )
    linked = False
    if gain.size > 2 and min(gain.std(), wider.std()) > 1e-9:
        link = stats.pearsonr(wider, gain)
        linked = bool(link.pvalue < LEVEL and link.statistic > 0)
        told += f"; correlation with the gain over seeds {link.statistic:+.2f} ({_p(link.pvalue)})"
    higher = spread.p_value < LEVEL and spread.difference > 0
    verdict = (
        "holds" if higher and linked else "holds in part" if higher or linked else "does not hold"
    )
    return Claim(claim, verdict, told)


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"
