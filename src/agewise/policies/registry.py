"""Policies by name: the ones of this package and those that other packages add.

A package adds one through the entry point group ``agewise.policies``, in its pyproject.toml:

    [project.entry-points."agewise.policies"]
    my-policy = "my_package.my_module:MyPolicy"
"""

import difflib
import functools
from dataclasses import fields
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from numpy.typing import ArrayLike

from agewise.policies.age_based import AgeBased
from agewise.policies.age_based_plus import AgeBasedPlus
from agewise.policies.age_dissimilarity import AgeDissimilarity
from agewise.policies.best_channel import BestChannel
from agewise.policies.best_channel_norm import BestChannelNorm
from agewise.policies.best_norm import BestNorm
from agewise.policies.cell_interior import CellInterior
from agewise.policies.fed_cs import FedCS
from agewise.policies.from_file import policy_in_file, split_file
from agewise.policies.importance_channel import ImportanceChannel
from agewise.policies.markov import Markov
from agewise.policies.max_pack import MaxPack
from agewise.policies.max_pack_exact import MaxPackExact
from agewise.policies.max_weight import MaxWeight
from agewise.policies.oort import Oort
from agewise.policies.optimal import Optimal
from agewise.policies.power_of_choice import PowerOfChoice
from agewise.policies.proportional_fair import ProportionalFair
from agewise.policies.random_order import Random
from agewise.policies.round_robin import RoundRobin
from agewise.policies.whittle import Whittle
from agewise.random import Streams
from agewise.scheduling import AccessPoint, Policy
from agewise.spectrum import Allocation, Uplink

_GROUP = "agewise.policies"
_BUILT_IN: dict[str, type[Policy]] = {
    policy.name: policy
    for policy in (
        AgeBased,
        AgeBasedPlus,
        AgeDissimilarity,
        BestChannel,
        BestChannelNorm,
        BestNorm,
        CellInterior,
        FedCS,
        ImportanceChannel,
        Markov,
        MaxPack,
        MaxPackExact,
        MaxWeight,
        Oort,
        Optimal,
        PowerOfChoice,
        ProportionalFair,
        Random,
        RoundRobin,
        Whittle,
    )
}


def names() -> list[str]:
    """The names of all registered policies, sorted."""
    return sorted(_BUILT_IN | _added())


def policy_class(name: str) -> type[Policy]:
    """The class registered under ``name``; ``ValueError`` with the nearest names otherwise."""
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    added = _added()
    if name not in added:
        near = difflib.get_close_matches(name, names(), n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names())}"
        raise ValueError(f"unknown policy {name!r}; {hint}")
    return _load(added[name])


def find_class(text: str) -> type[Policy]:
    """The class of a policy by its name, or in a Python file: ``my_policy.py:MyPolicy``."""
    if (in_file := split_file(text)) is None:
        return policy_class(text)
    file, name, _ = in_file
    found = policy_in_file(file, name)
    if found.name in _BUILT_IN:
        raise ValueError(
            f"policy {file}: its name {found.name!r} is that of a policy of agewise: give it "
            "another"
        )
    return found


def make_policy(policy: str | Policy, **parameters: Any) -> Policy:
    """A policy from its name and parameters, or a policy object as it is.

    The name may be that of a class in a Python file, ``my_policy.py:MyPolicy``, which is run.
    Parameters may also stand in the name, behind a colon.

    >>> print(make_policy("age-based", alpha=0.25))
    age-based(alpha=0.25, ties=random, form=paper)
    >>> print(make_policy("max-pack:ties=lowest-index"))
    max-pack(ties=lowest-index)
    """
    if isinstance(policy, Policy):
        if parameters:
            raise ValueError(
                f"{', '.join(parameters)} cannot be given beside a policy object: set it there, "
                "or give the policy by its name"
            )
        return policy
    if not isinstance(policy, str):
        raise ValueError(f"policy must be a name or a Policy object, not {policy!r}")
    if policy in _BUILT_IN and not parameters:
        return _with_defaults(policy)
    if (in_file := split_file(policy)) is not None:
        found, policy, written = find_class(policy), in_file[0], in_file[2]
    else:
        policy, _, written = policy.partition(":")
        found = policy_class(policy)
    parameters = _together(_written_parameters(written, policy), parameters, policy)
    known = [f.name for f in fields(found)]  # type: ignore[arg-type]
    for parameter in parameters:
        if parameter not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes no parameters"
            raise ValueError(f"policy {policy!r} has no parameter {parameter!r}; {takes}")
    try:
        return found(**parameters)
    except TypeError as error:
        raise ValueError(f"policy {policy!r} cannot be made: {error}") from error


@functools.cache
def _with_defaults(name: str) -> Policy:
    """A built-in policy as it comes: one object serves all, for none ever changes."""
    return _BUILT_IN[name]()


def _written_parameters(text: str, policy: str) -> dict[str, Any]:
    """``alpha=0.5,ties=random`` as a dictionary; numbers become numbers."""
    parameters: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        name, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"policy {policy!r}: write parameters as name=value, not {part!r}")
        try:
            plain: float | str = float(value)
        except ValueError:
            plain = value.strip()
        parameters = _together(parameters, {name.strip(): plain}, policy)
    return parameters


def _together(some: dict[str, Any], more: dict[str, Any], policy: str) -> dict[str, Any]:
    """Both as one dictionary; ``ValueError`` for a parameter in both."""
    twice = [name for name in some if name in more]
    if twice:
        raise ValueError(f"policy {policy!r}: the parameter {twice[0]!r} is given twice")
    return some | more


def summary(name: str) -> str:
    """One line on the policy: the first line of its docstring, or why it cannot be loaded."""
    try:
        return (policy_class(name).__doc__ or "").strip().split("\n")[0]
    except ValueError as error:
        return str(error)


def _added() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=_GROUP)}


def _load(entry: EntryPoint) -> type[Policy]:
    try:
        found: Any = entry.load()
    except Exception as error:
        # Another package's code runs here: whatever is wrong with it is said with its name.
        raise ValueError(
            f"policy {entry.name!r} ({entry.value}) cannot be loaded: {error}"
        ) from error
    if not (isinstance(found, type) and issubclass(found, Policy)):
        raise ValueError(f"policy {entry.name!r} ({entry.value}) is not a subclass of Policy")
    policy: type[Policy] = found
    if not ("__dataclass_fields__" in vars(policy) and policy.name == entry.name):
        raise ValueError(
            f"policy {entry.name!r} ({entry.value}) must be a frozen dataclass with the class "
            f"attribute name = {entry.name!r}"
        )
    return policy


def schedule(
    gains: ArrayLike,
    ages: ArrayLike,
    *,
    power: float,
    rate_threshold: float,
    policy: str | Policy = "age-based",
    seed: int = 0,
    **parameters: Any,
) -> Allocation:
    """Who transmits on which subchannels with what power, for one round.

    ``gains[ue, subchannel]`` is the SNR per unit of power, ``ages[ue]`` the rounds since each
    UE's last received update, ``power`` each UE's budget (in the unit that makes gain times
    power an SNR) and ``rate_threshold`` the bits per real channel use that each scheduled UE
    must reach. ``policy`` is a name with its ``parameters`` (``alpha`` and ``ties`` for
    "age-based"), or a policy object. ``seed`` decides what the policy leaves to chance.

    >>> gains = [[9.0, 1.0, 0.5], [0.2, 8.0, 7.0], [3.0, 0.1, 6.0]]
    >>> allocation = schedule(gains, ages=[0, 4, 1], power=2.0, rate_threshold=1.5)
    >>> allocation.owner
    array([0, 1, 2])
    """
    uplink = Uplink(gains, power, rate_threshold)  # type: ignore[arg-type]
    chosen = make_policy(policy, **parameters)
    access_point = AccessPoint(chosen, uplink.ue_count, Streams(seed))
    access_point.describe(ages=ages)
    return access_point.plan(uplink)
