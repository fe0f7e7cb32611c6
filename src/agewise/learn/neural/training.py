"""Local training of a PyTorch module: its numbers as one vector, losses, optimisers, its shape."""

import copy
import difflib
from collections.abc import Callable, Iterable

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.utils import vector_to_parameters

from agewise.checks import first_line, nearest
from agewise.data import Dataset
from agewise.learn.model import LocalSteps
from agewise.learn.pytorch import Torch
from agewise.learn.updates import Params

#: The mean loss of ``outputs[sample, class]`` for ``labels[sample]``.
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
#: Inputs and labels of some samples.
Batch = tuple[torch.Tensor, torch.Tensor]


class Replica:
    """A copy of a module to work with, whose numbers are views of ``flat``.

    The flat vector has the parameters that learn first, then frozen ones, then floating buffers
    such as BatchNorm's running means, each in the order of the module. ``gradient`` is that of the
    first ``trainable`` numbers, and so are ``weights``. Other buffers, such as counters, begin
    every time as they were in the module.
    """

    def __init__(self, prototype: torch.nn.Module, device: str = "cpu") -> None:
        self.module = copy.deepcopy(prototype).to(device)
        parameters, buffers = list(self.module.parameters()), list(self.module.buffers())
        self.learning = [each for each in parameters if each.requires_grad]
        frozen = [each for each in parameters if not each.requires_grad]
        floating = [each for each in buffers if each.is_floating_point()]
        self._counters = [each for each in buffers if not each.is_floating_point()]
        self._counts = [each.clone() for each in self._counters]
        kept = [*self.learning, *frozen, *floating]
        self.flat = torch.cat([each.detach().flatten() for each in kept])
        vector_to_parameters(self.flat, kept)
        self.trainable = sum(each.numel() for each in self.learning)
        self.weights = self.flat[: self.trainable]
        self.gradient = torch.zeros_like(self.weights)
        slopes = self.gradient.split([each.numel() for each in self.learning])
        for part, slope in zip(self.learning, slopes, strict=True):
            part.grad = slope.view_as(part)

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


# ------------------------------------------------------------------------ losses and local steps
def _squared_error(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Half the squared distance to 1 for the class and 0 for the others, mean over samples."""
    wanted = torch.nn.functional.one_hot(labels, outputs.shape[1]).to(outputs.dtype)
    return 0.5 * (outputs - wanted).square().sum(1).mean()


_LOSSES: dict[str, Loss] = {
    "cross-entropy": torch.nn.functional.cross_entropy,
    "multi-margin": torch.nn.functional.multi_margin_loss,
    "negative-log-likelihood": torch.nn.functional.nll_loss,
    "squared-error": _squared_error,
}


def find_loss(name: str) -> Loss:
    """The loss of this name."""
    if name not in _LOSSES:
        raise ValueError(f"learn.model.loss: unknown loss {name!r}; {nearest(name, _LOSSES)}")
    return _LOSSES[name]


class LocalOptimiser:
    """Local steps as all UEs do them in every round, with the scenario's penalty and objective.

    Without settings, SGD is one operation on the flat vector; other optimisers get the module's
    own parameters, and are made anew for every UE and round. ``ValueError`` if the optimiser cannot
    be made for a ``replica`` with its settings.
    """

    def __init__(self, steps: LocalSteps, model: Torch, replica: Replica) -> None:
        self.proximal_weight, self._penalty = steps.proximal_weight, steps.penalty
        penalised = replica.penalised() * np.float32(steps.penalty.xi)
        self._penalty_weights = torch.from_numpy(penalised).to(replica.flat.device)
        self._settings = model.optimiser_settings.values()
        self.optimiser: Callable[..., torch.optim.Optimizer] | None = None
        if model.optimiser == "SGD" and not self._settings:
            return
        self.optimiser = _find_optimiser(model.optimiser)
        try:
            self.optimiser(replica.learning, lr=0.01, **self._settings)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ValueError(
                f"learn.model.optimiser = {model.optimiser} with settings {self._settings}: "
                f"{first_line(error)}"
            ) from error

    def go(
        self,
        replica: Replica,
        batches: Iterable[Batch],
        loss: Loss,
        step_size: float,
        correction: Params | None,
    ) -> None:
        """One step for each batch; ``correction`` is added to every gradient."""
        weights, gradient = replica.weights, replica.gradient
        start = weights.clone() if self.proximal_weight else weights
        added = None
        if correction is not None:
            added = torch.from_numpy(correction[: replica.trainable]).to(weights.device)
        optimiser = None
        if self.optimiser is not None:
            optimiser = self.optimiser(replica.learning, lr=step_size, **self._settings)
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
        self,
        gradient: torch.Tensor,
        weights: torch.Tensor,
        start: torch.Tensor,
        added: torch.Tensor | None,
    ) -> None:
        """Add the gradients of the penalty and the proximal term, and the correction.

        All are ``[..., number]``, for one UE or many.
        """
        if self._penalty.xi > 0:
            slope = weights if self._penalty.kind == "l2" else weights.sign()
            gradient.addcmul_(slope, self._penalty_weights)
        if self.proximal_weight:
            gradient.add_(weights - start, alpha=self.proximal_weight)
        if added is not None:
            gradient.add_(added)


def _find_optimiser(name: str) -> Callable[..., torch.optim.Optimizer]:
    """The class of this name in ``torch.optim``; ``ValueError`` with the nearest otherwise."""
    if name == "LBFGS":
        raise ValueError("learn.model.optimiser = LBFGS evaluates a batch several times a step: "
                         "choose one that takes one gradient, such as SGD or Adam")  # fmt: skip
    base = torch.optim.Optimizer
    known: dict[str, Callable[..., torch.optim.Optimizer]] = {
        key: value
        for key, value in vars(torch.optim).items()
        if isinstance(value, type) and issubclass(value, base) and value is not base
    }
    if name not in known:
        lower = {key.lower(): key for key in known}
        near = difflib.get_close_matches(name.lower(), lower, n=2, cutoff=0.5)
        hint = " or ".join(lower[key] for key in near) or "SGD or Adam"
        raise ValueError(
            f"learn.model.optimiser: torch.optim has no {name!r}; did you mean {hint}?"
        )
    return known[name]


# ------------------------------------------------------------------- what a module must be
def image_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape in which modules get a sample: images have a channel before rows and columns."""
    return (1, *shape) if len(shape) == 2 else shape


def make_module(model: Torch, dataset: Dataset) -> torch.nn.Module:
    """The module of this model; ``ValueError`` unless it can learn this data set."""
    shape = image_shape(dataset.shape)
    make = model.maker(shape, dataset.class_count)
    try:
        module = make()
    except Exception as error:
        # The user's code runs here: whatever is wrong with it is said as one sentence.
        raise ValueError(f"learn.model: the module cannot be made: {first_line(error)}") from error
    if not isinstance(module, torch.nn.Module):
        raise ValueError(
            f"learn.model: a torch.nn.Module is needed, and {model.source or model.name} gives a "
            f"{type(module).__name__}"
        )
    samples = dataset.train.take(np.arange(min(2, len(dataset.train)))).values()
    try:
        with torch.no_grad():
            outputs = module.eval()(torch.from_numpy(samples).view(-1, *shape))
    except Exception as error:
        raise ValueError(
            f"learn.model: the module fails on samples of shape {shape}: {first_line(error)}"
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


def _require_parameters(module: torch.nn.Module) -> None:
    parameters = list(module.parameters())
    buffers = [each for each in module.buffers() if each.is_floating_point()]
    for each in (*parameters, *buffers):
        if each.dtype != torch.float32:
            kind = str(each.dtype).removeprefix("torch.")
            raise ValueError(
                f"learn.model: the module has numbers of type {kind}, and models are float32: "
                "call .float() on it, and keep integers as buffers"
            )
    if not any(each.requires_grad for each in parameters):
        raise ValueError("learn.model: no parameter of the module requires a gradient, so there "
                         "is nothing to learn")  # fmt: skip
