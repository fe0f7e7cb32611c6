"""Pictures over rounds, over distance and over other quantities: a line a policy."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter
from numpy.typing import NDArray

from agewise.report.numbers import Numbers
from agewise.report.style import (
    PAGE_IN,
    colour,
    dash,
    ink,
    marker,
    new_axis,
    on_page,
    whole_rounds,
)
from agewise.report.text import FEWEST_SEEDS
from agewise.statistics import Interval

#: What pictures are drawn over in the place of rounds: a label with its unit, and the values.
Over = tuple[str, Numbers]
#: From here on numbers of an axis are written with k, M and G.
_MANY = 1e4


def accuracy_curves(
    curves: Mapping[str, Interval],
    axis: Axes | None = None,
    *,
    runs: Mapping[str, Numbers] | None = None,
    indices: Mapping[str, int] | None = None,
    highlight: Sequence[str] | None = None,
    over: Over | None = None,
) -> Axes:
    """Draw the mean and the interval of each policy's accuracy, ``[round]`` each.

    Rounds that were not evaluated are NaN and are bridged. ``runs[policy][seed, round]`` are drawn
    as thin lines in the place of the interval where there are fewer than five seeds. ``indices``
    are those of the policies' colours; with ``highlight`` only these have one, the others are grey
    lines without an interval. ``over`` is what to draw over if not rounds.
    """
    axis = axis or new_axis()
    shown = list(curves) if highlight is None else list(highlight)
    for place, (name, curve) in enumerate(curves.items()):
        index = place if indices is None else indices[name]
        if name in shown:
            each = None if runs is None else runs[name]
            _line_with_band(axis, curve, index, label=name, runs=each, over=over)
        else:
            mean = np.asarray(curve.mean)
            known = ~np.isnan(mean)
            axis.plot(
                _places(mean.size, over)[known], mean[known], color=ink("others"), linewidth=0.9,
                linestyle=dash(index), label=name, zorder=1.5,
            )  # fmt: skip
    axis.set_ylabel("test accuracy")
    _name_places(axis, max((2, *(np.size(curve.mean) for curve in curves.values()))), over)
    low, high = axis.get_ylim()
    axis.set_ylim(max(0.0, low), min(1.0, high))
    legend = axis.legend(loc="lower right")
    for text in legend.get_texts() if highlight is not None else ():
        if text.get_text() not in shown:
            text.set_color(ink("soft"))
    return axis


def gain_curve(
    gain: Interval,
    early: int | None,
    axis: Axes | None = None,
    *,
    runs: Numbers | None = None,
    over: Over | None = None,
) -> Axes:
    """Draw a paired gain in accuracy over rounds, ``[round]``, with its interval.

    ``runs[seed, round]`` are drawn as thin lines; of fewer than five seeds without an interval. A
    line marks the end of the ``early`` rounds in which the gain is said to be largest. ``over`` is
    what to draw over if not rounds.
    """
    axis = axis or new_axis()
    axis.axhline(0.0, color=ink("ink"), linewidth=0.8)
    if early is not None and early < np.size(gain.mean):
        axis.axvline(early, color=ink("soft"), linewidth=0.8, linestyle=":")
    points = Interval(*(100 * np.asarray(x) for x in (gain.mean, gain.low, gain.high)))
    each = None if runs is None else 100 * runs
    _line_with_band(axis, points, 0, runs=each, thin=ink("others"), over=over)
    _name_places(axis, np.size(gain.mean), over)
    _show_most(axis, points, each)
    axis.set_ylabel("gain (percentage points)")
    return axis


def _show_most(axis: Axes, points: Interval, runs: Numbers | None) -> None:
    """Limits that hold the interval and nineteen of twenty points of the runs."""
    parts = [np.asarray(points.low), np.asarray(points.high), np.asarray(points.mean)]
    parts += [] if runs is None else [np.nanquantile(runs, (0.025, 0.975))]
    known = np.concatenate([part[~np.isnan(part)] for part in parts])
    settled = known if runs is None else known[np.abs(known) <= 3 * np.abs(parts[-1]).max() + 1]
    pad = 0.5 + 0.05 * float(np.ptp(settled))
    axis.set_ylim(float(settled.min()) - pad, float(settled.max()) + pad)


def _line_with_band(
    axis: Axes,
    curve: Interval,
    index: int,
    label: str | None = None,
    runs: Numbers | None = None,
    thin: str | None = None,
    over: Over | None = None,
) -> None:
    """The mean with its interval; each run as a thin line if there are few, or if ``thin``."""
    mean, low, high = (np.asarray(part) for part in (curve.mean, curve.low, curve.high))
    known = ~np.isnan(mean)
    rounds = _places(mean.size, over)[known]
    few = runs is not None and len(runs) < FEWEST_SEEDS
    if runs is not None and (few or thin):
        for run in runs:
            axis.plot(rounds, run[known], color=thin or colour(index), linewidth=0.4, alpha=0.6)
    if not few:
        ends = low[known], high[known]
        axis.fill_between(rounds, *ends, color=colour(index), alpha=0.2, linewidth=0)
    axis.plot(
        rounds, mean[known], color=colour(index), linestyle=dash(index), label=label or "mean",
        linewidth=1.8 if on_page() else 1.2,
    )  # fmt: skip


def _places(count: int, over: Over | None) -> Numbers:
    return np.arange(1.0, count + 1) if over is None else over[1]


def _name_places(axis: Axes, count: int, over: Over | None) -> None:
    if over is None:
        whole_rounds(axis, count)
    else:
        axis.set_xlabel(over[0])
        axis.set_xlim(0.0, float(over[1].max()))
        if over[1].max() >= _MANY:
            axis.xaxis.set_major_formatter(EngFormatter())


def policy_lines(
    lines: Mapping[str, tuple[Numbers, Numbers]],
    x_label: str,
    y_label: str,
    axis: Axes | None = None,
    *,
    markers: bool = False,
    indices: Mapping[str, int] | None = None,
) -> Axes:
    """Draw the points ``(x, y)`` of each policy, joined; those without a number are left out."""
    axis = axis or new_axis()
    for place, (name, (x, y)) in enumerate(lines.items()):
        index = place if indices is None else indices[name]
        known = ~(np.isnan(x) | np.isnan(y))
        axis.plot(
            x[known], y[known], color=colour(index), label=name, linestyle=dash(index),
            marker=marker(index) if markers else "", markersize=3,
        )  # fmt: skip
    axis.set_xlabel(x_label)
    axis.set_ylabel(y_label)
    axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=1 if on_page() else 2)
    return axis


def over_rounds(
    values: Mapping[str, Numbers],
    y_label: str,
    axis: Axes | None = None,
    *,
    indices: Mapping[str, int] | None = None,
) -> Axes:
    """Draw ``values[policy][round]``."""
    rounds = max(each.size for each in values.values())
    lines = {name: (np.arange(1.0, each.size + 1), each) for name, each in values.items()}
    axis = policy_lines(lines, "", y_label, axis, indices=indices)
    whole_rounds(axis, rounds)
    return axis


def label_distribution(
    counts: NDArray[np.int64], class_names: tuple[str, ...], axis: Axes | None = None
) -> Axes:
    """Draw ``counts[ue, class]`` (of `agewise.data.Partition.label_counts`), a bar per UE.

    Each bar shows what shares of the classes a UE holds; its height is its number of samples.
    """
    axis = axis or new_axis(2.4, PAGE_IN)
    floor = np.zeros(len(counts))
    for label, name in enumerate(class_names):
        axis.bar(
            np.arange(len(counts)), counts[:, label], bottom=floor, width=1.0, label=name,
            color=f"C{label % 10}", alpha=1.0 if label < 10 else 0.6, linewidth=0,
        )  # fmt: skip
        floor += counts[:, label]
    axis.set_xlim(-0.5, len(counts) - 0.5)
    axis.set_xlabel("UE")
    axis.set_ylabel("samples")
    axis.legend(
        title="class", ncols=2 if len(class_names) > 5 else 1, loc="center left", frameon=False,
        bbox_to_anchor=(1.0, 0.5), fontsize="small", title_fontsize="small",
    )  # fmt: skip
    return axis
