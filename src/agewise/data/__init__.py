"""Data to learn from: data sets, tasks on them, and their partition over the UEs."""

from agewise.data.dataset import AllClasses, Dataset, DataSource, Pair, Parity, Samples, Task
from agewise.data.files import IdxFolder, NpzFile, Table
from agewise.data.partition import (
    ByWriter,
    Data,
    Dirichlet,
    Iid,
    Partition,
    PartitionScheme,
    Shards,
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
    "FashionMnist",
    "Femnist",
    "IdxFolder",
    "Iid",
    "Mnist",
    "NpzFile",
    "Pair",
    "Parity",
    "Partition",
    "PartitionScheme",
    "Samples",
    "Shards",
    "Synthetic",
    "Table",
    "Task",
]
