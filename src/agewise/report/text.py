"""Where numbers and names become words, for the terminal, the page and documents alike."""

import math
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from agewise.records import PolicyKey

#: The levels of one, two and three stars; the first is also what counts as a sure difference.
LEVELS = (0.05, 0.01, 0.001)
#: What the stars mean.
STARS_NOTE = "* p < 0.05, ** p < 0.01, *** p < 0.001"
#: With fewer seeds in common nothing is judged.
FEWEST_SEEDS = 5
#: What is said of a claim that was shown, shown in part, and of which the contrary was shown.
HOLDS, IN_PART, REFUTED = "holds", "holds in part", "does not hold"


def short_names(policies: Sequence[PolicyKey]) -> dict[PolicyKey, str]:
    """What each policy is called: its name, with the parameters that tell its likes apart.

    >>> half, one = (PolicyKey("age-based", {"alpha": a, "ties": "random"}) for a in (0.5, 1.0))
    >>> pack = PolicyKey("max-pack", {"ties": "random"})
    >>> list(short_names([half, pack]).values())
    ['age-based', 'max-pack']
    >>> list(short_names([half, one, pack]).values())
    ['age-based (alpha=0.5)', 'age-based (alpha=1)', 'max-pack']
    """
    short = {policy: _short_name(policy, policies) for policy in policies}
    uses = Counter(short.values())
    return {policy: name if uses[name] == 1 else str(policy) for policy, name in short.items()}


def _short_name(policy: PolicyKey, policies: Sequence[PolicyKey]) -> str:
    alike = [other.parameters for other in policies if other.name == policy.name]
    telling = {
        parameter: value
        for parameter, value in policy.parameters.items()
        if any(other.get(parameter) != value for other in alike)
    }
    return f"{policy.name} ({variation_text(telling)})" if telling else policy.name


def parameters_text(policies: Sequence[PolicyKey]) -> str:
    """The parameters that the short names leave out, each said once; nothing if there are none.

    >>> half, one = (PolicyKey("age-based", {"alpha": a, "ties": "random"}) for a in (0.5, 1.0))
    >>> pack = PolicyKey("max-pack", {"ties": "random"})
    >>> parameters_text([half, pack]), parameters_text([half, one, pack])
    ('Parameters: ties=random; age-based: alpha=0.5.', 'Parameters: ties=random.')
    """
    kept: dict[str, dict[str, Any]] = {}
    for policy in policies:
        alike = [other.parameters for other in policies if other.name == policy.name]
        same = policy.parameters.items()
        kept[policy.name] = {n: x for n, x in same if all(one.get(n) == x for one in alike)}
    values: dict[str, list[Any]] = {}
    for policy in policies:
        for name, value in policy.parameters.items():
            values.setdefault(name, []).append(value)
    common = {n: x[0] for n, x in values.items() if len(x) > 1 and all(v == x[0] for v in x)}
    own = [
        f"{name}: {variation_text(rest)}"
        for name, parameters in kept.items()
        if (rest := {n: x for n, x in parameters.items() if n not in common})
    ]
    parts = [*filter(None, [variation_text(common)]), *own]
    return f"Parameters: {'; '.join(parts)}." if parts else ""


def p_text(p: float | None) -> str:
    """A p-value; nothing if there was no test.

    >>> p_text(0.0314), p_text(2e-7), p_text(None)
    ('p = 0.031', 'p < 0.001', '')
    """
    if p is None or math.isnan(p):
        return ""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def count_tests(rows: Iterable[Mapping[str, Any]]) -> int:
    """How many tests the p-values of a table's rows come from: the size of their family.

    >>> count_tests([{"p@10": 0.2, "p@20": None, "policy": "random"}, {"p@10": 0.1, "p@20": 1.0}])
    3
    """
    return sum(
        value is not None and not math.isnan(value)
        for row in rows
        for name, value in row.items()
        if name == "p" or name.startswith("p@")
    )


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


def table_family(
    rows: Sequence[Mapping[str, Any]], baseline: str, *, swept: bool, over: str = "rounds"
) -> str:
    """The family of the p-values in the table of a result: one test per gain that it shows.

    >>> table_family([{"p@10": 0.2, "p@20": 0.4}], "max-pack", swept=True)
    'p-values: paired t tests against max-pack, all 2 of them (policies, rounds and settings) \
corrected together (Holm).'
    """
    tested = f"policies, {over} and settings" if swept else f"policies and {over}"
    return family_text(count_tests(rows), baseline, tested)


def stars(p: float | None) -> str:
    """One to three stars for a p-value below 0.05, 0.01 and 0.001.

    >>> stars(0.03), stars(0.0002), stars(0.5)
    ('*', '***', '')
    """
    return "" if p is None else "*" * sum(p < level for level in LEVELS)


def is_sure(p: float | None) -> bool:
    """Whether a difference with this p-value counts: the 5% level."""
    return p is not None and p < LEVELS[0]


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
    return f"not shown with {seeds} seeds"


def claim_text(seeds: int, *, shown: Sequence[bool], refuted: Sequence[bool]) -> str:
    """The verdict on a claim of several parts: which of them, or of their contraries, were shown.

    That a part was not shown says nothing against it.

    >>> claim_text(20, shown=[True, True], refuted=[False, False])
    'holds'
    >>> claim_text(20, shown=[False, False], refuted=[False, False])
    'not shown with 20 seeds'
    >>> claim_text(20, shown=[False, False], refuted=[True, False])
    'does not hold'
    """
    if few := too_few(seeds):
        return few
    if any(shown):
        return HOLDS if all(shown) else IN_PART
    return REFUTED if any(refuted) else not_shown(seeds)


def squares_text(policy: str, counts: tuple[int, int, int], what: str, seeds: int) -> str:
    """In how many squares of a map a policy was shown to win, neither, and to lose.

    >>> squares_text("age-based", (3, 4, 1), "settings", 20)
    'age-based wins in 3 and loses in 1 of 8 settings; in 4 a difference is not shown with 20 seeds'
    """
    if few := too_few(seeds):
        return f"{policy}: {few}"
    wins, neither, losses = counts
    text = f"{policy} wins in {wins} and loses in {losses} of {sum(counts)} {what}"
    return f"{text}; in {neither} a difference is {not_shown(seeds)}" if neither else text


def points_text(gain: float) -> str:
    """A gain in accuracy in percentage points, with its sign.

    >>> points_text(0.0123), points_text(-0.0001)
    ('+1.2', '+0.0')
    """
    return f"{round(100 * gain, 1) or 0.0:+.1f}"  # a gain that rounds to zero has no minus


def percent_text(share: float) -> str:
    """A share in percent, without the sign of percent.

    >>> percent_text(0.8567)
    '85.7'
    """
    return f"{100 * share:.1f}"


def with_interval(row: Mapping[str, Any], name: str, form: str = ".1f", scale: float = 100) -> str:
    """The mean ``row[name]`` and half the width of its interval, if that is known.

    >>> with_interval({"loss": 0.1, "loss_low": 0.08, "loss_high": 0.12}, "loss")
    '10.0 ± 2.0'
    """
    if math.isnan(row[name]):
        return "-"
    half = scale * (row[f"{name}_high"] - row[f"{name}_low"]) / 2
    text = f"{scale * row[name]:{form}}"
    return f"{text} ± {half:{form}}" if math.isfinite(half) else text


def variation_text(variation: Mapping[str, Any]) -> str:
    """What a variation changes, by the last part of each name.

    >>> variation_text({"data.partition": "iid", "threshold.rate": 2.0})
    'partition=iid, rate=2'
    """
    return ", ".join(f"{last_part(name)}={value_text(x)}" for name, x in variation.items())


def value_text(value: Any) -> str:
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


def last_part(name: str) -> str:
    """The last part of a dotted name.

    >>> last_part("threshold.rate")
    'rate'
    """
    return name.rpartition(".")[2]


def and_list(words: Iterable[object]) -> str:
    """Words as a list in a sentence; nothing for no words.

    >>> and_list([10, 20, 40])
    '10, 20 and 40'
    """
    *most, last = [str(word) for word in words] or [""]
    return f"{', '.join(most)} and {last}" if most else last
