"""What UEs report with their updates."""

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from agewise.core.aggregation import squared_norms
from agewise.learn.base import Params
from agewise.scheduling import Report


def update_reports(
    wanted: Collection[Report], start: Params, models: Params
) -> dict[Report, NDArray[np.float64]]:
    """The wanted of what can be told from the updates themselves: all but the losses."""
    if "update_norms" not in wanted:
        return {}
    return {"update_norms": np.sqrt(squared_norms(models, start))}
