"""What the access point makes of the updates that it receives.

An `Aggregator` gets a state and updates, and gives the next model and the state after it. States
are arrays that may be large; they are handed over, so that whoever gives one away does not use it
any more. Sums run over the UEs by rising index, whatever the order in which updates arrived.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from agewise import scenario
from agewise.core import aggregation as kernels
from agewise.core.elementary import exp_each, power_each
from agewise.learn.base import Params

#: Of the sums by which the agreement of old and new updates is estimated, kept from round to round.
_KEPT = 0.9
#: The least share of new updates that old ones are taken to explain.
_LEAST_EXPLAINED = 1e-3

State = dict[str, NDArray[Any]]


class Kept(NamedTuple):
    """An array of a state: its shape, and the type of its numbers."""

    shape: tuple[int, ...]
    dtype: type[np.float32 | np.float64] = np.float64


@dataclass(frozen=True, eq=False)
class Updates:
    """What arrived in a round: ``models[i]`` is what UE ``ues[i]`` made of ``start``.

    ``factors[i]`` are those of the policy, or ``None`` if it left the weights to the average.
    The UEs may be given in any order; here they are in rising order, so that no sum depends on
    who came first.
    """

    start: Params
    models: Params
    ues: NDArray[np.int64]
    factors: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        """Put the UEs in order."""
        if self.models.shape != (self.ues.size, self.start.size):
            raise ValueError(
                f"updates of {self.ues.size} UEs to a model of {self.start.size} numbers need "
                f"models of shape {(self.ues.size, self.start.size)}, not {self.models.shape}"
            )
        if kernels.is_rising(self.ues):
            return
        order = np.argsort(self.ues)
        ues = self.ues[order]
        if not kernels.is_rising(ues):
            twice = int(ues[1:][ues[1:] == ues[:-1]][0])
            raise ValueError(f"UE {twice} sent two updates in a round: give one of each UE")
        object.__setattr__(self, "ues", ues)
        object.__setattr__(self, "models", self.models[order])
        if self.factors is not None:
            object.__setattr__(self, "factors", self.factors[order])


class Aggregated(NamedTuple):
    """The next model, the gradient diversity of what arrived, and the state.

    The gradient diversity is the sum of the squared lengths of the updates over the squared length
    of their sum (Yin, Pananjady, Lam et al. 2018); it is ``None`` where there are no updates or
    they cancel.
    """

    params: Params
    diversity: float | None
    state: State


class Aggregator(Protocol):
    """A rule that makes the next model: state in, updates in, model and state out."""

    def layout(self, ues: int, length: int) -> dict[str, Kept]:
        """The arrays of a state, for this number of UEs and models of this length."""
        ...

    def start(self, ues: int, length: int) -> State:
        """The state before the first round."""
        ...

    def combine(self, state: State, updates: Updates, sizes: NDArray[np.int64]) -> Aggregated:
        """The model after a round in which these updates arrived; ``sizes[ue]`` is ``|D_k|``."""
        ...


def average(
    models: Params,
    sizes: NDArray[np.int64],
    start: Params,
    factors: NDArray[np.float64] | None = None,
) -> tuple[Params, float | None]:
    """The average of ``models[i]`` weighted by ``|D_k|``, and the diversity of their updates.

    A policy may have its own ``factors`` of the updates: then the result is ``start`` plus the
    sum of ``factors[i] * (models[i] - start)``. Without models, ``start`` stays as it is.
    """
    if len(models) == 0:
        return start, None
    result = np.empty_like(start)
    if factors is None:
        shares = sizes.astype(np.float64)
        apart, together = kernels.combine(models, shares, 0.0, start, 0.0, result)
    else:
        rest = 1.0 - float(factors.sum())
        apart, together = kernels.combine(models, factors, 1.0, start, rest, result)
    return result, _diversity(apart, together)


@dataclass(frozen=True)
class Average:
    """The paper's: the models that arrived, weighted by their numbers of samples."""

    def layout(self, ues: int, length: int) -> dict[str, Kept]:  # noqa: ARG002
        """Nothing is kept."""
        return {}

    def start(self, ues: int, length: int) -> State:
        """Nothing."""
        return _zeros(self.layout(ues, length))

    def combine(self, state: State, updates: Updates, sizes: NDArray[np.int64]) -> Aggregated:
        """The average, or the sum by the policy's factors."""
        heard = sizes[updates.ues]
        result, diversity = average(updates.models, heard, updates.start, updates.factors)
        return Aggregated(result, diversity, state)


@dataclass(frozen=True)
class Memory:
    """The last update of every UE, weighted by ``|D_k|`` and less the older it is.

    MIFA (Gu, Huang, Zhang, Huang 2021): a UE that is not heard now counts with the update that it
    sent last, so that no data are forgotten between two turns. Here UEs count from their first
    update on. The weight of an update falls by the factor ``exp(-discount)`` a round; ``None``
    is by agreement: the factor is estimated from how much of a UE's new update its old one
    predicted, the regression of new on old updates over the last rounds, taken to the power of
    one over the rounds between them. Factors of a policy do not apply: everyone is in the sum.
    """

    discount: float | None

    def layout(self, ues: int, length: int) -> dict[str, Kept]:
        """The updates, their weighted sum, the weights, the ages in rounds, and three sums.

        ``waiting`` is the discount of rounds in which nobody was heard. It changes all weights
        alike, and so nothing, until someone is heard: taken at once, it would end in 0 / 0.
        """
        return {
            "updates": Kept((ues, length), np.float32),
            "total": Kept((length,)),
            "weights": Kept((ues,)),
            "ages": Kept((ues,)),
            "agreement": Kept((3,)),
            "waiting": Kept((1,)),
        }

    def start(self, ues: int, length: int) -> State:
        """No update is remembered."""
        state = _zeros(self.layout(ues, length))
        state["waiting"][0] = 1.0
        return state

    def combine(self, state: State, updates: Updates, sizes: NDArray[np.int64]) -> Aggregated:
        """The model moves by the weighted mean of all remembered updates."""
        weights, ages, total = state["weights"], state["ages"], state["total"]
        state["waiting"] *= self.kept(state["agreement"])
        ages += 1.0
        diversity = None
        if updates.ues.size:
            diversity = self._hear(state, updates, sizes[updates.ues].astype(np.float64))
        whole = float(weights.sum())
        if whole == 0.0:
            return Aggregated(updates.start, None, state)
        result = np.empty_like(updates.start)
        kernels.moved_by(updates.start, total, 1.0 / whole, result)
        return Aggregated(result, diversity, state)

    def _hear(self, state: State, updates: Updates, heard: NDArray[np.float64]) -> float | None:
        """Remember what arrived from UEs of these sizes; their diversity."""
        ues, weights, ages, total = updates.ues, state["weights"], state["ages"], state["total"]
        kept = float(state["waiting"][0])
        if kept != 1.0:
            total *= kept
            weights *= kept
            state["waiting"][0] = 1.0
        apart, together, inner, squares = kernels.remember(
            updates.models, updates.start, ues, state["updates"], heard, weights[ues], total
        )
        if self.discount is None:
            # What was never heard is remembered as 0 and adds nothing.
            kernels.learn_agreement(state["agreement"], _KEPT, inner, squares, ages[ues])
        weights[ues] = heard
        ages[ues] = 0.0
        return _diversity(apart, together)

    def kept(self, agreement: NDArray[np.float64]) -> float:
        """What an update keeps of its weight in a round, above 0 and at most 1."""
        if self.discount is not None:
            return float(exp_each(np.array([-self.discount]))[0])
        inner, squares, rounds = agreement.tolist()
        if squares <= 0.0:
            return 1.0
        explained = min(max(inner / squares, _LEAST_EXPLAINED), 1.0)
        return float(power_each(np.array([explained]), squares / rounds)[0])


@dataclass(frozen=True)
class VarianceReduced:
    """What arrived, less what was remembered of these UEs, plus what is remembered of all.

    FedVARP (Jhunjhunwala, Sharma, Nagarkatti, Joshi 2022), with means weighted by ``|D_k|``. A UE
    that was never heard is remembered as 0. Factors of a policy do not apply.
    """

    def layout(self, ues: int, length: int) -> dict[str, Kept]:
        """The updates, and their mean weighted by ``|D_k|`` over all UEs."""
        return {"updates": Kept((ues, length), np.float32), "mean": Kept((length,))}

    def start(self, ues: int, length: int) -> State:
        """No update is remembered."""
        return _zeros(self.layout(ues, length))

    def combine(self, state: State, updates: Updates, sizes: NDArray[np.int64]) -> Aggregated:
        """The model moves by the corrected mean."""
        start, ues, mean = updates.start, updates.ues, state["mean"]
        if not ues.size:
            return Aggregated(start, None, state)
        heard = float(sizes[ues].sum())
        shares = sizes[ues] / heard
        correction = np.zeros(start.size)
        apart, together, _, _ = kernels.remember(
            updates.models, start, ues, state["updates"], shares, shares, correction
        )
        result = np.empty_like(start)
        kernels.moved_by(start, mean + correction, 1.0, result)
        mean += (heard / float(sizes.sum())) * correction
        return Aggregated(result, _diversity(apart, together), state)


@dataclass(frozen=True)
class Momentum:
    """The average update with momentum: ``m = beta m + d``, ``w + server_step m``.

    FedAvgM as in Reddi, Charles, Zaheer et al. 2021. A round without updates leaves all as it is.
    """

    beta: float
    server_step: float

    def layout(self, ues: int, length: int) -> dict[str, Kept]:  # noqa: ARG002
        """The momentum."""
        return {"momentum": Kept((length,))}

    def start(self, ues: int, length: int) -> State:
        """No momentum yet."""
        return _zeros(self.layout(ues, length))

    def combine(self, state: State, updates: Updates, sizes: NDArray[np.int64]) -> Aggregated:
        """The model moves by the momentum."""
        step, diversity = _mean_update(updates, sizes)
        if step is None:
            return Aggregated(updates.start, None, state)
        momentum = state["momentum"]
        momentum *= self.beta
        momentum += step
        result = np.empty_like(updates.start)
        kernels.moved_by(updates.start, momentum, self.server_step, result)
        return Aggregated(result, diversity, state)


@dataclass(frozen=True)
class Adam:
    """Adam on the average update d, without correction of the start.

    ``m = b1 m + (1 - b1) d``, ``v = b2 v + (1 - b2) d^2``, ``w + server_step m / (sqrt(v) + tau)``:
    FedAdam of Reddi, Charles, Zaheer et al. 2021, Algorithm 2, with v = tau^2 at the start. A round
    without updates leaves all as it is.
    """

    beta_1: float
    beta_2: float
    server_step: float
    tau: float

    def layout(self, ues: int, length: int) -> dict[str, Kept]:  # noqa: ARG002
        """The mean and the mean square."""
        return {"mean": Kept((length,)), "square": Kept((length,))}

    def start(self, ues: int, length: int) -> State:
        """No mean yet, and tau^2 as the mean square."""
        state = _zeros(self.layout(ues, length))
        state["square"] += self.tau**2
        return state

    def combine(self, state: State, updates: Updates, sizes: NDArray[np.int64]) -> Aggregated:
        """The model moves by the mean update over the root of its mean square."""
        step, diversity = _mean_update(updates, sizes)
        if step is None:
            return Aggregated(updates.start, None, state)
        mean, square = state["mean"], state["square"]
        mean *= self.beta_1
        mean += (1.0 - self.beta_1) * step
        square *= self.beta_2
        square += (1.0 - self.beta_2) * (step * step)
        result = np.empty_like(updates.start)
        kernels.moved_by(
            updates.start, mean / (np.sqrt(square) + self.tau), self.server_step, result
        )
        return Aggregated(result, diversity, state)


def make_aggregator(settings: scenario.Learn) -> Aggregator:
    """The rule that a scenario describes."""
    match settings.aggregation:
        case scenario.UpdateMemory(discount=scenario.FixedDiscount(rate=rate)):
            return Memory(rate)
        case scenario.UpdateMemory(discount=scenario.AgreementDiscount()):
            return Memory(None)
        case scenario.UpdateMemory():
            return Memory(0.0)
        case scenario.VarianceReduction():
            return VarianceReduced()
        case scenario.ServerMomentum() as given:
            return Momentum(given.beta, given.server_step)
        case scenario.ServerAdam() as given:
            return Adam(given.beta_1, given.beta_2, given.server_step, given.tau)
        case _:
            return Average()


def is_finite(params: Params) -> bool:
    """Whether no weight of a model is infinite or not a number."""
    return bool(kernels.is_finite(params))


def memory_bytes(settings: scenario.Learn, ues: int, length: int) -> int:
    """What the state of the scenario's rule takes, for models of this length."""
    layout = make_aggregator(settings).layout(ues, length)
    return sum(math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in layout.values())


def keeps_updates(settings: scenario.Learn) -> bool:
    """Whether the scenario's rule keeps a model's length of numbers for every UE."""
    return isinstance(settings.aggregation, scenario.UpdateMemory | scenario.VarianceReduction)


def _zeros(layout: dict[str, Kept]) -> State:
    return {name: np.zeros(shape, dtype) for name, (shape, dtype) in layout.items()}


def _mean_update(
    updates: Updates, sizes: NDArray[np.int64]
) -> tuple[NDArray[np.float64] | None, float | None]:
    """The step that the average would take, and the diversity; no step without updates.

    It is summed in double: the difference of two models in single precision would be noise where
    the step is small, and Adam divides by the size of the step.
    """
    if not updates.ues.size:
        return None, None
    factors = updates.factors
    if factors is None:
        heard = sizes[updates.ues]
        factors = heard / float(heard.sum())
    step = np.zeros(updates.start.size)
    apart, together = kernels.add_updates(updates.models, factors, updates.start, step)
    return step, _diversity(apart, together)


def _diversity(apart: float, together: float) -> float | None:
    diversity = apart / together if together > 0 else math.inf
    return diversity if math.isfinite(diversity) else None
