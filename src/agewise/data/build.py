"""The data set and the partition that a scenario describes."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agewise.data import partition as schemes
from agewise.data import tasks
from agewise.data.dataset import Dataset
from agewise.data.files import read_dataset
from agewise.data.mnist import mnist
from agewise.data.partition import Partition
from agewise.data.synthetic import gaussian_mixture
from agewise.random import Streams

if TYPE_CHECKING:  # pydantic takes a while to import
    from agewise.scenario import Data

#: The synthetic data set is one fixed problem, like the others: it does not vary with the seed.
_SYNTHETIC = {"classes": 10, "features": 20, "train": 5_000, "test": 1_000, "spread": 0.25}


def load(data: "Data") -> Dataset:
    """The data set of the scenario, with the labels of its task."""
    if data.dataset == "mnist":
        dataset = mnist()
    elif data.dataset == "synthetic":
        dataset = gaussian_mixture(**_SYNTHETIC, rng=np.random.default_rng(0))  # type: ignore[arg-type]
    else:
        assert data.path is not None  # noqa: S101 (the scenario's validator saw to it)
        dataset = read_dataset(Path(data.path), data.label_column, data.test_fraction)
    if data.task == "parity":
        return tasks.parity(dataset)
    if data.task == "pair":
        assert data.pair is not None  # noqa: S101 (the scenario's validator saw to it)
        return tasks.pair(dataset, *data.pair)
    return dataset


def divide(labels: NDArray[np.int64], data: "Data", ues: int, streams: Streams) -> Partition:
    """The partition of the scenario: which UE has which of the training samples."""
    rng = streams.partition()
    if data.sizes == "log-normal":
        assert data.size_sigma is not None  # noqa: S101 (the scenario's validator saw to it)
        shares = schemes.log_normal_shares(ues, data.size_sigma, rng)
    else:
        shares = schemes.equal_shares(ues)
    if data.partition == "shards":
        assert data.classes_per_ue is not None  # noqa: S101
        return schemes.shards(labels, shares, data.classes_per_ue, rng)
    if data.partition == "dirichlet":
        assert data.concentration is not None  # noqa: S101
        return schemes.dirichlet(labels, shares, data.concentration, rng)
    return schemes.iid(labels, shares, rng)
