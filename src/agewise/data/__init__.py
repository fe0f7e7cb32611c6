"""Data to learn from: data sets, tasks on them, and their partition over the UEs."""

from agewise.data.dataset import AllClasses, Dataset, DataSource, Pair, Parity, Samples, Task
from agewise.data.files import IdxFolder, NpzFile, Table
from agewise.data.partition import (
    ByWriter,
    Data,
    Dirichlet,
    EqualSizes,
    Iid,
    LogNormalSizes,
    NaturalSizes,
    Partition,
    PartitionScheme,
    Shards,
    Sizes,
)
from agewise.data.published import Cifar10, Clients, FashionMnist, Femnist, Mnist, Synthetic

__all__ = [
    "AllClasses",
    "ByWriter",
    "Cifar10",
    "Clients",
    "Data",
    "DataSource",
    "Dataset",
    "Dirichlet",
    "EqualSizes",
    "FashionMnist",
    "Femnist",
    "IdxFolder",
    "Iid",
    "LogNormalSizes",
    "Mnist",
    "NaturalSizes",
    "NpzFile",
    "Pair",
    "Parity",
    "Partition",
    "PartitionScheme",
    "Samples",
    "Shards",
    "Sizes",
    "Synthetic",
    "Table",
    "Task",
]
