"""What the access point makes of the updates that it receives.

An `Aggregator` gets a state and updates, and gives the next model and the state after it. States
are arrays that may be large; they are handed over, so that whoever gives one away does not use it
any more.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from agewise import scenario
from agewise.core import aggregation as kernels
from agewise.learn.base import Params

#: Of the sums by which the agreement of old and new updates is estimated, kept from round to round.
_KEPT = 0.9

State = dict[str, NDArray[Any]]


class Updates(NamedTuple):
    """What arrived in a round: ``models[i]`` is what UE ``ues[i]`` made of ``start``.

    ``factors[i]`` are those of the policy, or ``None`` if it left the weights to the average.
    """

    start: Params
    models: Params
    ues: NDArray[np.int64]
    factors: NDArray[np.float64] | None = None


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

    def start(self, sizes: NDArray[np.int64], length: int) -> State:
        """The state before the first round, for UEs of these sizes and models of this length."""
        ...

    def combine(self, state: State, updates: Updates, sizes: NDArray[np.int64]) -> Aggregated:
        """The model after a round in which these updates arrived; ``sizes[ue]`` is |D_k|."""
        ...


def average(
    models: Params,
    sizes: NDArray[np.int64],
    start: Params,
    factors: NDArray[np.float64] | None = None,
) -> tuple[Params, float | None]:
    """The average of ``models[i]`` weighted by |D_k|, and the diversity of their updates.

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

    def start(self, sizes: NDArray[np.int64], length: int) -> State:  # noqa: ARG002
        """Nothing is kept."""
        return {}

    def combine(self, state: State, updates: Updates, sizes: NDArray[np.int64]) -> Aggregated:
        """The average, or the sum by the policy's factors."""
        start, models, ues, factors = updates
        return Aggregated(*average(models, sizes[ues], start, factors), state)


@dataclass(frozen=True)
class Memory:
    """The last update of every UE, weighted by |D_k| and less the older it is.

    MIFA (Gu, Huang, Zhang, Huang 2021): a UE that is not heard now counts with the update that it
    sent last, so that no data are forgotten between two turns. Here UEs count from their first
    update on. The weight of an update falls by the factor ``exp(-discount)`` a round; ``None``
    is by agreement: the factor is estimated from how much of a UE's new update its old one
    predicted, the regression of new on old updates over the last rounds, taken to the power of
    one over the rounds between them. Factors of a policy do not apply: everyone is in the sum.
    """

    discount: float | None

    def start(self, sizes: NDArray[np.int64], length: int) -> State:
        """No update is remembered: K x length numbers that will hold them."""
        return {
            "updates": np.zeros((sizes.size, length), np.float32),
            "total": np.zeros(length),
            "weights": np.zeros(sizes.size),
            "ages": np.zeros(sizes.size),
            "agreement": np.zeros(3),
        }

    def combine(self, state: State, updates: Updates, sizes: NDArray[np.int64]) -> Aggregated:
        """The model moves by the weighted mean of all remembered updates."""
        start, models, ues, _ = updates
        weights, ages, total = state["weights"], state["ages"], state["total"]
        kept = self._kept(state["agreement"])
        total *= kept
        weights *= kept
        ages += 1.0
        known = weights[ues] > 0
        apart, together, inner, squares = kernels.remember(
            models, start, ues, state["updates"], sizes[ues].astype(np.float64), weights[ues], total
        )
        _learn_agreement(state["agreement"], inner[known], squares[known], ages[ues][known])
        weights[ues] = sizes[ues]
        ages[ues] = 0.0
        whole = float(weights.sum())
        if whole == 0.0:
            return Aggregated(start, None, state)
        result = np.empty_like(start)
        kernels.moved_by(start, total, 1.0 / whole, result)
        return Aggregated(result, _diversity(apart, together), state)

    def _kept(self, agreement: NDArray[np.float64]) -> float:
        """What an update keeps of its weight in a round."""
        if self.discount is not None:
            return math.exp(-self.discount)
        inner, squares, rounds = agreement
        if squares <= 0.0:
            return 1.0
        explained = min(max(inner / squares, 1e-3), 1.0)
        return float(explained ** (squares / rounds))


def _learn_agreement(
    agreement: NDArray[np.float64],
    inner: NDArray[np.float64],
    squares: NDArray[np.float64],
    rounds: NDArray[np.float64],
) -> None:
    """Add what this round says of how well old updates predict new ones."""
    agreement *= _KEPT
    agreement += inner.sum(), squares.sum(), (squares * rounds).sum()


@dataclass(frozen=True)
class VarianceReduced:
    """What arrived, less what was remembered of these UEs, plus what is remembered of all.

    FedVARP (Jhunjhunwala, Sharma, Nagarkatti, Joshi 2022), with means weighted by |D_k|. A UE
    that was never heard is remembered as 0. Factors of a policy do not apply.
    """

    def start(self, sizes: NDArray[np.int64], length: int) -> State:
        """No update is remembered: K x length numbers that will hold them."""
        return {
            "updates": np.zeros((sizes.size, length), np.float32),
            "mean": np.zeros(length),
        }

    def combine(self, state: State, updates: Updates, sizes: NDArray[np.int64]) -> Aggregated:
        """The model moves by the corrected mean."""
        start, models, ues, _ = updates
        if not ues.size:
            return Aggregated(start, None, state)
        mean = state["mean"]
        heard = float(sizes[ues].sum())
        shares = sizes[ues] / heard
        correction = np.zeros(start.size)
        apart, together, _, _ = kernels.remember(
            models, start, ues, state["updates"], shares, shares, correction
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

    def start(self, sizes: NDArray[np.int64], length: int) -> State:  # noqa: ARG002
        """No momentum yet."""
        return {"momentum": np.zeros(length)}

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

    def start(self, sizes: NDArray[np.int64], length: int) -> State:  # noqa: ARG002
        """No mean yet."""
        return {"mean": np.zeros(length), "square": np.full(length, self.tau**2)}

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


def _mean_update(
    updates: Updates, sizes: NDArray[np.int64]
) -> tuple[NDArray[np.float64] | None, float | None]:
    """The step that the average would take, and the diversity; no step without updates."""
    start, models, ues, factors = updates
    if not ues.size:
        return None, None
    result, diversity = average(models, sizes[ues], start, factors)
    return result.astype(np.float64) - start, diversity


def _diversity(apart: float, together: float) -> float | None:
    diversity = apart / together if together > 0 else math.inf
    return diversity if math.isfinite(diversity) else None
