"""Data sets and partitions in one call, for tests."""

import numpy as np

from agewise.data import (
    Cifar10,
    Dataset,
    Dirichlet,
    FashionMnist,
    Femnist,
    IdxFolder,
    Iid,
    NpzFile,
    Samples,
    Shards,
    Table,
)
from agewise.learn import Updates, WeightedAverage


def idx_bytes(array):
    """An IDX file of bytes with these numbers."""
    header = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    return header + array.astype(np.uint8).tobytes()


def read_npz(path):
    return NpzFile(path=str(path)).load()


def read_table(path, label_column, test_fraction):
    return Table(path=str(path), label_column=label_column, test_fraction=test_fraction).load()


def read_idx_folder(path):
    return IdxFolder(path=str(path)).load()


def read_cifar_10(path):
    return Cifar10(path=str(path)).load()


def read_fashion_mnist(path):
    return FashionMnist(path=str(path)).load()


def read_femnist(path):
    return Femnist(path=str(path)).load()


def with_labels(labels):
    """Samples of which nothing but the labels matters."""
    samples = Samples(np.zeros((labels.size, 1), np.float32), labels.astype(np.int64))
    return Dataset("labels", samples, samples, tuple(map(str, range(int(labels.max()) + 1))))


def equal_shares(ues):
    return np.full(ues, 1 / ues)


def log_normal_shares(ues, sigma, rng):
    drawn = np.exp(sigma * rng.standard_normal(ues))
    return drawn / drawn.sum()


def iid(labels, shares, rng):
    return Iid().divide(with_labels(labels), shares, rng)


def shards(labels, shares, classes_per_ue, rng):
    return Shards(classes_per_ue=classes_per_ue).divide(with_labels(labels), shares, rng)


def dirichlet(labels, shares, concentration, rng):
    return Dirichlet(concentration=concentration).divide(with_labels(labels), shares, rng)


def average(models, sizes, start, factors=None):
    """The weighted average of ``models[i]``, or the sum by factors, and the diversity."""
    updates = Updates(start, models, np.arange(len(models)), factors)
    found = WeightedAverage().combine({}, updates, np.asarray(sizes))
    return found.params, found.diversity
