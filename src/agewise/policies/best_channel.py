"""Best channel first."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from agewise.scheduling import Policy, RoundView
from agewise.spectrum import InOrder, Packing


@dataclass(frozen=True, kw_only=True)
class BestChannel(Policy):
    """Best channel first: BC of Amiri, Gündüz, Kulkarni, Poor (2021).

    "Convergence of update aware device scheduling for federated learning at the wireless edge"
    serves the K UEs with the highest gain ``|h|²``. Adapted: the gain of a UE is its mean over the
    subchannels, and as many are served, in falling order, as the spectrum has room for, each with
    its fewest best free subchannels.
    """

    name: ClassVar[str] = "best-channel"
    packing: Packing = InOrder()

    def utility(self, view: RoundView, rng: np.random.Generator) -> NDArray[np.float64]:
        """Average the gains over the subchannels."""
        return view.uplink.mean_gains()
