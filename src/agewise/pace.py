"""Pace: rounds that wait for those scheduled, or periods in which UEs learn in the background.

Period t lasts from t to t + 1 times the period. The model w_t is broadcast as it begins, and what
arrives in it makes w_{t+1}. A UE that has nothing in hand starts from w_t as soon as it has it, and
is ready in the first period by whose end it can have computed and uploaded. Who was heard starts
anew with the next model; whoever was not waits (`Periodic.waiting`). So an update in hand may be
some versions old, and 0 is possible: synchronous rounds are the pace in which every update starts
from the newest model (Hu, Chen, Larsson 2023; docs/late-updates.md).
"""

import math
from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from agewise.core.periods import NONE, Hearing, Work, begin_period, end_period
from agewise.part import LARGE, Part

_Ints = NDArray[np.int64]
_Floats = NDArray[np.float64]
_Flags = NDArray[np.bool_]
#: Times that differ by less, in periods, are equal.
_ROUNDING = 1e-9


class Times(NamedTuple):
    """Times of a period in slots: what lasts how long for every UE, ``[ue]``.

    ``least_upload`` is the time that an upload takes at the rate threshold.
    """

    period: float
    downlink: float
    compute: _Floats
    least_upload: _Floats


class InHand(NamedTuple):
    """The updates that UEs have in a period, ``[ue]`` each.

    ``ready_slots`` is when it is there, from the beginning of the period; infinity where none will
    be. ``version`` is the round of the model that it started from, and ``starts`` how often the UE
    began to learn since the last period.
    """

    ready_slots: _Floats
    version: _Ints
    starts: _Ints

    @property
    def ready(self) -> _Flags:
        """Flags of the UEs that have an update early enough to upload it in the period."""
        return self.ready_slots < math.inf

    def staleness(self, t: int) -> _Ints:
        """Count the versions since; 0 where there is no update."""
        return np.where(self.version >= 0, t - self.version, 0)


class Pace(Part):
    """When UEs learn and upload."""

    kind: str = ""

    def start(self, times: Times) -> "Background | None":
        """Return the UEs at work in the background; ``None`` where rounds wait for them."""
        raise self.lacks("start")

    def slots_of(self, slot_s: float) -> float | None:
        """Give the length of a period in slots of so many seconds; ``None`` without periods."""
        return None


class Rounds(Pace):
    """A round lasts until the last of those scheduled has uploaded; the others do nothing."""

    kind: Literal["rounds"] = "rounds"

    def start(self, times: Times) -> "Background | None":
        """Need nothing in the background."""
        return None


class Periodic(Pace):
    """Uploads every so often, of updates that UEs compute in the background."""

    kind: Literal["periodic"] = "periodic"
    period_s: float | None = Field(
        default=None,
        ge=1e-12,
        le=LARGE,
        description="seconds of a period; with timing.kind = seconds",
    )
    period_slots: float | None = Field(
        default=None,
        ge=1,
        le=LARGE,
        description="slots of a period, in place of its seconds; an upload at the rate threshold "
        "takes one",
    )
    waiting: Literal["hold", "restart"] = Field(
        description="what a UE does that is ready and not heard: hold its update, or learn on from "
        "the newest model and have the newer update each time that it is done"
    )

    @model_validator(mode="after")
    def _require_one_unit(self) -> Self:
        if (self.period_s is None) == (self.period_slots is None):
            raise ValueError("give either period_s or period_slots")
        return self

    def start(self, times: Times) -> "Background":
        """Let everybody begin."""
        return Background(times, restarts=self.waiting == "restart")

    def slots_of(self, slot_s: float) -> float | None:
        """Give the length, which is said in one unit."""
        if self.period_s is not None and math.isnan(slot_s):
            raise ValueError("pace.period_s needs timing.kind = seconds: give pace.period_slots")
        return self.period_slots if self.period_s is None else self.period_s / slot_s


class Background:
    """UEs that learn in the background, period after period.

    `begin` a period, schedule, then `end` it with who was heard.
    """

    def __init__(self, times: Times, *, restarts: bool) -> None:
        none, never = np.full((2, times.compute.size), NONE), np.full(times.compute.size, math.inf)
        self._work = Work(none[0], np.zeros_like(never), none[1], never, np.zeros_like(none[0]))
        self._times, self._restarts = times, restarts
        self._heard_at, self._rounding = times.downlink, _ROUNDING * times.period

    def begin(self, t: int, able: _Flags, downlink: float = 0.0) -> InHand:
        """Begin period ``t``, in which only those ``able`` hear the model and may start.

        The model takes ``downlink`` slots beyond the usual time.
        """
        times, work = self._times, self._work
        self._heard_at = times.downlink + downlink
        hearing, last = Hearing(t, self._heard_at, able), times.period - times.least_upload
        ready = begin_period(work, hearing, times.compute, last, self._rounding, self._restarts)
        found = InHand(ready, work.hand.copy(), work.starts.copy())
        work.starts[:] = 0
        return found

    def end(self, t: int, heard: _Ints, able: _Flags) -> None:
        """End period ``t``: those ``heard`` start from the next model, the others go on."""
        times, hearing = self._times, Hearing(t, self._heard_at, able)
        end_period(
            self._work, hearing, times.compute, times.period, self._rounding, self._restarts, heard
        )

    @property
    def versions(self) -> set[int]:
        """The rounds whose models some UE has an update of, or computes one from."""
        return {*self._work.hand.tolist(), *self._work.under_way.tolist()} - {NONE}
