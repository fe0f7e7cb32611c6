"""The charts of the page as Plotly takes them: plain data, drawn by plotly.js in the page."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from agewise.report.numbers import Curves, Labels, Numbers, SweepMap
from agewise.report.text import FEWEST_SEEDS, last_part, points_text, stars

#: Okabe and Ito's colours, which the colour-blind can tell apart, the dark ones first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
#: Dashes in Plotly's words; `agewise.report.figures` has as many in matplotlib's.
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
    """Mean accuracy over rounds, with the interval over the seeds; of few seeds the runs."""
    traces = []
    for name, each in curves.items():
        mean, low, high = (
            100 * np.asarray(x) for x in (each.accuracy.mean, each.accuracy.low, each.accuracy.high)
        )
        known = ~np.isnan(mean)
        rounds = np.arange(1, mean.size + 1)[known]
        if each.seeds >= FEWEST_SEEDS:
            traces += _band(name, each.index, rounds, low[known], high[known])
        elif each.seeds > 1:  # an interval of so few would say more than is known
            traces += [_thin(name, each.index, rounds, 100 * run[known]) for run in each.runs]
        traces.append(_line(name, each.index, rounds, mean[known]))
    chart = _chart(traces, "round", "test accuracy (%)")
    means = [100 * np.asarray(each.accuracy.mean) for each in curves.values()]
    known = np.concatenate([mean[~np.isnan(mean)] for mean in means])
    if known.size:  # the means fill the chart, however wide the intervals of few seeds are
        pad = 0.5 + 0.08 * float(np.ptp(known))
        chart["layout"]["yaxis"] |= {"range": [float(known.min()) - pad, float(known.max()) + pad]}
    return chart


def reached(curves: dict[str, Curves]) -> Chart:
    """Mean accuracy over the mean number of distinct UEs whose update had arrived."""
    traces = []
    for name, each in curves.items():
        mean = 100 * np.asarray(each.accuracy.mean)
        known = ~np.isnan(mean)
        traces.append(_line(name, each.index, each.reached[known], mean[known]))
    chart = _chart(traces, "distinct UEs reached", "test accuracy (%)")
    most = max((float(each.reached.max()) for each in curves.values()), default=1.0)
    chart["layout"]["xaxis"] |= {"range": [0, 1.02 * most]}
    return chart


def ages(curves: dict[str, Curves], what: str) -> Chart:
    """One statistic of the ages over rounds: age_mean, age_95 or age_largest."""
    return _over_rounds(curves, what, "age (rounds)")


def diversity(curves: dict[str, Curves]) -> Chart:
    """Gradient diversity over rounds."""
    return _over_rounds(curves, "diversity", "gradient diversity")


def distance(curves: dict[str, Curves], centres_m: Numbers | None) -> Chart | None:
    """The share of rounds in which UEs at this distance were received, if distances are known."""
    traces = []
    for name, each in curves.items():
        if each.served is None or centres_m is None:
            return None
        known = ~np.isnan(each.served)
        traces.append(
            _line(name, each.index, centres_m[known], 100 * each.served[known])
            | {"mode": "lines+markers", "marker": {"size": 6, "symbol": each.index}}
        )
    return _chart(traces, "distance from the AP (m)", "rounds served (%)")


def labels(held: Labels) -> Chart:
    """How many samples of each class each UE holds."""
    heat = {
        "type": "heatmap", "z": held.counts.T.tolist(),
        "y": [_plain(name) for name in held.class_names],
        "colorscale": _SEQUENTIAL, "colorbar": {"title": {"text": "samples"}, "thickness": 12},
        "hovertemplate": "UE %{x}, class %{y}: %{z} samples<extra></extra>",
    }  # fmt: skip
    chart = _chart([heat], "UE", "class")
    chart["layout"]["yaxis"] |= {"type": "category", "rangemode": "normal"}
    return chart


def gain_map(squares: SweepMap, policy: int) -> Chart:
    """The gain of one policy over the baseline, with stars for how sure each square is."""
    gains, p_values = squares.gains[policy], squares.p_values[policy]
    text = [
        [_square(gain, p) for gain, p in zip(*pair, strict=True)]
        for pair in zip(gains, p_values, strict=True)
    ]
    heat = {
        "type": "heatmap", "z": _listed(100 * gains, 2), "text": text, "texttemplate": "%{text}",
        "x": [_plain(name) for name in squares.columns],
        "y": [_plain(name).replace(", ", "<br>") for name in squares.rows],
        "colorscale": _DIVERGING, "xgap": 2, "ygap": 2,
        "zmin": -100 * squares.limit, "zmax": 100 * squares.limit, "showscale": False,
        "hovertemplate": "%{y}, %{x}: %{text} points<extra></extra>",
    }  # fmt: skip
    chart = _chart([heat], last_part(squares.column_name), "")
    chart["layout"]["xaxis"] |= {"type": "category", "showgrid": False}
    chart["layout"]["yaxis"] |= {"type": "category", "showgrid": False, "autorange": "reversed"}
    return chart


def _over_rounds(curves: dict[str, Curves], what: str, unit: str) -> Chart:
    traces = []
    for name, each in curves.items():
        values = getattr(each, what)
        traces.append(_line(name, each.index, np.arange(1, values.size + 1), values))
    return _chart(traces, "round", unit)


def _line(name: str, index: int, x: ArrayLike, y: ArrayLike) -> dict[str, Any]:
    style = {"color": colour(index), "dash": dash(index), "width": 2}
    return {
        "type": "scatter", "mode": "lines", "name": _plain(name), "legendgroup": name,
        "x": _listed(x, 2), "y": _listed(y, 3), "line": style,
    }  # fmt: skip


def _thin(name: str, index: int, x: ArrayLike, y: ArrayLike) -> dict[str, Any]:
    """One run among few."""
    style = {"color": colour(index), "width": 0.7}
    return _line(name, index, x, y) | {"line": style, "opacity": 0.6, "hoverinfo": "skip"}


def _band(
    name: str, index: int, x: ArrayLike, low: ArrayLike, high: ArrayLike
) -> list[dict[str, Any]]:
    edge = {
        "type": "scatter", "mode": "lines", "legendgroup": name, "hoverinfo": "skip",
        "x": _listed(x, 2), "line": {"width": 0, "color": colour(index)},
    }  # fmt: skip
    filled = {"fill": "tonexty", "fillcolor": f"{colour(index)}2e"}
    return [edge | {"y": _listed(low, 3)}, edge | {"y": _listed(high, 3)} | filled]


def _chart(traces: list[dict[str, Any]], x: str, y: str) -> Chart:
    axis = {"rangemode": "normal" if "accuracy" in y else "tozero", "automargin": True}
    layout = {
        "xaxis": {"title": {"text": x}, "automargin": True},
        "yaxis": {"title": {"text": y}} | axis,
        "showlegend": False, "hovermode": "closest", "margin": {"l": 8, "r": 12, "t": 8, "b": 8},
    }  # fmt: skip
    return {"data": traces, "layout": layout}


def colour(index: int) -> str:
    """The colour of the policy with this index."""
    return COLOURS[index % len(COLOURS)]


def dash(index: int) -> str:
    """The dash of the policy with this index."""
    return DASHES[dash_index(index)]


def dash_index(index: int) -> int:
    """Which dash a policy has: once the colours repeat, another one."""
    return (index + index // len(COLOURS)) % len(DASHES)


def _listed(values: ArrayLike, digits: int) -> list[Any]:
    """Rounded numbers, with nothing where there is no number."""
    array = np.round(np.asarray(values, dtype=np.float64), digits)
    listed = array.astype(object)
    listed[~np.isfinite(array)] = None
    return list(listed.tolist())


def _square(gain: float, p: float) -> str:
    return "-" if np.isnan(gain) else points_text(gain) + stars(p)


def _plain(name: str) -> str:
    """Plotly reads a little HTML in names: none is meant."""
    return name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
