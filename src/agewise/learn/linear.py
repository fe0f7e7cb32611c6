"""Linear models: support vector machine, logistic, multinomial, least squares."""

import functools
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from agewise.core import linear as kernels
from agewise.core.losses import Scores
from agewise.core.samples import Rows
from agewise.data import Dataset, Partition
from agewise.learn.base import (
    Evaluation,
    Params,
    cohort_of,
    descent_of,
    measure_parts,
    parts_of,
    penalty_of,
    sample_rows,
)
from agewise.learn.threads import in_chunks
from agewise.random import Streams, normal
from agewise.scenario import Learn, Linear

#: In the order of the kernels' codes.
LOSSES: Final = ("hinge", "squared-hinge", "logistic", "squared-error", "multinomial")


@dataclass(frozen=True, eq=False)
class LinearLearner:
    """Scores ``w x + b``, one per class against the rest (one in all for two classes).

    A model is flat ``[feature + 1, output]``, the bias last.
    """

    settings: Learn
    model: Linear
    scores: Scores
    features: int
    offsets: NDArray[np.int64]
    train_rows: Rows
    test_rows: Rows
    test_counts: NDArray[np.int64]

    @classmethod
    def of(cls, dataset: Dataset, partition: Partition, settings: Learn) -> "LinearLearner":
        """A learner of this data set with these samples on each UE."""
        model = _section(settings)
        return cls(
            settings,
            model,
            Scores(outputs_of(dataset, model), LOSSES.index(model.loss)),
            dataset.train.feature_count,
            partition.offsets,
            sample_rows(dataset.train, partition.order),
            sample_rows(dataset.test),
            np.bincount(dataset.test.labels, minlength=dataset.class_count),
        )

    @classmethod
    def length(cls, dataset: Dataset, settings: Learn) -> int:
        """A weight for each feature and a bias, for each output."""
        return (dataset.train.feature_count + 1) * outputs_of(dataset, _section(settings))

    @functools.cached_property
    def sizes(self) -> NDArray[np.int64]:
        """``|D_k|``: the number of samples of each UE."""
        return np.diff(self.offsets)

    def init(self, streams: Streams) -> Params:
        """Gaussian weights of the scenario's deviation, and no bias."""
        outputs = self.scores.outputs
        model = np.zeros((self.features + 1, outputs), np.float32)
        drawn = normal(streams.model(), (self.features, outputs), np.float32)
        model[:-1] = np.float32(self.model.initial_deviation) * drawn
        return model.ravel()

    def train(
        self,
        params: Params,
        ues: NDArray[np.int64],
        t: int,
        streams: Streams,
        corrections: Params | None = None,
    ) -> Params:
        """Local SGD of Algorithm 3."""
        params = np.ascontiguousarray(params, np.float32)
        trained = np.empty((ues.size, params.size), np.float32)
        now = kernels.Round(streams.sgd, t, self.settings.step_of(t))

        def work(chunk: slice) -> None:
            kernels.train(
                self.train_rows, self.offsets, self.scores, self._descent, now,
                cohort_of(ues, corrections, chunk), params, trained[chunk],
            )  # fmt: skip

        in_chunks(work, ues.size, self._entries_per_ue * ues.size)
        return trained

    def losses(self, params: Params, ues: NDArray[np.int64]) -> NDArray[np.float64]:
        """The mean loss (without the penalty) of this model on the samples of each UE."""
        parts = np.stack((self.offsets[ues], self.offsets[ues + 1]), axis=1)
        losses, _ = self._measure(self.train_rows, params, parts)
        return losses / self.sizes[ues]

    def evaluate(self, params: Params) -> Evaluation:
        """Accuracy and mean loss (without the penalty) on the test samples."""
        losses, right = self._measure(self.test_rows, params, self._test_parts)
        return Evaluation.of(right, self.test_counts, float(losses.sum()))

    def objective(self, params: Params) -> float:
        """P(w): the mean loss over all training samples plus xi times the penalty."""
        losses, _ = self._measure(self.train_rows, params, parts_of(self.train_rows))
        weights = params[: self.features * self.scores.outputs].astype(np.float64)
        loss = float(losses.sum()) / self.train_rows.labels.size
        return loss + penalty_of(weights, self.settings)

    def _measure(
        self, rows: Rows, params: Params, parts: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The sum of losses of each part of the samples; rightly classified by class."""
        params = np.ascontiguousarray(params, np.float32)
        measure = functools.partial(kernels.measure, rows, self.scores, params)
        return measure_parts(measure, parts, self.test_counts.size, _entries_per_row(rows))

    @functools.cached_property
    def _descent(self) -> kernels.Descent:
        return descent_of(self.settings)

    @functools.cached_property
    def _entries_per_ue(self) -> float:
        """Entries that a UE's local steps read: twice, for the scores and for the step."""
        samples = self.settings.local_steps * self.settings.batch_size
        return 2.0 * samples * _entries_per_row(self.train_rows)

    @functools.cached_property
    def _test_parts(self) -> NDArray[np.int64]:
        return parts_of(self.test_rows)


def _section(settings: Learn) -> Linear:
    assert isinstance(settings.model, Linear)  # noqa: S101 - the registry is by kind
    return settings.model


def outputs_of(dataset: Dataset, model: Linear) -> int:
    """One output per class, or one for two classes."""
    binary = dataset.class_count == 2 and model.loss != "multinomial"
    return 1 if binary else dataset.class_count


def _entries_per_row(rows: Rows) -> float:
    return float(rows.starts[-1]) / rows.labels.size
