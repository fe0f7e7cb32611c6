"""Data sets that need no file of the user's: MNIST inside the package, and a mixture to draw."""

import hashlib
import io
from importlib.resources import files

import numpy as np

from agewise.data.dataset import Dataset, Samples, one_row_each
from agewise.random import normal

# MNIST's authors and licence are in NOTICE.
_SHA256 = "04264ff3782eb986c503d57b901e2b943c1a26ff3bd26d26606e38e7368df925"


def mnist() -> Dataset:
    """The 60,000 training and 10,000 test images of handwritten digits, 28 by 28 pixels."""
    packed = files("agewise.data").joinpath("mnist.npz").read_bytes()
    if hashlib.sha256(packed).hexdigest() != _SHA256:
        raise ValueError("mnist.npz is damaged (its checksum is wrong): reinstall agewise")
    with np.load(io.BytesIO(packed), allow_pickle=False) as archive:
        train, test = (
            Samples(
                one_row_each(archive[f"{part}_images"]),
                archive[f"{part}_labels"].astype(np.int64),
                unit=1.0 / 255.0,
            )
            for part in ("train", "test")
        )
    return Dataset("mnist", train, test, tuple("0123456789"), (28, 28))


def gaussian_mixture(
    classes: int, features: int, train: int, test: int, spread: float, rng: np.random.Generator
) -> Dataset:
    """One Gaussian a class, with means on the unit sphere and deviation ``spread``."""
    means = normal(rng, (classes, features))
    means /= np.linalg.norm(means, axis=1, keepdims=True)

    def draw(count: int) -> Samples:
        labels = rng.permutation(np.arange(count) % classes)
        noise = spread * normal(rng, (count, features))
        return Samples((means[labels] + noise).astype(np.float32), labels.astype(np.int64))

    return Dataset("synthetic", draw(train), draw(test), tuple(str(c) for c in range(classes)))
