"""Numbers with their intervals, in words."""

import math
from collections.abc import Mapping
from typing import Any


def with_interval(row: Mapping[str, Any], name: str, form: str = ".1f", scale: float = 100) -> str:
    """The mean ``row[name]`` and half the width of its interval, if that is known.

    >>> with_interval({"loss": 0.1, "loss_low": 0.08, "loss_high": 0.12}, "loss")
    '10.0 ± 2.0'
    """
    if math.isnan(row[name]):
        return "-"
    half = scale * (row[f"{name}_high"] - row[f"{name}_low"]) / 2
    text = f"{scale * row[name]:{form}}"
    return f"{text} ± {half:{form}}" if math.isfinite(half) else text
