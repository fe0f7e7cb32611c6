"""Pictures of the channel: where UEs are, how good their channels are, what they need."""

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from agewise.report import _style as style
from agewise.report._setting import Setting
from agewise.report.pictures import Shown
from agewise.tables._words import counted

#: More bars than these are drawn as one for all the rest.
_MOST_BARS = 7
_MOST_DOTS = 2000


def draw_places(setting: Setting, names: Sequence[str], canvas: style.Canvas) -> Shown | None:
    """Draw the cell from above: the mean SNR as the ground, UEs as dots."""
    del names
    view = setting.radio
    if view is None or view.positions_m is None or (style.on_page() and view.area_snr_db is None):
        return None
    cell_from_above(canvas.subplots(), view)
    if view.area_snr_db is None:
        return Shown("Where the phones are", "The cell from above.", 3.2)
    low, high = np.nanpercentile(view.area_snr_db, (1, 99))
    return Shown(
        f"A mean SNR from {low:.0f} to {high:.0f} dB in the cell",
        "The cell from above, with all power on one subchannel. The ground stands out where the "
        "channel is good; dots are phones.",
        3.2,
    )


def draw_snr(setting: Setting, names: Sequence[str], canvas: style.Canvas) -> Shown | None:
    """Draw how the mean SNR is distributed over the UEs."""
    del names
    if (view := setting.radio) is None:
        return None
    snr_distribution(canvas.subplots(), view)
    median = float(np.median(view.mean_snr_db))
    needed = " The dashed line is what one subchannel needs." if view.rate_threshold else ""
    return Shown(
        f"Half of the phones have a mean SNR below {median:.0f} dB",
        f"With all power on one subchannel.{needed}",
        3.2,
    )


def draw_need(setting: Setting, names: Sequence[str], canvas: style.Canvas) -> Shown | None:
    """Draw how many subchannels UEs need, alone in the cell."""
    del names
    view = setting.radio
    if view is None or view.needed is None:
        return None
    need_bars(canvas.subplots(), view)
    never = f" {counted(view.never_served, 'phone')} can never be served."
    return Shown(
        f"One subchannel is enough in {100 * view.needed[1]:.0f}% of all cases",
        "Subchannels that a phone needs in a round, alone in the cell."
        f"{never if view.never_served else ''}",
        3.2,
    )


# What is drawn, for these pictures and for `agewise.draw_channel`


def cell_from_above(axis: Axes, view: SimpleNamespace) -> None:
    """Draw mean SNR as the ground, line of sight outlined, UEs as dots."""
    positions_m, reach_m = view.positions_m, view.reach_m
    if view.area_snr_db is not None:
        ends = ["black", "white"]
        shades = LinearSegmentedColormap.from_list("gains", ends) if style.on_page() else "cividis"
        low, high = np.nanpercentile(view.area_snr_db, (1.0, 99.0))
        image = axis.imshow(
            view.area_snr_db, cmap=shades, vmin=low, vmax=max(high, low + 1.0), origin="lower",
            interpolation="nearest", extent=(-reach_m, reach_m, -reach_m, reach_m),
        )  # fmt: skip
        image.set_gid("gains-snr")
        if not style.on_page():
            scale = axis.inset_axes((1.03, 0.0, 0.05, 1.0))
            axis.figure.colorbar(image, cax=scale, label="mean SNR (dB)")
            if (los := view.line_of_sight_area) is not None and los.any():
                middles = reach_m * ((np.arange(len(los)) + 0.5) * (2 / len(los)) - 1)
                axis.contour(middles, middles, los, levels=[0.5], colors="white", linewidths=0.5)
    axis.grid(visible=False)
    axis.set_aspect("equal", adjustable="datalim" if view.area_snr_db is None else "box")
    count = min(len(positions_m), _MOST_DOTS)
    shown = np.unique(np.linspace(0, len(positions_m) - 1, count).astype(np.int64))
    fill = style.ink("card") if style.on_page() else "white"
    groups = [(np.ones(len(positions_m), np.bool_), "UE", "o", fill)]
    if (los := view.line_of_sight) is not None:
        other = style.colour(1)
        groups = [(los, "line of sight", "o", fill), (~los, "no line of sight", "s", other)]
    for mask, label, marker, tone in groups:
        x, y = positions_m[shown[mask[shown]]].T
        axis.scatter(
            x, y, s=float(np.clip(900.0 / count, 1.0, 12.0)), marker=marker, c=tone,
            edgecolors=style.ink("ink"), linewidths=0.5, label=label, zorder=3,
        )  # fmt: skip
    axis.plot(0, 0, marker="^", color=style.ink("ink"), markersize=6, zorder=4, label="_AP")
    axis.set(xlabel="x (m)", ylabel="y (m)")
    if len(groups) > 1:
        axis.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.24), ncols=2, handletextpad=0.1,
            columnspacing=0.8, fontsize="small",
        )  # fmt: skip


def snr_distribution(axis: Axes, view: SimpleNamespace) -> None:
    """Draw the distribution of the mean SNR over the UEs, and what one subchannel needs."""
    snr, ues = np.sort(view.mean_snr_db[np.isfinite(view.mean_snr_db)]), view.mean_snr_db.size
    share = np.arange(1, snr.size + 1) / ues + (1 - snr.size / ues)
    axis.step(snr, share, where="post", color=style.colour(0), label="_share")
    of = "phone (UE)" if style.on_page() else "UE"
    axis.set(xlabel=f"mean SNR of a {of} (dB)", ylabel=f"share of {style.ues()} below")
    axis.set_ylim(0, 1.02)
    if view.rate_threshold:
        needed_db = 10 * np.log10(2.0 ** (2 * view.rate_threshold) - 1)
        axis.axvline(needed_db, color=style.colour(1), linestyle="--", linewidth=0.9)
        axis.margins(x=0.12)
        if not style.on_page():
            below = float(np.mean(view.mean_snr_db < needed_db)) < 0.5  # room above on the left
            axis.annotate(
                "1 subchannel for $R_s$", (needed_db, 0.98 if below else 0.03), rotation=90,
                xytext=(-2 if below else 2, 0), textcoords="offset points", fontsize=6.5,
                color=style.colour(1), ha="right" if below else "left",
                va="top" if below else "bottom",
            )  # fmt: skip


def need_bars(axis: Axes, view: SimpleNamespace) -> None:
    """Draw how many subchannels UEs need alone in the cell; those that none serve stand apart."""
    most = min(view.needed.size - 1, _MOST_BARS)
    last = max(1, int(np.max(np.flatnonzero(view.needed[1:]), initial=0)) + 1)
    bars = view.needed[1 : min(most, last) + 1].copy()
    names = [str(count) for count in range(1, bars.size + 1)]
    if last > most:
        bars[-1] += view.needed[most + 1 :].sum()
        names[-1] = f"{most}+"
    places = np.arange(bars.size + 1.0)
    places[-1] += 0.3
    axis.bar(places[:-1], 100 * bars, color=style.colour(0), width=0.8)
    axis.bar(places[-1:], 100 * view.needed[:1], color=style.colour(1), width=0.8)
    axis.set_xticks(places, [*names, "none"])
    axis.grid(visible=False, axis="x")
    axis.set(xlabel="subchannels needed", ylabel=f"% of {style.ues()} and rounds")
