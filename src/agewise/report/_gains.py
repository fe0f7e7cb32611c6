"""Pictures of gains: of every policy, per cost, per class and over the settings of a sweep."""

from collections.abc import Iterable, Sequence
from itertools import product

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from agewise.report import _style as style
from agewise.report._costs import AxisView, axis_views
from agewise.report._setting import Numbers, Setting
from agewise.report.pictures import Shown
from agewise.statistics import FEWEST_SEEDS, Contrast, contrast, correlation
from agewise.tables import Explanation, GainMap
from agewise.tables._words import (
    STARS_NOTE,
    and_list,
    at_text,
    last_part,
    not_shown,
    points_text,
    signed_text,
    starred,
    too_few,
)

#: The most that a square covers its background, so that its number can be read; and of one that
#: is not sure, the part of that.
_COVER, _UNSURE = 0.7, 0.3
#: Where the name of a point may stand, in points around it, the nearest first.
_BESIDE = sorted(
    ((turn * (6 + step), rise) for step in range(0, 120, 6) for rise in range(-150, 153, 3)
     for turn in (1, -1)),
    key=lambda offset: 2 * abs(offset[1]) + abs(offset[0]),
)  # fmt: skip
#: From so many policies on a picture with an interval of each could not be read.
_MANY = 6


def draw_forest(setting: Setting, names: Sequence[str], canvas: style.Canvas) -> Shown | None:
    """Draw gains at the end with their intervals, the largest on top; of one policy at all points.

    A hollow marker stands where no difference is shown.
    """
    gains = {name: gain for name, gain in setting.against_baseline.items() if name in names}
    if not gains:
        return None
    axis, baseline = canvas.subplots(), setting.display_name(setting.pair[-1])
    where, few = at_text(setting.end, setting.axis), _too_few(gains.values())
    spread = (
        f"a tick for each seed ({few})" if few else "the 95% interval; hollow where none is shown"
    )
    ranked = sorted(gains.items(), key=lambda item: item[1].mean)
    indices, labels = [setting.indices[name] for name, _ in ranked], [name for name, _ in ranked]
    if len(gains) == 1:
        (name,) = gains
        points = sorted(setting.rows[name].gains.items(), reverse=True)
        indices, labels = indices * len(points), [at_text(at, setting.axis) for at, _ in points]
        ranked = [(name, gain) for _, gain in points]
        finding = f"The gain of {setting.display_name(name)} over {baseline}"
    else:
        verdicts = [gain.verdict for gain in gains.values()]
        better, worse = verdicts.count("better"), verdicts.count("worse") or "none"
        is_are = "is" if better == 1 else "are"
        finding = (
            f"{better or 'None'} of {len(gains)} policies {is_are} shown to learn better than "
            f"{baseline}, {worse} worse"
        )
        finding = f"All policies against {baseline}" if few else finding
    axis.axvline(0.0, color=style.ink("ink"), linewidth=0.8)
    for place, ((name, gain), index) in enumerate(zip(ranked, indices, strict=True)):
        _draw_spread(axis, gain, place, style.colour(index), 1.6)
        axis.plot(
            100 * gain.mean, place, marker=style.marker(index), color=style.colour(index),
            markersize=5.5, label=name, linestyle="",
            markerfacecolor=style.colour(index) if gain.shown else style.ink("card"),
        )  # fmt: skip
        axis.annotate(
            points_text(gain.mean) if style.on_page() else starred(gain), (1.01, place),
            xycoords=("axes fraction", "data"), va="center", annotation_clip=False,
            color=style.ink("ink" if gain.shown else "soft"),
        )  # fmt: skip
    _name_rows(axis, labels)
    axis.set(ylim=(-0.6, len(ranked) - 0.4), xlabel="gain in test accuracy (points)")
    style.title_in_paper(axis, where if len(gains) > 1 else finding)
    height_in = max(2.6, 0.7 + 0.27 * len(ranked))
    return Shown(
        finding,
        f"In points of test accuracy{f' {where}' if len(gains) > 1 else ''} on the same seeds, "
        f"with {spread}.",
        height_in if style.on_page() else 0.6 + 0.3 * len(ranked),
    )


def draw_costs(setting: Setting, names: Sequence[str], canvas: style.Canvas) -> Shown | None:
    """Draw the mean gain of each policy on every axis, a row an axis, joined for each policy.

    Lines that cross say that the order turns. Of many policies only the pair and the leaders are
    drawn, unless others were chosen.
    """
    views, baseline = axis_views(setting), setting.baseline or ""
    found = dict.fromkeys(name for view in views for name in view.gains if name in names)
    if not found:
        return None
    axis = canvas.subplots()
    axis.axvline(0.0, color=style.ink("ink"), linewidth=1.2, label=f"{baseline} (baseline)")
    first = [*setting.pair, *(_leader(view, baseline) for view in views)]
    drawn = [name for name in found if len(found) < _MANY or setting.policies or name in first]
    rows = np.arange(len(views), dtype=np.float64)
    for place, name in enumerate(drawn):
        index = setting.indices[name]
        known = [(row, view.gains[name]) for row, view in enumerate(views) if name in view.gains]
        middle, at = [100 * gain.mean for _, gain in known], rows[[row for row, _ in known]]
        at = at + 0.1 * (place - (len(drawn) - 1) / 2)
        for row, (_, gain) in zip(at, known, strict=True):
            _draw_spread(axis, gain, row, style.colour(index), 1.0)
        axis.plot(
            middle, at, color=style.colour(index), marker=style.marker(index), markersize=5,
            linestyle=":", linewidth=1.0, label=name,
        )  # fmt: skip
    _name_rows(axis, [view.head for view in views])
    axis.set(ylim=(len(views) - 0.5, -0.5), xlabel="mean gain over a run (points)")
    style.legend_above(axis)
    legend_in = 0.17 * len(drawn)
    few = _too_few(gain for view in views for gain in view.gains.values())
    spread = "that of each seed" if few else "its 95% interval"
    which = "" if len(drawn) == len(found) else " of the compared policy and of those that lead"
    return Shown(
        _shown_apart(setting, views),
        f"Mean gain{which} over {baseline} in test accuracy, up to the last round or up to the "
        f"cost of the cheapest run, with {spread}. Where lines cross, the order of the means "
        "turns.",
        1.0 + 0.45 * len(views) + legend_in if style.on_page() else 1.2 + 0.35 * len(views),
    )


def _leader(view: AxisView, baseline: str) -> str:
    """The policy with the highest mean gain; the baseline's own is 0."""
    means = {baseline: 0.0} | {name: gain.mean for name, gain in view.gains.items()}
    return max(means, key=lambda name: means[name])


def _shown_apart(setting: Setting, views: Sequence[AxisView]) -> str:
    """Where the mean gain of the compared policies was shown to differ from none."""
    rival, baseline = map(setting.display_name, setting.pair)
    found: dict[str, list[str]] = {}
    for view in views:
        if setting.rival in view.gains:
            verdict = view.gains[setting.rival].verdict
            found.setdefault(verdict, []).append(f"per {view.axis.one}")
    if not found or "too few seeds" in found:
        few = _too_few(view.gains[setting.rival] for view in views if setting.rival in view.gains)
        return f"Mean gains over {baseline} at equal cost{f': {few}' if few else ''}"
    words = {
        "better": f"{rival} is ahead of {baseline}",
        "worse": f"{rival} is behind {baseline}",
        "not shown": f"a difference between {rival} and {baseline} is not shown",
    }
    if len(found) == 1:
        phrase = f"{words[next(iter(found))]}, whatever is counted"
    else:
        phrase = "; ".join(f"{words[each]} {and_list(axes)}" for each, axes in found.items())
    return f"On the mean over a run, {phrase}"


def _too_few(gains: Iterable[Contrast]) -> str:
    """What is said if no gain has seeds enough for a verdict."""
    return too_few(max((gain.pairs for gain in gains), default=FEWEST_SEEDS))


def _draw_spread(
    axis: Axes, gain: Contrast, y: float, colour: str, width: float, start: float = 0.0
) -> None:
    """Draw the interval of a gain from a start; with too few seeds a point for each of them."""
    few = gain.verdict == "too few seeds"
    x = start + 100 * np.array([*gain.gaps.values()] if few else [gain.low, gain.high])
    axis.plot(
        x, np.full(x.size, y), color=colour, linewidth=0.0 if few else width, alpha=0.6,
        marker="|" if few else "", markersize=5,
    )  # fmt: skip


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
    for name, (x, y) in points.items():
        index = setting.indices[name]
        axis.plot(
            x, y, marker=style.marker(index), color=style.colour(index), linestyle="", label=name
        )
    axis.margins(0.25, 0.2)
    _Names(axis, points)
    axis.set(xlabel="updates per round", ylabel="mean age (rounds)")
    said = {name: f"{x:.1f} and {y:.1f}" for name, (x, y) in points.items() if name in setting.pair}
    return Shown(
        f"Uploads per round and mean age: {setting.listed(said)}",
        "Updates that arrive in a round against the mean age over all rounds and phones; lower "
        "right would be best.",
        3.6 if style.on_page() else None,
    )


class _Names(Artist):
    """Names beside points, each where it is free when the picture is drawn.

    A name is inside the axes, and neither on a point nor on another name.
    """

    def __init__(self, axis: Axes, points: dict[str, tuple[float, float]]) -> None:
        super().__init__()
        named = sorted(points.items(), key=lambda item: item[1][1])
        self._points = [point for _, point in named]
        self._names = [
            axis.annotate(
                name, point, xytext=(0, 0), textcoords="offset points", va="center",
                fontsize="small", color=style.ink("ink"), in_layout=False,
                arrowprops={"arrowstyle": "-", "color": style.ink("others"), "linewidth": 0.5},
            )
            for name, point in named
        ]  # fmt: skip
        axis.add_artist(self)
        self.set(in_layout=False, zorder=0.0)  # before the names

    def draw(self, renderer: RendererBase) -> None:
        """Place the names, which the axes draw after this."""
        if self.axes is None:
            return
        inside, dot = self.axes.bbox, float(np.asarray(renderer.points_to_pixels(1.0)))
        spots = np.asarray(self.axes.transData.transform(self._points), np.float64)
        taken = [Bbox.from_bounds(x - 4 * dot, y - 4 * dot, 8 * dot, 8 * dot) for x, y in spots]
        for name, (x, y) in zip(self._names, spots, strict=True):
            size = Text.get_window_extent(name, renderer)
            wide, high = size.width, size.height + dot
            for dx, dy in _BESIDE:
                left = x + dot * dx if dx > 0 else x + dot * dx - wide
                box = Bbox.from_bounds(left, y + dot * dy - high / 2, wide, high)
                held = inside.x0 <= box.x0 and box.x1 <= inside.x1 and inside.y0 <= box.y0
                if held and box.y1 <= inside.y1 and not box.count_overlaps(taken):
                    break
            taken.append(box)
            name.xyann = dx, dy
            name.set_horizontalalignment("left" if dx > 0 else "right")
            if name.arrow_patch is not None:
                name.arrow_patch.set_visible(abs(dx) + abs(dy) > 12)


def draw_classes(setting: Setting, names: Sequence[str], canvas: style.Canvas) -> Shown | None:
    """Draw the gain of each class and seed over where its samples are, with a fitted line."""
    del names
    found = setting.class_gains
    if found is None:
        return None
    finding, shown = _far_finding(*found)
    if style.on_page() and not shown:
        return None  # a cloud of dots that shows nothing
    axis = canvas.subplots()
    x, y = found[0].ravel(), 100 * found[1].ravel()
    axis.axhline(0.0, color=style.ink("ink"), linewidth=0.8)
    dots = style.colour(setting.indices[setting.rival])
    axis.plot(x, y, marker="o", markersize=3, linestyle="", color=dots, alpha=0.6)
    if x.size > 2 and np.ptp(x) > 0:
        slope, level = np.polyfit(x, y, 1)
        ends = np.array([x.min(), x.max()])
        axis.plot(ends, level + slope * ends, color=style.ink("ink"), linewidth=1.4, linestyle="--")
    axis.set(xlabel="mean distance of the class's samples (m)", ylabel="gain of the class (points)")
    return Shown(
        finding,
        f"Each dot is a class in one seed: what {setting.rival} gains over {setting.baseline} "
        "on it at the end, over how far from the access point the phones that hold its samples "
        "are, on average.",
    )


def _far_finding(distance: Numbers, gain: Numbers) -> tuple[str, bool]:
    """Whether classes held far away gain more: a correlation over the classes of each seed."""
    varied = (np.ptp(distance, axis=1) > 0) & (np.ptp(gain, axis=1) > 0)
    if distance.shape[1] < 3 or not varied.all():
        return "Classes held far away against those held near", False
    linked = [correlation(*each).mean for each in zip(distance, gain, strict=True)]
    found = contrast(linked, np.zeros(len(linked)))
    more = "more" if found.mean > 0 else "less"
    finding = f"Classes held far away gain {more}"
    if not found.shown:
        finding = f"Whether classes held far away gain {more} is {not_shown(found.pairs)}"
    return f"{finding} (mean correlation {signed_text(found.mean, 2)})", found.shown


def draw_map(setting: Setting, names: Sequence[str], canvas: style.Canvas) -> Shown | None:
    """Draw the gains over the settings of a sweep, of one policy or side by side."""
    squares = setting.map
    if squares is None:
        return None
    shown = [name for name in squares.policies if name in names] or squares.policies
    titles = [f"{name} minus {squares.baseline} {squares.where} (points)" for name in shown]
    for axis, name in zip(style.axes_abreast(canvas, titles), shown, strict=True):
        gain_map(squares, squares.policies.index(name), axis)
    return Shown(
        f"Gain of {shown[0]} over {squares.baseline} {squares.where}",
        "In percentage points of test accuracy. Blue is a win, red a loss"
        f"{'' if squares.few else '; pale squares show no difference'}.",
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


def draw_waterfall(setting: Setting, names: Sequence[str], canvas: style.Canvas) -> Shown | None:
    """Draw the steps of an explained gain as bars from one mean accuracy to the next."""
    del names
    found = Explanation.read(setting.result.path)
    if found is None:
        return None
    axis, means = canvas.subplots(), 100 * found.scores.mean(axis=0)
    for row, gain in enumerate(found.steps, start=1):
        bar = Rectangle(
            (means[row - 1], row - 0.3), means[row] - means[row - 1], 0.6, linewidth=0,
            facecolor=style.ink("win" if gain.mean > 0 else "lose"),
            alpha=_COVER if gain.shown else _UNSURE * _COVER,
        )  # fmt: skip
        axis.add_patch(bar)
        _draw_spread(axis, gain, row, style.ink("ink"), 1.0, means[row - 1])
        axis.annotate(
            starred(gain), (1.01, row), xycoords=("axes fraction", "data"), va="center",
            color=style.ink("ink"), annotation_clip=False,
        )  # fmt: skip
    ends, rows = [*means, means[-1]], np.arange(len(means) + 1)
    axis.vlines(means, rows[:-1], rows[1:], color=style.ink("others"), linewidth=0.6)
    axis.plot(
        ends, rows, "o", color=style.ink("ink"), markersize=3, label="mean accuracy", zorder=3
    )
    _name_rows(axis, [found.baseline, *(changes for _, changes in found.stages[1:]), found.rival])
    axis.set(ylim=(rows[-1] + 0.6, -0.6), xlabel="mean test accuracy (%)")
    few = _too_few([found.total])
    spread = "each seed's value" if few else f"its 95% interval ({STARS_NOTE})"
    return Shown(
        f"What the gain of {found.rival} over {found.baseline} is made of",
        f"Mean accuracy over the evaluated rounds from {found.baseline} to {found.rival}, one "
        f"thing changed at a time in who is heard; each step with {spread}.",
        3.6 if style.on_page() else 2.6,
    )
