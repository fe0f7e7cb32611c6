"""How fast the compiled multilayer perceptron learns: ``make bench``.

Workload N1: an MLP of 784-200-200-10 on MNIST, 100 UEs of 600 samples, 10 UEs a round, 60 steps of
10 samples, evaluation on 10,000 images every 10 rounds. Agewise includes scheduling, records and
evaluation; beside it runs the same learning as a plain loop of NumPy with BLAS, without them.
"""

import itertools

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from agewise.data import Mnist, Samples
from agewise.scenario import Scenario
from benchmarks.learning import CHOSEN, MANY, UES, loop_of, scenario, stream_of
from benchmarks.turns import Race, Round, scaling

STEPS, BATCH, HIDDEN, STEP = 60, 10, (200, 200), 0.05


def workload() -> Scenario:
    """N1 as a scenario."""
    return scenario(STEPS, BATCH, MANY).with_(
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


def contestants(seed: int, threads: int) -> dict[str, Round]:
    """One round of each; what it returns is the accuracy where the round has been evaluated.

    NumPy gets one thread only: matrices of ten rows are too small for several.
    """
    racing = {"agewise": stream_of(workload(), seed)}
    if threads == 1:
        data = Mnist().load()
        plain = PlainPerceptron(data.train, data.test)
        racing["NumPy with BLAS"] = loop_of(plain.round, plain.accuracy)
    return racing


def main() -> None:
    """Print the table."""
    Console(width=110).print(scaling(Race(contestants), "N1, MLP 784-200-200-10"))


if __name__ == "__main__":
    main()
