"""Any PyTorch module as a learner.

Every UE trains on a copy of the module with one PyTorch thread; UEs run side by side in Python
threads, which PyTorch's operations do not keep waiting. On the CPU a run gives the same bytes each
time on one kind of processor with one version of PyTorch, whatever the number of threads; on
another kind, PyTorch may choose other kernels, whose last bits differ. On a GPU, where UEs are
trained together (`Batched`), two runs agree to the last bits only as far as
PyTorch's kernels for that GPU do.
"""

import contextlib
import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from agewise.core.samples import draw_rows, seed_of
from agewise.data import Dataset, Partition, Samples
from agewise.learn.model import Learner, LocalRound, LocalSteps, UeSamples
from agewise.learn.neural.randomness import Watched, seeded
from agewise.learn.neural.training import (
    Batch,
    LocalOptimiser,
    Loss,
    Replica,
    find_loss,
    image_shape,
    make_module,
)
from agewise.learn.pytorch import Torch
from agewise.learn.updates import Params
from agewise.random import Streams
from agewise.records import Evaluation

#: Samples whose losses are added up together in evaluation, whichever thread does it.
_PART = 250


class Source(NamedTuple):
    """Samples as tensors: ``inputs[sample, feature]`` as they are stored, and their labels."""

    inputs: torch.Tensor
    labels: torch.Tensor
    unit: float
    shape: tuple[int, ...]

    @classmethod
    def of(cls, samples: Samples, shape: tuple[int, ...], device: str) -> "Source":
        """The samples in the shape that modules get, channels first."""
        features = torch.from_numpy(np.ascontiguousarray(samples.features)).to(device)
        labels = torch.from_numpy(samples.labels).to(device)
        return cls(features, labels, samples.unit, shape)

    def batch(self, chosen: torch.Tensor) -> Batch:
        """``float32[sample, *shape]`` and labels of the chosen samples."""
        taken = self.inputs.index_select(0, chosen).to(torch.float32)
        if self.unit != 1.0:
            taken.mul_(self.unit)
        return taken.view(-1, *self.shape), self.labels.index_select(0, chosen)


def length_of(model: Torch, dataset: Dataset) -> int:
    """Count the numbers of parameters and floating buffers."""
    return Replica(make_module(model, dataset)).numbers().size


class TorchLearner(Learner):
    """The module of ``model``, trained on the samples of each UE.

    A model is the flat vector of its parameters and floating buffers (`Replica`). ``loss`` may take
    the place of the model's: a function of outputs and labels that gives the mean over the samples.
    The optimiser starts afresh in every round.
    """

    def __init__(
        self,
        model: Torch,
        dataset: Dataset,
        partition: Partition,
        steps: LocalSteps,
        loss: Loss | None = None,
    ) -> None:
        super().__init__(model, UeSamples(dataset, partition), steps)
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.loss = loss or find_loss(model.loss)
        shape = image_shape(dataset.shape)
        self._order = partition.order
        self._train = Source.of(dataset.train, shape, self.device)
        self._test = Source.of(dataset.test, shape, self.device)
        on_cpu = self.device == "cpu"  # threads would only wait for one another elsewhere
        self._watched_training, self._watched_evaluation = Watched(not on_cpu), Watched(not on_cpu)
        self._torch, self._prototype = model, make_module(model, dataset)
        self._idle = [Replica(self._prototype, self.device)]
        self._penalised = self._idle[0].penalised()
        self._descent = LocalOptimiser(steps, model, self._idle[0])
        self._batched: Batched | None = None
        if not on_cpu and can_batch(self._prototype, self._descent):
            self._batched = Batched(self._prototype, self.device, self.loss)

    def init(self, streams: Streams) -> Params:
        """The module's own initial numbers, drawn by PyTorch from a seed of the run."""
        with seeded(int(streams.model().integers(2**63))):
            return Replica(make_module(self._torch, self.samples.dataset)).numbers()

    def train_from(self, start: LocalRound) -> Params:
        """Local learning of Algorithm 3 with the scenario's optimiser."""
        ues, corrections = start.ues, start.corrections
        if self._batched is not None and ues.size:
            try:
                return self._train_together(self._batched, start)
            except RuntimeError:  # random numbers, or an operation that vmap does not know
                self._batched = None
        trained = np.empty((ues.size, start.length), np.float32)

        def work(part: slice) -> None:
            with self._replica() as replica:
                replica.module.train()
                for i in range(part.start, part.stop):
                    replica.load(start.starts[start.version[i]])
                    correction = None if corrections is None else corrections[i]
                    batches = self._batches(int(ues[i]), int(start.t[i]), start.key)
                    step_size = float(start.step_size[i])
                    self._descent.go(replica, batches, self.loss, step_size, correction)
                    trained[i] = replica.numbers()

        def seed(i: int) -> int:
            return int(seed_of(start.key, start.t[i], ues[i]))

        with _one_thread():
            self._watched_training.run(work, ues.size, seed)
        return trained

    def losses(self, params: Params, ues: NDArray[np.int64]) -> NDArray[np.float64]:
        """The mean loss (without the penalty) of this model on the samples of each UE."""
        pieces = [_pieces(self._order[first:end]) for first, end in self.samples.parts_of(ues)]
        losses, _ = self._measure(self._train, params, [piece for own in pieces for piece in own])
        first = np.cumsum([0, *(len(own) for own in pieces)])[:-1]
        return np.asarray(np.add.reduceat(losses, first) / self.sizes[ues])

    def evaluate(self, params: Params) -> Evaluation:
        """Accuracy and mean loss (without the penalty) on the test samples."""
        pieces = _pieces(np.arange(len(self._test.labels)))
        losses, right = self._measure(self._test, params, pieces)
        return Evaluation.of(right, self.samples.test_counts, float(losses.sum()))

    def objective(self, params: Params) -> float:
        """P(w): the mean loss over all training samples plus xi times the penalty."""
        losses, _ = self._measure(self._train, params, _pieces(self._order))
        learned = params[: self._penalised.size]
        weights = learned[self._penalised].astype(np.float64)
        return float(losses.sum()) / self._order.size + self.steps.penalty.value(weights)

    def _train_together(self, batched: "Batched", start: LocalRound) -> Params:
        """`train_from` for all UEs at once."""
        whose = zip(start.ues.tolist(), start.t.tolist(), strict=True)
        each = [self._batches(ue, t, start.key) for ue, t in whose]
        steps = (
            (torch.stack(inputs), torch.stack(labels))
            for inputs, labels in (zip(*step, strict=True) for step in zip(*each, strict=True))
        )
        flat = torch.from_numpy(start.starts[start.version]).to(self.device)
        step_sizes = torch.from_numpy(start.step_size.astype(np.float32)).to(self.device)
        added = None
        if start.corrections is not None:
            added = torch.from_numpy(start.corrections[:, : batched.trainable]).to(self.device)
        trained = batched.train(flat, steps, self._descent, step_sizes, added)
        models: Params = trained.cpu().numpy()
        return models

    def _batches(self, ue: int, t: int, key: np.uint64) -> Iterator[Batch]:
        """The batch of each local step of a UE."""
        steps, batch = self.steps.local_steps, self.steps.batch_size
        drawn = draw_rows(key, t, ue, self.samples.offsets, steps * batch)
        chosen = torch.from_numpy(self._order[drawn]).to(self.device).view(steps, batch)
        for step in range(steps):
            yield self._train.batch(chosen[step])

    def _measure(
        self, source: Source, params: Params, pieces: Sequence[NDArray[np.int64]]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """``float64[piece]``: the sum of losses of each; ``int64[class]``: rightly classified."""
        params = np.ascontiguousarray(params, np.float32)
        losses = np.empty(len(pieces))
        right = np.zeros((len(pieces), self.samples.test_counts.size), np.int64)

        def work(part: slice) -> None:
            with self._replica() as replica, torch.inference_mode():
                replica.load(params)
                replica.module.eval()
                for i in range(part.start, part.stop):
                    chosen = torch.from_numpy(pieces[i]).to(self.device)
                    inputs, labels = source.batch(chosen)
                    outputs = replica.module(inputs)
                    losses[i] = float(self.loss(outputs, labels)) * len(labels)
                    found = labels[outputs.argmax(1) == labels]
                    right[i] = torch.bincount(found, minlength=right.shape[1]).cpu().numpy()

        with _one_thread():
            self._watched_evaluation.run(work, len(pieces), lambda i: i)
        return losses, right.sum(axis=0)

    @contextlib.contextmanager
    def _replica(self) -> Iterator[Replica]:
        """A copy of the module that nobody else uses now."""
        try:
            replica = self._idle.pop()
        except IndexError:
            replica = Replica(self._prototype, self.device)
        torch.set_num_threads(1)  # in the thread that works
        try:
            yield replica
        finally:
            self._idle.append(replica)


def _pieces(rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The rows in pieces of equal size, in order."""
    return [rows[start : start + _PART] for start in range(0, rows.size, _PART)]


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """PyTorch's number of threads is set to one, and put back at the end."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


# ------------------------------------------------------------------------------ many UEs at once
def can_batch(prototype: torch.nn.Module, descent: LocalOptimiser) -> bool:
    """Tell whether UEs can be trained together."""
    return descent.optimiser is None and not list(prototype.buffers())


class Batched:
    """A module that is called with the parameters of many UEs, the rows of a matrix.

    By ``torch.func.vmap``, which is how a GPU is kept busy by small modules. This is for plain SGD
    on modules without buffers that draw no random numbers; others train one UE after another. The
    company of other UEs may change the last bits of a UE's model here, because kernels for batches
    of matrices may add in another order.
    """

    def __init__(self, prototype: torch.nn.Module, device: str, loss: Loss) -> None:
        self._module = copy.deepcopy(prototype).to(device).train()
        # As in a replica: those that learn first.
        self._named = sorted(
            self._module.named_parameters(), key=lambda pair: not pair[1].requires_grad
        )
        self._sizes = [each.numel() for _, each in self._named]
        self.trainable = sum(each.numel() for _, each in self._named if each.requires_grad)

        def cost(
            learning: torch.Tensor, rest: torch.Tensor, inputs: torch.Tensor, labels: torch.Tensor
        ) -> torch.Tensor:
            parts = torch.cat([learning, rest]).split(self._sizes)
            values = {
                name: part.view(own.shape)
                for (name, own), part in zip(self._named, parts, strict=True)
            }
            return loss(torch.func.functional_call(self._module, values, (inputs,)), labels)

        # Random numbers under vmap would not be a UE's own: they are an error.
        self._slopes = torch.func.vmap(torch.func.grad(cost), randomness="error")

    def train(
        self,
        flat: torch.Tensor,
        batches: Iterable[Batch],
        descent: LocalOptimiser,
        step_sizes: torch.Tensor,
        added: torch.Tensor | None,
    ) -> torch.Tensor:
        """``[ue, length]`` from ``flat[ue, length]`` after a step for each batch.

        ``batches`` gives ``inputs[ue, sample, ...]`` and ``labels[ue, sample]``; ``added`` are
        corrections of the gradients, and ``step_sizes[ue]`` the steps. ``RuntimeError`` if the
        module draws random numbers.
        """
        learning, rest = flat[:, : self.trainable].clone(), flat[:, self.trainable :]
        start = learning.clone() if descent.proximal_weight else learning
        for inputs, labels in batches:
            gradient = self._slopes(learning, rest, inputs, labels)
            descent.add_terms(gradient, learning, start, added)
            learning.sub_(step_sizes[:, None] * gradient)
        return torch.cat([learning, rest], dim=1)
