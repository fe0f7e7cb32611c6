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


def test_csv_of_a_spreadsheet(write):
    """A byte order mark and Windows line ends must not cost the first row."""
    assert read_ages(write("\ufeff0\r\n1\r\n2\r\n")).tolist() == [0.0, 1.0, 2.0]
    assert read_gains(write('\ufeff"ue a","ue b"\r\n1,2\r\n')).tolist() == [[1.0, 2.0]]


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
        ("up,down\nleft,right\n1,2\n", "table.csv, line 2: 'left' is not a number"),
        ("O\n5\n7\n", "table.csv, line 1: 'O' is not a number"),
        ("1;2\n3;4\n", "line 1: '1;2' is not a number; separate the numbers by commas"),
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
    for bad in (np.array([[1j]]), np.array([["a"]])):
        np.savez(tmp_path / "kind.npz", gains=bad)
        with pytest.raises(ValueError, match="gains must be real numbers"):
            read_gains(tmp_path / "kind.npz")
    np.savez_compressed(tmp_path / "packed.npz", gains=np.arange(1000.0).reshape(10, 100))
    packed = bytearray((tmp_path / "packed.npz").read_bytes())
    packed[200:240] = bytes(40)
    with pytest.raises(ValueError, match="not a readable NPZ file"):
        read_gains(write(bytes(packed), "packed.npz"))
    with pytest.raises(ValueError, match="a folder, not a file"):
        read_gains(tmp_path)
    with pytest.raises(ValueError, match="one row or one column"):
        read_ages(write("1,2\n3,4\n"))
