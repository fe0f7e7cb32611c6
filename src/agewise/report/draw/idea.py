"""The pictures that explain the idea: what a UE needs, and who is chosen."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from agewise.report.draw.ages import MOST_PIXELS
from agewise.report.numbers import Numbers
from agewise.report.style import colour, ink, new_axis, on_page


def water_filling(ues: Sequence[tuple[str, Numbers, Numbers]], axis: Axes | None = None) -> Axes:
    """Draw the subchannels of UEs, each with its name, ``gain[subchannel]`` and ``power``.

    Gains are those at a power of 1, powers shares of the budget. A grey column is as high as the
    inverse of the gain; power fills up to one level for all subchannels of a UE. Over each stands
    its rate in bits per real channel use.
    """
    axis = axis or new_axis(2.2)
    start, middles = 0.0, []
    for place, (_, gain, power) in enumerate(ues):
        order = np.argsort(-gain, kind="stable")
        floor, filled = 1.0 / gain[order], power[order]
        x = start + np.arange(gain.size)
        names = ("1 / gain", "power") if place == 0 else (None, None)
        axis.bar(x, floor, width=0.86, color=ink("others"), linewidth=0, label=names[0])
        axis.bar(
            x, filled, width=0.86, bottom=floor, color=colour(0), linewidth=0, alpha=0.75,
            label=names[1],
        )  # fmt: skip
        for at, top, bits in zip(x, floor + filled, 0.5 * np.log2(1 + filled / floor), strict=True):
            axis.annotate(
                f"{bits:.1f} bit", (at, top), xytext=(0, 3), textcoords="offset points",
                ha="center", fontsize="small", color=ink("ink"),
            )  # fmt: skip
        level = float((floor + filled)[filled > 0].max(initial=0.0))
        axis.plot(
            [x[0] - 0.5, x[-1] + 0.5], [level, level], color=ink("ink"), linewidth=1.2,
            linestyle="--", label="level" if place == 0 else None,
        )  # fmt: skip
        middles.append(float(x.mean()))
        start = float(x[-1]) + 2.2
    axis.set_xticks(middles, [name for name, _, _ in ues])
    axis.tick_params("x", length=0, labelcolor=ink("ink"))
    axis.set_xlim(-1.2, start - 1.0)
    axis.grid(visible=False, axis="x")
    axis.set_ylabel("share of the power budget")
    axis.margins(y=0.1)
    axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    return axis


def ranked_scores(
    score: Numbers, chosen: NDArray[np.int64], axis: Axes | None = None, *, index: int = 0
) -> Axes:
    """Draw ``score[place]``, highest first, and in colour those at the places ``chosen``.

    The cut is behind as many places as were chosen.
    """
    axis = axis or new_axis(1.8)
    places = np.arange(score.size)
    tall = score + 0.03 * max(1e-9, float(score.max(initial=0.0)))  # so that 0 can be seen
    axis.stairs(
        tall, np.arange(score.size + 1) - 0.5, fill=True, color=ink("others"), alpha=0.5,
        label="waits",
    )  # fmt: skip
    axis.bar(
        places[chosen], tall[chosen], width=1.0, color=colour(index), linewidth=0, label="uploads"
    )
    axis.axvline(
        chosen.size - 0.5, color=ink("ink"), linewidth=1.0, linestyle="--", label="_the cut"
    )
    axis.annotate(
        f"cut after {chosen.size}", (chosen.size - 0.5, 1.0), xycoords=("data", "axes fraction"),
        xytext=(4, -2), textcoords="offset points", va="top", fontsize="small", color=ink("ink"),
    )  # fmt: skip
    axis.set_xlim(-0.6, score.size - 0.4)
    axis.set_ylim(0.0, 1.18 * max(float(tall.max(initial=0.0)), 1e-9))
    axis.set_xlabel("UEs by f(age) per subchannel")
    axis.set_ylabel("f(age) / need")
    axis.yaxis.set_major_locator(MaxNLocator(3))
    axis.grid(visible=False, axis="x")
    axis.legend(loc="upper right")
    return axis


def offered_gains(
    gain: NDArray[np.float32], place: NDArray[np.int64], axis: Axes | None = None, *, index: int = 0
) -> Axes:
    """Draw ``gain[place, subchannel]`` in dB, with what was given to whom on top.

    ``place[subchannel]`` is the place of its owner, -1 without one.
    """
    axis = axis or new_axis(1.2)
    places, subchannels = gain.shape
    shown = gain[:: -(-places // MOST_PIXELS)].T
    image = axis.imshow(
        _levels(shown), cmap=gain_colours(), vmin=0.0, vmax=1.0, origin="lower", aspect="auto",
        interpolation="none", extent=(-0.5, places - 0.5, 0.5, subchannels + 0.5),
    )  # fmt: skip
    image.set_gid(f"gains-{index}")
    held = np.flatnonzero(place >= 0)
    axis.plot(
        place[held], held + 1, linestyle="", marker="s", markersize=2.6, color=colour(index),
        markeredgewidth=0,
    )  # fmt: skip
    axis.set_xlim(-0.6, places - 0.4)
    axis.yaxis.set_major_locator(MaxNLocator(2, integer=True))
    axis.set_ylabel("subch.")
    axis.set_xlabel("UEs by f(age) per subchannel")
    axis.grid(visible=False)
    return axis


def gain_colours() -> Colormap:
    """From weak to strong; in the page grey levels, which its style sheet gives their colours."""
    ends = ["black", "white"] if on_page() else ["white", ink("soft")]
    return LinearSegmentedColormap.from_list("gains", ends)


def _levels(gain: NDArray[np.float32]) -> Numbers:
    """Gains on a scale of dB from 0 to 1; gains of 0 are weakest."""
    usable = gain > 0
    if not usable.any():
        return np.zeros(gain.shape)
    with np.errstate(divide="ignore"):
        decibels = 10.0 * np.log10(gain.astype(np.float64))
    low, high = np.percentile(decibels[usable], [5, 95])
    return np.asarray(np.clip((decibels - low) / max(high - low, 1e-9), 0.0, 1.0))
