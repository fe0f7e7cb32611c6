"""The rate threshold R_s: a number, or what carries a payload or an update of the model in time."""

import math
from typing import ClassVar, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agewise.devices import DeviceTable
from agewise.part import LARGE, Part

_Numbers = NDArray[np.float64]
#: The highest rate threshold in bits: beyond it no SNR that is a number would do.
_MOST_RATE: Final = 1000.0


class TimeLeft(NamedTuple):
    """Slots that are left for the upload of each UE, and the seconds of a slot."""

    slots: _Numbers
    slot_s: float


class Threshold(Part):
    """The rate R_s that a scheduled UE must reach."""

    kind: str = ""
    #: Whether the rate follows from times, and so needs the bandwidth of a subchannel.
    is_timed: ClassVar[bool] = False
    #: Whether each UE has a rate of its own, by the time that is left to it.
    by_time_left: ClassVar[bool] = False
    margin: float = Field(
        default=0.0,
        ge=0,
        le=_MOST_RATE,
        description="outage margin in bits per real channel use: the access point schedules for "
        "R_s plus this, and an upload is lost if it reaches less than R_s",
    )

    @property
    def needs_model(self) -> bool:
        """Whether the payload is an update of the model, whatever its length."""
        return False

    @property
    def upload_s(self) -> float | None:
        """Seconds of an upload at the rate threshold, if it follows from them."""
        return None

    def upload_bits(self, update_bits: float) -> float:
        """Count the bits of an upload, for updates of this many."""
        return update_bits

    def rate_for(self, upload_bits: float, bandwidth_hz: float) -> float:
        """Work out R_s in bits per real channel use."""
        raise self.lacks("rate_for")

    def uploads(
        self, devices: DeviceTable, upload_bits: float, bandwidth_hz: float, left: TimeLeft
    ) -> tuple[_Numbers, _Numbers]:
        """Work out the rate that each UE must reach, and the slots of its upload at this rate.

        All must reach the same by default, and who has more to send takes longer.
        """
        rate, payloads = self.rate_for(upload_bits, bandwidth_hz), devices.payloads(upload_bits)
        return np.full(payloads.size, rate), payloads / upload_bits


class RateThreshold(Threshold):
    """The rate that a scheduled UE must reach, as a number."""

    kind: Literal["rate"] = "rate"
    rate: float = Field(ge=0, le=_MOST_RATE, description="R_s in bits per real channel use")

    def rate_for(self, upload_bits: float, bandwidth_hz: float) -> float:
        """Return the rate, whatever an upload has."""
        return self.rate


class _TimedThreshold(Threshold):
    is_timed: ClassVar[bool] = True
    deadline_s: float = Field(ge=1e-12, le=LARGE, description="time for its upload in seconds")

    @property
    def upload_s(self) -> float | None:
        """The time for an upload."""
        return self.deadline_s

    def rate_for(self, upload_bits: float, bandwidth_hz: float) -> float:
        """Work out bits / (2 bandwidth seconds): there are two real channel uses a hertz second."""
        rate = upload_bits / (2.0 * bandwidth_hz * self.deadline_s)
        if rate > _MOST_RATE:
            raise ValueError(
                f"threshold: {upload_bits:g} bits need a rate of {rate:g} bits per real channel "
                f"use, and at most {_MOST_RATE:g} are taken: raise threshold.deadline_s"
            )
        return rate


class PayloadThreshold(_TimedThreshold):
    """The rate that carries a payload by its deadline: payload / (2 bandwidth seconds)."""

    kind: Literal["payload"] = "payload"
    payload_bits: float = Field(gt=0, le=1e18, description="size of one update in bits")

    def upload_bits(self, update_bits: float) -> float:
        """Count the payload, whatever an update has."""
        return self.payload_bits


class ModelThreshold(_TimedThreshold):
    """The rate that carries an update of the model by a deadline: bits / (2 bandwidth seconds).

    An update has 32 bits for each weight, or what compression leaves of them.
    """

    kind: Literal["model"] = "model"

    @property
    def needs_model(self) -> bool:
        """Always."""
        return True


class TimeLeftThreshold(Threshold):
    """The rate that carries a UE's payload in the time that computing leaves it of the round.

    R_s = payload / (2 bandwidth (T - downlink - computing)), where T is timing.deadline_s or the
    period of the pace. A UE to which nothing is left is not eligible.
    """

    kind: Literal["time-left"] = "time-left"
    is_timed: ClassVar[bool] = True
    by_time_left: ClassVar[bool] = True
    payload_bits: float | None = Field(
        default=None, gt=0, le=1e18, description="size of one update in bits; left out, the model's"
    )

    @property
    def needs_model(self) -> bool:
        """Unless the payload is given."""
        return self.payload_bits is None

    def upload_bits(self, update_bits: float) -> float:
        """Count the payload if it is given."""
        return update_bits if self.payload_bits is None else self.payload_bits

    def rate_for(self, upload_bits: float, bandwidth_hz: float) -> float:
        """Refuse to give one for all."""
        raise ValueError("threshold.kind = time-left: each UE has a rate of its own")

    def uploads(
        self, devices: DeviceTable, upload_bits: float, bandwidth_hz: float, left: TimeLeft
    ) -> tuple[_Numbers, _Numbers]:
        """Give each UE the rate that it needs; infinity where no rate would do."""
        seconds_each = devices.payloads(upload_bits) / (2.0 * bandwidth_hz)  # at a rate of 1
        short_s = seconds_each / _MOST_RATE - left.slots * left.slot_s
        reached = short_s <= 0.0
        for index in set(devices.class_of.tolist()) - set(devices.class_of[reached].tolist()):
            least_s = float(short_s[devices.class_of == index].min())
            raise ValueError(
                f"devices ({devices.class_names[index]}): no UE has time left for its upload after "
                "local learning: raise timing.deadline_s, or the period, by more than "
                f"{least_s:g} s"
            )
        slots = np.where(reached, left.slots, 1.0)
        rates = seconds_each / (left.slot_s * slots)
        return np.where(reached, rates, math.inf), slots
