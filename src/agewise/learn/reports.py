"""What UEs report with their updates."""

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from agewise.core.aggregation import compare_updates
from agewise.learn.base import Params
from agewise.scheduling import Report


def update_reports(
    wanted: Collection[Report], start: Params, models: Params
) -> dict[Report, NDArray[np.float64]]:
    """The wanted of what can be told from the updates themselves: all but the losses."""
    found: dict[Report, NDArray[np.float64]] = {}
    if "update_norms" in wanted or "dissimilarities" in wanted:
        squares, inner, together = compare_updates(models, start)
        norms = np.sqrt(squares)
        lengths = norms * np.sqrt(together)
        cosines = np.divide(inner, lengths, out=np.ones_like(norms), where=lengths > 0)
        if "update_norms" in wanted:
            found["update_norms"] = norms
        if "dissimilarities" in wanted:
            found["dissimilarities"] = 1.0 - np.clip(cosines, -1.0, 1.0)
    return found
