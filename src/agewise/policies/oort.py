"""Oort: useful and fast UEs, with some places for those never tried."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from agewise.checks import number_within
from agewise.core.elementary import log1p_each, power_each
from agewise.scheduling import Policy, Report, RoundView
from agewise.spectrum import Allocation, InOrder, Packing


@dataclass(frozen=True, kw_only=True)
class Oort(Policy):
    """Most useful and fastest UEs, with places for untried ones (Lai, Zhu, Madhyastha et al. 2021).

    "Oort: efficient federated learning via guided participant selection", Algorithm 1. In round R
    a UE that was last heard in round L has the utility ``U + sqrt(0.1 ln R / L)``, times
    ``(T / t)^penalty`` if its time t is longer than the preferred T. U is ``|D_k|`` times the root
    of the mean squared loss, at most the ``clip`` quantile of all, and scaled to [0, 1] as in the
    authors' code. Of the M places of a round the share ``epsilon`` (times ``decay`` each round, at
    least ``least_epsilon``) goes to UEs never tried, drawn with probabilities proportional to
    their speed; the others go to tried ones drawn in proportion to utility among those that reach
    ``cutoff`` times the last utility which would have a place.

    Adapted: the mean loss stands for the root mean square, which nobody reports. M is not known
    before the spectrum is full: M = N sets the cut-off, and UEs fill the spectrum in an order in
    which every prefix has its share of untried ones; those below the cut-off come last. t is the
    time to compute plus one slot to upload, T is ``pace`` times the deadline (no deadline, no
    penalty). A UE that was scheduled but never heard counts as tried, with U = 0. Dropped: the
    pacer, which moves T, and the list of clients excluded after too many rounds.
    """

    name: ClassVar[str] = "oort"
    equation: ClassVar[str] = (
        "U_k = (u_k + √(0.1 ln R / L_k)) · min(1, T / t_k)^penalty, u_k ∝ |D_k| F_k"
    )
    reads: ClassVar[frozenset[Report]] = frozenset({"losses"})
    state_per_ue: ClassVar[Mapping[str, float]] = {"tried": 0.0}
    epsilon: float = 0.9
    decay: float = 0.98
    least_epsilon: float = 0.2
    clip: float = 0.95
    cutoff: float = 0.95
    penalty: float = 2.0
    pace: float = 1.0
    packing: Packing = InOrder()

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("epsilon", "decay", "least_epsilon", "clip", "cutoff"):
            number_within(name, getattr(self, name), 0.0, 1.0)
        number_within("penalty", self.penalty, 0.0)
        number_within("pace", self.pace, 0.0, above=True)

    def schedule(self, view: RoundView, rng: np.random.Generator) -> Allocation:
        """Pack tried and untried UEs in turn, and remember who was tried."""
        allocation = super().schedule(view, rng)
        view.state.per_ue["tried"][allocation.scheduled] = 1.0
        return allocation

    def utility(self, view: RoundView, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw an order of the UEs: K for the first, 1 for the last."""
        rounds = view.t + 1
        tried = (view.state.per_ue["tried"] > 0) | ~np.isnan(view.feedback.losses)
        epsilon = max(
            self.least_epsilon, self.epsilon * power_each(np.array([self.decay]), rounds - 1.0)[0]
        )

        utilities = self.usefulness(view, rounds)
        last_place = round((1.0 - epsilon) * view.uplink.subchannel_count)
        ranked = np.sort(utilities[tried])[::-1]
        last = ranked[min(max(last_place, 1), ranked.size) - 1] if ranked.size else 0.0
        speeds = 1.0 / (view.threshold_slots + view.compute_slots)
        likely = np.where(tried, utilities, speeds)
        # Clocks that ring in the order of a draw in these proportions; nothing is impossible.
        rings = -log1p_each(-rng.random(view.ue_count)) / np.maximum(likely, 1e-300)
        below = tried & (utilities < self.cutoff * last)
        order = np.lexsort((rings, np.where(below, -utilities, 0.0), below))
        view.state.per_ue["tried"] = tried.astype(np.float64)
        places = np.empty(view.ue_count)
        places[_in_turn(order, tried[order], epsilon)] = np.arange(view.ue_count, 0, -1)
        return places

    def usefulness(self, view: RoundView, rounds: int) -> NDArray[np.float64]:
        """The utility of each UE in this round, counted from 1; 0 for U where nothing is known."""
        useful = np.nan_to_num(view.data_sizes * view.feedback.losses)
        known = useful[~np.isnan(view.feedback.losses)]
        if known.size:
            low, high = known.min(), np.quantile(known, self.clip)
            useful = np.clip((useful - low) / (high - low if high > low else 1.0), 0.0, 1.0)
        # An age of 0 says that the UE was heard in the round before this one.
        last_heard = np.maximum(rounds - 1.0 - view.ages, 1.0)
        utilities = useful + np.sqrt(0.1 * log1p_each(np.array([rounds - 1.0])) / last_heard)
        times = (view.compute_slots + view.threshold_slots) / (self.pace * view.deadline_slots)
        return np.asarray(utilities * power_each(np.maximum(times, 1.0), -self.penalty))


def _in_turn(
    order: NDArray[np.int64], tried: NDArray[np.bool_], epsilon: float
) -> NDArray[np.int64]:
    """The UEs in an order of which every prefix holds its share ``epsilon`` of untried ones."""
    share = np.where(tried, 1.0 - epsilon, epsilon)
    nth = np.where(tried, np.cumsum(tried), np.cumsum(~tried)) - 0.5
    due = np.divide(nth, share, out=np.full(order.size, np.inf), where=share > 0)
    return order[np.argsort(due, kind="stable")]
