"""One self-contained HTML page that shows what each policy did, and why."""

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape as html_escape
from importlib.resources import files
from itertools import islice
from pathlib import Path

import jinja2
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup, escape

from agewise import statistics
from agewise.checks import first_line, path_of
from agewise.experiment import Folder, Result
from agewise.files import atomic_write
from agewise.policies import Policy
from agewise.provenance import code_text
from agewise.records import PolicyKey
from agewise.report import _claims, _costs
from agewise.report._replay import replay
from agewise.report._setting import Setting, finished_variations, open_result
from agewise.report._style import DARK, INKS, LIGHT, dash_index, new_figure, page_style
from agewise.report._svg import inline_svg
from agewise.report._verdict import missing, verdict
from agewise.report.pictures import PICTURES, Picture
from agewise.scenario import Scenario, presets
from agewise.tables import Column, Explanation, Table, device_table
from agewise.tables import _words as words
from agewise.version import __version__

#: The most variations of a sweep that are drawn; its tables and its map hold all.
_MOST_VARIATIONS = 12
#: How many pictures say why in each setting of a sweep: near and far, and the ages.
_WHY_OF_MANY = 2
#: The size of a picture.
_WIDTH_IN, _HEIGHT_IN = 4.0, 2.9
_SCRIPTS = ("page.js", "pictures.js", "replay-view.js", "replay.js")
#: The class and icon of verdicts; one that leaves a claim open has another.
_BADGES = {_claims.HOLDS: "yes", _claims.IN_PART: "part", _claims.REFUTED: "no"}
#: SVG dashes of a swatch, as `agewise.report._style` has them for lines.
_SWATCHES = ("", "7 4", "7 3 2 3", "2 3", "12 3", "7 2 2 2", "3 3")
#: The parts of the page that the first screen leads to.
_LINKS = (("learning", "Accuracy"), ("why", "Why"), ("numbers", "All numbers"),
          ("origin", "Reproduce"))  # fmt: skip


def write_page(
    result: Result | Path | str,
    output: Path | str | None = None,
    *,
    baseline: Policy | PolicyKey | str | None = None,
    over: str | statistics.Axis = "rounds",
    at: Sequence[float] | None = None,
    target: float | None = None,
) -> Path:
    """Write the page of a result, or of a results folder, by default to report.html in the folder.

    It is made of what is whole and says what is missing; the claims of the paper are judged where
    their policies are there. ``baseline`` is used in the place of the one of the result.
    Accuracies and gains are shown ``over`` rounds, seconds, joules, channel-uses or bits, and
    compared at these points ``at`` it, as in ``Result.table``. ``target`` is the accuracy up to
    which costs are told; left out, one that both compared policies reach.
    """
    opened = open_result(result, baseline)
    path = opened.path / "report.html" if output is None else path_of("output", output)
    page = make_page(opened, over, at, target)
    with atomic_write(path) as temporary:
        temporary.write_text(page, encoding="utf-8", errors="backslashreplace", newline="\n")
    return path


def make_page(
    result: Result,
    over: str | statistics.Axis = "rounds",
    at: Sequence[float] | None = None,
    target: float | None = None,
) -> str:
    """The text of the page."""
    axis = statistics.axis_of(over)
    if not result.entries:
        raise ValueError(f"{result.path}: no run is finished yet, so there is nothing to show")
    table = result.table(axis, at)
    # First the scenario itself, if the sweep holds it.
    shown = sorted(
        finished_variations(result),
        key=lambda variation: result.scenario.with_(**variation) != result.scenario,
    )
    settings = [Setting(result, v, axis=axis, table=table) for v in shown[:_MOST_VARIATIONS]]
    first, alone = settings[0], len(settings) == 1
    for setting in settings:
        _ = setting.points  # ValueError over costs that the runs do not know
    replays = [replay(setting, all_seeds=alone) for setting in settings]
    parts = [_parts(setting, index, target, alone) for index, setting in enumerate(settings)]
    preset, changes = _changes(result.scenario)
    described = Folder(result.path).description()
    version = f"{described.version} (code {code_text(described.code)})"
    versions = {"agewise": version, "Python": described.python, **described.packages}
    shorten = _path_shortener(result)
    data = {
        "policies": [shorten(str(policy)) for policy in result.policies],
        "replays": [each and {k: x for k, x in each.items() if k != "rest"} for each in replays],
    }
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_static), autoescape=True, trim_blocks=True,
        lstrip_blocks=True, undefined=jinja2.StrictUndefined, finalize=shorten,
    )  # fmt: skip
    environment.filters["unbroken"] = _unbroken
    return environment.get_template("page.html").render(
        name=result.path.resolve().name,
        size=_size(result),
        found=verdict(result, table),
        cause=_cause(first) if alone else "",
        rounds=result.scenario.run.rounds,
        links=[
            each for each in _LINKS if each[0] != "costs" or any(p["cost_table"] for p in parts)
        ],
        missing=missing(result),
        map=first.map,
        maps=_cards(first, "where", "map", first.map.policies) if first.map else [],
        squares={
            f"{row}-{column}": shown.index(variation)
            for (row, column), variation in (first.map.variations if first.map else {}).items()
            if variation in shown[:_MOST_VARIATIONS]
        },
        stars=words.STARS_NOTE,
        choices=[words.variation_text(v) for v in shown[:_MOST_VARIATIONS]],
        unshown=len(shown) - _MOST_VARIATIONS,
        settings=parts,
        idea=_cards(first, "idea", "idea"),
        cells=_cards(first, "watch", "s0"),
        watched=replays[0],
        claims=[
            (each, _BADGES.get(each.verdict, "open"))
            for each in _claims.claims_of(result, axis, at)
        ],
        claims_note=_claims.claims_note(axis),
        cost_views=_costs.axis_views(first),
        explained=Explanation.read(result.path),
        explanation=_cards(first, "explained", "s0") if alone else [],
        table=_table,
        radio=_cards(first, "radio", "radio"),
        devices=_table(devices) if (devices := device_table(result.scenario)) else "",
        tables=_table(table.accuracy()) + _table(table.service()),
        csv=_Verbatim(base64.b64encode(table.to_csv().encode()).decode()),
        origin={
            **({"Command": words.command_text(described.command)} if described.command else {}),
            "Policies": "; ".join(map(str, result.policies)),
            "Seeds": ", ".join(map(str, result.seeds)),
            "Versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        },
        preset=preset,
        changes=_table(changes) if changes.rows else "",
        toml=result.scenario.to_toml(),
        toml64=_Verbatim(base64.b64encode(result.scenario.to_toml().encode()).decode()),
        data=_Verbatim(htmlsafe_json_dumps(data, separators=(",", ":"), allow_nan=False)),
        inks=INKS,
        palettes=(LIGHT, DARK),
        css=_Verbatim(_static("page.css")),
        version=__version__,
        scripts=[(_Verbatim(script), _checksum(script)) for script in map(_static, _SCRIPTS)],
        seeds=_Verbatim(" ".join(seed for each in replays if each for seed in each["rest"])),
    )


class _Verbatim(Markup):
    """What is put into the page as it is: scripts, styles, data."""


@dataclass(frozen=True)
class _Card:
    """A picture under its finding; the reason in its place if it could not be made."""

    name: str
    kind: str
    finding: str
    measured: str
    picture: Markup
    problem: str


def _parts(setting: Setting, index: int, target: float | None, alone: bool) -> dict[str, object]:
    """What the page shows of each setting of a sweep, or of the only one."""
    prefix = f"s{index}"
    wanted = _costs.usual_target(setting) if target is None else target
    table = _costs.cost_table(setting, _costs.axis_views(setting, wanted), wanted)
    others = [name for name in setting.runs if name not in setting.pair] if alone else []
    cost_cards = _cards(setting, "costs", prefix) if table else []
    for name in ("rounds", "seconds", "joules") if table and alone else ():
        along = setting.along(statistics.AXES[name])
        if along is not setting and _costs.knows(setting, along.axis):
            cost_cards += _drawn(
                PICTURES["accuracy"], along, list(along.runs), f"{prefix}-over-{name}"
            )
    return {
        "label": words.variation_text(setting.variation),
        "oldest": setting.oldest,
        "hero": _cards(setting, "hero", prefix) + _cards(setting, "gains", prefix),
        "others": _cards(setting, "hero", prefix, others),
        "learning": _cards(setting, "learning", prefix),
        "costs": cost_cards,
        "cost_table": "" if table is None else _table(table),
        "why": _cards(setting, "why", prefix, most=None if alone else _WHY_OF_MANY),
    }


def _cards(
    setting: Setting,
    section: str,
    prefix: str,
    names: Sequence[str] | None = None,
    most: int | None = None,
) -> list[_Card]:
    """The pictures of a section, of these policies or of those that each usually shows."""

    def cards() -> Iterator[_Card]:
        for picture in PICTURES.values():
            if picture.section == section:
                usual = list(setting.runs) if picture.pair == "never" else setting.pair
                shown = usual if names is None else names
                for each in [[name] for name in shown] if picture.for_each else [shown]:
                    number = f"-{setting.indices[each[0]]}" if picture.for_each else ""
                    yield from _drawn(picture, setting, each, f"{prefix}-{picture.name}{number}")

    return list(islice(cards(), most))


def _drawn(picture: Picture, setting: Setting, names: Sequence[str], name: str) -> list[_Card]:
    """The card of a picture; none where it would say nothing."""
    finding, measured, problem, svg = picture.title, picture.sentence, "", Markup()
    try:
        with page_style():
            figure = new_figure(_WIDTH_IN, _HEIGHT_IN)
            shown = picture.draw(setting, names, figure)
            if shown is None:
                return []
            finding, measured = shown.finding, shown.measured
            figure.set_figheight(shown.height_in or _HEIGHT_IN)
            rounds = picture.rounds and (bool(picture.no_costs) or setting.over_rounds)
            svg = inline_svg(figure, name, finding, rounds=rounds)
    except Exception as error:  # the numbers are there, whatever keeps Matplotlib from drawing
        problem = first_line(error)
    kind = picture.name if picture.for_each else ""
    return [_Card(name.partition("-")[2], kind, finding, measured, svg, problem)]


def _size(result: Result) -> str:
    """How large the experiment is, in a line."""
    cell, seeds = result.scenario.cell, len(result.seeds)
    counts = ((cell.ues, "phone"), (cell.subchannels, "subchannel"), (seeds, "seed"))
    rounds = words.counted(result.scenario.run.rounds, "round")
    return ", ".join([words.counted(*each) for each in counts] + [rounds])


def _cause(setting: Setting) -> str:
    """How many upload in a round and how many are never heard, under the compared policies."""
    pair = sorted(setting.pair, key=lambda name: -setting.metrics[name].ues_per_round.mean())
    uploads = [f"{setting.metrics[name].ues_per_round.mean():.0f}" for name in pair]
    never = [setting.ues - round(setting.metrics[name].distinct_ues.mean()) for name in pair]
    phones = words.counted(setting.ues, "phone")
    heard = [
        f"never hears {count} of {phones}" if count else f"hears all {phones}" for count in never
    ]
    first, *others = map(setting.display_name, pair)
    against = f" against {uploads[1]}" if others else ""
    turn = "but" if never[0] > never[-1] else "and"
    text = f"{first} takes {uploads[0]} uploads a round{against}, {turn} {heard[0]}"
    return "; ".join([text, *(f"{name} {heard[1]}" for name in others)]) + "."


def _changes(scenario: Scenario) -> tuple[str, Table]:
    """The preset that is nearest to the scenario, and what is not as there."""
    own = _flat(scenario.resolved())
    found = {}
    for name in presets():
        theirs = _flat(Scenario.preset(name).resolved())
        both = dict.fromkeys([*own, *theirs])
        found[name] = [
            (field, theirs.get(field), own.get(field))
            for field in both
            if own.get(field) != theirs.get(field)
        ]
    preset = min(found, key=lambda name: len(found[name]))
    rows = [
        [field, *(words.value_text(value) for value in values)] for field, *values in found[preset]
    ]
    columns = [Column(head, kind="words") for head in ("field", "there", "here")]
    return preset, Table(f"The scenario is the preset {preset} but for", columns, rows)


def _flat(values: Mapping[str, object], within: str = "") -> dict[str, object]:
    """The values of a scenario by their dotted names."""
    flat: dict[str, object] = {}
    for name, value in values.items():
        flat |= (
            _flat(value, f"{within}{name}.")
            if isinstance(value, Mapping)
            else {within + name: value}
        )
    return flat


def _table(table: Table) -> Markup:
    """A table whose policies stand behind a short line as their curves are drawn."""

    def swatch(index: int) -> str:
        return (
            '<svg class="swatch" viewBox="0 0 34 10" aria-hidden="true"><line x1="1" x2="33" '
            f'y1="5" y2="5" stroke="var(--p{index % len(LIGHT)})" stroke-width="3" '
            f'stroke-dasharray="{_SWATCHES[dash_index(index)]}"/></svg>'
        )

    return Markup(table.to_html(swatch))  # noqa: S704 (escaped there)


def _path_shortener(result: Result) -> Callable[[object], object]:
    """Make what says names in the place of whole paths, which are nobody's business.

    Files that the scenario and the policies name keep their names, a home folder is a tilde.
    """
    parameters = [policy.parameters for policy in result.policies]
    given = json.dumps([result.scenario.resolved(), result.variations, parameters], default=str)
    found = map(json.loads, re.findall(r'"/(?:[^"\\]|\\.)*"', given))
    short = {path: Path(path).name for path in found}
    folder = result.path.resolve()
    short |= {str(path): folder.name for path in (folder, result.path.absolute())}
    short[str(Path.home())] = "~"
    plain, marked = [], []
    for path in sorted(short, key=len, reverse=True):
        if short[path] and path != "/":
            quoted = json.dumps(path, ensure_ascii=False)[1:-1]  # in TOML and JSON
            plain += [(form, short[path]) for form in dict.fromkeys((path, quoted))]
            escapes = (escape, html_escape, lambda text: html_escape(text, quote=False))
            forms = dict.fromkeys(str(each(form)) for form in (path, quoted) for each in escapes)
            marked += [(form, html_escape(short[path])) for form in forms]

    def shorten(value: object) -> object:
        if type(value) is str:
            return _replaced(value, plain)
        if type(value) is not Markup:
            return value
        # Bytes in base64 may look like a path.
        parts = re.split(r"(;base64,[^\"]*)", str(value))
        text = (part if index % 2 else _replaced(part, marked) for index, part in enumerate(parts))
        return Markup("".join(text))  # noqa: S704 (escaped there)

    return shorten


def _replaced(text: str, replacements: Sequence[tuple[str, str]]) -> str:
    for path, name in replacements:
        text = text.replace(path, name)
    return text


def _unbroken(text: str) -> Markup:
    """Keep names with hyphens, such as age-based, on one line."""
    return Markup(  # noqa: S704
        re.sub(r"\w+(?:-\w+)+", r'<span class="name">\g<0></span>', str(escape(text)))
    )


def _checksum(script: str) -> str:
    """The mark by which the page's Content-Security-Policy lets a script run."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _static(name: str) -> str:
    return files("agewise.report").joinpath("templates", name).read_text(encoding="utf-8")
