"""What a scheduling policy is, and what it may look at."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Final, Literal, final, get_args

import numpy as np
from numpy.typing import NDArray

from agewise.age import check_ages
from agewise.checks import real_number, whole_number
from agewise.policies.lessons import Lesson, Lessons
from agewise.records import PolicyKey
from agewise.spectrum import Allocation, Uplink

Ties = Literal["random", "lowest-index"]


_OTHERWISE: Final[dict[str, Callable[[int], Any]]] = {
    "data_sizes": lambda ue_count: np.ones(ue_count, np.int64),
    "lessons": Lessons.none,
    "compute_slots": np.zeros,
}


@dataclass(frozen=True, eq=False)
class RoundView:
    """What the access point knows before a round; no policy sees the future or the data.

    ``uplink`` holds the gains (or estimates of them) with the power budget and the rate
    threshold, and ``ages[ue]`` the age of each UE's last received update. ``memory`` is where a
    policy leaves what it wants to find again in the next round, and is the only part of the view
    that it may change.

    ``data_sizes[ue]`` is |D_k| (1 each if not given) and ``lessons`` what earlier rounds taught.
    Times are in slots, of which an upload at exactly the rate threshold takes one:
    ``compute_slots[ue]`` is how long the UE's local learning takes (0 if not given), and an update
    that is not there after ``deadline_slots`` is lost.
    """

    uplink: Uplink
    ages: NDArray[np.int64] | NDArray[np.float64]
    memory: dict[str, NDArray[Any]] = field(default_factory=dict)
    # What is None here gets its value below: no policy has to look for None.
    data_sizes: NDArray[np.int64] = None  # type: ignore[assignment]
    lessons: Lessons = None  # type: ignore[assignment]
    compute_slots: NDArray[np.float64] = None  # type: ignore[assignment]
    deadline_slots: float = math.inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "ages", check_ages(self.ages, self.uplink.ue_count))
        for name, otherwise in _OTHERWISE.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, otherwise(self.ue_count))
        for name in ("ages", "data_sizes", "compute_slots"):
            shown = getattr(self, name).view()  # the arrays are the simulator's own
            shown.flags.writeable = False
            object.__setattr__(self, name, shown)

    @property
    def ue_count(self) -> int:
        """K, the number of UEs."""
        return self.uplink.ue_count


class Policy(ABC):
    """A rule that says who transmits: a frozen dataclass of its parameters.

    A policy never changes itself. What evolves goes in and comes out through the view's memory,
    so one policy object serves any number of runs at once. ``lessons`` names what the policy
    reads of the view's lessons; only that is measured.
    """

    name: ClassVar[str]
    lessons: ClassVar[frozenset[Lesson]] = frozenset()

    @abstractmethod
    def schedule(self, view: RoundView, rng: np.random.Generator) -> Allocation:
        """The allocation of one round; ``rng`` is the only source of chance.

        Chance enters as arrays with one entry per UE (``rng.random(ue_count)``, `tie_rank`) or as
        single numbers, so that relabelling the UEs relabels the answer and nothing else.
        """

    @final
    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]

    @final
    @property
    def key(self) -> PolicyKey:
        """Which policy this is, as data: its name and parameters."""
        return PolicyKey(self.name, self.parameters)

    @final
    def __str__(self) -> str:
        return str(self.key)


def check_share(name: str, share: float) -> None:
    """Raise ``ValueError`` unless ``share`` is a positive part of the whole."""
    if not 0 < real_number(name, share) <= 1:
        raise ValueError(f"{name} must be in (0, 1], not {share:g}")


def whole_parameter(name: str, value: float, least: int) -> int:
    """A whole number of at least ``least``, also where it was written as 2.0."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return whole_number(name, value, least)


def check_ties(ties: Ties) -> None:
    """Raise ``ValueError`` unless this is a rule for ties."""
    if ties not in get_args(Ties):
        raise ValueError(f"ties must be one of {', '.join(get_args(Ties))}, not {ties!r}")


def tie_rank(ties: Ties, ue_count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The rank that decides between UEs of equal score: a drawn one, or the index."""
    return rng.permutation(ue_count) if ties == "random" else np.arange(ue_count)
