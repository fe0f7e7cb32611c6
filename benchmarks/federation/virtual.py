"""Who should train where clients share one uplink: in virtual time, over many seeds.

Twelve clients with unlike data, rates and computing times share the capacity of one access point:
whoever sends has an equal part of its time. Two of them are broken. A round begins with what a
round of Flower takes before anybody sends. Who trains is what `RoundPlanner` says, as live; models
are those of the simulator.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agewise import Scenario
from agewise.flower import Airtime, Rates, RoundPlanner, Slots, UploadTiming
from agewise.learn import Federation
from agewise.random import Streams
from agewise.simulation import samples_of
from agewise.statistics import Contrast, contrast, correct

SEEDS = range(30)
CLIENTS, UPDATE_BYTES, SHARES = 12, 1_600_000, 20
#: Mbit/s of a client that has the access point for itself.
RATES = 0.5 * 32.0 ** (np.arange(CLIENTS) / (CLIENTS - 1))
#: Seconds: before anybody computes (measured on Flower), for which a round is planned, until a
#: client whose process has died is given up, and of a whole training.
START_S, PERIOD_S, DEAD_S, LIMIT_S = 8.0, 40.0, 66.0, 3600.0
#: Seconds that machines take to handle an update, which a server that times uploads takes for the
#: link's: the median over the measured rates of docs/federation.md.
HANDLING_S = 0.4
#: Fixed by a look at seeds that are not compared.
TARGET = 0.75
SCENARIO = Scenario.preset("paper").with_(
    **{
        "cell.ues": CLIENTS,
        "devices.samples_sigma": 0.5,
        "data.partition.classes_per_ue": 2,
        "learn.model.loss": "multinomial",
        "learn.local_steps": 20,
        "learn.batch_size": 20,
        "learn.step_size": 0.05,
        "learn.staleness": {"kind": "polynomial", "exponent": 0.5},
    }
)
SELECTIONS = (
    "age-based", "age-based, measured", "max-pack", "round-robin", "random", "fastest five",
    "all clients",
)  # fmt: skip
LATE = ("wait", "weigh")
#: Who is selected, and whether rounds wait for all replies or late ones are weighed.
Way = tuple[str, str]
_ALL: Way = ("all clients", "wait")


class Trained(NamedTuple):
    """What a training came to: seconds to the target, infinite if it was missed."""

    selection: str
    late: str
    seed: int
    seconds: float
    rounds: int
    accuracy: float
    largest_age: int


@dataclass
class Air:
    """The time of one access point, divided equally among those who send.

    ``jobs`` are, by client, when it begins to send, and the seconds that this takes it alone.
    """

    now: float = 0.0
    jobs: dict[int, list[float]] = field(default_factory=dict)

    def next_end(self, until: float) -> int | None:
        """Go on until somebody has sent all, and say who; ``None`` if nobody has by then."""
        while self.now < until:
            active = [row for row, (start, _) in self.jobs.items() if start <= self.now]
            first = min(active, key=lambda row: self.jobs[row][1], default=None)
            end = np.inf if first is None else self.jobs[first][1] * len(active)
            later = min((s for s, _ in self.jobs.values() if s > self.now), default=np.inf)
            step = min(end, later - self.now, until - self.now)
            for row in active:
                self.jobs[row][1] -= step / len(active)
            self.now += step
            if first is not None and step == end:
                del self.jobs[first]
                return first
        return None


class World:
    """The clients of a seed: their links, computing times and samples, and who is broken."""

    def __init__(self, seed: int) -> None:
        self.seed, self.streams = seed, Streams(seed)
        rng = np.random.default_rng([19, seed])
        self.rates = rng.permutation(RATES)
        self.send_s = 8e-6 * UPDATE_BYTES / self.rates
        self.compute_s = 4.0 * np.exp(0.5 * rng.standard_normal(CLIENTS))
        #: One answers with an error at once, the other dies and is given up.
        self.fails_s = dict(zip(rng.choice(CLIENTS, 2, replace=False).tolist(), (START_S, DEAD_S),
                                strict=True))  # fmt: skip
        self.federation: Federation = samples_of(SCENARIO, self.streams).federation(SCENARIO)
        self.ids = [f"client {k:02}" for k in range(CLIENTS)]

    def planner(self, selection: str) -> tuple[RoundPlanner, NDArray[np.int64]]:
        """The planner of a selection, and whom it may choose from."""
        rows, rates = np.arange(CLIENTS), dict(zip(self.ids, self.rates.tolist(), strict=True))
        least_s = START_S + float(np.median(self.compute_s))
        policy, _, measured = selection.partition(", ")
        links: Slots | Airtime | Rates = Rates(rates, SHARES, PERIOD_S, UPDATE_BYTES, least_s)
        if measured:
            links = Airtime(SHARES, PERIOD_S)
        elif policy == "all clients":
            policy, links = "round-robin", Slots(CLIENTS)
        elif policy == "fastest five":
            whole = np.setdiff1d(rows, list(self.fails_s))
            policy, links, rows = "round-robin", Slots(5), whole[np.argsort(self.send_s[whole])[:5]]
        sizes = {id_: int(n) for id_, n in
                 zip(self.ids, self.federation.learner.sizes, strict=True)}  # fmt: skip
        return RoundPlanner([policy], links, self.seed, sizes), np.sort(rows)


class Arrival(NamedTuple):
    """A round that is over: how late it is, the model's accuracy, the largest age."""

    seconds: float
    accuracy: float
    largest_age: int


def rounds(world: World, selection: str, late: str) -> Iterator[Arrival]:
    """Train for ever: rounds wait for all replies, or end with their period and weigh the rest."""
    planner, may = world.planner(selection)
    federation, air, weighs = world.federation, Air(), late == "weigh"
    state, asked_in = federation.init(), dict[int, int]()
    while True:
        t, began = planner.t, air.now
        planner.rows(world.ids)
        planned = planner.plan(np.setdiff1d(may, list(air.jobs)))
        waiting = set(planned.chosen.tolist())
        for row in waiting:
            broken = row in world.fails_s
            wait_s = world.fails_s[row] if broken else START_S + world.compute_s[row]
            air.jobs[row] = [began + wait_s, 0.0 if broken else world.send_s[row]]
            asked_in[row] = t
        nobody, came = not waiting, list[int]()
        end = began + (PERIOD_S if weighs else 1.0 if nobody else np.inf)
        while (waiting or (nobody and not came)) and (row := air.next_end(end)) is not None:
            waiting.discard(row)
            if row in world.fails_s:
                continue
            came.append(row)
            if asked_in[row] == t:
                seconds = air.now - began + HANDLING_S
                sent_s = seconds - START_S - float(world.compute_s[row])
                planner.links.observe(t, row, UploadTiming(seconds, sent_s, 8.0 * UPDATE_BYTES))
        for row in waiting:
            planner.links.miss(t, row)
        ues = np.sort(np.array(came, np.int64))
        versions = np.array([asked_in[row] for row in ues.tolist()], np.int64)
        state = state.keep(t, {t, *versions.tolist(), *(asked_in[row] for row in air.jobs)})
        state = federation.round(state, ues, t, None, versions).state
        pending = np.array(sorted(air.jobs), np.int64)
        planner.receive(planned, ues, pending=pending, versions=versions)
        accuracy = federation.learner.evaluate(state.params).accuracy
        yield Arrival(air.now, accuracy, int(planner.ages.max()))


def train(world: World, selection: str, late: str) -> Trained:
    """Train to the target, or to the end of the time."""
    number, done = 0, Arrival(0.0, 0.0, 0)
    for number, done in enumerate(rounds(world, selection, late), start=1):  # noqa: B007
        if done.accuracy >= TARGET or done.seconds >= LIMIT_S:
            break
    seconds = round(done.seconds, 1) if done.accuracy >= TARGET else np.inf
    accuracy = round(done.accuracy, 4)
    return Trained(selection, late, world.seed, seconds, number, accuracy, done.largest_age)


def compare(seeds: Sequence[int] = SEEDS) -> list[Trained]:
    """All trainings; prints as it goes."""
    found = []
    for seed in seeds:
        world = World(seed)
        found += [train(world, each, late) for late in LATE for each in SELECTIONS]
        print(f"seed {seed}", flush=True)
    return found


def write_table(found: Sequence[Trained], file: Path) -> None:
    """Write a line for each training."""
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.writer(opened, lineterminator="\n")
        writer.writerow(Trained._fields)
        writer.writerows(found)


def section(found: Sequence[Trained]) -> str:
    """What the page says of these trainings: a table, and what follows from it."""
    ways = [(each, late) for late in LATE for each in SELECTIONS]
    seeds = sorted({each.seed for each in found})
    times = {(each.selection, each.late, each.seed): each.seconds for each in found}
    seconds = {way: np.array([times[*way, seed] for seed in seeds]) for way in ways}
    ratios = Ratios(seconds, seeds)
    head = [f"{late}: seconds to {TARGET:g} | all clients take" for late in LATE]
    lines = [f"| who trains | {' | '.join(head)} |", "|---|---|---|---|---|"]
    against = ratios.over(_ALL, [way for way in ways if way != _ALL])
    for selection in SELECTIONS:
        cells = [selection]
        for way in ((selection, late) for late in LATE):
            quartiles = np.quantile(seconds[way], (0.5, 0.25, 0.75), method="nearest")
            middle, low, high = (f"{x:,.0f}" if np.isfinite(x) else "never" for x in quartiles)
            reached = np.isfinite(seconds[way]).sum()
            cells += [f"{middle} ({low} to {high}; {reached})"]
            cells += [_ratio(against[way]) if way in against else "1"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", _conclusion(ratios, against)])


class Ratios:
    """Ratios of times to the target; a training that missed it counts with all of its time."""

    def __init__(self, seconds: Mapping[Way, NDArray[np.float64]], seeds: Sequence[int]) -> None:
        self._logs = {way: np.log(np.minimum(x, LIMIT_S)) for way, x in seconds.items()}
        self._seeds = seeds

    @property
    def shortest(self) -> Way:
        """The way whose times have the least geometric mean."""
        return min(self._logs, key=lambda way: self._logs[way].mean())

    def against_all(self, way: Way) -> dict[Way, Contrast]:
        """How many times as long as each of all others this one takes, in logarithms."""
        return self.over(way, [x for x in self._logs if x != way])

    def over(self, way: Way, others: Sequence[Way]) -> dict[Way, Contrast]:
        """How many times as long as each of the others this one takes, in logarithms."""
        pairs = [contrast(self._logs[way], self._logs[x], self._seeds) for x in others]
        return dict(zip(others, correct(pairs), strict=True))


def _ratio(found: Contrast) -> str:
    low, mean, high = (f"{np.exp(x):.2f}" for x in (found.low, found.mean, found.high))
    return f"{mean} ({low} to {high}{'' if found.shown else '; not shown'})"


def _conclusion(ratios: Ratios, against: Mapping[Way, Contrast]) -> str:
    """Words that follow from the numbers."""
    sooner, later = _named(against, "better"), _named(against, "worse")
    said = [
        "**Use all clients**: no choice among them is shown to reach the target sooner."
        if sooner == "none"
        else f"**A choice pays here.** Sooner than all clients in synchronous rounds: {sooner}."
    ]
    said += [f"Later: {later}.", f"Not shown to differ: {_named(against, 'not shown')}."]
    best = ratios.shortest
    rivals = ratios.against_all(best)
    tied = {way: x for way, x in rivals.items() if not x.shown}
    each = "; ".join(f"{_called(way)}, {_ratio(x)}" for way, x in tied.items()) or "none"
    said += [
        f"\n\nThe least geometric mean has {_called(best)}.",
        f"It is sooner than {_named(rivals, 'worse')}.",
        f"Not shown to differ from it, with its time over theirs: {each}.",
        f"**So take {_called(best)}**: every other way is shown to be later."
        if not tied
        else f"**So any of these {len(tied) + 1} may be taken**, the simplest if nothing else "
        "decides: which is the best these trainings do not show.",
    ]
    for late in LATE:
        way = ("age-based", late)
        found = ratios.over(way, [(x, late) for x in SELECTIONS if x != way[0]])
        verdicts = ("worse", "better", "not shown")
        sooner, later, same = (_named(found, verdict, alone=True) for verdict in verdicts)
        said += [
            f"\n\nAge-based ({late}) is sooner than {sooner}, later than {later}.",
            f"Not shown to differ: {same}.",
            f"It takes {_ratio(found['random', late])} times as long as random.",
        ]
    for selection in ("age-based", "all clients"):
        (found_,) = ratios.over((selection, "wait"), [(selection, "weigh")]).values()
        said.append(
            f"Waiting for all takes {selection} {_ratio(found_)} times as long as weighing."
        )
    return " ".join(said).replace(" \n", "\n")


def _called(way: Way) -> str:
    return "{} ({})".format(*way)


def _named(found: Mapping[Way, Contrast], verdict: str, alone: bool = False) -> str:
    """The ways of this verdict; selections alone where all are of one kind of rounds."""
    lates: dict[str, list[str]] = {}
    for (selection, late), x in found.items():
        if x.verdict == verdict:
            lates.setdefault(selection, []).append(late)
    if alone:
        return ", ".join(lates) or "none"
    return "; ".join(f"{name} ({', '.join(x)})" for name, x in lates.items()) or "none"
