"""Numbers and names as words: the same in every table, sentence and picture."""

import math
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath

from agewise.records import PolicyKey, Value
from agewise.statistics import FEWEST_SEEDS, LEVELS, Axis, Contrast, Estimate, TimeToTarget

#: What the stars mean.
STARS_NOTE = "* p < 0.05, ** p < 0.01, *** p < 0.001"
#: What stands in the place of a number that is not known.
NOTHING = "–"
#: By unit: from which number on which factor has which name.
_UNITS: Mapping[str, tuple[tuple[float, float, str], ...]] = {
    "s": ((0.01, 1.0, "s"), (0.0, 1e-3, "ms")),
    "J": ((1e4, 1e3, "kJ"), (0.01, 1.0, "J"), (0.0, 1e-3, "mJ")),
    "uses": ((1e9, 1e9, "billion uses"), (1e6, 1e6, "million uses"), (0.0, 1.0, "uses")),
    "bit": ((1e9, 1e9, "Gbit"), (1e6, 1e6, "Mbit"), (1e3, 1e3, "kbit"), (0.0, 1.0, "bit")),
}


# Numbers


def percent_text(share: float) -> str:
    """A share in percent, without the sign of percent.

    >>> percent_text(0.8567)
    '85.7'
    """
    return f"{100 * share:.1f}"


def signed_text(number: float, digits: int = 1) -> str:
    """A number with its sign, and with one more digit where it would be rounded to zero.

    >>> [signed_text(x) for x in (1.23, -0.045, 0.04, -0.0001, 0.0)]
    ['+1.2', '-0.04', '+0.04', '-0.00', '0.0']
    """
    if not float(f"{number:.{digits}f}"):
        digits += number != 0
    return f"{number:+.{digits}f}" if number else f"{0.0:.{digits}f}"


def points_text(gain: float) -> str:
    """A gain in accuracy in percentage points, with its sign.

    >>> points_text(0.0123), points_text(-0.0001)
    ('+1.2', '-0.01')
    """
    return signed_text(100 * gain)


def estimate_text(estimate: Estimate, form: str = ".1f", scale: float = 100.0) -> str:
    """A mean and half the width of its interval, in percent unless another scale is given.

    With fewer than five seeds the number of each stands in the place of the interval.

    >>> estimate_text(Estimate(0.1, 0.08, 0.12)), estimate_text(Estimate(0.1, math.nan, math.nan))
    ('10.0 ± 2.0', '10.0')
    >>> estimate_text(Estimate(0.1, -0.44, 0.64, few=(0.08, 0.12)))
    '10.0 (8.0, 12.0)'
    """
    if not estimate.known:
        return NOTHING
    text = f"{scale * estimate.mean:{form}}"
    if estimate.few:
        return f"{text} ({', '.join(f'{scale * each:{form}}' for each in estimate.few)})"
    half = scale * (estimate.high - estimate.low) / 2
    return f"{text} ± {half:{form}}" if math.isfinite(half) else text


def contrast_text(gain: Contrast, scale: float = 100.0, digits: int = 1) -> str:
    """A difference with its interval and p-value, in percentage points unless scaled otherwise.

    With fewer than five seeds the difference of each stands in their place.

    >>> contrast_text(Contrast(0.012, 0.001, 0.023, 0.0314, 20))
    '+1.2 (+0.1 to +2.3), p = 0.031'
    >>> contrast_text(Contrast(0.012, -0.7, 0.8, 0.4, 2, gaps={0: 0.0, 1: 0.024}))
    '+1.2 (0.0, +2.4)'
    """
    limits, test = limits_text(gain, scale, digits), judged_text(gain)
    text = signed_text(scale * gain.mean, digits) + (f" ({limits})" if limits else "")
    return f"{text}, {test}" if test else text


def limits_text(gain: Contrast, scale: float = 100.0, digits: int = 1) -> str:
    """The interval of a difference; with fewer than five seeds the difference of each."""
    if gain.pairs < 2 or not gain.known:
        return ""
    few = gain.verdict == "too few seeds"
    ends = [
        signed_text(scale * x, digits)
        for x in (gain.gaps.values() if few else (gain.low, gain.high))
    ]
    return (", " if few else " to ").join(ends)


def judged_text(gain: Contrast) -> str:
    """The p-value of a difference; nothing with too few seeds for a verdict."""
    return "" if gain.verdict == "too few seeds" else p_text(gain.p)


def starred(gain: Contrast | None) -> str:
    """A gain in percentage points with its stars.

    >>> starred(Contrast(0.012, 0.001, 0.023, 0.0314, 20)), starred(None)
    ('+1.2*', '–')
    """
    if gain is None or not gain.known:
        return NOTHING
    return points_text(gain.mean) + stars(gain)


def stars(gain: Contrast) -> str:
    """One to three stars for a difference that is shown with p below 0.05, 0.01 and 0.001.

    >>> stars(Contrast(0.1, 0.0, 0.2, 0.0002, 20)), stars(Contrast(0.1, 0.0, 0.2, 0.0002, 2))
    ('***', '')
    """
    return "*" * sum(gain.p < level for level in LEVELS) if gain.shown else ""


def p_text(p: float) -> str:
    """A p-value; nothing if there was no test.

    >>> p_text(0.0314), p_text(2e-7), p_text(math.nan)
    ('p = 0.031', 'p < 0.001', '')
    """
    if math.isnan(p):
        return ""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def short_text(number: float, digits: int) -> str:
    """A number rounded to this many digits, written out.

    >>> short_text(1234567.0, 4), short_text(0.0223456, 4), short_text(math.nan, 4)
    ('1,235,000', '0.02235', '–')
    """
    return NOTHING if math.isnan(number) else f"{float(f'{number:.{digits}g}'):,.12g}"


# Verdicts


def family_text(
    gains: Iterable[Contrast], against: str, over: str, head: str = "Intervals and p-values"
) -> str:
    """Which procedure intervals and p-values come from together; nothing without a test.

    >>> one = Contrast(0.012, 0.001, 0.023, 0.0314, 20)
    >>> family_text([one], "max-pack", "policies and rounds")
    'Intervals and p-values: one paired t test against max-pack.'
    >>> many = 12 * [Contrast(0.012, -0.01, 0.034, 0.314, 20, "max-t")]
    >>> family_text(many, "max-pack", "policies and rounds")
    'Intervals and p-values: paired t tests against max-pack, all 12 (policies and rounds) \
together by single-step max-t.'
    """
    made = [gain for gain in gains if not math.isnan(gain.p)]
    if not made:
        return ""
    if few := too_few(max(gain.pairs for gain in made)):
        return f"{sentence_case(few)}; the differences of the seeds stand beside their mean."
    if len(made) == 1:
        return f"{head}: one paired t test against {against}."
    method = "single-step max-t" if made[0].method == "max-t" else made[0].method
    return (
        f"{head}: paired t tests against {against}, all {len(made)} ({over}) together by {method}."
    )


def too_few(seeds: int) -> str:
    """What is said in the place of a verdict if there are too few seeds, else nothing.

    >>> too_few(3), too_few(20)
    ('too few seeds for a verdict: 3', '')
    """
    return f"too few seeds for a verdict: {seeds}" if seeds < FEWEST_SEEDS else ""


def not_shown(seeds: int) -> str:
    """What is said of something that was neither shown nor refuted.

    >>> not_shown(20)
    'not shown with 20 seeds'
    """
    return f"not shown with {counted(seeds, 'seed')}"


# Amounts of an x axis


def amount_text(amount: float, axis: Axis, digits: int = 6) -> str:
    """How much of an axis, with its unit.

    >>> from agewise.statistics import AXES
    >>> amount_text(20, AXES["rounds"]), amount_text(0.0025, AXES["joules"])
    ('20 rounds', '2.5 mJ')
    >>> amount_text(12000, AXES["channel-uses"]), amount_text(1.2e6, AXES["bits"])
    ('12,000 uses', '1.2 Mbit')
    """
    factor, unit = _unit(amount, axis)
    return f"{short_text(amount / factor, digits)} {unit}"


def at_text(at: float, axis: Axis) -> str:
    """When or where on an axis, inside a sentence.

    >>> from agewise.statistics import AXES
    >>> at_text(60, AXES["seconds"]), at_text(2.5, AXES["joules"]), at_text(1, AXES["rounds"])
    ('after 60 s', 'at 2.5 J', 'after 1 round')
    """
    word = "after" if axis.name in ("rounds", "seconds") else "at"
    return f"{word} {amount_text(at, axis)}"


def head_text(at: float, axis: Axis) -> str:
    """A point of an axis as the head of a column.

    >>> from agewise.statistics import AXES
    >>> head_text(10, AXES["rounds"]), head_text(1234567.0, AXES["bits"])
    ('round 10', '1.23457 Mbit')
    """
    return f"round {at:g}" if axis.column is None else amount_text(at, axis)


def median_text(taken: TimeToTarget, axis: Axis) -> tuple[str, str]:
    """The median cost to a target, and its limits as far as they are known.

    >>> from agewise.statistics import AXES, time_to_target
    >>> slow = time_to_target([[0.5, 0.9], [0.9, 0.9], [0.1, 0.2]], 0.9, cost=[2e3, 3e3])
    >>> median_text(slow, AXES["bits"])
    ('3 kbit', '2 or more')
    >>> median_text(time_to_target([[0.5, 0.9]], 0.95), AXES["rounds"])
    ('not reached by half', '')
    """
    if not taken.by_half:
        return "not reached by half", ""
    factor, unit = _unit(taken.median, axis)
    limits = ""
    if not math.isnan(taken.low):
        low = short_text(taken.low / factor, 3)
        high = short_text(taken.high / factor, 3)
        limits = f"{low} or more" if math.isnan(taken.high) else f"{low} to {high}"
    return f"{short_text(taken.median / factor, 3)} {unit}", limits


def _unit(amount: float, axis: Axis) -> tuple[float, str]:
    """What to divide an amount by, and what that is called."""
    if axis.column is None:
        return 1.0, "round" if amount == 1 else "rounds"
    return next(each[1:] for each in _UNITS[axis.unit] if amount >= each[0])


# Names


def parameters_text(policies: Sequence[PolicyKey]) -> str:
    """The parameters that names leave out, each said once; nothing if there are none.

    >>> from agewise.policies import AgeBased, MaxPack
    >>> parameters_text([AgeBased(alpha=0).key, MaxPack().key])
    'Defaults: packing=greedy, ties=random; age-based: form=paper.'
    """
    by_name: dict[str, dict[str, Value]] = {}
    for policy in policies:
        own = policy.parameters
        left_out = {name: own[name] for name in policy.usual if own.get(name) is not None}
        by_name[policy.name] = by_name.get(policy.name, {}) | left_out
    values: dict[str, list[Value]] = {}
    for name, value in (each for own in by_name.values() for each in own.items()):
        values.setdefault(name, []).append(value)
    common = {n: x[0] for n, x in values.items() if len(x) > 1 and len(set(x)) == 1}
    parts = [variation_text(common)]
    for policy_name, left_out in by_name.items():
        rest = variation_text({n: x for n, x in left_out.items() if n not in common})
        parts.append(f"{policy_name}: {rest}" if rest else "")
    said = "; ".join(filter(None, parts))
    return f"Defaults: {said}." if said else ""


def relabelled(text: str, labels: Mapping[str, str]) -> str:
    """Text with labels in the place of policies' names.

    >>> relabelled("age-based:alpha=0 minus age-based", {"age-based": "ABS"})
    'age-based:alpha=0 minus ABS'
    """
    names = "|".join(map(re.escape, sorted(labels, key=len, reverse=True)))
    whole = rf"(?<![\w:-])(?:{names})(?![\w:=-])"
    return re.sub(whole, lambda found: labels[found[0]], text) if names else text


def variation_text(variation: Mapping[str, object]) -> str:
    """What a variation changes, by the last part of each name.

    >>> variation_text({"data.partition": "iid", "threshold.rate": 2.0})
    'partition=iid, rate=2'
    """
    return ", ".join(f"{last_part(name)}={value_text(x)}" for name, x in variation.items())


def value_text(value: object) -> str:
    """A value of a scenario or of a parameter.

    >>> value_text(2.0), value_text({"kind": "shards", "classes_per_ue": 2}), value_text(None)
    ('2', 'shards(classes_per_ue=2)', '')
    """
    match value:
        case None:
            return ""
        case float():
            return f"{value:g}"
        case Mapping():
            known = {name: inner for name, inner in value.items() if inner is not None}
            kind = known.pop("kind", "")
            return f"{kind}({variation_text(known)})" if known else str(kind)
    return str(value)


def last_part(name: str) -> str:
    """The last part of a dotted name.

    >>> last_part("threshold.rate")
    'rate'
    """
    return name.rpartition(".")[2]


# Sentences


def counted(number: int, noun: str) -> str:
    """So many of something.

    >>> counted(1, "seed"), counted(1200, "round")
    ('1 seed', '1,200 rounds')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def and_list(words: Iterable[object]) -> str:
    """Words as a list in a sentence; nothing for no words.

    >>> and_list([10, 20, 40])
    '10, 20 and 40'
    """
    *most, last = [str(word) for word in words] or [""]
    return f"{', '.join(most)} and {last}" if most else last


def sentence_case(text: str) -> str:
    """Text with its first letter as a capital."""
    return text[:1].upper() + text[1:]


def command_text(command: str) -> str:
    """A recorded command with just the names of files whose whole paths it gave.

    >>> command_text("agewise run '/home/my name/a.toml' --out /tmp/x --set learn.step_size=0.1")
    'agewise run a.toml --out x --set learn.step_size=0.1'
    """
    try:
        words = shlex.split(command)
    except ValueError:  # not written by a shell's rules
        return command
    return shlex.join(map(_without_folders, words)) if "/" in command else command


def _without_folders(word: str) -> str:
    """Paths may be a word, follow an equals sign, or stand in a list or a table."""
    name, equals, value = ("", "", word) if word.startswith("/") else word.partition("=")
    if value.startswith("/") and not re.search(r"[,\"']\s*/", value):
        return f"{name}{equals}{PurePath(value).name}"
    parts = re.split(r"([=,\[\]{}\"']+)", word)
    return "".join(PurePath(part).name if part.startswith("/") else part for part in parts)
