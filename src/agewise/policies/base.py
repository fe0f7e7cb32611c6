"""What a scheduling policy is, and what it may look at."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, final, get_args

import numpy as np
from numpy.typing import NDArray

from agewise.age import check_ages
from agewise.spectrum import Allocation, Uplink

Ties = Literal["random", "lowest-index"]


@dataclass(frozen=True, eq=False)
class RoundView:
    """What the access point knows before a round; no policy sees the future or the data.

    ``uplink`` holds the gains (or estimates of them) with the power budget and the rate
    threshold, and ``ages[ue]`` the age of each UE's last received update. ``memory`` is where a
    policy leaves what it wants to find again in the next round, and is the only part of the view
    that it may change.
    """

    uplink: Uplink
    ages: NDArray[np.int64] | NDArray[np.float64]
    memory: dict[str, NDArray[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ages", check_ages(self.ages, self.uplink.ue_count))

    @property
    def ue_count(self) -> int:
        """K, the number of UEs."""
        return self.uplink.ue_count


class Policy(ABC):
    """A rule that says who transmits: a frozen dataclass of its parameters.

    A policy never changes itself. What evolves goes in and comes out through the view's memory,
    so one policy object serves any number of runs at once.
    """

    name: ClassVar[str]

    @abstractmethod
    def schedule(self, view: RoundView, rng: np.random.Generator) -> Allocation:
        """The allocation of one round; ``rng`` is the only source of chance."""

    @final
    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]

    @final
    def __str__(self) -> str:
        inside = ", ".join(f"{name}={value}" for name, value in self.parameters.items())
        return f"{self.name}({inside})" if inside else self.name


def check_ties(ties: Ties) -> None:
    """Raise ``ValueError`` unless this is a rule for ties."""
    if ties not in get_args(Ties):
        raise ValueError(f"ties must be one of {', '.join(get_args(Ties))}, not {ties!r}")


def tie_rank(ties: Ties, ue_count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The rank that decides between UEs of equal score: a drawn one, or the index."""
    return rng.permutation(ue_count) if ties == "random" else np.arange(ue_count)
