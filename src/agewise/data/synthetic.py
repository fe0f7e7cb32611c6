"""A small problem for quick tests."""

import numpy as np

from agewise.data.dataset import Dataset, Samples


def gaussian_mixture(
    classes: int, features: int, train: int, test: int, spread: float, rng: np.random.Generator
) -> Dataset:
    """One Gaussian a class, with means on the unit sphere and deviation ``spread``."""
    means = rng.standard_normal((classes, features))
    means /= np.linalg.norm(means, axis=1, keepdims=True)

    def draw(count: int) -> Samples:
        labels = rng.permutation(np.arange(count) % classes)
        noise = spread * rng.standard_normal((count, features))
        return Samples((means[labels] + noise).astype(np.float32), labels.astype(np.int64))

    return Dataset("synthetic", draw(train), draw(test), tuple(str(c) for c in range(classes)))
