"""Multilayer perceptrons, compiled: what sweeps of neural models are made with."""

import functools
import itertools
import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from agewise.core import mlp as kernels
from agewise.core.linear import Descent, Round
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
from agewise.random import Streams
from agewise.scenario import Learn, Mlp

#: Multiplications that take about as long as reading an entry of a sample in a linear model.
_PER_ENTRY: Final = 16.0


@dataclass(frozen=True, eq=False)
class MlpLearner:
    """Hidden layers with ReLU, then a score per class with softmax cross-entropy.

    ``widths`` are the numbers of features, of units of each hidden layer and of classes. A model
    is flat: ``[input + 1, output]`` of each layer, one after another, the bias last.
    """

    settings: Learn
    widths: NDArray[np.int64]
    offsets: NDArray[np.int64]
    train_rows: Rows
    test_rows: Rows
    test_counts: NDArray[np.int64]

    @classmethod
    def of(cls, dataset: Dataset, partition: Partition, settings: Learn) -> "MlpLearner":
        """A learner of this data set with these samples on each UE."""
        return cls(
            settings,
            np.array(_widths(dataset, settings)),
            partition.offsets,
            sample_rows(dataset.train, partition.order),
            sample_rows(dataset.test),
            np.bincount(dataset.test.labels, minlength=dataset.class_count),
        )

    @classmethod
    def length(cls, dataset: Dataset, settings: Learn) -> int:
        """A weight for each input and a bias, for each unit of each layer."""
        widths = _widths(dataset, settings)
        return sum((before + 1) * behind for before, behind in itertools.pairwise(widths))

    @functools.cached_property
    def sizes(self) -> NDArray[np.int64]:
        """``|D_k|``: the number of samples of each UE."""
        return np.diff(self.offsets)

    def init(self, streams: Streams) -> Params:
        """Weights and biases uniform within 1 / sqrt(inputs): what PyTorch's layers begin with."""
        rng = streams.model()
        layers = []
        for before, behind in itertools.pairwise(self.widths):
            drawn = 2.0 * rng.random((before + 1, behind)) - 1.0
            layers.append((drawn / math.sqrt(before)).astype(np.float32).ravel())
        return np.concatenate(layers)

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
        now = Round(streams.sgd, t, self.settings.step_of(t))

        def work(chunk: slice) -> None:
            kernels.train(
                self.train_rows, self.offsets, self.widths, self._descent, now,
                cohort_of(ues, corrections, chunk), params, trained[chunk],
            )  # fmt: skip

        samples = self.settings.local_steps * self.settings.batch_size
        in_chunks(work, ues.size, 3.0 * self._entries * samples * ues.size)
        return trained

    def losses(self, params: Params, ues: NDArray[np.int64]) -> NDArray[np.float64]:
        """The mean loss (without the penalty) of this model on the samples of each UE."""
        parts = np.stack((self.offsets[ues], self.offsets[ues + 1]), axis=1)
        losses, _ = self._measure(self.train_rows, params, parts)
        return losses / self.sizes[ues]

    def evaluate(self, params: Params) -> Evaluation:
        """Accuracy and mean loss (without the penalty) on the test samples."""
        losses, right = self._measure(self.test_rows, params, parts_of(self.test_rows))
        return Evaluation.of(right, self.test_counts, float(losses.sum()))

    def objective(self, params: Params) -> float:
        """P(w): the mean loss over all training samples plus xi times the penalty."""
        losses, _ = self._measure(self.train_rows, params, parts_of(self.train_rows))
        loss = float(losses.sum()) / self.train_rows.labels.size
        return loss + penalty_of(self._weights(params), self.settings)

    def _weights(self, params: Params) -> NDArray[np.float64]:
        """The weights of all layers, without the biases."""
        weights, at = [], 0
        for before, behind in itertools.pairwise(self.widths):
            weights.append(params[at : at + before * behind])
            at += (before + 1) * behind
        return np.concatenate(weights).astype(np.float64)

    def _measure(
        self, rows: Rows, params: Params, parts: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The sum of losses of each part of the samples; rightly classified by class."""
        measure = functools.partial(
            kernels.measure, rows, self.widths, np.ascontiguousarray(params, np.float32)
        )
        return measure_parts(measure, parts, self.test_counts.size, self._entries)

    @functools.cached_property
    def _descent(self) -> Descent:
        return descent_of(self.settings)

    @functools.cached_property
    def _entries(self) -> float:
        """What a sample costs on its way through the net, in entries of linear models."""
        density = float(self.train_rows.starts[-1]) / (self.train_rows.labels.size)
        dense = sum(int(a) * int(b) for a, b in itertools.pairwise(self.widths[1:]))
        return (density * float(self.widths[1]) + dense) / _PER_ENTRY


def _widths(dataset: Dataset, settings: Learn) -> list[int]:
    """Features, units of the hidden layers, classes."""
    assert isinstance(settings.model, Mlp)  # noqa: S101 - the registry is by kind
    return [dataset.train.feature_count, *settings.model.hidden_widths, dataset.class_count]
