"""The penalty of Eq. 1."""

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from agewise.scenario import Learn

#: In the order of the kernels' codes.
PENALTIES: Final = ("none", "l2", "l1")


def penalty(weights: NDArray[np.float64], settings: "Learn") -> float:
    """The term xi r(w): half the squared length (l2), the sum of magnitudes (l1), or 0."""
    if settings.penalty == "l2":
        return settings.penalty_weight * 0.5 * float(weights @ weights)
    if settings.penalty == "l1":
        return settings.penalty_weight * float(np.abs(weights).sum())
    return 0.0
