"""Figures for papers: the pictures of the page, of a column's width, with embedded fonts."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter

from agewise import statistics
from agewise.checks import nearest, path_of, real_number, require_list, short
from agewise.experiment import Result
from agewise.files import atomic_write
from agewise.policies import Policy
from agewise.records import PolicyKey
from agewise.report._setting import Setting, finished_variations, open_result
from agewise.report._style import (
    COLUMN_IN,
    PAGE_IN,
    PaperFigure,
    change_texts,
    new_figure,
    paper_style,
    require_ending,
    save,
)
from agewise.report.pictures import PICTURES, Picture
from agewise.tables import Variation
from agewise.tables._words import last_part, relabelled, value_text, variation_text

_WIDTHS = {"column": COLUMN_IN, "page": PAGE_IN}
_HEIGHT_IN = 2.6
_ENDINGS = (".pdf", ".pgf", ".svg", ".eps", ".png", ".csv")


def draw_figure(
    result: Result | Path | str,
    kind: str,
    output: Path | str | None = None,
    setting: Variation | None = None,
    *,
    baseline: Policy | PolicyKey | str | None = None,
    policies: Iterable[Policy | PolicyKey | str] | None = None,
    width: str | float | None = None,
    ylim: tuple[float, float] | None = None,
    style: str = "paper",
    over: str = "rounds",
    labels: Mapping[str, str] | None = None,
) -> PaperFigure:
    """Draw one of `agewise.report.PICTURES` for a paper; ``output`` ends in the format.

    A notebook shows the figure that is returned; with an output it is also written, and that is
    its ``path``. The result is one, or its folder. Of a sweep the figure shows the first variation
    with these values, its ``setting``. ``width`` is "column" (3.5 inches), "page" (7.16) or a
    number of inches: left out, it is a column, or both for a figure of several parts. ``policies``
    are those to show, ``ylim`` the ends of the vertical axis, ``style`` is "paper", "slides", or a
    style of Matplotlib. An output that ends in .csv has the numbers of the figure. ``baseline`` is
    used in the place of the one of the result. Accuracy, gain, forest and map can be drawn ``over``
    seconds, joules, channel-uses or bits as well as rounds. ``labels`` stand in the place of
    policies' names: ``{"age-based": "ABS"}``.
    """
    if kind not in PICTURES:
        raise ValueError(f"there is no figure {kind!r}; {nearest(kind, PICTURES)}")
    path = None if output is None else path_of("output", output)
    picture, axis = PICTURES[kind], statistics.axis_of(over)
    if path is not None:
        require_ending(path, _ENDINGS)
    if not isinstance(setting or {}, Mapping):
        raise ValueError(f"setting must be values by names of fields, not {setting!r}")
    if not isinstance(labels or {}, Mapping):
        raise ValueError(f"labels must be texts by names of policies, not {labels!r}")
    if policies is not None:
        require_list("policies", policies)
    ends = None if ylim is None else _ends(ylim)
    if kind == "map" and setting:
        raise ValueError("the figure map shows every setting: leave out the one to show it at")
    if axis.column is not None and picture.no_costs:
        able = ", ".join(name for name, each in PICTURES.items() if not each.no_costs)
        raise ValueError(
            f"the figure {kind} is not drawn over {axis.name}: {picture.no_costs}; {able} are"
        )
    opened = open_result(result, baseline)
    if not opened.entries:
        raise ValueError(f"{opened.path}: no run is finished yet, so there is nothing to draw")
    chosen = None if policies is None else tuple(opened.key(policy) for policy in policies)
    shown = Setting(opened, _find_variation(opened, setting or {}), chosen, axis)
    if not shown.runs:
        raise ValueError(f"{opened.path}: none of the policies to draw has a finished run")
    # Names are what they are, in any style.
    with paper_style(style), mpl.rc_context({"text.parse_math": False, "text.usetex": False}):
        inches = None if width is None else _inches(width)
        figure = _drawn(picture, shown, inches)
        if ends is not None:
            for part in figure.axes:
                part.set_ylim(*ends)
        _relabel(figure, {str(opened.key(name)): label for name, label in (labels or {}).items()})
        if path is not None:
            _write(figure, path)
    figure.path = path
    return figure


def _relabel(figure: Figure, labels: Mapping[str, str]) -> None:
    """Put labels in the place of policies' names in all that is drawn, and α in that of alpha."""
    change_texts(
        figure, lambda text: relabelled(text, labels).replace("alpha=", "α="), FuncFormatter
    )
    for axis in figure.axes:
        for line in axis.lines:
            line.set_label(relabelled(str(line.get_label()), labels))


def _drawn(picture: Picture, setting: Setting, inches: float | None) -> PaperFigure:
    """The picture of this width, or of both columns if its parts stand side by side."""
    pair = picture.pair == "always" and setting.policies is None
    names = setting.pair if pair else list(setting.runs)
    figure = new_figure(COLUMN_IN, _HEIGHT_IN)
    shown = picture.draw(setting, names, figure)
    if shown is None:
        path = setting.result.path
        raise ValueError(f"{path}: the figure {picture.name} needs {picture.needs}")
    figure.set_figheight(shown.height_in or _HEIGHT_IN)
    grid = figure.axes[0].get_gridspec()
    abreast = grid is not None and grid.ncols > 1
    figure.set_figwidth(inches or (PAGE_IN if abreast else COLUMN_IN))
    return figure


def _write(figure: Figure, path: Path) -> None:
    if path.suffix == ".csv":
        with atomic_write(path) as temporary:
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
    if text in _WIDTHS:
        return _WIDTHS[text]
    if re.fullmatch(r"\d+(\.\d+)?", text) and 1 <= float(text) <= 20:
        return float(text)
    raise ValueError(f"the width is column, page, or inches from 1 to 20, not {text!r}")


def _ends(ylim: object) -> tuple[float, float]:
    match ylim:
        case (low, high):
            ends = real_number("ylim", low), real_number("ylim", high)
            if low != high:
                return ends
    raise ValueError(f"ylim must be two numbers that differ, not {short(repr(ylim))}")


def _find_variation(result: Result, setting: Variation) -> Variation:
    """The first finished variation with these values, by whole names or their last parts."""
    finished = finished_variations(result)
    found = [v for v in finished if all(_has(v, name, value) for name, value in setting.items())]
    if not found:
        there = "; ".join(map(variation_text, finished))
        raise ValueError(f"no finished setting has {variation_text(setting)}; there are {there}")
    return found[0]


def _has(variation: Variation, name: str, value: object) -> bool:
    return any(
        held == value or value_text(held) == value
        for known, held in variation.items()
        if name in (known, last_part(known))
    )


# The numbers of a figure, read from what was drawn


def figure_csv(figure: Figure) -> str:
    """One row a point: the part of the figure, what is drawn there, of what, and where.

    Bands have their low and high ends as two series; squares of a heat map or map have a value.
    """
    figure.draw_without_rendering()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("part", "what", "series", "x", "y", "value"))
    for place, axis in enumerate(figure.axes, start=1):
        name = axis.get_title() or axis.get_ylabel() or str(place)
        writer.writerows((name, *row) for row in _rows(axis))
    return text.getvalue()


_Row = tuple[str, str, object, object, object]


def _rows(axis: Axes) -> Iterator[_Row]:
    named = 0
    for line in axis.lines:
        label = str(line.get_label())
        if label.startswith("_") and len(np.atleast_1d(line.get_xdata())) < 3:
            continue  # a mark, such as the line of zero gain
        named += label.startswith("_")
        series = f"run {named}" if label.startswith("_") else label
        for x, y in np.asarray(line.get_xydata(), dtype=np.float64):
            yield "line", series, _short(x), _short(y), ""
    for number, band in enumerate(axis.collections, start=1):
        if isinstance(band, PolyCollection):
            yield from _band(band, number)
    for image in axis.images:
        for (row, column), value in np.ndenumerate(np.asarray(image.get_array())):
            yield "square", "", column + 1, row + 1, _short(float(value))
    if any(str(patch.get_gid()).startswith("square-") for patch in axis.patches):
        for text in axis.texts:  # the numbers written into the squares of a map
            column, row = (round(float(at)) for at in text.get_position())
            across, down = axis.get_xticklabels()[column], axis.get_yticklabels()[row]
            place = across.get_text(), down.get_text().replace("\n", ", ")
            yield "square", "", *place, text.get_text()
    for bars in axis.containers:
        for bar in bars.get_children():
            if isinstance(bar, Rectangle):
                middle = bar.get_x() + bar.get_width() / 2
                yield "bar", str(bars.get_label()), _short(middle), _short(bar.get_height()), ""


def _band(band: PolyCollection, number: int) -> Iterator[_Row]:
    """Matplotlib joins the low edge and the reversed high edge by a point at each end."""
    corners = np.asarray(band.get_paths()[0].vertices)
    count = (len(corners) - 3) // 2
    for which, edge in (("low", corners[1 : count + 1]), ("high", corners[count + 2 : -1][::-1])):
        for x, y in edge:
            yield "band", f"{which} {number}", _short(x), _short(y), ""


def _short(value: float) -> str:
    return f"{value:.8g}"
