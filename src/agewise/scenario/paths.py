"""Paths in a scenario's TOML file, which may start at the folder of the file."""

import os
from pathlib import Path
from typing import Any, TypeVar

from agewise.part import Part, Unloaded
from agewise.scenario.errors import ScenarioError

_SomeSection = TypeVar("_SomeSection", bound=Part)


def located(section: _SomeSection, folder: Path | None, name: str = "") -> _SomeSection:
    """The section in which no path, however deep inside, is relative to the scenario's file.

    ``folder`` is that of the file, ``None`` if the scenario is from none, and ``name`` the dotted
    name of the section.
    """
    changed: dict[str, Any] = {}
    for key in type(section).model_fields:
        inner = getattr(section, key)
        if isinstance(inner, Part):
            moved = located(inner, folder, f"{name}.{key}".lstrip("."))
            if moved is not inner:
                changed[key] = moved
    if getattr(section, "relative_to", None) == "scenario-file":
        if folder is None:
            raise ScenarioError(
                f"{name}.relative_to = 'scenario-file': this scenario is not read from a file; "
                "give working-folder, or an absolute path"
            )
        changed |= _below(folder, section) | {"relative_to": "working-folder"}
    if folder is not None and isinstance(section, Unloaded):
        changed["kind"] = _code_below(folder, getattr(section, "kind", ""))
    return section.model_copy(update=changed) if changed else section


def _code_below(folder: Path, kind: str) -> str:
    """The kind ``file.py:Class`` of a scenario's file, whose code stands in this folder."""
    file, _, name = kind.rpartition(":")
    if not file:
        return kind
    found = os.path.relpath(folder / file)
    return f"{folder / file if found.startswith('..') else found}:{name}"


def _below(folder: Path, section: Part) -> dict[str, str]:
    """What the section names, in this folder: a path, or the source of a module behind one."""
    key = "path" if "path" in type(section).model_fields else "source"
    given = getattr(section, key)
    return {} if given is None else {key: str(folder / given)}
