"""Where a policy wins or loses: maps over two quantities."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agewise.report.style import COLUMN_IN, PAGE_IN, new_axis, paper_style, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def gain_map(
    gains: NDArray[np.float64],
    p_values: NDArray[np.float64],
    columns: list[str],
    rows: list[str],
    limit: float,
    axis: "Axes | None" = None,
) -> "Axes":
    """Draw ``gains[row, column]`` in percentage points; stars mark how sure each is.

    Blue squares are wins, red ones losses, darkest at a gain of ``limit``; a square without a
    star is a tie at the 5% level (* p < 0.05, ** p < 0.01, *** p < 0.001).
    """
    axis = axis or new_axis(COLUMN_IN, 0.9 + 0.42 * len(rows))
    axis.imshow(100 * gains, cmap="RdBu", vmin=-100 * limit, vmax=100 * limit, aspect="auto")
    for row in range(len(rows)):
        for column in range(len(columns)):
            gain, p = gains[row, column], p_values[row, column]
            stars = "*" * int(np.sum(p < np.array([0.05, 0.01, 0.001])))
            dark = abs(gain) > 0.6 * limit
            axis.text(
                column, row, f"{100 * gain:+.1f}{stars}", ha="center", va="center", fontsize=7,
                color="white" if dark else "black",
            )  # fmt: skip
    axis.set_xticks(range(len(columns)), columns)
    axis.set_yticks(range(len(rows)), rows)
    axis.grid(visible=False)
    return axis


def loss_map(
    losses: NDArray[np.float64], columns: list[str], rows: list[str], across: str, files: list[Path]
) -> None:
    """Draw ``losses[row, column]``, shares of an optimum, in percent; darker is worse."""
    with paper_style() as plt:
        height = 0.9 + 0.22 * len(rows)
        figure, axis = plt.subplots(figsize=(PAGE_IN, height), layout="constrained")
        worst = max(0.01, float(np.nanmax(losses, initial=0.0)))
        axis.imshow(100 * losses, cmap="Oranges", vmin=0, vmax=100 * worst, aspect="auto")
        for (row, column), loss in np.ndenumerate(losses):
            text = "-" if np.isnan(loss) else f"{100 * loss:.1f}"
            colour = "white" if loss > 0.6 * worst else "black"
            axis.text(column, row, text, ha="center", va="center", fontsize=6.5, color=colour)
        axis.set_xticks(range(len(columns)), columns)
        axis.set_yticks(range(len(rows)), rows)
        axis.set_xlabel(across)
        axis.set_title("weight lost against the optimum, % of a round", fontsize=8)
        axis.grid(visible=False)
        for file in files:
            save(figure, file)
        plt.close(figure)
