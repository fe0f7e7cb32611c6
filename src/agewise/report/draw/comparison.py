"""Pictures that compare policies as wholes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from agewise.report.numbers import Numbers
from agewise.report.style import colour, ink, marker, new_axis, on_page
from agewise.report.text import points_text, stars
from agewise.statistics import Paired

#: How much of the width of a picture the name of a policy may take.
_NAME_WIDE = 0.3


def forest(
    gains: Mapping[str, Paired],
    axis: Axes | None = None,
    *,
    p_values: Mapping[str, float | None] | None = None,
    indices: Mapping[str, int] | None = None,
) -> Axes:
    """Draw the paired gain of each policy with its interval, the largest on top.

    Stars of ``p_values`` follow the numbers.
    """
    axis = axis or new_axis(0.6 + 0.24 * len(gains))
    ranked = sorted(gains.items(), key=lambda item: item[1].difference)
    axis.axvline(0.0, color=ink("ink"), linewidth=0.8)
    for place, (name, gain) in enumerate(ranked):
        index = list(gains).index(name) if indices is None else indices[name]
        middle, low, high = (100 * x for x in (gain.difference, gain.low, gain.high))
        axis.plot([low, high], [place, place], color=colour(index), linewidth=1.6)
        axis.plot(
            middle, place, marker=marker(index), color=colour(index), markersize=5, label=name,
            linestyle="",
        )  # fmt: skip
        text = points_text(gain.difference) + stars(None if p_values is None else p_values[name])
        axis.annotate(
            text, (1.01, place), xycoords=("axes fraction", "data"), va="center",
            color=ink("ink"), annotation_clip=False,
        )  # fmt: skip
    axis.set_yticks(range(len(ranked)), [_wrapped(name) for name, _ in ranked])
    axis.set_ylim(-0.6, len(ranked) - 0.4)
    axis.tick_params("y", length=0, labelcolor=ink("ink"))
    axis.grid(visible=False, axis="y")
    axis.set_xlabel("gain in test accuracy (percentage points)")
    return axis


def gains_by_axis(
    places: Sequence[str],
    gains: Mapping[str, Sequence[Paired | None]],
    axis: Axes | None = None,
    *,
    baseline: str,
    indices: Mapping[str, int] | None = None,
    highlight: Sequence[str] | None = None,
) -> Axes:
    """Draw ``gains[policy][place]`` over a baseline, a row a place, joined for each policy.

    Lines that cross say that the order turns. Only policies to ``highlight`` have a colour and an
    interval, all if it is left out; the others are grey.
    """
    axis = axis or new_axis(1.0 + 0.4 * len(places))
    axis.axvline(0.0, color=ink("ink"), linewidth=1.2, label=f"{baseline} (baseline)")
    shown = list(gains) if highlight is None else list(highlight)
    rows = np.arange(len(places), dtype=np.float64)
    for place, (name, found) in enumerate(gains.items()):
        index = place if indices is None else indices[name]
        known = [row for row, gain in enumerate(found) if gain is not None]
        middle = [100 * gain.difference for gain in found if gain is not None]
        if name not in shown:
            axis.plot(middle, rows[known], color=ink("others"), linewidth=0.8, zorder=1.5)
            continue
        at = rows + 0.1 * (shown.index(name) - (len(shown) - 1) / 2)
        for row, gain in ((at[row], found[row]) for row in known):
            if gain is not None and not np.isnan(gain.low):
                ends = [100 * gain.low, 100 * gain.high]
                axis.plot(ends, [row, row], color=colour(index), linewidth=1.0, alpha=0.6)
        axis.plot(
            middle, at[known], color=colour(index), marker=marker(index), markersize=5,
            linestyle=":", linewidth=1.0, label=name,
        )  # fmt: skip
    axis.set_yticks(rows, places)
    axis.set_ylim(len(places) - 0.5, -0.5)
    axis.tick_params("y", length=0, labelcolor=ink("ink"))
    axis.grid(visible=False, axis="y")
    axis.set_xlabel("gain in test accuracy (points)")
    axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=1 if on_page() else 2)
    return axis


def trade_off(
    points: Mapping[str, tuple[float, float]],
    x_label: str,
    y_label: str,
    axis: Axes | None = None,
    *,
    notes: Mapping[str, str] | None = None,
    indices: Mapping[str, int] | None = None,
) -> Axes:
    """Draw what each policy reaches in two quantities, with its name beside the point."""
    axis = axis or new_axis()
    middle = np.mean([x for x, _ in points.values()])
    shifts = _apart(points)
    for place, (name, (x, y)) in enumerate(points.items()):
        index = place if indices is None else indices[name]
        axis.plot(x, y, marker=marker(index), color=colour(index), linestyle="", label=name)
        text = name if notes is None else f"{name}\n{notes[name]}"
        left = x > middle
        axis.annotate(
            text, (x, y), xytext=(-6 if left else 6, shifts[name]),
            textcoords="offset points", ha="right" if left else "left", va="center",
            fontsize="small", color=ink("ink"),
        )  # fmt: skip
    axis.margins(0.15, 0.2)
    axis.set_xlabel(x_label)
    axis.set_ylabel(y_label)
    return axis


def class_gains(
    distance_m: Numbers, gain: Numbers, axis: Axes | None = None, *, index: int = 0
) -> Axes:
    """Draw ``gain[seed, class]`` over ``distance_m[seed, class]``, where the class's samples are.

    The line is that of least squares.
    """
    axis = axis or new_axis()
    axis.axhline(0.0, color=ink("ink"), linewidth=0.8)
    x, y = distance_m.ravel(), 100 * gain.ravel()
    axis.plot(x, y, marker="o", markersize=3, linestyle="", color=colour(index), alpha=0.6)
    if x.size > 2 and np.ptp(x) > 0:
        slope, level = np.polyfit(x, y, 1)
        ends = np.array([x.min(), x.max()])
        axis.plot(ends, level + slope * ends, color=ink("ink"), linewidth=1.4, linestyle="--")
    axis.set_xlabel("mean distance of the class's samples (m)")
    axis.set_ylabel("gain of the class (points)")
    return axis


def explanation_chart(rows: Sequence[Mapping[str, Any]], axis: Axes) -> None:
    """Draw the paired difference of two policies in each measure, in standard deviations."""
    places = np.arange(len(rows), dtype=np.float64)
    scales = np.array([row["deviation"] for row in rows], dtype=np.float64)
    scales = np.where(scales > 1e-9, 1.0 / np.maximum(scales, 1e-9), np.nan)
    middle, low, high = (
        scales * np.array([row["difference" + end] for row in rows], dtype=np.float64)
        for end in ("", "_low", "_high")
    )
    axis.errorbar(
        middle, places, xerr=[middle - low, high - middle], fmt="o",
        markersize=4 if on_page() else 3, color=colour(0), elinewidth=1.0,
    )  # fmt: skip
    axis.axvline(0.0, color=ink("ink"), linewidth=0.8)
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.set_yticks(places, [str(row["label"]) for row in rows])
    axis.set_xlabel("age-based minus max-pack\n(standard deviations)")


def _apart(points: Mapping[str, tuple[float, float]]) -> dict[str, float]:
    """By how many points the name of each is moved up so that names do not lie on each other."""
    places = np.array(list(points.values()))
    wide, high = np.maximum(np.ptp(places, axis=0) * 1.4, 1e-9)
    taken: list[tuple[float, float]] = []  # where names are, in shares of the width and points
    shifts = {}
    for name, (x, y) in sorted(points.items(), key=lambda item: item[1][1]):
        own = 180.0 * y / high
        near = [top for at, top in taken if abs(at - x / wide) < _NAME_WIDE and top > own - 11.0]
        top = max([own, *(other + 11.0 for other in near)])
        taken.append((x / wide, top))
        shifts[name] = top - own
    return shifts


def _wrapped(name: str) -> str:
    return name.replace(" (", "\n(")
