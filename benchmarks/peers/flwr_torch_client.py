# mypy: ignore-errors
"""What a client of `peer_flwr` with a network does; imported once by each of Ray's workers."""

import torch

from benchmarks.peers import common, networks

WORKLOAD = common.chosen_workload()
torch.set_num_threads(1)
_features = torch.from_numpy(common.load("xtrain", mapped=True).copy())
_labels = torch.from_numpy(common.load("ytrain"))
_loss = networks.loss_class(WORKLOAD.model)()


def start():
    """The arrays of the initial model."""
    torch.manual_seed(1)
    return [each.numpy() for each in networks.network(WORKLOAD.model).state_dict().values()]


def with_arrays(arrays):
    """The network with these arrays."""
    module = networks.network(WORKLOAD.model)
    names = module.state_dict()
    module.load_state_dict(
        {name: torch.from_numpy(each) for name, each in zip(names, arrays, strict=True)}
    )
    return module


def accuracy(arrays, features, labels) -> float:
    """The share of rows that the network classifies rightly."""
    with torch.no_grad():
        found = with_arrays(arrays)(torch.from_numpy(features)).argmax(1).numpy()
    return float((found == labels).mean())


def train(arrays, client: int):
    """Local SGD of one client: the arrays of its model."""
    module = with_arrays(arrays)
    optimiser = torch.optim.SGD(module.parameters(), lr=WORKLOAD.step_size)
    first = common.rows_of(client).start
    for _ in range(WORKLOAD.steps):
        rows = first + torch.randint(common.SAMPLES, (WORKLOAD.batch,))
        optimiser.zero_grad()
        _loss(module(_features[rows]), _labels[rows]).backward()
        optimiser.step()
    return [each.numpy() for each in module.state_dict().values()]
