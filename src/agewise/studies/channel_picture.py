"""The picture of a channel: where UEs are, how good their channels are, and how these vary."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from agewise.data import Clients
from agewise.experiment import Result
from agewise.report.page import CHANNEL
from agewise.report.style import PAGE_IN, colour, new_figure, paper_style, save
from agewise.studies.channel_view import Area, ChannelView, view_channel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ENDINGS = (".png", ".pdf", ".svg", ".eps")
_SHADES = "cividis"
#: More bars than these are drawn as one for all the rest.
_MOST_BARS = 7
_MOST_DOTS = 2000


def draw_channel(view: ChannelView, output: Path | str) -> Path:
    """Draw six panels on the width of a page; the ending of ``output`` says the format."""
    path = Path(output)
    if path.suffix not in ENDINGS:
        raise ValueError(f"{path}: a picture ends in {', '.join(ENDINGS)}")
    with paper_style():
        figure = new_figure(PAGE_IN, 4.5)
        parts: Any = figure.subfigures(2, 1, height_ratios=(1.12, 1.0))
        upper, lower = parts
        _draw_upper(upper, view)
        _draw_lower(lower, view)
        save(figure, path)
    return path


def draw_channel_of(result: Result) -> Path | None:
    """Draw the channel of the first seed into the results folder, where a page shows it.

    A sweep has many channels and a live federation none that could be drawn: ``None``.
    """
    live = isinstance(result.scenario.data.dataset, Clients)
    if live or result.variations != [{}]:
        return None
    path = result.path / CHANNEL
    if not path.exists():
        draw_channel(view_channel(result.scenario, result.seeds[0]), path)
    return path


def _draw_upper(figure: Any, view: ChannelView) -> None:
    """How good the channels are: in space or over rounds, over UEs, in one block."""
    axes = figure.subplots(1, 3, width_ratios=(1.15, 1.0, 1.05))
    if view.positions_m is None:
        _title(axes[0], "(a) Mean SNR over the rounds")
        _rounds(figure, axes[0], view)
    else:
        _title(axes[0], "(a) Mean SNR in the cell")
        _map(figure, axes[0], view)
    _title(axes[1], "(b) Mean SNR over the UEs")
    _distribution(axes[1], view)
    _title(axes[2], "(c) SNR of one block")
    _block(figure, axes[2], view)


def _draw_lower(figure: Any, view: ChannelView) -> None:
    """How gains vary, and what they allow."""
    axes = figure.subplots(1, 3)
    _title(axes[0], "(d) Correlation over time")
    _correlation(axes[0], view.time_correlation, "lag (rounds)")
    _title(axes[1], "(e) Correlation over frequency")
    _correlation(axes[1], view.frequency_correlation, "lag (subchannels)")
    _title(axes[2], "(f) Need of subchannels")
    _needs(axes[2], view)


def _title(axis: "Axes", text: str) -> None:
    axis.set_title(text, loc="left", fontsize=8)


def _map(figure: Any, axis: "Axes", view: ChannelView) -> None:
    """The cell from above: mean SNR as the ground, line of sight outlined, UEs as dots."""
    positions = view.positions_m
    if positions is None:
        return
    axis.grid(visible=False)
    axis.set_aspect("equal")
    if view.area is not None:
        _ground(figure, axis, view.area)
    count = min(len(positions), _MOST_DOTS)
    shown = np.unique(np.linspace(0, len(positions) - 1, count).astype(np.int64))
    size = float(np.clip(900.0 / count, 1.0, 9.0))
    groups = [(np.ones(len(positions), np.bool_), "UE", "o", "white")]
    if view.line_of_sight is not None:
        seen = view.line_of_sight
        groups = [
            (seen, "line of sight", "o", "white"),
            (~seen, "no line of sight", "s", "#D55E00"),
        ]
    for mask, label, marker, fill in groups:
        x, y = positions[shown[mask[shown]]].T
        axis.scatter(
            x, y, s=size, marker=marker, c=fill, edgecolors="black", linewidths=0.4, label=label,
            zorder=3,
        )  # fmt: skip
    axis.plot(0, 0, marker="^", color="black", markeredgecolor="white", markersize=6, zorder=4)
    axis.set_xlabel("x (m)")
    axis.set_ylabel("y (m)")
    if len(groups) > 1:
        axis.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.24), ncols=2, handletextpad=0.1,
            columnspacing=0.8, fontsize=6.5,
        )  # fmt: skip


def _ground(figure: Any, axis: "Axes", area: Area) -> None:
    extent = (-area.reach_m, area.reach_m, -area.reach_m, area.reach_m)
    known = area.snr_db[np.isfinite(area.snr_db)]
    low, high = np.percentile(known, [1, 99])
    ground = axis.imshow(
        area.snr_db, extent=extent, origin="lower", cmap=_SHADES, vmin=low, vmax=high,
        interpolation="nearest",
    )  # fmt: skip
    figure.colorbar(ground, ax=axis, label="mean SNR (dB)", fraction=0.05, pad=0.02)
    if area.line_of_sight is not None and area.line_of_sight.any():
        middles = (np.arange(len(area.snr_db)) + 0.5) * (2 * area.reach_m / len(area.snr_db))
        middles = middles - area.reach_m
        axis.contour(
            middles, middles, area.line_of_sight, levels=[0.5], colors="white", linewidths=0.5
        )


def _rounds(figure: Any, axis: "Axes", view: ChannelView) -> None:
    """Where nobody knows the places: how the mean SNR of the UEs goes over the rounds."""
    axis.grid(visible=False)
    shown = view.round_snr_db.T
    low, high = _limits(shown)
    image = axis.imshow(
        shown, aspect="auto", cmap=_SHADES, vmin=low, vmax=high, interpolation="nearest"
    )
    figure.colorbar(image, ax=axis, label="mean SNR (dB)", fraction=0.05, pad=0.02)
    axis.set_xlabel("round")
    axis.set_ylabel("UE" if len(shown) == view.ue_count else f"UE ({len(shown)} of them)")


def _distribution(axis: "Axes", view: ChannelView) -> None:
    """How the mean SNR is distributed over the UEs, and what one subchannel needs."""
    snr = np.sort(view.mean_snr_db[np.isfinite(view.mean_snr_db)])
    share = np.arange(1, snr.size + 1) / view.ue_count + (1 - snr.size / view.ue_count)
    axis.step(snr, share, where="post", color=colour(0))
    axis.set_xlabel("mean SNR of a UE (dB)")
    axis.set_ylabel("share of UEs below")
    axis.set_ylim(0, 1.02)
    if view.rate_threshold:
        needed_db = 10 * np.log10(2.0 ** (2 * view.rate_threshold) - 1)
        axis.axvline(needed_db, color=colour(1), linestyle="--", linewidth=0.9)
        axis.margins(x=0.12)
        below = float(np.mean(view.mean_snr_db < needed_db)) < 0.5  # room above on the left
        axis.annotate(
            "1 subchannel for $R_s$", (needed_db, 0.98 if below else 0.03), rotation=90,
            xytext=(-2 if below else 2, 0), textcoords="offset points", fontsize=6.5,
            color=colour(1), ha="right" if below else "left", va="top" if below else "bottom",
        )  # fmt: skip


def _block(figure: Any, axis: "Axes", view: ChannelView) -> None:
    """The SNR of the first block, UEs by falling mean."""
    axis.grid(visible=False)
    order = np.argsort(-view.mean_snr_db, kind="stable")
    shown = view.block_snr_db[order]
    low, high = _limits(shown)
    image = axis.imshow(
        shown, aspect="auto", cmap=_SHADES, vmin=low, vmax=high, interpolation="nearest"
    )
    figure.colorbar(image, ax=axis, label="SNR (dB)", fraction=0.05, pad=0.02)
    axis.set_xlabel("subchannel")
    axis.set_ylabel("UE, by falling mean SNR")


def _limits(values: Any) -> tuple[float, float]:
    """Limits of the shades that a few deep fades do not stretch."""
    known = values[np.isfinite(values)]
    if known.size == 0:
        return 0.0, 1.0
    low, high = np.percentile(known, [2, 99.5])
    return float(low), float(max(high, low + 1.0))


def _correlation(axis: "Axes", values: Any, label: str) -> None:
    axis.axhline(0.0, color="black", linewidth=0.6)
    if np.isnan(values).all():
        axis.text(0.5, 0.5, "gains do not vary", ha="center", transform=axis.transAxes, fontsize=7)
    else:
        axis.plot(
            np.arange(values.size), values, color=colour(0), marker="o",
            markersize=2.5 if values.size <= 30 else 0,
        )  # fmt: skip
    axis.set_xlim(-0.3, max(1.0, values.size - 0.7))
    axis.set_ylim(min(-0.25, 1.1 * float(np.nanmin(values, initial=0.0))), 1.05)
    axis.set_xlabel(label)
    axis.set_ylabel("correlation of gains")


def _needs(axis: "Axes", view: ChannelView) -> None:
    """How many subchannels the UEs need, alone in the cell; those that no number serves apart."""
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
    axis.set_xlabel("subchannels needed for $R_s$")
    axis.set_ylabel("% of UEs and rounds")
    never = view.never_served
    axis.margins(y=0.18)
    axis.text(
        0.97, 0.95, f"{never} of {view.ue_count} UEs never served", ha="right", va="top",
        transform=axis.transAxes, fontsize=6.5, color=colour(1) if never else "black",
    )  # fmt: skip
