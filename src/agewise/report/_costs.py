"""The same policies per round, per second, per joule, per channel use and per bit."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from agewise.experiment._summary import cost_points
from agewise.report._setting import Setting
from agewise.statistics import AXES, Axis, Contrast, TimeToTarget, correct
from agewise.tables import Cell, Column, Line, PolicyTable, Table
from agewise.tables import _words as words


@dataclass(frozen=True, eq=False)
class AxisView:
    """Policies on one axis, by name: their mean gains over the baseline, and what it took.

    The mean is over the rounds, or over the axis up to ``end``, the cost of the cheapest run to two
    digits: one point would be early in learning on one axis and late on another. All axes are one
    family of tests.
    """

    axis: Axis
    end: float
    gains: dict[str, Contrast]
    to_target: dict[str, TimeToTarget]

    @property
    def head(self) -> str:
        """The axis and where it ends, in two lines."""
        return f"per {self.axis.one}\n(to {words.amount_text(self.end, self.axis)})"


def axis_views(setting: Setting, target: float | None = None) -> list[AxisView]:
    """Every axis that all runs know; policies of which nothing was evaluated are left out."""
    views = [_view(setting.along(axis), target) for axis in AXES.values() if knows(setting, axis)]
    corrected = iter(correct([gain for view in views for gain in view.gains.values()]))
    return [replace(view, gains={name: next(corrected) for name in view.gains}) for view in views]


def usual_target(setting: Setting) -> float | None:
    """A whole percentage that both compared policies reach on average, if there is one."""
    curves = setting.along(AXES["rounds"]).learning_curves
    ends = [curves[name].at(setting.rounds).mean() for name in setting.pair]
    share = math.floor(100 * min(ends)) / 100 if np.isfinite(ends).all() else 0.0
    return share if share > 0 else None


def cost_table(setting: Setting, views: Sequence[AxisView], target: float | None) -> Table | None:
    """A column an axis: the gain over the baseline, and the median of what it took to a target."""
    rows, shared = setting.rows, PolicyTable(setting.result.policies, setting.result.variations)
    timed = any(name in view.to_target for view in views for name in rows)
    if len(views) < 2 or not (timed or any(view.gains for view in views)):
        return None
    columns = [Column(view.head) for view in views]
    cells = {name: [_cell(view, name, setting.baseline) for view in views] for name in rows}
    parts = [] if setting.baseline is None else [f"Mean gain over {setting.baseline} at equal cost"]
    gains = [gain for view in views for gain in view.gains.values()]
    note = words.family_text(gains, setting.baseline or "", "policies and costs")
    if target is not None:
        share = words.percent_text(target)
        columns.append(Column(f"runs that\nreached {share}%"))
        for name, line in cells.items():
            taken = views[0].to_target.get(name)
            line.append(None if taken is None else f"{taken.reached} of {taken.runs}")
        parts.append(f"median of what it took to {share}% accuracy with its 95% limits")
        note += " A run that did not get there counts as slow, not as absent (Kaplan-Meier)."
    title = words.sentence_case("; below it the ".join(parts))
    shown = [(row.policy, row.variation, cells[name]) for name, row in rows.items()]
    return shared.lay_out(title, columns, shown, note.strip())


def knows(setting: Setting, axis: Axis) -> bool:
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
    to_target = {}
    for name, curve in setting.learning_curves.items():
        if target is not None and not np.isnan(curve.accuracy).all(axis=1).any():
            to_target[name] = curve.to_target(target)
    return AxisView(axis, end, setting.mean_gains, to_target)


def _cell(view: AxisView, name: str, baseline: str | None) -> Cell:
    gain, taken = view.gains.get(name), view.to_target.get(name)
    lines = [] if baseline is None else [Line(words.NOTHING)]
    if gain is not None:
        lines = Column("", ".1f", 100.0).lines(gain)
    if taken is not None:
        median, limits = words.median_text(taken, view.axis)
        other = None if name == baseline else view.to_target.get(baseline or "")
        if other is not None and taken.by_half and other.by_half and other.median:
            median += f", {taken.median / other.median:.2f} ×"
        lines += [Line(text, "interval") for text in (median, limits) if text]
    return lines or None
