"""What rounds cost: seconds, joules, channel uses and bits, and whose update is there in time.

A slot is the time of an upload at exactly the rate threshold, so an upload at twice that rate
takes half a slot. docs/accounting.md has the formulas and an example by hand.
"""

import csv
import functools
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agewise import scenario as sections
from agewise.core.delivery import uploads_of
from agewise.core.elementary import exp_each
from agewise.core.proof import ROUNDING
from agewise.npz import require_file
from agewise.random import Streams, normal
from agewise.records import Delivery, RoundCost
from agewise.scenario import Scenario
from agewise.spectrum import Allocation

Numbers = NDArray[np.float64]

#: Bits of one weight as it is learned.
WEIGHT_BITS = 32
#: Bits of what a UE answers to a probe: a loss and a norm.
PROBE_BITS = 64.0
#: What a file of devices must have of each.
_COLUMNS = ("samples_per_s", "compute_w")


@dataclass(frozen=True, eq=False)
class Devices:
    """Seconds and joules that local learning takes each UE in a round, ``[ue]`` each."""

    compute_s: Numbers
    compute_j: Numbers


@dataclass(frozen=True, eq=False)
class Clock:
    """What turns slots and power into seconds and joules.

    ``watts`` are those of one unit of the channel's power; ``deadline_s`` is infinite where nothing
    is late.
    """

    slot_s: float
    downlink_s: float
    deadline_s: float
    watts: float
    devices: Devices


@dataclass(frozen=True, eq=False)
class CostModel:
    """The cost of the rounds of one run, and whose update is there in time.

    An update has ``payload_bits``, R_s is ``threshold``. Local learning takes
    ``compute_slots[ue]``, and what is there after ``deadline_slots`` is late.
    """

    payload_bits: float
    threshold: float
    compute_slots: Numbers
    deadline_slots: float
    clock: Clock | None

    def deliver(
        self, allocation: Allocation, true_gains: Numbers | None, batteries: "Batteries | None"
    ) -> tuple[Delivery, RoundCost, "Batteries | None"]:
        """Uploads of a round, what they cost, and the batteries after them.

        ``true_gains[ue, subchannel]`` are what they meet, ``None`` if that is what was planned for.
        """
        if true_gains is not None:
            allocation = allocation.meeting(true_gains)
        scheduled, short, channel_uses, numbers = uploads_of(
            allocation.owner, allocation.power, allocation.gain,
            allocation.ue_count, self.threshold, self.payload_bits,
        )  # fmt: skip
        rates, sent, power = numbers
        cost = self._cost(scheduled, sent, power, channel_uses)
        received, outcome = scheduled, _all_received(scheduled.size)
        if batteries is not None or short or self.deadline_slots < math.inf:
            outcome = outcome.copy()
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
        self, scheduled: NDArray[np.int64], rates: Numbers, power: Numbers, channel_uses: float
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
        numbers on a control channel: `PROBE_BITS`, which take no channel uses of the uplink.
        """
        cost = cost._replace(bits=(cost.bits or 0.0) + PROBE_BITS * ues.size)
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

    left_j: Numbers

    @property
    def charged(self) -> NDArray[np.bool_]:
        """``[ue]``: who has any left."""
        return self.left_j > 0.0

    def drained(self, ues: NDArray[np.int64], wanted_j: Numbers) -> tuple["Batteries", Numbers]:
        """Take ``wanted_j[i]`` from each of these UEs; the batteries after it, and what was there.

        A battery that has less is emptied.
        """
        before = self.left_j[ues]
        energy_j = np.minimum(wanted_j, before)
        left_j = self.left_j.copy()
        left_j[ues] = before - energy_j
        return Batteries(left_j), energy_j


@functools.lru_cache(maxsize=64)
def _all_received(count: int) -> NDArray[np.str_]:
    """The outcome of a round in which nothing went wrong; shared by all of them, so read-only."""
    outcome = np.full(count, "received")
    outcome.flags.writeable = False
    return outcome


def make_cost_model(
    scenario: Scenario, streams: Streams, power_budget: float, length: int
) -> CostModel:
    """The cost model of a run on a channel of this power budget with models of this length."""
    payload = payload_bits(scenario, length)
    timing, clock = scenario.timing, None
    if isinstance(timing, sections.SecondsTiming):
        whole_w = timing.transmit_power_w
        clock = Clock(
            slot_s=slot_s(scenario),
            downlink_s=timing.downlink_s,
            deadline_s=math.inf if timing.deadline_s is None else timing.deadline_s,
            watts=1.0 if whole_w is None else whole_w / power_budget,
            devices=make_devices(scenario, timing, streams),
        )
    return CostModel(
        payload,
        scenario.rate_for(payload),
        compute_slots(scenario, streams),
        deadline_slots(scenario),
        clock,
    )


def make_batteries(scenario: Scenario, streams: Streams) -> Batteries | None:
    """The batteries before the first round; ``None`` if the scenario has none."""
    timing, ues = scenario.timing, scenario.cell.ues
    if not isinstance(timing, sections.SecondsTiming):
        return None
    if not isinstance(timing.battery, sections.EnergyBudget):
        return None
    drawn = normal(streams.battery(), ues)
    return Batteries(np.asarray(timing.battery.energy_j * exp_each(timing.battery.sigma * drawn)))


def payload_bits(scenario: Scenario, length: int) -> float:
    """The bits of an update to a model of ``length`` weights, as compression leaves it."""
    if isinstance(scenario.threshold, sections.PayloadThreshold):
        return scenario.threshold.payload_bits
    match scenario.learn.compression:
        case sections.Qsgd(bits=bits):
            return float(length * (bits + 1) + WEIGHT_BITS)  # magnitude and sign; the length
        case sections.TopK(share=share):
            return float(kept_weights(share, length) * (WEIGHT_BITS + (length - 1).bit_length()))
        case sections.Sign():
            return float(length + WEIGHT_BITS)
        case _:
            return float(WEIGHT_BITS * length)


def kept_weights(share: float, length: int) -> int:
    """How many weights a share of them is: the nearest number, and at least one.

    >>> kept_weights(0.01, 7850), kept_weights(0.001, 100)
    (78, 1)
    """
    return max(1, round(share * length))


def slot_s(scenario: Scenario) -> float:
    """Seconds of an upload at the rate threshold; NaN where there are no seconds."""
    timing, threshold = scenario.timing, scenario.threshold
    if not isinstance(timing, sections.SecondsTiming):
        return math.nan
    if isinstance(threshold, sections.RateThreshold):
        return timing.slot_s or math.nan  # the validator asks for one
    return threshold.deadline_s


def compute_slots(scenario: Scenario, streams: Streams) -> Numbers:
    """``float64[ue]``: how long each UE's local learning takes, in slots."""
    timing, ues = scenario.timing, scenario.cell.ues
    match timing:
        case sections.SlotTiming():
            drawn = normal(streams.speed(), ues)
            return np.asarray(timing.compute_slots * exp_each(timing.compute_sigma * drawn))
        case sections.SecondsTiming():
            return make_devices(scenario, timing, streams).compute_s / slot_s(scenario)
        case _:
            return np.zeros(ues)


def deadline_slots(scenario: Scenario) -> float:
    """When an update is too late, in slots after the downlink; infinity where nothing is."""
    match scenario.timing:
        case sections.SlotTiming(deadline_slots=slots):
            return slots
        case sections.SecondsTiming(deadline_s=float(deadline_s), downlink_s=downlink_s):
            return (deadline_s - downlink_s) / slot_s(scenario)
        case _:
            return math.inf


def offers_everyone(scenario: Scenario) -> bool:
    """Whether policies are also offered UEs that would be late."""
    timing = scenario.timing
    return not isinstance(timing, sections.NoTiming) and timing.offer == "everyone"


def upload_slots(rates: Numbers, threshold: float) -> Numbers:
    """How long uploads at these positive rates take.

    >>> upload_slots(np.array([4.0, 8.0]), 4.0)
    array([1. , 0.5])
    """
    return np.asarray(threshold / rates)


def make_devices(scenario: Scenario, timing: sections.SecondsTiming, streams: Streams) -> Devices:
    """What local learning takes: cycles / f and kappa cycles f^2, log-normal, or as measured."""
    ues, samples = scenario.cell.ues, scenario.learn.local_steps * scenario.learn.batch_size
    computing = timing.computing
    if isinstance(computing, sections.DeviceProfiles):
        speed, power_w = read_devices(Path(computing.path)).T
        rows = np.arange(ues) % speed.size
        if computing.assignment == "random":
            rows = streams.speed().integers(speed.size, size=ues)
        compute_s = samples / speed[rows]
        return Devices(compute_s, compute_s * power_w[rows])
    drawn = normal(streams.speed(), ues)
    if isinstance(computing, sections.LogNormalComputing):
        compute_s = computing.median_s * exp_each(computing.sigma * drawn)
        return Devices(compute_s, compute_s * computing.power_w)
    cycles = computing.cycles_per_sample * samples
    frequency_hz = computing.frequency_hz * exp_each(computing.frequency_sigma * drawn)
    joules = computing.kappa * cycles * (frequency_hz * frequency_hz)
    return Devices(cycles / frequency_hz, joules)


def read_devices(path: Path) -> Numbers:
    """``[device, (samples_per_s, compute_w)]`` of a CSV file; ``ValueError`` says what is wrong.

    The first line has the names of the columns; others than these two are not looked at.
    """
    require_file(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, skipinitialspace=True)
            missing = [name for name in _COLUMNS if name not in (reader.fieldnames or [])]
            if missing:
                raise ValueError(f"{path}: there is no column {missing[0]} in its first line")
            rows = [_device(row, f"{path}, line {reader.line_num}") for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path}: cannot be read as CSV: {error}") from error
    if not rows:
        raise ValueError(f"{path}: there is no device in it")
    return np.array(rows)


def _device(row: dict[str, str | None], where: str) -> list[float]:
    values = []
    for name, least in zip(_COLUMNS, (1e-9, 0.0), strict=True):
        try:
            value = float(row[name] or "")
        except ValueError:
            raise ValueError(f"{where}: {name} = {row[name]!r} is not a number") from None
        if not least <= value <= 1e15:
            raise ValueError(f"{where}: {name} = {value:g}: must be from {least:g} to 1e+15")
        values.append(value)
    return values
