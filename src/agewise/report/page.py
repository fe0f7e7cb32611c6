"""One self-contained HTML page that shows what each policy did, and why."""

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from itertools import islice
from pathlib import Path
from string import Template
from typing import Any

from agewise import statistics
from agewise.experiment import Result
from agewise.files import write_whole
from agewise.policies import Policy
from agewise.records import PolicyKey
from agewise.report import cards, costs, findings, html, numbers, tables
from agewise.report.cards import Card
from agewise.report.channel import channel_section
from agewise.report.claims import claims_note, claims_of
from agewise.report.explained import explained_section
from agewise.report.numbers import Variation
from agewise.report.replay import replay
from agewise.report.setting import Setting
from agewise.report.style import DARK, INKS, LIGHT
from agewise.report.text import short_names, variation_text
from agewise.report.verdict import Row, missing, verdict
from agewise.version import __version__

#: Of a larger sweep only so many variations are drawn; its tables and its map hold all.
MOST_VARIATIONS = 12
#: So many pictures say why in each setting of a sweep: near and far, and the ages.
_WHY_OF_MANY = 2
_SCRIPTS = ("page.js", "pictures.js", "replay-view.js", "replay.js")


def write_page(
    result: Result | Path | str,
    output: Path | str | None = None,
    *,
    baseline: Policy | PolicyKey | str | None = None,
    over: str | statistics.Axis = "rounds",
    points: Sequence[float] | None = None,
    target: float | None = None,
) -> Path:
    """Write the page of a result, or of a results folder, by default to report.html in the folder.

    It is made of what is whole and says what is missing; the claims of the paper are judged where
    their policies are there. ``baseline`` is used in the place of the one of the result.
    Accuracies and gains are shown ``over`` rounds, seconds, joules, uses or bits, and compared at
    these ``points`` of it, as in ``Result.table``. ``target`` is the accuracy up to which costs
    are told; left out, one that both compared policies reach.
    """
    opened = numbers.open_result(result, baseline)
    path = opened.path / "report.html" if output is None else Path(output)
    page = make_page(opened, over, points, target)
    with write_whole(path) as temporary:
        temporary.write_text(page, encoding="utf-8", errors="backslashreplace", newline="\n")
    return path


def make_page(
    result: Result,
    over: str | statistics.Axis = "rounds",
    points: Sequence[float] | None = None,
    target: float | None = None,
) -> str:
    """The text of the page."""
    axis = statistics.axis_of(over)
    if not result.entries:
        raise ValueError(f"{result.path}: no run is finished yet, so there is nothing to show")
    table = result.table(axis, points)
    rows = table.to_dicts()
    squares = numbers.sweep_map(result, axis)
    shown = _shown(result)
    drawn = [Setting(result, variation, axis=axis) for variation in shown[:MOST_VARIATIONS]]
    replays = [replay(setting, all_seeds=len(drawn) == 1) for setting in drawn]
    found = verdict(result, rows, squares, axis)
    most = None if len(drawn) == 1 else _WHY_OF_MANY
    scripts = [_static(name) for name in _SCRIPTS]
    name = result.path.resolve().name
    content = {
        "title": escape(f"Agewise: {name}"),
        "name": escape(name),
        "question": escape(found.question),
        "answer": escape(found.answer),
        "effect": _effect(drawn, rows),
        "missing": html.missing_list(missing(result)),
        "where": html.where(squares, shown[:MOST_VARIATIONS]),
        "choice": html.choice(shown, MOST_VARIATIONS),
        "hero": _each(drawn, _hero),
        "idea": html.section("idea", "The idea in three pictures", html.IDEA, _idea(drawn)),
        "watch": html.watch(result, _grid(cards.cells(drawn[0]), "s0"), replays[0]),
        "learning": _each(drawn, lambda s, p: _grid(findings.learning(s, s.rows(rows)), p)),
        "claims": html.claims_list(claims_of(result, axis, points), claims_note(axis)),
        "costs": _costs(drawn, rows, target),
        "why": _each(drawn, lambda s, p: _grid(islice(findings.why(s), most), p)),
        "explained": explained_section(result.path),
        "radio": channel_section(result.path),
        "tables": tables.tables(result, rows, axis),
        "csv": tables.csv_link(table, name),
        "origin": html.origin(result),
        "toml": escape(result.scenario.to_toml()),
        "data": _json(_embedded(result, replays)),
    }
    short = _short_paths(result)
    return Template(_static("page.html")).substitute(
        {part: _replaced(text, short) for part, text in content.items()},
        policy=escape(_content_security(scripts)),
        style=_colours() + _static("page.css"),
        version=escape(__version__),
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
    )


def _costs(drawn: list[Setting], rows: list[Row], target: float | None) -> str:
    """Per round, per second, per joule; nothing where the runs know of rounds alone."""

    def part(setting: Setting, prefix: str) -> str:
        wanted = costs.usual_target(setting) if target is None else target
        views = costs.axis_views(setting, wanted)
        table = costs.cost_table(setting, views, setting.rows(rows), wanted)
        if not table:
            return ""
        pictures = costs.cost_cards(setting, views, all_axes=len(drawn) == 1)
        return _grid(pictures, prefix) + table

    inside, views = _each(drawn, part), costs.axis_views(drawn[0])
    if "<table" not in inside:
        return ""
    return html.section("costs", costs.title(views), escape(costs.lead(views)), inside)


def _each(drawn: list[Setting], part: Callable[[Setting, str], str]) -> str:
    """The part of every setting; the page's script hides those that are not chosen."""
    if len(drawn) == 1:
        return part(drawn[0], "s0")
    named = [escape(variation_text(setting.variation)) for setting in drawn]
    return "".join(
        f'<div data-setting="{index}"><p class="setting">{named[index]}</p>'
        f"{part(setting, f's{index}')}</div>"
        for index, setting in enumerate(drawn)
    )


def _hero(setting: Setting, prefix: str) -> str:
    """The compared policies in the open, the others folded away."""
    maps = list(cards.heat_maps(setting))
    if len(setting.result.variations) > 1:
        maps = maps[: len(setting.pair)]
    pair, others = maps[: len(setting.pair)], maps[len(setting.pair) :]
    text = _grid(pair, prefix) + html.age_key(setting.oldest)
    if others:
        said = f"The same of {len(others)} other policies"
        text += f"<details><summary>{said}</summary>{_grid(others, prefix)}</details>"
    return text


def _idea(drawn: list[Setting]) -> str:
    """Of the first setting: the idea is the same in all."""
    return _grid(cards.idea(drawn[0]), "idea")


def _effect(drawn: list[Setting], rows: list[Row]) -> str:
    """The size of the effect, where there is one question and not a map of them."""
    text = findings.effect(drawn[0], drawn[0].rows(rows)) if len(drawn) == 1 else ""
    return f'<p class="effect">{escape(text)}</p>' if text else ""


def _grid(pictures: Iterable[Card], prefix: str) -> str:
    inside = "".join(html.card(each, prefix) for each in pictures)
    return f'<div class="grid">{inside}</div>' if inside else ""


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
        plain = {escape(in_toml): name, escape(path): name, escape(path, quote=False): name}
        for form, said in (forms | plain).items():
            text = text.replace(form, said)
    return text


def _shown(result: Result) -> list[Variation]:
    """The variations with a finished run; first the scenario itself, if the sweep holds it."""
    base = result.scenario
    return sorted(
        numbers.finished_variations(result),
        key=lambda variation: base.with_(**variation) != base,
    )


def _embedded(result: Result, replays: list[dict[str, Any] | None]) -> dict[str, Any]:
    """What the scripts of the page draw."""
    return {"policies": list(short_names(result.policies).values()), "replays": replays}


def _colours() -> str:
    """The colours of the pictures as variables of the style sheet."""
    both = []
    for shade, policies in enumerate((LIGHT, DARK)):
        inks = {name: pair[shade] for name, pair in INKS.items()}
        inks |= {f"p{index}": each for index, each in enumerate(policies)}
        both.append(" ".join(f"--{name}: {each};" for name, each in inks.items()))
    light, dark = both
    return (
        f":root {{ color-scheme: light; {light} }}\n"
        "@media screen and (prefers-color-scheme: dark) { "
        f':root:not([data-theme="light"]) {{ color-scheme: dark; {dark} }} }}\n'
        f'@media screen {{ :root[data-theme="dark"] {{ color-scheme: dark; {dark} }} }}\n'
    )


def _content_security(scripts: list[str]) -> str:
    """Only these very scripts run, and nothing is fetched."""
    marks = (base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts)
    allowed = " ".join(f"'sha256-{mark}'" for mark in marks)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _json(value: Any) -> str:
    """JSON that cannot end the element that it stands in."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _static(name: str) -> str:
    return files("agewise.report").joinpath("static", name).read_text(encoding="utf-8")
