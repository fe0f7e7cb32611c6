"""A network with one hidden layer, in PyTorch, on the same samples as the linear model."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from agewise.dependencies import require
from agewise.random import Streams
from agewise.scenario import Scenario

from .task import Arrays

torch = require("torch", "torch")

_HIDDEN = 500  # 784-500-10: 1.6 MB


class Network:
    """`Model` with PyTorch; one thread, so that many clients can share a machine."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        torch.set_num_threads(1)
        self._settings, self._seed = scenario.learn, seed
        self._data = scenario.data.load()
        streams = Streams(seed)
        self._partition = scenario.data.divide(self._data, scenario.device_table(streams), streams)

    def initial(self) -> Arrays:
        """PyTorch's own initial weights, by the seed."""
        torch.manual_seed(self._seed)
        return _arrays(self._made())

    def train(self, arrays: Arrays, client: int, t: int) -> Arrays:
        """Steps of stochastic gradient descent on batches drawn by client and round."""
        network, settings = self._made(arrays), self._settings
        steps = torch.optim.SGD(network.parameters(), lr=settings.step_size)
        own = self._partition.samples_of(client)
        drawn = np.random.default_rng([self._seed, client, t])
        for _ in range(settings.local_steps):
            batch = drawn.choice(own, settings.batch_size)
            steps.zero_grad()
            self._mean_loss(network, batch).backward()
            steps.step()
        return _arrays(network)

    def loss(self, arrays: Arrays, client: int) -> float:
        """The mean loss on the samples of a client."""
        with torch.no_grad():
            own = self._partition.samples_of(client)
            return float(self._mean_loss(self._made(arrays), own))

    def evaluate(self, arrays: Arrays) -> tuple[float, float]:
        """Accuracy and loss on the test samples."""
        test = self._data.test
        with torch.no_grad():
            labels = torch.as_tensor(np.asarray(test.labels))
            scores = self._made(arrays)(torch.as_tensor(np.asarray(test.features, np.float32)))
            accuracy = (scores.argmax(dim=1) == labels).float().mean()
            return float(accuracy), float(torch.nn.functional.cross_entropy(scores, labels))

    def size(self, client: int) -> int:
        """How many samples a client has."""
        return int(self._partition.sizes[client])

    def _made(self, arrays: Arrays | None = None) -> Any:
        features = self._data.train.features.shape[1]
        network = torch.nn.Sequential(
            torch.nn.Linear(features, _HIDDEN),
            torch.nn.ReLU(),
            torch.nn.Linear(_HIDDEN, self._data.class_count),
        )
        if arrays is not None:
            network.load_state_dict(
                {name: torch.tensor(arrays[name]) for name in network.state_dict()}
            )
        return network

    def _mean_loss(self, network: Any, rows: NDArray[np.int64]) -> Any:
        train = self._data.train
        features = torch.as_tensor(np.asarray(train.features[rows], np.float32))
        labels = torch.as_tensor(np.asarray(train.labels[rows]))
        return torch.nn.functional.cross_entropy(network(features), labels)


def _arrays(network: Any) -> Arrays:
    return {name: value.detach().numpy() for name, value in network.state_dict().items()}
