"""What an age weighs: f_alpha."""

import math

import numpy as np

from agewise.core.elementary import expm1, log1p
from agewise.core.elementary import power as to_power
from agewise.core.jit import kernel

#: Forms of f_alpha.
PAPER, CONTINUOUS = range(2)


@kernel
def weigh_ages(ages, power, form, weights):
    """Fill ``weights`` with f_alpha of the ages, ``power = 1 - alpha``; the lowest and highest age.

    The weights are meaningless where the lowest age is below 0 or not a number.
    """
    lowest, highest = np.inf, 0.0
    for i in range(ages.size):
        x = np.float64(ages[i])
        lowest = x if not x >= lowest else lowest
        highest = max(highest, x)
        if power == 0.0:
            weights[i] = log1p(x)
        elif form == CONTINUOUS:
            weights[i] = expm1(power * log1p(x)) / power
        elif power == 0.5:
            weights[i] = math.sqrt(x) / power
        elif power == 1.0:
            weights[i] = x
        else:
            weights[i] = to_power(x, power) / power
    return lowest, highest
