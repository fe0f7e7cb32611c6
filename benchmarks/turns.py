"""Contestants that take turns, in one process or in several side by side.

A turn is some blocks of rounds of which the last is evaluated. What a round costs is that of
learning with an evaluation every tenth round, however long the blocks are. All processes run the
same contestant at the same time, so that two of them show what two cores are worth.
"""

import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from rich.table import Table

from agewise.learn import set_threads

#: Rounds from one evaluation to the next, as the workloads have it.
EVERY = 10
#: Processes, and threads of each: one core, two by processes, two by threads.
CORES = ((1, 1), (2, 1), (1, 2))

#: Does a round, and gives the accuracy where the round has been evaluated, otherwise 0.
Round = Callable[[], float]


class Race(NamedTuple):
    """Who takes turns, and for how long.

    ``contestants(seed, threads)`` are made in each process; ``block`` is the number of rounds up
    to an evaluation.
    """

    contestants: Callable[[int, int], Mapping[str, Round]]
    block: int = EVERY
    turns: int = 5
    turn_s: float = 1.5


class Turn(NamedTuple):
    """What one process did in one turn: seconds of a round by the clock and of the CPU."""

    who: str
    wall_s: float
    cpu_s: float
    accuracy: float


class Standing(NamedTuple):
    """Medians of a contestant's turns: CPU seconds of a round, and rounds a second of all."""

    cpu_s: float
    rate: float
    accuracy: float


def run(race: Race, processes: int, threads: int) -> dict[str, Standing]:
    """A number of processes side by side, with a number of threads each."""
    for name in ("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[name] = str(threads)  # for the processes that are started below
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(processes), context.Queue()
    workers = [
        context.Process(target=_take_turns, args=(race, seed, threads, barrier, results))
        for seed in range(processes)
    ]
    for worker in workers:
        worker.start()
    turns = [turn for _ in workers for turn in results.get()]
    for worker in workers:
        worker.join()
    return {who: _standing(who, turns, processes) for who in dict.fromkeys(t.who for t in turns)}


def _take_turns(race: Race, seed: int, threads: int, barrier: Any, results: Any) -> None:
    set_threads(threads)
    racing = race.contestants(seed, threads)
    for one_round in racing.values():
        _block(one_round, race.block)
    turns = []
    for _ in range(race.turns):
        for who, one_round in racing.items():
            barrier.wait()
            turns.append(_turn(who, one_round, race))
    results.put(turns)


def _turn(who: str, one_round: Round, race: Race) -> Turn:
    start = time.perf_counter()
    blocks: list[tuple[float, float, float]] = []
    while not blocks or time.perf_counter() - start < race.turn_s:
        blocks.append(_block(one_round, race.block))
    wall, cpu, accuracy = zip(*blocks, strict=True)
    return Turn(who, statistics.mean(wall), statistics.mean(cpu), accuracy[-1])


def _block(one_round: Round, count: int) -> tuple[float, float, float]:
    """Seconds of a round by the clock and of the CPU, and the accuracy after the last round."""
    begun = _clocks()
    for _ in range(count - 1):
        one_round()
    between = _clocks()
    accuracy = one_round()
    if not accuracy:
        raise RuntimeError(f"round {count} of a block has not been evaluated")
    ended = _clocks()
    wall, cpu = (
        (b - a) / (count - 1) * (1 - 1 / EVERY) + (c - b) / EVERY
        for a, b, c in zip(begun, between, ended, strict=True)
    )
    return wall, cpu, accuracy


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _standing(who: str, turns: Sequence[Turn], processes: int) -> Standing:
    own = [turn for turn in turns if turn.who == who]
    return Standing(
        statistics.median(turn.cpu_s for turn in own),
        processes * statistics.median(1 / turn.wall_s for turn in own),
        own[-1].accuracy,
    )


def scaling(race: Race, title: str, cores: Sequence[tuple[int, int]] = CORES) -> Table:
    """What a round costs, and how many times the rounds of one core two cores make.

    The ratio per CPU second is that to the last contestant on one core.
    """
    table = Table(title=f"{title}: medians of turns")
    for heading in ("", "", "CPU ms", "per CPU second", "rounds/s", "of one core", "accuracy"):
        table.add_column(heading, justify="right")
    one_core: dict[str, Standing] = {}
    for processes, threads in cores:
        standings = run(race, processes, threads)
        label = f"{_counted(processes, 'process', 'es')} of {_counted(threads, 'thread', 's')}"
        one_core = one_core or standings
        reference = [*one_core.values()][-1].cpu_s
        for who, (cpu_s, rate, accuracy) in standings.items():
            table.add_row(
                label, who, f"{cpu_s * 1e3:,.1f}", f"{reference / cpu_s:.2f}x", f"{rate:,.2f}",
                f"{rate / one_core[who].rate:.2f}x", f"{accuracy:.3f}",
            )  # fmt: skip
            label = ""
    return table


def _counted(number: int, noun: str, plural: str) -> str:
    return f"{number} {noun}{plural if number > 1 else ''}"
