"""What is learned from: data sets, tasks on them, and their partition over the UEs."""

from agewise.data.build import divide, load
from agewise.data.dataset import Dataset, Samples
from agewise.data.files import read_dataset
from agewise.data.mnist import mnist
from agewise.data.partition import Partition, dirichlet, iid, shards
from agewise.data.synthetic import gaussian_mixture
from agewise.data.tasks import pair, parity

__all__ = [
    "Dataset",
    "Partition",
    "Samples",
    "dirichlet",
    "divide",
    "gaussian_mixture",
    "iid",
    "load",
    "mnist",
    "pair",
    "parity",
    "read_dataset",
    "shards",
]
