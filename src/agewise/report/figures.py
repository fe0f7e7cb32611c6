"""Figures for papers: one IEEE column, vector, colours that everybody can tell apart."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from agewise.experiment import Result
from agewise.extras import require
from agewise.files import write_whole
from agewise.policies import Policy
from agewise.records import PolicyKey
from agewise.report import numbers
from agewise.report.charts import colour, dash_index
from agewise.report.numbers import Curves, Numbers, Variation
from agewise.report.text import (
    FEWEST_SEEDS,
    last_part,
    percent_text,
    points_text,
    stars,
    value_text,
    variation_text,
)
from agewise.statistics import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

COLUMN_IN = 3.5
PAGE_IN = 7.16
#: Matplotlib's words for `agewise.report.charts.DASHES`.
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
_STYLE = {
    "font.size": 8,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "grid.linewidth": 0.4,
    "grid.alpha": 0.4,
    "lines.linewidth": 1.2,
    "legend.frameon": False,
    "legend.fontsize": 7,
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "savefig.dpi": 200,
    "svg.hashsalt": "agewise",  # names of elements that do not change from file to file
}


@contextlib.contextmanager
def paper_style() -> Iterator[Any]:
    """Fonts and lines of the size that a column needs, fonts embedded in PDF; gives pyplot."""
    plt = _pyplot()
    with plt.rc_context(_STYLE):
        yield plt


def save(figure: "Figure | SubFigure", path: Path) -> None:
    """Write the figure whole; dates are left out, so that the same figure is the same file."""
    kind = path.suffix.removeprefix(".") or "png"
    dateless = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
    with write_whole(path) as temporary:
        figure.savefig(temporary, format=kind, metadata=dateless.get(kind))  # type: ignore[union-attr]


def _pyplot() -> Any:
    return require("matplotlib.pyplot", "plot")


def _new_axis(width_in: float, height_in: float) -> "Axes":
    """An axis that fills a new figure."""
    _, axis = _pyplot().subplots(figsize=(width_in, height_in), layout="constrained")
    return axis  # type: ignore[no-any-return]


# Functions that draw numbers on an axis


def accuracy_curves(
    curves: Mapping[str, Interval],
    axis: "Axes | None" = None,
    *,
    runs: Mapping[str, Numbers] | None = None,
) -> "Axes":
    """Draw the mean and the interval of each policy's accuracy, ``[round]`` each.

    Rounds that were not evaluated are NaN and are bridged. ``runs[policy][seed, round]`` are drawn
    as thin lines in the place of the interval where there are fewer than five seeds.
    """
    axis = axis or _new_axis(COLUMN_IN, 2.6)
    for index, (name, curve) in enumerate(curves.items()):
        _line_with_band(axis, curve, index, label=name, runs=None if runs is None else runs[name])
    axis.set_xlabel("communication round")
    axis.set_ylabel("test accuracy")
    axis.set_xlim(1, max((2, *(np.size(curve.mean) for curve in curves.values()))))
    axis.legend(loc="lower right")
    return axis


def gain_curve(
    gain: Interval, early: int, axis: "Axes | None" = None, *, runs: Numbers | None = None
) -> "Axes":
    """Draw a paired gain in accuracy over rounds, ``[round]``, with its interval.

    A line marks the end of the early rounds in which the gain is said to be largest. Of fewer
    than five seeds ``runs[seed, round]`` are drawn in the place of the interval.
    """
    axis = axis or _new_axis(COLUMN_IN, 2.6)
    axis.axhline(0.0, color="black", linewidth=0.8)
    axis.axvline(early, color="black", linewidth=0.8, linestyle=":")
    points = Interval(*(100 * x for x in (gain.mean, gain.low, gain.high)))
    _line_with_band(axis, points, 0, runs=None if runs is None else 100 * runs)
    axis.set_xlim(1, max(2, np.size(gain.mean)))
    axis.set_xlabel("communication round")
    axis.set_ylabel("gain (percentage points)")
    return axis


def _line_with_band(
    axis: "Axes",
    curve: Interval,
    index: int,
    label: str | None = None,
    runs: Numbers | None = None,
) -> None:
    """The mean, with its interval or, of few runs, with each of them as a thin line."""
    mean, low, high = (np.asarray(part) for part in (curve.mean, curve.low, curve.high))
    known = ~np.isnan(mean)
    rounds = np.arange(1, mean.size + 1)[known]
    dash = _DASHES[dash_index(index)]
    axis.plot(rounds, mean[known], color=colour(index), linestyle=dash, label=label)
    if runs is None or len(runs) >= FEWEST_SEEDS:
        low, high, ink = low[known], high[known], colour(index)
        axis.fill_between(rounds, low, high, color=ink, alpha=0.18, linewidth=0)
        return
    for run in runs:
        axis.plot(rounds, run[known], color=colour(index), linewidth=0.4, alpha=0.6)


def policy_lines(
    lines: Mapping[str, tuple[Numbers, Numbers]],
    x_label: str,
    y_label: str,
    axis: "Axes | None" = None,
    *,
    markers: bool = False,
) -> "Axes":
    """Draw the points ``(x, y)`` of each policy, joined; those without a number are left out."""
    axis = axis or _new_axis(COLUMN_IN, 2.6)
    for index, (name, (x, y)) in enumerate(lines.items()):
        known = ~(np.isnan(x) | np.isnan(y))
        axis.plot(
            x[known], y[known], color=colour(index), label=name,
            linestyle=_DASHES[dash_index(index)], marker="osd^vx*"[index % 7] if markers else "",
            markersize=3,
        )  # fmt: skip
    axis.set_xlabel(x_label)
    axis.set_ylabel(y_label)
    axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return axis


def label_distribution(
    counts: NDArray[np.int64], class_names: tuple[str, ...], axis: "Axes | None" = None
) -> "Axes":
    """Draw ``counts[ue, class]`` (of `agewise.data.Partition.label_counts`), a bar per UE.

    Each bar shows what shares of the classes a UE holds; its height is its number of samples.
    """
    axis = axis or _new_axis(PAGE_IN, 2.4)
    colours: Any = _pyplot().get_cmap("tab20" if len(class_names) > 10 else "tab10")
    floor = np.zeros(len(counts))
    for label, name in enumerate(class_names):
        axis.bar(
            np.arange(len(counts)), counts[:, label], bottom=floor, width=1.0, label=name,
            color=colours(label % colours.N), linewidth=0,
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


def gain_map(
    gains: Numbers,
    p_values: Numbers,
    columns: list[str],
    rows: list[str],
    limit: float,
    axis: "Axes | None" = None,
) -> "Axes":
    """Draw ``gains[row, column]`` in percentage points; stars mark how sure each is.

    Blue squares are wins, red ones losses, darkest at a gain of ``limit``; a square without a
    star is a tie at the 5% level (* p < 0.05, ** p < 0.01, *** p < 0.001).
    """
    axis = axis or _new_axis(COLUMN_IN, 0.9 + 0.42 * len(rows))
    axis.imshow(100 * gains, cmap="RdBu", vmin=-100 * limit, vmax=100 * limit, aspect="auto")
    for (row, column), gain in np.ndenumerate(gains):
        text = "-" if np.isnan(gain) else points_text(gain) + stars(float(p_values[row, column]))
        dark = abs(gain) > 0.6 * limit
        axis.text(
            column, row, text, ha="center", va="center", fontsize=7,
            color="white" if dark else "black",
        )  # fmt: skip
    _name_squares(axis, columns, rows)
    return axis


def loss_map(
    losses: Numbers, columns: list[str], rows: list[str], across: str, files: list[Path]
) -> None:
    """Draw ``losses[row, column]``, shares of an optimum, in percent; darker is worse."""
    with paper_style() as plt:
        height = 0.9 + 0.22 * len(rows)
        figure, axis = plt.subplots(figsize=(PAGE_IN, height), layout="constrained")
        worst = max(0.01, float(np.nanmax(losses, initial=0.0)))
        axis.imshow(100 * losses, cmap="Oranges", vmin=0, vmax=100 * worst, aspect="auto")
        for (row, column), loss in np.ndenumerate(losses):
            text = "-" if np.isnan(loss) else percent_text(loss)
            ink = "white" if loss > 0.6 * worst else "black"
            axis.text(column, row, text, ha="center", va="center", fontsize=6.5, color=ink)
        _name_squares(axis, columns, rows)
        axis.set_xlabel(across)
        axis.set_title("weight lost against the optimum, % of a round", fontsize=8)
        for file in files:
            save(figure, file)
        plt.close(figure)


def explanation_chart(rows: Sequence[Mapping[str, Any]], axes: "Sequence[Axes]") -> None:
    """Draw, for each measure, how two policies differ in it and how it goes with the gain.

    On the left the paired difference in standard deviations, on the right the slope of the gain in
    percentage points per standard deviation, alone and with all measures together; with intervals.
    """
    left, right = axes
    places = np.arange(len(rows), dtype=np.float64)
    scales = np.array([row["deviation"] for row in rows], dtype=np.float64)
    scales = np.where(scales > 1e-9, 1.0 / np.maximum(scales, 1e-9), np.nan)
    _intervals(left, rows, "difference", scales, places, 0)
    for index, (name, label) in enumerate((("slope", "alone"), ("joint", "all together"))):
        hundred = np.full(places.size, 100.0)
        _intervals(right, rows, name, hundred, places + 0.24 * index - 0.12, index, label)
    for axis in axes:
        axis.axvline(0.0, color="black", linewidth=0.8)
        axis.set_ylim(len(rows) - 0.5, -0.5)
    left.set_yticks(places, [str(row["label"]) for row in rows])
    left.set_xlabel("age-based less max-pack (standard deviations)")
    right.set_xlabel("gain (points per standard deviation)")
    right.legend(loc="best")


def _intervals(
    axis: "Axes",
    rows: Sequence[Mapping[str, Any]],
    name: str,
    scales: Numbers,
    places: Numbers,
    index: int,
    label: str | None = None,
) -> None:
    """A point with its interval for each row that has one."""
    middle, low, high = (
        scales * np.array([row[name + end] for row in rows], dtype=np.float64)
        for end in ("", "_low", "_high")
    )
    axis.errorbar(
        middle, places, xerr=[middle - low, high - middle], fmt="os"[index], markersize=3,
        color=colour(index), elinewidth=1.0, label=label,
    )  # fmt: skip


def _name_squares(axis: "Axes", columns: list[str], rows: list[str]) -> None:
    axis.set_xticks(range(len(columns)), columns)
    axis.set_yticks(range(len(rows)), rows)
    axis.grid(visible=False)


# Figures of a result


def draw_figure(
    result: Result | Path | str,
    kind: str,
    output: Path | str,
    at: Variation | None = None,
    *,
    baseline: Policy | PolicyKey | str | None = None,
) -> Path:
    """Draw a chart of the page for a paper; the ending of ``output`` says the format.

    The result is one, or its folder. Of a sweep the figure shows the first variation with the
    values ``at``. One column wide; a map of several policies takes both. ``baseline`` is used in
    the place of the one of the result.
    """
    if kind not in KINDS:
        raise ValueError(f"there is no figure {kind!r}; there are {', '.join(KINDS)}")
    opened = numbers.open_result(result, baseline)
    if not opened.entries:
        raise ValueError(f"{opened.path}: no run is finished yet, so there is nothing to draw")
    if kind == "map" and at:
        raise ValueError("the figure map shows every setting: leave out the one to show it at")
    variation = _find_variation(opened, at or {})
    with paper_style() as plt:
        figure = KINDS[kind](opened, variation)
        try:
            save(figure, Path(output))
        finally:
            plt.close(figure)
    return Path(output)


def _find_variation(result: Result, at: Variation) -> Variation:
    """The first finished variation with these values, by whole names or their last parts."""
    finished = numbers.finished_variations(result)
    found = [v for v in finished if all(_has(v, name, value) for name, value in at.items())]
    if not found:
        there = "; ".join(map(variation_text, finished))
        raise ValueError(f"no finished setting has {variation_text(at)}; there are {there}")
    return found[0]


def _has(variation: Variation, name: str, value: Any) -> bool:
    return any(
        held == value or value_text(held) == value
        for known, held in variation.items()
        if name in (known, last_part(known))
    )


def _accuracy(result: Result, variation: Variation) -> "Figure":
    curves = numbers.curves(result, variation)
    runs = {name: each.runs for name, each in curves.items()}
    means = {name: each.accuracy for name, each in curves.items()}
    return _figure(accuracy_curves(means, runs=runs))


def _reached(result: Result, variation: Variation) -> "Figure":
    curves = numbers.curves(result, variation)
    lines = {name: (each.reached, np.asarray(each.accuracy.mean)) for name, each in curves.items()}
    return _figure(policy_lines(lines, "distinct UEs reached", "test accuracy"))


def _ages(result: Result, variation: Variation) -> "Figure":
    curves = numbers.curves(result, variation)
    plots: dict[str, Callable[[Curves], Numbers]] = {
        "mean age": lambda each: each.age_mean,
        "95th percentile": lambda each: each.age_95,
        "largest age": lambda each: each.age_largest,
    }
    figure, axes = _pyplot().subplots(
        3, 1, figsize=(COLUMN_IN, 4.6), layout="constrained", sharex=True
    )
    for axis, (label, values) in zip(axes, plots.items(), strict=True):
        lines = {name: _over_rounds(values(each)) for name, each in curves.items()}
        policy_lines(lines, "communication round", label, axis)
        axis.get_legend().remove()
        axis.label_outer()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure  # type: ignore[no-any-return]


def _distance(result: Result, variation: Variation) -> "Figure":
    centres_m = numbers.ring_centres_m(result.scenario.with_(**variation))
    lines = {
        name: (centres_m, each.served)
        for name, each in numbers.curves(result, variation).items()
        if centres_m is not None and each.served is not None
    }
    if not lines:
        raise ValueError(f"{result.path}: the runs do not say where the UEs are: no distances")
    label = "share of rounds served"
    return _figure(policy_lines(lines, "distance from the AP (m)", label, markers=True))


def _diversity(result: Result, variation: Variation) -> "Figure":
    curves = numbers.curves(result, variation)
    lines = {name: _over_rounds(each.diversity) for name, each in curves.items()}
    return _figure(policy_lines(lines, "communication round", "gradient diversity"))


def _labels(result: Result, variation: Variation) -> "Figure":
    held = numbers.labels(result, variation)
    if held is None:
        raise ValueError(f"{result.path}: the runs do not say which classes the UEs hold")
    return _figure(label_distribution(held.counts, held.class_names, _new_axis(COLUMN_IN, 2.2)))


def _map(result: Result, _: Variation) -> "Figure":
    squares = numbers.sweep_map(result)
    if squares is None:
        raise ValueError(f"{result.path}: a map needs a sweep with at least two policies")
    count = len(squares.policies)
    figure, axes = _pyplot().subplots(
        1, count, figsize=(COLUMN_IN if count == 1 else PAGE_IN, 0.9 + 0.42 * len(squares.rows)),
        layout="constrained", sharey=True, squeeze=False,
    )  # fmt: skip
    rows = [row.replace(", ", "\n") for row in squares.rows]
    for layer, axis in enumerate(axes[0]):
        gains, p_values = squares.gains[layer], squares.p_values[layer]
        gain_map(gains, p_values, squares.columns, rows, squares.limit, axis)
        axis.set_title(f"{squares.policies[layer]} over {squares.baseline}", fontsize=7)
        axis.set_xlabel(last_part(squares.column_name))
    return figure  # type: ignore[no-any-return]


#: The figures by name.
KINDS: dict[str, "Callable[[Result, Variation], Figure]"] = {
    "accuracy": _accuracy,
    "reached": _reached,
    "ages": _ages,
    "distance": _distance,
    "diversity": _diversity,
    "labels": _labels,
    "map": _map,
}


def _over_rounds(values: Numbers) -> tuple[Numbers, Numbers]:
    return np.arange(1.0, values.size + 1), values


def _figure(axis: Any) -> "Figure":
    return axis.figure  # type: ignore[no-any-return]
