"""Policies by name: the ones of this package, those that other packages add, and classes in files.

A package adds one through the entry point group ``agewise.policies``, in its pyproject.toml:

    [project.entry-points."agewise.policies"]
    my-policy = "my_package.my_module:MyPolicy"
"""

import functools
import inspect
import re
import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal, get_args, get_origin, get_type_hints

from numpy.typing import ArrayLike

from agewise.checks import nearest, require_known, short, text_parameters
from agewise.part import fault, faults_named, load_class
from agewise.policies.learned import Learned
from agewise.random import Streams
from agewise.scheduling import AccessPoint, Policy, parameter_names
from agewise.spectrum import Allocation, Packing, Uplink

_GROUP = "agewise.policies"
#: A policy in a Python file: ``mine.py``, ``mine.py:Mine``, each with parameters behind a colon.
_IN_FILE = re.compile(
    r"(?P<file>.+\.py)(?::(?P<name>[A-Za-z_]\w*)(?=:|$))?(?::(?P<parameters>.*))?$", re.DOTALL
)
#: Values that hardly any parameter takes: what the policy says against one names its range.
_PROBES: tuple[Any, ...] = (-1e300, 1e300, 0.5, "?")
_RANGE = re.compile(r"must be (.+?), not ", re.DOTALL)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a policy; ``allowed`` says in words which values it may have."""

    name: str
    default: object
    allowed: str


@dataclass(frozen=True)
class PolicyDescription:
    """A policy: its name, one line, its equation, its source, parameters, what it reads.

    ``provenance`` says how its weights were made, if it has learned any.
    """

    name: str
    summary: str
    equation: str
    text: str
    parameters: tuple[Parameter, ...]
    reads: tuple[str, ...]
    provenance: str = ""


@functools.cache
def _built_in() -> dict[str, type[Policy]]:
    """Return the policies of this package by name: all that its ``__init__`` imports."""
    found, kinds = {}, [Policy]
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        if "name" in vars(kind) and kind.__module__.startswith(f"{_GROUP}."):
            found[kind.name] = kind
    return found


def _added() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=_GROUP)}


def names() -> list[str]:
    """Return the names of all registered policies, sorted."""
    return sorted(_built_in() | _added())


def find_class(text: str) -> type[Policy]:
    """Return the class of a policy by its name, or in a Python file: ``my_policy.py:MyPolicy``."""
    if text in _built_in():
        return _built_in()[text]
    entry, kind = _added().get(text), Policy
    if (found := _IN_FILE.match(text)) is not None:
        kind = load_class(found["file"], found["name"] or "", Policy)
        where = f"policy {found['file']}:{kind.__name__}"
    elif entry is not None:
        where = f"policy {text!r} ({entry.value})"
        try:
            kind = entry.load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            # Another package's code runs here: whatever is wrong with it is said with its name.
            raise ValueError(f"{where} cannot be loaded: {fault(error)}") from error
        if not (isinstance(kind, type) and issubclass(kind, Policy)):
            raise ValueError(f"{where} is not a subclass of Policy")
    else:
        raise ValueError(f"unknown policy {text!r}; {nearest(text, names())}")
    name = getattr(kind, "name", None)
    if "__dataclass_fields__" not in vars(kind) or not isinstance(name, str):
        raise ValueError(
            f"{where} must be a frozen dataclass with a name: put @dataclass(frozen=True) above "
            'the class, and name = "my-policy" into it'
        )
    if name in _built_in() or (entry is not None and name != text):
        raise ValueError(
            f"{where}: its name {name!r} is that of another policy: give the class one of its own"
        )
    return kind


def make_policy(policy: str | Policy, **parameters: Any) -> Policy:
    """Make a policy from its name and parameters; a policy object is returned as it is.

    The name may be that of a class in a Python file, ``my_policy.py:MyPolicy``, which is run.
    Parameters may also stand in the name, behind a colon.

    >>> print(make_policy("age-based", alpha=0.25))
    age-based:alpha=0.25
    >>> make_policy("max-pack:packing=exact").parameters
    {'packing': 'exact', 'ties': 'random'}
    """
    if isinstance(policy, Policy):
        if parameters:
            raise ValueError(
                f"{', '.join(parameters)} cannot be given beside a policy object: set it there, "
                "or give the policy by its name"
            )
        return policy
    if not isinstance(policy, str):
        raise ValueError(f"policy must be a name or a Policy object, not {short(repr(policy))}")
    if (in_file := _IN_FILE.match(policy)) is not None:
        kind, name, written = find_class(policy), in_file["file"], in_file["parameters"] or ""
    else:
        name, _, written = policy.partition(":")
        kind = find_class(name)
    known, owner = parameter_names(kind), f"policy {name!r}"
    in_text = text_parameters(owner, written, known) if written else {}
    require_known(owner, parameters, known)
    if twice := in_text.keys() & parameters.keys():
        raise ValueError(f"{owner}: the parameter {min(twice)!r} is given twice")
    given = in_text | parameters
    if "packing" in given:
        given["packing"] = Packing.of(given["packing"])
    try:
        return kind(**given)
    except (ValueError, KeyboardInterrupt):  # what the policy says of its parameters
        raise
    except BaseException as error:
        raise ValueError(f"{owner} cannot be made: {fault(error)}") from error


def summary(name: str) -> str:
    """Return the first line of a policy's docstring, or why it cannot be loaded."""
    try:
        return (find_class(name).__doc__ or "").strip().split("\n")[0]
    except ValueError as error:
        return str(error)


def describe(policy: str) -> PolicyDescription:
    """Describe the policy of this name, or in this file; parameters may follow it.

    >>> [(one.name, one.default, one.allowed) for one in describe("best-channel").parameters][1]
    ('ties', 'random', 'random or lowest-index')
    """
    in_file, (name, _, written) = _IN_FILE.match(policy), policy.partition(":")
    kind = find_class(policy if in_file else name)
    made = make_policy(policy) if kind is Learned or (written and not in_file) else None
    provenance = made.provenance if isinstance(made, Learned) else ""
    first, _, text = inspect.cleandoc(kind.__doc__ or "").partition("\n")
    parameters = tuple(_parameter(kind, name) for name in parameter_names(kind))
    equation = vars(kind).get("equation", "")  # that of a base class need not be its own
    reads = tuple(sorted(kind.reads))
    return PolicyDescription(
        kind.name, first, equation, text.strip(), parameters, reads, provenance
    )


def _parameter(kind: type[Policy], name: str) -> Parameter:
    """Describe a parameter by its choices, or by what the policy says against values outside."""
    default = getattr(kind, name, None)
    default = str(default) if isinstance(default, Packing) else default
    # What annotations mean, also those of a class whose module cannot be imported.
    space = kind.utility.__globals__ | kind.schedule.__globals__
    for base in kind.__mro__:
        space |= vars(sys.modules[base.__module__]) if base.__module__ in sys.modules else {}
    hint = get_type_hints(kind, space)[name]
    if get_origin(hint) is Literal:
        return Parameter(name, default, " or ".join(map(str, get_args(hint))))
    for probe in _PROBES:
        try:
            kind(**{name: probe})
        except (ValueError, TypeError) as error:
            if found := _RANGE.search(str(error)):
                return Parameter(name, default, found[1])
        except Exception:  # noqa: S112 - a policy of somebody else may fail in any way
            continue
    return Parameter(name, default, getattr(hint, "__name__", str(hint)))


@faults_named()
def schedule(
    gains: ArrayLike,
    ages: ArrayLike,
    *,
    power: ArrayLike,
    rate_threshold: ArrayLike,
    policy: str | Policy = "age-based",
    seed: int = 0,
    **parameters: Any,
) -> Allocation:
    """Decide who transmits on which subchannels with what power, for one round.

    ``gains[ue, subchannel]`` is the SNR per unit of power, ``ages[ue]`` the rounds since each
    UE's last received update, ``power`` each UE's budget (in the unit that makes gain times
    power an SNR) and ``rate_threshold`` the bits per real channel use that each scheduled UE
    must reach; both are a number for all UEs, or one for each. ``policy`` is a name with its
    ``parameters`` (``alpha``, ``packing`` and ``ties`` for "age-based"), or a policy object.
    ``seed`` decides what the policy leaves to chance.

    >>> gains = [[9.0, 1.0, 0.5], [0.2, 8.0, 7.0], [3.0, 0.1, 6.0]]
    >>> allocation = schedule(gains, ages=[0, 4, 1], power=2.0, rate_threshold=1.5)
    >>> allocation.owner
    array([0, 1, 2])
    """
    uplink = Uplink(gains, power, rate_threshold)
    chosen = make_policy(policy, **parameters)
    access_point = AccessPoint(chosen, uplink.ue_count, Streams(seed))
    access_point.describe(ages=ages)
    return access_point.plan(uplink)
