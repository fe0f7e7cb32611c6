"""What the access point does with the models that it receives."""

import math

import numpy as np
from numpy.typing import NDArray

from agewise.core import aggregation
from agewise.learn.base import Params


def average(
    models: Params,
    sizes: NDArray[np.int64],
    start: Params,
    factors: NDArray[np.float64] | None = None,
) -> tuple[Params, float | None]:
    """The average of ``models[i]`` weighted by |D_k|, and the diversity of their updates.

    A policy may have its own ``factors`` of the updates: then the result is ``start`` plus the
    sum of ``factors[i] * (models[i] - start)``.

    The gradient diversity is the sum of the squared lengths of the updates ``models[i] - start``
    over the squared length of their sum (Yin, Pananjady, Lam et al. 2018); it is ``None`` where
    there are no updates or they cancel. Without models, ``start`` stays as it is.
    """
    if len(models) == 0:
        return start, None
    result = np.empty_like(start)
    if factors is None:
        shares = sizes.astype(np.float64)
        apart, together = aggregation.combine(models, shares, 0.0, start, 0.0, result)
    else:
        rest = 1.0 - float(factors.sum())
        apart, together = aggregation.combine(models, factors, 1.0, start, rest, result)
    diversity = apart / together if together > 0 else math.inf
    return result, diversity if math.isfinite(diversity) else None


def is_finite(params: Params) -> bool:
    """Whether no weight of a model is infinite or not a number."""
    return bool(aggregation.is_finite(params))
