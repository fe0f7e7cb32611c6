"""Age-based scheduling (ABS): the policy of the paper, Algorithm 2."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from agewise.age import Form, check_alpha, f_alpha
from agewise.scheduling import Policy, RoundView


@dataclass(frozen=True, kw_only=True)
class AgeBased(Policy):
    """Stalest update per subchannel needed first (Yang, Arafa, Quek, Poor 2020).

    The utility of a UE is ``f_alpha(age)``: the lower ``alpha``, the more a high age counts.
    ``form`` is the paper's f_alpha or its continuous variant. Packed greedily this is Algorithm 2;
    ``packing="exact"`` is the optimum of problem (3), which Algorithm 2 approximates, and
    ``packing="auction"`` comes nearer to it in a few times the work.
    """

    name: ClassVar[str] = "age-based"
    alpha: float = 0.5
    form: Form = "paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_alpha(self.alpha, self.form)

    def utility(self, view: RoundView, rng: np.random.Generator) -> NDArray[np.float64]:
        """Weigh the ages: f_alpha of Eq. 3a."""
        return f_alpha(view.ages, self.alpha, self.form)
