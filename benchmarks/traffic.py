"""How many slots a second are scheduled without learning, and what a slot is spent on."""

import time
from collections.abc import Callable

import numpy as np
from numba import njit
from rich.console import Console
from rich.table import Table

from agewise.age import f_alpha
from agewise.core.fading import fade_ue
from agewise.core.random import subkey
from agewise.core.traffic import (
    Ledger,
    TrafficCell,
    TrafficKeys,
    arrive,
    draw_ranks,
    receive,
    serve,
)
from agewise.radio import DrawnChannel
from agewise.random import Streams
from agewise.scenario import Scenario
from agewise.traffic import schedule_traffic

#: Slots of one measurement, a few milliseconds: short enough to fall between disturbances.
BLOCK = 500
BLOCKS = 200
ALPHA = 0.5


@njit
def draw(slots, key, means, gains, best_gains):
    """The fading of the slots, as `serve` draws it."""
    for t in range(slots[0], slots[1]):
        slot_key = subkey(key, t)
        for ue in range(means.size):
            best_gains[ue] = fade_ue(slot_key, ue, means[ue], gains[ue])


@njit
def keep_books(slots, keys, chances, rank, ledger, owner):
    """What surrounds the packing: arrivals, tie ranks, and the ages written down."""
    for t in range(slots[0], slots[1]):
        arrive(keys.arrivals, t, chances, ledger)
        draw_ranks(keys.ties, t, rank)
        receive(t, owner, ledger)


def contestants(scenario: Scenario, policy: str) -> dict[str, Callable[[int], object]]:
    """A block of slots as a whole, and its parts on their own, each from a given slot on."""
    streams = Streams(0)
    channel = scenario.make_channel(streams)
    assert isinstance(channel, DrawnChannel)
    ues, subchannels, means = (
        channel.ue_count,
        channel.subchannel_count,
        channel.large_scale(0).mean_gains,
    )
    chances = np.ones(ues)
    keys = TrafficKeys(streams.channel, streams.arrivals, streams.ties)
    cell = TrafficCell(means, chances, subchannels, channel.power_budget, scenario.rate_threshold)
    books = [Ledger.opened(ues).with_room_for(2 * BLOCK * BLOCKS) for _ in range(2)]
    ages = np.arange(books[0].age_counts.size)
    weight_of = f_alpha(ages, ALPHA) if policy == "age-based" else np.ones(ages.size)
    gains, best_gains = np.empty((ues, subchannels)), np.empty(ues)
    rank = np.empty(ues, np.int64)
    served = np.arange(subchannels) * (ues // subchannels)

    def whole(first: int) -> None:
        serve((first, first + BLOCK), keys, cell, weight_of, True, books[0])

    def drawing(first: int) -> None:
        draw((first, first + BLOCK), keys.fading, means, gains, best_gains)

    def books_only(first: int) -> None:
        keep_books((first, first + BLOCK), keys, chances, rank, books[1], served)

    return {"all": whole, "draw": drawing, "books": books_only}


def microseconds(calls: dict[str, Callable[[int], object]]) -> dict[str, np.ndarray]:
    """Processor time per slot and block of each, the blocks taken in turn."""
    took: dict[str, list[float]] = {name: [] for name in calls}
    for block in range(BLOCKS + 1):
        for name, call in calls.items():
            start = time.thread_time()
            call(block * BLOCK)
            took[name].append((time.thread_time() - start) / BLOCK * 1e6)
    return {name: np.array(times[1:]) for name, times in took.items()}  # the first compiles


def split() -> Table:
    """Slots a second on one core, and the microseconds of the parts of a slot."""
    table = Table(
        title=f"Traffic, preset paper (K=100, N=20): time of one core, {BLOCKS} blocks of {BLOCK} "
        "slots, best (median)"
    )
    for heading in ("policy", "slots/s", "a slot", "draw", "schedule", "books"):
        table.add_column(heading, justify="right")
    for policy in ("age-based", "max-pack"):
        took = microseconds(contestants(Scenario.preset("paper"), policy))
        row = {at: {name: float(at(times)) for name, times in took.items()}
               for at in (np.min, np.median)}  # fmt: skip
        for parts in row.values():
            parts["schedule"] = parts["all"] - parts["draw"] - parts["books"]
        best, median = row[np.min], row[np.median]
        table.add_row(
            policy,
            f"{1e6 / best['all']:,.0f} ({1e6 / median['all']:,.0f})",
            *(
                f"{best[name]:.1f} us ({median[name]:.1f})"
                for name in ("all", "draw", "schedule", "books")
            ),
        )
    return table


def against_the_plain_path(rounds: int = 500) -> Table:
    """Policies that are asked slot by slot, from Python."""
    table = Table(title=f"Traffic slot by slot from Python, {rounds} slots, best of 3")
    for heading in ("policy", "slots/s"):
        table.add_column(heading, justify="right")
    scenario = Scenario.preset("paper")
    for policy in ("random", "round-robin"):
        times = []
        for _ in range(3):
            start = time.thread_time()
            schedule_traffic(scenario, policy, rounds)
            times.append(time.thread_time() - start)
        table.add_row(policy, f"{rounds / min(times):,.0f}")
    return table


def main() -> None:
    """Print the tables."""
    console = Console(width=110)
    console.print(split())
    console.print(against_the_plain_path())


if __name__ == "__main__":
    main()
