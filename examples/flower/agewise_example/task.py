"""What is learned: the samples of each client, and a model on them."""

from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from agewise import Scenario
from agewise.learn import Learner
from agewise.random import Streams
from agewise.simulation import samples_of

Arrays = dict[str, NDArray[np.float32]]
#: The array that makes an update as large as it should be.
PADDING = "padding"

#: Local learning, and samples that are unlike across clients: each has digits of two kinds.
_CHANGES = {
    "data.partition.classes_per_ue": 2,
    "learn.model.loss": "multinomial",
    "learn.local_steps": 20,
    "learn.batch_size": 20,
    "learn.step_size": 0.05,
}


class Model(Protocol):
    """What clients and the server need of a model."""

    def initial(self) -> Arrays:
        """The model before the first round."""

    def train(self, arrays: Arrays, client: int, t: int) -> Arrays:
        """The model after the local steps of a client in round ``t`` (from 0)."""

    def loss(self, arrays: Arrays, client: int) -> float:
        """The mean loss of the model on the samples of a client."""

    def evaluate(self, arrays: Arrays) -> tuple[float, float]:
        """Accuracy and loss on the test samples."""

    def size(self, client: int) -> int:
        """How many samples a client has."""


class Linear:
    """The linear learner of the simulator, on one flat vector."""

    def __init__(self, learner: Learner, streams: Streams) -> None:
        self._learner, self._streams = learner, streams

    def initial(self) -> Arrays:
        """A small random model."""
        return {"model": self._learner.init(self._streams)}

    def train(self, arrays: Arrays, client: int, t: int) -> Arrays:
        """Local steps on samples that are drawn by client and round."""
        (model,) = self._learner.train(arrays["model"], np.array([client]), t, self._streams)
        return {"model": model}

    def loss(self, arrays: Arrays, client: int) -> float:
        """The mean loss on the samples of a client."""
        return float(self._learner.losses(arrays["model"], np.array([client]))[0])

    def evaluate(self, arrays: Arrays) -> tuple[float, float]:
        """Accuracy and loss on the test samples."""
        found = self._learner.evaluate(arrays["model"])
        return float(found.accuracy), float(found.loss)

    def size(self, client: int) -> int:
        """How many samples a client has."""
        return int(self._learner.sizes[client])


def scenario(config: Mapping[str, Any]) -> Scenario:
    """The scenario of this run configuration: the samples, and a channel for modelled links."""
    cell = {"cell.ues": int(config["clients"]), "cell.subchannels": int(config["subchannels"])}
    return Scenario.preset("paper").with_(**_CHANGES, **cell)


def make_model(config: Mapping[str, Any]) -> Model:
    """The model that the run configuration names; in one process only once."""
    return _made(str(config["model"]), scenario(config), int(config["seed"]))


@lru_cache(maxsize=2)
def _made(kind: str, settings: Scenario, seed: int) -> Model:
    match kind:
        case "linear":
            streams = Streams(seed)
            return Linear(samples_of(settings, streams).learner, streams)
        case "torch":  # imported where it is asked for: it takes seconds, and not all have it
            module = import_module(f"{__package__}.network")
            made: Model = module.Network(settings, seed)
            return made
        case other:
            raise ValueError(f"model must be linear or torch, not {other!r}")


def padded(arrays: Arrays, update_bytes: int, client: int, t: int) -> Arrays:
    """The arrays, with random numbers that bring them to this number of bytes.

    They differ from update to update: what the SuperLink has already, nodes do not send again.
    """
    missing = update_bytes - sum(array.nbytes for array in arrays.values())
    if missing <= 0:
        return arrays
    noise = np.random.default_rng([client + 1, t + 1]).random(missing // 4, np.float32)
    return {**arrays, PADDING: noise}
