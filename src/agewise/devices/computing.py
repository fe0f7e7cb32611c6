"""Computing times of local learning, and their energy."""

from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agewise.core.elementary import exp_each
from agewise.part import LARGE, Part
from agewise.random import Streams, normal

_Numbers = NDArray[np.float64]
#: How much UEs differ: log-normal.
_Sigma = Annotated[
    float, Field(ge=0, le=20, description="deviation of its logarithm; 0 makes all UEs alike")
]
_Duration = Annotated[float, Field(ge=0, le=LARGE)]


class Workload(NamedTuple):
    """Workload of the UEs of a run: so many rounds, and so many samples in each.

    Their computing times are in this ``unit``, empty where no time is counted.
    """

    ues: int
    rounds: int
    samples: int
    unit: str
    streams: Streams


class ComputeCost(NamedTuple):
    """Time and joules that local learning takes each UE in a round, ``[ue]`` each."""

    time: _Numbers
    joules: _Numbers


class Computing(Part):
    """How long local learning takes a UE, and what it costs."""

    kind: str = ""
    #: Unit of its times, which is that of the timing.
    unit: ClassVar[str] = "seconds"

    def costs(self, work: Workload) -> ComputeCost:
        """Work out what local learning takes each UE in a round."""
        raise self.lacks("costs")


class LogNormalComputing(Computing):
    """Local learning takes seconds that are log-normal across the UEs."""

    kind: Literal["log-normal"] = "log-normal"
    median_s: _Duration = Field(description="median over the UEs, in seconds a round")
    sigma: _Sigma
    power_w: float = Field(ge=0, le=LARGE, description="watts that a UE takes while it computes")

    def costs(self, work: Workload) -> ComputeCost:
        """Draw the seconds of each UE."""
        seconds = log_normal(self.median_s, self.sigma, work.streams.speed(), work.ues)
        return ComputeCost(seconds, seconds * self.power_w)


class CycleComputing(Computing):
    """Local learning takes cycles of a processor: cycles / frequency, kappa cycles frequency^2."""

    kind: Literal["cycles"] = "cycles"
    cycles_per_sample: float = Field(
        gt=0, le=1e15, description="C, cycles for one sample of one local step; 1e4 to 3e4 is usual"
    )
    frequency_hz: float = Field(
        ge=1.0, le=1e15, description="f, median over the UEs in Hz; 1e9 to 2e9 is usual"
    )
    frequency_sigma: _Sigma
    kappa: float = Field(
        ge=0, le=1.0, description="effective switched capacitance, in J s^2; 1e-28 is usual"
    )

    def costs(self, work: Workload) -> ComputeCost:
        """Draw the frequency of each UE."""
        cycles, rng = self.cycles_per_sample * work.samples, work.streams.speed()
        frequency_hz = log_normal(self.frequency_hz, self.frequency_sigma, rng, work.ues)
        joules = self.kappa * cycles * (frequency_hz * frequency_hz)
        return ComputeCost(cycles / frequency_hz, joules)


class SlotComputing(Computing):
    """Local learning takes slots that are log-normal across the UEs, with timing of kind slots."""

    kind: Literal["slots"] = "slots"
    unit: ClassVar[str] = "slots"
    median_slots: _Duration = Field(description="median over the UEs, in slots a round")
    sigma: _Sigma

    def costs(self, work: Workload) -> ComputeCost:
        """Draw the slots of each UE."""
        slots = log_normal(self.median_slots, self.sigma, work.streams.speed(), work.ues)
        return ComputeCost(slots, np.zeros(work.ues))


def log_normal(
    median: float | _Numbers, sigma: float | _Numbers, rng: np.random.Generator, count: int
) -> _Numbers:
    """Draw a number for each UE around this median, log-normal with ``sigma``."""
    return np.asarray(median * exp_each(sigma * normal(rng, count)))
