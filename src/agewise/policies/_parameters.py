"""Checks of parameters, and rules that several policies share."""

import math
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from agewise.checks import real_number, whole_number

#: The largest whole number of a parameter that counts rounds or UEs.
MOST = 2**31 - 1
#: The longest search: some thirty years of steps.
MOST_STEPS = 10**15
Ties = Literal["random", "lowest-index"]
#: Whether the channel is known before it is chosen who transmits, or only after.
Foresight = Literal["unseen", "seen"]


def check_choice(name: str, value: str, choices: Any) -> None:
    """Raise ``ValueError`` unless the value is one of a ``Literal``'s."""
    if value not in get_args(choices):
        raise ValueError(f"{name} must be one of {', '.join(get_args(choices))}, not {value!r}")


def check_ties(ties: Ties) -> None:
    """Raise ``ValueError`` unless this is a rule for ties."""
    check_choice("ties", ties, Ties)


def tie_rank(ties: Ties, ue_count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The rank that decides between UEs of equal score: a drawn one, or the index."""
    return rng.permutation(ue_count) if ties == "random" else np.arange(ue_count)


def check_share(name: str, share: float) -> None:
    """Raise ``ValueError`` unless ``share`` is a positive part of the whole."""
    if not 0 < real_number(name, share) <= 1:
        raise ValueError(f"{name} must be in (0, 1], not {share:g}")


def check_within(name: str, value: float, most: float = math.inf) -> None:
    """Raise ``ValueError`` unless ``value`` is a finite number from 0 to ``most``."""
    if not 0 <= real_number(name, value) <= most:
        end = f"{most:g}]" if most < math.inf else "inf)"
        raise ValueError(f"{name} must be in [0, {end}, not {value:g}")


def check_positive(name: str, value: float, most: float = math.inf) -> None:
    """Raise ``ValueError`` unless ``value`` is a finite number above 0 and at most ``most``."""
    if not 0 < real_number(name, value) <= most:
        end = f"{most:g}]" if most < math.inf else "inf)"
        raise ValueError(f"{name} must be in (0, {end}, not {value:g}")


def whole_parameter(name: str, value: float, least: int, most: int = MOST) -> int:
    """A whole number from ``least`` to ``most``, also where it was written as 2.0."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return whole_number(name, value, least, most)
