"""PyTorch modules as flat vectors: parameters and floating buffers are views of one vector."""

import copy
import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agewise.core import neural as kernels
from agewise.dependencies import require
from agewise.learn.base import Params

torch: Any = require("torch", "torch")


class Replica:
    """A copy of a module to work with, whose numbers are views of ``flat``.

    The flat vector has the parameters that learn first, then frozen ones, then floating buffers
    such as BatchNorm's running means, each in the order of the module. ``gradient`` is that of the
    first ``trainable`` numbers, and so are ``weights``. Other buffers, such as counters, begin
    every time as they were in the module.
    """

    def __init__(self, prototype: Any, device: str = "cpu") -> None:
        self.module = copy.deepcopy(prototype).to(device)
        parameters = list(self.module.parameters())
        self.learning = [each for each in parameters if each.requires_grad]
        frozen = [each for each in parameters if not each.requires_grad]
        buffers = list(self.module.buffers())
        floating = [each for each in buffers if each.is_floating_point()]
        self._counters = [each for each in buffers if not each.is_floating_point()]
        self._counts = [each.clone() for each in self._counters]
        kept = [*self.learning, *frozen, *floating]
        self.flat = torch.empty(sum(map(_size, kept)), dtype=torch.float32, device=device)
        self.trainable = sum(map(_size, self.learning))
        self.weights = self.flat[: self.trainable]
        self.gradient = torch.zeros_like(self.weights)
        for part, view in zip(kept, _views(self.flat, kept), strict=True):
            view.copy_(part.data)
            part.data = view
        for part, view in zip(self.learning, _views(self.gradient, self.learning), strict=True):
            part.grad = view
        if device == "cpu":
            pool_faster(self.module)

    def load(self, params: Params) -> None:
        """Take these numbers, and counters as in the beginning."""
        self.flat.copy_(torch.from_numpy(params))
        for buffer, begun in zip(self._counters, self._counts, strict=True):
            buffer.copy_(begun)

    def numbers(self) -> Params:
        """The flat vector as it is now, ``float32[length]``."""
        numbers: Params = self.flat.detach().cpu().numpy().copy()
        return numbers

    def penalised(self) -> NDArray[np.bool_]:
        """``bool[trainable]``: matrices and kernels of layers; not biases and scales of norms."""
        return np.concatenate([np.full(each.numel(), each.dim() > 1) for each in self.learning])


def _size(tensor: Any) -> int:
    return int(tensor.numel())


def _views(flat: Any, parts: list[Any]) -> list[Any]:
    """Views of a flat vector in the shapes of these tensors, one behind the other."""
    ends = itertools.accumulate(map(_size, parts))
    pairs = zip(ends, parts, strict=True)
    return [flat[end - part.numel() : end].view(part.shape) for end, part in pairs]


# ----------------------------------------------------------------------------- faster pooling
class _PoolByTwo(torch.autograd.Function):  # type: ignore[misc]
    """Max-pooling of images by two, to the bit as PyTorch's own on one thread, but faster."""

    @staticmethod
    def forward(context: Any, images: Any) -> Any:
        """``[sample, channel, row, column]`` to half as many rows and columns."""
        shape = images.shape
        rows, columns = shape[2] // 2, shape[3] // 2
        planes = images.detach().view(-1, shape[2], shape[3]).numpy()
        pooled = torch.empty(shape[0], shape[1], rows, columns)
        chosen = np.empty((len(planes), rows, columns), np.int8)
        kernels.max_pool(planes, pooled.view(-1, rows, columns).numpy(), chosen)
        context.chosen, context.shape = chosen, shape
        return pooled

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        """The gradient, where the largest were."""
        shape, chosen = context.shape, context.chosen
        spread = torch.empty(shape)
        kernels.spread_gradient(
            gradient.contiguous().view(chosen.shape).numpy(),
            chosen,
            spread.view(-1, shape[2], shape[3]).numpy(),
        )
        return spread


def pool_faster(module: Any) -> None:
    """Let the layers of type MaxPool2d that pool by two use the kernels above, where they can."""
    for layer in module.modules():
        if type(layer) is torch.nn.MaxPool2d and _pools_by_two(layer):
            layer.forward = _Pool(layer)


class _Pool:
    """The forward pass of a layer that pools by two."""

    def __init__(self, layer: Any) -> None:
        self._usual = type(layer).forward.__get__(layer)

    def __call__(self, images: Any) -> Any:
        """By the kernels for images on the CPU ordered by channel, otherwise as PyTorch does."""
        plain = images.dim() == 4 and images.is_contiguous() and images.device.type == "cpu"
        if plain and images.dtype == torch.float32 and type(images) is torch.Tensor:
            return _PoolByTwo.apply(images)
        return self._usual(images)


def _pools_by_two(layer: Any) -> bool:
    sizes = (layer.kernel_size, layer.stride, layer.padding, layer.dilation)
    wanted = ((2, (2, 2)), (2, (2, 2)), (0, (0, 0)), (1, (1, 1)))
    fits = all(size in known for size, known in zip(sizes, wanted, strict=True))
    return fits and not layer.return_indices and not layer.ceil_mode
