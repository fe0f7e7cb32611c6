"""Tables and lists of the page. Every text is escaped here, where it becomes HTML."""

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Protocol

from agewise.report.charts import colour, dash
from agewise.report.names import short_names
from agewise.report.style import COLOURS
from agewise.report.verdict import Row, chance, is_sure, points

if TYPE_CHECKING:
    from agewise.experiment import Result

_WHO = (
    ("ues_per_round", "UEs a round", "{:.1f}"),
    ("distinct_ues", "distinct UEs reached", "{:.1f}"),
    ("age_mean", "mean age", "{:.1f}"),
    ("age_peak", "peak age", "{:.1f}"),
    ("diversity", "gradient diversity", "{:.2f}"),
)
#: SVG dashes of a swatch, in the order of `agewise.report.charts.DASHES`.
_SWATCH = {"solid": "", "dash": "7 4", "dashdot": "7 3 2 3", "dot": "2 3", "longdash": "12 4"}


class Claim(Protocol):
    """Something said, whether it holds, and the numbers that say so."""

    @property
    def claim(self) -> str:
        """What is said."""
        ...

    @property
    def verdict(self) -> str:
        """Whether it holds."""
        ...

    @property
    def evidence(self) -> str:
        """The numbers."""
        ...


def accuracy_table(result: "Result", rows: list[Row]) -> str:
    """Accuracies with intervals, and the paired gains over the baseline with p-values."""
    heads = [f"after {at} rounds" for at in _all_points(rows)]
    body = [[_accuracy(row, at) for at in _all_points(rows)] for row in rows]
    caption = "Test accuracy in % with its 95% interval"
    if result.baseline is not None:
        name = short_names(result.policies)[str(result.baseline)]
        caption += f"; under it the gain over {name}"
    return _table(caption, result, rows, heads, body)


def service_table(result: "Result", rows: list[Row]) -> str:
    """Who was served, and how old updates became."""
    heads = ["seeds", *(head for _, head, _ in _WHO)]
    body = [
        [str(row["seeds"]), *(_number(row[name], form) for name, _, form in _WHO)] for row in rows
    ]
    return _table("Who was served, and how old updates became", result, rows, heads, body)


def claims_list(claims: Iterable[Claim]) -> str:
    """The claims, each with its verdict and evidence."""
    items = "".join(
        f'<li><span class="badge {_kind(said.verdict)}">{escape(said.verdict)}</span> '
        f"<strong>{escape(said.claim)}</strong><br><small>{escape(said.evidence)}</small></li>"
        for said in claims
    )
    if not items:
        return ""
    return f'<h3>What the paper says, and what holds here</h3><ol class="claims">{items}</ol>'


def missing_list(told: Sequence[str]) -> str:
    """What is missing, as a notice; nothing if nothing is."""
    if not told:
        return ""
    items = "".join(f"<li>{escape(line)}</li>" for line in told)
    return (
        '<aside class="missing" aria-label="What is missing"><strong>This page shows what is '
        f"whole in the folder. Missing:</strong><ul>{items}</ul></aside>"
    )


def legend(result: "Result") -> str:
    """A check box for each policy, with the colour and dash that it has in every chart."""
    names = short_names(result.policies)
    return "".join(
        f'<label title="{escape(policy)}"><input type="checkbox" checked '
        f'data-policy="{escape(name)}">{swatch(place)}{escape(name)}</label>'
        for place, (policy, name) in enumerate(names.items())
    )


def swatch(place: int) -> str:
    """A short line as the policy's curves are drawn."""
    drawn = _SWATCH.get(dash(place), "12 3 2 3")
    own = ' class="swatch ink"' if colour(place) == COLOURS[-1] else ' class="swatch"'
    return (
        f'<svg{own} viewBox="0 0 34 10" aria-hidden="true"><line x1="1" x2="33" y1="5" y2="5" '
        f'stroke="{colour(place)}" stroke-width="3" stroke-dasharray="{drawn}"/></svg>'
    )


def _table(
    caption: str, result: "Result", rows: list[Row], heads: list[str], body: list[list[str]]
) -> str:
    names = short_names(result.policies)
    varied = [name for name in rows[0] if "." in name]
    columns = [*(name.split(".")[-1] for name in varied), "policy", *heads]
    top = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    lines = []
    for row, cells in zip(rows, body, strict=True):
        settings = "".join(f"<td>{escape(_plain(row[name]))}</td>" for name in varied)
        place = list(names).index(row["policy"])
        head = (
            f'<th scope="row" title="{escape(row["policy"])}">{swatch(place)}'
            f"{escape(names[row['policy']])}</th>"
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
        return "–"
    low, high = row[f"low@{at}"], row[f"high@{at}"]
    text = f"{100 * mean:.1f}"
    if not math.isnan(low):
        text += f' <span class="interval">[{100 * low:.1f}, {100 * high:.1f}]</span>'
    gain, told = row[f"gain@{at}"], chance(row[f"p@{at}"])
    if gain is None:
        return text
    kind = "gain sure" if is_sure(row, at) else "gain"
    return f'{text}<br><span class="{kind}">{100 * gain:+.1f}{told and f", {told}"}</span>'


def _all_points(rows: list[Row]) -> list[int]:
    return sorted({at for row in rows for at in points(row)})


def _kind(said: str) -> str:
    return {"holds": "yes", "holds in part": "part"}.get(said, "no")


def _number(value: float | None, form: str) -> str:
    return "–" if value is None or math.isnan(value) else form.format(value)


def _plain(value: Any) -> str:
    return "–" if value is None else str(value)
