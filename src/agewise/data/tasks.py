"""What is to be told apart: all classes, even from odd, or one chosen pair."""

import numpy as np

from agewise.data.dataset import Dataset, Samples


def parity(dataset: Dataset) -> Dataset:
    """Even classes against odd ones: class 0 is even, class 1 odd."""

    def relabel(samples: Samples) -> Samples:
        return Samples(samples.features, samples.labels % 2, samples.unit)

    return Dataset(
        f"{dataset.name}, parity", relabel(dataset.train), relabel(dataset.test), ("even", "odd")
    )


def pair(dataset: Dataset, first: int, second: int) -> Dataset:
    """Only the samples of two classes: class 0 is ``first``, class 1 ``second``."""
    for chosen in (first, second):
        if not 0 <= chosen < dataset.class_count:
            raise ValueError(
                f"{dataset.name} has classes 0 to {dataset.class_count - 1}, not {chosen}"
            )
    if first == second:
        raise ValueError(f"a pair needs two different classes, not {first} twice")

    def keep(samples: Samples) -> Samples:
        kept = samples.take(np.flatnonzero(np.isin(samples.labels, (first, second))))
        return Samples(kept.features, (kept.labels == second).astype(np.int64), kept.unit)

    names = (dataset.names[first], dataset.names[second])
    return Dataset(
        f"{dataset.name}, {names[0]} or {names[1]}", keep(dataset.train), keep(dataset.test), names
    )
