"""What is wrong with a scenario, in words that lead to the mistake."""

import difflib
import reprlib
from collections.abc import Sequence
from pathlib import PurePath

from pydantic import ValidationError

from agewise.checks import nearest, short
from agewise.part import Options, Part, Values, kind_of, parts_below, parts_of

#: What pydantic calls a number out of its range, and its words for the limits.
_BOUNDS = ("greater_than", "greater_than_equal", "less_than", "less_than_equal")


class ScenarioError(ValueError):
    """A scenario that cannot be: the message names the file, the key and what would do."""


def require_known(name: str, scenario: type[Part]) -> list[type[Part]]:
    """Raise `ScenarioError` unless a dotted name is a field; the sections that it may hold."""
    sections = [scenario]
    for step in name.split("."):
        if Options in sections:
            return []
        fields = {key: field for section in sections for key, field in section.model_fields.items()}
        if step not in fields and not any(section.named for section in sections):
            hint = _full_name(name, scenario) or nearest(step, fields)
            raise ScenarioError(f"there is no {short(name)}; {hint}")
        sections = [kind for section in sections for kind in parts_below(section, step)]
    return sections


def _full_name(name: str, scenario: type[Part]) -> str:
    """A hint at fields with this last part, or with a name that is written much like it."""
    known = _all_names(scenario, "")
    last = name.rpartition(".")[2]
    near = [one for one in known if one.rpartition(".")[2] == last and last != "kind"]
    near = near or difflib.get_close_matches(name, known, n=1, cutoff=0.75)
    return f"did you mean {' or '.join(near)}?" if near else ""


def _all_names(section: type[Part], path: str) -> list[str]:
    """The dotted names of all fields, of whichever kind their sections are."""
    names = []
    for key, field in section.model_fields.items():
        names.append(f"{path}{key}")
        for kind in parts_of(field):
            names += _all_names(kind, f"{path}{key}.")
    return list(dict.fromkeys(names))


def explain(error: ValidationError, scenario: type[Part]) -> str:
    """All mistakes in one sentence each."""
    return "; ".join(_one(dict(mistake), scenario) for mistake in error.errors(include_url=False))


def _one(mistake: Values, scenario: type[Part]) -> str:
    steps, sections = _named([str(step) for step in mistake["loc"]], scenario)
    name = ".".join(steps)
    if mistake["type"] == "extra_forbidden":
        fields = {field for section in sections for field in section.model_fields}
        kind = kind_of(sections[0]) if len(sections) == 1 else None
        known = _kind_with(steps, scenario) or nearest(steps[-1], sorted(fields - {"kind"}))
        return f"there is no {short(name)}{f' with kind = {kind}' if kind else ''}; {known}"
    if mistake["type"] == "missing":
        return f"{name} is missing"
    if mistake["type"] == "union_tag_not_found":
        return f"{name}.kind is missing; there are {', '.join(_kinds(name, scenario))}"
    if mistake["type"] == "union_tag_invalid":
        tag = mistake["ctx"]["tag"]
        hint = _of_file(tag, name, scenario) or nearest(tag, _kinds(name, scenario))
        return f"{name}.kind = {short(tag)!r}: {hint}"
    text = mistake["msg"].removeprefix("Value error, ")
    text = text[0].lower() + text[1:]
    if mistake["type"] == "value_error":
        return f"{name}: {text}" if name else text
    if mistake["type"] in _BOUNDS:
        text = _range(sections, steps[-1], mistake["type"]) or text
    return f"{name} = {reprlib.repr(mistake['input'])}: {text}"


def _of_file(given: str, name: str, scenario: type[Part]) -> str:
    """A hint at the kind of a section that reads files, if one names this file's ending."""
    ending = PurePath(given).suffix
    for section in require_known(name, scenario):
        path = section.model_fields.get("path")
        if ending and path is not None and ending in f"{section.__doc__} {path.description}":
            return f'a file is read by {{kind = "{kind_of(section)}", path = "{given}", ...}}'
    return ""


def _kind_with(steps: Sequence[str], scenario: type[Part]) -> str:
    """A hint at the kinds of a section that have this field, if others than the given one do."""
    *path, key = steps
    sections = require_known(".".join(path), scenario) if path else []
    kinds = dict.fromkeys(kind_of(section) for section in sections if key in section.model_fields)
    return f"it is a field of kind = {' or '.join(filter(None, kinds))}" if any(kinds) else ""


def _range(sections: Sequence[type[Part]], key: str, broken: str) -> str:
    """Between which numbers a field must be, and the one of these limits that is the nearest.

    They are those that pydantic keeps of the field; ``broken`` is its word for the one not kept.
    """
    rules = [rule for section in sections for rule in section.model_fields[key].metadata]
    limits = {
        limit: getattr(rule, limit)
        for limit in ("gt", "ge", "lt", "le")
        for rule in rules
        if hasattr(rule, limit)
    }
    if not limits:
        return ""
    words = {"gt": "above", "ge": "from", "lt": "below", "le": "to"}
    text = " ".join(f"{words[limit]} {_limit_text(value)}" for limit, value in limits.items())
    end = {"greater_than_equal": "ge", "less_than_equal": "le"}.get(broken, "")
    return f"must be {text}{f'; the nearest is {_limit_text(limits[end])}' if end else ''}"


def _limit_text(limit: float) -> str:
    return f"{limit:g}" if isinstance(limit, float) else str(limit)


def _named(steps: Sequence[str], scenario: type[Part]) -> tuple[list[str], list[type[Part]]]:
    """The dotted name of a place, without the kinds on the way, and the sections it is in."""
    named: list[str] = []
    sections, inside, chosen = [scenario], [scenario], True
    for step in steps:
        of_kind = [section for section in sections if kind_of(section) == step]
        if of_kind and not chosen:  # a kind may have a field of its own name
            sections, chosen = of_kind, True
            continue
        chosen = False
        named.append(step if step.isprintable() else repr(step))  # a key may be any text
        inside = sections
        sections = [kind for section in sections for kind in parts_below(section, step)]
    return named, inside


def _kinds(name: str, scenario: type[Part]) -> list[str]:
    return [kind for kind in map(kind_of, require_known(name, scenario)) if kind]
