"""The label distribution of a partition."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from agewise.report.style import PAGE_IN, new_axis, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def label_distribution(
    counts: NDArray[np.int64], names: tuple[str, ...], axis: "Axes | None" = None
) -> "Axes":
    """Draw ``counts[ue, class]`` (of `agewise.data.Partition.label_counts`), a bar per UE.

    Each bar shows what shares of the classes a UE holds; its height is its number of samples.
    """
    axis = axis or new_axis(PAGE_IN, 2.4)
    colours: Any = pyplot().get_cmap("tab20" if len(names) > 10 else "tab10")
    floor = np.zeros(len(counts))
    for label, name in enumerate(names):
        axis.bar(
            np.arange(len(counts)), counts[:, label], bottom=floor, width=1.0, label=name,
            color=colours(label % colours.N), linewidth=0,
        )  # fmt: skip
        floor += counts[:, label]
    axis.set_xlim(-0.5, len(counts) - 0.5)
    axis.set_xlabel("UE")
    axis.set_ylabel("samples")
    axis.legend(
        title="class", ncols=2 if len(names) > 5 else 1, loc="center left", frameon=False,
        bbox_to_anchor=(1.0, 0.5), fontsize="small", title_fontsize="small",
    )  # fmt: skip
    return axis
