"""Local training of a PyTorch module: its numbers as one vector, losses, optimisers, its shape."""

import copy
import difflib
import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agewise.checks import nearest
from agewise.data import Dataset
from agewise.dependencies import require
from agewise.learn.model import LocalSteps
from agewise.learn.updates import Params

torch: Any = require("torch", "torch")

#: Types of PyTorch, which may not be installed where types are checked.
Tensor = Any
Module = Any
Optimiser = Any

#: The mean loss of ``outputs[sample, class]`` for ``labels[sample]``.
Loss = Callable[[Tensor, Tensor], Tensor]


class Replica:
    """A copy of a module to work with, whose numbers are views of ``flat``.

    The flat vector has the parameters that learn first, then frozen ones, then floating buffers
    such as BatchNorm's running means, each in the order of the module. ``gradient`` is that of the
    first ``trainable`` numbers, and so are ``weights``. Other buffers, such as counters, begin
    every time as they were in the module.
    """

    def __init__(self, prototype: Module, device: str = "cpu") -> None:
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


def _size(tensor: Tensor) -> int:
    return int(tensor.numel())


def _views(flat: Tensor, parts: list[Tensor]) -> list[Tensor]:
    """Views of a flat vector in the shapes of these tensors, one behind the other."""
    ends = itertools.accumulate(map(_size, parts))
    pairs = zip(ends, parts, strict=True)
    return [flat[end - part.numel() : end].view(part.shape) for end, part in pairs]


# ------------------------------------------------------------------------ losses and local steps
def _squared_error(outputs: Tensor, labels: Tensor) -> Tensor:
    """Half the squared distance to 1 for the class and 0 for the others, mean over samples."""
    wanted = torch.nn.functional.one_hot(labels, outputs.shape[1]).to(outputs.dtype)
    return 0.5 * (outputs - wanted).square().sum(1).mean()


LOSSES: dict[str, Loss] = {
    "cross-entropy": torch.nn.functional.cross_entropy,
    "multi-margin": torch.nn.functional.multi_margin_loss,
    "negative-log-likelihood": torch.nn.functional.nll_loss,
    "squared-error": _squared_error,
}


def find_loss(loss: str | Loss) -> Loss:
    """The loss of this name, or the function itself."""
    if not isinstance(loss, str):
        return loss
    if loss not in LOSSES:
        raise ValueError(f"learn.model.loss: unknown loss {loss!r}; {nearest(loss, LOSSES)}")
    return LOSSES[loss]


@dataclass(frozen=True, eq=False)
class LocalOptimiser:
    """Local steps as all UEs do them in every round.

    Without settings, SGD is one operation on the flat vector; other optimisers get the module's
    own parameters, and are made anew for every UE and round.
    """

    optimiser: Callable[..., Optimiser] | None
    options: Mapping[str, object]
    shrinking: Tensor | None
    flattening: Tensor | None
    proximal_weight: float

    @classmethod
    def of(
        cls,
        steps: LocalSteps,
        penalised: NDArray[np.bool_],
        optimiser: str,
        options: Mapping[str, object],
        device: str,
    ) -> "LocalOptimiser":
        """With the scenario's penalty, on these of the numbers that learn, and local objective."""
        plain = optimiser == "SGD" and not options
        penalty, weights = steps.penalty, None
        if penalty.xi > 0:
            weights = torch.from_numpy(penalised * np.float32(penalty.xi)).to(device)
        return cls(
            None if plain else _find_optimiser(optimiser),
            options,
            weights if penalty.kind == "l2" else None,
            weights if penalty.kind == "l1" else None,
            steps.proximal_weight,
        )

    def try_out(self, prototype: Module) -> None:
        """Raise ``ValueError`` if the optimiser cannot be made with its settings."""
        if self.optimiser is None:
            return
        try:
            self._make(Replica(prototype), 0.01)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ValueError(
                f"learn.model.optimiser = {self.optimiser.__name__} with settings {self.options}: "
                f"{_first_line(error)}"
            ) from error

    def go(
        self,
        replica: Replica,
        batches: Iterable[tuple[Tensor, Tensor]],
        loss: Loss,
        step_size: float,
        correction: Params | None,
    ) -> None:
        """One step for each batch; ``correction`` is added to every gradient."""
        weights, gradient = replica.weights, replica.gradient
        start = weights.detach().clone() if self.proximal_weight else None
        added = None
        if correction is not None:
            added = torch.from_numpy(correction[: replica.trainable]).to(weights.device)
        optimiser = None if self.optimiser is None else self._make(replica, step_size)
        for inputs, labels in batches:
            gradient.zero_()
            loss(replica.module(inputs), labels).backward()
            with torch.no_grad():
                self.add_terms(gradient, weights, start, added)
                if optimiser is None:
                    weights.sub_(gradient, alpha=step_size)
                else:
                    optimiser.step()

    def add_terms(
        self, gradient: Tensor, weights: Tensor, start: Tensor | None, added: Tensor | None
    ) -> None:
        """Add the gradients of the penalty and the proximal term, and the correction.

        All are ``[..., number]``, for one UE or many.
        """
        if self.shrinking is not None:
            gradient.addcmul_(weights, self.shrinking)
        if self.flattening is not None:
            gradient.addcmul_(weights.sign(), self.flattening)
        if start is not None:
            gradient.add_(weights - start, alpha=self.proximal_weight)
        if added is not None:
            gradient.add_(added)

    def _make(self, replica: Replica, step_size: float) -> Optimiser:
        assert self.optimiser is not None  # noqa: S101 - asked for with one only
        return self.optimiser(replica.learning, lr=step_size, **self.options)


def _find_optimiser(name: str) -> Callable[..., Optimiser]:
    """The class of this name in ``torch.optim``; ``ValueError`` with the nearest otherwise."""
    base = torch.optim.Optimizer
    known = {
        key: value
        for key, value in vars(torch.optim).items()
        if isinstance(value, type) and issubclass(value, base) and value is not base
    }
    if name == "LBFGS":
        raise ValueError("learn.model.optimiser = LBFGS evaluates a batch several times a step: "
                         "choose one that takes one gradient, such as SGD or Adam")  # fmt: skip
    if name not in known:
        lower = {key.lower(): key for key in known}
        near = difflib.get_close_matches(name.lower(), lower, n=2, cutoff=0.5)
        hint = " or ".join(lower[key] for key in near) or "SGD or Adam"
        raise ValueError(
            f"learn.model.optimiser: torch.optim has no {name!r}; did you mean {hint}?"
        )
    found: Callable[..., Optimiser] = known[name]
    return found


# ------------------------------------------------------------------- what a module must be
def image_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape in which modules get a sample: images have a channel before rows and columns."""
    return (1, *shape) if len(shape) == 2 else shape


def require_fit(make_model: Callable[[], object], dataset: Dataset) -> Module:
    """The module that ``make_model`` makes; ``ValueError`` unless it can learn this data set."""
    try:
        module = make_model()
    except Exception as error:
        # The user's code runs here: whatever is wrong with it is said as one sentence.
        raise ValueError(f"learn.model: the module cannot be made: {_first_line(error)}") from error
    if not isinstance(module, torch.nn.Module):
        raise ValueError(
            f"learn.model: a torch.nn.Module is needed, and {_name(make_model)} gives a "
            f"{type(module).__name__}"
        )
    shape = image_shape(dataset.shape)
    samples = dataset.train.take(np.arange(min(2, len(dataset.train)))).values()
    try:
        with torch.no_grad():
            outputs = module.eval()(torch.from_numpy(samples).view(-1, *shape))
    except Exception as error:
        raise ValueError(
            f"learn.model: the module fails on samples of shape {shape}: {_first_line(error)}"
        ) from error
    _require_parameters(module)
    expected = (len(samples), dataset.class_count)
    found = tuple(outputs.shape) if isinstance(outputs, torch.Tensor) else type(outputs).__name__
    if found != expected:
        raise ValueError(
            f"learn.model: {len(samples)} samples need outputs of shape {expected}, one for each "
            f"of {dataset.class_count} classes, and the module gives {found}"
        )
    return module


def _require_parameters(module: Module) -> None:
    parameters = list(module.parameters())
    if not parameters:
        raise ValueError("learn.model: the module has no parameters, so there is nothing to learn")
    kinds = sorted({str(each.dtype).removeprefix("torch.") for each in parameters})
    if not any(each.is_floating_point() for each in parameters):
        raise ValueError(
            f"learn.model: the parameters of the module are {' and '.join(kinds)}, and learning "
            "needs float32"
        )
    numbers = [*parameters, *(each for each in module.buffers() if each.is_floating_point())]
    other = {str(each.dtype) for each in numbers} - {"torch.float32"}
    if other:
        raise ValueError(
            f"learn.model: the module has numbers of type {min(other).removeprefix('torch.')}, and "
            "models are float32: call .float() on it"
        )
    if not any(each.requires_grad for each in parameters):
        raise ValueError(
            "learn.model: no parameter of the module requires a gradient, so nothing is learned"
        )


def _name(make_model: Callable[[], object]) -> str:
    inner = getattr(make_model, "func", make_model)
    return str(getattr(inner, "__name__", inner))


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
