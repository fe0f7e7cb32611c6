"""One self-contained HTML page that shows what each policy did, and why."""

import base64
import hashlib
import json
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from agewise.experiment import Result
from agewise.files import write_whole
from agewise.report import charts, numbers, sections, tables
from agewise.report.missing import missing
from agewise.report.names import short_names
from agewise.report.replay import replay
from agewise.report.squares import Squares, squares
from agewise.report.verdict import compared, verdict
from agewise.version import __version__

if TYPE_CHECKING:
    from agewise.report.tables import Claim

#: Of a larger sweep only so many variations are drawn; its tables and its map hold all.
MOST_VARIATIONS = 24
_SCRIPTS = ("page.js", "replay-view.js", "replay.js", "charts.js")


def write_page(
    result: Result | Path | str, path: Path | str, claims: "Iterable[Claim]" = ()
) -> Path:
    """Write the page of a result, or of a results folder, to ``path``.

    It is made of what is whole and says what is missing. ``claims`` are shown with the verdict:
    `agewise.reproduction` judges those of the paper.
    """
    opened = result if isinstance(result, Result) else Result.open(result)
    page = make_page(opened, claims)
    with write_whole(Path(path)) as temporary:
        temporary.write_text(page, encoding="utf-8", newline="\n")
    return Path(path)


def make_page(result: Result, claims: "Iterable[Claim]" = ()) -> str:
    """The text of the page."""
    rows = result.table().to_dicts() if result.entries else []
    if not rows:
        raise ValueError(f"{result.path}: no run is finished yet, so there is nothing to show")
    drawn = squares(result)
    shown = _shown(result)
    embedded = _embedded(result, shown[:MOST_VARIATIONS], drawn)
    said = verdict(result, rows, drawn)
    scripts, plotly = [_static(name) for name in _SCRIPTS], _plotly()
    return Template(_static("page.html")).substitute(
        policy=escape(_content_security([*scripts, plotly])),
        title=escape(f"Agewise: {result.path.resolve().name}"),
        style=_static("page.css"),
        name=escape(result.path.resolve().name),
        question=escape(said.question),
        answer=escape(said.answer),
        claims=tables.claims_list(claims),
        missing=tables.missing_list(missing(result)),
        tables=_tables(result, rows),
        choice=sections.choice(shown, MOST_VARIATIONS),
        legend=tables.legend(result),
        maps=sections.maps(drawn),
        idea=sections.idea(result),
        origin=sections.origin(result),
        toml=escape(result.scenario.to_toml()),
        version=escape(__version__),
        data=_json(embedded),
        plotly=plotly,
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
    )


def _shown(result: Result) -> list[Any]:
    """The variations with a finished run; first the scenario itself, if the sweep holds it."""
    finished = [v for v in result.variations if any(e.variation == v for e in result.entries)]
    base = result.scenario
    return sorted(finished, key=lambda variation: base.with_(**variation) != base)


def _embedded(result: Result, shown: list[Any], drawn: Squares | None) -> dict[str, Any]:
    names = short_names(result.policies)
    first = [names[str(policy)] for policy in compared(result) if policy is not None]
    policies = [
        {"name": name, "colour": charts.colour(place)} for place, name in enumerate(names.values())
    ]
    maps = [charts.gain_map(drawn, layer) for layer in range(len(drawn.policies))] if drawn else []
    return {
        "policies": policies,
        "compared": list(dict.fromkeys(first)),
        "variations": [_variation(result, variation) for variation in shown],
        "maps": maps,
    }


def _variation(result: Result, variation: Any) -> dict[str, Any]:
    scenario = result.scenario.with_(**variation)
    curves = numbers.curves(result, variation)
    drawn = {
        "accuracy": charts.accuracy(curves),
        "reached": charts.reached(curves),
        "age_mean": charts.ages(curves, "age_mean"),
        "age_95": charts.ages(curves, "age_95"),
        "age_peak": charts.ages(curves, "age_peak"),
        "distance": charts.distance(curves, numbers.ring_centres(scenario.cell.radius_m)),
        "diversity": charts.diversity(curves),
    }
    seed = min(e.seed for e in result.entries if e.variation == variation)
    try:
        held = numbers.labels(scenario, seed)
    except (ValueError, OSError) as error:  # data of a file that is no longer there
        return {"charts": drawn, "unknown": str(error), "replay": replay(result, variation)}
    drawn["labels"] = charts.labels(held)
    return {"charts": drawn, "seed": seed, "replay": replay(result, variation)}


def _tables(result: Result, rows: list[Any]) -> str:
    both = tables.accuracy_table(result, rows) + tables.service_table(result, rows)
    if len(result.variations) == 1:
        return both
    return f"<details><summary>All {len(rows)} rows of the tables</summary>{both}</details>"


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


def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())
