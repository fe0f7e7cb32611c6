"""How fast the compiled multilayer perceptron learns: ``make bench``.

Workload N1: an MLP of 784-200-200-10 on MNIST, 100 UEs of 600 samples, 10 UEs a round, 60 steps of
10 samples, evaluation on 10,000 images every 10 rounds. Agewise includes scheduling, records and
evaluation; beside it runs the same learning as a plain loop of NumPy with BLAS, without them.
"""

import itertools
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from agewise.data import Samples, mnist
from agewise.learn import set_threads
from agewise.policies import Random
from agewise.scenario import Scenario
from agewise.simulation import rounds
from benchmarks.learning import CHOSEN, EVERY, UES, scenario

STEPS, BATCH, HIDDEN, STEP = 60, 10, (200, 200), 0.05
TURNS, TURN_S = 5, 1.5


def workload() -> Scenario:
    """N1 as a scenario, with more rounds than anyone waits for."""
    return scenario(STEPS, BATCH, 1_000_000).with_(
        **{
            "learn.model": {"kind": "mlp", "hidden_widths": list(HIDDEN)},
            "learn.penalty": "none",
            "learn.step_size": STEP,
        }
    )


class PlainPerceptron:
    """Federated averaging of the same model, as a researcher would write it with NumPy."""

    def __init__(self, train: Samples, test: Samples) -> None:
        self.x, self.labels = train.values(), train.labels
        self.test = test.values(), test.labels
        self.rng = np.random.default_rng(1)
        self.layers = []
        for before, behind in itertools.pairwise((self.x.shape[1], *HIDDEN, 10)):
            bound = 1 / np.sqrt(before)
            drawn = self.rng.uniform(-bound, bound, (before + 1, behind)).astype(np.float32)
            self.layers.append((drawn[:-1].copy(), drawn[-1].copy()))

    def round(self) -> None:
        """Draw clients, train each of them, average."""
        chosen = self.rng.choice(UES, CHOSEN, replace=False)
        models = [self._train(client) for client in chosen]
        self.layers = [
            (np.mean([w for w, _ in layer], axis=0), np.mean([b for _, b in layer], axis=0))
            for layer in zip(*models, strict=True)
        ]

    def _train(self, client: int) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
        size = len(self.labels) // UES
        layers = [(weights.copy(), bias.copy()) for weights, bias in self.layers]
        for rows in client * size + self.rng.integers(0, size, (STEPS, BATCH)):
            units = [self.x[rows]]
            for weights, bias in layers[:-1]:
                units.append(np.maximum(units[-1] @ weights + bias, 0))
            scores = units[-1] @ layers[-1][0] + layers[-1][1]
            shares = np.exp(scores - scores.max(axis=1, keepdims=True))
            slope = shares / shares.sum(axis=1, keepdims=True)
            slope[np.arange(BATCH), self.labels[rows]] -= 1
            slope *= np.float32(STEP / BATCH)
            for (weights, bias), before in zip(reversed(layers), reversed(units), strict=True):
                behind, slope = slope, (slope @ weights.T) * (before > 0)
                weights -= before.T @ behind
                bias -= behind.sum(axis=0)
        return layers

    def accuracy(self) -> float:
        """Test accuracy of the model as it is."""
        units, labels = self.test
        for weights, bias in self.layers[:-1]:
            units = np.maximum(units @ weights + bias, 0)
        scores = units @ self.layers[-1][0] + self.layers[-1][1]
        return float((scores.argmax(axis=1) == labels).mean())


class Turn(NamedTuple):
    """What one process did in one turn."""

    who: str
    rounds: int
    wall_s: float
    cpu_s: float
    accuracy: float


def contestants(seed: int) -> dict[str, Callable[[], float]]:
    """One round of each; what it returns is the accuracy where the round has been evaluated."""
    stream = rounds(workload(), Random(), seed)
    data = mnist()
    plain, done = PlainPerceptron(data.train, data.test), itertools.count(1)

    def plain_round() -> float:
        plain.round()
        return plain.accuracy() if next(done) % EVERY == 0 else 0.0

    return {"agewise": lambda: next(stream).accuracy or 0.0, "NumPy with BLAS": plain_round}


def take_turns(seed: int, threads: int, barrier: Any, results: Any) -> None:
    """One process: all processes run the same contestant at the same time."""
    set_threads(threads)
    racing = contestants(seed)
    for one_round in racing.values():
        for _ in range(EVERY):
            one_round()
    turns = []
    for _ in range(TURNS):
        for who, one_round in racing.items():
            barrier.wait()
            count, accuracy = 0, 0.0
            wall, cpu = time.perf_counter(), time.process_time()
            while time.perf_counter() - wall < TURN_S:
                for _ in range(EVERY):
                    accuracy = one_round() or accuracy
                count += EVERY
            spent = time.perf_counter() - wall, time.process_time() - cpu
            turns.append(Turn(who, count, *spent, accuracy))
    results.put(turns)


def race(processes: int, threads: int) -> list[Turn]:
    """The turns of so many processes side by side, with so many threads each."""
    os.environ["OPENBLAS_NUM_THREADS"] = str(threads)  # for the processes that are started below
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(processes), context.Queue()
    workers = [
        context.Process(target=take_turns, args=(seed, threads, barrier, results))
        for seed in range(processes)
    ]
    for worker in workers:
        worker.start()
    turns = [turn for _ in workers for turn in results.get()]
    for worker in workers:
        worker.join()
    return turns


def main() -> None:
    """Print the table."""
    table = Table(title="N1, MLP 784-200-200-10: medians of turns")
    for heading in ("", "", "CPU ms a round", "rounds a second", "of one core", "accuracy"):
        table.add_column(heading, justify="right")
    one_core: dict[str, float] = {}
    for processes, threads in ((1, 1), (2, 1), (1, 2)):
        turns = race(processes, threads)
        label = (
            f"{processes} process{'es' * (processes > 1)} of {threads} thread{'s' * (threads > 1)}"
        )
        for who in ("agewise", "NumPy with BLAS"):
            own = [turn for turn in turns if turn.who == who]
            cost = statistics.median(turn.cpu_s / turn.rounds for turn in own) * 1e3
            rate = processes * statistics.median(turn.rounds / turn.wall_s for turn in own)
            one_core.setdefault(who, rate)
            table.add_row(
                label if who == "agewise" else "", who, f"{cost:.1f}", f"{rate:.1f}",
                f"{rate / one_core[who]:.2f}x", f"{own[-1].accuracy:.3f}",
            )  # fmt: skip
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
