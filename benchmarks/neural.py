"""How fast PyTorch modules learn here, beside a plain PyTorch loop: ``make bench``.

N3: LeNet-5, 10 of 100 UEs with 600 MNIST samples a round, 20 steps of 32 samples. N2: the CNN of
McMahan et al. (2017), 60 steps of 10. The plain loop is what one writes by hand: a copy of the
module and an optimiser for every UE, one PyTorch thread. Both evaluate 10,000 images every tenth
round; a round costs its training and a tenth of an evaluation. Contestants take turns in one
process, and the medians of turns are compared.
"""

import copy
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from agewise import Streams
from agewise.data import divide, mnist
from agewise.extras import require
from agewise.learn import make_learner, set_threads
from agewise.learn.base import Learner
from benchmarks.learning import CHOSEN, EVERY, UES, scenario

torch = require("torch", "torch")

STEP = 0.05
#: The module, local steps, samples of a step, and rounds that are timed in a turn.
WORKLOADS = {"N3": ("lenet5", 20, 32, 2), "N2": ("mcmahan-cnn", 60, 10, 1)}
TURNS = 5


def learner_of(name: str, steps: int, batch: int) -> Learner:
    """The workload as Agewise learns it."""
    model = {"kind": "torch", "name": name, "loss": "cross-entropy", "optimiser": "SGD"}
    changes = {"learn.model": model, "learn.penalty": "none", "learn.step_size": STEP}
    described = scenario(steps, batch, 1).with_(**changes)
    data = mnist()
    partition = divide(data.train.labels, described.data, UES, Streams(0))
    return make_learner(data, partition, described.learn)


class PlainTorch:
    """Federated averaging as a page of PyTorch."""

    def __init__(self, name: str, steps: int, batch: int) -> None:
        data, self.steps, self.batch = mnist(), steps, batch
        values = (data.train.values(), data.test.values())
        self.x, self.test_x = (torch.from_numpy(x).view(-1, 1, 28, 28) for x in values)
        self.y, self.test_y = (torch.from_numpy(part.labels) for part in (data.train, data.test))
        torch.manual_seed(0)
        self.rng = np.random.default_rng(0)
        self.parts = torch.randperm(len(self.y)).view(UES, -1)
        self.model = plain_module(name)
        self.loss = torch.nn.CrossEntropyLoss()

    def train(self) -> None:
        """One round: ten UEs, and the mean of their models."""
        trained = []
        for ue in self.rng.choice(UES, CHOSEN, replace=False):
            local = copy.deepcopy(self.model)
            optimiser = torch.optim.SGD(local.parameters(), lr=STEP)
            for _ in range(self.steps):
                chosen = self.parts[ue][torch.randint(self.parts.shape[1], (self.batch,))]
                optimiser.zero_grad()
                self.loss(local(self.x[chosen]), self.y[chosen]).backward()
                optimiser.step()
            trained.append(local.state_dict())
        mean = {key: torch.stack([one[key] for one in trained]).mean(0) for key in trained[0]}
        self.model.load_state_dict(mean)

    def evaluate(self) -> float:
        """Accuracy on the test images, a thousand at a time."""
        with torch.no_grad():
            right = [
                (self.model(x).argmax(1) == y).sum().item()
                for x, y in zip(self.test_x.split(1000), self.test_y.split(1000), strict=True)
            ]
        return float(sum(right)) / len(self.test_y)


def plain_module(name: str) -> Any:
    """The same networks as they are usually written: ReLU, then pooling."""
    nn = torch.nn
    if name == "lenet5":
        return nn.Sequential(
            nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
        )  # fmt: skip
    return nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 10),
    )  # fmt: skip


class Federation:
    """Federated averaging with the learner of Agewise, in so many threads."""

    def __init__(self, learner: Learner, threads: int) -> None:
        self.learner, self.threads, self.t = learner, threads, 0
        self.model = learner.init(Streams(0))

    def train(self) -> None:
        """One round."""
        set_threads(self.threads)
        chosen = np.sort(np.random.default_rng(self.t).choice(UES, CHOSEN, replace=False))
        trained = self.learner.train(self.model, chosen, self.t, Streams(0))
        self.model, self.t = trained.mean(0, dtype=np.float32), self.t + 1

    def evaluate(self) -> float:
        """Accuracy on the test images."""
        set_threads(self.threads)
        return self.learner.evaluate(self.model).accuracy


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """CPU and wall milliseconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return (time.process_time() - cpu) * 1e3, (time.perf_counter() - wall) * 1e3


def measure(workload: str) -> Table:
    """CPU and wall time of a round by contestant, and how many times the plain loop's rate."""
    name, steps, batch, count = WORKLOADS[workload]
    torch.set_num_threads(1)
    learner = learner_of(name, steps, batch)
    racing: dict[str, Any] = {
        "plain PyTorch": PlainTorch(name, steps, batch),
        "agewise, 1 thread": Federation(learner, 1),
        "agewise, 2 threads": Federation(learner, 2),
    }
    spent: dict[str, list[tuple[float, float]]] = {who: [] for who in racing}
    accuracy = {}
    for turn in range(-1, TURNS):
        for who, one in racing.items():
            rounds = [timed(one.train) for _ in range(count)]
            tested = timed(one.evaluate)
            if turn >= 0:
                whole = [sum(each) / count for each in zip(*rounds, strict=True)]
                spent[who].append((whole[0] + tested[0] / EVERY, whole[1] + tested[1] / EVERY))
        accuracy = {who: one.evaluate() for who, one in racing.items()}
    table = Table(title=f"{workload}: {name}, {steps} steps of {batch}, medians of {TURNS} turns")
    for heading in ("", "CPU ms", "wall ms", "per CPU second", "per second", "accuracy"):
        table.add_column(heading, justify="right")
    plain = [statistics.median(each) for each in zip(*spent["plain PyTorch"], strict=True)]
    for who, turns in spent.items():
        cpu, wall = (statistics.median(each) for each in zip(*turns, strict=True))
        table.add_row(
            who, f"{cpu:.0f}", f"{wall:.0f}", f"{plain[0] / cpu:.2f}x", f"{plain[1] / wall:.2f}x",
            f"{accuracy[who]:.3f}",
        )  # fmt: skip
    return table


def main() -> None:
    """Print the tables."""
    for workload in WORKLOADS:
        Console(width=110).print(measure(workload))


if __name__ == "__main__":
    main()
