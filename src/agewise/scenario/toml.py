"""Scenarios as TOML, in and out."""

import json
import textwrap
import tomllib
from typing import Any, get_args

from pydantic.fields import FieldInfo

from agewise.part import Options, Part, Values, kind_of, parts_of
from agewise.scenario.errors import ScenarioError

_WIDTH = 88


def parse(text: str, source: str) -> Values:
    """The tables of a TOML text."""
    try:
        return tomllib.loads(text)
    except ValueError as error:  # also for a number with thousands of digits
        raise ScenarioError(f"{source}: not valid TOML: {error}") from error
    except RecursionError:
        raise ScenarioError(f"{source}: not valid TOML: it is nested too deeply") from None


def value(text: str) -> Any:
    """A value as it is written in TOML; anything else is taken as text."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return parsed["value"] if len(parsed) == 1 else text


def write(scenario: Part) -> str:
    """A complete file: every field with what it means, and every kind that there is."""
    return "\n".join(_table(scenario, "")).strip() + "\n"


def _table(section: Part, path: str, field: FieldInfo | None = None) -> list[str]:
    lines = [f"[{path}]"] if path else []
    below = []
    for name, inner in type(section).model_fields.items():
        here = f"{path}.{name}" if path else name
        current = getattr(section, name)
        if current is None and parts_of(inner):
            lines += [*_comment(_meaning(name, inner)), f"# {name} ="]
            lines += [line for kind in parts_of(inner) for line in _other_kind(kind)]
        elif isinstance(current, Options):
            lines += [*_comment(_meaning(name, inner)), f"{name} = {_inline(current)}"]
        elif isinstance(current, Part):
            heading = inner.description or _first_line(type(current))
            below += ["", *_comment(heading[0].upper() + heading[1:])]
            below += _table(current, here, inner)
        elif name == "kind":
            lines += [*_comment(_first_line(type(section))), f"kind = {_literal(current)}"]
        else:
            lines += _comment(_meaning(name, inner))
            lines.append(f"# {name} =" if current is None else f"{name} = {_literal(current)}")
    for name, each in (section.model_extra or {}).items():
        if isinstance(each, Part):  # by a name of the user's
            below += ["", *_table(each, f"{path}.{name}")]
        else:  # of code that is not loaded
            lines.append(f"{json.dumps(name)} = {_literal(each)}")
    others = [kind for kind in parts_of(field) if kind is not type(section)] if field else []
    return lines + [line for kind in others for line in _other_kind(kind)] + below


def _other_kind(section: type[Part]) -> list[str]:
    """Another kind of a section, as comments."""
    lines = _comment(f'or kind = "{kind_of(section)}": {_first_line(section)}')
    for name, field in section.model_fields.items():
        if name != "kind":
            kinds = ", ".join(filter(None, map(kind_of, parts_of(field))))
            lines += _comment(f"  {name}: {_meaning(name, field)}{f' ({kinds})' if kinds else ''}")
    return lines


def _meaning(name: str, field: FieldInfo) -> str:
    choices = [choice for choice in get_args(field.annotation) if isinstance(choice, str)]
    return (field.description or name) + (f" ({', '.join(choices)})" if choices else "")


def _first_line(section: type[Part]) -> str:
    return (section.__doc__ or "").strip().split("\n")[0].replace("``", "")


def _comment(text: str) -> list[str]:
    indent = " " * (len(text) - len(text.lstrip()))
    return [f"# {line}" for line in textwrap.wrap(text, _WIDTH, subsequent_indent=indent)]


def _inline(options: Options) -> str:
    """Settings as a table in one line."""
    pairs = [f"{json.dumps(name)} = {_literal(each)}" for name, each in options.values().items()]
    return "{" + ", ".join(pairs) + "}"


def _literal(current: object) -> str:
    match current:
        case tuple() | list():
            return f"[{', '.join(map(_literal, current))}]"
        case float():
            return repr(current)
    return json.dumps(current, ensure_ascii=False)
