"""How much of an axis (rounds, seconds, joules, uses, bits), in words."""

import math
from collections.abc import Mapping

from agewise.statistics import Axis, TimeToTarget

#: By unit: from which number on which factor has which name.
_UNITS: Mapping[str, tuple[tuple[float, float, str], ...]] = {
    "s": ((0.01, 1.0, "s"), (0.0, 1e-3, "ms")),
    "J": ((1e4, 1e3, "kJ"), (0.01, 1.0, "J"), (0.0, 1e-3, "mJ")),
    "uses": ((1e9, 1e9, "billion uses"), (1e6, 1e6, "million uses"), (0.0, 1.0, "uses")),
    "bit": ((1e9, 1e9, "Gbit"), (1e6, 1e6, "Mbit"), (1e3, 1e3, "kbit"), (0.0, 1.0, "bit")),
}


def amount_text(amount: float, axis: Axis, digits: int = 6) -> str:
    """How much of an axis, with its unit.

    >>> from agewise.statistics import AXES
    >>> amount_text(20, AXES["rounds"]), amount_text(0.0025, AXES["joules"])
    ('20 rounds', '2.5 mJ')
    >>> amount_text(12000, AXES["uses"]), amount_text(1.2e6, AXES["bits"])
    ('12,000 uses', '1.2 Mbit')
    """
    factor, unit = _unit(amount, axis)
    return f"{short_text(amount / factor, digits)} {unit}"


def reached_by_half(taken: TimeToTarget) -> bool:
    """Whether half of the runs reached the target, so that a median is worth telling.

    Where runs are censored at different costs, the curve may fall to one half by its last run
    alone.
    """
    return not math.isnan(taken.median) and 2 * taken.reached >= taken.runs


def median_text(taken: TimeToTarget, axis: Axis) -> tuple[str, str]:
    """The median of what it took to a target, and its limits as far as they are known.

    >>> from agewise.statistics import AXES, time_to_target
    >>> slow = time_to_target([[0.5, 0.9], [0.9, 0.9], [0.1, 0.2]], 0.9, cost=[2e3, 3e3])
    >>> median_text(slow, AXES["bits"])
    ('3 kbit', '[2, more]')
    >>> median_text(time_to_target([[0.5, 0.9]], 0.95), AXES["rounds"])
    ('not reached by half', '')
    """
    if not reached_by_half(taken):
        return "not reached by half", ""
    factor, unit = _unit(taken.median, axis)
    limits = ""
    if not math.isnan(taken.low):
        high = "more" if math.isnan(taken.high) else short_text(taken.high / factor, 3)
        limits = f"[{short_text(taken.low / factor, 3)}, {high}]"
    return f"{short_text(taken.median / factor, 3)} {unit}", limits


def _unit(amount: float, axis: Axis) -> tuple[float, str]:
    """What to divide an amount by, and what that is called."""
    if axis.column is None:
        return 1.0, "round" if amount == 1 else "rounds"
    return next(each[1:] for each in _UNITS[axis.unit] if amount >= each[0])


def short_text(number: float, digits: int) -> str:
    """A number rounded to this many digits, written out.

    >>> short_text(1234567.0, 4), short_text(0.0223456, 4)
    ('1,235,000', '0.02235')
    """
    return f"{float(f'{number:.{digits}g}'):,.12g}"


def at_text(point: float, axis: Axis) -> str:
    """When or where on an axis, inside a sentence.

    >>> from agewise.statistics import AXES
    >>> at_text(60, AXES["seconds"]), at_text(2.5, AXES["joules"]), at_text(1, AXES["rounds"])
    ('after 60 s', 'at 2.5 J', 'after 1 round')
    """
    word = "after" if axis.name in ("rounds", "seconds") else "at"
    return f"{word} {amount_text(point, axis)}"


def point_text(point: float | str, axis: Axis) -> str:
    """A point of an axis as the head of a column.

    >>> from agewise.statistics import AXES
    >>> point_text("10", AXES["rounds"]), point_text(1234567.0, AXES["bits"])
    ('round 10', '1.23457 Mbit')
    """
    return f"round {point}" if axis.column is None else amount_text(float(point), axis)
