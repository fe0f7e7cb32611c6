"""Costs of rounds: seconds, joules, channel uses and bits, and whose update is there in time.

A slot is the time of an upload at exactly the rate threshold, so an upload at twice that rate
takes half a slot. docs/accounting.md has the formulas and an example by hand.
"""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agewise.core.elementary import NATS_PER_BIT, log1p_each
from agewise.core.proof import IN_TIME, ROUNDING, uploads_of
from agewise.devices import DeviceTable
from agewise.pace import InHand, Times
from agewise.part import LARGE, Decibels, Kinds, Part
from agewise.records import Delivery, RoundCost
from agewise.spectrum import Allocation, Uplink

_Numbers = NDArray[np.float64]
_Given = Annotated[float | None, Field(ge=1e-12, le=LARGE)]

#: Bits of what a UE answers to a probe: a loss and a norm.
_PROBE_BITS: Final = 64.0


# ------------------------------------------------------------------------------------ the downlink
class Downlink(Part):
    """How long the model of a round takes to the UEs that learn from it."""

    kind: str = ""
    #: Whether it depends on the channel of the round.
    varies: ClassVar[bool] = True

    @property
    def constant_s(self) -> float:
        """Seconds that it takes whatever the channel."""
        return 0.0

    def beyond_s(self, snr: _Numbers, model_bits: float, bandwidth_hz: float) -> _Numbers:
        """``[ue]``: seconds that it takes to UEs of this SNR beyond that."""
        raise self.lacks("beyond_s")


class ConstantDownlink(Downlink):
    """The model takes the same time in every round."""

    kind: Literal["constant"] = "constant"
    varies: ClassVar[bool] = False
    seconds: float = Field(ge=0, le=LARGE, description="until every UE has the model of the round")

    @property
    def constant_s(self) -> float:
        """The seconds of the field."""
        return self.seconds


class BroadcastDownlink(Downlink):
    """The model is broadcast over all subchannels at the rate of the worst UE addressed.

    32 bits a weight take 32 w / (N B log2(1 + SNR)) seconds, by the UE's mean gain over the
    subchannels, the same in both directions, with the power of the access point spread over them.
    Addressed are the UEs scheduled, and with a periodic pace all that are there and have a channel.
    """

    kind: Literal["broadcast"] = "broadcast"
    power_db: Decibels = Field(
        description="transmit power of the access point over the power budget P_TX of the cell"
    )

    def beyond_s(self, snr: _Numbers, model_bits: float, bandwidth_hz: float) -> _Numbers:
        """Divide the bits by the rate: infinity to a UE without a channel."""
        bits_per_use = log1p_each(snr * 10.0 ** (self.power_db / 10.0)) / (NATS_PER_BIT / 2.0)
        with np.errstate(divide="ignore"):
            return np.asarray(model_bits / (bandwidth_hz * bits_per_use))


class Broadcast(NamedTuple):
    """A downlink that varies: ``power`` is P_TX, and a subchannel has ``bandwidth_hz``."""

    downlink: Downlink
    power: float
    model_bits: float
    bandwidth_hz: float


# -------------------------------------------------------------------------------- times of a round
@dataclass(frozen=True, eq=False)
class _Clock:
    """Clock that turns slots and power into seconds and joules.

    ``watts`` are those of one unit of the channel's power; ``deadline_s`` is infinite where nothing
    is late.
    """

    slot_s: float
    downlink_s: float
    deadline_s: float
    watts: float
    devices: DeviceTable


class Timing(Part):
    """How long a round takes the UEs."""

    kind: str = ""
    #: Unit of computing times; empty where no time is counted.
    unit: ClassVar[str] = ""

    @property
    def everyone_eligible(self) -> bool:
        """Tell whether policies may also schedule UEs that would be late."""
        return False

    def slot_seconds(self, upload_s: float | None) -> float:
        """Seconds of an upload at the rate threshold; NaN where there are no seconds."""
        return math.nan

    def deadline_after(self, upload_s: float | None) -> float:
        """Deadline of an update in slots after the downlink; infinity where nothing is late."""
        return math.inf

    def least_period(self, upload_s: float | None) -> float:
        """Slots of a period in which the model and one upload at the rate threshold fit."""
        return 1.0

    def computing_slots(self, devices: DeviceTable, upload_s: float | None) -> _Numbers:
        """``[ue]``: how long local learning takes each UE, in slots."""
        return devices.compute_time

    def clock(
        self, devices: DeviceTable, upload_s: float | None, power_budget: float
    ) -> _Clock | None:
        """Make the clock of a run on a channel of this budget; ``None`` without seconds."""
        return None

    @property
    def varying_downlink(self) -> Downlink | None:
        """The downlink, if it depends on the channel."""
        return None

    def require_fitting(self, upload_s: float | None, *, link_budget: bool) -> None:
        """Raise ``ValueError`` where a time or a power is missing, or said in two places."""


class NoTiming(Timing):
    """Local learning takes no time, and every upload of a scheduled UE arrives."""

    kind: Literal["none"] = "none"


class _Hurried(Timing):
    eligible: Literal["in-time", "everyone"] = Field(
        default="in-time",
        description="whom policies may schedule: UEs whose upload at the rate threshold would be "
        "in time, or everyone",
    )

    @property
    def everyone_eligible(self) -> bool:
        """Tell whether policies may also schedule UEs that would be late."""
        return self.eligible == "everyone"


class SlotTiming(_Hurried):
    """An update counts if it was computed and uploaded by a deadline; times are in slots.

    An upload at exactly the rate threshold takes one slot.
    """

    kind: Literal["slots"] = "slots"
    unit: ClassVar[str] = "slots"
    deadline_slots: float | None = Field(
        default=None,
        gt=0,
        le=1e12,
        description="an update that takes longer is lost; left out, none is",
    )

    def deadline_after(self, upload_s: float | None) -> float:
        """Give the deadline."""
        return math.inf if self.deadline_slots is None else self.deadline_slots


class SecondsTiming(_Hurried):
    """Times in seconds and energy in joules: downlink, computing, upload.

    An upload at exactly the rate threshold takes one slot of ``slot_s``.
    """

    kind: Literal["seconds"] = "seconds"
    unit: ClassVar[str] = "seconds"
    slot_s: _Given = Field(
        default=None,
        description="seconds of an upload at the rate threshold; with a threshold of kind payload "
        "or model it is the threshold's deadline_s, and left out here",
    )
    downlink: Annotated[Downlink, Kinds] = Field(
        description="how long the model of a round takes to the UEs"
    )
    deadline_s: _Given = Field(
        default=None,
        description="an update that takes longer, downlink included, is lost; left out, none is",
    )
    transmit_power_w: _Given = Field(
        default=None,
        description="watts of the whole power budget P_TX; with a channel.link of kind budget it "
        "is that of the link, and left out here",
    )

    def slot_seconds(self, upload_s: float | None) -> float:
        """Give what the threshold says, or else the field."""
        return upload_s or self.slot_s or math.nan  # `require_fitting` asks for one of them

    def deadline_after(self, upload_s: float | None) -> float:
        """Give the deadline after the downlink in slots."""
        if self.deadline_s is None:
            return math.inf
        return (self.deadline_s - self.downlink.constant_s) / self.slot_seconds(upload_s)

    def least_period(self, upload_s: float | None) -> float:
        """Add the downlink."""
        return 1.0 + self.downlink.constant_s / self.slot_seconds(upload_s)

    def computing_slots(self, devices: DeviceTable, upload_s: float | None) -> _Numbers:
        """Give the seconds of each UE's computing in slots."""
        return devices.compute_time / self.slot_seconds(upload_s)

    def clock(
        self, devices: DeviceTable, upload_s: float | None, power_budget: float
    ) -> _Clock | None:
        """Make the clock; a unit of power is a watt where the channel has a link budget."""
        whole_w = self.transmit_power_w
        return _Clock(
            slot_s=self.slot_seconds(upload_s),
            downlink_s=self.downlink.constant_s,
            deadline_s=math.inf if self.deadline_s is None else self.deadline_s,
            watts=1.0 if whole_w is None else whole_w / power_budget,
            devices=devices,
        )

    @property
    def varying_downlink(self) -> Downlink | None:
        """The downlink, unless it is constant."""
        return self.downlink if self.downlink.varies else None

    def require_fitting(self, upload_s: float | None, *, link_budget: bool) -> None:
        """Raise ``ValueError`` where a time or a power is missing, or said in two places."""
        for given, known, name, elsewhere in (
            (self.slot_s, upload_s is not None, "slot_s", "threshold.deadline_s"),
            (self.transmit_power_w, link_budget, "transmit_power_w", "channel.link"),
        ):
            if given is not None and known:
                raise ValueError(f"timing.{name} follows from {elsewhere}: leave it out")
            if given is None and not known:
                raise ValueError(f"timing.{name} is missing")
        downlink_s = self.downlink.constant_s
        if self.deadline_s is not None and self.deadline_s <= downlink_s:
            raise ValueError(
                f"timing.deadline_s = {self.deadline_s:g}: must be above "
                f"timing.downlink.seconds, {downlink_s:g}"
            )


# ---------------------------------------------------------------------------------- costs of rounds
@dataclass(frozen=True, eq=False)
class CostModel:
    """Costs of one run: what uploads need, what rounds cost, whose update is there in time.

    An upload has ``payload_bits[ue]``, P_TX is ``power_budget[ue]``, R_s is ``threshold[ue]``, and
    an upload at this rate takes ``threshold_slots[ue]``. Local learning takes
    ``compute_slots[ue]``, and what is there after ``deadline_slots`` is late. With periods of
    ``period_slots`` that is their end, and every period takes its time.
    """

    payload_bits: _Numbers
    power_budget: _Numbers
    threshold: _Numbers
    threshold_slots: _Numbers
    compute_slots: _Numbers
    deadline_slots: float
    clock: _Clock | None
    period_slots: float | None = None
    broadcast: Broadcast | None = None

    @property
    def times(self) -> Times:
        """The times of a period."""
        downlink = 0.0 if self.clock is None else self.clock.downlink_s / self.clock.slot_s
        period = self.period_slots or math.inf
        return Times(period, downlink, self.compute_slots, self.threshold_slots)

    @property
    def slot_rate(self) -> _Numbers:
        """``[ue]``: the rate at which an upload takes one slot."""
        return self.threshold * self.threshold_slots

    def downlink_slots(self, gains: _Numbers) -> _Numbers | None:
        """``[ue]``: slots that the model takes to each UE, where the channel decides that."""
        if self.broadcast is None or self.clock is None:
            return None
        downlink, power, model_bits, bandwidth_hz = self.broadcast
        count = gains.shape[1]
        snr = gains.mean(axis=1) * (power / count)
        return downlink.beyond_s(snr, model_bits, count * bandwidth_hz) / self.clock.slot_s

    def uplink(self, gains: _Numbers) -> Uplink:
        """The uplink of these UEs with such gains."""
        return Uplink(gains, self.power_budget, self.threshold)

    def deliver(
        self,
        allocation: Allocation,
        true_gains: _Numbers | None,
        batteries: "Batteries | None",
        in_hand: InHand | None = None,
        downlink_slots: float = 0.0,
    ) -> tuple[Delivery, RoundCost, "Batteries | None"]:
        """Uploads of a round, what they cost, and the batteries after them.

        ``true_gains[ue, subchannel]`` are what they meet, ``None`` if that is what was planned for.
        ``in_hand`` are the updates that UEs computed in the background, ``None`` where those
        scheduled compute in the round, for which the model first takes ``downlink_slots`` beyond
        the clock's.
        """
        if true_gains is not None:
            allocation = allocation.on_true_channel(true_gains)
        scheduled, short, channel_uses, numbers = uploads_of(
            allocation.owner, allocation.power, allocation.gain,
            self.threshold, self.payload_bits,
        )  # fmt: skip
        rates, sent, power = numbers
        cost = self._cost(scheduled, sent, power, channel_uses, downlink_slots)
        received, outcome = scheduled, np.full(scheduled.size, "received")
        if batteries is not None or short or self.deadline_slots < math.inf:
            if self.deadline_slots < math.inf:
                ready = self.compute_slots if in_hand is None else in_hand.ready_slots
                taken = ready[scheduled] + self.slot_rate[scheduled] / sent
                taken += downlink_slots
                outcome[taken > self.deadline_slots * IN_TIME] = "late"
            # The first thing that went wrong is what counts.
            if short:
                outcome[rates < self.threshold[scheduled] * (1.0 - ROUNDING)] = "outage"
            if batteries is not None:
                wanted_j = np.zeros(scheduled.size) if cost.energy_j is None else cost.energy_j
                batteries, energy_j = batteries.drained(scheduled, wanted_j)
                emptied = scheduled[~batteries.charged[scheduled]]
                cost = cost._replace(energy_j=energy_j, emptied=emptied)
                outcome[energy_j < wanted_j] = "battery"
            received = scheduled[outcome == "received"]
        delivery = Delivery(
            scheduled, received, outcome, rates,
            allocation.owner, allocation.power, allocation.gain,
            None if in_hand is None else in_hand.version[scheduled],
        )  # fmt: skip
        return delivery, cost, batteries

    def _cost(
        self,
        scheduled: NDArray[np.int64],
        rates: _Numbers,
        power: _Numbers,
        channel_uses: float,
        downlink_slots: float,
    ) -> RoundCost:
        """The cost of a round in which these UEs upload at these rates, without batteries."""
        bits = float(self.payload_bits[scheduled].sum())
        if self.clock is None:
            return RoundCost(channel_uses=channel_uses, bits=bits)
        clock, slots = self.clock, np.zeros_like(rates)
        np.divide(self.slot_rate[scheduled], rates, out=slots, where=rates > 0)
        upload_s, devices = clock.slot_s * slots, clock.devices
        energy_j = clock.watts * power * upload_s
        if self.period_slots is not None:  # local learning is counted when it begins
            return RoundCost(self.period_slots * clock.slot_s, energy_j, channel_uses, bits)
        energy_j = devices.compute_j[scheduled] + energy_j
        # Nobody to wait for: the block goes by.
        busy_s = (devices.compute_time[scheduled] + upload_s).max(initial=0.0)
        waited_s = busy_s if scheduled.size else clock.slot_s
        downlink_s = clock.downlink_s + clock.slot_s * downlink_slots
        seconds = min(downlink_s + float(waited_s), clock.deadline_s)
        return RoundCost(seconds, energy_j, channel_uses, bits)

    def add_probe(
        self, cost: RoundCost, ues: NDArray[np.int64], batteries: "Batteries | None"
    ) -> tuple[RoundCost, "Batteries | None"]:
        """Add a probe of these UEs before the round (`agewise.learn.Federation.probe`) to its cost.

        All of them learn locally, the round begins when the slowest is done, and each sends two
        numbers on a control channel: `_PROBE_BITS`, which take no channel uses of the uplink. A
        period lasts as long as ever: nobody waits for answers there.
        """
        cost = cost._replace(bits=(cost.bits or 0.0) + _PROBE_BITS * ues.size)
        if self.clock is None or cost.seconds is None:
            return cost, batteries
        if self.period_slots is None:
            longest_s = float(self.clock.devices.compute_time[ues].max(initial=0.0))
            cost = cost._replace(seconds=cost.seconds + longest_s)
        return self.add_learning(
            cost, np.bincount(ues, minlength=self.compute_slots.size), batteries
        )

    def add_learning(
        self, cost: RoundCost, starts: NDArray[np.int64], batteries: "Batteries | None"
    ) -> tuple[RoundCost, "Batteries | None"]:
        """Add the joules of UEs that learn ``starts[ue]`` times outside of a round's uploads."""
        if self.clock is None:
            return cost, batteries
        energy_j = starts * self.clock.devices.compute_j
        if batteries is not None:
            ues = np.flatnonzero(starts)
            batteries, energy_j = batteries.drained(ues, energy_j[ues])
        return cost._replace(background_j=cost.background_j + float(energy_j.sum())), batteries


@dataclass(frozen=True, eq=False)
class Batteries:
    """``left_j[ue]``: the energy that each UE has left; infinite where it does not end."""

    left_j: _Numbers

    @classmethod
    def full(cls, devices: DeviceTable) -> "Batteries | None":
        """Batteries before the first round; ``None`` where nobody's energy ends."""
        return cls(devices.battery_j) if np.isfinite(devices.battery_j).any() else None

    @property
    def charged(self) -> NDArray[np.bool_]:
        """``[ue]``: who has any left."""
        return self.left_j > 0.0

    def drained(self, ues: NDArray[np.int64], wanted_j: _Numbers) -> tuple["Batteries", _Numbers]:
        """Take ``wanted_j[i]`` from each of these UEs; the batteries after it, and what was there.

        A battery that has less is emptied.
        """
        before = self.left_j[ues]
        energy_j = np.minimum(wanted_j, before)
        left_j = self.left_j.copy()
        left_j[ues] = before - energy_j
        return Batteries(left_j), energy_j
