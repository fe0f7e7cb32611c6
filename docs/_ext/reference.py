"""Pages that follow from the code: policies, fields of scenarios, pictures and public names."""

import html
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

import agewise
from agewise.part import Options, Part, kind_of, parts_of
from agewise.policies import describe, find_class, names
from agewise.report.pictures import PICTURES
from agewise.scenario import Scenario

#: The public rooms of the package, each with a page of its own.
ROOMS = (
    "scenario", "radio", "spectrum", "scheduling", "policies", "data", "devices", "learn", "cost",
    "simulation", "traffic", "records", "experiment", "engines", "statistics", "studies", "report",
    "flower", "gym", "age", "random", "units",
)  # fmt: skip
_LIMITS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


def generated(what: str) -> str:
    """The Markdown that takes the place of a block ``{generated}``."""
    makers: dict[str, Callable[[], str]] = {
        "policies": policy_reference,
        "scenario": scenario_reference,
        "names": name_table,
        "pictures": picture_table,
    }
    return makers[what]()


def policy_reference() -> str:
    """Every policy of the package: what it does, its parameters, and what it reads and keeps."""
    return "\n\n".join(map(_policy, names()))


def _policy(name: str) -> str:
    found, policy = describe(name), find_class(name)
    parts = [f"## {name}", _as_markdown(found.summary)]
    if found.equation:
        parts.append(f"`{found.equation}`")
    if found.text:
        parts.append(_folded("What it does, and what was adapted", _as_markdown(found.text)))
    if found.parameters:
        rows = [
            (f"`{each.name}`", f"`{each.default}`", each.allowed.replace("inf", "∞"))
            for each in found.parameters
        ]
        parts.append(_table(("Parameter", "Default", "Values"), rows))
    else:
        parts.append("It has no parameters.")
    if found.reads:
        parts.append(f"It uses what UEs reported: {_listed(found.reads)}.")
    keeps = (*policy.state_per_ue, *policy.state_scalars)
    if keeps:
        parts.append(f"It carries from round to round: {_listed(keeps)}.")
    parts.append(f"Class: {{py:obj}}`agewise.policies.{policy.__name__}`")
    return "\n\n".join(filter(None, parts))


def picture_table() -> str:
    """Every picture of a result, and what it needs."""
    rows = [(f"`{each.name}`", each.sentence, f"{each.needs or ''}") for each in PICTURES.values()]
    return _table(("Kind", "Shows", "Needs"), rows)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{each}`" for each in names)


def scenario_reference() -> str:
    """Every section of a scenario with its kinds and their fields."""
    return "\n\n".join(_sections(Scenario, ""))


def _sections(section: type[Part], path: str) -> Iterator[str]:
    for name, field in section.model_fields.items():
        here = f"{path}.{name}" if path else name
        kinds = [one for one in parts_of(field) if one is not Options]
        if not kinds:
            continue
        heading = "##" if "." not in here else "###"
        yield f"{heading} {here}"
        if field.description:
            yield _sentence(field.description)
        if not field.is_required():
            yield f"Default: {_default_of(field)}."
        for kind in kinds:
            yield _kind(kind)
        seen: set[str] = set()
        for kind in kinds:
            shown = True
            for part in _sections(kind, here):
                if part.startswith("#"):
                    shown = part not in seen
                    seen.add(part)
                if shown:
                    yield part


def _kind(section: type[Part]) -> str:
    first = _sentence((section.__doc__ or "").strip().split("\n")[0])
    name = kind_of(section)
    title = re.sub("`([^`]+)`", r"<code>\1</code>", html.escape(first))
    title = f"<code>{name}</code> {title}" if name else title
    if section.named:  # tables of names that a user gives
        return f"<p>{title}</p>\n\nEach table:\n\n{_kind(section.named)}"
    rows = [
        (f"`{name}`", _type_of(field), _default_of(field), field.description or "")
        for name, field in section.model_fields.items()
        if name != "kind"
    ]
    if not rows:
        return f"<p>{title}</p>"
    return _folded(title, _table(("Field", "Value", "Default", "Meaning"), rows))


def _folded(title: str, text: str) -> str:
    """Text below a title that opens it, where browsers still find and print it."""
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"


def _type_of(field: FieldInfo) -> str:
    kinds = [kind_of(one) for one in parts_of(field) if one is not Options]
    if kinds:
        return ": ".join(filter(None, ("section", ", ".join(f"`{k}`" for k in kinds if k))))
    choices = _choices(field.annotation)
    if choices:
        return ", ".join(f"`{choice}`" for choice in choices)
    limits = [
        f"{sign} {_number(getattr(one, attribute))}"
        for one in field.metadata
        for attribute, sign in _LIMITS.items()
        if getattr(one, attribute, None) is not None
    ]
    return ", ".join([_plain_type(field.annotation), *limits])


def _number(limit: float) -> str:
    """Whole numbers with all their digits up to a million million, others in six digits."""
    return f"{limit:,.0f}" if 1e4 <= limit < 1e12 and limit == int(limit) else f"{limit:g}"


def _choices(annotation: Any) -> list[str]:
    if get_origin(annotation) is Literal:
        return [str(each) for each in get_args(annotation)]
    return [choice for part in get_args(annotation) for choice in _choices(part)]


def _plain_type(annotation: Any) -> str:
    words = {float: "number", int: "whole number", str: "text", bool: "true or false"}
    if annotation in words:
        return words[annotation]
    if annotation is Options:
        return "table"
    parts = [part for part in get_args(annotation) if part not in (type(None), ...)]
    inner = _plain_type(parts[0]) if parts else str(annotation)
    is_list = get_origin(annotation) in (tuple, list)
    return f"list: {inner}" if is_list else inner


def _default_of(field: FieldInfo) -> str:
    if field.is_required():
        return "must be given"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, Options):
        return "empty"
    if isinstance(value, Part):
        return f"`{kind_of(type(value))}`"
    return "not set" if value is None else f"`{value}`"


def name_table() -> str:
    """The names of the package itself: what they are, and where they are described."""
    rows = []
    for name in agewise.__all__:
        value = getattr(agewise, name)
        if name == "__version__":
            rows.append((f"`agewise.{name}`", "The version, as text."))
        elif isinstance(value, ModuleType):
            rows.append((f"[`agewise.{name}`]({name}.md)", _first_line(value)))
        else:
            home = next(
                room
                for room in ROOMS
                if hasattr(import_module(f"agewise.{room}"), name) and name in public_names(room)
            )
            rows.append((f"{{py:obj}}`agewise.{name} <agewise.{home}.{name}>`", _first_line(value)))
    return _table(("Name", "What it is"), rows)


def public_names(room: str) -> list[str]:
    """The public names of a room: those in ``__all__``, else what is defined there.

    Names in ``__all__`` that are modules have pages of their own; constants and type aliases
    count where a comment ``#:`` or a docstring describes them.
    """
    module = import_module(f"agewise.{room}")
    listed = getattr(module, "__all__", None)
    if listed is None:
        listed = [
            name
            for name, value in vars(module).items()
            if not name.startswith("_")
            and getattr(value, "__module__", None) == module.__name__
            and (inspect.isclass(value) or inspect.isfunction(value))
        ]
    return [
        name
        for name in listed
        if inspect.isclass(getattr(module, name)) or inspect.isroutine(getattr(module, name))
    ]


def _first_line(value: object) -> str:
    return _as_markdown((inspect.getdoc(value) or "").split("\n")[0])


def _as_markdown(docstring: str) -> str:
    """A docstring as Markdown: only its marks for code differ, and examples become blocks."""
    text = docstring.replace("``", "`")
    return re.sub(
        r"((?:^>>> .*\n?(?:^(?!\s*$).*\n?)*)+)", r"```python\n\1\n```\n", text, flags=re.MULTILINE
    )


def _sentence(text: str) -> str:
    text = text.replace("``", "`").rstrip(".")
    return f"{text[:1].upper()}{text[1:]}."


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )
