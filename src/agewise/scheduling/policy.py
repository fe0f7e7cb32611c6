"""Scheduling policies, and their view of a round."""

import functools
import inspect
from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, ClassVar, Literal, final, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agewise.checks import one_of
from agewise.records import PolicyKey, plain_value
from agewise.spectrum import Allocation, Greedy, Packing, Uplink
from agewise.spectrum.uplink import read_only

#: What UEs report with their updates.
Report = Literal["losses", "update_norms"]
#: Whether a policy knows what UEs last reported, or has it asked for afresh before every round.
Known = Literal["last", "fresh"]
#: Who goes first among UEs of equal score: the one drawn, afresh in each round, or the first.
Ties = Literal["random", "lowest-index"]
#: What a view has of each UE.
_PER_UE = (
    "ages", "data_sizes", "compute_slots", "threshold_slots", "staleness", "attempts", "successes",
)  # fmt: skip
_NOTHING: Mapping[str, float] = MappingProxyType({})
_set = object.__setattr__


@dataclass(frozen=True, eq=False)
class Feedback:
    """Reports of each UE with the last of its updates that arrived, ``float64[ue]`` each.

    NaN where none has arrived yet, and where the policy does not ask for it (`Policy.reads`).
    ``losses[ue]`` is the mean loss on the UE's samples of the model that it was given, and
    ``update_norms[ue]`` the length of its update, as it counted when it arrived.
    """

    losses: NDArray[np.float64]
    update_norms: NDArray[np.float64]

    @classmethod
    @functools.lru_cache(maxsize=16)
    def none(cls, ue_count: int) -> "Feedback":
        """Report nothing yet; the arrays are shared and read-only."""
        return cls(*(read_only(np.full(ue_count, np.nan)) for _ in fields(cls)))


@dataclass(eq=False)
class State:
    """State of a policy between rounds, as it declares it: the policy may change it."""

    per_ue: dict[str, NDArray[np.float64]]
    scalars: dict[str, float]


@dataclass(eq=False, slots=True)
class RoundView:
    """Knowledge of the access point before round ``t``; no policy sees the future or the data.

    ``uplink`` holds the gains as they are seen, the power budget and the rate threshold;
    ``ages[ue]`` is the age of each UE's last received update, ``data_sizes[ue]`` ``|D_k|``. Times
    are in slots: ``compute_slots[ue]`` is how long until the UE has its update,
    ``threshold_slots[ue]`` how long an upload at exactly the rate threshold takes, 1 unless UEs
    differ in that, and an update that is not there after ``deadline_slots`` is lost.
    ``staleness[ue]`` is how many rounds ago the UE got the model that its update starts from: 0
    where UEs learn within the round. ``attempts[ue]`` counts the rounds in which the UE was
    scheduled, ``successes[ue]`` those in which its update arrived. ``feedback`` is what earlier
    rounds reported, and ``state`` what the policy left there, the only part that it may change.
    """

    t: int
    uplink: Uplink
    ages: NDArray[np.int64] | NDArray[np.float64]
    data_sizes: NDArray[np.int64]
    compute_slots: NDArray[np.float64]
    threshold_slots: NDArray[np.float64]
    deadline_slots: float
    staleness: NDArray[np.int64]
    attempts: NDArray[np.int64]
    successes: NDArray[np.int64]
    feedback: Feedback
    state: State

    @property
    def ue_count(self) -> int:
        """K, the number of UEs."""
        return self.uplink.ue_count

    def read_only_copy(self) -> "RoundView":
        """Return the same view on arrays of its own, which cannot be written to."""
        heard = (read_only(getattr(self.feedback, name).copy()) for name in get_args(Report))
        copies = {name: read_only(getattr(self, name).copy()) for name in _PER_UE}
        uplink = self.uplink.read_only_copy()
        return replace(self, uplink=uplink, feedback=Feedback(*heard), **copies)


@dataclass(frozen=True, kw_only=True)
class Policy(ABC):
    """A rule that says who transmits: a frozen dataclass of its parameters.

    A policy gives every UE a `utility`; its ``packing`` turns these into subchannels and power, and
    ``ties`` decides between equals. A policy that chooses sets of UEs overrides `schedule` instead,
    and has neither parameter unless it declares it itself.

    A policy never changes itself. What it carries from round to round is declared, so that it
    follows a UE by its id when devices join and leave, and one object serves any number of runs:
    ``state_per_ue`` names arrays with one number per UE and the number that a new UE has,
    ``state_scalars`` names single numbers and their start. ``equation`` says in a line how the
    policy weighs UE k, for people to read. ``reads`` names what the policy reads
    of the feedback; only that is measured. A policy that ``probes`` has losses and update norms
    asked for anew before every round, of all eligible UEs, which all have to learn for it: see
    `agewise.learn.Federation.probe` for what that costs.
    """

    name: ClassVar[str]
    equation: ClassVar[str] = ""
    reads: ClassVar[frozenset[Report]] = frozenset()
    probes: ClassVar[bool] = False
    state_per_ue: ClassVar[Mapping[str, float]] = _NOTHING
    state_scalars: ClassVar[Mapping[str, float]] = _NOTHING
    packing: Packing = Greedy()
    ties: Ties = "random"

    def __init_subclass__(cls) -> None:
        for name in vars(cls).keys() & _SHARED.keys() - inspect.get_annotations(cls).keys():
            raise TypeError(
                f"policy {cls.__name__}: dataclasses ignore a value without a type: write "
                f"{name}: {name.capitalize()} = ..."
            )

    def __post_init__(self) -> None:
        _set(self, "packing", Packing.of(self.packing))
        one_of("ties", self.ties, get_args(Ties))
        for name, shared in _SHARED.items():
            given = getattr(self, name) != shared.default
            if given and name not in parameter_names(type(self)):
                raise ValueError(f"policy {self.name} has no {name}: it chooses sets of UEs itself")

    def utility(self, view: RoundView, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return a utility for each UE; ``rng`` is the only source of chance.

        What utilities mean, infinite ones too, is in `agewise.spectrum.Packing`. Chance enters as
        arrays with one entry per UE (``rng.random(ue_count)``) or as single numbers, so that
        relabelling the UEs relabels the answer and nothing else.
        """
        raise NotImplementedError(f"policy {self.name}: give it a method utility or schedule")

    def schedule(self, view: RoundView, rng: np.random.Generator) -> Allocation:
        """Return the allocation of one round: utilities, ties, packing."""
        return self.pack(view, self.utility(view, rng), self.tie_rank(view, rng))

    @final
    def tie_rank(self, view: RoundView, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return the rank by which ``ties`` decides between UEs of equal score."""
        random = self.ties == "random"
        return rng.permutation(view.ue_count) if random else np.arange(view.ue_count)

    @final
    def pack(self, view: RoundView, utility: ArrayLike, rank: NDArray[np.int64]) -> Allocation:
        """Pack the UEs by these utilities; an error of theirs names the policy and the round."""
        try:
            return self.packing.pack(view.uplink, utility, rank)
        except ValueError as error:
            raise ValueError(f"policy {self} in round {view.t}: {error}") from error

    @final
    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters by name; the packing is written as text."""
        if "__dataclass_fields__" not in vars(type(self)):
            raise ValueError(
                f"the policy {type(self).__name__} is not a dataclass: put @dataclass(frozen=True) "
                "above its class, so that its parameters are known"
            )
        values = {name: getattr(self, name) for name in parameter_names(type(self))}
        return {n: str(x) if isinstance(x, Packing) else x for n, x in values.items()}

    @final
    @property
    def key(self) -> PolicyKey:
        """The name and the parameters, by which results know the policy."""
        defaults = {each.name: plain_value(each.default) for each in fields(self)}
        parameters = self.parameters
        usual = (name for name, x in parameters.items() if plain_value(x) == defaults[name])
        return PolicyKey(self.name, parameters, tuple(usual))

    @final
    def __str__(self) -> str:
        return str(self.key)


#: Parameters of every policy that gives utilities.
_SHARED = {each.name: each for each in fields(Policy)}


@functools.lru_cache(maxsize=256)
def parameter_names(kind: type[Policy]) -> tuple[str, ...]:
    """Return the names of a policy's parameters: its own, then those that policies share.

    A policy that gives no utility has only what it declares.
    """
    own = [each.name for each in fields(kind) if each.name not in _SHARED]
    packs = kind.utility is not Policy.utility
    # By annotations: in a worker the fields of a class from a script are copies.
    classes = [each for each in kind.__mro__ if issubclass(each, Policy) and each is not Policy]
    written = {name for each in classes for name in inspect.get_annotations(each)}
    return (*own, *(name for name in _SHARED if packs or name in written))
