"""What a scheduling policy is."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any, ClassVar, final

import numpy as np

from agewise.records import PolicyKey
from agewise.scheduling.view import Report, RoundView
from agewise.spectrum import Allocation

_NOTHING: Mapping[str, float] = MappingProxyType({})


class Policy(ABC):
    """A rule that says who transmits: a frozen dataclass of its parameters.

    A policy never changes itself. What it carries from round to round is declared, so that it
    follows a UE by its id when devices join and leave, and one object serves any number of runs:
    ``state_per_ue`` names arrays with one number per UE and the number that a new UE has,
    ``state_scalars`` names single numbers and their start. ``reads`` names what the policy reads
    of the feedback; only that is measured. A policy that ``probes`` has losses and update norms
    asked for anew before every round, of all eligible UEs, which all have to learn for it: see
    `agewise.learn.Federation.probe` for what that costs.
    """

    name: ClassVar[str]
    reads: ClassVar[frozenset[Report]] = frozenset()
    probes: ClassVar[bool] = False
    state_per_ue: ClassVar[Mapping[str, float]] = _NOTHING
    state_scalars: ClassVar[Mapping[str, float]] = _NOTHING

    @abstractmethod
    def schedule(self, view: RoundView, rng: np.random.Generator) -> Allocation:
        """The allocation of one round; ``rng`` is the only source of chance.

        Chance enters as arrays with one entry per UE (``rng.random(ue_count)``) or as single
        numbers, so that relabelling the UEs relabels the answer and nothing else.
        """

    @final
    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters by name."""
        if not hasattr(self, "__dataclass_fields__"):
            raise ValueError(
                f"the policy {type(self).__name__} is not a dataclass: put @dataclass(frozen=True) "
                "above its class, so that its parameters are known"
            )
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]

    @final
    @property
    def key(self) -> PolicyKey:
        """The name and the parameters, by which results know the policy."""
        return PolicyKey(self.name, self.parameters)

    @final
    def __str__(self) -> str:
        return str(self.key)
