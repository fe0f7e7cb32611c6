"""Local objectives: what keeps the local steps of a UE from drifting towards its own data.

A local step of UE k in round t goes against

    gradient of its own objective at w  +  mu (w - w^t)  +  correction of UE k

where w^t is the model that it started from. Learners add the two terms (`Learner.train`); here is
where corrections come from. Like an aggregator, a local objective gets a state and gives the state
after a round, so that what a UE does follows from the model, the round, the UE, the seed and this
state alone.

- Proximal: mu > 0 and no corrections (FedProx; Li, Sahu, Zaheer et al. 2020).
- Control variates: mu = 0, and the correction of UE k is c - c_k (SCAFFOLD; Karimireddy, Kale,
  Mohri et al. 2020). After tau local steps of size eta from w^t to w_k, the UE's variate becomes
  c_k - c + (w^t - w_k) / (tau eta), the publication's option II, and c moves by the mean change.
  Means are weighted by numbers of samples, as the objective is; with equal numbers that is the
  published 1/K. A UE whose update did not arrive keeps its variate.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from agewise.learn.aggregation import Kept, State, Updates
from agewise.learn.base import Params
from agewise.scenario import ControlVariates, Learn


class LocalObjective(Protocol):
    """Where the corrections of local gradients come from: state in, updates in, state out."""

    def layout(self, ues: int, length: int) -> dict[str, Kept]:
        """The arrays of a state, for this number of UEs and models of this length."""
        ...

    def start(self, ues: int, length: int) -> State:
        """The state before the first round."""
        ...

    def corrections(self, state: State, ues: NDArray[np.int64]) -> Params | None:
        """``[len(ues), length]``: what is added to every gradient of these UEs."""
        ...

    def receive(self, state: State, updates: Updates, sizes: NDArray[np.int64], t: int) -> State:
        """The state after round ``t``, with these updates; ``sizes[ue]`` is ``|D_k|``."""
        ...


@dataclass(frozen=True)
class NoCorrections:
    """Gradients are taken as they are."""

    def layout(self, ues: int, length: int) -> dict[str, Kept]:  # noqa: ARG002
        """Nothing is kept."""
        return {}

    def start(self, ues: int, length: int) -> State:  # noqa: ARG002
        """Nothing."""
        return {}

    def corrections(self, state: State, ues: NDArray[np.int64]) -> Params | None:  # noqa: ARG002
        """None."""
        return None

    def receive(
        self,
        state: State,
        updates: Updates,  # noqa: ARG002
        sizes: NDArray[np.int64],  # noqa: ARG002
        t: int,  # noqa: ARG002
    ) -> State:
        """The state as it is."""
        return state


@dataclass(frozen=True)
class Variates:
    """The control variates c_k of the UEs and their weighted mean c, which is the server's."""

    settings: Learn

    def layout(self, ues: int, length: int) -> dict[str, Kept]:
        """A model's length of numbers for each UE, and once for the server."""
        return {"own": Kept((ues, length), np.float32), "server": Kept((length,))}

    def start(self, ues: int, length: int) -> State:
        """All variates are 0."""
        layout = self.layout(ues, length)
        return {name: np.zeros(shape, dtype) for name, (shape, dtype) in layout.items()}

    def corrections(self, state: State, ues: NDArray[np.int64]) -> Params | None:
        """The difference c - c_k of each of these UEs."""
        corrections: Params = state["server"].astype(np.float32) - state["own"][ues]
        return corrections

    def receive(self, state: State, updates: Updates, sizes: NDArray[np.int64], t: int) -> State:
        """Variates of the UEs that were heard, and their mean, after round ``t``."""
        own, server = state["own"], state["server"]
        steps = 1.0 / (self.settings.local_steps * self.settings.step_of(t))
        seen, whole = server.astype(np.float32), float(sizes.sum())
        moved = np.zeros_like(server)
        for ue, model in zip(updates.ues, updates.models, strict=True):
            change = np.float32(steps) * (updates.start - model) - seen
            own[ue] += change
            moved += (float(sizes[ue]) / whole) * change
        server += moved
        return state


def make_local_objective(settings: Learn) -> LocalObjective:
    """The local objective that a scenario describes."""
    return Variates(settings) if keeps_variates(settings) else NoCorrections()


def keeps_variates(settings: Learn) -> bool:
    """Whether a model's length of numbers is kept for every UE."""
    return isinstance(settings.local, ControlVariates)


def variates_bytes(settings: Learn, ues: int, length: int) -> int:
    """What the state of the scenario's local objective takes, for models of this length."""
    layout = make_local_objective(settings).layout(ues, length)
    return sum(math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in layout.values())
