"""Memory laid out for the kernels."""

import math

import numpy as np
from numpy.typing import NDArray

_CACHE_LINE = 64


def aligned(shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Zeros that begin at a cache line, so that no lane of 16 floats straddles two."""
    size = math.prod(shape) * 4
    raw = np.zeros(size + _CACHE_LINE, np.uint8)
    start = -raw.ctypes.data % _CACHE_LINE
    return raw[start : start + size].view(np.float32).reshape(shape)


class Workspace:
    """Rows of aligned memory that are used again and again, as many as were ever needed."""

    def __init__(self, length: int) -> None:
        self._rows = aligned((1, length))

    def rows(self, count: int) -> NDArray[np.float32]:
        """``[count, length]``, with whatever was left in it."""
        if count > len(self._rows):
            self._rows = aligned((count, self._rows.shape[1]))
        return self._rows[:count]
