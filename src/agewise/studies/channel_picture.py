"""Picture of a channel: where UEs are, how good their channels are, and how these vary."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from agewise.experiment import Result
from agewise.report._style import PAGE_IN, colour, paper_style, save
from agewise.report.page import CHANNEL
from agewise.studies.channel_view import ChannelView, view_channel

_ENDINGS = (".png", ".pdf", ".svg", ".eps")
#: More bars than these are drawn as one for all the rest.
_MOST_BARS = 7
_MOST_DOTS = 2000
#: Where the panels are (left, bottom, width, height): the labels around them are known, so that
#: nothing need be measured to lay them out.
_BOXES = (
    (0.085, 0.615, 0.21, 0.334), (0.455, 0.615, 0.19, 0.334), (0.735, 0.615, 0.19, 0.334),
    (0.085, 0.09, 0.235, 0.33), (0.415, 0.09, 0.235, 0.33), (0.745, 0.09, 0.235, 0.33),
)  # fmt: skip


def draw_channel(view: ChannelView, output: Path | str) -> Path:
    """Draw six panels on the width of a page; the ending of ``output`` says the format."""
    path = Path(output)
    if not isinstance(view, ChannelView):
        raise ValueError(f"view must be what view_channel returns, not a {type(view).__name__}")
    if path.suffix not in _ENDINGS:
        raise ValueError(f"{path}: a picture ends in {', '.join(_ENDINGS)}")
    with paper_style():
        figure = Figure(figsize=(PAGE_IN, 4.5))
        axes = [figure.add_axes(box) for box in _BOXES]
        titles = (
            "Mean SNR over the rounds" if view.positions_m is None else "Mean SNR in the cell",
            "Mean SNR over the UEs", "SNR of one block", "Correlation over time",
            "Correlation over frequency", "Need of subchannels",
        )  # fmt: skip
        for axis, letter, title in zip(axes, "abcdef", titles, strict=True):
            axis.set_title(f"({letter}) {title}", loc="left", fontsize=8)
        if view.positions_m is None:
            sampled = view.round_snr_db.shape[1]
            _draw_squares(axes[0], view.round_snr_db.T, "mean SNR (dB)")
            which = "UE" if sampled == view.ue_count else f"UE ({sampled} of them)"
            axes[0].set(xlabel="round", ylabel=which)
        else:
            _draw_cell(axes[0], view, view.positions_m)
        _draw_distribution(axes[1], view)
        order = np.argsort(-view.mean_snr_db, kind="stable")
        _draw_squares(axes[2], view.block_snr_db[order], "SNR (dB)")
        axes[2].set(xlabel="subchannel", ylabel="UE, by falling mean SNR")
        _draw_correlation(axes[3], view.time_correlation, "lag (rounds)")
        _draw_correlation(axes[4], view.frequency_correlation, "lag (subchannels)")
        _draw_needs(axes[5], view)
        save(figure, path)
    return path


def draw_channel_of(result: Result) -> Path | None:
    """Draw the channel of the first seed into the results folder, where a page shows it.

    A sweep has many channels and a live federation none that could be drawn: ``None``.
    """
    if result.scenario.data.dataset.kind == "clients" or result.variations != [{}]:
        return None
    path = result.path / CHANNEL
    if not path.exists():
        draw_channel(view_channel(result.scenario, result.seeds[0]), path)
    return path


def _draw_cell(axis: Axes, view: ChannelView, positions_m: NDArray[np.float64]) -> None:
    """Draw the cell from above: mean SNR as the ground, line of sight outlined, UEs as dots."""
    if view.area is not None:
        reach_m, los = view.area.reach_m, view.area.line_of_sight
        _draw_squares(axis, view.area.snr_db, "mean SNR (dB)", reach_m)
        if los is not None and los.any():
            middles = reach_m * ((np.arange(len(los)) + 0.5) * (2 / len(los)) - 1)
            axis.contour(middles, middles, los, levels=[0.5], colors="white", linewidths=0.5)
    axis.grid(visible=False)
    axis.set_aspect("equal", adjustable="datalim" if view.area is None else "box")
    count = min(len(positions_m), _MOST_DOTS)
    shown = np.unique(np.linspace(0, len(positions_m) - 1, count).astype(np.int64))
    groups = [(np.ones(len(positions_m), np.bool_), "UE", "o", "white")]
    if view.line_of_sight is not None:
        los = view.line_of_sight
        groups = [(los, "line of sight", "o", "white"), (~los, "no line of sight", "s", "#D55E00")]
    for mask, label, marker, fill in groups:
        x, y = positions_m[shown[mask[shown]]].T
        axis.scatter(
            x, y, s=float(np.clip(900.0 / count, 1.0, 9.0)), marker=marker, c=fill,
            edgecolors="black", linewidths=0.4, label=label, zorder=3,
        )  # fmt: skip
    axis.plot(0, 0, marker="^", color="black", markeredgecolor="white", markersize=6, zorder=4)
    axis.set(xlabel="x (m)", ylabel="y (m)")
    if len(groups) > 1:
        axis.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.24), ncols=2, handletextpad=0.1,
            columnspacing=0.8, fontsize=6.5,
        )  # fmt: skip


def _draw_squares(
    axis: Axes, values: NDArray[np.float64], label: str, reach_m: float | None = None
) -> None:
    """Draw values as shades, whose limits a few deep fades do not stretch.

    They are a table, or an area that reaches this far from the access point to each side.
    """
    known, table = values[np.isfinite(values)], reach_m is None
    percentiles = (2.0, 99.5) if table else (1.0, 99.0)
    low, high = np.percentile(known, percentiles) if known.size else (0.0, 1.0)
    image = axis.imshow(
        values, cmap="cividis", vmin=low, vmax=max(high, low + 1.0), interpolation="nearest",
        aspect="auto", origin="upper" if table else "lower",
        extent=None if reach_m is None else (-reach_m, reach_m, -reach_m, reach_m),
    )  # fmt: skip
    axis.grid(visible=False)
    scale = axis.inset_axes((1.03, 0.0, 0.05, 1.0))
    axis.figure.colorbar(image, cax=scale, label=label)


def _draw_distribution(axis: Axes, view: ChannelView) -> None:
    """Draw how the mean SNR is distributed over the UEs, and what one subchannel needs."""
    snr = np.sort(view.mean_snr_db[np.isfinite(view.mean_snr_db)])
    share = np.arange(1, snr.size + 1) / view.ue_count + (1 - snr.size / view.ue_count)
    axis.step(snr, share, where="post", color=colour(0))
    axis.set(xlabel="mean SNR of a UE (dB)", ylabel="share of UEs below", ylim=(0, 1.02))
    if threshold := view.summary()["rate_threshold"]:
        needed_db = 10 * np.log10(2.0 ** (2 * threshold) - 1)
        axis.axvline(needed_db, color=colour(1), linestyle="--", linewidth=0.9)
        axis.margins(x=0.12)
        below = float(np.mean(view.mean_snr_db < needed_db)) < 0.5  # room above on the left
        axis.annotate(
            "1 subchannel for $R_s$", (needed_db, 0.98 if below else 0.03), rotation=90,
            xytext=(-2 if below else 2, 0), textcoords="offset points", fontsize=6.5,
            color=colour(1), ha="right" if below else "left", va="top" if below else "bottom",
        )  # fmt: skip


def _draw_correlation(axis: Axes, values: NDArray[np.float64], label: str) -> None:
    axis.axhline(0.0, color="black", linewidth=0.6)
    if np.isnan(values).all():
        axis.text(0.5, 0.5, "gains do not vary", ha="center", transform=axis.transAxes, fontsize=7)
    else:
        axis.plot(
            np.arange(values.size), values, color=colour(0), marker="o",
            markersize=2.5 if values.size <= 30 else 0,
        )  # fmt: skip
    lowest = min(-0.25, 1.1 * float(np.nanmin(values, initial=0.0)))
    axis.set(xlim=(-0.3, max(1.0, values.size - 0.7)), ylim=(lowest, 1.05))
    axis.set(xlabel=label, ylabel="correlation of gains")


def _draw_needs(axis: Axes, view: ChannelView) -> None:
    """Draw how many subchannels UEs need alone in the cell; those that none serve stand apart."""
    if view.needed is None:
        axis.text(0.5, 0.5, "no rate threshold given", ha="center", transform=axis.transAxes,
                  fontsize=7)  # fmt: skip
        axis.set_axis_off()
        return
    most = min(view.needed.size - 1, _MOST_BARS)
    last = max(1, int(np.max(np.flatnonzero(view.needed[1:]), initial=0)) + 1)
    bars = view.needed[1 : min(most, last) + 1].copy()
    names = [str(count) for count in range(1, bars.size + 1)]
    if last > most:
        bars[-1] += view.needed[most + 1 :].sum()
        names[-1] = f"{most}+"
    places = np.arange(bars.size + 1.0)
    places[-1] += 0.3
    axis.bar(places[:-1], 100 * bars, color=colour(0), width=0.8)
    axis.bar(places[-1:], 100 * view.needed[:1], color=colour(1), width=0.8)
    axis.set_xticks(places, [*names, "none"])
    axis.grid(visible=False, axis="x")
    axis.set(xlabel="subchannels needed for $R_s$", ylabel="% of UEs and rounds")
    axis.margins(y=0.18)
    never = view.never_served
    axis.text(
        0.97, 0.95, f"{never} of {view.ue_count} UEs never served", ha="right", va="top",
        transform=axis.transAxes, fontsize=6.5, color=colour(1) if never else "black",
    )  # fmt: skip
