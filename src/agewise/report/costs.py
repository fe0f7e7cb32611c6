"""The same policies per round, per second, per joule, per channel use and per bit."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape

import numpy as np

from agewise import statistics
from agewise.experiment.summary import cost_points
from agewise.report.amounts import amount_text, median_text, reached_by_half
from agewise.report.setting import Setting
from agewise.report.tables import NOTHING, family, gain_cell, policy_table
from agewise.report.text import (
    family_text,
    percent_text,
)
from agewise.report.verdict import Row

LEAD = (
    "Rounds of different policies cost differently: one that is ahead after as many rounds may be "
    "behind in the same time, with the same energy, with as many uses of the channel or with as "
    "many bits. Below, the same question is asked of each of them."
)
NO_SECONDS = (
    " Seconds and joules are not known with the timing of this scenario; the kind seconds has them."
)


@dataclass(frozen=True, eq=False)
class AxisView:
    """Policies on one axis, by name: their mean gains over the baseline, and what it took.

    The mean is over the rounds, or over the axis up to ``end``, what the cheapest run spent to two
    digits: one point would be early in learning on one axis and late on another. The p-values of
    all axes are corrected together (Holm).
    """

    axis: statistics.Axis
    end: float
    gains: dict[str, statistics.Paired]
    p_values: dict[str, float]
    to_target: dict[str, statistics.TimeToTarget]


def axis_views(setting: Setting, target: float | None = None) -> list[AxisView]:
    """Every axis that all runs know; policies of which nothing was evaluated are left out."""
    views = [_view(setting.along(axis), target) for axis in statistics.AXES.values()
             if knows(setting, axis)]  # fmt: skip
    raw = [p for view in views for p in view.p_values.values()]
    corrected = iter(statistics.holm(raw).tolist())
    return [
        replace(view, p_values={name: next(corrected) for name in view.p_values}) for view in views
    ]


def title(views: Sequence[AxisView]) -> str:
    """The question, as far as the runs know what they spent."""
    *most, last = [view.axis.one for view in views]
    return f"Per {', '.join(most)} or {last}?"


def lead(views: Sequence[AxisView]) -> str:
    """What the section is about, and what is not known."""
    return LEAD if any(view.axis.needs_seconds for view in views) else LEAD + NO_SECONDS


def usual_target(setting: Setting) -> float | None:
    """A whole percentage that both compared policies reach on average, if there is one."""
    ends = [_rounds(setting).courses[name].at(setting.rounds).mean() for name in setting.pair]
    share = math.floor(100 * min(ends)) / 100 if np.isfinite(ends).all() else 0.0
    return share if share > 0 else None


def cost_table(
    setting: Setting, views: Sequence[AxisView], rows: Mapping[str, Row], target: float | None
) -> str:
    """A column an axis: the gain over the baseline, and the median of what it took to a target."""
    names = [name for name in rows if any(name in view.to_target for view in views)]
    if len(views) < 2 or not (names or any(view.gains for view in views)):
        return ""
    heads = [f"per {view.axis.one}\n(to {amount_text(view.end, view.axis)})" for view in views]
    body = [[_cell(view, name, setting.baseline) for view in views] for name in rows]
    parts = [] if setting.baseline is None else [f"Mean gain over {setting.baseline} at equal cost"]
    if target is not None:
        heads.append(f"runs that\nreached {percent_text(target)}%")
        body = [[*cells, _reached(views, name)] for cells, name in zip(body, rows, strict=True)]
        share = percent_text(target)
        parts.append(f"median of what it took to {share}% accuracy with its 95% limits")
    caption = "; below it the ".join(parts)
    table = policy_table(
        caption[:1].upper() + caption[1:], setting.result, list(rows.values()), heads, body
    )
    tests = sum(not math.isnan(p) for view in views for p in view.p_values.values())
    said = family_text(tests, setting.baseline or "", "policies and costs")
    if target is not None:
        said += " A run that did not get there counts as slow, not as absent (Kaplan-Meier)."
    return table + family(said.strip())


def _rounds(setting: Setting) -> Setting:
    return setting.along(statistics.AXES["rounds"])


def knows(setting: Setting, axis: statistics.Axis) -> bool:
    """Whether all runs know what they spent, and any spent something."""
    try:
        return setting.along(axis).points.size > 0
    except ValueError:
        return False


def _view(setting: Setting, target: float | None) -> AxisView:
    """A setting at the end of its axis; p-values are not corrected yet."""
    axis = setting.axis
    runs = [run for each in setting.runs.values() for run in each.values()]
    end = float(setting.rounds) if axis.column is None else cost_points(runs, axis)[-1]
    gains = setting.mean_gains
    evaluated = {
        name: course
        for name, course in setting.courses.items()
        if not np.isnan(course.accuracy).all(axis=1).any()
    }
    return AxisView(
        axis,
        end,
        gains,
        {name: gain.p_value for name, gain in gains.items()},
        {} if target is None else {n: one.to_target(target) for n, one in evaluated.items()},
    )


def _cell(view: AxisView, name: str, baseline: str | None) -> str:
    gain, taken = view.gains.get(name), view.to_target.get(name)
    lines = [] if baseline is None else [NOTHING]
    if gain is not None:
        lines = [gain_cell(gain.difference, view.p_values[name])]
    if taken is not None:
        median, limits = median_text(taken, view.axis)
        other = view.to_target.get(baseline or "")
        both = other is not None and all(map(reached_by_half, (taken, other)))
        if other is not None and both and name != baseline and other.median > 0:
            median += f", {taken.median / other.median:.2f} ×"
        lines += [
            f'<span class="interval">{escape(text)}</span>' for text in (median, limits) if text
        ]
    return "<br>".join(lines) or NOTHING


def _reached(views: Sequence[AxisView], name: str) -> str:
    taken = views[0].to_target.get(name)
    return NOTHING if taken is None else f"{taken.reached} of {taken.runs}"
