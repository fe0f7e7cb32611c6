"""Aggregation of the updates that the access point receives.

Sums run over the UEs by rising index, whatever the order in which updates arrived.
"""

import math
from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agewise.core import aggregation as kernels
from agewise.core.elementary import exp_each, power_each
from agewise.learn.updates import ArraySpec, Params, State, StatefulPart, Updates
from agewise.part import LARGE, Kinds, Part

_Floats = NDArray[np.float64]
#: Of the sums by which the agreement of old and new updates is estimated, kept from round to round.
_KEPT: Final = 0.9
#: The least share of new updates that old ones are taken to explain.
_LEAST_EXPLAINED: Final = 1e-3


class Aggregated(NamedTuple):
    """The next model, the state after it, and the gradient diversity of what arrived.

    The gradient diversity is the sum of the squared lengths of the updates over the squared length
    of their sum (Yin, Pananjady, Lam et al. 2018); it is ``None`` where there are no updates, they
    cancel, or a rule does not work it out.
    """

    params: Params
    state: State
    diversity: float | None = None


class Aggregation(StatefulPart):
    """A rule that makes the next model.

    A rule of your own has the method ``combine``, and ``state_spec`` if it keeps anything.
    """

    kind: str = ""
    #: Whether it relies on the weight of every remembered update being ``|D_k|``.
    remembers_all: ClassVar[bool] = False

    def combine(self, state: State, updates: Updates, sizes: NDArray[np.int64]) -> Aggregated:
        """Make the model after a round with these updates.

        ``sizes[ue]`` is ``|D_k|``, times the weight of the staleness of what arrived late.
        """
        raise self.lacks("combine")


class WeightedAverage(Aggregation):
    """The models that arrived, averaged by their numbers of samples (the paper).

    The model moves by the mean update, ``w + sum of p_i u_i`` with ``p_i = |D_i| / sum of |D_j|``:
    Eq. 11 where all started from w. A policy's factors take the place of p_i.
    """

    kind: Literal["average"] = "average"

    def combine(self, state: State, updates: Updates, sizes: NDArray[np.int64]) -> Aggregated:
        """Move the model by the mean update."""
        step, diversity = _mean_update(updates, sizes)
        if step is None:
            return Aggregated(updates.params, state)
        return Aggregated(updates.params + step, state, diversity)


class Discount(Part):
    """How the weight of an update falls with its age."""

    kind: str = ""
    #: Whether it is estimated from how old and new updates agree.
    learns: ClassVar[bool] = False

    def decay(self, agreement: NDArray[np.float64]) -> float:
        """Tell what an update keeps of its weight in a round, above 0 and at most 1.

        ``agreement`` are the sums of `agewise.core.aggregation.learn_agreement`.
        """
        raise self.lacks("decay")


class NoDiscount(Discount):
    """An old update counts as much as a new one."""

    kind: Literal["none"] = "none"

    def decay(self, agreement: NDArray[np.float64]) -> float:
        """Keep all of it."""
        return 1.0


class FixedDiscount(Discount):
    """An update that is n rounds old counts exp(-rate n) of a new one."""

    kind: Literal["fixed"] = "fixed"
    rate: float = Field(gt=0, le=100, description="g, by round")

    def decay(self, agreement: NDArray[np.float64]) -> float:
        """Keep exp(-rate)."""
        return float(exp_each(np.array([-self.rate]))[0])


class AgreementDiscount(Discount):
    """An old update counts by how well old ones have predicted new ones so far.

    The factor of a round is estimated from how much of a UE's new update its old one predicted: the
    regression of new on old updates over the last rounds, taken to the power of one over the rounds
    between them.
    """

    kind: Literal["agreement"] = "agreement"
    learns: ClassVar[bool] = True

    def decay(self, agreement: NDArray[np.float64]) -> float:
        """Keep what is explained of new updates, a round."""
        inner, squares, rounds = agreement.tolist()
        if squares <= 0.0:
            return 1.0
        explained = min(max(inner / squares, _LEAST_EXPLAINED), 1.0)
        return float(power_each(np.array([explained]), squares / rounds)[0])


class UpdateMemory(Aggregation):
    """The last update of every UE, also of those not heard now (MIFA, Gu et al. 2021).

    A UE that is not heard now counts with the update that it sent last, weighted by ``|D_k|`` and
    less the older it is, so that no data are forgotten between two turns. Here UEs count from their
    first update on. Updates are remembered over their step size and applied with that of the round.
    Factors of a policy do not apply: everyone is in the sum.
    """

    kind: Literal["memory"] = "memory"
    discount: Annotated[Discount, Kinds] = Field(
        description="how the weight of an update falls with its age"
    )

    def state_spec(self, ues: int, length: int) -> Mapping[str, ArraySpec]:
        """Keep the updates, their weighted sum, the weights, the ages in rounds, and three sums.

        ``waiting`` is the discount of rounds in which nobody was heard. It changes all weights
        alike, and so nothing, until someone is heard: taken at once, it would end in 0 / 0.
        """
        return {
            "updates": ArraySpec((ues, length), np.float32),
            "total": ArraySpec((length,)),
            "weights": ArraySpec((ues,)),
            "ages": ArraySpec((ues,)),
            "agreement": ArraySpec((3,)),
            "waiting": ArraySpec((1,)),
        }

    def init_state(self, ues: int, length: int) -> State:
        """Remember no update."""
        state = super().init_state(ues, length)
        state["waiting"][0] = 1.0
        return state

    def combine(self, state: State, updates: Updates, sizes: NDArray[np.int64]) -> Aggregated:
        """Move the model by the weighted mean of all remembered updates."""
        state["waiting"] *= self.discount.decay(state["agreement"])
        state["ages"] += 1.0
        diversity = None
        if updates.ues.size:
            diversity = self._update_memory(state, updates, sizes[updates.ues].astype(np.float64))
        whole = float(state["weights"].sum())
        if whole == 0.0:
            return Aggregated(updates.params, state)
        factor = updates.step / whole
        return Aggregated(_moved(updates.params, state["total"], factor), state, diversity)

    def _update_memory(self, state: State, updates: Updates, heard: _Floats) -> float | None:
        """Remember what arrived from UEs of these sizes; their diversity."""
        ues, weights, ages, total = updates.ues, state["weights"], state["ages"], state["total"]
        kept = float(state["waiting"][0])
        if kept != 1.0:
            total *= kept
            weights *= kept
            state["waiting"][0] = 1.0
        apart, together, inner, squares = _remember(state, updates, heard, weights[ues], total)
        if self.discount.learns:
            # What was never heard is remembered as 0 and adds nothing.
            kernels.learn_agreement(state["agreement"], _KEPT, inner, squares, ages[ues])
        weights[ues] = heard
        ages[ues] = 0.0
        return _diversity(apart, together)


class VarianceReduced(Aggregation):
    """Mean update, corrected by the last updates of all (FedVARP, Jhunjhunwala et al. 2022).

    What arrived, less what was remembered of these UEs, plus what is remembered of all, with means
    weighted by ``|D_k|``. A UE that was never heard is remembered as 0. Updates are remembered over
    their step size and applied with that of the round. Factors of a policy do not apply.
    """

    kind: Literal["variance-reduced"] = "variance-reduced"
    remembers_all: ClassVar[bool] = True

    def state_spec(self, ues: int, length: int) -> Mapping[str, ArraySpec]:
        """Keep the updates, and their mean weighted by ``|D_k|`` over all UEs."""
        return {"updates": ArraySpec((ues, length), np.float32), "mean": ArraySpec((length,))}

    def combine(self, state: State, updates: Updates, sizes: NDArray[np.int64]) -> Aggregated:
        """Move the model by the corrected mean."""
        ues, mean = updates.ues, state["mean"]
        if not ues.size:
            return Aggregated(updates.params, state)
        heard = float(sizes[ues].sum())
        shares = sizes[ues] / heard
        correction = np.zeros(updates.params.size)
        apart, together, _, _ = _remember(state, updates, shares, shares, correction)
        params = _moved(updates.params, mean + correction, updates.step)
        mean += (heard / float(sizes.sum())) * correction
        return Aggregated(params, state, _diversity(apart, together))


class ServerMomentum(Aggregation):
    """The average update with momentum (FedAvgM; Reddi et al. 2021).

    ``m = beta m + d``, ``w + server_step m``. A round without updates leaves all as it is.
    """

    kind: Literal["momentum"] = "momentum"
    beta: float = Field(ge=0, lt=1, description="share of the last step that is taken again")
    server_step: float = Field(
        gt=0, le=LARGE, description="step of the access point; 1 takes it whole"
    )

    def state_spec(self, ues: int, length: int) -> Mapping[str, ArraySpec]:
        """Keep the momentum."""
        return {"momentum": ArraySpec((length,))}

    def combine(self, state: State, updates: Updates, sizes: NDArray[np.int64]) -> Aggregated:
        """Move the model by the momentum."""
        step, diversity = _mean_update(updates, sizes)
        if step is None:
            return Aggregated(updates.params, state)
        momentum = state["momentum"]
        momentum *= self.beta
        momentum += step
        return Aggregated(_moved(updates.params, momentum, self.server_step), state, diversity)


class ServerAdam(Aggregation):
    """Adam on the average update (FedAdam; Reddi et al. 2021).

    ``m = b1 m + (1 - b1) d``, ``v = b2 v + (1 - b2) d^2``, ``w + server_step m / (sqrt(v) + tau)``:
    Algorithm 2 there, with v = tau^2 at the start and no correction of the start. A round without
    updates leaves all as it is.
    """

    kind: Literal["adam"] = "adam"
    beta_1: float = Field(ge=0, lt=1, description="share of the mean update that is kept a round")
    beta_2: float = Field(
        ge=0, lt=1, description="share of the mean squared update that is kept a round"
    )
    server_step: float = Field(gt=0, le=LARGE, description="step of the access point")
    tau: float = Field(
        ge=1e-12, le=LARGE, description="added to the root of the mean squared update"
    )

    def state_spec(self, ues: int, length: int) -> Mapping[str, ArraySpec]:
        """Keep the mean and the mean square."""
        return {"mean": ArraySpec((length,)), "square": ArraySpec((length,))}

    def init_state(self, ues: int, length: int) -> State:
        """Begin with no mean, and tau^2 as the mean square."""
        state = super().init_state(ues, length)
        state["square"] += self.tau**2
        return state

    def combine(self, state: State, updates: Updates, sizes: NDArray[np.int64]) -> Aggregated:
        """Move the model by the mean update over the root of its mean square."""
        step, diversity = _mean_update(updates, sizes)
        if step is None:
            return Aggregated(updates.params, state)
        mean, square = state["mean"], state["square"]
        mean *= self.beta_1
        mean += (1.0 - self.beta_1) * step
        square *= self.beta_2
        square += (1.0 - self.beta_2) * np.square(step, dtype=np.float64)
        scaled = mean / (np.sqrt(square) + self.tau)
        return Aggregated(_moved(updates.params, scaled, self.server_step), state, diversity)


def _mean_update(updates: Updates, sizes: NDArray[np.int64]) -> tuple[Params | None, float | None]:
    """Work out the mean update and the diversity; no step without updates."""
    if not updates.ues.size:
        return None, None
    shares = updates.factors
    if shares is None:
        heard = sizes[updates.ues]
        shares = heard / float(heard.sum())
    step = np.empty_like(updates.params)
    apart, together = kernels.mean_update(
        updates.models, updates.starts, updates.version, shares, step
    )
    return step, _diversity(apart, together)


def _remember(
    state: State, updates: Updates, new: _Floats, old: _Floats, total: _Floats
) -> tuple[float, float, float, float]:
    """Put updates over their step size in the place of older ones, also in their weighted sum."""
    steps = (1.0 / updates.steps).astype(np.float32)
    found: tuple[float, float, float, float] = kernels.update_memory(
        updates.models, updates.starts, updates.version, steps, updates.ues, state["updates"],
        new, old, total,
    )  # fmt: skip
    return found


def _diversity(apart: float, together: float) -> float | None:
    diversity = apart / together if together > 0 else math.inf
    return diversity if math.isfinite(diversity) else None


def _moved(params: Params, step: NDArray[np.float64], factor: float) -> Params:
    """Take ``factor`` times a step from a model, rounded once."""
    result = np.empty_like(params)
    kernels.moved_by(params, step, factor, result)
    return result
