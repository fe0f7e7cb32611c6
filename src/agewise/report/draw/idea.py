"""The pictures that explain the idea: what a UE needs, and who is chosen."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from agewise.report.numbers import Numbers
from agewise.report.style import colour, ink, new_axis


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


def chosen_ages(
    ages: NDArray[np.int64],
    chosen: NDArray[np.int64],
    subchannels: NDArray[np.int64],
    axis: Axes | None = None,
    *,
    index: int = 0,
) -> Axes:
    """Draw ``ages[ue]`` before a round, the oldest first; those of the ``chosen`` in colour.

    ``subchannels[chosen]`` stands over each of these, if it is not one.
    """
    axis = axis or new_axis(1.8)
    order = np.argsort(-ages, kind="stable")
    on = np.isin(order, chosen)
    places = np.arange(order.size)
    tall = ages[order] + 0.12  # so that an age of 0 can be seen
    axis.stairs(
        tall, np.arange(order.size + 1) - 0.5, fill=True, color=ink("others"), alpha=0.5,
        label="waits",
    )  # fmt: skip
    axis.bar(places[on], tall[on], width=1.0, color=colour(index), linewidth=0, label="uploads")
    held = dict(zip(chosen.tolist(), subchannels.tolist(), strict=True))
    for place in places[on]:
        ue = int(order[place])
        if held[ue] == 1:
            continue
        axis.annotate(
            str(held[ue]), (place, ages[ue]), xytext=(0, 2), textcoords="offset points",
            ha="center", va="bottom", fontsize="x-small", color=ink("ink"),
        )  # fmt: skip
    axis.set_xlim(-0.6, order.size - 0.4)
    axis.set_xlabel("UEs, the longest unheard first")
    axis.set_ylabel("age (rounds)")
    axis.grid(visible=False, axis="x")
    axis.margins(y=0.18)
    axis.legend(loc="upper right")
    return axis
