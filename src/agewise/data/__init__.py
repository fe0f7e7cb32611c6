"""What is learned from: data sets, tasks on them, and their partition over the UEs."""

from agewise.data.build import digests_of, divide, files_of, load, load_once, names_of
from agewise.data.builtin import gaussian_mixture, mnist
from agewise.data.dataset import Dataset, Samples, pair, parity
from agewise.data.files import read_idx_folder, read_npz, read_table
from agewise.data.partition import Partition, by_writer, dirichlet, iid, shards
from agewise.data.published import read_cifar_10, read_fashion_mnist, read_femnist

__all__ = [
    "Dataset",
    "Partition",
    "Samples",
    "by_writer",
    "digests_of",
    "dirichlet",
    "divide",
    "files_of",
    "gaussian_mixture",
    "iid",
    "load",
    "load_once",
    "mnist",
    "names_of",
    "pair",
    "parity",
    "read_cifar_10",
    "read_fashion_mnist",
    "read_femnist",
    "read_idx_folder",
    "read_npz",
    "read_table",
    "shards",
]
