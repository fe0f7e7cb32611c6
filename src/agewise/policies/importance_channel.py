"""Importance- and channel-aware sampling, with unbiased aggregation."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from agewise.checks import number_within
from agewise.core.elementary import log1p_each
from agewise.scheduling import Policy, Report, RoundView
from agewise.spectrum import Allocation, fill

#: More draws take longer and tell no more: each is made by itself.
_MOST_SHARE = 1000.0


@dataclass(frozen=True, kw_only=True)
class ImportanceChannel(Policy):
    """Long updates over good channels likelier, aggregated without bias (Ren, He, Wen et al. 2020).

    "Scheduling for cellular federated edge learning with importance and channel awareness": with
    importance ``a_k = (n_k / n) ||g_k||`` and upload latency T_k, the probabilities that minimise
    ``rho sum a_k^2 / p_k + (1 - rho) sum p_k T_k`` are ``p_k = a_k sqrt(rho / ((1-rho) T_k + l))``
    with l such that they add to one. A UE drawn once has the factor ``n_k / (n p_k)``, so that the
    expected update is that of all UEs.

    Adapted: T_k is the share of the uplink that the UE needs now, its fewest subchannels over N.
    UEs out of reach are not drawn, and n counts the samples of the others. ||g_k|| is the length
    of the UE's last update, or the largest known if it was never heard. Importances are scaled to
    add to one, so that ``rho`` means the same whatever the unit of the model. There is a draw with
    replacement for ``draw_share`` of the subchannels, at least one; drawn UEs take their fewest
    best free subchannels one after another, and one that does not fit what is left is dropped with
    its draws. A UE drawn c times has the factor ``n_k c / (n m p_k)``, where m is the number of
    draws that were kept.

    The expected update is exactly that of all UEs within reach if every draw fits. Where draws are
    dropped it leans to UEs with small needs: fewer draws lean less and are noisier.
    ``floor`` mixes the shares n_k / n into the probabilities: the lengths are old, and without it
    a UE whose last update had no length would never be heard again. It also bounds each factor by
    1 / floor, so that no update thought unimportant can throw the model far off. The draws choose
    the set, so there is no packing.
    """

    name: ClassVar[str] = "importance-channel"
    equation: ClassVar[str] = "p_k ∝ a_k √(ρ / ((1−ρ) n_k / N + λ)), a_k ∝ |D_k| ‖Δ_k‖"
    reads: ClassVar[frozenset[Report]] = frozenset({"update_norms"})
    rho: float = 0.5
    draw_share: float = 0.5
    floor: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        number_within("rho", self.rho, 0.0, 1.0, above=True)
        number_within("draw_share", self.draw_share, 0.0, _MOST_SHARE, above=True)
        number_within("floor", self.floor, 0.0, 1.0)

    def schedule(self, view: RoundView, rng: np.random.Generator) -> Allocation:
        """Fill the spectrum with the drawn UEs, and weigh their updates."""
        need, _ = view.uplink.needs()
        sizes = np.where(need > 0, view.data_sizes, 0)
        if not sizes.any():
            return fill(view.uplink, [])
        shares = sizes / sizes.sum()
        norms = view.feedback.update_norms
        unheard = np.isnan(norms)  # must not keep a UE from being heard
        largest = 1.0 if unheard.all() else norms[~unheard].max()
        importance = shares * np.where(unheard, largest, norms)
        latency = need / view.uplink.subchannel_count
        chances = _probabilities(importance if importance.any() else shares, latency, self.rho)
        chances = (1.0 - self.floor) * chances + self.floor * shares
        draws = max(1, round(self.draw_share * view.uplink.subchannel_count))
        drawn = [_draw(chances, rng) for _ in range(draws)]
        allocation = fill(view.uplink, list(dict.fromkeys(drawn)))
        kept = np.bincount(drawn, minlength=view.ue_count) * allocation.scheduled
        expected = chances * kept.sum()
        factors = np.divide(shares * kept, expected, out=np.zeros_like(shares), where=kept > 0)
        return allocation.weighing(factors)


def _probabilities(
    importance: NDArray[np.float64], latency: NDArray[np.float64], rho: float
) -> NDArray[np.float64]:
    """The optimal probabilities, by Newton's method on the multiplier l.

    >>> _probabilities(np.array([3.0, 1.0]), np.array([0.1, 0.5]), rho=1.0)
    array([0.75, 0.25])
    """
    importance = importance / importance.sum()
    excess = (1.0 - rho) * np.maximum(latency - latency[importance > 0].min(), 0.0)
    # With x = l + (1 - rho) T_min the sum is convex and falls in x, and is at least 1 here:
    # from this side Newton's method never oversteps.
    x = rho * max(float(importance[excess == 0].sum()) ** 2, 1e-300)
    for _ in range(1000):
        chances = importance * np.sqrt(rho / (excess + x))
        surplus = float(chances.sum()) - 1.0
        if surplus < 1e-12:
            break
        x += 2.0 * surplus / float((chances / (excess + x)).sum())
    return np.asarray(chances / chances.sum())


def _draw(chances: NDArray[np.float64], rng: np.random.Generator) -> int:
    """One UE with these chances: the first of exponential clocks that run at their speed."""
    waiting = -log1p_each(-rng.random(chances.size))
    rings = np.divide(waiting, chances, out=np.full(chances.size, np.inf), where=chances > 0)
    return int(rings.argmin())
