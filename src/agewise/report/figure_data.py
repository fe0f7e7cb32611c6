"""The numbers of a figure as CSV, read from what was drawn, for those who draw it themselves."""

import csv
import io
from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

_HEAD = ("part", "what", "series", "x", "y", "value")


def figure_csv(figure: Figure) -> str:
    """One row a point: the part of the figure, what is drawn there, of what, and where.

    Bands have their low and high ends as two series; squares of a heat map or map have a value.
    """
    figure.draw_without_rendering()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_HEAD)
    for place, axis in enumerate(figure.axes):
        name = axis.get_title() or axis.get_ylabel() or str(place + 1)
        writer.writerows((name, *row) for row in _rows(axis))
    return text.getvalue()


Row = tuple[str, str, object, object, object]


def _rows(axis: Axes) -> Iterator[Row]:
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
        if isinstance(band, PolyCollection) and not isinstance(band, PathCollection):
            yield from _band(band, number)
    for image in axis.images:
        table = np.asarray(image.get_array())
        for (row, column), value in np.ndenumerate(table):
            yield "square", "", column + 1, row + 1, _short(float(value))
    yield from _texts(axis)
    for bars in axis.containers:
        for bar in bars.get_children():
            if isinstance(bar, Rectangle):
                middle = bar.get_x() + bar.get_width() / 2
                yield "bar", str(bars.get_label()), _short(middle), _short(bar.get_height()), ""


def _band(band: PolyCollection, number: int) -> Iterator[Row]:
    """Matplotlib joins the low edge and the reversed high edge by a point at each end."""
    corners = np.asarray(band.get_paths()[0].vertices)
    count = (len(corners) - 3) // 2
    for which, edge in (("low", corners[1 : count + 1]), ("high", corners[count + 2 : -1][::-1])):
        for x, y in edge:
            yield "band", f"{which} {number}", _short(x), _short(y), ""


def _texts(axis: Axes) -> Iterator[Row]:
    """The numbers written into the squares of a map."""
    for text in axis.texts:
        if any(str(patch.get_gid()).startswith("square-") for patch in axis.patches):
            column, row = (round(float(at)) for at in text.get_position())
            names = (
                axis.get_xticklabels()[column].get_text(),
                axis.get_yticklabels()[row].get_text(),
            )
            yield "square", "", names[0], names[1].replace("\n", ", "), text.get_text()


def _short(value: float) -> str:
    return f"{value:.8g}"
