"""Pictures as SVG inside the page: its fonts, its colours in light and dark, few bytes."""

import base64
import io
import json
import re
from itertools import pairwise

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import RendererSVG
from matplotlib.figure import Figure
from PIL import Image

from agewise.report._style import INKS, LIGHT

#: What stands for a colour of a picture in the page's style sheet.
_VARIABLES = {hexa: f"var(--p{index})" for index, hexa in enumerate(LIGHT)} | {
    light: f"var(--{name})" for name, (light, _) in INKS.items()
}
#: Points between what stands around axes and the edge of the picture.
_PAD = 3.0
_NUMBER = re.compile(r"-?\d+\.\d+")
_UNSEEN = re.compile(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>|<!--.*?-->", re.DOTALL)
_ALIKE = re.compile(r'(<use [^>]*? style="([^"]*)"/>)(?:<use [^>]*? style="\2"/>)+')
_IMAGE = re.compile(r'<image [^>]*?href="data:image/png;base64,\s*([^"]+)"[^>]*?/>', re.DOTALL)


def inline_svg(figure: Figure, name: str, label: str, *, rounds: bool = False) -> Markup:
    """The figure as an element of the page, drawn in the page's style.

    ``name`` makes the names in it unique on the page and ``label`` says in words what it shows.
    ``rounds`` says that its horizontal axis counts rounds, so that the page's cursor stands on it.
    """
    series = _name_series(figure)
    buffer = io.StringIO()
    width, height = 72 * figure.get_size_inches()
    figure.dpi = 72
    renderer = RendererSVG(width, height, buffer)  # type: ignore[no-untyped-call]
    _lay_out(figure, renderer)
    figure.draw(renderer)
    renderer.finalize()  # type: ignore[no-untyped-call]
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = _IMAGE.sub(_masked, _UNSEEN.sub("", text))
    text = _own_names(text, name, {each for names in series for each in names})
    text = _paint(text)
    text = re.sub(r"<defs>\s*</defs>", "", text)
    frames = [
        _frame(axis, named, (width, height))
        for axis, named in zip(figure.axes, series, strict=True)
    ]
    chart = {"over": "rounds" if rounds else "", "axes": frames}
    head = Markup(
        '<svg class="pic" viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}" data-name="{}" '
        'data-chart="{}">'
    ).format(width, height, label, name, json.dumps(chart, ensure_ascii=False))
    return head + Markup(text[text.index(">") + 1 :].strip())  # noqa: S704 (Matplotlib escapes)


def _lay_out(figure: Figure, renderer: RendererSVG) -> None:
    """Fit a column of axes into the figure, after measuring what stands around them once.

    Matplotlib's own layouts measure twice, because labels may change with the size of the axes,
    and saving a figure draws it once more before: most of the time that a page takes.
    """
    sides = []  # of each axis: left, right, bottom and top of it, in points
    for axis in figure.axes:
        outer = axis.get_tightbbox(renderer, for_layout_only=True) or axis.bbox
        inner = axis.get_window_extent()
        sides.append(
            (inner.x0 - outer.x0, outer.x1 - inner.x1, inner.y0 - outer.y0, outer.y1 - inner.y1)
        )
    left, right = (max(side) + _PAD for side in list(zip(*sides, strict=True))[:2])
    bottom, top = sides[-1][2] + _PAD, sides[0][3] + _PAD
    rows = len(sides)
    gap = max((low[2] + high[3] + _PAD for low, high in pairwise(sides)), default=0.0)
    wide, high = figure.bbox.size
    figure.subplots_adjust(
        left=left / wide, right=1 - right / wide, bottom=bottom / high, top=1 - top / high,
        hspace=gap * rows / (high - bottom - top - gap * (rows - 1)),
    )  # fmt: skip


def _name_series(figure: Figure) -> list[dict[str, str]]:
    """The lines of each axis that have a name, by the name of their element."""
    named = []
    for place, axis in enumerate(figure.axes):
        lines = [line for line in axis.lines if not str(line.get_label()).startswith("_")]
        for index, line in enumerate(lines):
            line.set_gid(f"series-{place}-{index}")
        named.append({str(line.get_gid()): str(line.get_label()) for line in lines})
    return named


def _frame(axis: Axes, series: dict[str, str], size: tuple[float, float]) -> dict[str, object]:
    """Where the axis is in the picture, and which values its edges stand for."""
    box = axis.get_position()
    width, height = size
    return {
        "x": [round(box.x0 * width, 2), round(box.x1 * width, 2)],
        "y": [round((1 - box.y0) * height, 2), round((1 - box.y1) * height, 2)],
        "from": [*map(float, axis.get_xlim()), *map(float, axis.get_ylim())],
        "series": series,
    }


def _masked(found: re.Match[str]) -> str:
    """A picture of grey levels as a mask, so that the page chooses the colours of its ends."""
    image = Image.open(io.BytesIO(base64.b64decode(re.sub(r"\s", "", found[1])))).convert("L")
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", optimize=True)
    data = base64.b64encode(buffer.getvalue()).decode()
    at = " ".join(re.findall(r' ((?:transform|x|y|width|height)="[^"]*")', found[0]))
    image_tag = f'<image {at} preserveAspectRatio="none" href="data:image/png;base64,{data}"/>'
    name = re.findall(r' id="([^"]*)"', found[0])[0]
    low, high = ("weak", "strong") if name.startswith("gains") else ("fresh", "stale")
    return (
        f'<mask id="mask-{name}">{image_tag}</mask><rect {at} class="{low}"/>'
        f'<g mask="url(#mask-{name})"><rect {at} class="{high}"/></g>'
    )


def _own_names(text: str, name: str, series: set[str]) -> str:
    """Names that only this picture has; those that nothing refers to are left out."""
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', text)) | series

    def renamed(found: re.Match[str]) -> str:
        kept = found[1] in used or found[1].startswith("square-")
        return f' id="{name}-{found[1]}"' if kept else ""

    text = re.sub(r' id="([^"]*)"', renamed, text)
    text = re.sub(r'xlink:href="#', f'href="#{name}-', text)
    return re.sub(r"url\(#", f"url(#{name}-", text)


def _paint(text: str) -> str:
    """Colours by the page's names, the page's font, and coordinates to a tenth of a point."""
    for hexa, variable in _VARIABLES.items():
        text = text.replace(hexa, variable)
    text = re.sub(r"font: (?:(?:bold|italic|\d+) )*([\d.]+)px [^;\"]*", r"font-size: \1px", text)
    text = re.sub(r"font-family: [^;\"]*;?", "", text)
    text = re.sub(r' transform="rotate\(-?0 [^"]*\)"', "", text)
    text = re.sub(r'( [xy]=")(-?\d+\.\d+)', lambda at: f"{at[1]}{float(at[2]):.1f}", text)
    text = re.sub(r' d="[^"]*"', _short_path, text)
    return _ALIKE.sub(_grouped, re.sub(r">\s+<", "><", text))


def _grouped(found: re.Match[str]) -> str:
    """Markers of one style, which is said once."""
    style = found[2]
    return f'<g style="{style}">' + found[0].replace(f' style="{style}"', "") + "</g>"


def _short_path(found: re.Match[str]) -> str:
    rounded = _NUMBER.sub(lambda number: f"{round(float(number[0]), 1):g}", found[0])
    return re.sub(r"\s+", " ", rounded).replace(" L ", "L")
