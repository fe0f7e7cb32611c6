"""Models, and their local learning on the samples of every UE (Eq. 1)."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agewise.core.linear import Cohort, Descent
from agewise.core.samples import Rows, draw_rows, rows_of
from agewise.data import Dataset, Partition, Samples
from agewise.learn.threads import in_chunks
from agewise.learn.updates import Params
from agewise.part import LARGE, Part
from agewise.random import Streams
from agewise.records import Evaluation

#: Samples whose losses are added up together in evaluation, whichever thread does it.
_PART: Final = 128


class Penalty(Part):
    """What large weights cost: the term xi r(w) of the objective."""

    kind: str = ""
    #: As the kernels know it.
    code: ClassVar[int] = 0

    @property
    def xi(self) -> float:
        """The weight of the penalty."""
        return 0.0

    def value(self, weights: NDArray[np.float64]) -> float:
        """Work out xi r(w)."""
        return 0.0

    def gradient(self, weights: NDArray[np.float32]) -> NDArray[np.float32]:
        """Work out the gradient of xi r(w)."""
        return np.zeros_like(weights)


class NoPenalty(Penalty):
    """The objective has no penalty."""

    kind: Literal["none"] = "none"


class _WeightedPenalty(Penalty):
    weight: float = Field(ge=0, le=LARGE, description="xi, the weight of the penalty")

    @property
    def xi(self) -> float:
        """The weight of the penalty."""
        return self.weight


class L2(_WeightedPenalty):
    """Half the squared length of the weights, without the bias."""

    kind: Literal["l2"] = "l2"
    code: ClassVar[int] = 1

    def value(self, weights: NDArray[np.float64]) -> float:
        """Work out half the squared length, times xi."""
        return self.weight * (0.5 * float((weights * weights).sum()))

    def gradient(self, weights: NDArray[np.float32]) -> NDArray[np.float32]:
        """Work out xi w."""
        return np.float32(self.weight) * weights


class L1(_WeightedPenalty):
    """The sum of the magnitudes of the weights, without the bias."""

    kind: Literal["l1"] = "l1"
    code: ClassVar[int] = 2

    def value(self, weights: NDArray[np.float64]) -> float:
        """Work out the sum of magnitudes, times xi."""
        return self.weight * float(np.abs(weights).sum())

    def gradient(self, weights: NDArray[np.float32]) -> NDArray[np.float32]:
        """Work out xi sign(w)."""
        return np.float32(self.weight) * np.sign(weights)


@dataclass(frozen=True)
class LocalSteps:
    """Local learning as all UEs do it in every round: tau steps on batches of samples."""

    local_steps: int
    batch_size: int
    step_size: float
    step_decay: float
    penalty: Penalty
    proximal_weight: float = 0.0

    def step_of(self, t: int) -> float:
        """The step size of round ``t``."""
        return self.step_size / (1.0 + self.step_decay * t)

    def steps_of(self, t: NDArray[np.int64]) -> NDArray[np.float64]:
        """The step sizes of these rounds."""
        return np.asarray(self.step_size / (1.0 + self.step_decay * t))

    def relative_step_of(self, t: int) -> float:
        """The step size of round ``t`` over that of round 0."""
        return 1.0 / (1.0 + self.step_decay * t)

    @functools.cached_property
    def descent(self) -> Descent:
        """Local SGD as the kernels take it."""
        penalty = self.penalty
        return Descent(
            penalty.code, penalty.xi, self.local_steps, self.batch_size, self.proximal_weight
        )


class LocalRound(NamedTuple):
    """Start of the UEs' local learning: their models, their chance, their corrections.

    ``ues[i]`` starts from the model ``starts[version[i]]``, which is that of round ``t[i]``, and
    takes steps of ``step_size[i]``. What it does depends on these, the UE, the ``key`` and its own
    row of ``corrections[len(ues), length]`` alone.
    """

    starts: Params
    version: NDArray[np.int64]
    ues: NDArray[np.int64]
    t: NDArray[np.int64]
    key: np.uint64
    step_size: NDArray[np.float64]
    corrections: Params | None = None

    @property
    def length(self) -> int:
        """Count the numbers of a model."""
        return int(self.starts.shape[1])

    def cohort(self, chunk: slice) -> Cohort:
        """Select a chunk of the UEs, with their corrections, as the kernels take it."""
        corrections = np.empty((0, 0), np.float32)
        if self.corrections is not None:
            corrections = np.ascontiguousarray(self.corrections[chunk], np.float32)
        return Cohort(
            self.ues[chunk], self.version[chunk], self.t[chunk], self.step_size[chunk], corrections
        )


class OrderedSamples:
    """Samples in an order of their own: those of one UE next to each other."""

    def __init__(self, samples: Samples, order: NDArray[np.int64]) -> None:
        self._samples, self.order = samples, order

    def __len__(self) -> int:
        return int(self.order.size)

    def batch(self, chosen: NDArray[np.int64] | slice) -> tuple[Params, NDArray[np.int64]]:
        """``x[sample, feature]`` and ``y[sample]`` of some of them."""
        taken = self._samples.take(self.order[chosen])
        return taken.values(), taken.labels

    @property
    def feature_count(self) -> int:
        """d, the number of features."""
        return self._samples.feature_count

    @functools.cached_property
    def rows(self) -> Rows:
        """The samples as the kernels read them."""
        samples = self._samples
        return rows_of(samples.features, samples.labels, samples.unit, self.order)

    @functools.cached_property
    def density(self) -> float:
        """Features of a sample that are not 0, in the mean."""
        return float(self.rows.starts[-1]) / len(self)

    @functools.cached_property
    def parts(self) -> NDArray[np.int64]:
        """``int64[part, (first sample, one behind the last)]`` of parts of equal size."""
        cuts = np.append(np.arange(0, len(self), _PART), len(self))
        return np.stack((cuts[:-1], cuts[1:]), axis=1)


class UeSamples:
    """The training samples on their UEs, and the test samples.

    UE k has the training samples ``offsets[k]`` to ``offsets[k + 1]``.
    """

    def __init__(self, dataset: Dataset, partition: Partition) -> None:
        if not partition.sizes.all():
            empty = int((partition.sizes == 0).argmax())
            raise ValueError(f"UE {empty} has no samples: every UE needs at least one")
        self.dataset = dataset
        self.offsets, self.sizes = partition.offsets, partition.sizes
        self.train = OrderedSamples(dataset.train, partition.order)
        self.test = OrderedSamples(dataset.test, np.arange(len(dataset.test)))
        self.test_counts = np.bincount(dataset.test.labels, minlength=dataset.class_count)

    def parts_of(self, ues: NDArray[np.int64]) -> NDArray[np.int64]:
        """``int64[ue, (first sample, one behind the last)]`` of these UEs."""
        return np.stack((self.offsets[ues], self.offsets[ues + 1]), axis=1)


class Model(Part):
    """A model with its loss and local learning: one flat float32 vector of ``length`` numbers.

    A model of your own has the methods ``length``, ``init``, ``loss_and_gradient`` and ``predict``,
    in NumPy: it is trained by local SGD as the others are, with the same samples drawn. Faster ones
    override ``train`` and ``measure``.
    """

    kind: str = ""
    #: Whether local steps go along a gradient that can be corrected.
    has_gradients: ClassVar[bool] = True
    #: Whether it is never large beside the samples, so that its memory need not be looked up.
    is_small: ClassVar[bool] = False

    def length(self, dataset: Dataset) -> int:
        """Count the numbers of a model of this data set."""
        raise self.lacks("length")

    def init(self, samples: UeSamples, rng: np.random.Generator) -> Params:
        """Draw the initial model w^0."""
        raise self.lacks("init")

    def loss_and_gradient(
        self, params: Params, x: Params, y: NDArray[np.int64]
    ) -> tuple[float, Params]:
        """Work out the mean loss of ``x[sample, feature]`` with labels ``y``, and its gradient."""
        raise self.lacks("loss_and_gradient")

    def predict(self, params: Params, x: Params) -> NDArray[np.int64]:
        """Classify ``x[sample, feature]``: ``int64[sample]``."""
        raise self.lacks("predict")

    def penalised(self, params: Params, dataset: Dataset) -> Params:
        """Select the weights that the penalty counts: a view of the model; all by default."""
        return params

    def train(self, samples: UeSamples, steps: LocalSteps, start: LocalRound) -> Params:
        """``[len(ues), length]``: the model of each UE after its local steps.

        A step goes against gradient + mu (w - start) + correction (`agewise.learn.local`).
        """
        trained, count = start.starts[start.version], steps.local_steps * steps.batch_size
        for i, w in enumerate(trained):
            first = w.copy()
            drawn = draw_rows(start.key, start.t[i], start.ues[i], samples.offsets, count)
            for rows in drawn.reshape(steps.local_steps, steps.batch_size):
                _, gradient = self.loss_and_gradient(w, *samples.train.batch(rows))
                slope = np.array(gradient, np.float32)
                weights = self.penalised(slope, samples.dataset)
                weights += steps.penalty.gradient(self.penalised(w, samples.dataset))
                slope += np.float32(steps.proximal_weight) * (w - first)
                if start.corrections is not None:
                    slope += start.corrections[i]
                w -= np.float32(start.step_size[i]) * slope
        return trained

    def measure(
        self, samples: OrderedSamples, params: Params, parts: NDArray[np.int64], classes: int
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """``float64[part]``: the sum of losses of each; ``int64[class]``: rightly classified.

        ``parts[i]`` are the first sample of a part and the one behind its last.
        """
        losses, right = np.empty(len(parts)), np.zeros(classes, np.int64)
        for i, (first, last) in enumerate(parts.tolist()):
            x, y = samples.batch(slice(first, last))
            losses[i] = self.loss_and_gradient(params, x, y)[0] * (last - first)
            right += np.bincount(y[self.predict(params, x) == y], minlength=classes)
        return losses, right

    def losses(
        self, samples: UeSamples, params: Params, ues: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """The mean loss (without the penalty) of this model on the samples of each UE."""
        losses, _ = self.measure(
            samples.train, params, samples.parts_of(ues), samples.dataset.class_count
        )
        return losses / samples.sizes[ues]

    def evaluate(self, samples: UeSamples, params: Params) -> Evaluation:
        """Accuracy and mean loss (without the penalty) on the test samples."""
        test, counts = samples.test, samples.test_counts
        losses, right = self.measure(test, params, test.parts, counts.size)
        return Evaluation.of(right, counts, float(losses.sum()))

    def mean_loss(self, samples: UeSamples, params: Params) -> float:
        """The mean loss (without the penalty) over all training samples."""
        train, classes = samples.train, samples.dataset.class_count
        losses, _ = self.measure(train, params, train.parts, classes)
        return float(losses.sum()) / len(train)

    def learner(self, dataset: Dataset, partition: Partition, steps: LocalSteps) -> "Learner":
        """Bring the model together with the samples of every UE."""
        return Learner(self, UeSamples(dataset, partition), steps)

    def require_plain_sgd(self) -> None:
        """Raise ``ValueError`` unless every local step is the step size times the gradient."""

    def source_files(self) -> dict[str, Path]:
        """Name the files of code besides its class that the model is made by."""
        return {}

    def source_names(self) -> list[str]:
        """List what a run calls the code besides its class that the model is made by."""
        return list(self.source_files())

    def made_by(self) -> Callable[..., object] | None:
        """Return the function of the running program that makes the model, if one does."""
        return None

    def seconds_per_sample(self) -> float:
        """Guess roughly what a local step on one sample takes, with some 200 features not 0."""
        return 2e-5


class Learner:
    """A model, the samples of every UE, and local learning."""

    def __init__(self, model: Model, samples: UeSamples, steps: LocalSteps) -> None:
        self.model, self.samples, self.steps = model, samples, steps

    @property
    def sizes(self) -> NDArray[np.int64]:
        """``|D_k|``: the number of samples of each UE."""
        return self.samples.sizes

    def init(self, streams: Streams) -> Params:
        """Draw the initial model w^0."""
        return self.model.init(self.samples, streams.model())

    def train(
        self,
        params: Params,
        ues: NDArray[np.int64],
        t: int,
        streams: Streams,
        corrections: Params | None = None,
    ) -> Params:
        """``[len(ues), length]``: the model of each of these UEs after its local steps."""
        starts = np.ascontiguousarray(params, np.float32)[np.newaxis]
        version, versions = np.zeros(ues.size, np.int64), np.full(ues.size, t)
        steps = self.steps.steps_of(versions)
        return self.train_from(
            LocalRound(starts, version, ues, versions, streams.sgd, steps, corrections)
        )

    def train_from(self, start: LocalRound) -> Params:
        """`train` where UEs may start from different models."""
        return self.model.train(self.samples, self.steps, start)

    def losses(self, params: Params, ues: NDArray[np.int64]) -> NDArray[np.float64]:
        """The mean loss (without the penalty) of this model on the samples of each of these UEs."""
        return self.model.losses(self.samples, np.ascontiguousarray(params, np.float32), ues)

    def evaluate(self, params: Params) -> Evaluation:
        """Accuracy and mean loss (without the penalty) on the test samples."""
        return self.model.evaluate(self.samples, np.ascontiguousarray(params, np.float32))

    def objective(self, params: Params) -> float:
        """P(w) of Eq. 1: the mean loss over all training samples plus xi times the penalty."""
        params = np.ascontiguousarray(params, np.float32)
        weights = self.model.penalised(params, self.samples.dataset).astype(np.float64)
        return self.model.mean_loss(self.samples, params) + self.steps.penalty.value(weights)


def measure_parts(
    measure: Callable[[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]], object],
    parts: NDArray[np.int64],
    classes: int,
    entries: float,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Measure parts of the samples with a kernel, side by side where that pays (`Model.measure`).

    ``measure`` fills the losses of some parts, and adds to what is classified rightly. A sample
    costs ``entries``.
    """
    losses = np.empty(len(parts))
    right: list[NDArray[np.int64]] = []

    def work(chunk: slice) -> None:
        found = np.zeros(classes, np.int64)
        measure(parts[chunk], losses[chunk], found)
        right.append(found)

    samples = float((parts[:, 1] - parts[:, 0]).sum())
    in_chunks(work, len(parts), samples * entries)
    return losses, np.sum(right, axis=0)
