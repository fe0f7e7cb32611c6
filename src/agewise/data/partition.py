"""Which samples lie on which UE."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agewise.core.elementary import exp_each
from agewise.random import normal


@dataclass(frozen=True, eq=False)
class Partition:
    """Disjoint parts: UE k has the samples ``order[offsets[k] : offsets[k + 1]]``.

    They cover all samples, unless the scheme leaves some out.
    """

    order: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """``|D_k|``: the number of samples of each UE."""
        return np.diff(self.offsets)

    def samples_of(self, ue: int) -> NDArray[np.int64]:
        """The samples of one UE."""
        return self.order[self.offsets[ue] : self.offsets[ue + 1]]

    def label_counts(self, labels: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
        """``[ue, class]``: how many samples of each class a UE has."""
        ue = np.repeat(np.arange(self.sizes.size), self.sizes)
        flat = np.bincount(ue * classes + labels[self.order], minlength=self.sizes.size * classes)
        return flat.reshape(self.sizes.size, classes)


def equal_shares(ues: int) -> NDArray[np.float64]:
    """The same share of the samples for every UE."""
    return np.full(ues, 1.0 / ues)


def log_normal_shares(ues: int, sigma: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Shares that vary log-normally: ``sigma`` is the deviation of their logarithm."""
    drawn = exp_each(sigma * normal(rng, ues))
    return np.asarray(drawn / drawn.sum())


def iid(
    labels: NDArray[np.int64], shares: NDArray[np.float64], rng: np.random.Generator
) -> Partition:
    """Samples dealt at random; UE k gets its share of them."""
    _require_enough(labels.size, shares.size)
    counts = _whole_numbers(shares * labels.size, labels.size, least=1)
    return Partition(rng.permutation(labels.size), _offsets(counts))


def shards(
    labels: NDArray[np.int64],
    shares: NDArray[np.float64],
    classes_per_ue: int,
    rng: np.random.Generator,
) -> Partition:
    """Exactly ``classes_per_ue`` classes on every UE.

    Each class is held by a number of UEs in proportion to its samples, and its samples are
    divided among them by their shares; sizes are thus as equal as the classes allow.
    """
    ues = shares.size
    _require_enough(labels.size, ues)
    totals = np.bincount(labels)
    present = np.flatnonzero(totals)
    if not 1 <= classes_per_ue <= present.size:
        raise ValueError(
            f"shards: {classes_per_ue} classes per UE, but the data have {present.size}"
        )
    places = ues * classes_per_ue
    if places < present.size:
        raise ValueError(
            f"shards: {ues} UEs with {classes_per_ue} classes each cannot hold all "
            f"{present.size} classes"
        )
    holders = _whole_numbers(totals[present] * (places / labels.size), places, 1, most=ues)
    short = holders > totals[present]
    if short.any():
        worst = int(short.argmax())
        raise ValueError(
            f"shards: class {present[worst]} has {totals[present[worst]]} samples for the "
            f"{holders[worst]} UEs that should hold some"
        )
    holds = np.zeros((ues, present.size), dtype=np.bool_)
    left = holders.copy()
    for ue in rng.permutation(ues):
        # Those with most places left first: then a place for every UE is left to the end.
        order = np.lexsort((rng.random(present.size), -left))[:classes_per_ue]
        holds[ue, order] = True
        left[order] -= 1
    matrix = np.zeros((ues, totals.size), dtype=np.int64)
    for column, label in enumerate(present):
        held_by = np.flatnonzero(holds[:, column])
        wanted = shares[held_by] / shares[held_by].sum() * totals[label]
        matrix[held_by, label] = _whole_numbers(wanted, int(totals[label]), least=1)
    return _deal(labels, matrix, rng)


def dirichlet(
    labels: NDArray[np.int64],
    shares: NDArray[np.float64],
    concentration: float,
    rng: np.random.Generator,
) -> Partition:
    """Each class divided among the UEs by a draw of Dirichlet(``concentration``).

    The lower the concentration, the fewer UEs hold a class (Hsu, Qi, Brown 2019). ``shares``
    are the expected sizes. A UE that would get nothing gets one sample of the largest.
    """
    ues = shares.size
    _require_enough(labels.size, ues)
    totals = np.bincount(labels)
    matrix = np.zeros((ues, totals.size), dtype=np.int64)
    for label in np.flatnonzero(totals):
        draws = rng.standard_gamma(concentration * ues * shares)
        # Its last bits are those of the C library, and differ between machines.
        draws = draws.astype(np.float32).astype(np.float64)
        if not draws.sum() > 0:  # every draw underflowed: all of it lies on one UE
            draws[rng.integers(ues)] = 1.0
        wanted = draws / draws.sum() * totals[label]
        matrix[:, label] = _whole_numbers(wanted, int(totals[label]), least=0)
    for ue in np.flatnonzero(matrix.sum(axis=1) == 0):
        richest = int(matrix.sum(axis=1).argmax())
        given = int(matrix[richest].argmax())
        matrix[richest, given] -= 1
        matrix[ue, given] += 1
    return _deal(labels, matrix, rng)


def by_writer(
    writers: NDArray[np.int64], ues: int, writers_per_ue: int, rng: np.random.Generator
) -> Partition:
    """Samples stay with their writers: UE k has those of ``writers_per_ue`` random ones.

    The samples of writers that are not drawn are left out.
    """
    known = np.unique(writers)
    wanted = ues * writers_per_ue
    if wanted > known.size:
        raise ValueError(
            f"by-writer: {ues} UEs with {writers_per_ue} writer(s) each need {wanted} writers, and "
            f"the data have {known.size}"
        )
    drawn = rng.permutation(known)[:wanted]
    order = np.argsort(writers, kind="stable")
    first, last = (np.searchsorted(writers[order], drawn, side) for side in ("left", "right"))
    parts = [order[start:stop] for start, stop in zip(first, last, strict=True)]
    sizes = (last - first).reshape(ues, writers_per_ue).sum(axis=1)
    return Partition(np.concatenate(parts), _offsets(sizes))


def _deal(
    labels: NDArray[np.int64], matrix: NDArray[np.int64], rng: np.random.Generator
) -> Partition:
    """Deal random samples of each class so that UE k gets ``matrix[k, class]`` of them."""
    offsets = _offsets(matrix.sum(axis=1))
    order = np.empty(labels.size, dtype=np.int64)
    place = offsets[:-1].copy()
    for label in range(matrix.shape[1]):
        samples = rng.permutation(np.flatnonzero(labels == label))
        cuts = np.cumsum(matrix[:, label])[:-1]
        for ue, part in enumerate(np.split(samples, cuts)):
            order[place[ue] : place[ue] + part.size] = part
            place[ue] += part.size
    return Partition(order, offsets)


def _whole_numbers(
    wanted: NDArray[np.floating[Any]], total: int, least: int, most: int | None = None
) -> NDArray[np.int64]:
    """Whole numbers near ``wanted`` that add up to ``total``, within the bounds.

    Largest remainders first (Hamilton's method); bounds take precedence.
    """
    high = total if most is None else most
    counts: NDArray[np.int64] = np.clip(np.floor(wanted).astype(np.int64), least, high)
    while (missing := total - int(counts.sum())) != 0:
        step = 1 if missing > 0 else -1
        open_ = counts < high if step > 0 else counts > least
        lag = np.where(open_, step * (wanted - counts), -np.inf)
        most_wanting = np.argsort(-lag, kind="stable")[: min(abs(missing), int(open_.sum()))]
        counts[most_wanting] += step
    return counts


def _offsets(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def _require_enough(samples: int, ues: int) -> None:
    if samples < ues:
        raise ValueError(f"{samples} samples are too few for {ues} UEs: each needs at least one")
