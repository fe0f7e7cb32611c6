"""How kernels are compiled: cached on disk where that is possible."""

from collections.abc import Callable
from typing import Any

from numba import njit


def compiled(**options: Any) -> Callable[[Any], Any]:
    """Numba's ``njit`` with its disk cache, or without where no cache can be written.

    Numba refuses to decorate a function if neither its folder nor the user's cache folder is
    writable, as in a locked-down container; compiling anew each time is slower but works.
    """

    def decorate(function: Any) -> Any:
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError:
            return njit(**options)(function)

    return decorate
