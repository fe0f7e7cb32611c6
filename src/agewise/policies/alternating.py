"""Alternating scheduling: near UEs, and now and then all of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from agewise.checks import number_within, whole_parameter
from agewise.policies._estimates import MEAN, running_mean
from agewise.scheduling import Policy, RoundView
from agewise.spectrum import InOrder, Packing


@dataclass(frozen=True, kw_only=True)
class Alternating(Policy):
    """Alternating scheduling: near UEs, and each second round everyone (Zhu, Wang, Huang 2020).

    "Broadband analog aggregation for low-latency federated edge learning" has two schemes.
    Cell-interior scheduling takes only UEs within a radius, whose updates arrive reliably, which
    leaves the data at the cell edge unused; alternating scheduling has rounds of the interior and
    rounds of everyone in turn. The default here is the alternating scheme; a large
    ``inclusive_every`` comes near to the pure cell-interior scheme.

    Adapted: the access point knows no positions, so the interior is the ``interior_share`` of the
    UEs (at least one) with the highest mean SNR over the subchannels and the rounds so far.
    Updates here do not add up in the air: as many of the UEs that a round is for as the spectrum
    serves transmit, in an order drawn afresh. Every ``inclusive_every``-th round is for all.
    """

    name: ClassVar[str] = "alternating"
    equation: ClassVar[str] = (
        "U_k ~ uniform(0, 1]; −∞ outside the cK best SNRs, but in every m-th round"
    )
    state_per_ue: ClassVar[Mapping[str, float]] = MEAN
    interior_share: float = 0.5
    inclusive_every: int = 2
    packing: Packing = InOrder()

    def __post_init__(self) -> None:
        super().__post_init__()
        number_within("interior_share", self.interior_share, 0.0, 1.0, above=True)
        every = whole_parameter("inclusive_every", self.inclusive_every, least=1)
        object.__setattr__(self, "inclusive_every", every)

    def utility(self, view: RoundView, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw an order of the interior, or of everyone."""
        chance = rng.random(view.ue_count)
        snr = running_mean(view.state, view.uplink.mean_snrs())
        utility = 1.0 - chance
        if (view.t + 1) % self.inclusive_every != 0:
            count = max(1, round(self.interior_share * view.ue_count))
            utility[np.lexsort((chance, -snr))[count:]] = -np.inf
        return utility
