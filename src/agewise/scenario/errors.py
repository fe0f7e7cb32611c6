"""What is wrong with a scenario, in words that lead to the mistake."""

import difflib
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ValidationError


class ScenarioError(ValueError):
    """A scenario that cannot be: the message names the file, the key and what would do."""


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint at the names that there are."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=2, cutoff=0.6)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"there are {', '.join(names)}" if names else "nothing is below it"


def explain(error: ValidationError, model: type[BaseModel], source: str) -> str:
    """All mistakes of a file in one sentence each."""
    said = [_one(dict(mistake), model) for mistake in error.errors(include_url=False)]
    return (f"{source}: " if source else "") + "; ".join(said)


def _one(mistake: dict[str, Any], model: type[BaseModel]) -> str:
    steps = [str(step) for step in mistake["loc"]]
    name = ".".join(steps)
    if mistake["type"] == "extra_forbidden":
        return f"there is no {name}; {nearest(steps[-1], _fields_at(model, steps[:-1]))}"
    if mistake["type"] == "missing":
        return f"{name} is missing"
    text = mistake["msg"].removeprefix("Value error, ")
    text = text[0].lower() + text[1:]
    if mistake["type"] == "value_error":
        return f"{name}: {text}"
    return f"{name} = {mistake['input']!r}: {text}"


def _fields_at(model: type[BaseModel], steps: list[str]) -> list[str]:
    from agewise.scenario.toml import section_of

    section: type[BaseModel] | None = model
    for step in steps:
        fields = section.model_fields if section else {}
        section = section_of(fields[step]) if step in fields else None
    return list(section.model_fields) if section else []
