"""How pictures look: colours, dashes and sizes, for the page and for papers."""

import contextlib
import io
import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import style as mpl_style
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure, SubFigure
from matplotlib.image import AxesImage
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text
from matplotlib.ticker import Formatter, MaxNLocator

from agewise.files import write_whole
from agewise.tables.table import latex_text

#: What a picture is drawn on: a figure, or a part of one.
Canvas = Figure | SubFigure
#: The dash of a line by its name, or an offset with the lengths of strokes and gaps.
Dash = str | tuple[float, tuple[float, ...]]
#: Widths of one and of both columns of an IEEE paper.
COLUMN_IN = 3.5
PAGE_IN = 7.16
#: More rows or columns of squares than this cannot be told apart on a page.
MOST_PIXELS = 250

#: The colours of policies, after Okabe and Ito, with a contrast of at least 3:1 to the page; in
#: the dark the lighter ones of the same hue.
LIGHT = (
    "#0072b2", "#d55e00", "#00875f", "#c4558f", "#2f93c8", "#b07800", "#1b1f24", "#6a4cf0",
    "#7a2a00", "#15157a", "#7b7d00", "#9c2fb0",
)  # fmt: skip
DARK = (
    "#4fa8e0", "#ff8a4c", "#2fbf94", "#e08cbd", "#8fd0f5", "#f0b840", "#e9ecf0", "#9a8cff",
    "#b9713a", "#4f7df0", "#e6e06a", "#c970dd",
)  # fmt: skip
#: What else has a colour: its name, in the light, in the dark.
INKS: Mapping[str, tuple[str, str]] = {
    "ink": ("#1c2025", "#e8ebef"),
    "soft": ("#57606a", "#a7b0bb"),
    "line": ("#d5dae0", "#363d47"),
    "card": ("#f7f8fa", "#1b2027"),
    "others": ("#87909b", "#7d8793"),
    "fresh": ("#fdeeae", "#16305f"),
    "stale": ("#0b2658", "#fee839"),
    "win": ("#2166ac", "#5fa8e6"),
    "lose": ("#b2182b", "#f0766d"),
}
_DASHES: tuple[Dash, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
_MARKERS = "osd^vP*X<>hp"

_BOTH: dict[Any, Any] = {
    "axes.grid": True,
    "axes.linewidth": 0.6,
    "axes.axisbelow": True,
    "grid.linewidth": 0.4,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "savefig.dpi": 200,
    "svg.hashsalt": "agewise",  # names of elements that do not change from file to file
}
_STIX = {"font.family": "STIXGeneral", "mathtext.fontset": "stix"}
_PAPER = _BOTH | _STIX | {"font.size": 8, "legend.fontsize": 7, "grid.alpha": 0.4}
_SLIDES = _BOTH | {"font.family": "DejaVu Sans", "font.size": 11, "lines.linewidth": 2.0}
_PAGE = _BOTH | {
    "axes.edgecolor": INKS["line"][0],
    "axes.facecolor": "none",
    "axes.labelcolor": INKS["soft"][0],
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": "none",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "grid.color": INKS["line"][0],
    "legend.fontsize": 9.5,
    "path.simplify": False,  # the page's script reads the points of a line from the picture
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "text.parse_math": False,  # names are what they are
    "text.color": INKS["ink"][0],
    "xtick.color": INKS["soft"][0],
    "ytick.color": INKS["soft"][0],
}
#: Styles by name.
_STYLES = {"paper": _PAPER, "slides": _SLIDES}


@contextlib.contextmanager
def paper_style(style: str = "paper") -> Iterator[None]:
    """Fonts and lines for a paper (a serif like Times) or slides, or of a Matplotlib style.

    Fonts are embedded in PDF. ``style`` may also be a style that Matplotlib knows, or a file
    that ends in .mplstyle.
    """
    if style not in (*_STYLES, *mpl_style.available) and not Path(style).is_file():
        names = ", ".join([*_STYLES, *(n for n in mpl_style.available if not n.startswith("_"))])
        raise ValueError(f"there is no style {style!r} and no file of that name; there are {names}")
    with mpl.rc_context(_STYLES.get(style, _BOTH)):
        if Path(style).is_file():
            _require_style(Path(style))
        if style not in _STYLES:
            mpl_style.use(style)
        yield


def _require_style(file: Path) -> None:
    """Raise ``ValueError`` for what Matplotlib would print and pass over in a file of a style."""
    try:
        for line in file.read_text(encoding="utf-8").splitlines():
            key = line.partition("#")[0].partition(":")[0].strip()
            if key and key not in mpl.rcParams:
                raise ValueError(f"{reprlib.repr(line)} sets nothing of Matplotlib's")
        mpl.rc_params_from_file(file, fail_on_error=True, use_default_template=False)
    except ValueError as error:
        raise ValueError(f"{file}: no style: {error}") from error


def page_style() -> contextlib.AbstractContextManager[None]:
    """For a picture inside the page, whose colours and fonts the page decides."""
    return mpl.rc_context(_PAGE)


def on_page() -> bool:
    """Whether the page's style is in use."""
    return bool(mpl.rcParams["text.color"] == INKS["ink"][0])


class PaperFigure(Figure):
    """A figure of its own, which no window and no list of figures holds; notebooks show it.

    ``path`` is the file that it was written to, if it was.
    """

    path: Path | None = None

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        self.savefig(content, format="png", dpi=144, facecolor="white")
        return content.getvalue()


def new_figure(width_in: float, height_in: float) -> PaperFigure:
    """A figure that Matplotlib lays out when it is saved; the page's by `inline_svg`."""
    layout = None if on_page() else ConstrainedLayoutEngine()
    return PaperFigure(figsize=(width_in, height_in), layout=layout)


def ink(name: str) -> str:
    """A colour by its name in `INKS`; for a paper, ink is black."""
    return "black" if name == "ink" and not on_page() else INKS[name][0]


def colour(index: int) -> str:
    """The colour of the policy with this index."""
    return LIGHT[index % len(LIGHT)]


def dash(index: int) -> Dash:
    """The dash of the policy with this index: once the colours repeat, another one."""
    return _DASHES[dash_index(index)]


def dash_index(index: int) -> int:
    """Which dash the policy with this index has."""
    return (index + index // len(LIGHT)) % len(_DASHES)


def marker(index: int) -> str:
    """The marker of the policy with this index: once the colours repeat, another one."""
    return _MARKERS[(index + index // len(LIGHT)) % len(_MARKERS)]


def height_of_names(count: int) -> float:
    """The least height in inches of a picture with so many names below each other at its right."""
    return 0.7 + 0.165 * count


def name_ends(
    axis: Axes, ends: Mapping[str, float], indices: Mapping[str, int], height_in: float
) -> None:
    """Name lines at the right, in their colours, each at the height of its end or next to it.

    The picture will be ``height_in`` high.
    """
    low, high = axis.get_ylim()
    height_pt = 72 * (height_in - 0.6)  # about what labels below leave
    free = min(11.5 / height_pt, 1.0 / max(len(ends), 1))
    at = dict(sorted(((name, (y - low) / (high - low)) for name, y in ends.items()), key=_second))
    ys = list(at.values())
    for i in range(1, len(ys)):
        ys[i] = max(ys[i], ys[i - 1] + free)
    over = max(0.0, ys[-1] - 1.0) if ys else 0.0
    for i in range(len(ys) - 1, -1, -1):  # down again from the top, as far as is needed
        ys[i] = min(ys[i], 1.0 - free * (len(ys) - 1 - i)) if over else ys[i]
    for name, y in zip(at, ys, strict=True):
        axis.annotate(
            name, (1.0, at[name]), xytext=(1.06, y), xycoords="axes fraction",
            textcoords="axes fraction", va="center", fontsize="small",
            color=colour(indices[name]), annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour(indices[name]), "linewidth": 0.6,
                        "shrinkA": 0, "shrinkB": 0, "relpos": (0.0, 0.5)},
        )  # fmt: skip


def _second(pair: tuple[str, float]) -> float:
    return pair[1]


def legend_above(axis: Axes, columns: int | None = None) -> None:
    """Put the legend above the axis, in one column on the page and in two in a paper."""
    columns = columns or (1 if on_page() else 2)
    axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns)


def axes_abreast(canvas: Canvas, titles: Sequence[str]) -> Sequence[Axes]:
    """Axes side by side with one vertical scale, each under its title in a paper."""
    axes: Sequence[Axes] = canvas.subplots(1, len(titles), sharey=True, squeeze=False)[0]
    for axis, title in zip(axes, titles, strict=True):
        title_in_paper(axis, title)
    return axes


def ues() -> str:
    """What an axis calls UEs: the page speaks of phones."""
    return "phones (UEs)" if on_page() else "UEs"


def title_in_paper(axis: Axes, title: str) -> None:
    """Name the axis in a paper; on the page the words above the picture do."""
    if not on_page():
        axis.set_title(title, fontsize="medium")


def count_rounds(axis: Axes) -> None:
    """Put few ticks at whole rounds on the horizontal axis, and name it."""
    axis.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axis.set_xlabel("communication round")


def draw_on_page(stem: Path, height_in: float, draw: Callable[[Figure], None]) -> list[Path]:
    """Draw a figure as wide as a page of a paper, and save it as PNG and PDF."""
    files = [stem.with_name(f"{stem.name}.{kind}") for kind in ("png", "pdf")]
    with paper_style():
        figure = new_figure(PAGE_IN, height_in)
        draw(figure)
        for file in files:
            save(figure, file)
    return files


def require_ending(path: Path, endings: Sequence[str]) -> None:
    """Raise ``ValueError`` unless a file of a figure has a name and one of these endings."""
    if path.name in endings:
        raise ValueError(f"{path}: give a name before {path.name}")
    if path.suffix not in endings:
        raise ValueError(f"{path}: a figure ends in {', '.join(endings)}")


def save(figure: Figure, path: Path) -> None:
    """Write the figure whole; dates are left out, so that the same figure is the same file."""
    kind = path.suffix.removeprefix(".") or "png"
    dateless = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
    options = {"metadata": dateless[kind]} if kind in dateless else {}
    if kind == "pgf":
        if figure.findobj(AxesImage):
            raise ValueError(f"{path.name}: the figure has pixels, which a .pgf cannot hold: .pdf")
        change_texts(figure, _escaped)  # a .pgf is measured and set by LaTeX
    content = io.BytesIO()  # Matplotlib says something else when it closes a file on a full disk
    figure.savefig(content, format=kind, **options)  # type: ignore[arg-type]
    write_whole(path, content.getvalue())


def _escaped(text: str) -> str:
    return "\n".join(map(latex_text, text.split("\n")))


class _Changed(Formatter):
    """Labels of ticks, of which a function makes others."""

    def __init__(self, usual: Formatter, change: Callable[[str], str]) -> None:
        self._usual, self._change = usual, change

    def __call__(self, x: float, pos: int | None = None) -> str:
        return self._change(self._usual(x, pos))

    def format_ticks(self, values: list[float]) -> list[str]:
        return list(map(self._change, self._usual.format_ticks(values)))


def change_texts(
    figure: Figure, change: Callable[[str], str], ticks: type[Formatter] = Formatter
) -> None:
    """Change every text of a figure, and the labels that formatters of a type give ticks."""
    for text in figure.findobj(Text):
        text.set_text(change(text.get_text()))
    for axis in figure.findobj(Axis):
        if isinstance(usual := axis.get_major_formatter(), ticks):
            axis.set_major_formatter(_Changed(usual, change))
