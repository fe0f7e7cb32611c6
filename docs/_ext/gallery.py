"""The gallery: every picture of a result, drawn from small experiments when the site is built."""

import base64
import html
import io
import tempfile
from pathlib import Path

from PIL import Image

import agewise
from agewise.report.pictures import PICTURES

#: The folder of the comparison, and those of pictures that need another, as docs/gallery.md says.
_COMPARED = "compare-physical-timed"
_FOLDERS = {
    "map": "sweep-physical-timed",
    "devices": "compare-mixed-devices",
    "staleness": "compare-periodic",
}
_CHANNEL = (
    "A channel before a run",
    "Cell, mean SNR, one block, correlations over time and frequency, and needs.",
    "agewise channel urban-micro -o channel.pdf",
)


def gallery() -> str:
    """A grid with a thumbnail, a sentence and the command for each picture."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _compute(folder)
        cards = [
            _card(_drawn(folder, each.name), each.title, each.sentence, _command(each.name))
            for each in PICTURES.values()
        ]
        view = agewise.view_channel(agewise.Scenario.preset("urban-micro"))
        cards.append(_card(agewise.draw_channel(view, folder / "channel.png"), *_CHANNEL))
    return f'```{{raw}} html\n<div class="gallery">\n{"".join(cards)}</div>\n```'


def _compute(folder: Path) -> None:
    """The paper's cell in seconds and joules, a sweep of it, and what its gain is made of."""
    scenario = agewise.Scenario.preset("physical-timed")
    options = {"engine": "inline", "quiet": True}
    policies = ["age-based", "max-pack", "round-robin"]
    compared = agewise.compare(scenario, policies, 5, folder / _COMPARED, **options)
    agewise.keep_channel_of(compared)
    for preset in ("mixed-devices", "periodic"):
        small = agewise.Scenario.preset(preset).with_(**{"run.rounds": 20})
        agewise.compare(small, policies[:2], 2, folder / f"compare-{preset}", **options)
    vary = {"threshold.deadline_s": [0.1, 0.15, 0.3], "data.partition": ["iid", "shards"]}
    short = scenario.with_(**{"run.rounds": 30})
    agewise.sweep(short, policies[:2], vary, 5, folder / _FOLDERS["map"], **options)
    agewise.explain(compared, **options)


def _drawn(folder: Path, kind: str) -> Path:
    """The picture as PNG."""
    result = folder / _folder(kind)
    file = folder / f"{kind}.png"
    agewise.draw_figure(result, kind, file)
    return file


def _command(kind: str) -> str:
    return f"agewise figure runs/{_folder(kind)} {kind} -o {kind}.pdf"


def _folder(kind: str) -> str:
    return _FOLDERS.get(kind, _COMPARED)


def _card(picture: Path, title: str, sentence: str, command: str) -> str:
    """A thumbnail of at most 640 pixels as WebP, with what it is and how it is drawn."""
    content = io.BytesIO()
    with Image.open(picture) as image:
        image.thumbnail((640, 640))
        image.convert("RGB").save(content, "webp", quality=85)
    data = base64.b64encode(content.getvalue()).decode()
    return (
        f'<figure><img alt="{html.escape(title)}" src="data:image/webp;base64,{data}">'
        f"<figcaption><b>{html.escape(title)}</b> {html.escape(sentence)}"
        f"<code>{html.escape(command)}</code></figcaption></figure>\n"
    )
