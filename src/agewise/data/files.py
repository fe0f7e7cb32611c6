"""Data that a user brings: a folder of IDX files, an NPZ, a CSV or Parquet table."""

import gzip
import math
import struct
from pathlib import Path
from typing import BinaryIO, ClassVar, Literal, cast

import numpy as np
from pydantic import Field

from agewise.checks import nearest, require_memory, visible
from agewise.data.dataset import Dataset, DataSource, Samples
from agewise.dependencies import pl
from agewise.part import RelativeTo
from agewise.readers import FileArray, read_arrays, read_table, reading

_IDX_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
#: The four files by what they hold; some have a dot before "idx", and any may be gzipped.
_IDX_FILES = {
    "train images": "train-images-idx3-ubyte",
    "train labels": "train-labels-idx1-ubyte",
    "test images": "t10k-images-idx3-ubyte",
    "test labels": "t10k-labels-idx1-ubyte",
}


class IdxFolder(DataSource):
    """A folder of four IDX files as MNIST and its relatives come, gzipped or not."""

    kind: Literal["idx"] = "idx"
    path: str = Field(description="the folder")
    relative_to: RelativeTo = "working-folder"
    #: What to do if there is no such folder.
    remedy: ClassVar[str] = "the four IDX files are expected in one"

    def files(self) -> dict[str, Path]:
        """Return those of the four files that are there."""
        return {f"{self.path}/{part}": file for part, file in self._found().items()}

    def file_names(self) -> list[str]:
        """List images and labels, for training and for testing."""
        return [f"{self.path}/{part}" for part in _IDX_FILES]

    def load(self) -> Dataset:
        """Read the four files."""
        folder = Path(self.path)
        if not folder.is_dir():
            raise ValueError(f"{folder.absolute()}: no such folder; {self.remedy}")
        found, arrays = self._found(), []
        for part, name in _IDX_FILES.items():
            if part not in found:
                raise ValueError(f"{folder}: there is no {name} (or {name}.gz)")
            with reading(found[part], "IDX file"), _unzipped(found[part]) as file:
                arrays.append(_read_idx(file))
        return _dataset(folder, *arrays)

    def _found(self) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for part, name in _IDX_FILES.items():
            for stem in (name, name.replace("-idx", ".idx")):
                for file in (Path(self.path) / stem, Path(self.path) / f"{stem}.gz"):
                    if file.is_file():
                        found.setdefault(part, file)
        return found


def _unzipped(path: Path) -> BinaryIO:
    """Open a file, through gzip if it is such a file, whatever its name."""
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    return cast(BinaryIO, gzip.open(path)) if zipped else path.open("rb")


def _read_idx(file: BinaryIO) -> FileArray:
    start = file.read(4)
    if len(start) < 4 or start[:2] != b"\0\0" or start[2] not in _IDX_TYPES or start[3] > 8:
        raise ValueError("it does not begin like one")
    dtype, dimensions = np.dtype(_IDX_TYPES[start[2]]), start[3]
    sizes = file.read(4 * dimensions)
    if len(sizes) < 4 * dimensions:
        raise ValueError("it ends in its header")
    shape = struct.unpack(f">{dimensions}I", sizes)
    promised = dtype.itemsize * math.prod(shape)
    require_memory(promised, f"an array of shape {shape}")
    content = file.read(promised + 1)
    if len(content) != promised:
        count = f"{len(content)}" if len(content) < promised else f"more than {promised}"
        raise ValueError(f"{count} bytes of data where its header promises shape {shape}")
    return np.frombuffer(content, dtype).reshape(shape).astype(dtype.newbyteorder("="))


class _File(DataSource):
    """A single file of samples."""

    path: str = Field(description="the file")
    relative_to: RelativeTo = "working-folder"
    scaling: Literal["as-is", "pixels"] = Field(
        default="as-is",
        description="pixels divides features by 255, as is always done with arrays of bytes",
    )

    def files(self) -> dict[str, Path]:
        """Return the file."""
        return {self.path: Path(self.path)}


class NpzFile(_File):
    """An .npz file with x_train, y_train, x_test and y_test."""

    kind: Literal["npz"] = "npz"

    def load(self) -> Dataset:
        """Read the four arrays."""
        path = Path(self.path)
        arrays = read_arrays(path, ("x_train", "y_train", "x_test", "y_test"))
        return _dataset(path, *arrays, pixels=self.scaling == "pixels")


class Table(_File):
    """A .csv or .parquet table with a row per sample."""

    kind: Literal["table"] = "table"
    label_column: str = Field(description="the column to predict")
    test_fraction: float = Field(gt=0, lt=1, description="the share of rows kept for testing")
    test_rows: Literal["last", "first"] = Field(
        default="last", description="which rows are kept for testing, after shuffling if any"
    )
    shuffle: bool = Field(
        default=False,
        description="shuffle the rows first, always in the same way: for files sorted by label",
    )

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
        return _dataset(path, x[:cut], y[:cut], x[cut:], y[cut:], pixels=pixels)

    def _read(self) -> "pl.DataFrame":
        """Read the table, all of whose features are numbers and whose cells are filled."""
        path = Path(self.path)
        if path.suffix not in (".csv", ".parquet"):
            raise ValueError(f"{path}: expected a table that ends in .csv or .parquet")
        table = read_table(path)
        if self.label_column not in table.columns:
            columns = list(map(visible, table.columns))
            hint = nearest(self.label_column, columns)
            if len(columns) > 10 and not hint.startswith("did"):  # labels are last as a rule
                last = ", ".join(columns[-10:])
                hint = f"the last 10 of its {len(columns)} columns are {last}"
            raise ValueError(f"{path}: there is no column {self.label_column!r}; {hint}")
        if table.is_empty():
            raise ValueError(f"{path}: the table has no rows")
        for column in table:
            if column.name != self.label_column and not column.dtype.is_numeric():
                raise ValueError(f"{path}: column {column.name!r} has {column.dtype}, not numbers")
            if column.has_nulls():
                row = column.is_null().arg_max()
                raise ValueError(
                    f"{path}: column {column.name!r} has empty cells, the first in row {row}"
                )
        return table


def _dataset(
    path: Path,
    x_train: FileArray,
    y_train: FileArray,
    x_test: FileArray,
    y_test: FileArray,
    *,
    pixels: bool = False,
) -> Dataset:
    """Make a data set whose classes are the distinct training labels, in their order."""
    _check(f"{path}, training samples", x_train, y_train)
    _check(f"{path}, test samples", x_test, y_test)
    values = np.unique(y_train).tolist()
    index = {value: position for position, value in enumerate(values)}
    unknown = [label for label in np.unique(y_test).tolist() if label not in index]
    if unknown:
        raise ValueError(f"{path}: the test label {unknown[0]!r} is outside the training classes")
    unit = 1.0 / 255.0 if pixels or x_train.dtype == np.uint8 else 1.0

    def samples(x: FileArray, y: FileArray) -> Samples:
        rows = x.reshape(len(x), -1)
        labels = np.array([index[label] for label in y.tolist()], dtype=np.int64)
        if rows.dtype == np.uint8:
            return Samples(rows.astype(np.uint8, copy=False), labels, unit)
        with np.errstate(over="ignore"):  # what becomes infinite is found and named by `Dataset`
            return Samples(rows.astype(np.float32, copy=False), labels, unit)

    shape = x_train.shape[1:] or (1,)  # a number alone is a row of one
    train, test = samples(x_train, y_train), samples(x_test, y_test)
    return Dataset(path.stem, train, test, tuple(map(str, values)), shape)


def _check(where: str, x: FileArray, y: FileArray) -> None:
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
    if np.issubdtype(y.dtype, np.floating) and not np.isfinite(y).all():
        sample = int((~np.isfinite(y)).argmax())
        raise ValueError(f"{where}: the label of sample {sample} is {y[sample]}")
