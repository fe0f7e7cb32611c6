"""How fast federated learning over the scheduled channel runs: ``make bench``.

Workload W: linear SVM on MNIST, 100 UEs of 600 samples, 10 UEs a round, 50 steps of one sample,
evaluation on 10,000 images every 10 rounds. W32: 20 steps of 32 samples. Agewise includes
scheduling, records and evaluation; the plain loop has neither scheduling nor records.
"""

import functools
import itertools
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from numba.core.dispatcher import Dispatcher
from rich.console import Console
from rich.table import Table

from agewise.data import Mnist
from agewise.learn import set_threads
from agewise.policies import AgeBased, Random
from agewise.scenario import Scenario
from agewise.simulation import rounds, simulate
from benchmarks.plain_loop import PlainLoop
from benchmarks.turns import EVERY, Race, Round, run

UES, CHOSEN, STEP, SHRINKAGE = 100, 10, 0.01, 1e-4
#: More rounds than anyone waits for.
MANY = 1_000_000
WORKLOADS = {"W": (50, 1), "W32": (20, 32)}
PROCESSES = 2
#: Turns of both contestants, and seconds of each turn.
TURNS, TURN_S = 6, 1.0


def scenario(steps: int, batch: int, count: int) -> Scenario:
    """The workload as a scenario: ten subchannels and no threshold schedule ten UEs a round."""
    return Scenario.read(
        {
            "cell": {"ues": UES, "subchannels": CHOSEN},
            "channel": {
                "kind": "model",
                "placement": {"kind": "disc", "radius_m": 100.0},
                "path_loss": {"kind": "power-law", "exponent": 3.5, "reference_distance_m": 1.0},
                "fading": "rayleigh",
                "link": {"kind": "edge-snr", "edge_snr_db": 10.0},
            },
            "threshold": {"kind": "rate", "rate": 0.0},
            "timing": "none",
            "data": {"dataset": "mnist", "task": "all", "partition": "iid"},
            "learn": {
                "model": {"kind": "linear", "loss": "hinge", "initial_deviation": 0.01},
                "penalty": {"kind": "l2", "weight": SHRINKAGE},
                "aggregation": "average",
                "local_steps": steps,
                "batch_size": batch,
                "step_size": STEP,
                "step_decay": 0.0,
            },
            "run": {
                "rounds": count,
                "evaluate_every": EVERY,
                "objective_every": 0,
                "optimum": "never",
                "age_alpha": 0.5,
            },
        }
    )


# ------------------------------------------------------------------------ throughput of a sweep
def contestants(workload: str, seed: int, _threads: int) -> dict[str, Round]:
    """One round of each; what it returns is the accuracy where the round has been evaluated."""
    steps, batch = WORKLOADS[workload]
    data = Mnist().load()
    parts = [(part.values(), part.labels) for part in (data.train, data.test)]
    plain = PlainLoop(parts[0], parts[1], UES, CHOSEN, steps, batch, STEP, SHRINKAGE)
    return {
        "agewise": stream_of(scenario(steps, batch, MANY), seed),
        "plain": loop_of(plain.round, plain.accuracy),
    }


def stream_of(workload: Scenario, seed: int) -> Round:
    """A round of the simulation after another."""
    stream = rounds(workload, Random(), seed)

    def accuracy() -> float:
        evaluation = next(stream).evaluation
        return 0.0 if evaluation is None else evaluation.accuracy

    return accuracy


def loop_of(train: Callable[[], None], evaluate: Callable[[], float], every: int = EVERY) -> Round:
    """A round of a plain loop after another, with an evaluation now and then."""
    done = itertools.count(1)

    def one_round() -> float:
        train()
        return float(evaluate()) if next(done) % every == 0 else 0.0

    return one_round


def throughput() -> Table:
    """A sweep on all cores against the plain loop run the same way, taking turns."""
    table = Table(title=f"Throughput: {PROCESSES} processes of one thread, medians of turns")
    for heading in ("workload", "", "CPU us a round", "rounds a second", "ratio", "accuracy"):
        table.add_column(heading, justify="right")
    for workload in WORKLOADS:
        race = Race(functools.partial(contestants, workload), turns=TURNS, turn_s=TURN_S)
        standings = run(race, PROCESSES, 1)
        for who, (cpu_s, rate, accuracy) in standings.items():
            ratio = f"{standings['plain'].cpu_s / cpu_s:.2f}x" if who == "agewise" else ""
            table.add_row(
                workload if who == "agewise" else "", who, f"{cpu_s * 1e6:,.0f}", f"{rate:,.0f}",
                ratio, f"{accuracy:.3f}",
            )  # fmt: skip
    return table


# --------------------------------------------------------------------- what aggregation costs
AGGREGATIONS: dict[str, str | dict[str, Any]] = {
    "average": "average",
    "memory": {"kind": "memory", "discount": "none"},
    "memory, fixed discount": {"kind": "memory", "discount": {"kind": "fixed", "rate": 0.1}},
    "memory, by agreement": {"kind": "memory", "discount": "agreement"},
    "variance-reduced": "variance-reduced",
    "momentum": {"kind": "momentum", "beta": 0.9, "server_step": 1.0},
    "adam": {"kind": "adam", "beta_1": 0.9, "beta_2": 0.99, "server_step": 0.01, "tau": 0.001},
}


def aggregations(turns: int = 31, count: int = 50) -> Table:
    """W with each aggregation in one thread, taking turns of ``count`` rounds.

    The extra is the median over turns of the difference from averaging in the same turn.
    """
    table = Table(title="CPU time of a round (W) by aggregation, microseconds: medians of turns")
    for heading in ("aggregation", "a round", "more than average", "share"):
        table.add_column(heading, justify="right")
    set_threads(1)
    base = scenario(*WORKLOADS["W"], (turns + 4) * count)
    streams = {
        name: rounds(base.with_(**{"learn.aggregation": rule}), Random(), 0)
        for name, rule in AGGREGATIONS.items()
    }
    costs: dict[str, list[float]] = {name: [] for name in streams}
    for turn in range(-3, turns):  # the first ones fill the memories
        for name, stream in streams.items():
            start = time.process_time()
            for _ in range(count):
                next(stream)
            if turn >= 0:
                costs[name].append((time.process_time() - start) / count * 1e6)
    usual = costs["average"]
    whole = statistics.median(usual)
    for name, cost in costs.items():
        more = statistics.median(own - other for own, other in zip(cost, usual, strict=True))
        table.add_row(
            name, f"{statistics.median(cost):.0f}", f"{more:+.0f}", f"{more / whole:+.0%}"
        )
    return table


# ------------------------------------------------------------------- where a round's time goes
#: Kernels by module of `agewise.core` and name; what is not listed schedules.
PARTS = {
    "linear.train": "local SGD of 10 UEs",
    "linear.measure": "evaluation, every 10th round",
    "aggregation.mean_update": "average and diversity",
}


@contextmanager
def timed_kernels(spent: dict[str, float]) -> Iterator[None]:
    """Add up the CPU seconds in every kernel that Python calls; all must be compiled already."""

    def timed(kernel: Any, label: str) -> Callable[..., Any]:
        def wrapper(*arguments: Any) -> Any:
            start = time.process_time()
            answer = kernel(*arguments)
            spent[label] += time.process_time() - start
            return answer

        return wrapper

    replaced = []
    for name, module in list(sys.modules.items()):
        if not name.startswith("agewise"):
            continue
        for attribute, kernel in list(vars(module).items()):
            if isinstance(kernel, Dispatcher):
                home = kernel.py_func.__module__.removeprefix("agewise.core.")
                part = PARTS.get(f"{home}.{attribute}", "kernels of channel and schedule")
                replaced.append((module, attribute, kernel))
                setattr(module, attribute, timed(kernel, part))
    try:
        yield
    finally:
        for module, attribute, kernel in replaced:
            setattr(module, attribute, kernel)


def split_of_a_round(workload: str, blocks: int = 60, count: int = 50) -> Table:
    """Kernels and the rest of a round in one thread, medians of blocks of rounds in turn.

    Timing the kernels takes time itself, so a round as a whole is timed in blocks of its own.
    """
    table = Table(title=f"CPU time of a round ({workload}), microseconds")
    for heading in ("part", "mean", "share"):
        table.add_column(heading, justify="right")
    set_threads(1)
    stream = rounds(scenario(*WORKLOADS[workload], (blocks + 1) * count), Random(), 0)
    for _ in range(count):
        next(stream)
    wholes, splits = [], []
    for block in range(blocks):
        spent: dict[str, float] = defaultdict(float)
        with timed_kernels(spent) if block % 2 else nullcontext():
            start = time.process_time()
            for _ in range(count):
                next(stream)
            whole = time.process_time() - start
        if block % 2:
            splits.append(spent)
        else:
            wholes.append(whole)
    whole = statistics.median(wholes)
    medians = {name: statistics.median(split[name] for split in splits) for name in splits[0]}
    medians["Python: checks, views, records, the rest"] = whole - sum(medians.values())
    for label, seconds in sorted(medians.items(), key=lambda item: -item[1]):
        table.add_row(label, f"{seconds / count * 1e6:.0f}", f"{seconds / whole:.0%}")
    return table


# ------------------------------------------------------------------------------------ whole runs
def whole_runs() -> Table:
    """A run of the paper's size, and a cold process."""
    table = Table(title="Whole runs")
    for heading in ("what", "result"):
        table.add_column(heading, justify="right")
    paper_size = scenario(50, 1, 100).with_(
        **{"cell.subchannels": 20, "threshold.rate": 4.0, "run.evaluate_every": 1}
    )
    for threads in (1, len(os.sched_getaffinity(0))):
        set_threads(threads)
        simulate(paper_size, AgeBased(), 0)
        start = time.perf_counter()
        history = simulate(paper_size, AgeBased(), 1)
        seconds = time.perf_counter() - start
        served = history.participation.sum() / len(history)
        what = f"100 rounds, {served:.0f} UEs a round, all evaluated, {threads} thread(s)"
        table.add_row(what, f"{seconds:.2f} s")
    code = "from benchmarks.learning import first_result; first_result()"
    start = time.perf_counter()
    memory = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()[-1]
    table.add_row("first result of a cold process", f"{time.perf_counter() - start:.2f} s")
    table.add_row("its memory at most", f"{int(memory) / 1024:.0f} MB")
    return table


def first_result() -> None:
    """One round of W, then the most memory that this process has used (kilobytes)."""
    next(rounds(scenario(50, 1, 10), Random(), 0))
    status = Path("/proc/self/status").read_text(encoding="ascii")
    print(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))


def main() -> None:
    """Print the tables."""
    console = Console(width=110)
    console.print(throughput())
    for workload in WORKLOADS:
        console.print(split_of_a_round(workload))
    console.print(aggregations())
    console.print(whole_runs())


if __name__ == "__main__":
    main()
