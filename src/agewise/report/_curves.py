"""Pictures over rounds, costs, distance and UEs: a line or bar for each policy."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter
from numpy.typing import NDArray

from agewise import statistics
from agewise.report import _style as style
from agewise.report._claims import EARLY
from agewise.report._setting import RINGS, Numbers, Setting
from agewise.report.pictures import Shown
from agewise.statistics import FEWEST_SEEDS
from agewise.tables._words import at_text, counted, percent_text, sentence_case

#: Points ``(x, y)`` by policy.
_Lines = Mapping[str, tuple[Numbers, Numbers]]
#: The part of a run behind which the limits of accuracies are set.
_SETTLED = 0.1
#: From here on numbers of an axis are written with k, M and G.
_MANY = 1e4


def draw_gain(setting: Setting, names: Sequence[str], canvas: style.Canvas) -> Shown | None:
    """Draw the gain of the compared policy over the baseline, a thin line for each seed."""
    del names
    if setting.gains is None:
        return None
    axis, gains = canvas.subplots(), 100 * setting.gains
    axis.axhline(0.0, color=style.ink("ink"), linewidth=0.8)
    dotted = ""
    if setting.over_rounds and setting.rounds > EARLY:
        axis.axvline(EARLY, color=style.ink("soft"), linewidth=0.8, linestyle=":")
        dotted = f" The dotted line is the paper's round {EARLY}."
    mean = _line_with_band(axis, setting.points, gains, 0, "mean", thin=style.ink("others"))
    _name_points(axis, setting)
    # Behind the first rounds the limits hold the interval and nineteen of twenty points of the
    # runs, but not the ends of intervals that are far beyond these.
    late = slice(int(_SETTLED * gains.shape[1]), None)
    late = slice(None) if np.isnan(gains[:, late]).all() else late
    usual = np.nanquantile(gains[:, late], (0.025, 0.975))
    parts = [*(np.asarray(each)[late] for each in (mean.low, mean.high, mean.mean)), usual]
    known = np.concatenate([part[~np.isnan(part)] for part in parts])
    settled = known[np.abs(known) <= 3 * np.abs(usual).max() + 1]
    pad = 0.5 + 0.05 * float(np.ptp(settled))
    axis.set_ylim(float(settled.min()) - pad, float(settled.max()) + pad)
    axis.set_ylabel("gain (percentage points)")
    style.title_in_paper(axis, f"{setting.rival} minus {setting.baseline}")
    return Shown(
        f"How the gain of {setting.display_name(setting.rival)} changes along a run",
        f"Test accuracy of {setting.rival} minus that of {setting.baseline} on the same seed"
        f"{_along(setting)}: the mean over {counted(len(gains), 'seed')}"
        f"{_with_interval(len(gains))}, and a thin line for each seed.{dotted}",
    )


def draw_accuracy(setting: Setting, names: Sequence[str], canvas: style.Canvas) -> Shown | None:
    """Draw the accuracies with their intervals; on the page only the pair's have these."""
    if all(np.isnan(setting.means[name].mean).all() for name in setting.pair):
        return None  # nothing was evaluated, as in a federation whose clients keep their samples
    axis, lowest, ends = canvas.subplots(), list[float](), dict[str, float]()
    banded = setting.pair if style.on_page() else names
    for name in names:
        index, known = setting.indices[name], ~np.isnan(setting.means[name].mean)
        x, mean = setting.points[known], np.asarray(setting.means[name].mean)[known]
        if name in banded:
            _line_with_band(axis, setting.points, setting.accuracies[name], index, name)
        else:
            axis.plot(
                x, mean, color=style.colour(index), linewidth=0.9, linestyle=style.dash(index),
                label=name, zorder=1.5,
            )  # fmt: skip
        if x.size:
            ends[name] = float(mean[-1])
            lowest.append(float(mean[x >= x[-1] * _SETTLED].min()))
    axis.set_ylabel("test accuracy")
    _name_points(axis, setting)
    low, high = axis.get_ylim()
    if style.on_page() and lowest:  # the first rounds climb from nowhere: what follows is compared
        low = max(low, min(lowest) - 0.5 * (max(ends.values()) - min(lowest)) - 0.01)
    axis.set_ylim(max(0.0, low), min(1.0, high))
    height_in = max(3.2, style.height_of_names(len(ends)))
    if style.on_page():
        style.name_ends(axis, ends, setting.indices, height_in)
    else:
        axis.legend(loc="lower right")
    reached = {n: setting.learning_curves[n].at(setting.end).mean() for n in setting.pair}
    said = setting.listed(
        {n: "unknown" if np.isnan(x) else f"{percent_text(x)}%" for n, x in reached.items()}
    )
    fewest = min(len(setting.runs[name]) for name in setting.pair)
    return Shown(
        f"{sentence_case(at_text(setting.end, setting.axis))}: {said}",
        f"Test accuracy{_along(setting)}, the mean over the seeds{_with_interval(fewest)}"
        f"{' for the compared pair' if len(setting.runs) > len(setting.pair) else ''}.",
        height_in if style.on_page() else None,
    )


def draw_ages(setting: Setting, names: Sequence[str], canvas: style.Canvas) -> Shown:
    """Draw the mean, the 95th percentile and the largest age, one below the other."""
    axes = canvas.subplots(3, 1, sharex=True)
    measures: dict[str, Callable[[NDArray[np.int64]], Numbers]] = {
        "mean age": lambda ages: ages.mean(axis=2),
        "95th percentile": lambda ages: np.percentile(ages, 95, axis=2),
        "largest age": lambda ages: ages.max(axis=2),
    }
    for axis, (label, measure) in zip(axes, measures.items(), strict=True):
        values = {name: measure(setting.ages(name)).mean(axis=0) for name in names}
        _draw_rounds(axis, setting, values, f"{label} (rounds)")
        axis.get_legend().remove()
        axis.label_outer()
    canvas.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return Shown("Ages over the rounds", "Means over the seeds.", 4.6)


def draw_unheard(setting: Setting, names: Sequence[str], canvas: style.Canvas) -> Shown:
    """Draw how many UEs had sent no update by the end of each round."""
    values = {name: setting.ues - setting.mean_of(name, "reached") for name in names}
    _draw_rounds(canvas.subplots(), setting, values, f"{style.ues()} never heard from")
    said = setting.listed({name: f"{x[-1]:.0f}" for name, x in values.items()})
    return Shown(
        f"Phones never heard from in {setting.rounds} rounds: {said}",
        f"How many of {setting.ues} phones had sent no update by then, mean over the seeds.",
        4.8 if style.on_page() else None,
    )


def draw_diversity(setting: Setting, names: Sequence[str], canvas: style.Canvas) -> Shown | None:
    """Draw the gradient diversity of the updates of each round."""
    values = {name: setting.mean_of(name, "gradient_diversity") for name in names}
    if all(np.isnan(each).all() for each in values.values()):
        return None
    _draw_rounds(canvas.subplots(), setting, values, "gradient diversity")
    mean = setting.listed({name: f"{np.nanmean(x):.2f}" for name, x in values.items()})
    return Shown(
        f"How diverse the updates of a round are: {mean}",
        "Gradient diversity: 1/S for S equal updates in a round, 1 for updates at right angles "
        "to each other, more if they oppose each other.",
    )


def draw_distance(setting: Setting, names: Sequence[str], canvas: style.Canvas) -> Shown | None:
    """Draw the share of rounds in which UEs are heard, in rings around the access point."""
    edge_m, lines = setting.scenario.channel.reach_m, {}
    for name in names:
        served = setting.served(name)
        if edge_m is None or served is None:
            return None
        lines[name] = (np.arange(RINGS) + 0.5) * edge_m / RINGS, 100 * served
    labels = "distance from the AP (m)", "rounds heard (%)"
    _draw_lines(canvas.subplots(), setting, lines, *labels, markers=True)
    edge = setting.listed({n: f"{y[~np.isnan(y)][-1]:.0f}%" for n, (_, y) in lines.items()})
    return Shown(
        f"Rounds in which a phone at the edge is heard: {edge}",
        "Share of the rounds in which an update of a phone at this distance arrived, mean over "
        "ten rings of equal width and all seeds.",
    )


# Parts of pictures


def _line_with_band(
    axis: Axes, points: Numbers, runs: Numbers, index: int, label: str, thin: str | None = None
) -> statistics.Interval:
    """Draw the mean of ``runs[seed, point]`` with its interval; few runs, or if ``thin``, each.

    An interval of fewer than five seeds would say more than is known.
    """
    curve = statistics.mean_interval(runs)
    mean, low, high = (np.asarray(part) for part in (curve.mean, curve.low, curve.high))
    known = ~np.isnan(mean)
    x, few = points[known], len(runs) < FEWEST_SEEDS
    if few or thin:
        for run in runs:
            axis.plot(x, run[known], color=thin or style.colour(index), linewidth=0.4, alpha=0.6)
    if not few:
        axis.fill_between(
            x, low[known], high[known], color=style.colour(index), alpha=0.2, linewidth=0
        )
    axis.plot(
        x, mean[known], color=style.colour(index), linestyle=style.dash(index), label=label,
        linewidth=1.8 if style.on_page() else 1.2,
    )  # fmt: skip
    return curve


def _draw_lines(
    axis: Axes,
    setting: Setting,
    lines: _Lines,
    x_label: str,
    y_label: str,
    *,
    markers: bool = False,
) -> None:
    """Draw the points ``(x, y)`` of each policy, joined; those without a number are left out."""
    for name, (x, y) in lines.items():
        index, known = setting.indices[name], ~(np.isnan(x) | np.isnan(y))
        axis.plot(
            x[known], y[known], color=style.colour(index), label=name, linestyle=style.dash(index),
            marker=style.marker(index) if markers else "", markersize=3,
        )  # fmt: skip
    axis.set(xlabel=x_label, ylabel=y_label)
    style.legend_above(axis)


def _draw_rounds(axis: Axes, setting: Setting, values: Mapping[str, Numbers], y_label: str) -> None:
    """Draw ``values[policy][round]``."""
    lines = {name: (np.arange(1.0, each.size + 1), each) for name, each in values.items()}
    _draw_lines(axis, setting, lines, "", y_label)
    axis.set_xlim(1, max(2, setting.rounds))
    style.count_rounds(axis)


def _name_points(axis: Axes, setting: Setting) -> None:
    """Name the points of the setting: rounds, or costs with their unit."""
    if setting.over_rounds:
        axis.set_xlim(1, max(2, setting.points.size))
        style.count_rounds(axis)
        return
    last = float(setting.points.max())
    axis.set(xlabel=setting.axis.label, xlim=(0.0, last))
    if last >= _MANY:
        axis.xaxis.set_major_formatter(EngFormatter())


def _along(setting: Setting) -> str:
    """What accuracies are shown over, if not rounds."""
    what = f" over {setting.axis.what}, up to the cost of the cheapest run"
    return "" if setting.over_rounds else what


def _with_interval(seeds: int) -> str:
    return " with its 95% interval" if seeds >= FEWEST_SEEDS else ""
