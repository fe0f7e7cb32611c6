"""Local objectives: what keeps the local steps of a UE from drifting towards its own data.

A local step of UE k in round t goes against

    gradient of its own objective at w  +  mu (w - w^t)  +  correction of UE k

where w^t is the model that it started from. Models add the two terms (`Model.train`); a local
objective says what mu and the corrections are.
"""

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agewise.learn.updates import ArraySpec, Params, State, StatefulPart, Updates
from agewise.part import LARGE


class LocalObjective(StatefulPart):
    """What a UE's local steps minimise besides its own loss.

    One of your own overrides what it needs: ``proximal_weight``, ``corrections`` with what
    ``receive`` keeps for them.
    """

    kind: str = ""
    #: Whether local steps must be along gradients, which k-means has none of.
    needs_gradients: ClassVar[bool] = True
    #: Whether all updates must start from the newest model.
    needs_rounds: ClassVar[bool] = False
    #: Whether every local step must be the step size times the gradient.
    needs_plain_sgd: ClassVar[bool] = False

    @property
    def proximal_weight(self) -> float:
        """mu, the weight of the proximal term; 0 without one."""
        return 0.0

    def corrections(self, state: State, ues: NDArray[np.int64]) -> Params | None:
        """``[len(ues), length]``: what is added to every gradient of these UEs; usually nothing."""
        return None

    def receive(
        self, state: State, updates: Updates, sizes: NDArray[np.int64], total_step: float
    ) -> State:
        """Take in a round's updates; ``sizes[ue]`` is ``|D_k|``, ``total_step`` is tau eta."""
        return state


class PlainObjective(LocalObjective):
    """A UE goes down the gradient of its own objective, as in the paper."""

    kind: Literal["none"] = "none"
    needs_gradients: ClassVar[bool] = False


class Proximal(LocalObjective):
    """Half mu times the squared distance from the round's model is added: FedProx.

    Li, Sahu, Zaheer et al. 2020.
    """

    kind: Literal["proximal"] = "proximal"
    mu: float = Field(gt=0, le=LARGE, description="the weight of the proximal term")

    @property
    def proximal_weight(self) -> float:
        """The weight mu of the proximal term."""
        return self.mu


class ControlVariates(LocalObjective):
    """Gradients are corrected for how a UE's own differ from those of all: SCAFFOLD.

    Karimireddy, Kale, Mohri et al. 2020: the correction of UE k is c - c_k, with a control variate
    c_k of each UE and their weighted mean c at the server. After tau local steps of size eta from
    w^t to w_k, the UE's variate becomes c_k - c + (w^t - w_k) / (tau eta), the publication's option
    II, and c moves by the mean change. Means are weighted by numbers of samples, as the objective
    is; with equal numbers that is the published 1/K. A UE whose update did not arrive keeps its
    variate.
    """

    kind: Literal["control-variates"] = "control-variates"
    # c is that of the round: the update of a UE that started earlier was corrected by another one.
    needs_rounds: ClassVar[bool] = True
    # (w^t - w_k) / (tau eta) is the mean of a UE's gradients with such steps alone.
    needs_plain_sgd: ClassVar[bool] = True

    def state_spec(self, ues: int, length: int) -> Mapping[str, ArraySpec]:
        """Keep a variate of each UE, and that of the server."""
        return {"own": ArraySpec((ues, length), np.float32), "server": ArraySpec((length,))}

    def corrections(self, state: State, ues: NDArray[np.int64]) -> Params | None:
        """The difference c - c_k of each of these UEs."""
        corrections: Params = state["server"].astype(np.float32) - state["own"][ues]
        return corrections

    def receive(
        self, state: State, updates: Updates, sizes: NDArray[np.int64], total_step: float
    ) -> State:
        """Move the variates of the UEs that were heard, and their mean."""
        own, server = state["own"], state["server"]
        steps = 1.0 / total_step
        seen, whole = server.astype(np.float32), float(sizes.sum())
        moved = np.zeros_like(server)
        for ue, move in zip(updates.ues, updates.moves, strict=True):
            change = np.float32(-steps) * move - seen
            own[ue] += change
            moved += (float(sizes[ue]) / whole) * change
        server += moved
        return state
