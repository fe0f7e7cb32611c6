"""The data set and the partition that a scenario describes."""

import functools
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agewise import scenario
from agewise.data import partition as schemes
from agewise.data.builtin import gaussian_mixture, mnist
from agewise.data.dataset import Dataset, pair, parity
from agewise.data.files import IDX_PARTS, idx_files, read_idx_folder, read_npz, read_table
from agewise.data.partition import Partition
from agewise.data.published import (
    CIFAR_PARTS,
    FEMNIST_PARTS,
    cifar_files,
    read_cifar_10,
    read_fashion_mnist,
    read_femnist,
)
from agewise.files import fingerprint
from agewise.random import Streams


def load(data: scenario.Data) -> Dataset:
    """The data set of the scenario, with the labels of its task."""
    dataset = _read(data)
    match data.task:
        case scenario.Parity():
            return parity(dataset)
        case scenario.Pair(classes=(first, second)):
            return pair(dataset, first, second)
        case _:
            return dataset


def load_once(data: scenario.Data) -> Dataset:
    """`load`, which reads only once as long as the files stay the same."""
    return _loaded(data, digests_of(data))


def digests_of(data: scenario.Data) -> tuple[str | None, ...]:
    """The digests of the files that samples are from; ``None`` for one that is not there."""
    return tuple(map(fingerprint, files_of(data).values()))


@functools.lru_cache(maxsize=2)
def _loaded(data: scenario.Data, _: tuple[str | None, ...]) -> Dataset:
    return load(data)


def files_of(data: scenario.Data) -> dict[str, Path]:
    """The files (or folders of JSON files) that the data set is read from, by path.

    Parts of a folder are named by what they hold.
    """
    match data.dataset:
        case scenario.IdxFolder(path=path) | scenario.FashionMnist(path=path):
            found = idx_files(Path(path))
            return {f"{path}/{' '.join(part)}": file for part, file in found.items()}
        case scenario.Cifar10(path=path):
            return {f"{path}/{name}": file for name, file in cifar_files(Path(path)).items()}
        case scenario.Femnist(path=path):
            return {f"{path}/{part}": Path(path) / part for part in FEMNIST_PARTS}
        case scenario.NpzFile(path=path) | scenario.Table(path=path):
            return {path: Path(path)}
        case _:
            return {}


def names_of(data: scenario.Data) -> list[str]:
    """What `files_of` calls the files, whether they are there or not."""
    match data.dataset:
        case scenario.IdxFolder(path=path) | scenario.FashionMnist(path=path):
            return [f"{path}/{' '.join(part)}" for part in IDX_PARTS]
        case scenario.Cifar10(path=path):
            return [f"{path}/{name}" for part in CIFAR_PARTS.values() for name in part]
        case scenario.Femnist(path=path):
            return [f"{path}/{part}" for part in FEMNIST_PARTS]
        case scenario.NpzFile(path=path) | scenario.Table(path=path):
            return [path]
        case _:
            return []


def _read(data: scenario.Data) -> Dataset:
    match data.dataset:
        case scenario.Mnist():
            return mnist()
        case scenario.Synthetic():
            # One fixed problem, like the others: it does not vary with the seed.
            return gaussian_mixture(10, 20, 5_000, 1_000, 0.25, np.random.default_rng(0))
        case scenario.IdxFolder(path=path):
            return read_idx_folder(Path(path))
        case scenario.FashionMnist(path=path):
            return read_fashion_mnist(Path(path))
        case scenario.Cifar10(path=path):
            return read_cifar_10(Path(path))
        case scenario.Femnist(path=path):
            return read_femnist(Path(path))
        case scenario.NpzFile(path=path, scaling=scaling):
            return read_npz(Path(path), pixels=scaling == "pixels")
        case scenario.Table() as table:
            return read_table(
                Path(table.path),
                table.label_column,
                table.test_fraction,
                test_first=table.test_rows == "first",
                shuffle=table.shuffle,
                pixels=table.scaling == "pixels",
            )
        case scenario.Clients():
            raise ValueError(
                "data.dataset is clients: the samples of a live federation stay there, and a "
                "simulation needs others: set data.dataset to mnist, synthetic or a file"
            )


def divide(
    labels: NDArray[np.int64],
    data: scenario.Data,
    ues: int,
    streams: Streams,
    writers: NDArray[np.int64] | None = None,
) -> Partition:
    """The partition of the scenario: which UE has which of the training samples.

    ``writers[sample]`` are those of a data set that knows them.
    """
    rng = streams.partition()
    match data.sizes:
        case scenario.LogNormalSizes(sigma=sigma):
            shares = schemes.log_normal_shares(ues, sigma, rng)
        case _:
            shares = schemes.equal_shares(ues)
    match data.partition:
        case scenario.Shards(classes_per_ue=classes):
            return schemes.shards(labels, shares, classes, rng)
        case scenario.Dirichlet(concentration=concentration):
            return schemes.dirichlet(labels, shares, concentration, rng)
        case scenario.ByWriter(writers_per_ue=count):
            if writers is None:
                raise ValueError("data.partition = by-writer: the samples have no writers")
            return schemes.by_writer(writers, ues, count, rng)
        case _:
            return schemes.iid(labels, shares, rng)
