"""Accuracy over rounds, with bands over the seeds."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from agewise.report.style import COLOURS, COLUMN_IN, DASHES, dash_place, new_axis
from agewise.statistics import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def accuracy_curves(curves: Mapping[str, Interval], axis: "Axes | None" = None) -> "Axes":
    """Draw the mean and the interval of each policy's accuracy, ``[round]`` each.

    Rounds that were not evaluated are NaN and are bridged.
    """
    axis = axis or new_axis(COLUMN_IN, 2.6)
    for place, (name, curve) in enumerate(curves.items()):
        mean, low, high = (np.asarray(part) for part in (curve.mean, curve.low, curve.high))
        rounds = np.arange(1, mean.size + 1)
        known = ~np.isnan(mean)
        colour, dash = COLOURS[place % len(COLOURS)], DASHES[dash_place(place)]
        axis.plot(rounds[known], mean[known], color=colour, linestyle=dash, label=name)
        axis.fill_between(
            rounds[known], low[known], high[known], color=colour, alpha=0.18, linewidth=0
        )
    axis.set_xlabel("communication round")
    axis.set_ylabel("test accuracy")
    axis.set_xlim(1, max((2, *(np.size(curve.mean) for curve in curves.values()))))
    axis.legend(loc="lower right")
    return axis


def gain_curve(gain: Interval, early: int, axis: "Axes | None" = None) -> "Axes":
    """Draw a paired gain in accuracy over rounds, ``[round]``, with its interval.

    A line marks the end of the early rounds in which the gain is said to be largest.
    """
    axis = axis or new_axis(COLUMN_IN, 2.6)
    mean, low, high = (100 * np.asarray(part) for part in (gain.mean, gain.low, gain.high))
    rounds = np.arange(1, mean.size + 1)
    known = ~np.isnan(mean)
    axis.axhline(0.0, color="black", linewidth=0.8)
    axis.axvline(early, color="black", linewidth=0.8, linestyle=":")
    axis.plot(rounds[known], mean[known], color=COLOURS[0])
    axis.fill_between(
        rounds[known], low[known], high[known], color=COLOURS[0], alpha=0.18, linewidth=0
    )
    axis.set_xlim(1, max(2, mean.size))
    axis.set_xlabel("communication round")
    axis.set_ylabel("gain (percentage points)")
    return axis
