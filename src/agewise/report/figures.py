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
from agewise.report.amounts import at_text
from agewise.report.claims import EARLY
from agewise.report.costs import axis_views, draw_costs
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
from agewise.report.findings import compared_at
from agewise.report.numbers import Variation
from agewise.report.setting import Setting
from agewise.report.style import COLUMN_IN, PAGE_IN, new_figure, paper_style, save
from agewise.report.text import last_part, value_text, variation_text
from agewise.report.verdict import at_point

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
    the place of the one of the result. Accuracy, gain, forest and map can be drawn ``over``
    seconds, joules, uses or bits as well as rounds.
    """
    if kind not in KINDS:
        raise ValueError(f"there is no figure {kind!r}; there are {', '.join(KINDS)}")
    opened = numbers.open_result(result, baseline)
    if not opened.entries:
        raise ValueError(f"{opened.path}: no run is finished yet, so there is nothing to draw")
    if kind == "map" and at:
        raise ValueError("the figure map shows every setting: leave out the one to show it at")
    axis = statistics.axis_of(over)
    if axis.column is not None and kind in _OVER_ROUNDS:
        able = ", ".join(name for name in KINDS if name not in _OVER_ROUNDS)
        raise ValueError(
            f"the figure {kind} is not drawn over {axis.name}: {_OVER_ROUNDS[kind]}; {able} are"
        )
    chosen = None if policies is None else tuple(opened.key(policy) for policy in policies)
    setting = Setting(opened, _find_variation(opened, at or {}), chosen, axis)
    if not setting.runs:
        raise ValueError(f"{opened.path}: none of the policies to draw has a finished run")
    path = Path(output)
    with paper_style(style), mpl.rc_context({"text.parse_math": False}):
        inches = None if width is None else _inches(width)
        figure = KINDS[kind](setting, inches)
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
        setting.means, figure.subplots(), runs=setting.accuracies, indices=setting.indices,
        over=setting.over,
    )  # fmt: skip
    return figure


def _gain(setting: Setting, width: float | None) -> Figure:
    gains, over = setting.gains, setting.over
    if gains is None:
        raise ValueError(f"{setting.result.path}: a gain needs two policies with common seeds")
    figure = new_figure(width or COLUMN_IN, _HEIGHT_IN)
    early = EARLY if over is None else None
    mean = statistics.mean_interval(gains)
    axis = gain_curve(mean, early, figure.subplots(), runs=gains, over=over)
    axis.set_title(f"{setting.rival} over {setting.baseline}", fontsize="medium")
    return figure


def _costs(setting: Setting, width: float | None) -> Figure:
    views = axis_views(setting)
    if not any(view.gains for view in views):
        raise ValueError(f"{setting.result.path}: a gain needs two policies with common seeds")
    figure = new_figure(width or COLUMN_IN, 1.2 + 0.35 * len(views))
    draw_costs(setting, views, figure.subplots())
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
    rows = setting.rows(setting.result.table(setting.axis).to_dicts())
    end = compared_at(setting, rows)
    against = setting.against_baseline(end)
    if not against:
        raise ValueError(f"{setting.result.path}: a gain needs two policies with common seeds")
    figure = new_figure(width or COLUMN_IN, 0.6 + 0.3 * len(against))
    p_values = {name: at_point(rows[name], "p", end) for name in against}
    axis = forest(against, figure.subplots(), p_values=p_values, indices=setting.indices)
    if setting.over is not None:
        axis.set_title(at_text(end, setting.axis), fontsize="medium")
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
    squares = numbers.sweep_map(setting.result, setting.axis)
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
    "costs": _costs,
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
#: Figures that are not drawn over what rounds cost, and why.
_OVER_ROUNDS = {
    "costs": "it shows every axis",
    "heat": "ages count rounds",
    "trade-off": "it shows means over whole runs",
    "reached": "its axis counts the UEs that were reached",
    "ages": "ages count rounds",
    "distribution": "it shows the end of the runs",
    "distance": "its axis is the distance from the AP",
    "classes": "it shows the end of the runs",
    "diversity": "diversity is that of the updates of one round",
    "labels": "it shows the data",
}
