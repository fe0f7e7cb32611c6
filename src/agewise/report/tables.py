"""The tables of the page, and the link that saves them."""

import base64
import math
from html import escape

from agewise import statistics
from agewise.experiment import Result
from agewise.frames import pl
from agewise.report.amounts import amount_text, at_text
from agewise.report.style import LIGHT, dash_index
from agewise.report.text import (
    is_sure,
    last_part,
    p_text,
    percent_text,
    points_text,
    short_names,
    table_family,
    value_text,
)
from agewise.report.verdict import Row, at_point, checkpoints_of

_SERVICE = (
    ("ues_per_round", "UEs a round", "{:.1f}"),
    ("distinct_ues", "distinct UEs\nreached", "{:.1f}"),
    ("age_mean", "mean age", "{:.1f}"),
    ("age_mean_peak", "mean\npeak age", "{:.1f}"),
    ("age_largest", "largest age", "{:.1f}"),
    ("diversity", "gradient\ndiversity", "{:.2f}"),
)
#: Only where an upload was lost, which needs a channel that is not known perfectly.
_LOST = ("outage", "uploads\nlost", "{:.1%}")
#: SVG dashes of a swatch, as `agewise.report.style.DASHES`.
_SWATCHES = ("", "7 4", "7 3 2 3", "2 3", "12 3", "7 2 2 2", "3 3")
NOTHING = "–"


def tables(result: Result, rows: list[Row], axis: statistics.Axis) -> str:
    """Accuracies over the axis, and service."""
    return _accuracy_table(result, rows, axis) + _service_table(result, rows, axis)


def _accuracy_table(result: Result, rows: list[Row], axis: statistics.Axis) -> str:
    """Accuracies with intervals, and the paired gains over the baseline with p-values."""
    points = sorted({at for row in rows for at in checkpoints_of(row)})
    caption = "Test accuracy in % with its 95% interval"
    if axis.column is not None:
        caption = f"Test accuracy over {axis.what} in %, with its 95% interval"
    if result.baseline is not None:
        caption += f"; under it the gain over {short_names(result.policies)[result.baseline]}"
    heads = [at_text(at, axis) for at in points]
    body = [[_accuracy(row, at) for at in points] for row in rows]
    return policy_table(caption, result, rows, heads, body) + _family(result, rows, axis)


def _family(result: Result, rows: list[Row], axis: statistics.Axis) -> str:
    """The sentence on the tests behind the p-values of the table."""
    if result.baseline is None:
        return ""
    baseline = short_names(result.policies)[result.baseline]
    swept = len(result.variations) > 1
    return family(table_family(rows, baseline, swept=swept, over=axis.name))


def family(sentence: str) -> str:
    """A sentence under a table; nothing if there is none."""
    return f'<p class="family"><small>{escape(sentence)}</small></p>' if sentence else ""


def _service_table(result: Result, rows: list[Row], axis: statistics.Axis) -> str:
    """Who was served, how old updates became, and what a run spent."""
    columns = (*_SERVICE, _LOST) if any(row["outage"] > 0 for row in rows) else _SERVICE
    whole = [] if axis.column is None else [f"{axis.what} of a run"]
    heads = ["seeds", *(head for _, head, _ in columns), *whole]
    body = [
        [
            str(row["seeds"]),
            *(_number(row[name], form) for name, _, form in columns),
            *(escape(amount_text(row["spent"], axis, 3)) for _ in whole),
        ]
        for row in rows
    ]
    caption = "Who was served, and how old updates became"
    return policy_table(caption, result, rows, heads, body)


def policy_table(
    caption: str, result: Result, rows: list[Row], heads: list[str], body: list[list[str]]
) -> str:
    """A row per variation and policy; the cells of ``body`` are HTML already."""
    policies = {str(policy): policy for policy in result.policies}
    names = short_names(result.policies)
    varied = list(dict.fromkeys(name for variation in result.variations for name in variation))
    columns = [*map(last_part, varied), "policy", *heads]
    top = "".join(f'<th scope="col">{_broken(name)}</th>' for name in columns)
    lines = []
    for row, cells in zip(rows, body, strict=True):
        settings = "".join(
            f"<td>{escape(value_text(row[name]) or NOTHING)}</td>" for name in varied
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


def _broken(head: str) -> str:
    return escape(head).replace("\n", "<br>")


def _accuracy(row: Row, at: float) -> str:
    mean, low, high = (at_point(row, name, at) for name in ("accuracy", "low", "high"))
    if mean is None:
        return NOTHING
    text = percent_text(mean)
    if low is not None and high is not None:
        text += f' <span class="interval">[{percent_text(low)}, {percent_text(high)}]</span>'
    gain = at_point(row, "gain", at)
    return text if gain is None else f"{text}<br>{gain_cell(gain, at_point(row, 'p', at))}"


def gain_cell(gain: float, p: float | None) -> str:
    """A gain in percentage points with its p-value; stronger if it is sure."""
    kind = "gain sure" if is_sure(p) else "gain"
    said = ", ".join(filter(None, (points_text(gain), p_text(p))))
    return f'<span class="{kind}">{escape(said)}</span>'


def _number(value: float | None, form: str) -> str:
    return NOTHING if value is None or math.isnan(value) else form.format(value)


def _swatch(index: int) -> str:
    """A short line as the curves of the policy with this index are drawn."""
    return (
        '<svg class="swatch" viewBox="0 0 34 10" aria-hidden="true"><line x1="1" x2="33" y1="5" '
        f'y2="5" stroke="var(--p{index % len(LIGHT)})" stroke-width="3" '
        f'stroke-dasharray="{_SWATCHES[dash_index(index)]}"/></svg>'
    )


def csv_link(table: pl.DataFrame, name: str) -> str:
    """A link that saves the table as CSV, without script."""
    data = base64.b64encode(table.write_csv().encode()).decode()
    return (
        f'<p><a class="save" download="{escape(name)}.csv" href="data:text/csv;base64,{data}">'
        "Save the table as CSV</a></p>"
    )
