"""Proportional fair scheduling: who has an unusually good round."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from agewise.checks import one_of, whole_parameter
from agewise.policies._estimates import MEAN, running_mean
from agewise.scheduling import Policy, RoundView
from agewise.spectrum import Allocation, InOrder, Packing

_Of = Literal["gain", "rate"]


@dataclass(frozen=True, kw_only=True)
class ProportionalFair(Policy):
    """Best now against its own average first (Yang, Liu, Quek, Poor 2020).

    "Scheduling policies for federated learning in wireless networks" serves the N UEs with the
    highest ratio of the SNR now to its average over time, one subchannel each. Adapted: UEs go in
    falling order of the ratio, each takes its fewest best free subchannels, and the SNR of a UE
    is that over the whole band. ``of`` says what is compared:

    - "gain": the mean SNR over the subchannels now, with that of all rounds. This is the paper's;
      without a rate threshold UEs whose channels fade alike are served equally often, however far
      away they are.
    - "rate": the rate with all subchannels to itself now, water-filled, with the mean rate at
      which it was served, which is 0 in a round that passes it over. This is proportional fairness
      as in cellular data networks; those never served come first.

    The average forgets over ``memory_rounds`` rounds. ``ties`` decides the first round.
    """

    name: ClassVar[str] = "proportional-fair"
    equation: ClassVar[str] = "U_k(t) = SNR_k(t) / mean of SNR_k up to t"
    state_per_ue: ClassVar[Mapping[str, float]] = MEAN
    of: _Of = "gain"
    memory_rounds: int = 100
    packing: Packing = InOrder()

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("of", self.of, get_args(_Of))
        window = whole_parameter("memory_rounds", self.memory_rounds, least=1)
        object.__setattr__(self, "memory_rounds", window)

    def utility(self, view: RoundView, rng: np.random.Generator) -> NDArray[np.float64]:
        """Divide what is now by its average; infinity where nothing was served yet."""
        if self.of == "gain":
            now = view.uplink.mean_snrs()
            # With the present round in it the average exists from the start, and the order is the
            # same as without.
            average = running_mean(view.state, now, self.memory_rounds)
        else:
            now, average = view.uplink.highest_rates(), view.state.per_ue["mean"]
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            return np.where(now > 0, now / average, 0.0)

    def schedule(self, view: RoundView, rng: np.random.Generator) -> Allocation:
        """Pack, and average the rates at which UEs are served."""
        allocation = super().schedule(view, rng)
        if self.of == "rate":
            running_mean(view.state, allocation.rate, self.memory_rounds)
        return allocation
