"""Data that a user brings: a folder of IDX files, an NPZ, a CSV or Parquet table."""

import codecs
import contextlib
import gzip
import io
import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agewise.checks import require_memory
from agewise.data.dataset import Dataset, DataSource, Samples, one_row_each
from agewise.dependencies import pl, refuse_after_fork
from agewise.npz import read_arrays, require_file
from agewise.part import RelativeTo

#: What stands in the file for a feature: the number itself, or a pixel of 0 to 255.
Scaling = Literal["as-is", "pixels"]

_IDX_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
_IDX_PARTS = {
    ("train", "images"): ("train-images-idx3-ubyte", "train-images.idx3-ubyte"),
    ("train", "labels"): ("train-labels-idx1-ubyte", "train-labels.idx1-ubyte"),
    ("test", "images"): ("t10k-images-idx3-ubyte", "t10k-images.idx3-ubyte"),
    ("test", "labels"): ("t10k-labels-idx1-ubyte", "t10k-labels.idx1-ubyte"),
}


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Whatever goes wrong in a reader, in one sentence that names the file."""
    require_file(path)
    try:
        yield
    except (Exception, pl.exceptions.PanicException) as error:
        # Damage shows in gzip, in zlib, in Polars or in the shape, each with errors of its own.
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(f"{path}: {said}") from error


def _idx_files(folder: Path) -> dict[tuple[str, str], Path]:
    """Those of the four IDX files that are there: (train or test, images or labels)."""
    found = {}
    for part, names in _IDX_PARTS.items():
        candidates = [folder / f"{name}{ending}" for name in names for ending in ("", ".gz")]
        if there := [file for file in candidates if file.is_file()]:
            found[part] = there[0]
    return found


class IdxFolder(DataSource):
    """A folder of four IDX files as MNIST and its relatives come, gzipped or not."""

    kind: Literal["idx"] = "idx"
    path: str = Field(description="the folder")
    relative_to: RelativeTo = "working-folder"

    def files(self) -> dict[str, Path]:
        """Those of the four files that are there."""
        found = _idx_files(Path(self.path))
        return {f"{self.path}/{' '.join(part)}": file for part, file in found.items()}

    def file_names(self) -> list[str]:
        """Images and labels, for training and for testing."""
        return [f"{self.path}/{' '.join(part)}" for part in _IDX_PARTS]

    def load(self) -> Dataset:
        """Read the four files."""
        return read_idx_files(Path(self.path))


def read_idx_files(folder: Path) -> Dataset:
    """A folder with the four IDX files of MNIST's format, gzipped or not."""
    if not folder.is_dir():
        raise ValueError(
            f"{folder.absolute()}: no such folder; the four IDX files are expected in one"
        )
    there, arrays = _idx_files(folder), dict[tuple[str, str], NDArray[Any]]()
    for part, names in _IDX_PARTS.items():
        found = there.get(part)
        if found is None:
            raise ValueError(f"{folder}: there is no {names[0]} (or {names[0]}.gz)")
        with reading(found), _unzipped(found) as file:
            arrays[part] = _read_idx(file)
    return _dataset(
        folder,
        *((arrays[part, "images"], arrays[part, "labels"]) for part in ("train", "test")),
    )


def _unzipped(path: Path) -> BinaryIO:
    """The file to read, through gzip if it is such a file, whatever its name."""
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    return cast(BinaryIO, gzip.open(path)) if zipped else path.open("rb")


def _read_idx(file: BinaryIO) -> NDArray[Any]:
    start = file.read(4)
    if len(start) < 4 or start[:2] != b"\0\0" or start[2] not in _IDX_TYPES or start[3] > 8:
        raise ValueError("not an IDX file")
    dtype, dimensions = np.dtype(_IDX_TYPES[start[2]]), start[3]
    sizes = file.read(4 * dimensions)
    if len(sizes) < 4 * dimensions:
        raise ValueError("not an IDX file: it ends in its header")
    shape = struct.unpack(f">{dimensions}I", sizes)
    promised = dtype.itemsize * math.prod(shape)
    require_memory(promised, f"an array of shape {shape}")
    content = file.read(promised + 1)
    if len(content) != promised:
        count = f"{len(content)}" if len(content) < promised else f"more than {promised}"
        raise ValueError(f"{count} bytes of data where its header promises shape {shape}")
    return np.frombuffer(content, dtype).reshape(shape).astype(dtype.newbyteorder("="))


class NpzFile(DataSource):
    """An .npz file with x_train, y_train, x_test and y_test."""

    kind: Literal["npz"] = "npz"
    path: str = Field(description="the file")
    relative_to: RelativeTo = "working-folder"
    scaling: Scaling = Field(
        default="as-is",
        description="pixels divides features by 255, as is always done with arrays of bytes",
    )

    def files(self) -> dict[str, Path]:
        """The file."""
        return {self.path: Path(self.path)}

    def load(self) -> Dataset:
        """Read the four arrays."""
        names = ("x_train", "y_train", "x_test", "y_test")
        x_train, y_train, x_test, y_test = read_arrays(Path(self.path), names)
        return _dataset(
            Path(self.path), (x_train, y_train), (x_test, y_test), pixels=self.scaling == "pixels"
        )


class Table(DataSource):
    """A .csv or .parquet table with a row per sample."""

    kind: Literal["table"] = "table"
    path: str = Field(description="the file")
    relative_to: RelativeTo = "working-folder"
    label_column: str = Field(description="the column to predict")
    test_fraction: float = Field(gt=0, lt=1, description="the share of rows kept for testing")
    test_rows: Literal["last", "first"] = Field(
        default="last", description="which rows are kept for testing, after shuffling if any"
    )
    shuffle: bool = Field(
        default=False,
        description="shuffle the rows first, always in the same way: for files sorted by label",
    )
    scaling: Scaling = Field(
        default="as-is", description="pixels divides the features by 255, as for images"
    )

    def files(self) -> dict[str, Path]:
        """The file."""
        return {self.path: Path(self.path)}

    def load(self) -> Dataset:
        """Read the table and keep some of its rows for testing."""
        path, table = Path(self.path), self._read()
        # NumPy has no integers of 128 bits: as features they are numbers, as labels names.
        x = table.drop(self.label_column).cast({pl.Int128: pl.Float64}).to_numpy()
        label = table.select(self.label_column).cast({pl.Int128: pl.String})
        y = label[self.label_column].to_numpy()
        y = y.astype(str) if y.dtype.kind == "O" else y
        if self.shuffle:  # in an order that hangs on the number of rows alone
            order = np.random.default_rng(0).permutation(len(y))
            x, y = x[order], y[order]
        cut = len(table) - round(self.test_fraction * len(table))
        if self.test_rows == "first":
            x, y = np.roll(x, cut, axis=0), np.roll(y, cut)
        pixels = self.scaling == "pixels"
        return _dataset(path, (x[:cut], y[:cut]), (x[cut:], y[cut:]), pixels=pixels)

    def _read(self) -> pl.DataFrame:
        """The table, all of whose features are numbers and whose cells are filled."""
        path = Path(self.path)
        if path.suffix not in (".csv", ".parquet"):
            raise ValueError(f"{path}: expected a table that ends in .csv or .parquet")
        refuse_after_fork()
        with reading(path):  # the bytes, not the path, in which Polars would expand * and [
            content = io.BytesIO(path.read_bytes().removeprefix(codecs.BOM_UTF8))
            table = pl.read_csv(content) if path.suffix == ".csv" else pl.read_parquet(content)
        if self.label_column not in table.columns:
            raise ValueError(
                f"{path}: there is no column {self.label_column!r}; its columns are "
                f"{', '.join(map(repr, table.columns[:10]))}"
            )
        if table.is_empty():
            raise ValueError(f"{path}: the table has no rows")
        for column, kind in table.drop(self.label_column).schema.items():
            if not kind.is_numeric():
                raise ValueError(f"{path}: column {column!r} has {kind}, not numbers")
        for column in table.columns:
            empty = table[column].is_null()
            if empty.any():
                row = empty.arg_max()
                raise ValueError(
                    f"{path}: column {column!r} has empty cells, the first in row {row}"
                )
        return table


def _dataset(
    path: Path,
    train: tuple[NDArray[Any], NDArray[Any]],
    test: tuple[NDArray[Any], NDArray[Any]],
    *,
    pixels: bool = False,
) -> Dataset:
    """Classes are the distinct training labels, in their order."""
    for part, (x, y) in (("training", train), ("test", test)):
        _check_part(x, y, f"{path}, {part} samples")
    values = np.unique(train[1])
    index = {value: position for position, value in enumerate(values.tolist())}
    unknown = [label for label in np.unique(test[1]).tolist() if label not in index]
    if unknown:
        raise ValueError(f"{path}: the test label {unknown[0]!r} is outside the training classes")
    unit = 1.0 / 255.0 if pixels or train[0].dtype == np.uint8 else 1.0

    def samples(x: NDArray[Any], y: NDArray[Any]) -> Samples:
        labels = np.array([index[label] for label in y.tolist()], dtype=np.int64)
        return Samples(one_row_each(x), labels, unit)

    names = tuple(str(value) for value in values.tolist())
    return Dataset(path.stem, samples(*train), samples(*test), names, _shape(train[0]))


def _shape(features: NDArray[Any]) -> tuple[int, ...]:
    """The shape of one sample; a number alone is a row of one."""
    return features.shape[1:] or (1,)


def _check_part(x: NDArray[Any], y: NDArray[Any], where: str) -> None:
    """Raise ``ValueError`` unless there is one label, a number or a word, for each sample."""
    if y.ndim != 1 or x.ndim == 0 or len(x) != len(y):
        raise ValueError(
            f"{where}: one label for each sample is needed, not labels of shape {y.shape} for "
            f"features of shape {x.shape}"
        )
    if len(y) == 0:
        raise ValueError(f"{where}: there are none")
    if x.size == 0:
        raise ValueError(f"{where}: they have no features")
    if x.dtype.kind not in "iufb":
        raise ValueError(f"{where}: features must be numbers, not {x.dtype}")
    if y.dtype.kind not in "iufbUS":
        raise ValueError(f"{where}: labels must be numbers or words, not {y.dtype}")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        sample = int((~np.isfinite(y)).argmax())
        raise ValueError(f"{where}: the label of sample {sample} is {y[sample]}")
