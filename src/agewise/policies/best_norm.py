"""Longest update first."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from agewise.scheduling import Policy, Report, RoundView
from agewise.spectrum import InOrder, Packing


@dataclass(frozen=True, kw_only=True)
class BestNorm(Policy):
    """Longest update first: BN2 of Amiri, Gündüz, Kulkarni, Poor (2021).

    "Convergence of update aware device scheduling for federated learning at the wireless edge"
    serves the K UEs with the highest ||w_k - w||_2. Adapted: to know the present norms every UE
    would have to train, so the norm is that of the UE's last update that arrived, and a UE never
    heard from goes before all others, so that everyone is heard once. As many are served as the
    spectrum has room for, each with its fewest best free subchannels.

    The paper's BN2-C, by the norm of what is left of an update after compression to what the
    channel carries, is the same here: an update arrives whole, or its UE cannot reach the rate
    and is passed over. ``ties`` decides between all UEs in the first round.
    """

    name: ClassVar[str] = "best-norm"
    reads: ClassVar[frozenset[Report]] = frozenset({"update_norms"})
    packing: Packing = InOrder()

    def utility(self, view: RoundView, rng: np.random.Generator) -> NDArray[np.float64]:
        """Take the last norm of each UE; infinity where none was heard, so that it goes first."""
        norms = view.feedback.update_norms
        return np.where(np.isnan(norms), np.inf, norms)
