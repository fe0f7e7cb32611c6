"""Figures for papers, one for each chart of the page."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from agewise.report import numbers
from agewise.report.curves import accuracy_curves
from agewise.report.labels import label_distribution
from agewise.report.lines import policy_lines
from agewise.report.map import gain_map
from agewise.report.squares import say, squares
from agewise.report.style import COLUMN_IN, PAGE_IN, new_axis, paper_style, pyplot, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from agewise.experiment import Result

Variation = Mapping[str, Any]


def draw_figure(result: "Result", kind: str, path: Path | str, at: Variation | None = None) -> Path:
    """Draw a chart of the page for a paper; the ending of ``path`` says the format.

    Of a sweep it shows the first variation with the values ``at``. One column wide; a map of
    several policies takes both.
    """
    if kind not in KINDS:
        raise ValueError(f"there is no figure {kind!r}; there are {', '.join(KINDS)}")
    if not result.entries:
        raise ValueError(f"{result.path}: no run is finished yet, so there is nothing to draw")
    variation = _variation(result, at or {})
    with paper_style() as plt:
        figure = KINDS[kind](result, variation)
        try:
            save(figure, Path(path))
        finally:
            plt.close(figure)
    return Path(path)


def _accuracy(result: "Result", variation: Variation) -> "Figure":
    curves = numbers.curves(result, variation)
    return _figure(accuracy_curves({name: own.accuracy for name, own in curves.items()}))


def _reached(result: "Result", variation: Variation) -> "Figure":
    curves = numbers.curves(result, variation)
    lines = {name: (own.reached, np.asarray(own.accuracy.mean)) for name, own in curves.items()}
    return _figure(policy_lines(lines, "distinct UEs reached", "test accuracy"))


def _ages(result: "Result", variation: Variation) -> "Figure":
    curves = numbers.curves(result, variation)
    plots = {"age_mean": "mean age", "age_95": "95th percentile", "age_peak": "peak age"}
    figure, axes = pyplot().subplots(
        3, 1, figsize=(COLUMN_IN, 4.6), layout="constrained", sharex=True
    )
    for axis, (what, label) in zip(axes, plots.items(), strict=True):
        lines = {name: _over_rounds(getattr(own, what)) for name, own in curves.items()}
        policy_lines(lines, "communication round", label, axis)
        axis.get_legend().remove()
        axis.label_outer()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure  # type: ignore[no-any-return]


def _distance(result: "Result", variation: Variation) -> "Figure":
    radius_m = result.scenario.with_(**variation).cell.radius_m
    centres = numbers.ring_centres(radius_m)
    curves = numbers.curves(result, variation)
    lines = {name: (centres, own.served) for name, own in curves.items()}
    label = "share of rounds served"
    return _figure(policy_lines(lines, "distance from the AP (m)", label, markers=True))


def _diversity(result: "Result", variation: Variation) -> "Figure":
    curves = numbers.curves(result, variation)
    lines = {name: _over_rounds(own.diversity) for name, own in curves.items()}
    return _figure(policy_lines(lines, "communication round", "gradient diversity"))


def _labels(result: "Result", variation: Variation) -> "Figure":
    seed = min(entry.seed for entry in result.entries if entry.variation == variation)
    held = numbers.labels(result.scenario.with_(**variation), seed)
    return _figure(label_distribution(held.counts, held.names, new_axis(COLUMN_IN, 2.2)))


def _map(result: "Result", _: Variation) -> "Figure":
    drawn = squares(result)
    if drawn is None:
        raise ValueError(f"{result.path}: a map needs a sweep with at least two policies")
    count = len(drawn.policies)
    figure, axes = pyplot().subplots(
        1, count, figsize=(COLUMN_IN if count == 1 else PAGE_IN, 0.9 + 0.42 * len(drawn.rows)),
        layout="constrained", sharey=True, squeeze=False,
    )  # fmt: skip
    rows = [row.replace(", ", "\n") for row in drawn.rows]
    for layer, axis in enumerate(axes[0]):
        gain_map(drawn.gains[layer], drawn.p_values[layer], drawn.columns, rows, drawn.limit, axis)
        axis.set_title(f"{drawn.policies[layer]} over {drawn.baseline}", fontsize=7)
        axis.set_xlabel(drawn.column_name.split(".")[-1])
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


def _variation(result: "Result", at: Variation) -> Variation:
    finished = [v for v in result.variations if any(e.variation == v for e in result.entries)]
    found = [v for v in finished if all(v.get(name) == value for name, value in at.items())]
    if not found:
        raise ValueError(
            f"no finished setting has {say(at)}; there are {'; '.join(map(say, finished))}"
        )
    return found[0]


def _over_rounds(values: numbers.Numbers) -> tuple[numbers.Numbers, numbers.Numbers]:
    return np.arange(1.0, values.size + 1), values


def _figure(axis: Any) -> "Figure":
    return axis.figure  # type: ignore[no-any-return]
