"""One self-contained HTML page that shows what each policy did, and why."""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from plotly.offline import get_plotlyjs

from agewise.experiment import Result
from agewise.files import write_whole
from agewise.policies import Policy
from agewise.records import PolicyKey
from agewise.report import charts, html, numbers
from agewise.report.claims import claims_of
from agewise.report.explained import explained_section
from agewise.report.numbers import SweepMap, Variation
from agewise.report.text import short_names
from agewise.report.verdict import compared, missing, verdict
from agewise.version import __version__

#: Of a larger sweep only so many variations are drawn; its tables and its map hold all.
MOST_VARIATIONS = 24
_SCRIPTS = ("page.js", "replay-view.js", "replay.js", "charts.js")
_TO_SCALE = "The cell is drawn to scale, with the access point (AP) in the middle."
_IN_ROWS = "The runs do not say where the UEs are, so the phones stand in rows by their number."
_NO_DISTANCES = "The runs do not say where the UEs are, so there are no distances to show."
_NO_LABELS = "The runs do not say which classes the UEs hold."
_NO_REPLAY = "There are too many UEs, rounds or policies to replay them here."


def write_page(
    result: Result | Path | str,
    output: Path | str | None = None,
    *,
    baseline: Policy | PolicyKey | str | None = None,
) -> Path:
    """Write the page of a result, or of a results folder, by default to report.html in the folder.

    It is made of what is whole and says what is missing; the claims of the paper are judged where
    their policies are there. ``baseline`` is used in the place of the one of the result.
    """
    opened = numbers.open_result(result, baseline)
    path = opened.path / "report.html" if output is None else Path(output)
    page = make_page(opened)
    with write_whole(path) as temporary:
        temporary.write_text(page, encoding="utf-8", errors="backslashreplace", newline="\n")
    return path


def make_page(result: Result) -> str:
    """The text of the page."""
    rows = result.table().to_dicts() if result.entries else []
    if not rows:
        raise ValueError(f"{result.path}: no run is finished yet, so there is nothing to show")
    squares = numbers.sweep_map(result)
    shown = _shown(result)
    found = verdict(result, rows, squares)
    scripts, plotly = [_static(name) for name in _SCRIPTS], str(get_plotlyjs())
    name = result.path.resolve().name
    content = {
        "title": escape(f"Agewise: {name}"),
        "name": escape(name),
        "question": escape(found.question),
        "answer": escape(found.answer),
        "claims": html.claims_list(claims_of(result)),
        "missing": html.missing_list(missing(result)),
        "tables": html.tables(result, rows),
        "choice": html.choice(shown, MOST_VARIATIONS),
        "legend": html.legend(result),
        "maps": html.maps(squares),
        "explained": explained_section(result.path),
        "idea": html.idea(result),
        "origin": html.origin(result),
        "toml": escape(result.scenario.to_toml()),
        "data": _json(_embedded(result, shown[:MOST_VARIATIONS], squares)),
    }
    short = _short_paths(result)
    return Template(_static("page.html")).substitute(
        {part: _replaced(text, short) for part, text in content.items()},
        policy=escape(_content_security([*scripts, plotly])),
        style=_static("page.css"),
        version=escape(__version__),
        plotly=plotly,
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
    )


def _short_paths(result: Result) -> dict[str, str]:
    """What the page says in the place of whole paths, which are nobody's business but its maker's.

    Files that the scenario and the policies name keep their names, a home folder is a tilde.
    """
    given = [
        result.scenario.resolved(),
        *result.variations,
        *(p.parameters for p in result.policies),
    ]
    short = {path: Path(path).name for path in _absolute_paths(given)}
    folder = result.path.resolve()
    short |= {str(path): folder.name for path in (folder, result.path.absolute())}
    short[str(Path.home())] = "~"
    return {path: name for path, name in short.items() if name and Path(path) != Path("/")}


def _absolute_paths(value: Any) -> Iterator[str]:
    if isinstance(value, str) and value.startswith("/"):
        yield value
    elif isinstance(value, Mapping):
        yield from (path for inner in value.values() for path in _absolute_paths(inner))
    elif isinstance(value, list | tuple):
        yield from (path for inner in value for path in _absolute_paths(inner))


def _replaced(text: str, short: Mapping[str, str]) -> str:
    """The text, which is HTML or JSON, with these paths in other words, longer ones first."""
    for path in sorted(short, key=len, reverse=True):
        name = escape(short[path])
        in_json = (path, escape(path), escape(path, quote=False))
        forms = {_json(each)[1:-1]: _json(name)[1:-1] for each in in_json}
        in_toml = json.dumps(path, ensure_ascii=False)[1:-1]
        for form, said in (forms | {escape(in_toml): name, escape(path): name}).items():
            text = text.replace(form, said)
    return text


def _shown(result: Result) -> list[Variation]:
    """The variations with a finished run; first the scenario itself, if the sweep holds it."""
    base = result.scenario
    return sorted(
        numbers.finished_variations(result),
        key=lambda variation: base.with_(**variation) != base,
    )


def _embedded(result: Result, shown: list[Variation], squares: SweepMap | None) -> dict[str, Any]:
    """What the scripts of the page draw."""
    names = short_names(result.policies)
    layers = range(len(squares.policies)) if squares else ()
    return {
        "policies": [
            {"name": name, "colour": charts.colour(index)}
            for index, name in enumerate(names.values())
        ],
        "compared": [names[policy] for policy in compared(result)],
        "variations": [_variation(result, variation) for variation in shown],
        "maps": [charts.gain_map(squares, layer) for layer in layers] if squares else [],
    }


def _variation(result: Result, variation: Variation) -> dict[str, Any]:
    """The charts and the replay of one setting, with a sentence for each that cannot be."""
    curves = numbers.curves(result, variation)
    centres_m = numbers.ring_centres_m(result.scenario.with_(**variation))
    held = numbers.labels(result, variation)
    replay = numbers.replay(result, variation)
    made = {
        "accuracy": charts.accuracy(curves),
        "reached": charts.reached(curves),
        "age_mean": charts.ages(curves, "age_mean"),
        "age_95": charts.ages(curves, "age_95"),
        "age_largest": charts.ages(curves, "age_largest"),
        "distance": charts.distance(curves, centres_m),
        "diversity": charts.diversity(curves),
        "labels": charts.labels(held) if held else None,
    }
    notes = {
        "distance": "" if made["distance"] else _NO_DISTANCES,
        "labels": "" if held else _NO_LABELS,
        "replay": _replay_note(replay),
    }
    return {"charts": made, "notes": notes, "replay": replay}


def _replay_note(replay: dict[str, Any] | None) -> str:
    if replay is None:
        return _NO_REPLAY
    return _TO_SCALE if replay["positions"] else _IN_ROWS


def _content_security(scripts: list[str]) -> str:
    """Only these very scripts run, and nothing is fetched."""
    marks = (base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts)
    allowed = " ".join(f"'sha256-{mark}'" for mark in marks)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _json(value: Any) -> str:
    """JSON that cannot end the element that it stands in."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _static(name: str) -> str:
    return files("agewise.report").joinpath("static", name).read_text(encoding="utf-8")
