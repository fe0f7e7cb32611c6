"""Data sets that others publish, as their authors offer them, and one to draw.

CIFAR-10 comes as Python pickles, which could call any function when read in the usual way. The
reader here knows only the few names that an array of bytes needs, and stands for them with inert
classes of its own: nothing that a file names is looked up or called.
"""

import hashlib
import io
import json
import pickle
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agewise.checks import require_memory
from agewise.data.dataset import Dataset, DataSource, Samples, one_row_each
from agewise.data.files import IdxFolder, reading
from agewise.part import RelativeTo
from agewise.random import normal

# MNIST's authors and licence are in NOTICE.
_MNIST_SHA256 = "04264ff3782eb986c503d57b901e2b943c1a26ff3bd26d26606e38e7368df925"

_FASHION_NAMES: Final = (
    "T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag",
    "ankle boot",
)  # fmt: skip
_CIFAR_NAMES: Final = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip
_CIFAR_SHAPE: Final = (3, 32, 32)
_CIFAR_PARTS: Final = {
    "train": tuple(f"data_batch_{number}" for number in range(1, 6)),
    "test": ("test_batch",),
}
#: Digits, capital letters, small letters: the order of LEAF's labels.
_FEMNIST_NAMES: Final = tuple("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_FEMNIST_SHAPE: Final = (28, 28)
_FEMNIST_PARTS: Final = ("train", "test")
#: Bytes of memory for each byte of a JSON file while it is read: a number of about 8 characters
#: becomes an object of 24 bytes and a reference of 8.
_JSON_MEMORY: Final = 5


class Mnist(DataSource):
    """60,000 handwritten digits of 28 by 28 pixels, inside the package."""

    kind: Literal["mnist"] = "mnist"

    def load(self) -> Dataset:
        """Unpack the 60,000 training and 10,000 test images."""
        packed = files("agewise.data").joinpath("mnist.npz").read_bytes()
        if hashlib.sha256(packed).hexdigest() != _MNIST_SHA256:
            raise ValueError("mnist.npz is damaged (its checksum is wrong): reinstall agewise")
        with np.load(io.BytesIO(packed), allow_pickle=False) as archive:
            train, test = (
                Samples(
                    one_row_each(archive[f"{part}_images"]),
                    archive[f"{part}_labels"].astype(np.int64),
                    unit=1.0 / 255.0,
                )
                for part in ("train", "test")
            )
        return Dataset("mnist", train, test, tuple("0123456789"), (28, 28))


class FashionMnist(IdxFolder):
    """70,000 pictures of clothes, 28 by 28 pixels in grey, in the files of their authors."""

    kind: Literal["fashion-mnist"] = "fashion-mnist"  # type: ignore[assignment]
    path: str = Field(
        default="/usr/share/datasets/fashion-mnist",
        description="the folder of the four IDX files, as Debian's package has it",
    )

    def load(self) -> Dataset:
        """Read Fashion-MNIST (Xiao, Rasul, Vollgraf 2017)."""
        folder = Path(self.path)
        if not folder.is_dir():
            raise ValueError(
                f"{folder.absolute()}: no such folder; Debian's package dataset-fashion-mnist "
                "makes it, or give the folder of the four IDX files as data.dataset.path"
            )
        read = super().load()
        if read.class_count != len(_FASHION_NAMES):
            raise ValueError(
                f"{folder}: Fashion-MNIST has 10 classes, and here are {read.class_count}"
            )
        return Dataset("fashion-mnist", read.train, read.test, _FASHION_NAMES, read.shape)


class Synthetic(DataSource):
    """A small fixed problem for quick trials: ten Gaussian clusters in 20 dimensions."""

    kind: Literal["synthetic"] = "synthetic"

    def load(self) -> Dataset:
        """Draw 5,000 training and 1,000 test samples, always the same ones."""
        # One Gaussian a class, with means on the unit sphere and a deviation of 0.25.
        classes, rng = 10, np.random.default_rng(0)
        means = normal(rng, (classes, 20))
        means /= np.linalg.norm(means, axis=1, keepdims=True)

        def draw(count: int) -> Samples:
            labels = rng.permutation(np.arange(count) % classes)
            noise = 0.25 * normal(rng, (count, 20))
            return Samples((means[labels] + noise).astype(np.float32), labels.astype(np.int64))

        return Dataset("synthetic", draw(5_000), draw(1_000), tuple(map(str, range(classes))))


class Clients(DataSource):
    """Samples that stay on the clients of a live federation: recorded, and not simulated."""

    kind: Literal["clients"] = "clients"

    def load(self) -> Dataset:
        """Refuse: the samples are elsewhere."""
        raise ValueError(
            "data.dataset is clients: the samples of a live federation stay there, and a "
            "simulation needs others: set data.dataset to mnist, synthetic or a file"
        )


# -------------------------------------------------------------------------------- CIFAR-10
class Cifar10(DataSource):
    """60,000 pictures in colour, 32 by 32 pixels, as its authors' Python batches."""

    kind: Literal["cifar-10"] = "cifar-10"
    path: str = Field(description="the unpacked folder, cifar-10-batches-py")
    relative_to: RelativeTo = "working-folder"

    def files(self) -> dict[str, Path]:
        """The batches that are there."""
        names = {name: Path(name) for name in self.file_names()}
        return {name: file for name, file in names.items() if file.is_file()}

    def file_names(self) -> list[str]:
        """Five training batches and a test batch."""
        return [f"{self.path}/{name}" for part in _CIFAR_PARTS.values() for name in part]

    def load(self) -> Dataset:
        """Read CIFAR-10 (Krizhevsky 2009), "Python version"."""
        for name in self.file_names():
            if not Path(name).is_file():
                raise ValueError(
                    f"{Path(self.path).absolute()}: there is no {Path(name).name}; give the "
                    "unpacked folder cifar-10-batches-py as data.dataset.path"
                )
        parts = {}
        for part, names in _CIFAR_PARTS.items():
            batches = [_read_batch(Path(self.path) / name) for name in names]
            features, labels = (np.concatenate(each) for each in zip(*batches, strict=True))
            parts[part] = Samples(features, labels, 1.0 / 255.0)
        return Dataset("cifar-10", parts["train"], parts["test"], _CIFAR_NAMES, _CIFAR_SHAPE)


def _read_batch(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """``uint8[sample, 3072]`` (red, green and blue planes of 32 by 32) and the labels."""
    with reading(path):
        require_memory(2 * path.stat().st_size, "its content")
        with path.open("rb") as file:
            found = _BatchReader(file, encoding="bytes").load()
        if not isinstance(found, dict):
            raise ValueError("not a batch of CIFAR-10: it holds no dictionary")
        fields = {k.decode() if isinstance(k, bytes) else k: v for k, v in found.items()}
        data, labels = fields.get("data"), fields.get("labels")
        if not isinstance(data, _Array) or not isinstance(labels, list):
            raise ValueError("not a batch of CIFAR-10: it has no array data and list labels")
        features = data.bytes_of(int(np.prod(_CIFAR_SHAPE)))
        if not all(type(label) is int and 0 <= label < len(_CIFAR_NAMES) for label in labels):
            raise ValueError("the labels are not numbers from 0 to 9")
        if len(labels) != len(features):
            raise ValueError(f"{len(labels)} labels for {len(features)} images")
        return features, np.array(labels, np.int64)


class _Type:
    """Stands for NumPy's type of numbers: keeps its name."""

    def __init__(self, name: object = None, *_: object) -> None:
        self.name = name.decode("ascii", "replace") if isinstance(name, bytes) else name

    def __setstate__(self, _: object) -> None:
        """Byte order and alignment, which bytes do not have."""


class _Array:
    """Stands for a NumPy array: keeps its shape, type and bytes."""

    def __init__(self, *_: object) -> None:
        self.state: tuple[Any, ...] = ()

    def __setstate__(self, state: object) -> None:
        """Version, shape, type, whether by columns, content."""
        self.state = state if isinstance(state, tuple) else ()

    def bytes_of(self, columns: int) -> NDArray[np.uint8]:
        """The content as rows of ``columns`` bytes; ``ValueError`` if it is something else."""
        if len(self.state) != 5:
            raise ValueError("its array is damaged")
        _, shape, kind, by_columns, content = self.state
        if not isinstance(kind, _Type) or kind.name not in ("u1", "|u1", "uint8"):
            raise ValueError("its array does not hold bytes")
        if not isinstance(shape, tuple) or len(shape) != 2 or shape[1] != columns:
            raise ValueError(f"its images have shape {shape!r}, not (number, {columns})")
        if not isinstance(content, bytes) or len(content) != shape[0] * columns:
            raise ValueError(f"its array is damaged: not the bytes of shape {shape}")
        rows = np.frombuffer(content, np.uint8)
        return rows.reshape(columns, -1).T if by_columns else rows.reshape(-1, columns)


def _from_buffer(content: object, kind: object, shape: object, order: object) -> _Array:
    """Stands for the function by which NumPy makes arrays from pickles of protocol 5."""
    array = _Array()
    raw = bytes(content) if isinstance(content, bytes | bytearray) else content
    array.state = (1, shape, kind, order == "F", raw)
    return array


def _text_to_bytes(text: object, *_: object) -> object:
    """Stands for the function by which Python 3 writes bytes into pickles for Python 2."""
    return text.encode("latin-1") if isinstance(text, str) else text


class _BatchReader(pickle.Unpickler):
    """Reads numbers, texts, lists, dictionaries and arrays of bytes, and calls nothing else."""

    _KNOWN: Final = {
        ("numpy.core.multiarray", "_reconstruct"): _Array,
        ("numpy._core.multiarray", "_reconstruct"): _Array,
        ("numpy._core.numeric", "_frombuffer"): _from_buffer,
        ("numpy", "ndarray"): _Array,
        ("numpy", "dtype"): _Type,
        ("_codecs", "encode"): _text_to_bytes,
    }

    def __init__(self, file: io.BufferedReader, encoding: str) -> None:
        super().__init__(file, encoding=encoding, fix_imports=False)

    def find_class(self, module: str, name: str) -> Any:
        """What stands for a name of the file."""
        known = self._KNOWN.get((module, name))
        if known is None:
            raise ValueError(f"it asks for {module}.{name}, which no batch of CIFAR-10 needs")
        return known


# --------------------------------------------------------------------------------- FEMNIST
class Femnist(DataSource):
    """Handwritten digits and letters with their writers, as the JSON files of LEAF."""

    kind: Literal["femnist"] = "femnist"
    path: str = Field(description="the folder with LEAF's folders train and test")
    relative_to: RelativeTo = "working-folder"
    has_writers: ClassVar[bool] = True

    def files(self) -> dict[str, Path]:
        """The two folders of JSON files."""
        return {name: Path(name) for name in self.file_names()}

    def file_names(self) -> list[str]:
        """The folders ``train`` and ``test``."""
        return [f"{self.path}/{part}" for part in _FEMNIST_PARTS]

    def load(self) -> Dataset:
        """Read FEMNIST as LEAF (Caldas et al. 2018) writes it.

        Writers are numbered by their names in sorted order, so that nothing depends on the files
        in which LEAF put them.
        """
        parts = [_read_part(Path(name)) for name in self.file_names()]
        train, test = (_joined(list(part.values())) for part in parts)
        writers = np.repeat(np.arange(len(parts[0])), [len(y) for _, y in parts[0].values()])
        return Dataset("femnist", train, test, _FEMNIST_NAMES, _FEMNIST_SHAPE, writers)


#: A writer without samples.
_NOTHING: Final[dict[str, list[float]]] = {"x": [], "y": []}
#: The pixels, ``float32[sample, 784]``, and labels of one writer.
_Written = tuple[NDArray[np.float32], NDArray[np.int64]]


def _read_part(folder: Path) -> dict[str, _Written]:
    """The samples of all writers in the JSON files of a folder, by their names in order."""
    found: dict[str, _Written] = {}
    for file in sorted(folder.glob("*.json")):
        for writer, written in _read_writers(file).items():
            if writer in found:
                raise ValueError(f"{file}: the writer {writer} is in another file too")
            found[writer] = written
    if not found:
        raise ValueError(
            f"{folder.absolute()}: there are no samples in JSON files here; give the folder in "
            "which LEAF's preprocess.sh makes train and test as data.dataset.path"
        )
    return dict(sorted(found.items()))


def _read_writers(path: Path) -> dict[str, _Written]:
    """The samples of each writer in one of LEAF's files; writers without samples are left out."""
    with reading(path):
        require_memory(_JSON_MEMORY * path.stat().st_size, "its content")
        found = json.loads(path.read_bytes())
        users = found.get("user_data") if isinstance(found, dict) else None
        if not isinstance(users, dict):
            raise ValueError("not a file of LEAF: it has no user_data")
        return {name: _of_writer(name, held) for name, held in users.items() if held != _NOTHING}


def _of_writer(name: str, held: Any) -> _Written:
    if not isinstance(held, dict) or "x" not in held or "y" not in held:
        raise ValueError(f"the writer {name} has no samples x and labels y")
    pixels = int(np.prod(_FEMNIST_SHAPE))
    x, y = np.asarray(held["x"], np.float32), np.asarray(held["y"])
    if y.dtype.kind != "i" or y.ndim != 1 or x.shape != (y.size, pixels):
        raise ValueError(
            f"the writer {name} needs {pixels} pixels and one whole number as label for each "
            f"sample, not pixels of shape {x.shape} and labels of shape {y.shape}"
        )
    return x, y.astype(np.int64)


def _joined(parts: Sequence[_Written]) -> Samples:
    features, labels = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Samples(features, labels)
