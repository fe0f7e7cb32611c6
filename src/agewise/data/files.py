"""Data that a user brings: a folder of IDX files, an NPZ, a CSV or Parquet table."""

import contextlib
import gzip
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from agewise.data.dataset import Dataset, Samples, one_row_each
from agewise.frames import require_frames

_IDX_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
_IDX_PARTS = {
    ("train", "images"): ("train-images-idx3-ubyte", "train-images.idx3-ubyte"),
    ("train", "labels"): ("train-labels-idx1-ubyte", "train-labels.idx1-ubyte"),
    ("test", "images"): ("t10k-images-idx3-ubyte", "t10k-images.idx3-ubyte"),
    ("test", "labels"): ("t10k-labels-idx1-ubyte", "t10k-labels.idx1-ubyte"),
}


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Whatever goes wrong in a reader, in one sentence that names the file."""
    try:
        yield
    except FileNotFoundError as error:
        raise ValueError(f"{path}: no such file") from error
    except (OSError, EOFError, zipfile.BadZipFile, pl.exceptions.PolarsError) as error:
        raise ValueError(f"{path}: cannot be read: {error}") from error


def read_idx_folder(folder: Path) -> Dataset:
    """A folder with the four IDX files of MNIST's format, gzipped or not."""
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder; the four IDX files are expected in one")
    arrays: dict[tuple[str, str], NDArray[Any]] = {}
    for part, names in _IDX_PARTS.items():
        candidates = [folder / f"{name}{ending}" for name in names for ending in ("", ".gz")]
        found = next((file for file in candidates if file.is_file()), None)
        if found is None:
            raise ValueError(f"{folder}: there is no {names[0]} (or {names[0]}.gz)")
        with _reading(found):
            arrays[part] = _read_idx(found)
    return _dataset(
        folder.name,
        *((arrays[part, "images"], arrays[part, "labels"]) for part in ("train", "test")),
    )


def _read_idx(path: Path) -> NDArray[Any]:
    raw = path.read_bytes()
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] not in _IDX_TYPES:
        raise ValueError(f"{path}: not an IDX file")
    dimensions, start = raw[3], 4 + 4 * raw[3]
    shape = tuple(int(size) for size in np.frombuffer(raw[4:start], ">u4", dimensions))
    dtype = np.dtype(_IDX_TYPES[raw[2]])
    if len(raw) - start != dtype.itemsize * int(np.prod(shape)):
        raise ValueError(
            f"{path}: {len(raw) - start} bytes of data where its header promises shape {shape}"
        )
    return np.frombuffer(raw, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="))


def read_npz(path: Path) -> Dataset:
    """An NPZ file with ``x_train``, ``y_train``, ``x_test`` and ``y_test``."""
    wanted = ("x_train", "y_train", "x_test", "y_test")
    if path.is_file() and not zipfile.is_zipfile(path):
        raise ValueError(f"{path}: not an NPZ file")
    with _reading(path), np.load(path, allow_pickle=False) as archive:
        missing = [name for name in wanted if name not in archive]
        if missing:
            raise ValueError(
                f"{path}: it has no array {missing[0]!r}; it holds {', '.join(archive.files)}"
            )
        x_train, y_train, x_test, y_test = (archive[name] for name in wanted)
    return _dataset(path.stem, (x_train, y_train), (x_test, y_test))


def read_table(path: Path, label_column: str, test_fraction: float) -> Dataset:
    """A CSV or Parquet table; the last rows, ``test_fraction`` of all, are for testing."""
    if path.suffix not in (".csv", ".parquet"):
        raise ValueError(f"{path}: expected a table that ends in .csv or .parquet")
    require_frames()
    with _reading(path):  # the bytes, not the path, in which Polars would expand * and [
        content = io.BytesIO(path.read_bytes())
        table = pl.read_csv(content) if path.suffix == ".csv" else pl.read_parquet(content)
    if label_column not in table.columns:
        raise ValueError(
            f"{path}: there is no column {label_column!r}; its columns are "
            f"{', '.join(table.columns[:10])}"
        )
    features = table.drop(label_column)
    for column, kind in features.schema.items():
        if not kind.is_numeric():
            raise ValueError(f"{path}: column {column!r} has {kind}, not numbers")
        if features[column].null_count():
            raise ValueError(f"{path}: column {column!r} has empty cells")
    cut = len(table) - round(test_fraction * len(table))
    x, y = features.to_numpy(), table[label_column].to_numpy()
    return _dataset(path.stem, (x[:cut], y[:cut]), (x[cut:], y[cut:]))


def _dataset(
    name: str, train: tuple[NDArray[Any], NDArray[Any]], test: tuple[NDArray[Any], NDArray[Any]]
) -> Dataset:
    """Classes are the distinct training labels, in their order."""
    values = np.unique(train[1])
    index = {value: position for position, value in enumerate(values.tolist())}
    unknown = [label for label in np.unique(test[1]).tolist() if label not in index]
    if unknown:
        raise ValueError(f"{name}: the test label {unknown[0]!r} is outside the training classes")
    unit = 1.0 / 255.0 if train[0].dtype == np.uint8 else 1.0

    def samples(x: NDArray[Any], y: NDArray[Any]) -> Samples:
        labels = np.array([index[label] for label in y.tolist()], dtype=np.int64)
        return Samples(one_row_each(x), labels, unit)

    names = tuple(str(value) for value in values.tolist())
    return Dataset(name, samples(*train), samples(*test), names)
