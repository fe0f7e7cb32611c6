"""Checks of replies before the inner strategy sees them: whatever is refused counts as failed."""

import functools
import io
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, Message
from numpy.lib import format as npy
from numpy.typing import NDArray

#: The largest number that is taken, also as the sum of the squares of an array.
_LARGEST = float(np.finfo(np.float32).max)
#: The longest head of a serialised array, in bytes; NumPy reads no longer ones.
_MOST_HEAD = 12_000
#: How Flower calls arrays that are serialised so.
_NUMPY = "numpy.ndarray"
#: The names of a reply's records, and those of its metrics, each with its length if it is a list.
_Form = tuple[object, ...]


@dataclass
class ReplyCheck:
    """Finds what is wrong with replies, so that no client can stop or destroy the federation.

    Every reply must have the arrays of the model that was sent, with their names, shapes and kinds
    of numbers (trees, of which a model has ever more, may have any length), all finite, and the
    ``needed`` metrics; the first of these, if it is given, must be a number of samples of at most
    ``most_samples``. Its metrics must be those that most others report, as Flower wants it. With a
    ``norm_cap``, no update may be longer than so many times the median of the others, if that is
    above 0.
    """

    needed: Sequence[str] = ()
    samples: str | None = None
    most_samples: int = 1
    norm_cap: float | None = None
    trees: bool = False
    _usual: _Form = field(default=(), init=False)

    def refusals(
        self, replies: Mapping[int, Message], sent: Mapping[int, ArrayRecord] | None = None
    ) -> dict[int, str]:
        """Find the replies to refuse, with the reasons.

        ``sent`` has the model that each answers; without it, none is wanted in reply.
        """
        found: dict[int, str] = {}
        forms: dict[int, _Form] = {}
        for key, reply in replies.items():
            try:
                forms[key] = self._form(reply, None if sent is None else sent[key])
            except ValueError as error:
                found[key] = str(error)
        counts = Counter(forms.values())
        if counts:
            self._usual = max(counts, key=lambda form: (counts[form], form == self._usual))
        for key, form in forms.items():
            if form != self._usual:
                found[key] = "its records or metrics are not those that most clients report"
        if self.norm_cap is not None and sent is not None:
            found |= self._too_long({k: r for k, r in replies.items() if k not in found}, sent)
        return found

    def _form(self, reply: Message, sent: ArrayRecord | None) -> _Form:
        """Find a reply's form; ``ValueError`` says what is wrong with this reply alone."""
        models, reports = reply.content.array_records, reply.content.metric_records
        if sent is not None:
            arrays = _only(models, "arrays")
            if arrays.keys() != sent.keys():
                raise ValueError(f"{len(arrays)} arrays that are not those of the model")
            for name, array in arrays.items():
                _require_like(name, array, sent[name], self.trees)
        metrics = _only(reports, "metrics")
        for name in self.needed:
            if not isinstance(metrics.get(name), int | float):
                have = ", ".join(repr(each)[:40] for each in sorted(metrics)[:9])
                raise ValueError(f"no number as metric {name!r}; it reports {have or 'none'}")
        for name, value in metrics.items():
            if not all(abs(x) <= _LARGEST for x in (value if isinstance(value, list) else [value])):
                raise ValueError(f"the metric {name[:40]!r} is not finite, or huge")
        size: Any = metrics.get(self.samples or "")
        if size is not None and not (
            isinstance(size, int | float) and 1 <= size <= self.most_samples
        ):
            raise ValueError(
                f"it says that it has {size!r:.40} samples, not 1 to {self.most_samples:,} "
                "(Clients.most_samples)"
            )
        lengths = {name: len(x) if isinstance(x, list) else None for name, x in metrics.items()}
        return (*models, *reports, *sorted(lengths.items()))

    def _too_long(
        self, replies: Mapping[int, Message], sent: Mapping[int, ArrayRecord]
    ) -> dict[int, str]:
        """Find updates that are longer than the cap."""
        norms = np.array([_update_norm(reply, sent[key]) for key, reply in replies.items()])
        found = {}
        for at, key in enumerate(replies if norms.size > 1 else ()):
            most = (self.norm_cap or math.inf) * float(np.median(np.delete(norms, at)))
            if norms[at] > most > 0.0:  # most others send the model back: no measure
                found[key] = f"its update has the norm {norms[at]:.3g}, above the cap of {most:.3g}"
        return found


def _only(records: Mapping[str, Any], what: str) -> Any:
    if len(records) != 1:
        raise ValueError(f"{len(records)} records of {what} in the place of one")
    return next(iter(records.values()))


def _require_like(name: str, array: Array, sent: Array, tree: bool) -> None:
    """``ValueError`` if an array of a reply cannot take the place of the one that was sent."""
    values = _read(name, array)
    if not tree and not values.shape == tuple(array.shape) == tuple(sent.shape):
        raise ValueError(f"array {name!r} has not the shape {tuple(sent.shape)} of the model's")
    kind = np.dtype(sent.dtype).kind
    if values.dtype.kind != kind:
        raise ValueError(f"array {name!r} has the type {values.dtype}, not {sent.dtype}")
    if kind in "fc":
        with np.errstate(all="ignore"):
            wide = values.astype(np.float32) if values.dtype.itemsize < 4 else values
            if not abs(np.vdot(wide, wide)) <= _LARGEST:
                raise ValueError(f"array {name!r} is not finite, or huge")


def _read(name: str, array: Array) -> NDArray[Any]:
    """Look at an array without a copy; what its head says is believed where the bytes are there."""
    data = array.data
    try:
        if array.stype != _NUMPY:
            raise ValueError
        shape, by_columns, dtype, start = _parsed(data[: data.find(b"\n", 12, _MOST_HEAD) + 1])
        if len(data) - start != math.prod(shape) * dtype.itemsize:
            raise ValueError
        values = np.frombuffer(data, dtype, offset=start)
        return values.reshape(shape, order="F" if by_columns else "C")
    except Exception as error:
        # The head is parsed as Python: it fails in many ways.
        raise ValueError(f"array {name!r} cannot be read") from error


@functools.lru_cache(maxsize=256)
def _parsed(head: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Shape, order and type of a serialised array, and where its numbers start.

    A head ends with its first line; all clients send the same ones, and to parse is slow.
    """
    opened = io.BytesIO(head)
    version = npy.read_magic(opened)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, by_columns, dtype = read(opened)
    if dtype.hasobject:
        raise ValueError
    return shape, by_columns, dtype, opened.tell()


def _update_norm(reply: Message, sent: ArrayRecord) -> float:
    """The length of an update, over all arrays of real numbers."""
    (arrays,) = reply.content.array_records.values()
    real = [(name, x) for name, x in sent.items() if np.dtype(x.dtype).kind == "f"]
    pairs = [(_read(name, arrays[name]), _read(name, x)) for name, x in real]
    # The squares of float16 leave its range; float64 would take ten times as long as float32.
    wide = [np.promote_types(new.dtype, np.float32) for new, _ in pairs]
    updates = [np.subtract(*pair, dtype=kind) for pair, kind in zip(pairs, wide, strict=True)]
    return math.sqrt(sum(float(np.vdot(update, update)) for update in updates))
