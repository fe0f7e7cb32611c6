"""Pictures of ages: of every UE over the rounds, at the end, and over the cell."""

from collections.abc import Callable, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.colors import LinearSegmentedColormap, Normalize, to_rgba
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from agewise.records import History
from agewise.report import _style as style
from agewise.report._setting import Setting
from agewise.report.pictures import Shown
from agewise.tables._words import counted


def draw_heat(setting: Setting, names: Sequence[str], canvas: style.Canvas) -> Shown:
    """Draw ``ages[round, ue]`` of each policy, near UEs at the bottom, or in their order."""
    # From fresh to stale; on the page grey levels, which its style sheet gives their colours.
    ends = (
        ["black", "white"]
        if style.on_page()
        else [style.ink("fresh"), "#9f9a78", style.ink("stale")]
    )
    colours, oldest = LinearSegmentedColormap.from_list("ages", ends), setting.oldest
    axes = style.axes_abreast(canvas, names)
    for axis, name in zip(axes, names, strict=True):
        ages, distance_m = setting.history(name).ages, setting.distances_m(name)
        rounds, count = ages.shape
        order = np.arange(count) if distance_m is None else np.argsort(distance_m, kind="stable")
        table = ages.T[order]
        if style.on_page():
            table = table[:: -(-count // style.MOST_PIXELS), :: -(-rounds // style.MOST_PIXELS)]
        axis.imshow(
            np.minimum(table / oldest, 1.0), cmap=colours, vmin=0.0, vmax=1.0, origin="lower",
            aspect="auto", interpolation="none", extent=(0.5, rounds + 0.5, 0.0, count),
        )  # fmt: skip
        axis.grid(visible=False)
        style.count_rounds(axis)
        axis.set_ylabel(style.ues() if distance_m is None else f"{style.ues()} by distance (m)")
        if distance_m is not None:
            far_m = float(distance_m.max())
            ticks = MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]).tick_values(0.0, far_m)
            marks = [float(mark) for mark in ticks if 0 < mark <= far_m]
            rows, first = np.unique(np.searchsorted(np.sort(distance_m), marks), return_index=True)
            axis.set_yticks(rows, [f"{marks[index]:g}" for index in first])
        axis.label_outer()
    if not style.on_page():  # the page has one scale for all
        scale = mpl.cm.ScalarMappable(Normalize(0, oldest), colours)
        canvas.colorbar(scale, ax=list(axes), label="age (rounds)", extend="max", pad=0.02)
    name = names[0]
    old = int(np.sum(setting.history(name).ages[-1] >= oldest))
    phones = counted(old, "phone") if old else "no phone"
    placed = setting.distances_m(name) is not None
    return Shown(
        f"{setting.display_name(name)}: {phones} unheard for {oldest:g} rounds",
        f"The age of every phone in seed {setting.seed}: a row is a phone"
        f"{', the farthest on top' if placed else ''}.",
        2.6 if style.on_page() else 2.4,
    )


def draw_distribution(setting: Setting, names: Sequence[str], canvas: style.Canvas) -> Shown:
    """Draw what share of the UEs of all seeds is at most so old after the last round."""
    axis = canvas.subplots()
    ages = {name: setting.ages(name)[:, -1].ravel() for name in names}
    oldest = max(2, max(int(each.max()) for each in ages.values()))
    for name, each in ages.items():
        index = setting.indices[name]
        share = np.cumsum(np.bincount(each, minlength=oldest + 1)) / each.size
        axis.step(
            np.arange(oldest + 1), share, where="post", label=name,
            color=style.colour(index), linestyle=style.dash(index),
        )  # fmt: skip
    axis.set(xlabel="age after the last round (rounds)", ylabel="share of UEs at most as old")
    axis.set(xlim=(0, 1.02 * oldest), ylim=(0.0, 1.02))  # so that a step at the end can be seen
    axis.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    style.legend_above(axis)
    most = setting.listed({name: f"{np.percentile(x, 95):.0f}" for name, x in ages.items()})
    return Shown(
        f"The age that 19 of 20 phones stay within: {most} rounds",
        "What share of the phones is at most as old, after the last round, over all seeds.",
    )


def draw_cell(setting: Setting, names: Sequence[str], canvas: style.Canvas) -> Shown | None:
    """Draw the UEs of the last round where they are, by age; those that upload are ringed."""
    if any(setting.last_positions_m(name) is None for name in names):
        return None
    for axis, name in zip(style.axes_abreast(canvas, names), names, strict=True):
        positions_m = np.asarray(setting.last_positions_m(name))
        ages, uploads = setting.choice(name, setting.rounds - 1)
        reach_m = float(np.hypot(*positions_m.T).max())
        size = float(np.clip(3000 / len(ages), 9, 60))
        on = np.isin(np.arange(len(ages)), uploads)
        axis.scatter(0.0, 0.0, marker="^", s=50, color=style.ink("ink"), zorder=4)
        for at in positions_m[on]:
            axis.plot(
                *np.stack([np.zeros(2), at]).T, color=style.ink("lose"), linewidth=0.8, zorder=2
            )
        level = np.round(8 * np.minimum(ages / setting.oldest, 1.0)) / 8
        for chosen, edge, width, order in (
            (~on, style.ink("soft"), 0.4, 1),
            (on, style.ink("lose"), 1.6, 3),
        ):
            ranked = np.flatnonzero(chosen)[np.argsort(level[chosen], kind="stable")]
            x, y = positions_m[ranked].T
            axis.scatter(
                x, y, s=size, c=style.ink("fresh"), edgecolors=edge, linewidths=width, zorder=order
            )
            cover = [to_rgba(style.ink("stale"), share) for share in level[ranked]]
            axis.scatter(x, y, s=size, facecolors=cover, linewidths=0, zorder=order)
        ends = (-1.06 * reach_m, 1.06 * reach_m)
        axis.set(aspect="equal", xlim=ends, ylim=ends, xlabel="metres from the AP")
        axis.grid(visible=False)
    return Shown(
        f"{names[0]} in round {setting.rounds}",
        "Phones around the access point (the triangle); those that upload are ringed.",
        4.4 if style.on_page() else 3.2,
    )


def draw_devices(setting: Setting, names: Sequence[str], canvas: style.Canvas) -> Shown | None:
    """Draw how long each class of devices waits, what it spends, and how many uploads are lost."""
    measures: dict[str, Callable[[History], NDArray[np.float64]]] = {
        "mean age (rounds)": lambda history: history.ages.mean(axis=0),
        "joules a round": lambda history: history.energy_j / len(history),
        "uploads lost (%)": _lost,
    }
    values = {
        label: {name: setting.by_class(name, measure) for name in names}
        for label, measure in measures.items()
    }
    classes = list(next(iter(values["mean age (rounds)"].values())))
    if len(classes) < 2:
        return None
    known = {
        label: each
        for label, each in values.items()
        if any(x > 0 for found in each.values() for x in found.values())
    }
    axes = canvas.subplots(len(known), 1, squeeze=False)[:, 0]
    for axis, (label, each) in zip(axes, known.items(), strict=True):
        for name, found in each.items():
            index = setting.indices[name]
            axis.plot(
                list(found.values()), range(len(classes)), linestyle="", color=style.colour(index),
                marker=style.marker(index), markersize=5.5, label=name,
            )  # fmt: skip
        axis.set_yticks(range(len(classes)), classes)
        axis.set(xlabel=label, ylim=(len(classes) - 0.5, -0.5))
        axis.set_xlim(left=0.0)
    style.legend_above(axes[0])
    waits = {}
    for name in (each for each in setting.pair if each in names):
        found = values["mean age (rounds)"][name]
        worst = max(found, key=found.__getitem__)
        waits[name] = f"{worst} ({found[worst]:.1f} rounds)"
    return Shown(
        f"Who waits longest: {setting.listed(waits)}",
        "What each class of devices has of it, means over its phones, all rounds and seeds.",
        0.7 + (0.55 + 0.22 * len(classes)) * len(known),
    )


def _lost(history: History) -> NDArray[np.float64]:
    """``[ue]``: percent of the uploads that did not arrive; 0 of who never sent."""
    sent = np.bincount(np.concatenate(history.scheduled), minlength=history.info.ue_count)
    came = np.bincount(np.concatenate(history.received), minlength=history.info.ue_count)
    return np.asarray(100.0 * (sent - came) / np.maximum(sent, 1))


def draw_staleness(setting: Setting, names: Sequence[str], canvas: style.Canvas) -> Shown | None:
    """Draw how many versions old the updates are that arrive."""
    found = {
        name: np.concatenate(
            [each for run in setting.runs[name].values() for each in run.staleness]
        )
        for name in names
    }
    most = max((int(each.max(initial=0)) for each in found.values()), default=0)
    if most == 0:
        return None
    axis = canvas.subplots()
    for name, each in found.items():
        index, share = setting.indices[name], np.bincount(each, minlength=most + 1) / each.size
        axis.plot(
            np.arange(most + 1), 100 * share, color=style.colour(index), label=name,
            linestyle=style.dash(index), marker=style.marker(index), markersize=4,
        )  # fmt: skip
    axis.set(xlabel="staleness of an update (versions)", ylabel="% of the updates that arrive")
    axis.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axis.set_ylim(bottom=0.0)
    style.legend_above(axis)
    means = {name: f"{x.mean():.1f}" for name, x in found.items() if name in setting.pair}
    return Shown(
        f"Updates start from a model so many versions old: {setting.listed(means)}",
        "The staleness of the updates that arrived, over all rounds and seeds: phones learn in the "
        "background while the model goes on.",
    )
