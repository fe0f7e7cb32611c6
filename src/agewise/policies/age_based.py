"""Age-based scheduling (ABS), the policy of the paper, and its baseline MaxPack."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from agewise.age import Form, check_alpha, f_alpha
from agewise.checks import number_within
from agewise.scheduling import Policy, RoundView


@dataclass(frozen=True, kw_only=True)
class AgeBased(Policy):
    """Stalest update per subchannel needed first (Yang, Arafa, Quek, Poor 2020).

    The utility of a UE is ``f_alpha(age)``: the lower ``alpha``, the more a high age counts.
    ``form`` is the paper's f_alpha or its continuous variant. Packed greedily this is Algorithm 2;
    ``packing="exact"`` is the optimum of problem (3), which Algorithm 2 approximates, and
    ``packing="auction"`` comes nearer to it in a few times the work. Ages above a ``cap`` count as
    the cap: where UEs hold their updates until they are heard, the oldest have the stalest ones.
    """

    name: ClassVar[str] = "age-based"
    equation: ClassVar[str] = "U_k = f_α(T_k), f_α(T) = T^(1−α) / (1−α), or log(1 + T) for α = 1"
    alpha: float = 0.5
    form: Form = "paper"
    cap: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_alpha(self.alpha, self.form)
        if self.cap is not None:
            number_within("cap", self.cap, 0.0, above=True)

    def utility(self, view: RoundView, rng: np.random.Generator) -> NDArray[np.float64]:
        """Weigh the ages: f_alpha of Eq. 3a."""
        ages = view.ages if self.cap is None else np.minimum(view.ages, self.cap)
        return f_alpha(ages, self.alpha, self.form)


@dataclass(frozen=True, kw_only=True)
class MaxPack(Policy):
    """As many UEs as fit: fewest subchannels needed first (after Yang, Jiang, Shi, Ding 2018).

    "Federated learning via over-the-air computation" selects the most UEs whose updates, added up
    in the air, arrive with an error below a bound, by sparse and low-rank optimisation over the
    beam of several antennas. Adapted, as in the paper of age-based scheduling, which calls this
    MaxPack: only the aim is kept, the largest number of UEs. Updates go over subchannels of their
    own at a rate threshold, and UEs are packed greedily by Algorithm 2 with equal utilities;
    ``packing="exact"`` reaches the largest number.

    All utilities are equal, so ties are the rule: with ``ties="lowest-index"`` the UEs of low
    index are served again and again where many need one subchannel.
    """

    name: ClassVar[str] = "max-pack"
    equation: ClassVar[str] = "U_k = 1"

    def utility(self, view: RoundView, rng: np.random.Generator) -> NDArray[np.float64]:
        """Value all UEs alike: the paper's special case of a constant f."""
        return np.ones(view.ue_count)
