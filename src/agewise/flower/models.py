"""Models as Flower has them, records of arrays, and as one flat vector."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agewise.flower.api import Array, ArrayRecord, FederationError
from agewise.learn import Aggregated, Aggregator, Params, State, Updates


def flat(record: ArrayRecord) -> Params:
    """The numbers of all arrays of a model, one after the other."""
    parts = [array.numpy().reshape(-1) for array in record.values()]
    if not parts:
        return np.zeros(0, np.float32)
    return np.concatenate([part.astype(np.float32, copy=False) for part in parts])


def like(record: ArrayRecord, vector: Params) -> ArrayRecord:
    """The model of this vector, with the names, shapes and types of another one."""
    arrays, at = {}, 0
    for name, array in record.items():
        old = array.numpy()
        part = vector[at : at + old.size].reshape(old.shape)
        whole = old.dtype.kind in "iub"
        arrays[name] = Array(np.array(np.rint(part) if whole else part, old.dtype, order="C"))
        at += old.size
    return ArrayRecord(arrays)


def stacked(records: Sequence[ArrayRecord], length: int) -> Params:
    """``[update, number]``: models of this length, each as a row."""
    models = np.empty((len(records), length), np.float32)
    for row, record in zip(models, records, strict=True):
        vector = flat(record)
        if vector.size != length:
            raise FederationError(
                f"a client sent a model of {vector.size:,} numbers for one of {length:,}"
            )
        row[:] = vector
    return models


class Growing:
    """An aggregator of the simulator whose clients may become more."""

    def __init__(self, rule: Aggregator) -> None:
        self.rule = rule
        self.state: State | None = None

    def combine(self, updates: Updates, sizes: NDArray[np.int64]) -> Aggregated:
        """The model after these updates, of clients that have these numbers of samples."""
        self.state = self._grown(sizes.size, updates.start.size)
        found = self.rule.combine(self.state, updates, sizes)
        self.state = found.state
        return found

    def _grown(self, ues: int, length: int) -> State:
        state = self.rule.start(ues, length)
        for name, kept in (self.state or {}).items():
            if kept.shape == state[name].shape:
                state[name] = kept
            else:
                state[name][tuple(slice(0, size) for size in kept.shape)] = kept
        return state
