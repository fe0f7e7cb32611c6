"""What there is to know of a policy: its parameters, what they may be, and where it is from."""

import inspect
import re
import sys
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, get_args, get_type_hints

from agewise.policies.registry import find_class
from agewise.scheduling import Policy

#: Values that hardly any parameter takes: what the policy says against one names its range.
_PROBES = (-1e300, 1e300, 0.5, "?")
_RANGE = re.compile(r"must be (.+?), not ", re.DOTALL)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a policy; ``allowed`` says in words which values it may have."""

    name: str
    default: Any
    allowed: str


@dataclass(frozen=True)
class PolicyDescription:
    """A policy: its name, one line, its source and equations, parameters, what it reads."""

    name: str
    summary: str
    text: str
    parameters: tuple[Parameter, ...]
    reads: tuple[str, ...]

    def to_dict(self) -> Mapping[str, Any]:
        """As plain data."""
        return {
            "name": self.name,
            "summary": self.summary,
            "text": self.text,
            "parameters": [vars(each) for each in self.parameters],
            "reads": list(self.reads),
        }


def describe(policy: str) -> PolicyDescription:
    """What the policy of this name, or in this file, is.

    >>> [(one.name, one.default, one.allowed) for one in describe("max-pack").parameters]
    [('ties', 'random', 'random or lowest-index')]
    """
    kind = find_class(policy)
    summary, _, text = inspect.cleandoc(kind.__doc__ or "").partition("\n")
    hints = _hints(kind)
    parameters = tuple(
        Parameter(
            each.name,
            None if each.default is MISSING else each.default,
            _allowed(kind, each.name, hints[each.name]),
        )
        for each in fields(kind)  # type: ignore[arg-type]
    )
    return PolicyDescription(
        kind.name, summary, text.strip(), parameters, tuple(sorted(kind.reads))
    )


def _hints(kind: type[Policy]) -> dict[str, Any]:
    """What the annotations mean, also those of a class whose module cannot be imported."""
    known: dict[str, Any] = {}
    for one in reversed(kind.__mro__):
        module = sys.modules.get(one.__module__)
        known |= vars(module) if module and issubclass(one, Policy) else {}
    return get_type_hints(kind, known | kind.schedule.__globals__)


def _allowed(kind: type[Policy], name: str, hint: Any) -> str:
    """The choices of a parameter, or what the policy itself says against values outside."""
    if choices := get_args(hint):
        return " or ".join(map(str, choices))
    for probe in _PROBES:
        try:
            kind(**{name: probe})
        except (ValueError, TypeError) as error:
            if found := _RANGE.search(str(error)):
                return found[1]
        except Exception:  # noqa: S112 - a policy of somebody else may fail in any way
            continue
    return getattr(hint, "__name__", str(hint))
