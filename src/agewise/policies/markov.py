"""Markov scheduling: each UE sends by a chance that depends on how long it has waited."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from agewise.checks import number_within
from agewise.scheduling import Policy, RoundView
from agewise.spectrum import Allocation, fill

#: With less a UE would wait for longer than any run lasts.
_LEAST_LOAD = 1e-9


@dataclass(frozen=True, kw_only=True)
class Markov(Policy):
    """Each UE sends by a chance that its waiting sets, at even intervals (Javani, Wang 2024).

    "Load balancing in federated learning": k of n UEs are to send per round on average, each
    deciding by the rounds since it was last selected alone, and the variance of the interval X
    between its turns is to be as small as possible. The mean of X must be r = n / k; the variance
    is smallest if X is only ever floor(r) or floor(r) + 1, the former with chance
    floor(r) + 1 - r. A UE that sends after waiting for a rounds has X = a + 1, so it sends after
    floor(r) - 1 with that chance, after any longer time for sure, and never before. (Derived from
    the paper's problem, not copied from its theorem.) What counts is selection: an upload that is
    lost has had its turn.

    Adapted: k is ``load`` UEs per subchannel. UEs that send fill the spectrum, the longest waiting
    first and in a drawn order among equals; who does not fit was not selected, and so is sure to
    send again and goes first in the next round. With a load above what the spectrum carries,
    intervals grow and this becomes longest-waiting-first. At first nobody has waited, which would
    have all UEs send at once after r rounds for ever: they start as if they had waited for a time
    drawn from the chain's stationary law. Chance chooses the set that sends, so there is no
    packing.
    """

    name: ClassVar[str] = "markov"
    equation: ClassVar[str] = (
        "P(send | a) = 0, ⌊r⌋ + 1 − r, 1 for a below, at, above ⌊r⌋ − 1; r = K / (load · N)"
    )
    #: Rounds since a UE was last selected; not known of a new one.
    state_per_ue: ClassVar[Mapping[str, float]] = {"waited": np.nan}
    load: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        number_within("load", self.load, _LEAST_LOAD)

    def schedule(self, view: RoundView, rng: np.random.Generator) -> Allocation:
        """Fill the spectrum with those that send, the longest waiting first."""
        interval = max(view.ue_count / (self.load * (view.uplink.subchannel_count or 1)), 1.0)
        waited = view.state.per_ue["waited"]
        if np.isnan(waited).all() and not view.ages.any():
            # The chance of having waited j rounds is P(X > j) / r, and X > j for all j < floor(r).
            waited = np.floor(rng.random(view.ue_count) * interval)
        else:  # the age stands for it where a UE is new
            waited = np.where(np.isnan(waited), view.ages, waited)
        decided, drawn = rng.random(view.ue_count), rng.random(view.ue_count)
        order = np.lexsort((drawn, -waited))
        sending = order[decided[order] < _chance_to_send(waited[order], interval)]
        allocation = fill(view.uplink, sending)
        view.state.per_ue["waited"] = np.where(allocation.scheduled, 0.0, waited + 1.0)
        return allocation


def _chance_to_send(waited: NDArray[np.float64], interval: float) -> NDArray[np.float64]:
    """The chance to send after ``waited`` rounds, for a mean interval of at least 1.

    >>> _chance_to_send(np.array([0.0, 1.0, 2.0, 3.0]), interval=2.25)
    array([0.  , 0.75, 1.  , 1.  ])
    """
    shortest = np.floor(interval)
    early = shortest + 1.0 - interval
    return np.where(waited < shortest - 1.0, 0.0, np.where(waited < shortest, early, 1.0))
