"""Scenarios as TOML, in and out."""

import json
import textwrap
import tomllib
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from agewise.scenario.errors import ScenarioError

_WIDTH = 88


def parse(text: str, source: str) -> dict[str, Any]:
    """The tables of a TOML text."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{source}: not valid TOML: {error}") from error


def value(text: str) -> Any:
    """A value as it is written in TOML; anything else is taken as text, ``none`` as nothing."""
    if text.lower() == "none":
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def section_of(field: FieldInfo) -> type[BaseModel] | None:
    """The model of a field that is a table, or ``None`` for a plain value."""
    kinds = (field.annotation, *get_args(field.annotation))
    return next((k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel)), None)


def write(model: BaseModel) -> str:
    """A complete file: every field with what it means, absent ones as comments."""
    return "\n".join(_table(model, "")).strip() + "\n"


def _table(model: BaseModel, path: str) -> list[str]:
    lines = [*_comment(_first_line(type(model))), f"[{path}]"] if path else []
    below = []
    for name, field in type(model).model_fields.items():
        here = f"{path}.{name}" if path else name
        current = getattr(model, name)
        if section_of(field) is not None:
            below += ["", *_table(current, here)] if current is not None else _absent(here, field)
            continue
        choices = [choice for choice in get_args(field.annotation) if isinstance(choice, str)]
        among = f" ({', '.join(choices)})" if choices else ""
        lines += _comment((field.description or name) + among)
        lines.append(f"# {name} =" if current is None else f"{name} = {_literal(current)}")
    return lines + below


def _absent(path: str, field: FieldInfo) -> list[str]:
    """A table that is not set, so that its keys can be found."""
    section = section_of(field)
    keys = ", ".join(section.model_fields) if section else ""
    return ["", f"# [{path}]", *_comment(f"{field.description}: {keys}")]


def _first_line(model: type[BaseModel]) -> str:
    return (model.__doc__ or "").strip().split("\n")[0]


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text, _WIDTH)]


def _literal(current: Any) -> str:
    if isinstance(current, tuple | list):
        return "[" + ", ".join(_literal(item) for item in current) + "]"
    if isinstance(current, float):
        return repr(current)
    return json.dumps(current, ensure_ascii=False)
