"""The links of a live federation, as the gains that policies look at; Flower is not needed.

Scheduling needs for every client how much of the uplink its update takes. That is said in shares:
the uplink's time in a round is divided into N equal ones, which are the subchannels of the paper.
A client whose upload needs x of them gets the flat gain

    g = x (2^(2R/x) - 1) / P

on all N. With n subchannels and even power it reaches the rate n/2 log2(1 + gP/n), which grows with
n and is R at n = x: so ceil(x) subchannels are enough, fewer are not, and N are not if x > N.
"""

import csv
import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agewise.checks import first_line, number_within, whole_number
from agewise.cost import Batteries, CostModel
from agewise.devices import DeviceTable
from agewise.files import read_regular_file
from agewise.radio import Channel
from agewise.random import Streams
from agewise.scenario import Scenario, require_scenario, short_hash
from agewise.spectrum import Uplink

_log = logging.getLogger("agewise")

Gains = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]

#: R and P where only their product with the gains means something.
_RATE, _POWER = 1.0, 1.0
#: Fewer shares than this are taken as this: gains stay finite, and one share is enough anyway.
_LEAST_SHARES = 0.05
#: The relative amount by which x is lowered, so that rounding does not make ceil(x) + 1 of a
#: whole x.
_ROUNDING = 1e-9
#: What `Airtime` keeps of each client: throughput and computing time of its last uploads, NaN where
#: there were fewer, size of the last update, and whether the last news was a missed deadline.
_MEASURED = [
    ("bits_s", np.float32, 5),
    ("compute_s", np.float32, 3),
    ("bits", np.float32),
    ("missed", np.bool_),
]
#: The largest file of reported links, in bytes.
_MOST_BYTES = 64 * 2**20


class FederationError(RuntimeError):
    """The federation cannot go on; the message says why and what to do, in one sentence."""


@dataclass(frozen=True)
class UploadTiming:
    """Measurement of one upload by the server.

    ``seconds`` pass from the request to the reply, of these ``transfer_s`` on the link.
    """

    seconds: float
    transfer_s: float
    payload_bits: float


class Links(ABC):
    """Uplinks of the clients: `gains` before a round, `observe` and `miss` after it.

    ``subchannels`` is N. Clients have rows, in the order in which they first came.
    """

    subchannels: int
    rate_threshold: float = _RATE
    power_budget: float = _POWER
    #: Added to the rate threshold that policies are shown, in bits per real channel use.
    margin: float = 0.0
    #: When an upload is late; ``None`` leaves that to the `Timeouts`.
    deadline_s: float | None = None
    #: Whether the links are learned from uploads that the server times.
    measures: bool = False
    #: In slots, as the simulator counts time: an update that takes longer is lost.
    deadline_slots: float = math.inf
    everyone_eligible: bool = False
    #: The scenario that the links are a part of, where there is one.
    scenario: Scenario | None = None

    def uplink(self, gains: Gains) -> Uplink:
        """The uplink on which the first clients, by row, have these gains."""
        return Uplink(gains, self.power_budget, self.rate_threshold)

    @abstractmethod
    def gains(self, t: int, ids: Sequence[str]) -> Gains:
        """``[client, subchannel]``: gains of these clients in round ``t`` (from 0), by row."""

    def true_gains(self, t: int, ids: Sequence[str]) -> Gains | None:
        """``[client, subchannel]``: the gains that uploads meet; ``None`` if `gains` has them.

        An upload whose rate on these gains is below the threshold is lost.
        """
        return None

    def compute_slots(self, count: int) -> NDArray[np.float64]:
        """``[client]``: slots that the local learning of the first ``count`` clients takes."""
        return np.zeros(count)

    def threshold_slots(self, count: int) -> NDArray[np.float64]:
        """``[client]``: slots of an upload at the rate threshold, of the first ``count``."""
        return np.ones(count)

    def observe(self, t: int, row: int, timing: UploadTiming) -> None:  # noqa: B027
        """Take in what was measured of an upload that arrived in round ``t``, in time or late."""

    def miss(self, t: int, row: int) -> None:  # noqa: B027
        """Take in that an upload was not there at the deadline of round ``t``."""

    def state(self) -> Arrays:
        """Save what was learned, as arrays."""
        return {}

    def restore(self, state: Arrays) -> None:  # noqa: B027
        """Restore what `state` saved."""

    def __str__(self) -> str:
        """Name the links, so that a saved state is not taken up over others."""
        return f"{type(self).__name__} with {self.subchannels} subchannels"


def _flat_gains(shares: NDArray[np.float64], subchannels: int) -> Gains:
    """``[client, subchannel]``: what lets ``ceil(shares)`` subchannels just reach the threshold.

    Clients that would need more shares than there are subchannels have gain 0. On equal gains, with
    a threshold for each client instead, needs would be the same, but policies that rank by SNR
    (best-channel and its kin) could no longer tell a fast link from a slow one.

    >>> _flat_gains(np.array([1.0, 3.0]), 2).round(6)
    array([[3., 3.],
           [0., 0.]])
    """
    reach = shares <= subchannels
    x = np.maximum(np.where(reach, shares, 1.0) * (1.0 - _ROUNDING), _LEAST_SHARES)
    gains = np.where(reach, x * (np.exp2(2.0 * _RATE / x) - 1.0) / _POWER, 0.0)
    return np.repeat(gains[:, np.newaxis], subchannels, axis=1)


@dataclass(frozen=True)
class Slots(Links):
    """A number of equal upload places in a round; every client that is there can use one.

    >>> Slots(2).gains(0, ["a"]).round(6)
    array([[3., 3.]])
    """

    subchannels: int

    def __post_init__(self) -> None:
        whole_number("subchannels", self.subchannels, least=1)

    def gains(self, t: int, ids: Sequence[str]) -> Gains:
        """One share each."""
        return _flat_gains(np.ones(len(ids)), self.subchannels)


@dataclass(eq=False)
class Airtime(Links):
    """Equal shares of the uplink's time until the deadline; how many a client needs is measured.

    A client of throughput b and computing time c needs x = N payload / ((deadline - c) b) of the N
    ``shares``. b is the median of its last five uploads, c that of the last three, as the server
    timed them. What machines take to handle an update is in b, for among updates of one size
    nothing tells it from the link; an upload that takes no longer than the time between two looks
    is timed roughly. A client that was never measured is taken to need ``first_guess`` shares. One
    that needs more than all of them, or missed the deadline, is planned for as if it needed all:
    whether it makes it is seen by trying, which the planner's `Retry` keeps rare. ``payload_bytes``
    is the size of an update, by default that of the client's last.
    """

    shares: int
    deadline_s: float = field()  # must be given, for links in general may have none
    payload_bytes: float | None = None
    first_guess: float = 1.0
    measures: bool = field(default=True, init=False)
    _known: NDArray[np.void] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        whole_number("shares", self.shares, least=1)
        number_within("deadline_s", self.deadline_s, 0.0, above=True)
        number_within("first_guess", self.first_guess, 0.0, above=True)
        if self.payload_bytes is not None:
            number_within("payload_bytes", self.payload_bytes, 0.0, above=True)
        self._known = _nothing_measured(0)

    @property
    def subchannels(self) -> int:  # type: ignore[override]
        """N, the number of shares."""
        return self.shares

    def gains(self, t: int, ids: Sequence[str]) -> Gains:
        """Flat gains by the shares that each client needs."""
        new = _nothing_measured(max(len(ids) - self._known.size, 0))
        self._known = known = np.concatenate((self._known, new))
        needed = self.needed_shares()
        most = float(self.shares)
        shares = np.where(known["missed"], most, np.minimum(needed, most))
        return _flat_gains(shares[: len(ids)], self.shares)

    def needed_shares(self) -> NDArray[np.float64]:
        """``[client]``: x of each; above N for who cannot make the deadline."""
        known, bits_s = self._known, self.rates_bits_s()
        bits = known["bits"] if self.payload_bytes is None else 8.0 * self.payload_bytes
        left = self.deadline_s - _medians(known["compute_s"])
        with np.errstate(divide="ignore", invalid="ignore"):
            needed = np.where(left > 0, self.shares * bits / (left * bits_s), np.inf)
        return np.where(bits_s > 0, needed, self.first_guess)

    def rates_bits_s(self) -> NDArray[np.float64]:
        """``[client]``: throughput of each in bits per second; NaN if it was never measured."""
        return _medians(self._known["bits_s"])

    def observe(self, t: int, row: int, timing: UploadTiming) -> None:
        """Take in throughput and computing time of an upload, in the place of the oldest."""
        known, transfer_s = self._known, max(timing.transfer_s, 1e-6)
        newest = {
            "bits_s": timing.payload_bits / transfer_s,
            "compute_s": max(timing.seconds - transfer_s, 0.0),
        }
        for name, value in newest.items():
            known[name][row] = [value, *known[name][row, :-1]]
        known["bits"][row], known["missed"][row] = timing.payload_bits, False

    def miss(self, t: int, row: int) -> None:
        """Take it to need all shares, until it is heard."""
        self._known["missed"][row] = True

    def state(self) -> Arrays:
        """What was measured, of those clients of whom something was."""
        known = self._known
        rows = np.flatnonzero(known["missed"] | (known["bits"] > 0))
        return {"rows": rows, "known": known[rows]} if rows.size else {}

    def restore(self, state: Arrays) -> None:
        """Go on with what was measured."""
        if state:
            self._known = _nothing_measured(int(state["rows"].max()) + 1)
            self._known[state["rows"]] = state["known"]


def _nothing_measured(count: int) -> NDArray[np.void]:
    """What `Airtime` keeps of new clients."""
    known = np.zeros(count, _MEASURED)
    known["bits_s"] = known["compute_s"] = np.nan
    return known


def _medians(rows: NDArray[np.float32]) -> NDArray[np.float64]:
    """Medians of what is no NaN in each row; NaN where there is nothing.

    >>> _medians(np.array([[4.0, 1.0, np.nan], [9.0, 5.0, 1.0], [np.nan] * 3], np.float32))
    array([2.5, 5. , nan])
    """
    rising = np.sort(rows, axis=1).astype(np.float64)  # NaN last
    count, each = (~np.isnan(rising)).sum(axis=1), np.arange(len(rows))
    middle = rising[each, (count - 1) // 2] + rising[each, count // 2]
    return np.asarray(middle / 2.0)


@dataclass(eq=False)
class Modelled(Links):
    """A channel of the simulator: client number k of the federation has the link of its UE k.

    The policy sees what the access point of the scenario sees. Where that is not what uploads meet,
    an update whose true rate is below the threshold is lost, as in the simulator: it is dropped
    when it arrives. So is one that takes longer than the deadline of the scenario's timing.
    """

    scenario: Scenario = field()
    seed: int = 0
    _channel: Channel = field(init=False, repr=False)
    _devices: DeviceTable = field(init=False, repr=False)
    _costs: CostModel = field(init=False, repr=False)

    def __post_init__(self) -> None:
        require_scenario(self.scenario)
        scenario, streams = self.scenario, Streams(self.seed)
        devices = scenario.device_table(streams)
        if Batteries.full(devices) is not None:
            raise ValueError(
                "modelled links have no batteries: leave battery_j out of their scenario's devices"
            )
        self._channel, self._devices = scenario.make_channel(streams), devices
        self.power_budget = self._channel.power_budget
        self._costs = costs = scenario.cost_model(devices, self.power_budget)
        if not scenario.threshold.by_time_left:
            self.rate_threshold = scenario.rate_threshold
        self.margin = scenario.threshold.margin
        self.subchannels = self._channel.subchannel_count
        self.deadline_slots = costs.deadline_slots
        self.everyone_eligible = scenario.timing.everyone_eligible

    def uplink(self, gains: Gains) -> Uplink:
        """The uplink of the scenario's first UEs."""
        costs, count = self._costs, len(gains)
        return Uplink(gains, costs.power_budget[:count], costs.threshold[:count])

    def gains(self, t: int, ids: Sequence[str]) -> Gains:
        """Gains that the access point sees in the scenario's round ``t``; 0 for who is away."""
        self._require(len(ids))
        seen, available = self._channel.block(t).seen, self._devices.available(t)
        return np.where(available[:, np.newaxis], seen, 0.0)[: len(ids)]

    def true_gains(self, t: int, ids: Sequence[str]) -> Gains | None:
        """True gains of the scenario's round ``t``, where they are others."""
        block = self._channel.block(t)
        return None if block.true is block.seen else block.true[: len(ids)]

    def compute_slots(self, count: int) -> NDArray[np.float64]:
        """Computing times of the scenario's UEs."""
        self._require(count)
        return self._costs.compute_slots[:count]

    def threshold_slots(self, count: int) -> NDArray[np.float64]:
        """Upload times of the scenario's UEs."""
        return self._costs.threshold_slots[:count]

    def __str__(self) -> str:
        return f"{super().__str__()}, scenario {short_hash(self.scenario)}, seed {self.seed}"

    def _require(self, count: int) -> None:
        if count > self._channel.ue_count:
            raise FederationError(
                f"{count} clients joined, and the modelled channel has {self._channel.ue_count} "
                f"UEs: set cell.ues to {count} or more"
            )


#: Of a client, the shares that it needs, or its gain on each subchannel.
_Report = float | Sequence[float]


class _Told(Links):
    """Links that others know; where these fail for a round, the links stay as they were."""

    _last: Mapping[str, Any] | None = None

    @abstractmethod
    def _ask(self, t: int) -> Mapping[str, Any]:
        """What is reported in round ``t`` by client; ``ValueError`` if it cannot be read."""

    def _now(self, t: int) -> Mapping[str, Any]:
        """What is reported in round ``t``, or was before; ``ValueError`` if nothing ever was."""
        try:
            self._last = self._ask(t)
        except ValueError as error:
            if self._last is None:
                raise
            _log.warning("round %s goes on with the links that were reported last: %s", t, error)
        return self._last


@dataclass(eq=False)
class Reported(_Told):
    """Links that others know: shares of the uplink that clients need, or their gains.

    ``source`` is asked before every round; where it fails, its last reports stay. A function gets
    the round, from 0, and gives by client id the number of shares or a gain for each of the
    ``subchannels``. A CSV file has a line per client; its first line is ``client,shares`` or
    ``client,gain,...``. Clients that are not reported have gain 0.

    >>> links = Reported(2, lambda t: {"a": 1.0, "b": [4.0, 5.0]})
    >>> links.gains(0, ["b", "a", "c"]).round(6).tolist()
    [[4.0, 5.0], [3.0, 3.0], [0.0, 0.0]]
    """

    subchannels: int
    source: Path | str | Callable[[int], Mapping[str, _Report]]
    rate_threshold: float = _RATE
    power_budget: float = _POWER

    def __post_init__(self) -> None:
        whole_number("subchannels", self.subchannels, least=1)

    def gains(self, t: int, ids: Sequence[str]) -> Gains:
        """Gains of these clients as they are reported now."""
        rows = self._now(t)
        unknown = np.zeros(self.subchannels)
        return np.array([rows.get(id_, unknown) for id_ in ids]).reshape(-1, self.subchannels)

    def _ask(self, t: int) -> Mapping[str, Gains]:
        reports, where = _reports(self.source, t, ("shares", "gain"))
        return {client: self._row(where, client, each) for client, each in reports.items()}

    def _row(self, where: str, client: str, report: _Report) -> Gains:
        try:
            numbers = np.array(report, np.float64)
        except (TypeError, ValueError, OverflowError):
            numbers = np.array(math.nan)
        problem = ""
        if not (np.isfinite(numbers).all() and (numbers >= 0).all()):
            problem = "what is reported must be non-negative, finite numbers"
        elif numbers.ndim > 0 and numbers.shape != (self.subchannels,):
            problem = f"{numbers.size} gains for {self.subchannels} subchannels"
        elif numbers.ndim == 0 and numbers == 0:
            problem = "the number of shares must be positive"
        elif numbers.ndim == 0 and (self.rate_threshold, self.power_budget) != (_RATE, _POWER):
            problem = "shares go with the usual rate threshold and power budget"
        if problem:
            raise ValueError(f"{where}: client {client}: {problem}")
        return numbers if numbers.ndim else _flat_gains(numbers[np.newaxis], self.subchannels)[0]


@dataclass(eq=False)
class Rates(_Told):
    """Uplink rates in Mbit/s that others know, as shares of a round's time.

    ``source`` has a rate by client id: a mapping, a function of the round (from 0) that gives one,
    or a CSV file whose first line is ``client,mbit_s``. It is asked before every round; where it
    fails, its last rates stay. A client of rate b needs x = N payload / ((deadline - compute) b) of
    the N ``shares``. One without a rate, or that needs more than all shares, is out of reach.

    >>> rates = {"a": 8.0, "b": 3.0, "c": 0.5}
    >>> links = Rates(rates, shares=4, deadline_s=2.0, payload_bytes=500_000)
    >>> links.gains(0, ["a", "b", "c", "d"]).any(axis=1).tolist()
    [True, True, False, False]
    """

    source: Mapping[str, float] | Callable[[int], Mapping[str, float]] | Path | str
    shares: int
    deadline_s: float = field()  # must be given, for links in general may have none
    payload_bytes: float = field()
    compute_s: float = 0.0

    def __post_init__(self) -> None:
        self.subchannels = whole_number("shares", self.shares, least=1)
        number_within("payload_bytes", self.payload_bytes, 0.0, above=True)
        number_within("compute_s", self.compute_s, 0.0)
        number_within("deadline_s", self.deadline_s, self.compute_s, above=True)
        self.gains(0, [])

    def gains(self, t: int, ids: Sequence[str]) -> Gains:
        """Flat gains by the shares that each client needs at its rate now."""
        reports = self._now(t)
        rates = np.array([reports.get(id_, 0.0) for id_ in ids], np.float64)
        left_s = self.deadline_s - self.compute_s
        with np.errstate(divide="ignore"):
            needed = self.shares * 8e-6 * self.payload_bytes / (left_s * rates)
        return _flat_gains(needed, self.shares)

    def _ask(self, t: int) -> Mapping[str, float]:
        reports, where = _reports(self.source, t, ("mbit_s",))
        for client, rate in reports.items():
            if not (type(rate) is float and 0.0 <= rate < math.inf):  # as a rule, and checked fast
                number_within(f"{where}: client {client}: the rate in Mbit/s", rate, 0.0)
        return {client: float(rate) for client, rate in reports.items()}


def _reports(source: object, t: int, kinds: Sequence[str]) -> tuple[Mapping[str, Any], str]:
    """What a source says in round ``t`` by client, and how it is called."""
    where = "the links that are given"
    if callable(source):
        where = "the function of reported links"
        try:
            source = source(t)
        except Exception as error:  # it is the user's
            said = f"{type(error).__name__}: {first_line(error)}"
            raise ValueError(f"{where} failed in round {t}: {said}") from error
    elif isinstance(source, Path | str):
        source, where = _read_reports(Path(source), kinds), str(source)
    if not isinstance(source, Mapping):
        raise ValueError(f"{where} must give a report by client, not {source!r}")
    return source, where


def _read_reports(path: Path, kinds: Sequence[str]) -> dict[str, _Report]:
    try:
        text = read_regular_file(path, _MOST_BYTES).decode("utf-8-sig")
        reader = csv.reader(text.splitlines())
        head, lines = next(reader, []), [(reader.line_num, line) for line in reader if line]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path}: the reported links cannot be read: {error}") from error
    kind = head[1].strip() if len(head) > 1 else ""
    if kind not in kinds:
        wanted = " or ".join(f"client,{each}" + ",..." * (each == "gain") for each in kinds)
        raise ValueError(f"{path}: its first line must be {wanted}")
    reports: dict[str, _Report] = {}
    for number, (client, *cells) in lines:
        client = client.strip()
        if client in reports:
            raise ValueError(f"{path}: line {number}: client {client} stands there a second time")
        try:
            numbers = [float(cell) for cell in cells]
            if kind != "gain" and len(numbers) != 1:
                raise ValueError(f"{len(numbers)} numbers of {kind} in the place of one")
        except ValueError as error:
            raise ValueError(f"{path}: client {client}: {error}") from error
        reports[client] = numbers if kind == "gain" else numbers[0]
    return reports
