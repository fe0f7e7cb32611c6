"""How kernels are compiled, and when a compiled one may be used again."""

import functools
import hashlib
import logging
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

_log = logging.getLogger("agewise")


_ROOM = Path(__file__).parent
_IMPORT = re.compile(rf"^from {re.escape(__package__)}\.(\w+) import", re.MULTILINE)


@functools.cache
def _files_behind(module: str) -> frozenset[str]:
    """The modules of this room that a module's kernels are compiled from, itself among them.

    Modules of this room import each other as ``from agewise.core.name import`` alone.
    """
    imported = _IMPORT.findall((_ROOM / f"{module}.py").read_text(encoding="utf-8"))
    return frozenset({module}).union(*map(_files_behind, imported))


@functools.cache
def _stamp_of(module: str) -> str:
    """A hash of the content of all files that a module's kernels are compiled from."""
    content = hashlib.sha256()
    for name in sorted(_files_behind(module)):
        content.update(name.encode())
        content.update((_ROOM / f"{name}.py").read_bytes())
    return content.hexdigest()


@functools.cache
def _say_once(trouble: str) -> None:
    """One line on standard error, unless the program has set up logging in another way."""
    _log.warning("the cache of compiled kernels %s; they are compiled anew", trouble)


def _complain(what: str, error: Exception) -> None:
    _say_once(f"{what} ({getattr(error, 'strerror', None) or error})")


class _SealedFiles(IndexDataCacheFile):
    """Numba's index and data files, each behind a checksum of its content.

    Machine code of which a bit has changed could do anything, and end the process at best.
    """

    def _save_index(self, overloads):
        # Read only if the stamp agrees: other files may have had types that are there no more.
        content = self._dump(overloads)
        self._write(self._index_path, (self._version, self._source_stamp, content))

    def _load_index(self):
        try:
            version, stamp, content = self._read(self._index_path)
            is_ours = (version, stamp) == (self._version, self._source_stamp)
            return pickle.loads(content) if is_ours else {}  # noqa: S301 - as in `_read`
        except FileNotFoundError:
            return {}
        except OSError as error:
            _complain("cannot be read", error)
            return {}
        except Exception as error:  # damage can fail in any way; it is written anew
            _complain("has damaged files", error)
            return {}

    def _save_data(self, name, data):
        self._write(self._data_path(name), data)

    def _load_data(self, name):
        return self._read(self._data_path(name))

    def _write(self, path, content):
        raw = self._dump(content)
        with self._open_for_write(path) as file:
            file.write(hashlib.sha256(raw).digest() + raw)

    def _read(self, path):
        sealed = Path(path).read_bytes()
        size = hashlib.sha256().digest_size
        if hashlib.sha256(sealed[size:]).digest() != sealed[:size]:
            raise ValueError(f"{path}: its checksum is wrong")
        return pickle.loads(sealed[size:])  # noqa: S301 - what this package wrote itself


class _RoomCache(FunctionCache):
    """Numba's disk cache of one kernel, valid as long as no file changes that it is compiled from.

    Numba itself looks only at the file in which a kernel stands, not at those of the kernels that
    it calls, which are compiled into it. Whatever goes wrong with the cache costs time and one
    line on standard error, never the run; damaged files are replaced.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        name = f"{self._impl.filename_base}.stamped"
        stamp = _stamp_of(function.__module__.rpartition(".")[2])
        self._cache_file = _SealedFiles(self._cache_path, name, stamp)

    def load_overload(self, signature, context):
        """The compiled kernel, or ``None`` if it has to be compiled."""
        try:
            return super().load_overload(signature, context)
        except Exception as error:  # damage can fail in any way
            _complain("cannot be read", error)
            return None

    def save_overload(self, signature, compiled):
        """Keep a compiled kernel, where that is possible."""
        try:
            super().save_overload(signature, compiled)
        except OSError as error:
            _complain(f"cannot be written in {self._cache_path}", error)


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
