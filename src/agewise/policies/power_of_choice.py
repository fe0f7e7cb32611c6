"""Power-of-choice: the highest losses among a few candidates."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from agewise.core.elementary import log1p_each
from agewise.policies._parameters import check_share
from agewise.scheduling import Policy, Report, RoundView
from agewise.spectrum import Allocation, fill


@dataclass(frozen=True)
class PowerOfChoice(Policy):
    """Highest local loss first, among candidates drawn by data size (Cho, Wang, Joshi 2020).

    "Client selection in federated learning: convergence analysis and power-of-choice selection
    strategies": d candidates are drawn without replacement with probabilities proportional to
    ``|D_k|``, and of these the m with the highest loss F_k(w) take part. The more candidates, the
    faster and the more biased is learning.

    Adapted: d is ``candidate_share`` of the UEs, at least one. The loss is the one that the UE had
    when it was last heard, as in their variant without extra communication (rpow-d); who was never
    heard comes first, as there. How many take part is up to the spectrum: candidates fill it in
    falling order of loss, and those that what is left cannot serve are passed over. Candidates are
    drawn whatever their channel, so that the draw is the paper's; take more of them where many are
    out of reach.
    """

    name: ClassVar[str] = "power-of-choice"
    reads: ClassVar[frozenset[Report]] = frozenset({"losses"})
    candidate_share: float = 0.4

    def __post_init__(self) -> None:
        check_share("candidate_share", self.candidate_share)

    def schedule(self, view: RoundView, rng: np.random.Generator) -> Allocation:
        """Fill the spectrum with the candidates in falling order of loss."""
        # Exponential clocks that run at the speed |D_k| ring in the order of such a draw
        # (Efraimidis, Spirakis 2006).
        rings = -log1p_each(-rng.random(view.ue_count)) / view.data_sizes
        count = max(1, round(self.candidate_share * view.ue_count))
        drawn = np.argsort(rings, kind="stable")[:count]
        losses = np.nan_to_num(view.feedback.losses[drawn], nan=np.inf, posinf=np.inf)
        return fill(view.uplink, drawn[np.argsort(-losses, kind="stable")])
