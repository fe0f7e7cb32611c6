"""The charts of the page as Plotly takes them: plain data, drawn by plotly.js in the page."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from agewise.report.numbers import Curves, Labels, Numbers
from agewise.report.squares import Squares
from agewise.report.style import COLOURS, dash_place

#: The dashes of `agewise.report.style` in Plotly's words.
DASHES = ("solid", "dash", "dashdot", "dot", "longdash", "longdashdot", "6px 2px 2px 2px")
#: A blue for the fair and a yellow for the much, which the colour-blind can tell apart.
_SEQUENTIAL = "Cividis"

#: Red for losses, blue for gains, as in the figures for papers.
_DIVERGING = [
    [0, "#b2182b"],
    [0.25, "#f4a582"],
    [0.5, "#f7f7f7"],
    [0.75, "#92c5de"],
    [1, "#2166ac"],
]

Chart = dict[str, Any]


def accuracy(curves: dict[str, Curves]) -> Chart:
    """Mean accuracy over rounds, with the interval over the seeds."""
    traces = []
    for name, own in curves.items():
        mean, low, high = (
            100 * np.asarray(x) for x in (own.accuracy.mean, own.accuracy.low, own.accuracy.high)
        )
        known = ~np.isnan(mean)
        rounds = np.arange(1, mean.size + 1)[known]
        if own.seeds > 1:
            traces += _band(name, own.place, rounds, low[known], high[known])
        traces.append(_line(name, own.place, rounds, mean[known]))
    chart = _chart(traces, "round", "test accuracy (%)")
    means = [100 * np.asarray(own.accuracy.mean) for own in curves.values()]
    known = np.concatenate([mean[~np.isnan(mean)] for mean in means])
    if known.size:  # the means fill the chart, however wide the intervals of few seeds are
        pad = 0.5 + 0.08 * float(np.ptp(known))
        chart["layout"]["yaxis"] |= {"range": [float(known.min()) - pad, float(known.max()) + pad]}
    return chart


def reached(curves: dict[str, Curves]) -> Chart:
    """Mean accuracy over the mean number of distinct UEs whose update had arrived."""
    traces = []
    for name, own in curves.items():
        mean = 100 * np.asarray(own.accuracy.mean)
        known = ~np.isnan(mean)
        traces.append(_line(name, own.place, own.reached[known], mean[known]))
    chart = _chart(traces, "distinct UEs reached", "test accuracy (%)")
    most = max((float(own.reached.max()) for own in curves.values()), default=1.0)
    chart["layout"]["xaxis"] |= {"range": [0, 1.02 * most]}
    return chart


def ages(curves: dict[str, Curves], what: str) -> Chart:
    """One statistic of the ages over rounds: age_mean, age_95 or age_peak."""
    return _over_rounds(curves, what, "age (rounds)")


def diversity(curves: dict[str, Curves]) -> Chart:
    """Gradient diversity over rounds."""
    return _over_rounds(curves, "diversity", "gradient diversity")


def distance(curves: dict[str, Curves], centres_m: Numbers) -> Chart:
    """The share of rounds in which UEs at this distance were received."""
    traces = []
    for name, own in curves.items():
        known = ~np.isnan(own.served)
        traces.append(
            _line(name, own.place, centres_m[known], 100 * own.served[known])
            | {"mode": "lines+markers", "marker": {"size": 6, "symbol": own.place}}
        )
    return _chart(traces, "distance from the AP (m)", "rounds served (%)")


def labels(held: Labels) -> Chart:
    """How many samples of each class each UE holds."""
    heat = {
        "type": "heatmap", "z": held.counts.T.tolist(), "y": [_plain(name) for name in held.names],
        "colorscale": _SEQUENTIAL, "colorbar": {"title": {"text": "samples"}, "thickness": 12},
        "hovertemplate": "UE %{x}, class %{y}: %{z} samples<extra></extra>",
    }  # fmt: skip
    chart = _chart([heat], "UE", "class")
    chart["layout"]["yaxis"] |= {"type": "category", "rangemode": "normal"}
    return chart


def gain_map(drawn: Squares, policy: int) -> Chart:
    """The gain of one policy over the baseline, with stars for how sure each square is."""
    gains, p_values = drawn.gains[policy], drawn.p_values[policy]
    text = [
        [_square(gain, p) for gain, p in zip(*pair, strict=True)]
        for pair in zip(gains, p_values, strict=True)
    ]
    heat = {
        "type": "heatmap", "z": _listed(100 * gains, 2), "text": text, "texttemplate": "%{text}",
        "x": [_plain(name) for name in drawn.columns],
        "y": [_plain(name).replace(", ", "<br>") for name in drawn.rows],
        "colorscale": _DIVERGING, "xgap": 2, "ygap": 2,
        "zmin": -100 * drawn.limit, "zmax": 100 * drawn.limit, "showscale": False,
        "hovertemplate": "%{y}, %{x}: %{text} points<extra></extra>",
    }  # fmt: skip
    chart = _chart([heat], drawn.column_name.split(".")[-1], "")
    chart["layout"]["xaxis"] |= {"type": "category", "showgrid": False}
    chart["layout"]["yaxis"] |= {"type": "category", "showgrid": False, "autorange": "reversed"}
    return chart


def _over_rounds(curves: dict[str, Curves], what: str, unit: str) -> Chart:
    traces = []
    for name, own in curves.items():
        values = getattr(own, what)
        traces.append(_line(name, own.place, np.arange(1, values.size + 1), values))
    return _chart(traces, "round", unit)


def _line(name: str, place: int, x: ArrayLike, y: ArrayLike) -> dict[str, Any]:
    style = {"color": colour(place), "dash": dash(place), "width": 2}
    return {
        "type": "scatter", "mode": "lines", "name": _plain(name), "legendgroup": name,
        "x": _listed(x, 2), "y": _listed(y, 3), "line": style,
    }  # fmt: skip


def _band(
    name: str, place: int, x: ArrayLike, low: ArrayLike, high: ArrayLike
) -> list[dict[str, Any]]:
    edge = {
        "type": "scatter", "mode": "lines", "legendgroup": name, "hoverinfo": "skip",
        "x": _listed(x, 2), "line": {"width": 0, "color": colour(place)},
    }  # fmt: skip
    filled = {"fill": "tonexty", "fillcolor": f"{colour(place)}2e"}
    return [edge | {"y": _listed(low, 3)}, edge | {"y": _listed(high, 3)} | filled]


def _chart(traces: list[dict[str, Any]], x: str, y: str) -> Chart:
    axis = {"rangemode": "normal" if "accuracy" in y else "tozero", "automargin": True}
    layout = {
        "xaxis": {"title": {"text": x}, "automargin": True},
        "yaxis": {"title": {"text": y}} | axis,
        "showlegend": False, "hovermode": "closest", "margin": {"l": 8, "r": 12, "t": 8, "b": 8},
    }  # fmt: skip
    return {"data": traces, "layout": layout}


def colour(place: int) -> str:
    """The colour of the policy at this place."""
    return COLOURS[place % len(COLOURS)]


def dash(place: int) -> str:
    """The dash of the policy at this place."""
    return DASHES[dash_place(place)]


def _listed(values: ArrayLike, digits: int) -> list[Any]:
    """Rounded numbers, with nothing where there is no number."""
    array = np.round(np.asarray(values, dtype=np.float64), digits)
    listed = array.astype(object)
    listed[~np.isfinite(array)] = None
    return list(listed.tolist())


def _square(gain: float, p: float) -> str:
    if np.isnan(gain):
        return "-"
    return f"{round(100 * gain, 1) or 0.0:+.1f}" + "*" * sum(
        p < level for level in (0.05, 0.01, 0.001)
    )


def _plain(name: str) -> str:
    """Plotly reads a little HTML in names: none is meant."""
    return name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
