"""Parts of the page as HTML. Every text is escaped here, where it becomes HTML."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from agewise.experiment import Folder, Result
from agewise.policies import AgeBased, MaxPack
from agewise.report.cards import Card
from agewise.report.claims import Claim
from agewise.report.draw.maps import gain_map
from agewise.report.numbers import SweepMap, Variation
from agewise.report.style import new_figure, page_style
from agewise.report.svg import inline_svg
from agewise.report.text import (
    HOLDS,
    IN_PART,
    REFUTED,
    STARS_NOTE,
    command_text,
    last_part,
    squares_text,
    value_text,
    variation_text,
)

#: Class and mark of verdicts; one that leaves a claim open has another.
_BADGES = {HOLDS: ("yes", "✓"), IN_PART: ("part", "±"), REFUTED: ("no", "✗")}
_OPEN = ("open", "?")
#: What the three pictures of the idea tell.
IDEA = (
    "A phone that uploads must be fast enough, and its <b>subchannels</b>, slices of the spectrum, "
    "decide how fast it is. One with a weak channel needs more of them. So whoever wants many "
    "uploads in a round hears the phones nearby, and the <b>age</b> of the others, the number of "
    "rounds since the last update of a phone arrived, grows. Age-based scheduling ranks phones by "
    "age per subchannel that they need."
)
NO_PLACES = "The runs do not say where the phones are, so there is no picture of the cell."


def claims_list(claims: Iterable[Claim], note: str) -> str:
    """The claims, each with its verdict and evidence, and below them a note."""
    items = "".join(
        f'<li><span class="badge {kind}">{mark} {escape(each.verdict)}</span> '
        f"<strong>{escape(each.claim)}</strong><br><small>{escape(each.evidence)}</small></li>"
        for each in claims
        for kind, mark in (_BADGES.get(each.verdict, _OPEN),)
    )
    if not items:
        return ""
    return (
        '<h3 class="claims-title">What the paper says, and what holds here</h3>'
        f'<ol class="claims">{items}</ol>'
        f"<p><small>{escape(note)}</small></p>"
    )


def missing_list(sentences: Sequence[str]) -> str:
    """What is missing, as a notice; nothing if nothing is."""
    if not sentences:
        return ""
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return (
        '<aside class="missing" aria-label="What is missing"><strong>This page shows what is '
        f"whole in the folder. Missing:</strong><ul>{items}</ul></aside>"
    )


def choice(shown: Sequence[Variation], most: int) -> str:
    """A select box for the settings of a sweep; nothing if there is only one."""
    if len(shown) < 2:
        return ""
    options = "".join(
        f'<option value="{index}">{escape(variation_text(variation))}</option>'
        for index, variation in enumerate(shown[:most])
    )
    rest = len(shown) - most
    note = (
        f" <small>The other {rest} are in the tables and the map only.</small>" if rest > 0 else ""
    )
    select = f'<select id="variation">{options}</select>'
    return f'<p class="chooser" hidden><label>Setting {select}</label>{note}</p>'


def card(each: Card, prefix: str) -> str:
    """A picture under its finding; a sentence in its place if it cannot be made."""
    try:
        with page_style():
            figure = new_figure(each.width_in, each.height_in)
            each.draw(figure)
            picture = inline_svg(figure, f"{prefix}-{each.name}", each.finding, each.linked)
    except Exception as error:  # the numbers are there, whatever keeps Matplotlib from drawing
        reason = str(error).partition("\n")[0] or type(error).__name__
        picture = f'<p class="missing">This picture could not be made: {escape(reason)}</p>'
    return (
        f'<figure class="card {each.kind}" data-picture="{escape(each.name)}"><figcaption><h3>'
        f"{_unbroken(escape(each.finding))}</h3><p>{escape(each.measured)}</p></figcaption>{picture}</figure>"
    )


def _unbroken(text: str) -> str:
    """Names with hyphens, such as age-based, stay on one line."""
    return re.sub(r"\w+(?:-\w+)+", r'<span class="name">\g<0></span>', text)


def section(name: str, title: str, lead: str, inside: str) -> str:
    """A section of the page; ``lead`` and ``inside`` are HTML already."""
    return (
        f'<section aria-labelledby="{name}"><h2 id="{name}">{escape(title)}</h2>'
        f'<p class="lead">{lead}</p>{inside}</section>'
    )


def age_key(oldest: float) -> str:
    """The scale of the ages."""
    return (
        '<p class="key">Age, rounds since the last update arrived: <span class="ends">0 '
        f'<span class="ramp" aria-hidden="true"></span> {oldest:g} and more</span></p>'
    )


def where(squares: SweepMap | None, shown: Sequence[Variation]) -> str:
    """The maps of a sweep; a square that is clicked sets the page."""
    if squares is None:
        return ""
    rows = [row.replace(", ", "\n").replace("(", "\n(") for row in squares.rows]
    column = last_part(squares.column_name)
    pictures = []
    for layer, name in enumerate(squares.policies):
        gains, p_values = squares.gains[layer], squares.p_values[layer]
        seeds = int(squares.pairs[layer].max(initial=0))
        picture = Card(
            f"map-{layer}",
            squares_text(name, squares.counts(layer), "settings", seeds),
            f"Gain in test accuracy over {squares.baseline}, {squares.measured}, in percentage "
            "points. Blue is a win, red a loss, pale is not sure.",
            lambda figure, g=gains, p=p_values: gain_map(  # type: ignore[misc]
                g, p, squares.columns, rows, squares.limit, figure.subplots()
            ).set_xlabel(column),
            1.0 + 0.55 * len(rows),
            kind="map",
        )
        pictures.append(card(picture, "map"))
    places = escape(json.dumps(_squares(squares, shown)))
    limit = f"{100 * squares.limit:.1f}"
    return (
        '<section aria-labelledby="where"><h2 id="where">Where?</h2><p class="lead">Each square is '
        "a setting; its number says how much better the policy learns there. "
        f"Stars say how sure that is: {escape(STARS_NOTE)}; without a star a difference is not "
        f"shown. {escape(squares.family)} A click on a square shows its pictures below.</p>"
        f'<div class="grid maps" data-squares="{places}">{"".join(pictures)}</div><p class="key">'
        f'Gain: <span class="ends">−{limit} <span class="ramp gains" aria-hidden="true"></span> '
        f"+{limit} points</span></p></section>"
    )


def _squares(squares: SweepMap, shown: Sequence[Variation]) -> dict[str, int]:
    """Which setting of the page each square of a map stands for."""
    places = {}
    for index, variation in enumerate(shown):
        column = variation.get(squares.column_name) if squares.column_name else None
        rest = {name: value for name, value in variation.items() if name != squares.column_name}
        row = squares.rows.index(variation_text(rest))
        places[f"{row}-{squares.columns.index(value_text(column))}"] = index
    return places


def watch(result: Result, pictures: str, replay: Mapping[str, Any] | None) -> str:
    """The replay, with pictures of the last round for those who see the page without script."""
    seed = "" if replay is None else (
        f" Shown is seed {replay['seed']}, the one with the median gain."
    )  # fmt: skip
    lead = (
        "Each dot is a phone; the access point (the triangle) trains one model from all of them. "
        'In a round only the <b class="lit">ringed</b> phones upload: each needs enough '
        "subchannels (the bars) to be fast enough. The more a dot stands out, the longer the "
        f"access point has not heard from it. {_idea(result)}All policies meet the same channels."
        f"{seed}"
    )
    inside = (
        '<div id="replay" role="group" aria-label="Replay. Space plays and pauses, the arrows step,'
        ' Home and End go to the first and last round."></div><p class="note" id="replay-note"></p>'
        f'<div class="still">{pictures or f"<p>{NO_PLACES}</p>"}</div>'
    )
    return section("watch", "Watch it", lead, inside)


def _idea(result: Result) -> str:
    """What age-based and max-pack do, where both are there to be watched."""
    names = {policy.name for policy in result.policies}
    if not {AgeBased.name, MaxPack.name} <= names:
        return ""
    return (
        f"<b>{MaxPack.name}</b> takes whoever needs the fewest subchannels: it fits in the most "
        "phones, but hears the same well-placed ones again and again while the others go stale. "
        f"<b>{AgeBased.name}</b> (ABS in the paper) weighs how stale a phone is against the "
        "subchannels it needs, so that nobody is forgotten. "
    )


def origin(result: Result) -> str:
    """The command, versions, seeds and policies, each to copy."""
    described = Folder(result.path).description()
    versions = {"agewise": described.version, "Python": described.python, **described.packages}
    facts = {
        "Command": command_text(described.command or "(from Python)"),
        "Versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        "Seeds": ", ".join(map(str, result.seeds)),
        "Policies": "; ".join(map(str, result.policies)),
    }
    return "".join(
        f"<dt>{name}</dt><dd><code>{escape(value)}</code> "
        f'<button type="button" class="copy" aria-label="Copy: {name}" hidden>Copy</button></dd>'
        for name, value in facts.items()
    )
