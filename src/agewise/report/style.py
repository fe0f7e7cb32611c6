"""How figures for papers look: one IEEE column, vector, colours that everybody can tell apart."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agewise.extras import require
from agewise.files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

COLUMN_IN = 3.5
PAGE_IN = 7.16
#: Okabe and Ito's colours, which the colour-blind can tell apart, the dark ones first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))


def dash_place(place: int) -> int:
    """Which dash the policy at this place has: once the colours repeat, another one."""
    return (place + place // len(COLOURS)) % len(DASHES)


@contextlib.contextmanager
def paper_style() -> Iterator[Any]:
    """Fonts and lines of the size that a column needs; fonts embedded in PDF files."""
    plt = pyplot()
    settings = {
        "font.size": 8,
        "axes.linewidth": 0.6,
        "axes.grid": True,
        "grid.linewidth": 0.4,
        "grid.alpha": 0.4,
        "lines.linewidth": 1.2,
        "legend.frameon": False,
        "legend.fontsize": 7,
        "pdf.fonttype": 42,
        "ps.fonttype": 42,
        "savefig.dpi": 200,
    }
    with plt.rc_context(settings):
        yield plt


def pyplot() -> Any:
    """Matplotlib's pyplot, or one sentence on how to get it."""
    return require("matplotlib.pyplot", "plot")


def new_axis(width_in: float, height_in: float) -> "Axes":
    """An axis of its own figure."""
    _, axis = pyplot().subplots(figsize=(width_in, height_in), layout="constrained")
    return axis  # type: ignore[no-any-return]


def save(figure: "Figure | SubFigure", path: Path) -> None:
    """Write the figure whole; dates are left out, so that the same figure is the same file."""
    kind = path.suffix.removeprefix(".") or "png"
    dateless = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
    with write_whole(path) as temporary:
        figure.savefig(temporary, format=kind, metadata=dateless.get(kind))  # type: ignore[union-attr]
