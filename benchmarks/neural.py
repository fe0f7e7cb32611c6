"""How fast PyTorch modules learn here, beside a plain PyTorch loop: ``make bench``.

N3: LeNet-5, 10 of 100 UEs with 600 MNIST samples a round, 20 steps of 32 samples. N2: the CNN of
McMahan et al. (2017), 60 steps of 10. ``python -m benchmarks.neural N2`` measures one of them.
Agewise includes scheduling and records. The plain loop is what one writes by hand: a copy of the
module and an optimiser for every UE. Both evaluate 10,000 images every tenth round.
"""

import copy
import functools
import sys
from typing import Any

import numpy as np
from rich.console import Console

from agewise.data import Mnist
from agewise.dependencies import require
from agewise.scenario import Scenario
from benchmarks.learning import CHOSEN, MANY, UES, loop_of, scenario, stream_of
from benchmarks.turns import CORES, Race, Round, scaling

torch = require("torch", "torch")

STEP = 0.05
#: The module, local steps, samples of a step, and rounds up to an evaluation.
WORKLOADS = {"N3": ("lenet5", 20, 32, 4), "N2": ("mcmahan-cnn", 60, 10, 2)}
#: N2 is reported for one core only: a round takes seconds.
TURNS, SIZES = {"N3": 5, "N2": 1}, {"N3": CORES, "N2": CORES[:1]}


def workload(name: str, steps: int, batch: int, block: int) -> Scenario:
    """The workload as a scenario that evaluates the last round of each block."""
    model = {"kind": "torch", "name": name, "loss": "cross-entropy", "optimiser": "SGD"}
    return scenario(steps, batch, MANY).with_(
        **{
            "learn.model": model,
            "learn.penalty": "none",
            "learn.step_size": STEP,
            "run.evaluate_every": block,
        }
    )


class PlainTorch:
    """Federated averaging as a page of PyTorch."""

    def __init__(self, name: str, steps: int, batch: int) -> None:
        data, self.steps, self.batch = Mnist().load(), steps, batch
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


def contestants(which: str, seed: int, threads: int) -> dict[str, Round]:
    """One round of each; what it returns is the accuracy where the round has been evaluated.

    Two threads are for Agewise's UEs side by side; inside a small module PyTorch wastes them.
    """
    torch.set_num_threads(1)
    name, steps, batch, block = WORKLOADS[which]
    racing = {"agewise": stream_of(workload(name, steps, batch, block), seed)}
    if threads == 1:
        plain = PlainTorch(name, steps, batch)
        racing["plain PyTorch"] = loop_of(plain.train, plain.evaluate, block)
    return racing


def main() -> None:
    """Print the tables of the workloads that are named, or of all."""
    for which in sys.argv[1:] or WORKLOADS:
        name, steps, batch, block = WORKLOADS[which]
        race = Race(functools.partial(contestants, which), block, TURNS[which], 0.0)
        title = f"{which}, {name}, {steps} steps of {batch}"
        Console(width=110).print(scaling(race, title, SIZES[which]))


if __name__ == "__main__":
    main()
