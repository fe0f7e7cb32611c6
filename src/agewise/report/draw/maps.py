"""Maps: a square a setting."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from agewise.report.numbers import Numbers
from agewise.report.style import PAGE_IN, ink, new_axis, new_figure, on_page, paper_style, save
from agewise.report.text import is_sure, percent_text, points_text, stars

#: The most that a square covers its background, so that its number can be read; and of one that
#: is not sure, the part of that.
_COVER, _UNSURE = 0.7, 0.3


def gain_map(
    gains: Numbers,
    p_values: Numbers,
    columns: list[str],
    rows: list[str],
    limit: float,
    axis: Axes | None = None,
) -> Axes:
    """Draw ``gains[row, column]`` in percentage points; stars mark how sure each is.

    Blue squares are wins, red ones losses, strongest at a gain of ``limit``; a square without a
    star, a tie at the 5% level, is pale (one star is p < 0.05, two p < 0.01, three p < 0.001).
    """
    axis = axis or new_axis(0.9 + 0.42 * len(rows))
    for (row, column), gain in np.ndenumerate(gains):
        p = float(p_values[row, column])
        text = "-" if np.isnan(gain) else points_text(gain) + stars(p)
        cover = 0.0 if np.isnan(gain) else _COVER * min(1.0, abs(gain) / limit)
        square = Rectangle(
            (column - 0.48, row - 0.48), 0.96, 0.96, linewidth=0,
            facecolor=ink("win" if gain > 0 else "lose"),
            alpha=cover * (1.0 if is_sure(p) else _UNSURE), gid=f"square-{row}-{column}",
        )  # fmt: skip
        axis.add_patch(square)
        axis.text(
            column, row, text, ha="center", va="center", fontsize=9 if on_page() else 7,
            color=ink("ink" if is_sure(p) else "soft"),
        )  # fmt: skip
    _name_squares(axis, columns, rows)
    axis.tick_params(length=0)
    return axis


def loss_map(
    losses: Numbers, columns: list[str], rows: list[str], across: str, files: list[Path]
) -> None:
    """Draw ``losses[row, column]``, shares of an optimum, in percent; darker is worse."""
    with paper_style():
        figure = new_figure(PAGE_IN, 0.9 + 0.22 * len(rows))
        axis = figure.subplots()
        worst = max(0.01, float(np.nanmax(losses, initial=0.0)))
        axis.imshow(100 * losses, cmap="Oranges", vmin=0, vmax=100 * worst, aspect="auto")
        for (row, column), loss in np.ndenumerate(losses):
            text = "-" if np.isnan(loss) else percent_text(loss)
            tone = "white" if loss > 0.6 * worst else "black"
            axis.text(column, row, text, ha="center", va="center", fontsize=6.5, color=tone)
        _name_squares(axis, columns, rows)
        axis.set_xlabel(across)
        axis.set_title("weight lost against the optimum, % of a round", fontsize=8)
        for file in files:
            save(figure, file)


def _name_squares(axis: Axes, columns: list[str], rows: list[str]) -> None:
    axis.set_xticks(range(len(columns)), columns)
    axis.set_yticks(range(len(rows)), rows)
    axis.set_xlim(-0.5, len(columns) - 0.5)
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.grid(visible=False)
