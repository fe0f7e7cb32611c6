"""Picture of a channel: where UEs are, how good their channels are, and how these vary."""

import io
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from agewise.checks import path_of
from agewise.experiment import Result
from agewise.files import write_whole
from agewise.report import _radio
from agewise.report._setting import CHANNEL, open_result
from agewise.report._style import PAGE_IN, colour, paper_style, require_ending, save
from agewise.studies.channel_view import ChannelView, view_channel
from agewise.tables._words import counted

_ENDINGS = (".png", ".pdf", ".svg", ".eps")
#: Where the panels are (left, bottom, width, height): the labels around them are known, so that
#: nothing need be measured to lay them out.
_BOXES = (
    (0.085, 0.615, 0.21, 0.334), (0.455, 0.615, 0.19, 0.334), (0.735, 0.615, 0.19, 0.334),
    (0.085, 0.09, 0.235, 0.33), (0.415, 0.09, 0.235, 0.33), (0.745, 0.09, 0.235, 0.33),
)  # fmt: skip


def draw_channel(view: ChannelView, output: Path | str) -> Path:
    """Draw six panels on the width of a page; the ending of ``output`` says the format."""
    path = path_of("output", output)
    if not isinstance(view, ChannelView):
        raise ValueError(f"view must be what view_channel returns, not a {type(view).__name__}")
    require_ending(path, _ENDINGS)
    drawn = _shown(view)
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
            _radio.cell_from_above(axes[0], drawn)
        _radio.snr_distribution(axes[1], drawn)
        order = np.argsort(-view.mean_snr_db, kind="stable")
        _draw_squares(axes[2], view.block_snr_db[order], "SNR (dB)")
        axes[2].set(xlabel="subchannel", ylabel="UE, by falling mean SNR")
        _draw_correlation(axes[3], view.time_correlation, "lag (rounds)")
        _draw_correlation(axes[4], view.frequency_correlation, "lag (subchannels)")
        if view.needed is None:
            axes[5].text(0.5, 0.5, "no rate threshold given", ha="center", va="center",
                         transform=axes[5].transAxes)  # fmt: skip
            axes[5].set_axis_off()
        else:
            _radio.need_bars(axes[5], drawn)
            axes[5].margins(y=0.18)
            never = f"{view.never_served} of {counted(view.ue_count, 'UE')} never served"
            axes[5].text(0.97, 0.95, never, ha="right", va="top", transform=axes[5].transAxes,
                         fontsize=6.5)  # fmt: skip
        save(figure, path)
    return path


def keep_channel_of(result: Result | Path | str) -> Path | None:
    """Measure the channel of the first seed into the results folder, where a page shows it.

    A sweep has many channels and a live federation none that could be measured: ``None``.
    """
    result = open_result(result)
    if result.scenario.data.dataset.kind == "clients" or result.variations != [{}]:
        return None
    path = result.path / CHANNEL
    if not path.exists():
        content, view = io.BytesIO(), view_channel(result.scenario, result.seeds[0])
        known = {name: x for name, x in vars(_shown(view)).items() if x is not None}
        np.savez_compressed(content, **known)
        write_whole(path, content.getvalue())
    return path


def _shown(view: ChannelView) -> SimpleNamespace:
    """What pictures show of a channel, by names that `agewise.report._setting.Setting` reads."""
    area = view.area
    return SimpleNamespace(
        mean_snr_db=view.mean_snr_db,
        needed=view.needed,
        never_served=view.never_served,
        rate_threshold=view.summary()["rate_threshold"],
        positions_m=view.positions_m,
        line_of_sight=view.line_of_sight,
        reach_m=None if area is None else area.reach_m,
        area_snr_db=None if area is None else area.snr_db.astype(np.float32),
        line_of_sight_area=None if area is None else area.line_of_sight,
    )


def _draw_squares(axis: Axes, values: NDArray[np.float64], label: str) -> None:
    """Draw a table of values as shades, whose limits a few deep fades do not stretch."""
    known = values[np.isfinite(values)]
    low, high = np.percentile(known, (2.0, 99.5)) if known.size else (0.0, 1.0)
    image = axis.imshow(
        values, cmap="cividis", vmin=low, vmax=max(high, low + 1.0), interpolation="nearest",
        aspect="auto",
    )  # fmt: skip
    axis.grid(visible=False)
    scale = axis.inset_axes((1.03, 0.0, 0.05, 1.0))
    axis.figure.colorbar(image, cax=scale, label=label)


def _draw_correlation(axis: Axes, values: NDArray[np.float64], label: str) -> None:
    """Draw a correlation over the lag; a sentence where gains do not vary."""
    axis.axhline(0.0, color="black", linewidth=0.6)
    if np.isnan(values).all():
        axis.text(0.5, 0.5, "gains do not vary", ha="center", transform=axis.transAxes)
    else:
        axis.plot(
            np.arange(values.size), values, color=colour(0), marker="o", label="_values",
            markersize=2.5 if values.size <= 30 else 0,
        )  # fmt: skip
    lowest = min(-0.25, 1.1 * float(np.nanmin(values, initial=0.0)))
    axis.set(xlim=(-0.3, max(1.0, values.size - 0.7)), ylim=(lowest, 1.05))
    axis.set(xlabel=label, ylabel="correlation of gains")
