"""Parts of the page as HTML. Every text is escaped here, where it becomes HTML."""

import math
from collections.abc import Iterable, Sequence
from html import escape

from agewise.experiment import Folder, Result
from agewise.policies import AgeBased, MaxPack
from agewise.report.charts import COLOURS, colour, dash
from agewise.report.claims import CLAIMS_NOTE, Claim
from agewise.report.numbers import SweepMap, Variation
from agewise.report.text import (
    HOLDS,
    IN_PART,
    REFUTED,
    STARS_NOTE,
    command_text,
    is_sure,
    last_part,
    p_text,
    percent_text,
    points_text,
    short_names,
    table_family,
    value_text,
    variation_text,
)
from agewise.report.verdict import Row, checkpoints_of

_SERVICE = (
    ("ues_per_round", "UEs a round", "{:.1f}"),
    ("distinct_ues", "distinct UEs reached", "{:.1f}"),
    ("age_mean", "mean age", "{:.1f}"),
    ("age_mean_peak", "mean peak age", "{:.1f}"),
    ("age_largest", "largest age", "{:.1f}"),
    ("diversity", "gradient diversity", "{:.2f}"),
)
#: SVG dashes of a swatch, by the names of `agewise.report.charts.DASHES`.
_SWATCH = {"solid": "", "dash": "7 4", "dashdot": "7 3 2 3", "dot": "2 3", "longdash": "12 4"}
#: Of verdicts; one that leaves a claim open has another.
_BADGES = {HOLDS: "yes", IN_PART: "part", REFUTED: "no"}
_NOTHING = "–"


def tables(result: Result, rows: list[Row]) -> str:
    """Accuracies and service; folded away for a sweep, whose map says more."""
    both = _accuracy_table(result, rows) + _service_table(result, rows)
    if len(result.variations) == 1:
        return both
    return f"<details><summary>All {len(rows)} rows of the tables</summary>{both}</details>"


def _accuracy_table(result: Result, rows: list[Row]) -> str:
    """Accuracies with intervals, and the paired gains over the baseline with p-values."""
    points = sorted({at for row in rows for at in checkpoints_of(row)})
    caption = "Test accuracy in % with its 95% interval"
    if result.baseline is not None:
        caption += f"; under it the gain over {short_names(result.policies)[result.baseline]}"
    heads = [f"after {at} rounds" for at in points]
    body = [[_accuracy(row, at) for at in points] for row in rows]
    return _table(caption, result, rows, heads, body) + _family(result, rows)


def _family(result: Result, rows: list[Row]) -> str:
    """The sentence on the tests behind the p-values of the table."""
    if result.baseline is None:
        return ""
    baseline = short_names(result.policies)[result.baseline]
    sentence = table_family(rows, baseline, swept=len(result.variations) > 1)
    return f'<p class="family"><small>{escape(sentence)}</small></p>' if sentence else ""


def _service_table(result: Result, rows: list[Row]) -> str:
    """Who was served, and how old updates became."""
    heads = ["seeds", *(head for _, head, _ in _SERVICE)]
    body = [
        [str(row["seeds"]), *(_number(row[name], form) for name, _, form in _SERVICE)]
        for row in rows
    ]
    return _table("Who was served, and how old updates became", result, rows, heads, body)


def _table(
    caption: str, result: Result, rows: list[Row], heads: list[str], body: list[list[str]]
) -> str:
    """A row per variation and policy; the cells of ``body`` are HTML already."""
    policies = {str(policy): policy for policy in result.policies}
    names = short_names(result.policies)
    varied = list(dict.fromkeys(name for variation in result.variations for name in variation))
    columns = [*map(last_part, varied), "policy", *heads]
    top = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    lines = []
    for row, cells in zip(rows, body, strict=True):
        settings = "".join(
            f"<td>{escape(value_text(row[name]) or _NOTHING)}</td>" for name in varied
        )
        policy = policies[row["policy"]]
        head = (
            f'<th scope="row" title="{escape(str(policy))}">'
            f"{_swatch(result.policies.index(policy))}{escape(names[policy])}</th>"
        )
        lines.append(f"<tr>{settings}{head}{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f"<table><caption>{escape(caption)}</caption><thead><tr>{top}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _accuracy(row: Row, at: int) -> str:
    mean = row.get(f"accuracy@{at}")
    if mean is None or math.isnan(mean):
        return _NOTHING
    low, high = row[f"low@{at}"], row[f"high@{at}"]
    text = percent_text(mean)
    if not math.isnan(low):
        text += f' <span class="interval">[{percent_text(low)}, {percent_text(high)}]</span>'
    gain, p = row[f"gain@{at}"], row[f"p@{at}"]
    if gain is None:
        return text
    kind = "gain sure" if is_sure(p) else "gain"
    said = ", ".join(filter(None, (points_text(gain), p_text(p))))
    return f'{text}<br><span class="{kind}">{escape(said)}</span>'


def _number(value: float | None, form: str) -> str:
    return _NOTHING if value is None or math.isnan(value) else form.format(value)


def claims_list(claims: Iterable[Claim]) -> str:
    """The claims, each with its verdict and evidence."""
    items = "".join(
        f'<li><span class="badge {_BADGES.get(each.verdict, "open")}">{escape(each.verdict)}'
        f"</span> <strong>{escape(each.claim)}</strong><br>"
        f"<small>{escape(each.evidence)}</small></li>"
        for each in claims
    )
    if not items:
        return ""
    return (
        f'<h3>What the paper says, and what holds here</h3><ol class="claims">{items}</ol>'
        f"<p><small>{escape(CLAIMS_NOTE)}</small></p>"
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


def legend(result: Result) -> str:
    """A check box for each policy, with the colour and dash that it has in every chart."""
    return "".join(
        f'<label title="{escape(str(policy))}"><input type="checkbox" checked '
        f'data-policy="{escape(name)}">{_swatch(index)}{escape(name)}</label>'
        for index, (policy, name) in enumerate(short_names(result.policies).items())
    )


def _swatch(index: int) -> str:
    """A short line as the curves of the policy with this index are drawn."""
    dashes = _SWATCH.get(dash(index), "12 3 2 3")
    kind = "swatch ink" if colour(index) == COLOURS[-1] else "swatch"
    return (
        f'<svg class="{kind}" viewBox="0 0 34 10" aria-hidden="true"><line x1="1" x2="33" y1="5" '
        f'y2="5" stroke="{colour(index)}" stroke-width="3" stroke-dasharray="{dashes}"/></svg>'
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
    return f'<p><label>Setting <select id="variation">{options}</select></label>{note}</p>'


def maps(squares: SweepMap | None) -> str:
    """Where the maps of a sweep are drawn."""
    if squares is None:
        return ""
    shown = "".join(
        f'<figure class="card"><figcaption><h3>{escape(name)} over {escape(squares.baseline)}</h3>'
        f'</figcaption><div class="chart map" data-map="{layer}" role="img" '
        f'data-rows="{len(squares.rows)}" '
        f'aria-label="Map of gains of {escape(name)} in percentage points"></div></figure>'
        for layer, name in enumerate(squares.policies)
    )
    return (
        "<section aria-labelledby='map'><h2 id='map'>Where which policy wins</h2><p>Gain in test "
        "accuracy (mean over the rounds, percentage points); blue wins, red loses. Stars say how "
        f"sure it is: {escape(STARS_NOTE)}; without a star a difference is not shown. "
        f"{escape(squares.family)}</p><div class='grid maps'>{shown}</div></section>"
    )


def idea(result: Result) -> str:
    """What age-based and max-pack do, where both are there to be watched."""
    names = {policy.name for policy in result.policies}
    if not {AgeBased.name, MaxPack.name} <= names:
        return ""
    return (
        f"<b>{MaxPack.name}</b> takes whoever needs the fewest subchannels: it fits in the most "
        "phones, but hears the same well-placed ones again and again while the others go stale. "
        f"<b>{AgeBased.name}</b> (ABS in the paper) weighs how stale a phone is against the "
        "subchannels it needs, so that nobody is forgotten."
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
        f'<button type="button" class="copy" aria-label="Copy: {name}">Copy</button></dd>'
        for name, value in facts.items()
    )
