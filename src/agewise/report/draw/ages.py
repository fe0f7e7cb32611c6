"""Pictures of ages: of every UE over the rounds, of all UEs together, and over the cell."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, to_rgba
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from agewise.report.numbers import Numbers
from agewise.report.style import colour, dash, ink, new_axis, on_page

#: More rows or columns than this cannot be told apart on a page.
MOST_PIXELS = 250


def age_colours() -> Colormap:
    """From fresh to stale; in the page grey levels, which its style sheet gives their colours."""
    if on_page():
        return LinearSegmentedColormap.from_list("ages", ["black", "white"])
    return LinearSegmentedColormap.from_list("ages", [ink("fresh"), "#9f9a78", ink("stale")])


def age_heat_map(
    ages: NDArray[np.int64],
    distance_m: Numbers | None,
    oldest: float,
    axis: Axes | None = None,
) -> Axes:
    """Draw ``ages[round, ue]`` after each round, near UEs at the bottom; darkest at ``oldest``.

    Without distances the UEs are in the order of their numbers.
    """
    axis = axis or new_axis(2.4)
    rounds, count = ages.shape
    order = np.arange(count) if distance_m is None else np.argsort(distance_m, kind="stable")
    table = ages.T[order]
    if on_page():
        table = table[:: -(-count // MOST_PIXELS), :: -(-rounds // MOST_PIXELS)]
    axis.imshow(
        np.minimum(table / oldest, 1.0), cmap=age_colours(), vmin=0.0, vmax=1.0, origin="lower",
        aspect="auto", interpolation="none", extent=(0.5, rounds + 0.5, 0.0, count),
    )  # fmt: skip
    axis.grid(visible=False)
    axis.set_xlabel("communication round")
    axis.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    if distance_m is None:
        axis.set_ylabel("UE")
        return axis
    marks = _distances(float(distance_m.max()))
    rows, first = np.unique(np.searchsorted(np.sort(distance_m), marks), return_index=True)
    axis.set_yticks(rows, [f"{marks[index]:g}" for index in first])
    axis.set_ylabel("UEs by distance (m)")
    return axis


def _distances(largest_m: float) -> list[float]:
    """Round distances for the ticks."""
    marks = MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]).tick_values(0.0, largest_m)
    return [float(mark) for mark in marks if 0 < mark <= largest_m]


def age_distribution(
    ages: Mapping[str, NDArray[np.int64]],
    axis: Axes | None = None,
    *,
    indices: Mapping[str, int] | None = None,
) -> Axes:
    """Draw what share of ``ages[policy][ue]`` (of all seeds) is at most so old."""
    axis = axis or new_axis()
    oldest = max(2, max(int(each.max()) for each in ages.values()))
    for place, (name, each) in enumerate(ages.items()):
        index = place if indices is None else indices[name]
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
    axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=1 if on_page() else 2)
    return axis


def cell_map(
    positions_m: Numbers,
    ages: NDArray[np.int64],
    uploads: NDArray[np.int64],
    oldest: float,
    axis: Axes | None = None,
) -> Axes:
    """Draw the UEs at ``positions_m[ue, (x, y)]`` by age; those that upload are ringed, on top."""
    axis = axis or new_axis(3.2)
    reach = float(np.hypot(*positions_m.T).max())
    size = float(np.clip(3000 / len(ages), 9, 60))
    on = np.isin(np.arange(len(ages)), uploads)
    axis.scatter(0.0, 0.0, marker="^", s=50, color=ink("ink"), zorder=4)
    for ue in np.flatnonzero(on):
        axis.plot(
            *np.stack([np.zeros(2), positions_m[ue]]).T, color=ink("lose"), linewidth=0.8, zorder=2
        )
    level = np.round(8 * np.minimum(ages / oldest, 1.0)) / 8
    for chosen, edge, width, order in ((~on, ink("soft"), 0.4, 1), (on, ink("lose"), 1.6, 3)):
        ranked = np.flatnonzero(chosen)[np.argsort(level[chosen], kind="stable")]
        x, y = positions_m[ranked].T
        axis.scatter(x, y, s=size, c=ink("fresh"), edgecolors=edge, linewidths=width, zorder=order)
        cover = [to_rgba(ink("stale"), share) for share in level[ranked]]
        axis.scatter(x, y, s=size, facecolors=cover, linewidths=0, zorder=order)
    axis.set_aspect("equal")
    axis.set_xlim(-1.06 * reach, 1.06 * reach)
    axis.set_ylim(-1.06 * reach, 1.06 * reach)
    axis.set_xlabel("metres from the AP")
    axis.grid(visible=False)
    return axis
