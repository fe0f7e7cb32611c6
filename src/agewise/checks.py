"""Checks of single arguments, with errors that name them."""

import math
import numbers


def real_number(name: str, value: object) -> float:
    """A finite number as a float; ``ValueError`` naming the argument for anything else."""
    if type(value) is float and math.isfinite(value):  # as a rule, and checked fast
        return value
    if isinstance(value, numbers.Real):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise ValueError(f"{name} must be a finite number, not {value!r}")


def whole_number(name: str, value: object, least: int = 0, most: int | None = None) -> int:
    """A whole number from ``least`` to ``most``; ``ValueError`` naming the argument otherwise."""
    if isinstance(value, numbers.Integral) and int(value) >= least:
        if most is None or int(value) <= most:
            return int(value)
        raise ValueError(f"{name} must be a whole number from {least} to {most}, not {value:g}")
    raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")
