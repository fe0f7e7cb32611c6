"""How kernels are compiled, and when a compiled one may be used again."""

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache


@functools.cache
def room_stamp() -> str:
    """A hash of the content of all files in this room."""
    content = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        content.update(file.name.encode())
        content.update(file.read_bytes())
    return content.hexdigest()


class _RoomCache(FunctionCache):
    """Numba's disk cache of one kernel, valid as long as no file of this room changes.

    Numba itself looks only at the file in which a kernel stands, not at those of the kernels that
    it calls, which are compiled into it.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file._source_stamp = room_stamp()


#: Compile a function that only kernels call. As in NumPy, division by zero gives infinity or NaN:
#: the way out to an exception at each division would cost packing a tenth of its speed.
njit = functools.partial(numba.njit, error_model="numpy")
#: Compile such a function into those that call it.
inlined = functools.partial(njit, forceinline=True)


def kernel(function: Any = None, **options: Any) -> Any:
    """Compile a function that Python calls, with a cache on disk: ``@kernel(nogil=True)``.

    Where no cache can be written, as in a locked-down container, kernels are compiled anew in
    each process. Functions that only kernels call need no cache: they are `njit` or `inlined`.
    """
    if function is None:
        return functools.partial(kernel, **options)
    dispatcher = njit(**options)(function)
    try:
        dispatcher._cache = _RoomCache(function)
    except RuntimeError:  # no folder for the cache is writable
        return dispatcher
    return dispatcher
