"""Linear models: support vector machine, logistic, multinomial, least squares."""

import functools
from typing import ClassVar, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agewise.core import linear as kernels
from agewise.data import Dataset
from agewise.learn.model import (
    LocalRound,
    LocalSteps,
    Model,
    OrderedSamples,
    UeSamples,
    measure_parts,
)
from agewise.learn.threads import in_chunks
from agewise.learn.updates import Params
from agewise.part import LARGE
from agewise.random import normal

#: In the order of the kernels' codes.
LOSSES: Final = ("hinge", "squared-hinge", "logistic", "squared-error", "multinomial")


class Linear(Model):
    """A linear model: one output per class, or one for two classes.

    Scores ``w x + b``, one per class against the rest. A model is flat ``[feature + 1, output]``,
    the bias last.
    """

    kind: Literal["linear"] = "linear"
    loss: Literal["hinge", "squared-hinge", "logistic", "multinomial", "squared-error"] = Field(
        description="what a sample costs; hinge is the support vector machine"
    )
    initial_deviation: float = Field(
        ge=0, le=LARGE, description="deviation of the random initial weights"
    )

    is_small: ClassVar[bool] = True

    def length(self, dataset: Dataset) -> int:
        """Count a weight for each feature and a bias, for each output."""
        return (dataset.train.feature_count + 1) * self._outputs(dataset.class_count)

    def init(self, samples: UeSamples, rng: np.random.Generator) -> Params:
        """Draw Gaussian weights of the scenario's deviation, and no bias."""
        dataset = samples.dataset
        features, outputs = dataset.train.feature_count, self._outputs(dataset.class_count)
        model = np.zeros((features + 1, outputs), np.float32)
        drawn = normal(rng, (features, outputs), np.float32)
        model[:-1] = np.float32(self.initial_deviation) * drawn
        return model.ravel()

    def penalised(self, params: Params, dataset: Dataset) -> Params:
        """Select the weights, without the biases."""
        features = dataset.train.feature_count
        return params[: params.size // (features + 1) * features]

    def train(self, samples: UeSamples, steps: LocalSteps, start: LocalRound) -> Params:
        """Take the steps of local SGD of Algorithm 3."""
        trained = np.empty((start.ues.size, start.length), np.float32)
        scores, descent = self._scores(samples.test_counts.size), steps.descent
        rows, offsets = samples.train.rows, samples.offsets

        def work(chunk: slice) -> None:
            kernels.train(
                rows, offsets, scores, descent, start.key, start.cohort(chunk), start.starts,
                trained[chunk],
            )  # fmt: skip

        # Entries that local steps read: twice, for the scores and for the step.
        entries = 2.0 * steps.local_steps * steps.batch_size * samples.train.density
        in_chunks(work, start.ues.size, entries * start.ues.size)
        return trained

    def measure(
        self, samples: OrderedSamples, params: Params, parts: NDArray[np.int64], classes: int
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Measure with the kernel."""
        measure = functools.partial(kernels.measure, samples.rows, self._scores(classes), params)
        return measure_parts(measure, parts, classes, samples.density)

    def seconds_per_sample(self) -> float:
        """Guess by what MNIST takes."""
        return 5e-7

    def _outputs(self, classes: int) -> int:
        """Count one output per class, or one for two classes."""
        return 1 if classes == 2 and self.loss != "multinomial" else classes

    def _scores(self, classes: int) -> kernels.Scores:
        return kernels.Scores(self._outputs(classes), LOSSES.index(self.loss))
