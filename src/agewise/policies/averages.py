"""Averages over the rounds, kept in the memory of a view."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray


def running_mean(
    memory: dict[str, NDArray[Any]], now: NDArray[np.float64], window: float = math.inf
) -> NDArray[np.float64]:
    """The mean of ``now[ue]`` over the rounds so far, or over about the last ``window`` of them.

    In round t = 1, 2, ... it is ``(1 - w) mean + w now`` with ``w = 1 / min(t, window)``: the plain
    mean until the window is full, and then one that forgets.

    >>> memory = {}
    >>> [float(running_mean(memory, np.array([value]))[0]) for value in (4.0, 2.0, 0.0)]
    [4.0, 3.0, 2.0]
    """
    rounds = int(memory.get("rounds", 0)) + 1
    before = memory.get("mean", np.zeros(now.size))
    weight = 1.0 / min(rounds, window)
    mean: NDArray[np.float64] = (1.0 - weight) * before + weight * now
    memory["rounds"], memory["mean"] = np.array(rounds), mean
    return mean
