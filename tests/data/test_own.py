"""Data of a user's own: scaling, test rows and shuffling."""

import numpy as np
import pytest

from tests.scenarios import tiny

ROWS = 20


@pytest.fixture
def table(tmp_path):
    """Sorted by label, in pixels, with a byte-order mark."""
    lines = ["pixel,label", *(f"{10 * row},{row % 2}" for row in range(ROWS))]
    (tmp_path / "own.csv").write_text("\n".join(lines) + "\n", encoding="utf-8-sig")
    return tmp_path / "own.csv"


def loaded(path, **fields):
    section = {"kind": "table", "path": str(path), "label_column": "label", "test_fraction": 0.25}
    return tiny(**{"data.dataset": section | fields}).data.load()


def test_the_last_rows_as_they_are_by_default(table):
    read = loaded(table)
    np.testing.assert_array_equal(read.test.values()[:, 0], 10 * np.arange(15, 20))
    np.testing.assert_array_equal(read.train.values()[:, 0], 10 * np.arange(15))


def test_first_rows_and_pixels(table):
    read = loaded(table, test_rows="first", scaling="pixels")
    expected = (10 * np.arange(20) * np.float32(1 / 255)).astype(np.float32)
    np.testing.assert_allclose(read.test.values()[:, 0], expected[:5], rtol=1e-6)
    np.testing.assert_allclose(read.train.values()[:, 0], expected[5:], rtol=1e-6)
    np.testing.assert_array_equal(read.test.labels, np.arange(5) % 2)


def test_shuffling_moves_rows_whole_and_always_alike(table):
    one, two = (loaded(table, shuffle=True) for _ in range(2))
    np.testing.assert_array_equal(one.train.features, two.train.features)
    both = [*zip(one.train.features[:, 0], one.train.labels, strict=True),
            *zip(one.test.features[:, 0], one.test.labels, strict=True)]  # fmt: skip
    assert sorted(both) == [(10 * row, row % 2) for row in range(ROWS)]
    assert both != sorted(both)


def test_npz_in_pixels(tmp_path):
    x, y = np.array([[0.0, 255.0]] * 4), np.array([0, 1, 0, 1])
    np.savez(tmp_path / "own.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    section = {"kind": "npz", "path": str(tmp_path / "own.npz")}
    for scaling, most in (("as-is", 255.0), ("pixels", 1.0)):
        read = tiny(**{"data.dataset": section | {"scaling": scaling}}).data.load()
        assert read.train.values().max() == pytest.approx(most)
