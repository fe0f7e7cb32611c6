"""Memory laid out for the kernels."""

import numpy as np
from numpy.typing import NDArray

_CACHE_LINE = 64


def aligned(length: int) -> NDArray[np.float32]:
    """Zeros that begin at a cache line, so that no lane of 16 floats straddles two."""
    raw = np.zeros(4 * length + _CACHE_LINE, np.uint8)
    start = -raw.ctypes.data % _CACHE_LINE
    return raw[start : start + 4 * length].view(np.float32)
