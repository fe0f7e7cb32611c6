"""How fast federated learning over the scheduled channel runs: ``make bench``.

Workload W: linear SVM on MNIST, 100 UEs of 600 samples, 10 UEs a round, 50 steps of one sample,
evaluation on 10,000 images every 10 rounds. W32: 20 steps of 32 samples. Agewise includes
scheduling, records and evaluation; the plain loop has neither scheduling nor records.
"""

import itertools
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from agewise import learn
from agewise.data import mnist
from agewise.policies import AgeBased, Random
from agewise.scenario import Scenario
from agewise.simulate import rounds, simulate
from benchmarks.plain_loop import PlainLoop

UES, CHOSEN, EVERY, STEP, SHRINKAGE = 100, 10, 10, 0.01, 1e-4
WORKLOADS = {"W": (50, 1), "W32": (20, 32)}


def scenario(steps: int, batch: int, count: int, **run: Any) -> Scenario:
    """The workload as a scenario: ten subchannels and no threshold schedule ten UEs a round."""
    return Scenario.model_validate(
        {
            "cell": {"ues": UES, "subchannels": CHOSEN, "radius_m": 100.0},
            "channel": {
                "path_loss_exponent": 3.5, "reference_distance_m": 1.0, "edge_snr_db": 10.0,
                "rate_threshold": 0.0,
            },
            "data": {"dataset": "mnist", "task": "all", "partition": "iid", "sizes": "equal"},
            "learn": {
                "loss": "hinge", "penalty": "l2", "penalty_weight": SHRINKAGE,
                "local_steps": steps, "batch_size": batch, "step_size": STEP, "step_decay": 0.0,
                "initial_deviation": 0.01,
            },
            "run": {"rounds": count, "evaluate_every": EVERY, "age_alpha": 0.5} | run,
        }
    )  # fmt: skip


def blocks_in_turn(
    contestants: dict[str, Callable[[], object]], seconds: float, block: int
) -> dict[str, list[float]]:
    """Seconds a round of blocks of rounds, the contestants taking turns."""
    took: dict[str, list[float]] = {name: [] for name in contestants}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, one_round in contestants.items():
            time.sleep(0.02)  # OpenMP's threads spin on for a while after a parallel loop
            start = time.perf_counter()
            for _ in range(block):
                one_round()
            took[name].append((time.perf_counter() - start) / block)
    return took


def against_plain_loop() -> Table:
    """Rounds a second of Agewise and of the plain Numba loop, block by block in one run."""
    table = Table(title="Rounds a second, medians (best) of blocks in turn")
    for heading in ("workload", "Agewise", "plain Numba loop", "ratio", "accuracies"):
        table.add_column(heading, justify="right")
    data = mnist()
    parts = [(part.values(), part.labels) for part in (data.train, data.test)]
    for name, (steps, batch) in WORKLOADS.items():
        stream = itertools.chain.from_iterable(
            rounds(scenario(steps, batch, 1_000_000), Random(), seed) for seed in itertools.count()
        )
        plain = PlainLoop(parts[0], parts[1], UES, CHOSEN, steps, batch, STEP, SHRINKAGE)
        accuracy = {"agewise": 0.0, "plain": 0.0}
        done = itertools.count(1)

        def ours(stream: Any = stream, accuracy: dict[str, float] = accuracy) -> None:
            record = next(stream)
            accuracy["agewise"] = record.accuracy or accuracy["agewise"]

        def theirs(
            plain: Any = plain, accuracy: dict[str, float] = accuracy, done: Any = done
        ) -> None:
            plain.round()
            if next(done) % EVERY == 0:
                accuracy["plain"] = plain.accuracy()

        for _ in range(2 * EVERY):
            ours()
            theirs()
        took = blocks_in_turn({"agewise": ours, "plain": theirs}, 8.0, 5 * EVERY)
        ratio = statistics.median(
            b / a for a, b in zip(took["agewise"], took["plain"], strict=True)
        )
        table.add_row(
            name,
            *(
                f"{1 / statistics.median(took[who]):,.0f} ({1 / min(took[who]):,.0f})"
                for who in ("agewise", "plain")
            ),
            f"{ratio:.2f}x",
            " / ".join(f"{value:.3f}" for value in accuracy.values()),
        )
    return table


def split_of_a_round() -> Table:
    """Where the time of a round goes, by the functions that Algorithm 3 calls."""
    table = Table(title="Time of a round (W), microseconds")
    for heading in ("part", "mean", "share"):
        table.add_column(heading, justify="right")
    spent: dict[str, float] = defaultdict(float)

    def timed(owner: Any, attribute: str, label: str) -> Callable[[], None]:
        original = getattr(owner, attribute)

        def wrapper(*arguments: Any, **options: Any) -> Any:
            start = time.perf_counter()
            try:
                return original(*arguments, **options)
            finally:
                spent[label] += time.perf_counter() - start

        setattr(owner, attribute, wrapper)
        return lambda: setattr(owner, attribute, original)

    from agewise.radio import CellChannel

    count = 1000
    restore = [
        timed(learn.LinearLearner, "train", "local SGD of 10 UEs"),
        timed(learn.LinearLearner, "evaluate", "evaluation, every 10th round"),
        timed(learn, "average", "average and diversity"),
        timed(CellChannel, "gains", "channel"),
        timed(Random, "schedule", "schedule"),
    ]
    stream = rounds(scenario(50, 1, count + 20), Random(), 0)
    for _ in range(20):
        next(stream)
    spent.clear()
    start = time.perf_counter()
    for _ in range(count):
        next(stream)
    whole = time.perf_counter() - start
    for undo in restore:
        undo()
    spent["checks, proof, records, the rest"] = whole - sum(spent.values())
    for label, seconds in sorted(spent.items(), key=lambda item: -item[1]):
        table.add_row(label, f"{seconds / count * 1e6:.0f}", f"{seconds / whole:.0%}")
    return table


def whole_runs() -> Table:
    """A run of the paper's size, and a cold process."""
    table = Table(title="Whole runs")
    for heading in ("what", "result"):
        table.add_column(heading, justify="right")
    paper = scenario(50, 1, 100, evaluate_every=1).model_dump(exclude_none=True)
    paper["cell"]["subchannels"] = 20
    paper["channel"]["rate_threshold"] = 4.0
    paper_size = Scenario.model_validate(paper)
    simulate(paper_size, AgeBased(), 0)
    start = time.perf_counter()
    history = simulate(paper_size, AgeBased(), 1)
    seconds = time.perf_counter() - start
    served = history.participation.sum() / len(history)
    table.add_row(f"100 rounds, {served:.0f} UEs a round, all evaluated", f"{seconds:.2f} s")
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
    for table in (against_plain_loop(), split_of_a_round(), whole_runs()):
        console.print(table)


if __name__ == "__main__":
    main()
