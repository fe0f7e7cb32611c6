"""Curves of policies for papers: over rounds, over UEs reached, over distance."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agewise.report.style import COLOURS, COLUMN_IN, DASHES, dash_place, new_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Numbers = NDArray[np.float64]


def policy_lines(
    lines: Mapping[str, tuple[Numbers, Numbers]],
    x_label: str,
    y_label: str,
    axis: "Axes | None" = None,
    *,
    markers: bool = False,
) -> "Axes":
    """Draw the points ``(x, y)`` of each policy, joined; those without a number are left out."""
    axis = axis or new_axis(COLUMN_IN, 2.6)
    for place, (name, (x, y)) in enumerate(lines.items()):
        known = ~(np.isnan(x) | np.isnan(y))
        axis.plot(
            x[known], y[known], color=COLOURS[place % len(COLOURS)], label=name,
            linestyle=DASHES[dash_place(place)], marker="osd^vx*"[place % 7] if markers else "",
            markersize=3,
        )  # fmt: skip
    axis.set_xlabel(x_label)
    axis.set_ylabel(y_label)
    axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return axis
