"""Numbers and names as words: the same in every table, sentence and picture."""

import math
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from agewise.statistics import FEWEST_SEEDS, LEVELS, Axis, Contrast, Estimate, TimeToTarget

if TYPE_CHECKING:
    from agewise.records import PolicyKey, Value

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


def points_text(gain: float) -> str:
    """A gain in accuracy in percentage points, with its sign.

    >>> points_text(0.0123), points_text(-0.0001)
    ('+1.2', '+0.0')
    """
    return f"{round(100 * gain, 1) or 0.0:+.1f}"  # a gain that rounds to zero has no minus


def estimate_text(estimate: Estimate, form: str = ".1f", scale: float = 100.0) -> str:
    """A mean and half the width of its interval, in percent unless another scale is given.

    >>> estimate_text(Estimate(0.1, 0.08, 0.12)), estimate_text(Estimate(0.1, math.nan, math.nan))
    ('10.0 ± 2.0', '10.0')
    """
    if not estimate.known:
        return NOTHING
    half = scale * (estimate.high - estimate.low) / 2
    text = f"{scale * estimate.mean:{form}}"
    return f"{text} ± {half:{form}}" if math.isfinite(half) else text


def contrast_text(gain: Contrast) -> str:
    """A gain in percentage points with its p-value.

    >>> contrast_text(Contrast(0.012, 0.001, 0.023, 0.0314, 20))
    '+1.2, p = 0.031'
    """
    return ", ".join(filter(None, (points_text(gain.mean), p_text(gain.p))))


def limits_text(gain: Contrast) -> str:
    """The interval of a gain, in percentage points; a dash if there is none."""
    if math.isnan(gain.low):
        return NOTHING
    return f"{points_text(gain.low)} to {points_text(gain.high)}"


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


def family_text(tests: int, baseline: str, over: str) -> str:
    """Which tests p-values come from and are corrected for together; nothing without a test.

    >>> family_text(12, "max-pack", "policies and rounds")
    'p-values: paired t tests against max-pack, all 12 of them (policies and rounds) corrected \
together (Holm).'
    >>> family_text(1, "max-pack", "policies and rounds")
    'p-value: one paired t test against max-pack.'
    """
    if tests == 0:
        return ""
    if tests == 1:
        return f"p-value: one paired t test against {baseline}."
    return (
        f"p-values: paired t tests against {baseline}, all {tests} of them ({over}) corrected "
        "together (Holm)."
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


def short_names(policies: Sequence["PolicyKey"]) -> dict["PolicyKey", str]:
    """What each policy is called: its name, with the parameters that tell its likes apart.

    >>> from agewise.records import PolicyKey
    >>> half, one = (PolicyKey("age-based", {"alpha": a, "ties": "random"}) for a in (0.5, 1.0))
    >>> pack = PolicyKey("max-pack", {"ties": "random"})
    >>> list(short_names([half, pack]).values())
    ['age-based', 'max-pack']
    >>> list(short_names([half, one, pack]).values())
    ['age-based (alpha=0.5)', 'age-based (alpha=1)', 'max-pack']
    """
    short = {}
    for policy in policies:
        alike = [other.parameters for other in policies if other.name == policy.name]
        own = policy.parameters.items()
        telling = {n: x for n, x in own if any(other.get(n) != x for other in alike)}
        short[policy] = f"{policy.name} ({variation_text(telling)})" if telling else policy.name
    uses = Counter(short.values())
    return {policy: name if uses[name] == 1 else str(policy) for policy, name in short.items()}


def parameters_text(policies: Sequence["PolicyKey"]) -> str:
    """The parameters that the short names leave out, each said once; nothing if there are none.

    >>> from agewise.records import PolicyKey
    >>> half, one = (PolicyKey("age-based", {"alpha": a, "ties": "random"}) for a in (0.5, 1.0))
    >>> pack = PolicyKey("max-pack", {"ties": "random"})
    >>> parameters_text([half, pack]), parameters_text([half, one, pack])
    ('Parameters: ties=random; age-based: alpha=0.5.', 'Parameters: ties=random.')
    """
    alike: dict[str, list[Mapping[str, Value]]] = {}
    values: dict[str, list[Value]] = {}
    for policy in policies:
        alike.setdefault(policy.name, []).append(policy.parameters)
        for name, value in policy.parameters.items():
            values.setdefault(name, []).append(value)
    common = {n: x[0] for n, x in values.items() if len(x) > 1 and len(set(x)) == 1}
    parts = [variation_text(common)]
    for policy_name, (first, *others) in alike.items():
        same = {n: x for n, x in first.items() if all(other.get(n) == x for other in others)}
        own = variation_text({n: x for n, x in same.items() if n not in common})
        parts.append(f"{policy_name}: {own}" if own else "")
    said = "; ".join(filter(None, parts))
    return f"Parameters: {said}." if said else ""


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
    if value is None:
        return ""
    if isinstance(value, Mapping):
        known = {name: inner for name, inner in value.items() if inner is not None}
        kind = known.pop("kind", "")
        return f"{kind}({variation_text(known)})" if known else str(kind)
    return f"{value:g}" if isinstance(value, float) else str(value)


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
