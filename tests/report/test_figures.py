"""Figures for papers: one of each kind."""

import re

import matplotlib as mpl
import numpy as np
import pytest

from agewise.report import draw_figure
from agewise.report.figures import KINDS
from agewise.report.lines import policy_lines

mpl.use("Agg")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_one_column_wide_with_embedded_fonts(kind, swept, tmp_path):
    pdf = draw_figure(swept, kind, tmp_path / f"{kind}.pdf").read_bytes()
    width = float(re.search(rb"/MediaBox \[ 0 0 ([\d.]+)", pdf)[1])
    assert width == pytest.approx(3.5 * 72)
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf
    again = draw_figure(swept, kind, tmp_path / "again.pdf").read_bytes()
    assert again == pdf


def test_lines_are_the_numbers_that_were_given():
    import matplotlib.pyplot as plt

    given = {"a": (np.arange(3.0), np.array([1.0, np.nan, 3.0]))}
    axis = policy_lines(given, "x", "y")
    np.testing.assert_array_equal(axis.lines[0].get_xydata(), [[0, 1], [2, 3]])
    assert policy_lines(given, "x", "y", axis, markers=True) is axis
    plt.close(axis.figure)


def test_mistakes_are_one_sentence(compared, swept, tmp_path):
    out = tmp_path / "x.pdf"
    with pytest.raises(ValueError, match="no figure 'pie'; there are accuracy, reached, ages"):
        draw_figure(swept, "pie", out)
    with pytest.raises(ValueError, match="a map needs a sweep"):
        draw_figure(compared, "map", out)
    with pytest.raises(ValueError, match="no finished setting has rate_threshold=9; there are"):
        draw_figure(swept, "ages", out, {"channel.rate_threshold": 9.0})
    with pytest.raises(ValueError, match="not supported"):
        draw_figure(swept, "ages", tmp_path / "x.nonsense")
    assert not any(tmp_path.iterdir())
