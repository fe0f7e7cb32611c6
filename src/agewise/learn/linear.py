"""Linear models: support vector machine, logistic, multinomial, least squares."""

import functools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from agewise.data import Dataset, Partition
from agewise.learn.base import Evaluation, Params
from agewise.learn.memory import Workspace
from agewise.learn.penalty import PENALTIES, penalty
from agewise.learn.rows import Rows
from agewise.learn.threads import share
from agewise.random import Streams

if TYPE_CHECKING:
    from agewise.scenario import Learn

#: In the order of the kernels' codes.
LOSSES: Final = ("hinge", "squared-hinge", "logistic", "squared-error", "multinomial")
_LANES = 16


@dataclass(frozen=True, eq=False)
class LinearLearner:
    """Scores ``w x + b``, one per class against the rest (one in all for two classes).

    A model is flat ``[feature + 1, output]``, the bias last.
    """

    settings: "Learn"
    outputs: int
    features: int
    offsets: NDArray[np.int64]
    train_rows: Rows
    test_rows: Rows
    _work: Workspace = field(repr=False)

    @classmethod
    def of(cls, dataset: Dataset, partition: Partition, settings: "Learn") -> "LinearLearner":
        """A learner of this data set with these samples on each UE."""
        binary = dataset.class_count == 2 and settings.loss != "multinomial"
        outputs = 1 if binary else dataset.class_count
        features = dataset.train.feature_count
        padded = _LANES * math.ceil(outputs / _LANES)
        return cls(
            settings,
            outputs,
            features,
            partition.offsets,
            Rows.of(dataset.train, partition.order),
            Rows.of(dataset.test),
            Workspace((features + 1) * padded),
        )

    @functools.cached_property
    def sizes(self) -> NDArray[np.int64]:
        """|D_k|: the number of samples of each UE."""
        return np.diff(self.offsets)

    def init(self, streams: Streams) -> Params:
        """Gaussian weights of the scenario's deviation, and no bias."""
        model = np.zeros((self.features + 1, self.outputs), np.float32)
        drawn = streams.model().standard_normal((self.features, self.outputs), np.float32)
        model[:-1] = np.float32(self.settings.initial_deviation) * drawn
        return model.ravel()

    def train(self, params: Params, ues: NDArray[np.int64], t: int, streams: Streams) -> Params:
        """Local SGD of Algorithm 3."""
        from agewise.learn import kernels

        settings = self.settings
        trained = np.empty((ues.size, params.size), np.float32)
        common = (
            *self.train_rows.arrays,
            self.offsets,
            ues,
            streams.sgd,
            t,
            params,
            self.outputs,
            self._work.rows(ues.size),
            LOSSES.index(settings.loss),
            PENALTIES.index(settings.penalty),
            settings.penalty_weight,
            settings.step_of(t),
            settings.local_steps,
            settings.batch_size,
            trained,
        )
        drawn = ues.size * settings.local_steps * settings.batch_size
        operations = 2 * drawn * self.train_rows.entries_per_row
        share(functools.partial(kernels.train, *common), ues.size, operations)
        return trained

    def evaluate(self, params: Params) -> Evaluation:
        """Accuracy and mean loss (without the penalty) on the test samples."""
        right, loss = self._measure(self.test_rows, params)
        count = self.test_rows.labels.size
        return Evaluation(right / count, loss / count)

    def objective(self, params: Params) -> float:
        """P(w): the mean loss over all training samples plus xi times the penalty."""
        _, loss = self._measure(self.train_rows, params)
        weights = params[: self.features * self.outputs].astype(np.float64)
        return loss / self.train_rows.labels.size + penalty(weights, self.settings)

    def _measure(self, rows: Rows, params: Params) -> tuple[int, float]:
        from agewise.learn import kernels

        stored = self._work.rows(1)[0]
        stride = stored.size // (self.features + 1)
        kernels.pad(params, self.outputs, stride, stored)
        chunks = math.ceil(rows.labels.size / kernels.CHUNK)
        right, losses = np.empty(chunks, np.int64), np.empty(chunks)
        loss = LOSSES.index(self.settings.loss)
        common = (*rows.arrays, self.outputs, stride, stored, loss, right, losses)
        share(functools.partial(kernels.evaluate, *common), chunks, rows.values.size)
        return int(right.sum()), float(losses.sum())
