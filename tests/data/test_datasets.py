"""Data sets: MNIST as published, files that users bring, tasks, and what is said of bad ones."""

import gzip
import hashlib

import numpy as np
import polars as pl
import pytest

from agewise.data import Dataset, Mnist, Pair, Parity, Samples, Synthetic, published
from tests.samples import idx_bytes, read_idx_folder, read_npz, read_table


@pytest.fixture(scope="module")
def digits():
    return Mnist().load()


def test_mnist_is_the_published_one(digits):
    """The original IDX files, rebuilt, have the checksums that are published for them."""
    assert digits.class_count == 10
    rebuilt = {
        "6bbc9ace898e44ae57da46a324031adb": idx_bytes(digits.train.features.reshape(-1, 28, 28)),
        "a25bea736e30d166cdddb491f175f624": idx_bytes(digits.train.labels),
        "2646ac647ad5339dbf082846283269ea": idx_bytes(digits.test.features.reshape(-1, 28, 28)),
        "27ae3e4e09519cfbb04c329615203637": idx_bytes(digits.test.labels),
    }
    for checksum, raw in rebuilt.items():
        assert hashlib.md5(raw, usedforsecurity=False).hexdigest() == checksum
    assert digits.test.values().max() == 1.0


def test_a_damaged_mnist_is_not_used(monkeypatch):
    monkeypatch.setattr(published, "_MNIST_SHA256", "0" * 64)
    with pytest.raises(ValueError, match="damaged"):
        Mnist().load()


def test_parity_and_pair(digits):
    even_odd = Parity().relabel(digits)
    assert even_odd.names == ("even", "odd")
    np.testing.assert_array_equal(even_odd.train.labels, digits.train.labels % 2)
    three_or_eight = Pair(classes=(8, 3)).relabel(digits)
    assert three_or_eight.names == ("8", "3")
    assert len(three_or_eight.train) == 5851 + 6131
    assert three_or_eight.train.labels.sum() == 6131
    first_three = np.flatnonzero(digits.train.labels == 3)[0]
    first_kept = np.flatnonzero(three_or_eight.train.labels == 1)[0]
    np.testing.assert_array_equal(
        three_or_eight.train.features[first_kept], digits.train.features[first_three]
    )
    with pytest.raises(ValueError, match="classes 0 to 9, not 10"):
        Pair(classes=(3, 10)).relabel(digits)
    with pytest.raises(ValueError, match="two different"):
        Pair(classes=(3, 3)).relabel(digits)


@pytest.mark.parametrize("zipped", [False, True])
def test_idx_folder(tmp_path, digits, zipped):
    parts = {
        "train-images-idx3-ubyte": digits.train.features[:50].reshape(-1, 28, 28),
        "train-labels-idx1-ubyte": digits.train.labels[:50],
        "t10k-images-idx3-ubyte": digits.test.features[:20].reshape(-1, 28, 28),
        "t10k-labels-idx1-ubyte": digits.test.labels[:20],
    }
    for name, array in parts.items():
        raw = idx_bytes(array)
        if zipped:
            (tmp_path / f"{name}.gz").write_bytes(gzip.compress(raw))
        else:
            (tmp_path / name).write_bytes(raw)
    read = read_idx_folder(tmp_path)
    np.testing.assert_array_equal(read.train.features, digits.train.features[:50])
    np.testing.assert_array_equal(read.test.labels, digits.test.labels[:20])
    np.testing.assert_array_equal(read.test.values(), digits.test.values()[:20])


def test_npz(tmp_path):
    x = np.arange(12.0).reshape(4, 3)
    np.savez(tmp_path / "d.npz", x_train=x, y_train=[5, 7, 5, 7], x_test=x[:2], y_test=[7, 5])
    read = read_npz(tmp_path / "d.npz")
    assert read.names == ("5", "7")
    assert read.train.labels.tolist() == [0, 1, 0, 1]
    assert read.test.labels.tolist() == [1, 0]
    assert read.train.features.dtype == np.float32


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_table(tmp_path, ending):
    table = pl.DataFrame({"a": [0.0, 1.0, 2.0, 3.0, 4.0], "kind": list("xyxyx"), "b": [1] * 5})
    path = tmp_path / f"t.{ending}"
    (table.write_csv if ending == "csv" else table.write_parquet)(path)
    read = read_table(path, "kind", 0.4)
    assert read.names == ("x", "y")
    assert read.train.features.tolist() == [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]]
    assert read.test.labels.tolist() == [1, 0]


def test_bad_files(tmp_path):
    def message(read, path, *more):
        with pytest.raises(ValueError, match=r".") as caught:
            read(path, *more)
        return str(caught.value)

    assert "none.npz: no such file" in message(read_npz, tmp_path / "none.npz")
    assert "none: no such folder" in message(read_idx_folder, tmp_path / "none")
    assert "there is no train-images-idx3-ubyte" in message(read_idx_folder, tmp_path)
    for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"):
        (tmp_path / name).write_bytes(b"\0\0\x08\x01\0\0\0\x05abc")
    promised = "3 bytes of data where its header promises shape (5,)"
    assert promised in message(read_idx_folder, tmp_path)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(b"<html>")
    assert "not a readable IDX file: it does not" in message(read_idx_folder, tmp_path)
    (tmp_path / "other.txt").write_text("x")
    assert "ends in .csv or .parquet" in message(read_table, tmp_path / "other.txt", "c", 0.5)
    (tmp_path / "bad.npz").write_bytes(b"PK")
    assert "bad.npz: not a readable NPZ file: File is not a zip file" in message(
        read_npz, tmp_path / "bad.npz"
    )
    np.savez(tmp_path / "less.npz", x_train=np.ones(3))
    assert "no array 'y_train'; it holds x_train" in message(read_npz, tmp_path / "less.npz")
    csv = tmp_path / "t.csv"
    csv.write_text("a,b,c\n1,2,x\n3,,y\n")
    assert "column 'b' has empty cells" in message(read_table, csv, "c", 0.5)
    assert "no column 'd'; there are a, b, c" in message(read_table, csv, "d", 0.5)
    names = [*(f"f{i}" for i in range(64)), "digit"]
    csv.write_text(f"{','.join(names)}\n{','.join(['1'] * 65)}\n")
    assert "no column 'digti'; did you mean digit?" in message(read_table, csv, "digti", 0.5)
    said = message(read_table, csv, "label", 0.5)
    assert said.endswith(f"the last 10 of its 65 columns are {', '.join(names[-10:])}")
    csv.write_text("a,b,c\n1,z,x\n3,z,y\n")
    assert "column 'b' has String, not numbers" in message(read_table, csv, "c", 0.5)
    csv.write_text("a,c\n1,x\n3,y\n")
    outside = "the test label 'y' is outside the training classes"
    assert outside in message(read_table, csv, "c", 0.5)


def test_a_table_is_read_by_its_exact_name(tmp_path):
    """Brackets are part of a name, not a pattern that matches another file."""
    for name, value in (("data1.csv", 1), ("data[1].csv", 2)):
        (tmp_path / name).write_text("a,c\n" + f"{value},x\n{value},y\n" * 3)
    read = read_table(tmp_path / "data[1].csv", "c", 0.4)
    assert (read.train.features == 2).all()


def test_bad_samples_are_named():
    def dataset(x, y):
        good = Samples(np.zeros((1, 2), np.float32), np.array([0]))
        return Dataset("mine", Samples(np.array(x, np.float32), np.array(y)), good, ("a", "b"))

    with pytest.raises(ValueError, match="feature 1 of sample 0 is nan"):
        dataset([[0.0, np.nan]], [1])
    with pytest.raises(ValueError, match="label 2 of sample 1 is outside the classes 0 to 1"):
        dataset([[0.0, 0.0], [0.0, 0.0]], [1, 2])
    with pytest.raises(ValueError, match="training samples have 3 features, test samples 2"):
        dataset([[0.0, 0.0, 0.0]], [1])
    with pytest.raises(ValueError, match="a row per label"):
        dataset([[0.0, 0.0]], [1, 0])
    with pytest.raises(ValueError, match="there are none"):
        dataset(np.zeros((0, 2)), [])


def test_synthetic_mixture_is_learnable_and_reproducible():
    first, again = (Synthetic().load() for _ in range(2))
    np.testing.assert_array_equal(first.train.features, again.train.features)
    means = np.stack([first.train.features[first.train.labels == c].mean(0) for c in range(10)])
    nearest = ((first.test.features[:, None] - means) ** 2).sum(-1).argmin(1)
    assert (nearest == first.test.labels).mean() > 0.8


def test_numbers_that_numpy_has_no_type_for(tmp_path):
    """Polars reads integers of 20 digits as such of 128 bits."""
    path = tmp_path / "set.csv"
    path.write_text(f"a,label\n1,{10**20}\n{10**20},3\n2,{10**20}\n3,3\n")
    read = read_table(path, "label", 0.5)
    assert read.names == (str(10**20), "3")
    np.testing.assert_allclose(read.train.values(), [[1.0], [1e20]])


def test_numbers_beyond_float32_are_named(tmp_path):
    path = tmp_path / "set.csv"
    path.write_text("a,label\n1,0\n1e154,1\n2,0\n3,1\n")
    with pytest.raises(ValueError, match=r"feature 0 of sample 1 is inf, which is not a finite"):
        read_table(path, "label", 0.5)


def test_names_of_columns_are_made_visible(tmp_path):
    path = tmp_path / "set.csv"
    path.write_text('"a\nb",c\n1,0\n2,1\n')
    with pytest.raises(ValueError, match=r"there are a\\x0ab, c$"):
        read_table(path, "label", 0.5)
