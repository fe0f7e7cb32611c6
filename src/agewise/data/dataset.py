"""Labelled samples, split into training and test, and what is to be told apart in them."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agewise.part import Part


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples: ``features[sample, feature]``, bytes or float32, and classes ``labels[sample]``.

    The value of a feature is its entry times ``unit``: bytes of an image stay bytes in memory.
    """

    features: NDArray[np.uint8] | NDArray[np.float32]
    labels: NDArray[np.int64]
    unit: float = 1.0

    def __len__(self) -> int:
        return int(self.labels.size)

    @property
    def feature_count(self) -> int:
        """d, the number of features."""
        return int(self.features.shape[1])

    def values(self) -> NDArray[np.float32]:
        """Return the features as numbers, ``float32[sample, feature]``."""
        return self.features.astype(np.float32) * np.float32(self.unit)

    def take(self, indices: NDArray[np.int64]) -> "Samples":
        """Keep these samples only, in this order."""
        return Samples(self.features[indices], self.labels[indices], self.unit)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A classification data set; ``names[class]`` says what each class stands for.

    ``shape`` is that of one sample, such as ``(28, 28)`` for images whose rows of features are
    their pixels line by line; without it a sample is one row. ``writers[sample]`` says who wrote
    each training sample, where that is known.
    """

    name: str
    train: Samples
    test: Samples
    names: tuple[str, ...]
    shape: tuple[int, ...] = ()
    writers: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        self._check("training", self.train)
        self._check("test", self.test)
        if self.train.feature_count != self.test.feature_count:
            raise ValueError(
                f"{self.name}: training samples have {self.train.feature_count} features, "
                f"test samples {self.test.feature_count}"
            )
        if not self.shape:
            object.__setattr__(self, "shape", (self.train.feature_count,))
        if math.prod(self.shape) != self.train.feature_count:
            raise ValueError(
                f"{self.name}: samples of shape {self.shape} have {math.prod(self.shape)} "
                f"features, not {self.train.feature_count}"
            )

    @property
    def class_count(self) -> int:
        """Number of classes."""
        return len(self.names)

    def _check(self, part: str, samples: Samples) -> None:
        where = f"{self.name}, {part} samples"
        if samples.features.ndim != 2 or samples.labels.shape != samples.features.shape[:1]:
            raise ValueError(
                f"{where}: features must be a matrix with a row per label, not shapes "
                f"{samples.features.shape} and {samples.labels.shape}"
            )
        if len(samples) == 0:
            raise ValueError(f"{where}: there are none")
        if samples.features.dtype.kind == "f":
            finite = np.isfinite(samples.features)
            if not finite.all():
                sample, feature = np.unravel_index(int(finite.argmin()), finite.shape)
                raise ValueError(
                    f"{where}: feature {feature} of sample {sample} is "
                    f"{samples.features[sample, feature]}, which is not a finite number"
                )
        outside = (samples.labels < 0) | (samples.labels >= self.class_count)
        if outside.any():
            first = int(outside.argmax())
            raise ValueError(
                f"{where}: the label {samples.labels[first]} of sample {first} is outside the "
                f"classes 0 to {self.class_count - 1}"
            )


class DataSource(Part):
    """Source of the samples of a scenario.

    A source of your own has one method, ``load``, which gives a `Dataset`.
    """

    kind: str = ""
    #: Whether it is known who wrote each training sample.
    has_writers: ClassVar[bool] = False

    def load(self) -> Dataset:
        """Read or make the data set."""
        raise self.lacks("load")

    def files(self) -> dict[str, Path]:
        """Return the files or folders to read by what a run calls them; some may not be there."""
        return {}

    def file_names(self) -> list[str]:
        """List what `files` calls them, without a look at any of them."""
        return list(self.files())


class Task(Part):
    """Task: what is told apart in a data set."""

    kind: str = ""

    def relabel(self, dataset: Dataset) -> Dataset:
        """Give the data set with the classes of this task."""
        raise self.lacks("relabel")


class AllClasses(Task):
    """Tell all classes apart."""

    kind: Literal["all"] = "all"

    def relabel(self, dataset: Dataset) -> Dataset:
        """Leave the classes as they are."""
        return dataset


class Parity(Task):
    """Tell even classes from odd ones."""

    kind: Literal["parity"] = "parity"

    def relabel(self, dataset: Dataset) -> Dataset:
        """Make class 0 of the even classes, class 1 of the odd ones."""
        train = replace(dataset.train, labels=dataset.train.labels % 2)
        test = replace(dataset.test, labels=dataset.test.labels % 2)
        name = f"{dataset.name}, parity"
        return replace(dataset, name=name, train=train, test=test, names=("even", "odd"))


class Pair(Task):
    """Tell two classes apart; the samples of all others are left out."""

    kind: Literal["pair"] = "pair"
    classes: tuple[int, int] = Field(description="the two classes")

    def relabel(self, dataset: Dataset) -> Dataset:
        """Make class 0 of the first of the pair, class 1 of the second."""
        first, second = self.classes
        for chosen in self.classes:
            if not 0 <= chosen < dataset.class_count:
                raise ValueError(
                    f"{dataset.name} has classes 0 to {dataset.class_count - 1}, not {chosen}"
                )
        if first == second:
            raise ValueError(f"a pair needs two different classes, not {first} twice")

        kept = []
        for samples in (dataset.train, dataset.test):
            own = samples.take(np.flatnonzero(np.isin(samples.labels, self.classes)))
            kept.append(replace(own, labels=(own.labels == second).astype(np.int64)))
        names, writers = (dataset.names[first], dataset.names[second]), dataset.writers
        if writers is not None:
            writers = writers[np.isin(dataset.train.labels, self.classes)]
        name = f"{dataset.name}, {names[0]} or {names[1]}"
        return Dataset(name, kept[0], kept[1], names, dataset.shape, writers)
