"""The picture of a partition shows its numbers."""

import matplotlib as mpl
import numpy as np
import pytest

from agewise.report import label_distribution

mpl.use("Agg")


def test_bars_are_the_counts():
    import matplotlib.pyplot as plt

    counts = np.array([[3, 0, 1], [0, 5, 2]])
    axis = label_distribution(counts, ("cat", "dog", "owl"))
    heights = np.array([bar.get_height() for bar in axis.patches]).reshape(3, 2).T
    floors = np.array([bar.get_y() for bar in axis.patches]).reshape(3, 2).T
    np.testing.assert_array_equal(heights, counts)
    np.testing.assert_array_equal(floors, np.cumsum(counts, axis=1) - counts)
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["cat", "dog", "owl"]
    plt.close(axis.figure)


def test_it_draws_on_a_given_axis_and_says_what_it_needs(monkeypatch):
    import matplotlib.pyplot as plt

    _, own = plt.subplots()
    assert label_distribution(np.ones((2, 12), int), tuple("abcdefghijkl"), own) is own
    plt.close(own.figure)
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.pyplot", None)
    with pytest.raises(ModuleNotFoundError, match=r"agewise\[plot\]"):
        label_distribution(np.ones((1, 1), int), ("a",))
