"""Data sets that others publish, as their authors offer them, and one to draw.

CIFAR-10 comes as Python pickles, which could call any function when read in the usual way. The
reader here knows only the few names that an array of bytes needs, and stands for them with inert
classes of its own: nothing that a file names is looked up or called.
"""

import hashlib
import io
import json
import math
import pickle
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import ClassVar, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agewise.checks import require_memory
from agewise.data.dataset import Dataset, DataSource, Samples
from agewise.data.files import IdxFolder
from agewise.part import RelativeTo
from agewise.random import normal
from agewise.readers import reading

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
#: Digits, capital letters, small letters: the order of LEAF's labels.
_FEMNIST_NAMES: Final = tuple("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_FEMNIST_SHAPE: Final = (28, 28)
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
            arrays = {name: archive[name] for name in archive}
        train, test = (
            Samples(
                arrays[f"{part}_images"].reshape(-1, 28 * 28),
                arrays[f"{part}_labels"].astype(np.int64),
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

    remedy: ClassVar[str] = (
        "Debian's package dataset-fashion-mnist makes it, or give the folder of the four IDX files "
        "as data.dataset.path"
    )

    def load(self) -> Dataset:
        """Read Fashion-MNIST (Xiao, Rasul, Vollgraf 2017)."""
        read = super().load()
        if read.class_count != len(_FASHION_NAMES):
            raise ValueError(
                f"{self.path}: Fashion-MNIST has 10 classes, and here are {read.class_count}"
            )
        return replace(read, name="fashion-mnist", names=_FASHION_NAMES)


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
        """Return five training batches and a test batch."""
        names = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
        return {f"{self.path}/{name}": Path(self.path) / name for name in names}

    def load(self) -> Dataset:
        """Read CIFAR-10 (Krizhevsky 2009), "Python version"."""
        for file in self.files().values():
            if not file.is_file():
                raise ValueError(
                    f"{Path(self.path).absolute()}: there is no {file.name}; give the "
                    "unpacked folder cifar-10-batches-py as data.dataset.path"
                )
        *train, test = map(_read_batch, self.files().values())
        features, labels = (np.concatenate(each) for each in zip(*train, strict=True))
        unit = 1.0 / 255.0
        samples = Samples(features, labels, unit), Samples(*test, unit)
        return Dataset("cifar-10", *samples, _CIFAR_NAMES, _CIFAR_SHAPE)


def _read_batch(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Read ``uint8[sample, 3072]`` (red, green and blue planes of 32 by 32) and the labels."""
    with reading(path, "batch of CIFAR-10"):
        require_memory(2 * path.stat().st_size, "its content")
        with path.open("rb") as file:
            found = _BatchReader(file, encoding="bytes", fix_imports=False).load()
        if not isinstance(found, dict):
            raise ValueError("it holds no dictionary")
        data, labels = (found.get(name, found.get(name.encode())) for name in ("data", "labels"))
        if not isinstance(data, _Inert) or not isinstance(labels, list):
            raise ValueError("it has no array data and list labels")
        features = _bytes_of(data, math.prod(_CIFAR_SHAPE))
        if not all(type(label) is int and 0 <= label < len(_CIFAR_NAMES) for label in labels):
            raise ValueError("the labels are not numbers from 0 to 9")
        if len(labels) != len(features):
            raise ValueError(f"{len(labels)} labels for {len(features)} images")
        return features, np.array(labels, np.int64)


class _Inert:
    """Stand-in for an array or a type of NumPy, which keeps what it was to be made of."""

    def __init__(self, *arguments: object) -> None:
        self.arguments = arguments
        self.state: object = None

    def __setstate__(self, state: object) -> None:
        self.state = state


def _bytes_of(array: _Inert, columns: int) -> NDArray[np.uint8]:
    """Return an array as rows of ``columns`` bytes; ``ValueError`` if it is something else."""
    match array:
        case _Inert(state=(_, shape, _Inert(arguments=(dtype, *_)), by_columns, content)):
            pass
        case _Inert(arguments=(content, _Inert(arguments=(dtype, *_)), shape, order)):
            by_columns = order == "F"  # as pickles of protocol 5 have it
        case _:
            raise ValueError("its array is damaged")
    if dtype not in ("u1", b"u1", "|u1", b"|u1", "uint8", b"uint8"):
        raise ValueError("its array does not hold bytes")
    if not isinstance(shape, tuple) or len(shape) != 2 or shape[1] != columns:
        raise ValueError(f"its images have shape {shape!r}, not (number, {columns})")
    if not isinstance(content, bytes | bytearray) or len(content) != shape[0] * columns:
        raise ValueError(f"its array is damaged: not the bytes of shape {shape}")
    rows = np.frombuffer(content, np.uint8)
    return rows.reshape(columns, -1).T if by_columns else rows.reshape(-1, columns)


def _text_to_bytes(text: object, *_: object) -> object:
    """Stand in for the function by which Python 3 writes bytes into pickles for Python 2."""
    return text.encode("latin-1") if isinstance(text, str) else text


class _BatchReader(pickle.Unpickler):
    """Reader of numbers, texts, lists, dictionaries and arrays, which calls nothing else."""

    def find_class(self, module: str, name: str) -> object:
        """Return what stands for a name of the file."""
        known = {
            "numpy.core.multiarray._reconstruct": _Inert,
            "numpy._core.multiarray._reconstruct": _Inert,
            "numpy._core.numeric._frombuffer": _Inert,
            "numpy.ndarray": _Inert,
            "numpy.dtype": _Inert,
            "_codecs.encode": _text_to_bytes,
        }
        if f"{module}.{name}" not in known:
            raise ValueError(f"it asks for {module}.{name}, which no batch of CIFAR-10 needs")
        return known[f"{module}.{name}"]


# --------------------------------------------------------------------------------- FEMNIST
class Femnist(DataSource):
    """Handwritten digits and letters with their writers, as the JSON files of LEAF."""

    kind: Literal["femnist"] = "femnist"
    path: str = Field(description="the folder with LEAF's folders train and test")
    relative_to: RelativeTo = "working-folder"
    has_writers: ClassVar[bool] = True

    def files(self) -> dict[str, Path]:
        """Return the two folders of JSON files."""
        return {f"{self.path}/{part}": Path(self.path) / part for part in ("train", "test")}

    def load(self) -> Dataset:
        """Read FEMNIST as LEAF (Caldas et al. 2018) writes it.

        Writers are numbered by their names in sorted order, so that nothing depends on the files
        in which LEAF put them.
        """
        (train, counts), (test, _) = map(_read_writers, self.files().values())
        writers = np.repeat(np.arange(len(counts)), counts)
        return Dataset("femnist", train, test, _FEMNIST_NAMES, _FEMNIST_SHAPE, writers)


def _read_writers(folder: Path) -> tuple[Samples, list[int]]:
    """Read the samples in the JSON files of a folder, and how many each of their writers has.

    Writers are in the order of their names; those without samples are left out.
    """
    found: dict[str, tuple[NDArray[np.float32], NDArray[np.int64]]] = {}
    for file in sorted(folder.glob("*.json")):
        with reading(file, "file of LEAF"):
            require_memory(_JSON_MEMORY * file.stat().st_size, "its content")
            content = json.loads(file.read_bytes())
            users = content.get("user_data") if isinstance(content, dict) else None
            if not isinstance(users, dict):
                raise ValueError("it has no user_data")
            for writer, held in users.items():
                if held == {"x": [], "y": []}:
                    continue
                if writer in found:
                    raise ValueError(f"the writer {writer} is in another file too")
                found[writer] = _samples_of(writer, held)
    if not found:
        raise ValueError(
            f"{folder.absolute()}: there are no samples in JSON files here; give the folder in "
            "which LEAF's preprocess.sh makes train and test as data.dataset.path"
        )
    ordered = [found[writer] for writer in sorted(found)]
    features, labels = (np.concatenate(each) for each in zip(*ordered, strict=True))
    return Samples(features, labels), [len(y) for _, y in ordered]


def _samples_of(writer: str, held: object) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    if not isinstance(held, dict) or "x" not in held or "y" not in held:
        raise ValueError(f"the writer {writer} has no samples x and labels y")
    pixels = math.prod(_FEMNIST_SHAPE)
    x, y = np.asarray(held["x"], np.float32), np.asarray(held["y"])
    if y.dtype.kind != "i" or y.ndim != 1 or x.shape != (y.size, pixels):
        raise ValueError(
            f"the writer {writer} needs {pixels} pixels and one whole number as label for each "
            f"sample, not pixels of shape {x.shape} and labels of shape {y.shape}"
        )
    return x, y.astype(np.int64)
