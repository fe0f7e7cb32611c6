"""Partitions of samples over the UEs, and the section ``data`` of a scenario."""

import functools
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from pydantic import Field, model_validator

from agewise.data import files, published  # noqa: F401 - kinds of data sources
from agewise.data.dataset import Dataset, DataSource, Task
from agewise.devices import DeviceTable
from agewise.files import fingerprint
from agewise.part import LARGE, MOST, Kinds, Part, Unloaded
from agewise.random import Streams

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Partition:
    """Disjoint parts: UE k has the samples ``order[offsets[k] : offsets[k + 1]]``.

    They cover all samples, unless the scheme leaves some out.
    """

    order: _Ints
    offsets: _Ints

    @classmethod
    def of_owners(cls, owners: ArrayLike, ues: int) -> "Partition":
        """Partition by ``owners[sample]``, the UE that each lies on, -1 for nowhere.

        >>> Partition.of_owners([1, 0, -1, 1], 2).samples_of(1)
        array([0, 3])
        """
        owner = np.asarray(owners, np.int64)
        order = np.argsort(owner, kind="stable")[np.count_nonzero(owner < 0) :]
        return cls(order, _offsets(np.bincount(owner[order], minlength=ues)))

    @property
    def sizes(self) -> _Ints:
        """Number of samples of each UE, ``|D_k|``."""
        return np.diff(self.offsets)

    def samples_of(self, ue: int) -> _Ints:
        """List the samples of one UE."""
        return self.order[self.offsets[ue] : self.offsets[ue + 1]]

    def label_counts(self, labels: _Ints, classes: int) -> _Ints:
        """Count ``[ue, class]``: how many samples of each class a UE has."""
        ue = np.repeat(np.arange(self.sizes.size), self.sizes)
        flat = np.bincount(ue * classes + labels[self.order], minlength=self.sizes.size * classes)
        return flat.reshape(self.sizes.size, classes)


# -------------------------------------------------------------------------- which samples a UE has
class PartitionScheme(Part):
    """Scheme of a partition: which samples lie on which UE.

    A scheme of your own has one method, ``divide``; `Partition.of_owners` helps.
    """

    kind: str = ""
    #: Whether samples stay with their writers.
    by_writer: ClassVar[bool] = False

    def divide(self, dataset: Dataset, shares: _Floats, rng: Generator) -> Partition:
        """Divide the training samples among ``shares.size`` UEs; UE k is to get ``shares[k]``."""
        raise self.lacks("divide")


class Iid(PartitionScheme):
    """Samples dealt at random."""

    kind: Literal["iid"] = "iid"

    def divide(self, dataset: Dataset, shares: _Floats, rng: Generator) -> Partition:
        """Deal to every UE its share."""
        count = len(dataset.train)
        _require_enough(count, shares.size)
        counts = _whole_numbers(shares * count, count, least=1)
        return Partition(rng.permutation(count), _offsets(counts))


class Shards(PartitionScheme):
    """A fixed number of classes on every UE."""

    kind: Literal["shards"] = "shards"
    classes_per_ue: int = Field(ge=1, le=MOST, description="how many classes each UE holds")

    def divide(self, dataset: Dataset, shares: _Floats, rng: Generator) -> Partition:
        """Give every UE exactly ``classes_per_ue`` classes.

        Each class is held by a number of UEs in proportion to its samples, and its samples are
        divided among them by their shares; sizes are thus as equal as the classes allow.
        """
        labels, classes_per_ue = dataset.train.labels, self.classes_per_ue
        ues = shares.size
        _require_enough(labels.size, ues)
        totals = np.bincount(labels)
        present = np.flatnonzero(totals)
        if classes_per_ue > present.size:
            raise ValueError(
                f"shards: {classes_per_ue} classes per UE, but the data have {present.size}"
            )
        places = ues * classes_per_ue
        if places < present.size:
            raise ValueError(
                f"shards: {ues} UEs with {classes_per_ue} classes each cannot hold all "
                f"{present.size} classes"
            )
        fair = totals[present].astype(np.float64) * (places / labels.size)
        holders = _whole_numbers(fair, places, least=1, most=ues)
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


class Dirichlet(PartitionScheme):
    """Each class divided among the UEs by a draw from a Dirichlet distribution."""

    kind: Literal["dirichlet"] = "dirichlet"
    concentration: float = Field(
        gt=0, le=LARGE, description="the lower, the less alike are the UEs"
    )

    def divide(self, dataset: Dataset, shares: _Floats, rng: Generator) -> Partition:
        """Draw how each class is divided (Hsu, Qi, Brown 2019).

        The lower the concentration, the fewer UEs hold a class. The shares are the expected sizes.
        A UE that would get nothing gets one sample of the largest.
        """
        labels = dataset.train.labels
        ues = shares.size
        _require_enough(labels.size, ues)
        totals = np.bincount(labels)
        matrix = np.zeros((ues, totals.size), dtype=np.int64)
        for label in np.flatnonzero(totals):
            draws = rng.standard_gamma(self.concentration * ues * shares)
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


class ByWriter(PartitionScheme):
    """The samples of one writer stay together; writers are drawn at random."""

    kind: Literal["by-writer"] = "by-writer"
    writers_per_ue: int = Field(
        ge=1, le=MOST, description="how many writers each UE has; others are left out"
    )
    by_writer: ClassVar[bool] = True

    def divide(self, dataset: Dataset, shares: _Floats, rng: Generator) -> Partition:
        """Give every UE the samples of its writers; those of writers not drawn are left out."""
        writers, ues, writers_per_ue = dataset.writers, shares.size, self.writers_per_ue
        if writers is None:
            raise ValueError("data.partition = by-writer: the samples have no writers")
        known = np.unique(writers)
        wanted = ues * writers_per_ue
        if wanted > known.size:
            raise ValueError(
                f"by-writer: {ues} UEs with {writers_per_ue} writer(s) each need {wanted} writers, "
                f"and the data have {known.size}"
            )
        drawn = rng.permutation(known)[:wanted]
        order = np.argsort(writers, kind="stable")
        first, last = (np.searchsorted(writers[order], drawn, side) for side in ("left", "right"))
        parts = [order[start:stop] for start, stop in zip(first, last, strict=True)]
        sizes = (last - first).reshape(ues, writers_per_ue).sum(axis=1)
        return Partition(np.concatenate(parts), _offsets(sizes))


class Data(Part):
    """Data to learn from, and how they lie on the UEs."""

    dataset: Annotated[DataSource, Kinds] = Field(description="where the samples are from")
    task: Annotated[Task, Kinds] = Field(description="what is told apart")
    partition: Annotated[PartitionScheme, Kinds] = Field(
        description="which samples lie on which UE"
    )

    @model_validator(mode="after")
    def _require_writers(self) -> Self:
        by_writer = self.partition.by_writer
        unknown = isinstance(self.dataset, Unloaded)
        if by_writer and not (self.dataset.has_writers or unknown):
            raise ValueError(
                f"partition = {self.partition.kind} needs a data set with writers, which "
                f"{self.dataset.kind} is not: set data.dataset to femnist"
            )
        return self

    def load(self) -> Dataset:
        """Load the data set, with the classes of the task; again only if its files change."""
        return _loaded(self, self.digests())

    def digests(self) -> tuple[str | None, ...]:
        """Digests of the files that samples are from; ``None`` for one that is not there."""
        return tuple(map(fingerprint, self.dataset.files().values()))

    def divide(self, dataset: Dataset, devices: DeviceTable, streams: Streams) -> Partition:
        """Divide the training samples among the UEs."""
        rng = streams.partition()
        return self.partition.divide(dataset, devices.sample_shares(rng), rng)


@functools.lru_cache(maxsize=2)
def _loaded(data: Data, _digests: tuple[str | None, ...]) -> Dataset:
    return data.task.relabel(data.dataset.load())


def _deal(labels: _Ints, matrix: _Ints, rng: Generator) -> Partition:
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


def _whole_numbers(wanted: _Floats, total: int, least: int, most: int | None = None) -> _Ints:
    """Return whole numbers near ``wanted`` that add up to ``total``, within the bounds.

    Largest remainders first (Hamilton's method); bounds take precedence.
    """
    high = total if most is None else most
    counts: _Ints = np.clip(np.floor(wanted).astype(np.int64), least, high)
    while (missing := total - int(counts.sum())) != 0:
        step = 1 if missing > 0 else -1
        open_ = counts < high if step > 0 else counts > least
        lag = np.where(open_, step * (wanted - counts), -np.inf)
        most_wanting = np.argsort(-lag, kind="stable")[: min(abs(missing), int(open_.sum()))]
        counts[most_wanting] += step
    return counts


def _offsets(sizes: _Ints) -> _Ints:
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def _require_enough(samples: int, ues: int) -> None:
    if samples < ues:
        raise ValueError(f"{samples} samples are too few for {ues} UEs: each needs at least one")
