"""Pictures of ages: of every UE over the rounds, at the end, and over the cell."""

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize, to_rgba
from matplotlib.ticker import MaxNLocator

from agewise.report._setting import Setting
from agewise.report._style import MOST_PIXELS, Canvas, colour, dash, ink, legend_above, on_page
from agewise.report.pictures import Shown


def draw_heat(setting: Setting, names: Sequence[str], canvas: Canvas) -> Shown:
    """Draw ``ages[round, ue]`` of each policy, near UEs at the bottom, or in their order."""
    colours, oldest = _colours(), setting.oldest
    axes = canvas.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for axis, name in zip(axes, names, strict=True):
        ages, distance_m = setting.history(name).ages, setting.distances_m(name)
        rounds, count = ages.shape
        order = np.arange(count) if distance_m is None else np.argsort(distance_m, kind="stable")
        table = ages.T[order]
        if on_page():
            table = table[:: -(-count // MOST_PIXELS), :: -(-rounds // MOST_PIXELS)]
        axis.imshow(
            np.minimum(table / oldest, 1.0), cmap=colours, vmin=0.0, vmax=1.0, origin="lower",
            aspect="auto", interpolation="none", extent=(0.5, rounds + 0.5, 0.0, count),
        )  # fmt: skip
        axis.grid(visible=False)
        axis.set_xlabel("communication round")
        axis.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axis.set_ylabel("UE" if distance_m is None else "UEs by distance (m)")
        if distance_m is not None:
            far_m = float(distance_m.max())
            ticks = MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]).tick_values(0.0, far_m)
            marks = [float(mark) for mark in ticks if 0 < mark <= far_m]
            rows, first = np.unique(np.searchsorted(np.sort(distance_m), marks), return_index=True)
            axis.set_yticks(rows, [f"{marks[index]:g}" for index in first])
        axis.label_outer()
        if not on_page():
            axis.set_title(name, fontsize="medium")
    if not on_page():  # the page has one scale for all
        scale = mpl.cm.ScalarMappable(Normalize(0, oldest), colours)
        canvas.colorbar(scale, ax=list(axes), label="age (rounds)", extend="max", pad=0.02)
    name = names[0]
    old = int(np.sum(setting.history(name).ages[-1] >= oldest))
    phones = f"{old} of {setting.ues} phones" if old else "no phone"
    placed = setting.distances_m(name) is not None
    return Shown(
        f"{setting.display_name(name)} leaves {phones} unheard for {oldest:g} rounds",
        f"Age of every phone after each round of seed {setting.seed}: a row is a phone, "
        f"{'near the access point at the bottom' if placed else 'in their order'}.",
        2.6 if on_page() else 2.4,
    )


def draw_distribution(setting: Setting, names: Sequence[str], canvas: Canvas) -> Shown:
    """Draw what share of the UEs of all seeds is at most so old after the last round."""
    axis = canvas.subplots()
    ages = {name: setting.ages(name)[:, -1].ravel() for name in names}
    oldest = max(2, max(int(each.max()) for each in ages.values()))
    for name, each in ages.items():
        index = setting.indices[name]
        share = np.cumsum(np.bincount(each, minlength=oldest + 1)) / each.size
        axis.step(
            np.arange(oldest + 1), share, where="post", color=colour(index), linestyle=dash(index),
            label=name,
        )  # fmt: skip
    axis.set_xlabel("age after the last round (rounds)")
    axis.set_ylabel("share of UEs at most as old")
    axis.set_ylim(0.0, 1.02)
    axis.set_xlim(0, 1.02 * oldest)  # so that a step at the end can be seen
    axis.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    legend_above(axis)
    most = setting.listed({name: f"{np.percentile(x, 95):.0f}" for name, x in ages.items()})
    return Shown(
        f"The age that 19 of 20 phones stay within: {most} rounds",
        "What share of the phones is at most as old, after the last round, over all seeds.",
    )


def draw_cell(setting: Setting, names: Sequence[str], canvas: Canvas) -> Shown | None:
    """Draw the UEs of the last round where they are, by age; those that upload are ringed."""
    if any(setting.last_positions_m(name) is None for name in names):
        return None
    axes = canvas.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for axis, name in zip(axes, names, strict=True):
        positions_m = np.asarray(setting.last_positions_m(name))
        ages, uploads = setting.choice(name, setting.rounds - 1)
        reach_m = float(np.hypot(*positions_m.T).max())
        size = float(np.clip(3000 / len(ages), 9, 60))
        on = np.isin(np.arange(len(ages)), uploads)
        axis.scatter(0.0, 0.0, marker="^", s=50, color=ink("ink"), zorder=4)
        for at in positions_m[on]:
            axis.plot(*np.stack([np.zeros(2), at]).T, color=ink("lose"), linewidth=0.8, zorder=2)
        level = np.round(8 * np.minimum(ages / setting.oldest, 1.0)) / 8
        for chosen, edge, width, order in ((~on, ink("soft"), 0.4, 1), (on, ink("lose"), 1.6, 3)):
            ranked = np.flatnonzero(chosen)[np.argsort(level[chosen], kind="stable")]
            x, y = positions_m[ranked].T
            axis.scatter(
                x, y, s=size, c=ink("fresh"), edgecolors=edge, linewidths=width, zorder=order
            )
            cover = [to_rgba(ink("stale"), share) for share in level[ranked]]
            axis.scatter(x, y, s=size, facecolors=cover, linewidths=0, zorder=order)
        axis.set_aspect("equal")
        axis.set_xlim(-1.06 * reach_m, 1.06 * reach_m)
        axis.set_ylim(-1.06 * reach_m, 1.06 * reach_m)
        axis.set_xlabel("metres from the AP")
        axis.grid(visible=False)
        if not on_page():
            axis.set_title(name, fontsize="medium")
    return Shown(
        f"{names[0]} in round {setting.rounds}",
        "Phones around the access point (the triangle); those that upload are ringed.",
        4.4 if on_page() else 3.2,
    )


def _colours() -> Colormap:
    """From fresh to stale; in the page grey levels, which its style sheet gives their colours."""
    if on_page():
        return LinearSegmentedColormap.from_list("ages", ["black", "white"])
    return LinearSegmentedColormap.from_list("ages", [ink("fresh"), "#9f9a78", ink("stale")])
