"""The moving picture of the README: two policies on the same phones, round by round.

``python -m benchmarks.documents.animation`` writes docs/images/replay.gif.
"""

import io
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle
from PIL import Image

import agewise

OUTPUT: Final = Path("docs/images/replay.gif")
POLICIES: Final = {"age-based": "#0072b2", "max-pack": "#d55e00"}
ROUNDS, OLDEST, SEED = 50, 30, 0
FRAME_MS, LAST_MS = 180, 3000
_INK, _RING = "#1f2933", "#b5152b"


def main() -> None:
    """Simulate both policies and write a frame for each round."""
    scenario = agewise.Scenario.preset("paper").with_(**{"run.rounds": ROUNDS})
    histories = [agewise.simulate(scenario, policy, SEED) for policy in POLICIES]
    frames = [_frame(histories, t) for t in range(ROUNDS)]
    palette = frames[-1].quantize(96, dither=Image.Dither.NONE)
    small = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    small[0].save(
        OUTPUT, save_all=True, append_images=small[1:], loop=0, optimize=True,
        duration=[FRAME_MS] * (ROUNDS - 1) + [LAST_MS],
    )  # fmt: skip


def _frame(histories: list[agewise.History], t: int) -> Image.Image:
    figure = Figure(figsize=(8.6, 4.9), facecolor="white")
    shades: Any = None
    for column, history in enumerate(histories):
        axis = figure.add_axes((0.01 + 0.5 * column, 0.17, 0.48, 0.7))
        shades = _cell(axis, history, t)
        name = history.info.policy.name
        heard = np.unique(np.concatenate(history.received[: t + 1])).size
        figure.text(0.25 + 0.5 * column, 0.94, name, color=POLICIES[name], size=15,
                    weight="bold", ha="center")  # fmt: skip
        words = f"heard {heard} of 100 phones    accuracy {history.accuracy[t]:.0%}"
        figure.text(0.25 + 0.5 * column, 0.885, words, color=_INK, size=11, ha="center")
    bar = figure.colorbar(
        shades, cax=figure.add_axes((0.06, 0.12, 0.3, 0.03)), orientation="horizontal"
    )
    bar.set_ticks([0, 10, 20, 30], labels=["0", "10", "20", "30 and more"])
    bar.set_label("rounds since the phone was last heard", size=10, color=_INK)
    bar.ax.tick_params(labelsize=9)
    marks = [
        Line2D([], [], marker="o", color=_RING, markerfacecolor="none", markeredgewidth=2),
        Line2D([], [], marker="^", color=_INK, linestyle="none", markersize=9),
    ]
    figure.legend(marks, ["uploads in this round", "access point"], loc="center",
                  bbox_to_anchor=(0.635, 0.105), frameon=False, ncols=2, fontsize=10)  # fmt: skip
    figure.text(0.97, 0.09, f"round {t + 1}", size=13, weight="bold", ha="right", color=_INK)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=100)
    return Image.open(buffer).convert("RGB")


def _cell(axis: Any, history: agewise.History, t: int) -> Any:
    """The phones around the access point, by the age of what it knows of them."""
    assert history.info.positions_m is not None
    x, y = history.info.positions_m.T
    ages = history.ages[t - 1] if t else np.zeros(x.size)
    now = history.received[t]
    axis.add_patch(Circle((0, 0), 100, facecolor="#eef1f5", edgecolor="#c5ccd4", zorder=0))
    for ue in now:
        axis.plot([0, x[ue]], [0, y[ue]], color=_RING, linewidth=0.8, alpha=0.6, zorder=1)
    shades = axis.scatter(
        x, y, c=ages, cmap="cividis_r", norm=Normalize(0, OLDEST), s=42, zorder=2,
        edgecolors="#55606b", linewidths=0.5,
    )  # fmt: skip
    axis.scatter(x[now], y[now], s=75, facecolors="none", edgecolors=_RING, linewidths=2, zorder=3)
    axis.plot(0, 0, marker="^", color=_INK, markersize=10, zorder=4)
    axis.set(xlim=(-102, 102), ylim=(-102, 102), aspect="equal")
    axis.axis("off")
    return shades


if __name__ == "__main__":
    main()
