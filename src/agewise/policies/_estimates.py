"""Estimates that policies make of a UE from what they have seen so far."""

import math

import numpy as np
from numpy.typing import NDArray

from agewise.scheduling import RoundView, State

#: The declared state of a policy that keeps a `running_mean`.
MEAN = {"mean": 0.0, "rounds": 0.0}


def running_mean(
    state: State, now: NDArray[np.float64], window: float = math.inf
) -> NDArray[np.float64]:
    """The mean of ``now[ue]`` over the rounds so far, or over about the last ``window`` of them.

    In round t = 1, 2, ... of a UE it is ``(1 - w) mean + w now`` with ``w = 1 / min(t, window)``:
    the plain mean until the window is full, and then one that forgets. The policy declares the
    state `MEAN`.

    >>> state = State({"mean": np.zeros(1), "rounds": np.zeros(1)}, {})
    >>> [float(running_mean(state, np.array([value]))[0]) for value in (4.0, 2.0, 0.0)]
    [4.0, 3.0, 2.0]
    """
    rounds = state.per_ue["rounds"] + 1.0
    weight = 1.0 / np.minimum(rounds, window)
    mean: NDArray[np.float64] = (1.0 - weight) * state.per_ue["mean"] + weight * now
    state.per_ue["rounds"], state.per_ue["mean"] = rounds, mean
    return mean


def chances_of_reach(view: RoundView) -> NDArray[np.float64]:
    """Estimate how likely each UE is in reach: reaches the threshold if all subchannels are free.

    This is the share of the rounds so far, this one among them, in which it was; the policy
    declares the state `MEAN`. One round in reach and one out of it are added (Laplace's rule of
    succession), so that the first rounds neither give up a UE nor trust it.
    """
    in_reach = view.uplink.needs()[0] > 0
    share = running_mean(view.state, in_reach.astype(np.float64))
    rounds = view.state.per_ue["rounds"]
    return np.asarray((share * rounds + 1.0) / (rounds + 2.0))


def chances_of_success(view: RoundView) -> NDArray[np.float64]:
    """Estimate how likely an upload of each UE succeeds: it is in reach, and arrives if it is sent.

    Uploads may be late or lost. The share of a UE's attempts that succeeded begins at 1, so that it
    is 1 as long as nothing is lost. The policy declares the state `MEAN`.
    """
    arrives = (view.successes + 1.0) / (view.attempts + 1.0)
    return np.asarray(chances_of_reach(view) * arrives)
