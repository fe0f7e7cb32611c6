"""Power-of-choice: the highest losses among a few candidates."""

from dataclasses import dataclass
from typing import ClassVar, get_args

import numpy as np

from agewise.checks import number_within, one_of
from agewise.core.elementary import log1p_each
from agewise.scheduling import Known, Policy, Report, RoundView
from agewise.spectrum import Allocation, InOrder, Packing


@dataclass(frozen=True, kw_only=True)
class PowerOfChoice(Policy):
    """Highest local loss first, among candidates drawn by data size (Cho, Wang, Joshi 2020).

    "Client selection in federated learning: convergence analysis and power-of-choice selection
    strategies": d candidates are drawn without replacement with probabilities proportional to
    ``|D_k|``, and of these the m with the highest loss F_k(w) take part. The more candidates, the
    faster and the more biased is learning.

    Adapted: d is ``candidate_share`` of the UEs, at least one. The loss is the one that the UE had
    when it was last heard, as in their variant without extra communication (rpow-d); who was never
    heard comes first, as there. With ``losses="fresh"`` UEs are asked for those of the present
    model before every round, their pow-d; there d candidates answer, here every eligible UE learns
    and answers, which makes it a bound rather than a rival. How many take part is up to the
    spectrum: candidates fill it in falling order of loss, and those that what is left cannot serve
    are passed over. Candidates are drawn whatever their channel, so that the draw is the paper's;
    take more of them where many are out of reach.
    """

    name: ClassVar[str] = "power-of-choice"
    equation: ClassVar[str] = "U_k = F_k, among cK candidates drawn by |D_k|; ∞ if never heard"
    reads: ClassVar[frozenset[Report]] = frozenset({"losses"})
    candidate_share: float = 0.4
    losses: Known = "last"
    packing: Packing = InOrder()

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("losses", self.losses, get_args(Known))
        object.__setattr__(self, "probes", self.losses == "fresh")
        number_within("candidate_share", self.candidate_share, 0.0, 1.0, above=True)

    def schedule(self, view: RoundView, rng: np.random.Generator) -> Allocation:
        """Pack the candidates by their losses; equal ones go as they were drawn."""
        # Exponential clocks that run at the speed |D_k| ring in the order of such a draw
        # (Efraimidis, Spirakis 2006).
        rings = -log1p_each(-rng.random(view.ue_count)) / view.data_sizes
        drawn = np.argsort(rings, kind="stable")
        losses = np.nan_to_num(view.feedback.losses, nan=np.inf, posinf=np.inf)
        losses[drawn[max(1, round(self.candidate_share * view.ue_count)) :]] = -np.inf
        return self.pack(view, losses, np.argsort(drawn))
