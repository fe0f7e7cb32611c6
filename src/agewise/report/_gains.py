"""Pictures of gains: of every policy, per cost, per class and over the settings of a sweep."""

from collections.abc import Sequence
from itertools import product

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from agewise.files import read_verified_json
from agewise.report import _style as style
from agewise.report._claims import EXPLANATION
from agewise.report._costs import AxisView, axis_views
from agewise.report._setting import Setting
from agewise.report.pictures import Shown
from agewise.statistics import FEWEST_SEEDS, correlation
from agewise.tables import GainMap
from agewise.tables._words import STARS_NOTE, and_list, at_text, last_part, starred

#: How much of the width of a picture the name of a policy may take.
_NAME_WIDE = 0.3
#: The most that a square covers its background, so that its number can be read; and of one that
#: is not sure, the part of that.
_COVER, _UNSURE = 0.7, 0.3


def draw_forest(setting: Setting, names: Sequence[str], canvas: style.Canvas) -> Shown | None:
    """Draw the gain of each policy at the end with its interval and stars, the largest on top."""
    gains = {name: gain for name, gain in setting.against_baseline.items() if name in names}
    if len(gains) < (2 if style.on_page() else 1):
        return None  # on the page the picture of the gain says it
    axis = canvas.subplots()
    ranked = sorted(gains.items(), key=lambda item: item[1].mean)
    axis.axvline(0.0, color=style.ink("ink"), linewidth=0.8)
    for place, (name, gain) in enumerate(ranked):
        index = setting.indices[name]
        middle, low, high = (100 * x for x in (gain.mean, gain.low, gain.high))
        axis.plot([low, high], [place, place], color=style.colour(index), linewidth=1.6)
        axis.plot(
            middle, place, marker=style.marker(index), color=style.colour(index), markersize=5,
            label=name, linestyle="",
        )  # fmt: skip
        axis.annotate(
            starred(gain), (1.01, place), xycoords=("axes fraction", "data"), va="center",
            color=style.ink("ink"), annotation_clip=False,
        )  # fmt: skip
    _name_rows(axis, [name.replace(" (", "\n(") for name, _ in ranked])
    axis.set(ylim=(-0.6, len(ranked) - 0.4), xlabel="gain in test accuracy (percentage points)")
    where, baseline = at_text(setting.end, setting.axis), setting.display_name(setting.pair[-1])
    if not setting.over_rounds:
        style.title_in_paper(axis, where)
    found = [gain.verdict for gain in gains.values()]
    finding = (
        f"Against {baseline}, {found.count('better')} of {len(found)} policies are shown to be "
        f"better and {found.count('worse')} worse"
    )
    if "too few seeds" in found:
        finding = f"All policies against {baseline}: too few seeds for a verdict"
    return Shown(
        finding,
        f"Gain over {setting.baseline} {where}, the paired mean with its 95% interval; stars are "
        f"of the corrected tests ({STARS_NOTE}).",
        0.9 + 0.42 * len(gains) if style.on_page() else 0.6 + 0.3 * len(gains),
    )


def draw_costs(setting: Setting, names: Sequence[str], canvas: style.Canvas) -> Shown | None:
    """Draw the mean gain of each policy on every axis, a row an axis, joined for each policy.

    Lines that cross say that the order turns. Where there are too many policies for colours, only
    the pair and the leaders have one and an interval; the others are grey.
    """
    views, baseline = axis_views(setting), setting.baseline or ""
    found = dict.fromkeys(name for view in views for name in view.gains if name in names)
    if not found:
        return None
    axis = canvas.subplots()
    axis.axvline(0.0, color=style.ink("ink"), linewidth=1.2, label=f"{baseline} (baseline)")
    first = [*setting.pair, *(_leader(view, baseline) for view in views)]
    bright = [name for name in found if len(found) < len(style.LIGHT) or name in first]
    rows = np.arange(len(views), dtype=np.float64)
    for name in found:
        index = setting.indices[name]
        known = [(row, view.gains[name]) for row, view in enumerate(views) if name in view.gains]
        middle, at = [100 * gain.mean for _, gain in known], rows[[row for row, _ in known]]
        if name not in bright:
            axis.plot(middle, at, color=style.ink("others"), linewidth=0.8, zorder=1.5)
            continue
        at = at + 0.1 * (bright.index(name) - (len(bright) - 1) / 2)
        for row, (_, gain) in zip(at, known, strict=True):
            if not np.isnan(gain.low):
                ends = [100 * gain.low, 100 * gain.high]
                axis.plot(ends, [row, row], color=style.colour(index), linewidth=1.0, alpha=0.6)
        axis.plot(
            middle, at, color=style.colour(index), marker=style.marker(index), markersize=5,
            linestyle=":", linewidth=1.0, label=name,
        )  # fmt: skip
    _name_rows(axis, [view.head for view in views])
    axis.set(ylim=(len(views) - 0.5, -0.5), xlabel="gain in test accuracy (points)")
    style.legend_above(axis)
    legend_in = 0.17 * min(len(setting.runs), len(style.LIGHT))
    return Shown(
        _leading(views, baseline),
        f"Mean gain over {baseline} in test accuracy, up to the last round or up to the "
        "cost of the cheapest run, with its 95% interval. Where lines cross, the order turns. "
        f"{_shown_apart(setting, views)}",
        1.0 + 0.45 * len(views) + legend_in if style.on_page() else 1.2 + 0.35 * len(views),
    )


def _leader(view: AxisView, baseline: str) -> str:
    """The policy with the highest mean gain; the baseline's own is 0."""
    means = {baseline: 0.0} | {name: gain.mean for name, gain in view.gains.items()}
    return max(means, key=lambda name: means[name])


def _leading(views: Sequence[AxisView], baseline: str) -> str:
    """Who is first by the mean, per round and per what rounds cost."""
    first: dict[str, list[str]] = {}
    for view in views:
        first.setdefault(_leader(view, baseline), []).append(f"per {view.axis.one}")
    if len(first) == 1:
        return f"Highest mean accuracy, whatever is counted: {next(iter(first))}"
    phrases = [f"{name} {and_list(axes)}" for name, axes in first.items()]
    return f"Highest mean accuracy: {'; '.join(phrases)}"


def _shown_apart(setting: Setting, views: Sequence[AxisView]) -> str:
    """Where the compared policies were shown to differ."""
    rival, baseline = map(setting.display_name, setting.pair)
    found: dict[str, list[str]] = {}
    for view in views:
        if setting.rival in view.gains:
            verdict = view.gains[setting.rival].verdict
            found.setdefault(verdict, []).append(f"per {view.axis.one}")
    if "too few seeds" in found:
        return "There are too few seeds for a verdict."
    words = {
        "better": f"{rival} is ahead of {baseline}",
        "worse": f"{rival} is behind {baseline}",
        "not shown": f"a difference between {rival} and {baseline} is not shown",
    }
    if len(found) == 1:
        phrase = f"{words[next(iter(found))]}, whatever is counted."
    else:
        phrase = "; ".join(f"{words[each]} {and_list(axes)}" for each, axes in found.items()) + "."
    return f"At equal cost {phrase}" if found else ""


def draw_trade_off(setting: Setting, names: Sequence[str], canvas: style.Canvas) -> Shown | None:
    """Draw the updates per round of each policy against its mean age, with its name beside it."""
    points = {
        name: (float(each.ues_per_round.mean()), float(each.age_mean.mean()))
        for name, each in setting.metrics.items()
        if name in names
    }
    if len(points) < 3 and style.on_page():
        return None
    axis = canvas.subplots()
    middle = np.mean([x for x, _ in points.values()])
    shifts = _apart(points)
    for name, (x, y) in points.items():
        index, left = setting.indices[name], x > middle
        axis.plot(
            x, y, marker=style.marker(index), color=style.colour(index), linestyle="", label=name
        )
        axis.annotate(
            name, (x, y), xytext=(-6 if left else 6, shifts[name]), textcoords="offset points",
            ha="right" if left else "left", va="center", fontsize="small", color=style.ink("ink"),
        )  # fmt: skip
    axis.margins(0.15, 0.2)
    axis.set(xlabel="updates per round", ylabel="mean age (rounds)")
    most = max(points, key=lambda name: points[name][0])
    fresh = min(points, key=lambda name: points[name][1])
    both = f"{most} collects the most updates and keeps them freshest"
    return Shown(
        both if most == fresh else f"{most} collects the most updates, {fresh} keeps them freshest",
        "Updates that arrive in a round against the mean age over all rounds and phones; lower "
        "right would be best.",
        3.2 if style.on_page() else None,
    )


def _apart(points: dict[str, tuple[float, float]]) -> dict[str, float]:
    """By how many points the name of each is moved up so that names do not lie on each other."""
    wide, high = np.maximum(np.ptp(list(points.values()), axis=0) * 1.4, 1e-9)
    taken: list[tuple[float, float]] = []  # where names are, in shares of the width and points
    shifts = {}
    for name, (x, y) in sorted(points.items(), key=lambda item: item[1][1]):
        own = 180.0 * y / high
        near = [top for at, top in taken if abs(at - x / wide) < _NAME_WIDE and top > own - 11.0]
        top = max([own, *(other + 11.0 for other in near)])
        taken.append((x / wide, top))
        shifts[name] = top - own
    return shifts


def draw_classes(setting: Setting, names: Sequence[str], canvas: style.Canvas) -> Shown | None:
    """Draw the gain of each class and seed over where its samples are, with a fitted line."""
    del names
    found = setting.class_gains
    if found is None or (found[0].size < 3 and style.on_page()):
        return None
    axis, seeds = canvas.subplots(), len(found[0])
    x, y = found[0].ravel(), 100 * found[1].ravel()
    axis.axhline(0.0, color=style.ink("ink"), linewidth=0.8)
    dots = style.colour(setting.indices[setting.rival])
    axis.plot(x, y, marker="o", markersize=3, linestyle="", color=dots, alpha=0.6)
    if x.size > 2 and np.ptp(x) > 0:
        slope, level = np.polyfit(x, y, 1)
        ends = np.array([x.min(), x.max()])
        axis.plot(ends, level + slope * ends, color=style.ink("ink"), linewidth=1.4, linestyle="--")
    axis.set(xlabel="mean distance of the class's samples (m)", ylabel="gain of the class (points)")
    finding = "Classes held far away against those held near"
    if np.ptp(x) > 0 and np.ptp(y) > 0:
        r, p = correlation(x, found[1].ravel())
        more = "more" if r > 0 else "less"
        shown = seeds >= FEWEST_SEEDS and p < 0.05
        finding = f"Classes held far away gain {more}"
        finding = finding if shown else f"Whether classes held far away gain {more} is not shown"
        finding += f" (correlation {r:+.2f})"
    return Shown(
        finding,
        f"Each dot is a class in one seed: what {setting.rival} gains over {setting.baseline} "
        "on it at the end, over how far from the access point the phones that hold its samples "
        "are, on average.",
    )


def draw_map(setting: Setting, names: Sequence[str], canvas: style.Canvas) -> Shown | None:
    """Draw the gains over the settings of a sweep, of one policy or side by side."""
    squares = setting.map
    if squares is None:
        return None
    shown = [name for name in squares.policies if name in names] or squares.policies
    titles = [f"{name} minus {squares.baseline} (points)" for name in shown]
    for axis, name in zip(style.axes_abreast(canvas, titles), shown, strict=True):
        gain_map(squares, squares.policies.index(name), axis)
    return Shown(
        squares.summary(shown[0], "settings", squares.policies.index(shown[0])),
        f"Gain in test accuracy over {squares.baseline}, {squares.measured}, in percentage "
        "points. Blue is a win, red a loss; pale squares show no difference.",
        1.0 + 0.55 * len(squares.rows) if style.on_page() else 0.9 + 0.42 * len(squares.rows),
    )


def gain_map(squares: GainMap, policy: int, axis: Axes) -> None:
    """Draw the gains of one policy in percentage points; stars mark those that are shown.

    Blue squares are wins, red ones losses, strongest at the largest gain of the map; one without a
    star, where no difference is shown, is pale.
    """
    columns, rows = range(len(squares.columns)), range(len(squares.rows))
    for row, column in product(rows, columns):
        gain = squares.squares.get((policy, row, column))
        shown = gain is not None and gain.shown
        mean = gain.mean if gain is not None and gain.known else 0.0
        cover = _COVER * min(1.0, abs(mean) / squares.limit) * (1.0 if shown else _UNSURE)
        square = Rectangle(
            (column - 0.48, row - 0.48), 0.96, 0.96, linewidth=0, alpha=cover,
            facecolor=style.ink("win" if mean > 0 else "lose"), gid=f"square-{row}-{column}",
        )  # fmt: skip
        axis.add_patch(square)
        axis.text(
            column, row, starred(gain), ha="center", va="center",
            fontsize=9 if style.on_page() else 7, color=style.ink("ink" if shown else "soft"),
        )  # fmt: skip
    names = [name.replace(", ", "\n") for name in squares.rows]
    names = [name.replace("(", "\n(") for name in names] if style.on_page() else names
    axis.set_xticks(columns, squares.columns)
    axis.set_yticks(rows, names)
    axis.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(rows) - 0.5, -0.5))
    axis.set_xlabel(last_part(squares.column_name))
    axis.grid(visible=False)
    axis.tick_params(length=0)


def _name_rows(axis: Axes, names: Sequence[str]) -> None:
    """Name the rows of a chart whose bars or points lie side by side."""
    axis.set_yticks(range(len(names)), names)
    axis.tick_params("y", length=0, labelcolor=style.ink("ink"))
    axis.grid(visible=False, axis="y")


def draw_explained(setting: Setting, names: Sequence[str], canvas: style.Canvas) -> Shown | None:
    """Draw the paired difference of two policies in each measure, in standard deviations."""
    del names
    found = read_verified_json(setting.result.path / EXPLANATION)
    if found is None:
        return None
    axis, rows = canvas.subplots(), found["rows"]
    scales = np.array([row["deviation"] for row in rows], dtype=np.float64)
    scales = np.where(scales > 1e-9, 1.0 / np.maximum(scales, 1e-9), np.nan)
    middle, low, high = (
        scales * np.array([row["difference" + end] for row in rows], dtype=np.float64)
        for end in ("", "_low", "_high")
    )
    axis.errorbar(
        middle, np.arange(len(rows)), xerr=[middle - low, high - middle], fmt="o",
        markersize=4 if style.on_page() else 3, color=style.colour(0), elinewidth=1.0,
    )  # fmt: skip
    axis.axvline(0.0, color=style.ink("ink"), linewidth=0.8)
    axis.set_yticks(range(len(rows)), [str(row["label"]) for row in rows])
    differs = "age-based minus max-pack\n(standard deviations)"
    axis.set(ylim=(len(rows) - 0.5, -0.5), xlabel=differs)
    return Shown(
        "How the two policies differ in each measure",
        "The paired difference on the same models with its 95% interval.",
        3.4 if style.on_page() else 2.6,
    )
