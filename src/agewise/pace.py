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

from agewise.part import LARGE, Part

_Ints = NDArray[np.int64]
_Floats = NDArray[np.float64]
_Flags = NDArray[np.bool_]
#: The version of nothing: no update in hand, none under way.
_NONE = -1
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

    `begin` a period, schedule, then `end` it with who was heard. ``hand[ue]`` is the version of the
    update that a UE has, ``under_way[ue]`` that of the one that it computes until ``done_at[ue]``,
    in slots from the beginning of the period.
    """

    def __init__(self, times: Times, *, restarts: bool) -> None:
        count = times.compute.size
        self._times, self._restarts = times, restarts
        self._hand, self._under_way = np.full((2, count), _NONE)
        self._done_at, self._since = np.full(count, math.inf), np.zeros(count)
        self._starts = np.zeros(count, np.int64)
        self._heard_at = times.downlink

    def begin(self, t: int, able: _Flags, downlink: float = 0.0) -> InHand:
        """Begin period ``t``, in which only those ``able`` hear the model and may start.

        The model takes ``downlink`` slots beyond the usual time.
        """
        self._heard_at = self._times.downlink + downlink
        times, last = self._times, self._times.period - self._times.least_upload
        idle = (self._under_way == _NONE) & able
        if not self._restarts:
            idle &= self._hand == _NONE
        self._start(idle, t, self._done_at)
        self._advance(t, last + _ROUNDING * times.period, able)
        ready = np.where(self._hand == _NONE, math.inf, np.clip(self._since, 0.0, last))
        found = InHand(ready, self._hand.copy(), self._starts)
        self._starts = np.zeros_like(self._starts)
        return found

    def end(self, t: int, heard: _Ints, able: _Flags) -> None:
        """End period ``t``: those ``heard`` start from the next model, the others go on."""
        self._hand[heard] = self._under_way[heard] = _NONE
        self._done_at[heard] = math.inf
        period = self._times.period
        self._advance(t, np.full(able.size, period * (1.0 - _ROUNDING)), able)
        self._done_at -= period
        self._since -= period

    @property
    def versions(self) -> set[int]:
        """The rounds whose models some UE has an update of, or computes one from."""
        return {*self._hand.tolist(), *self._under_way.tolist()} - {_NONE}

    def _start(self, ues: _Flags, t: int, at: _Floats) -> None:
        """Start from the model of period ``t``, at these times or when it is there."""
        self._under_way[ues] = t
        begun = np.where(at < math.inf, np.maximum(at, self._heard_at), self._heard_at)
        self._done_at[ues] = (begun + self._times.compute)[ues]
        self._starts[ues] += 1

    def _advance(self, t: int, until: _Floats, able: _Flags) -> None:
        """Take over what is computed by then; restart those for whom there is a newer model."""
        while (done := self._done_at <= until).any():
            at, news = self._done_at.copy(), self._under_way < t
            self._hand[done], self._since[done] = self._under_way[done], at[done]
            self._under_way[done], self._done_at[done] = _NONE, math.inf
            if self._restarts:
                self._start(done & news & able, t, at)
