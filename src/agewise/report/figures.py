"""Figures for papers: the pictures of the page, of a column's width, with embedded fonts."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from agewise import statistics
from agewise.experiment import Result
from agewise.files import write_whole
from agewise.policies import Policy
from agewise.records import PolicyKey
from agewise.report import numbers
from agewise.report.claims import EARLY
from agewise.report.draw.ages import age_colours, age_distribution, age_heat_map
from agewise.report.draw.comparison import class_gains, forest, trade_off
from agewise.report.draw.curves import (
    accuracy_curves,
    gain_curve,
    label_distribution,
    over_rounds,
    policy_lines,
)
from agewise.report.draw.maps import gain_map
from agewise.report.figure_data import figure_csv
from agewise.report.numbers import Variation
from agewise.report.setting import Setting
from agewise.report.style import COLUMN_IN, PAGE_IN, new_figure, paper_style, save
from agewise.report.text import last_part, value_text, variation_text

#: Widths by name.
WIDTHS = {"column": COLUMN_IN, "page": PAGE_IN}
_HEIGHT_IN = 2.6


def draw_figure(
    result: Result | Path | str,
    kind: str,
    output: Path | str,
    at: Variation | None = None,
    *,
    baseline: Policy | PolicyKey | str | None = None,
    policies: Iterable[Policy | PolicyKey | str] | None = None,
    width: str | float | None = None,
    ylim: tuple[float, float] | None = None,
    style: str = "paper",
    over: str = "rounds",
) -> Path:
    """Draw a picture of the page for a paper; the ending of ``output`` says the format.

    The result is one, or its folder. Of a sweep the figure shows the first variation with the
    values ``at``. ``width`` is "column" (3.5 inches), "page" (7.16) or a number of inches: left
    out, it is a column, or both for a figure of several parts. ``policies`` are those to show,
    ``ylim`` the ends of the vertical axis, ``style`` is "paper", "slides", or a style of
    Matplotlib. An output that ends in .csv has the numbers of the figure. ``baseline`` is used in
    the place of the one of the result. The accuracy can be drawn ``over`` seconds, joules, uses or
    bits as well as rounds.
    """
    if kind not in KINDS:
        raise ValueError(f"there is no figure {kind!r}; there are {', '.join(KINDS)}")
    opened = numbers.open_result(result, baseline)
    if not opened.entries:
        raise ValueError(f"{opened.path}: no run is finished yet, so there is nothing to draw")
    if kind == "map" and at:
        raise ValueError("the figure map shows every setting: leave out the one to show it at")
    axis = statistics.axis_of(over)
    if axis.column is not None and kind != "accuracy":
        raise ValueError(f"the figure {kind} is not drawn over {over}: accuracy is")
    chosen = None if policies is None else tuple(opened.key(policy) for policy in policies)
    setting = Setting(opened, _find_variation(opened, at or {}), chosen)
    if not setting.runs:
        raise ValueError(f"{opened.path}: none of the policies to draw has a finished run")
    path = Path(output)
    with paper_style(style), mpl.rc_context({"text.parse_math": False}):
        inches = None if width is None else _inches(width)
        if axis.column is None:
            figure = KINDS[kind](setting, inches)
        else:
            figure = _accuracy_over(setting, inches, axis)
        if ylim is not None:
            for part in figure.axes:
                part.set_ylim(*ylim)
        _write(figure, path)
    return path


def _write(figure: Figure, path: Path) -> None:
    if path.suffix == ".csv":
        with write_whole(path) as temporary:
            temporary.write_text(figure_csv(figure), encoding="utf-8", newline="\n")
        return
    try:
        save(figure, path)
    except RuntimeError as error:
        if path.suffix != ".pgf":
            raise
        raise ValueError(
            f"{path.name}: a .pgf needs LaTeX to measure its text (xelatex); .csv has the numbers"
        ) from error


def _inches(width: str | float) -> float:
    text = str(width)
    if text in WIDTHS:
        return WIDTHS[text]
    if re.fullmatch(r"\d+(\.\d+)?", text) and 1 <= float(text) <= 20:
        return float(text)
    raise ValueError(f"the width is column, page, or inches from 1 to 20, not {text!r}")


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


# The kinds: each makes a figure of this width in inches, or of the one that suits it


def _accuracy(setting: Setting, width: float | None) -> Figure:
    figure = new_figure(width or COLUMN_IN, _HEIGHT_IN)
    accuracy_curves(
        {name: each.accuracy for name, each in setting.curves.items()}, figure.subplots(),
        runs={name: each.runs for name, each in setting.curves.items()}, indices=setting.indices,
    )  # fmt: skip
    return figure


def _accuracy_over(setting: Setting, width: float | None, axis: statistics.Axis) -> Figure:
    points, runs = setting.over(axis)
    figure = new_figure(width or COLUMN_IN, _HEIGHT_IN)
    curves = {name: statistics.mean_interval(each) for name, each in runs.items()}
    accuracy_curves(
        curves, figure.subplots(), runs=runs, indices=setting.indices, over=(axis.label, points)
    )
    return figure


def _gain(setting: Setting, width: float | None) -> Figure:
    gains = setting.gains
    if gains is None:
        raise ValueError(f"{setting.result.path}: a gain needs two policies with common seeds")
    figure = new_figure(width or COLUMN_IN, _HEIGHT_IN)
    axis = gain_curve(statistics.mean_interval(gains), EARLY, figure.subplots(), runs=gains)
    axis.set_title(f"{setting.rival} over {setting.baseline}", fontsize="medium")
    return figure


def _heat(setting: Setting, width: float | None) -> Figure:
    """The compared policies side by side, or those that were chosen."""
    names = list(setting.runs) if setting.policies is not None else setting.pair
    figure = new_figure(width or (PAGE_IN if len(names) > 1 else COLUMN_IN), 2.4)
    axes = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for axis, name in zip(axes, names, strict=True):
        ages, where = setting.history(name).ages, setting.distances_m(name)
        age_heat_map(ages, where, setting.oldest, axis)
        axis.set_title(name, fontsize="medium")
        axis.label_outer()
    scale = mpl.cm.ScalarMappable(mpl.colors.Normalize(0, setting.oldest), age_colours())
    figure.colorbar(scale, ax=list(axes), label="age (rounds)", extend="max", pad=0.02)
    return figure


def _forest(setting: Setting, width: float | None) -> Figure:
    against = setting.against_baseline()
    if not against:
        raise ValueError(f"{setting.result.path}: a gain needs two policies with common seeds")
    rows = setting.rows(setting.result.table().to_dicts())
    figure = new_figure(width or COLUMN_IN, 0.6 + 0.3 * len(against))
    p_values = {name: rows[name][f"p@{setting.rounds}"] for name in against}
    forest(against, figure.subplots(), p_values=p_values, indices=setting.indices)
    return figure


def _trade_off(setting: Setting, width: float | None) -> Figure:
    figure = new_figure(width or COLUMN_IN, _HEIGHT_IN)
    points = {
        name: (float(each.ues_per_round.mean()), float(each.age_mean.mean()))
        for name, each in setting.measured.items()
    }
    labels = "updates a round", "mean age (rounds)"
    trade_off(points, *labels, figure.subplots(), indices=setting.indices)
    return figure


def _reached(setting: Setting, width: float | None) -> Figure:
    figure = new_figure(width or COLUMN_IN, _HEIGHT_IN)
    lines = {
        n: (each.reached, np.asarray(each.accuracy.mean)) for n, each in setting.curves.items()
    }
    labels = "distinct UEs reached", "test accuracy"
    policy_lines(lines, *labels, figure.subplots(), indices=setting.indices)
    return figure


def _ages(setting: Setting, width: float | None) -> Figure:
    figure = new_figure(width or COLUMN_IN, 4.6)
    axes = figure.subplots(3, 1, sharex=True)
    names = {"age_mean": "mean age", "age_95": "95th percentile", "age_largest": "largest age"}
    for axis, (name, label) in zip(axes, names.items(), strict=True):
        values = {policy: getattr(each, name) for policy, each in setting.curves.items()}
        over_rounds(values, f"{label} (rounds)", axis, indices=setting.indices)
        axis.get_legend().remove()
        axis.label_outer()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure


def _distribution(setting: Setting, width: float | None) -> Figure:
    figure = new_figure(width or COLUMN_IN, _HEIGHT_IN)
    ages = {name: setting.last_ages(name) for name in setting.runs}
    age_distribution(ages, figure.subplots(), indices=setting.indices)
    return figure


def _distance(setting: Setting, width: float | None) -> Figure:
    centres_m = numbers.ring_centres_m(setting.scenario)
    lines = {
        name: (centres_m, each.served)
        for name, each in setting.curves.items()
        if centres_m is not None and each.served is not None
    }
    if not lines:
        path = setting.result.path
        raise ValueError(f"{path}: the runs do not say where the UEs are: no distances")
    figure = new_figure(width or COLUMN_IN, _HEIGHT_IN)
    labels = "distance from the AP (m)", "share of rounds heard"
    policy_lines(lines, *labels, figure.subplots(), markers=True, indices=setting.indices)
    return figure


def _classes(setting: Setting, width: float | None) -> Figure:
    found = setting.class_gains()
    if found is None:
        raise ValueError(
            f"{setting.result.path}: needs two policies, where the UEs are and classes measured"
        )
    figure = new_figure(width or COLUMN_IN, _HEIGHT_IN)
    class_gains(*found, figure.subplots(), index=setting.indices[setting.rival])
    return figure


def _diversity(setting: Setting, width: float | None) -> Figure:
    figure = new_figure(width or COLUMN_IN, _HEIGHT_IN)
    values = {name: each.diversity for name, each in setting.curves.items()}
    over_rounds(values, "gradient diversity", figure.subplots(), indices=setting.indices)
    return figure


def _labels(setting: Setting, width: float | None) -> Figure:
    held = numbers.labels(setting.result, setting.variation)
    if held is None:
        raise ValueError(f"{setting.result.path}: the runs do not say which classes the UEs hold")
    figure = new_figure(width or COLUMN_IN, 2.2)
    label_distribution(held.counts, held.class_names, figure.subplots())
    return figure


def _map(setting: Setting, width: float | None) -> Figure:
    squares = numbers.sweep_map(setting.result)
    if squares is None:
        raise ValueError(f"{setting.result.path}: a map needs a sweep with at least two policies")
    shown = [each for each in squares.policies if each in setting.runs] or squares.policies
    usual = COLUMN_IN if len(shown) == 1 else PAGE_IN
    figure = new_figure(width or usual, 0.9 + 0.42 * len(squares.rows))
    axes = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    rows = [row.replace(", ", "\n") for row in squares.rows]
    for axis, name in zip(axes, shown, strict=True):
        layer = squares.policies.index(name)
        gains, p_values = squares.gains[layer], squares.p_values[layer]
        gain_map(gains, p_values, squares.columns, rows, squares.limit, axis)
        axis.set_title(f"{name} over {squares.baseline} (points)", fontsize="medium")
        axis.set_xlabel(last_part(squares.column_name))
    return figure


#: The figures by name.
KINDS: dict[str, Callable[[Setting, float | None], Figure]] = {
    "accuracy": _accuracy,
    "gain": _gain,
    "heat": _heat,
    "forest": _forest,
    "trade-off": _trade_off,
    "reached": _reached,
    "ages": _ages,
    "distribution": _distribution,
    "distance": _distance,
    "classes": _classes,
    "diversity": _diversity,
    "labels": _labels,
    "map": _map,
}
