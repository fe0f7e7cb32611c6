"""Samples as the kernels read them: only what is not zero, row after row."""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agewise.data import Samples

#: Samples whose losses are added up together in evaluation, whichever thread does it.
_CHUNK = 128


@dataclass(frozen=True, eq=False)
class Rows:
    """Row i has the pairs (``features[j]``, ``values[j]``), j from ``starts[i]`` on.

    The value of a feature is its entry times ``unit``.
    """

    features: NDArray[Any]
    values: NDArray[Any]
    starts: NDArray[np.int64]
    labels: NDArray[np.int64]
    unit: np.float32

    @classmethod
    def of(cls, samples: Samples, order: NDArray[np.int64] | None = None) -> "Rows":
        """The samples in this order, so that those of one UE lie together."""
        from agewise.learn.row_kernels import count_entries, fill_entries

        order = np.arange(len(samples)) if order is None else order
        table = np.ascontiguousarray(samples.features)
        starts = np.empty(order.size + 1, np.int64)
        count_entries(table, order, starts)
        small = samples.feature_count <= np.iinfo(np.uint16).max
        features = np.empty(starts[-1], np.uint16 if small else np.uint32)
        values = np.empty(starts[-1], table.dtype)
        fill_entries(table, order, starts, features, values)
        return cls(features, values, starts, samples.labels[order], np.float32(samples.unit))

    @functools.cached_property
    def chunks(self) -> NDArray[np.int64]:
        """``[chunk, (first row, one behind the last)]``: what a thread takes at a time."""
        cuts = np.append(np.arange(0, self.labels.size, _CHUNK), self.labels.size)
        return np.stack((cuts[:-1], cuts[1:]), axis=1)

    @functools.cached_property
    def entries_per_row(self) -> float:
        """The mean number of entries of a row."""
        return self.values.size / max(1, self.labels.size)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What the kernels take, in their order."""
        return self.features, self.values, self.starts, self.labels, self.unit
