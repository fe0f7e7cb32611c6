"""PyTorch modules of the package: small networks that papers on federated learning use.

Each is made for samples of a shape ``(channels, rows, columns)`` and a number of classes, with
PyTorch's own initial weights. The order of ReLU and max-pooling does not matter to the result, for
ReLU never falls; pooling first leaves it less to do.
"""

import itertools
import math
from typing import Final

from torch import nn


def _lenet5(shape: tuple[int, ...], classes: int) -> nn.Module:
    """LeNet-5 as it is used today (LeCun et al. 1998, with ReLU and max-pooling).

    Two convolutions of 5 by 5 with 6 and 16 channels, and layers of 120 and 84 units: 61,706
    numbers for images of 28 by 28 and ten classes.
    """
    channels, rows, columns = _image(shape, "lenet5", 12)
    flat = 16 * _after(rows) * _after(columns)
    return nn.Sequential(
        nn.Conv2d(channels, 6, 5, padding=2), nn.MaxPool2d(2), nn.ReLU(),
        nn.Conv2d(6, 16, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(),
        nn.Linear(flat, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, classes),
    )  # fmt: skip


def _mcmahan_cnn(shape: tuple[int, ...], classes: int) -> nn.Module:
    """The CNN of McMahan et al. (2017): 5 by 5 with 32 and 64 channels, and 512 units.

    1,663,370 numbers for images of 28 by 28 and ten classes.
    """
    channels, rows, columns = _image(shape, "mcmahan-cnn", 4)
    flat = 64 * (rows // 4) * (columns // 4)
    return nn.Sequential(
        nn.Conv2d(channels, 32, 5, padding=2), nn.MaxPool2d(2), nn.ReLU(),
        nn.Conv2d(32, 64, 5, padding=2), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(),
        nn.Linear(flat, 512), nn.ReLU(), nn.Linear(512, classes),
    )  # fmt: skip


def _mlp(shape: tuple[int, ...], classes: int, width: int = 200, layers: int = 2) -> nn.Module:
    """A multilayer perceptron with ReLU, two hidden layers of 200 units unless told otherwise."""
    if min(width, layers) < 1:
        raise ValueError(f"mlp: width = {width} and layers = {layers} must be at least 1")
    sizes = [math.prod(shape), *[width] * layers]
    parts = [nn.Flatten()]
    for before, after in itertools.pairwise(sizes):
        parts += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*parts, nn.Linear(width, classes))


BUILT_IN: Final = {"lenet5": _lenet5, "mcmahan-cnn": _mcmahan_cnn, "mlp": _mlp}


def _image(shape: tuple[int, ...], name: str, least: int) -> tuple[int, int, int]:
    """The channels, rows and columns of an image that is large enough."""
    if len(shape) != 3 or min(shape[1:]) < least:
        raise ValueError(
            f"{name} learns from images of at least {least} by {least} pixels, not from samples "
            f"of shape {shape}"
        )
    channels, rows, columns = shape
    return channels, rows, columns


def _after(pixels: int) -> int:
    """Pixels of a side after LeNet-5's two convolutions, each followed by pooling."""
    return (pixels // 2 - 4) // 2
