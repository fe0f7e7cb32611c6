"""What rounds cost: seconds, joules, channel uses and bits, and whose update is there in time.

A slot is the time of an upload at exactly the rate threshold, so an upload at twice that rate
takes half a slot. docs/accounting.md has the formulas and an example by hand.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agewise.core.elementary import exp_each
from agewise.core.proof import ROUNDING, uploads_of
from agewise.dependencies import pl
from agewise.part import LARGE, Kinds, Part, RelativeTo
from agewise.random import Streams, normal
from agewise.readers import read_table
from agewise.records import Delivery, RoundCost
from agewise.spectrum import Allocation

_Numbers = NDArray[np.float64]
_Duration = Annotated[float, Field(ge=0, le=LARGE)]
_Given = Annotated[float | None, Field(ge=1e-12, le=LARGE)]
#: How much UEs differ: log-normal.
_Sigma = Annotated[
    float, Field(ge=0, le=20, description="deviation of its logarithm; 0 makes all UEs alike")
]

#: Bits of what a UE answers to a probe: a loss and a norm.
_PROBE_BITS: Final = 64.0
#: The highest rate threshold in bits: beyond it no SNR that is a number would do.
_MOST_RATE: Final = 1000.0
#: What a file of devices must have of each.
_COLUMNS: Final = ("samples_per_s", "compute_w")


# ------------------------------------------------------------------- the rate that an upload needs
class Threshold(Part):
    """The rate R_s that a scheduled UE must reach."""

    kind: str = ""
    margin: float = Field(
        default=0.0,
        ge=0,
        le=_MOST_RATE,
        description="outage margin in bits per real channel use: the access point schedules for "
        "R_s plus this, and an upload is lost if it reaches less than R_s",
    )
    #: Whether the payload is an update of the model, whatever its length.
    needs_model: ClassVar[bool] = False

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


class RateThreshold(Threshold):
    """The rate that a scheduled UE must reach, as a number."""

    kind: Literal["rate"] = "rate"
    rate: float = Field(ge=0, le=_MOST_RATE, description="R_s in bits per real channel use")

    def rate_for(self, upload_bits: float, bandwidth_hz: float) -> float:
        """Return the rate, whatever an upload has."""
        return self.rate


class _TimedThreshold(Threshold):
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
    needs_model: ClassVar[bool] = True


# -------------------------------------------------------------------------- computing and batteries
class Workload(NamedTuple):
    """What UEs have to do: each learns from ``samples`` samples a round and uploads.

    ``upload_s`` are the seconds of an upload at the rate threshold where that follows from them.
    """

    ues: int
    samples: int
    upload_s: float | None
    streams: Streams


@dataclass(frozen=True, eq=False)
class Devices:
    """Seconds and joules that local learning takes each UE in a round, ``[ue]`` each."""

    compute_s: _Numbers
    compute_j: _Numbers


class Computing(Part):
    """How long local learning takes a UE, and what it costs."""

    kind: str = ""

    def devices(self, work: Workload) -> Devices:
        """Work out what local learning takes each UE in a round."""
        raise self.lacks("devices")


class LogNormalComputing(Computing):
    """Local learning takes seconds that are log-normal across the UEs."""

    kind: Literal["log-normal"] = "log-normal"
    median_s: _Duration = Field(description="median over the UEs, in seconds a round")
    sigma: _Sigma
    power_w: float = Field(ge=0, le=LARGE, description="watts that a UE takes while it computes")

    def devices(self, work: Workload) -> Devices:
        """Draw the seconds of each UE."""
        compute_s = _log_normal(self.median_s, self.sigma, work.ues, work.streams.speed())
        return Devices(compute_s, compute_s * self.power_w)


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

    def devices(self, work: Workload) -> Devices:
        """Draw the frequency of each UE."""
        cycles, rng = self.cycles_per_sample * work.samples, work.streams.speed()
        frequency_hz = _log_normal(self.frequency_hz, self.frequency_sigma, work.ues, rng)
        joules = self.kappa * cycles * (frequency_hz * frequency_hz)
        return Devices(cycles / frequency_hz, joules)


class DeviceProfiles(Computing):
    """Measured devices: a CSV file with the columns samples_per_s and compute_w, a row each."""

    kind: Literal["profiles"] = "profiles"
    path: str = Field(description="the file")
    relative_to: RelativeTo = "working-folder"
    assignment: Literal["in-order", "random"] = Field(
        description="which UE has which row: UE k row k, again from the first where there are more "
        "UEs than rows; or any, by the seed"
    )

    def devices(self, work: Workload) -> Devices:
        """Read the file and assign its rows."""
        speed, power_w = _read_devices(Path(self.path)).T
        rows = np.arange(work.ues) % speed.size
        if self.assignment == "random":
            rows = work.streams.speed().integers(speed.size, size=work.ues)
        compute_s = work.samples / speed[rows]
        return Devices(compute_s, compute_s * power_w[rows])

    def files(self) -> dict[str, Path]:
        """Name the file."""
        return {f"devices:{self.path}": Path(self.path)}


class Battery(Part):
    """How much energy a UE has."""

    kind: str = ""

    def charge(self, ues: int, streams: Streams) -> "Batteries | None":
        """Fill the batteries before the first round; ``None`` where energy does not end."""
        raise self.lacks("charge")


class NoBattery(Battery):
    """The energy of UEs does not end."""

    kind: Literal["none"] = "none"

    def charge(self, ues: int, streams: Streams) -> "Batteries | None":
        """Need none."""
        return None


class EnergyBudget(Battery):
    """Each UE has energy for the whole run; when it is spent, the UE leaves."""

    kind: Literal["budget"] = "budget"
    energy_j: float = Field(ge=1e-12, le=1e15, description="median over the UEs in joules")
    sigma: _Sigma

    def charge(self, ues: int, streams: Streams) -> "Batteries | None":
        """Draw the energy of each UE."""
        return Batteries(_log_normal(self.energy_j, self.sigma, ues, streams.battery()))


def _log_normal(median: float, sigma: float, count: int, rng: np.random.Generator) -> _Numbers:
    return np.asarray(median * exp_each(sigma * normal(rng, count)))


# -------------------------------------------------------------------------------- times of a round
@dataclass(frozen=True, eq=False)
class _Clock:
    """What turns slots and power into seconds and joules.

    ``watts`` are those of one unit of the channel's power; ``deadline_s`` is infinite where nothing
    is late.
    """

    slot_s: float
    downlink_s: float
    deadline_s: float
    watts: float
    devices: Devices


class Timing(Part):
    """How long a round takes the UEs."""

    kind: str = ""

    @property
    def everyone_eligible(self) -> bool:
        """Whether policies may also schedule UEs that would be late."""
        return False

    def slot_seconds(self, upload_s: float | None) -> float:
        """Seconds of an upload at the rate threshold; NaN where there are no seconds."""
        return math.nan

    def deadline_after(self, upload_s: float | None) -> float:
        """When an update is too late, in slots after the downlink; infinity where nothing is."""
        return math.inf

    def computing_slots(self, work: Workload) -> _Numbers:
        """``[ue]``: how long local learning takes each UE, in slots."""
        return np.zeros(work.ues)

    def clock(self, work: Workload, power_budget: float) -> _Clock | None:
        """Make the clock of a run on a channel of this budget; ``None`` without seconds."""
        return None

    def batteries(self, ues: int, streams: Streams) -> "Batteries | None":
        """Fill the batteries before the first round; ``None`` where there are none."""
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
        """Whether policies may also schedule UEs that would be late."""
        return self.eligible == "everyone"


class SlotTiming(_Hurried):
    """An update counts if it was computed and uploaded by a deadline; times are in slots.

    An upload at exactly the rate threshold takes one slot.
    """

    kind: Literal["slots"] = "slots"
    compute_slots: _Duration = Field(description="median time of local learning, in slots")
    compute_sigma: _Sigma
    deadline_slots: float = Field(gt=0, le=1e12, description="an update that takes longer is lost")

    def deadline_after(self, upload_s: float | None) -> float:
        """Give the deadline."""
        return self.deadline_slots

    def computing_slots(self, work: Workload) -> _Numbers:
        """Draw the time of each UE."""
        rng = work.streams.speed()
        return _log_normal(self.compute_slots, self.compute_sigma, work.ues, rng)


class SecondsTiming(_Hurried):
    """Times in seconds and energy in joules: downlink, computing, upload.

    An upload at exactly the rate threshold takes one slot of ``slot_s``.
    """

    kind: Literal["seconds"] = "seconds"
    slot_s: _Given = Field(
        default=None,
        description="seconds of an upload at the rate threshold; with a threshold of kind payload "
        "or model it is the threshold's deadline_s, and left out here",
    )
    downlink_s: _Duration = Field(description="seconds until every UE has the model of the round")
    deadline_s: _Given = Field(
        default=None,
        description="an update that takes longer, downlink included, is lost; left out, none is",
    )
    transmit_power_w: _Given = Field(
        default=None,
        description="watts of the whole power budget P_TX; with a channel.link of kind budget it "
        "is that of the link, and left out here",
    )
    computing: Annotated[Computing, Kinds] = Field(
        description="how long local learning takes, and what it costs"
    )
    battery: Annotated[Battery, Kinds] = Field(
        default=NoBattery(), description="how much energy a UE has"
    )

    def slot_seconds(self, upload_s: float | None) -> float:
        """Give what the threshold says, or else the field."""
        return upload_s or self.slot_s or math.nan  # `require_fitting` asks for one of them

    def deadline_after(self, upload_s: float | None) -> float:
        """Give the deadline after the downlink in slots."""
        if self.deadline_s is None:
            return math.inf
        return (self.deadline_s - self.downlink_s) / self.slot_seconds(upload_s)

    def computing_slots(self, work: Workload) -> _Numbers:
        """Give the seconds of each UE's computing in slots."""
        compute_s = self.computing.devices(work).compute_s
        return compute_s / self.slot_seconds(work.upload_s)

    def clock(self, work: Workload, power_budget: float) -> _Clock | None:
        """Make the clock; a unit of power is a watt where the channel has a link budget."""
        whole_w = self.transmit_power_w
        return _Clock(
            slot_s=self.slot_seconds(work.upload_s),
            downlink_s=self.downlink_s,
            deadline_s=math.inf if self.deadline_s is None else self.deadline_s,
            watts=1.0 if whole_w is None else whole_w / power_budget,
            devices=self.computing.devices(work),
        )

    def batteries(self, ues: int, streams: Streams) -> "Batteries | None":
        """Fill the batteries."""
        return self.battery.charge(ues, streams)

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
        if self.deadline_s is not None and self.deadline_s <= self.downlink_s:
            raise ValueError(
                f"timing.deadline_s = {self.deadline_s:g}: must be above timing.downlink_s, "
                f"{self.downlink_s:g}"
            )


# ---------------------------------------------------------------------------------- costs of rounds
@dataclass(frozen=True, eq=False)
class CostModel:
    """The cost of the rounds of one run, and whose update is there in time.

    An update has ``payload_bits``, R_s is ``threshold``. Local learning takes
    ``compute_slots[ue]``, and what is there after ``deadline_slots`` is late.
    """

    payload_bits: float
    threshold: float
    compute_slots: _Numbers
    deadline_slots: float
    clock: _Clock | None

    def deliver(
        self, allocation: Allocation, true_gains: _Numbers | None, batteries: "Batteries | None"
    ) -> tuple[Delivery, RoundCost, "Batteries | None"]:
        """Uploads of a round, what they cost, and the batteries after them.

        ``true_gains[ue, subchannel]`` are what they meet, ``None`` if that is what was planned for.
        """
        if true_gains is not None:
            allocation = allocation.on_true_channel(true_gains)
        scheduled, short, channel_uses, numbers = uploads_of(
            allocation.owner, allocation.power, allocation.gain,
            allocation.ue_count, self.threshold, self.payload_bits,
        )  # fmt: skip
        rates, sent, power = numbers
        cost = self._cost(scheduled, sent, power, channel_uses)
        received, outcome = scheduled, np.full(scheduled.size, "received")
        if batteries is not None or short or self.deadline_slots < math.inf:
            if self.deadline_slots < math.inf:
                taken = self.compute_slots[scheduled] + upload_slots(sent, self.threshold)
                outcome[taken > self.deadline_slots] = "late"
            # The first thing that went wrong is what counts.
            if short:
                outcome[rates < self.threshold * (1.0 - ROUNDING)] = "outage"
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
        )  # fmt: skip
        return delivery, cost, batteries

    def _cost(
        self, scheduled: NDArray[np.int64], rates: _Numbers, power: _Numbers, channel_uses: float
    ) -> RoundCost:
        """The cost of a round in which these UEs upload at these rates, without batteries."""
        bits = self.payload_bits * scheduled.size
        if self.clock is None:
            return RoundCost(channel_uses=channel_uses, bits=bits)
        clock, slots = self.clock, np.zeros_like(rates)
        np.divide(self.threshold, rates, out=slots, where=rates > 0)
        upload_s, devices = clock.slot_s * slots, clock.devices
        energy_j = devices.compute_j[scheduled] + clock.watts * power * upload_s
        # Nobody to wait for: the block goes by.
        busy_s = (devices.compute_s[scheduled] + upload_s).max(initial=0.0)
        waited_s = busy_s if scheduled.size else clock.slot_s
        seconds = min(clock.downlink_s + float(waited_s), clock.deadline_s)
        return RoundCost(seconds, energy_j, channel_uses, bits)

    def add_probe(
        self, cost: RoundCost, ues: NDArray[np.int64], batteries: "Batteries | None"
    ) -> tuple[RoundCost, "Batteries | None"]:
        """Add a probe of these UEs before the round (`agewise.learn.Federation.probe`) to its cost.

        All of them learn locally, the round begins when the slowest is done, and each sends two
        numbers on a control channel: `_PROBE_BITS`, which take no channel uses of the uplink.
        """
        cost = cost._replace(bits=(cost.bits or 0.0) + _PROBE_BITS * ues.size)
        if self.clock is None or cost.seconds is None:
            return cost, batteries
        devices = self.clock.devices
        energy_j = devices.compute_j[ues]
        if batteries is not None:
            batteries, energy_j = batteries.drained(ues, energy_j)
        seconds = cost.seconds + float(devices.compute_s[ues].max(initial=0.0))
        return cost._replace(seconds=seconds, probe_j=float(energy_j.sum())), batteries


@dataclass(frozen=True, eq=False)
class Batteries:
    """``left_j[ue]``: the energy that each UE has left; infinite where it does not end."""

    left_j: _Numbers

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


def upload_slots(rates: _Numbers, threshold: float) -> _Numbers:
    """Work out how long uploads at these positive rates take, in slots.

    >>> upload_slots(np.array([4.0, 8.0]), 4.0)
    array([1. , 0.5])
    """
    return np.asarray(threshold / rates)


def _read_devices(path: Path) -> _Numbers:
    """Read ``[device, (samples_per_s, compute_w)]`` of a CSV file, among other columns."""
    table, columns = read_table(path), []
    for name, least in zip(_COLUMNS, (1e-9, 0.0), strict=True):
        if name not in table.columns:
            raise ValueError(f"{path}: there is no column {name} in its first line")
        texts = table[name].cast(pl.String).str.strip_chars()
        values = texts.cast(pl.Float64, strict=False)
        wrong = ~values.is_between(least, 1e15).fill_null(value=False)
        if wrong.any():
            row = int(wrong.arg_max() or 0)
            raise ValueError(
                f"{path}, line {row + 2}: {name} = {texts[row]}: must be a number from {least:g} "
                "to 1e+15"
            )
        columns.append(values.to_numpy())
    if table.is_empty():
        raise ValueError(f"{path}: there is no device in it")
    return np.column_stack(columns)
