"""What several policies have in common."""

import math
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from agewise.checks import real_number
from agewise.policies.averages import running_mean
from agewise.policies.base import RoundView
from agewise.spectrum.reach import needs

#: Whether the channel is seen before it is chosen who transmits, or only after.
Channel = Literal["unseen", "seen"]


def check_channel(channel: Channel) -> None:
    """Raise ``ValueError`` unless this says when the channel is seen."""
    if channel not in get_args(Channel):
        raise ValueError(f"channel must be one of {', '.join(get_args(Channel))}, not {channel!r}")


def check_within(name: str, value: float, most: float = math.inf) -> None:
    """Raise ``ValueError`` unless ``value`` is a finite number from 0 to ``most``."""
    if not 0 <= real_number(name, value) <= most:
        end = f"{most:g}]" if most < math.inf else "inf)"
        raise ValueError(f"{name} must be in [0, {end}, not {value:g}")


def check_positive(name: str, value: float) -> None:
    """Raise ``ValueError`` unless ``value`` is a positive, finite number."""
    if not real_number(name, value) > 0:
        raise ValueError(f"{name} must be in (0, inf), not {value:g}")


def unknown_as_largest(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The values with the largest of them in place of NaN, or 1 each if all are NaN.

    What is not known of a UE must not keep it from being heard.

    >>> unknown_as_largest(np.array([0.5, np.nan, 0.25]))
    array([0.5 , 0.5 , 0.25])
    """
    unknown = np.isnan(values)
    return np.where(unknown, 1.0 if unknown.all() else values[~unknown].max(), values)


def chances_of_reach(view: RoundView) -> NDArray[np.float64]:
    """How likely each UE is in reach: able to reach the threshold if all subchannels were free.

    This is the share of the rounds so far, this one among them, in which it was, kept in the
    memory. One round in reach and one out of it are added (Laplace's rule of succession), so that
    the first rounds neither give up a UE nor trust it.
    """
    in_reach = needs(view.uplink, np.arange(view.uplink.subchannel_count))[0] > 0
    share = running_mean(view.memory, in_reach.astype(np.float64))
    rounds = float(view.memory["rounds"])
    return np.asarray((share * rounds + 1.0) / (rounds + 2.0))
