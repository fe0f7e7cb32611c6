"""Files that a user brings: what is read, and what is said of those that cannot be."""

import numpy as np
import pytest

from agewise.radio import read_ages, read_gains


@pytest.fixture
def write(tmp_path):
    def write(text, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_csv_with_comment_and_names(write):
    path = write("# measured\nfirst,second\n1,2.5\n\n0,1e-12\n")
    assert read_gains(path).tolist() == [[1.0, 2.5], [0.0, 1e-12]]


def test_npz(tmp_path):
    np.savez(tmp_path / "cell.npz", gains=np.ones((2, 3)), ages=np.array([1, 2]))
    assert read_gains(tmp_path / "cell.npz").shape == (2, 3)
    assert read_ages(tmp_path / "cell.npz").tolist() == [1.0, 2.0]


@pytest.mark.parametrize("text", ["1,2,3", "1\n2\n3\n", "age\n1\n2\n3"])
def test_ages_in_a_row_or_a_column(write, text):
    assert read_ages(write(text)).tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2\n3,x\n", "table.csv, line 2: 'x' is not a number"),
        ("1,2\n# note\n3\n", "table.csv, line 3: 1 values where the lines before have 2"),
        ("a,b\nc,d\n1,2\n", "table.csv, line 2: 'c' is not a number"),
        ("1,,2\n", "table.csv, line 1: '' is not a number"),
        ("", "table.csv: the file has no numbers"),
        ("# nothing\n", "table.csv: the file has no numbers"),
        (b"\xff\xfe\x00", "table.csv: neither an NPZ file nor text"),
    ],
)
def test_bad_csv(write, text, message):
    with pytest.raises(ValueError, match=message):
        read_gains(write(text))


def test_bad_files(write, tmp_path):
    with pytest.raises(ValueError, match="no such file"):
        read_gains(tmp_path / "missing.csv")
    np.savez(tmp_path / "other.npz", power=np.ones(3))
    with pytest.raises(ValueError, match="no array 'gains'; it holds power"):
        read_gains(tmp_path / "other.npz")
    np.savez(tmp_path / "objects.npz", gains=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="not a readable NPZ file"):
        read_gains(tmp_path / "objects.npz")
    broken = bytearray((tmp_path / "other.npz").read_bytes().replace(b"power", b"gains"))
    broken[60] ^= 0xFF
    with pytest.raises(ValueError, match="not a readable NPZ file"):
        read_gains(write(bytes(broken), "broken.npz"))
    with pytest.raises(ValueError, match="one row or one column"):
        read_ages(write("1,2\n3,4\n"))
