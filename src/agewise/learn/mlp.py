"""Multilayer perceptrons, compiled: what sweeps of neural models are made with."""

import functools
import itertools
import math
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from agewise.core import mlp as kernels
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

#: Units of a layer, and hidden layers, at most.
_MOST_WIDTH: Final = 2**20
_MOST_LAYERS: Final = 64
#: Multiplications that take about as long as reading an entry of a sample in a linear model.
_PER_ENTRY: Final = 16.0


class Mlp(Model):
    """A multilayer perceptron: ReLU in its hidden layers, softmax cross-entropy as the loss.

    A model is flat: ``[input + 1, output]`` of each layer, one after another, the bias last.
    """

    kind: Literal["mlp"] = "mlp"
    hidden_widths: tuple[int, ...] = Field(
        description="units of each hidden layer, from the first to the last"
    )

    @field_validator("hidden_widths")
    @classmethod
    def _require_layers(cls, widths: tuple[int, ...]) -> tuple[int, ...]:
        if not 1 <= len(widths) <= _MOST_LAYERS:
            raise ValueError(f"{len(widths)} layers: 1 to {_MOST_LAYERS} are taken")
        for width in widths:
            if not 1 <= width <= _MOST_WIDTH:
                raise ValueError(f"{width} units: each layer has from 1 to {_MOST_WIDTH}")
        return widths

    def length(self, dataset: Dataset) -> int:
        """Count a weight for each input and a bias, for each unit of each layer."""
        return sum((before + 1) * behind for before, behind in self._layers(dataset))

    def init(self, samples: UeSamples, rng: np.random.Generator) -> Params:
        """Draw weights and biases within 1 / sqrt(inputs): what PyTorch's layers begin with."""
        layers = []
        for before, behind in self._layers(samples.dataset):
            drawn = 2.0 * rng.random((before + 1, behind)) - 1.0
            layers.append((drawn / math.sqrt(before)).astype(np.float32).ravel())
        return np.concatenate(layers)

    def penalised(self, params: Params, dataset: Dataset) -> Params:
        """Select the weights of all layers, without the biases."""
        weights, at = [], 0
        for before, behind in self._layers(dataset):
            weights.append(params[at : at + before * behind])
            at += (before + 1) * behind
        return np.concatenate(weights)

    def train(self, samples: UeSamples, steps: LocalSteps, start: LocalRound) -> Params:
        """Take the steps of local SGD of Algorithm 3."""
        trained = np.empty((start.ues.size, start.length), np.float32)
        widths, descent = self._widths(samples.dataset), steps.descent
        rows, offsets = samples.train.rows, samples.offsets

        def work(chunk: slice) -> None:
            kernels.train(
                rows, offsets, widths, descent, start.key, start.cohort(chunk), start.starts,
                trained[chunk],
            )  # fmt: skip

        count = steps.local_steps * steps.batch_size * start.ues.size
        in_chunks(work, start.ues.size, 3.0 * self._entries(samples.train, widths) * count)
        return trained

    def measure(
        self, samples: OrderedSamples, params: Params, parts: NDArray[np.int64], classes: int
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Measure with the kernel."""
        widths = np.array([samples.feature_count, *self.hidden_widths, classes])
        measure = functools.partial(kernels.measure, samples.rows, widths, params)
        return measure_parts(measure, parts, classes, self._entries(samples, widths))

    def seconds_per_sample(self) -> float:
        """Guess by the multiplications."""
        widths = itertools.pairwise((200, *self.hidden_widths, 10))
        return 1e-10 * sum(before * behind for before, behind in widths)

    def _widths(self, dataset: Dataset) -> NDArray[np.int64]:
        """Features, units of the hidden layers, classes."""
        return np.array([dataset.train.feature_count, *self.hidden_widths, dataset.class_count])

    def _layers(self, dataset: Dataset) -> list[tuple[int, int]]:
        """Inputs and outputs of each layer."""
        return list(itertools.pairwise(self._widths(dataset).tolist()))

    def _entries(self, samples: OrderedSamples, widths: NDArray[np.int64]) -> float:
        """Count what a sample costs on its way through the net, in entries of linear models."""
        dense: int = sum(a * b for a, b in itertools.pairwise(widths[1:].tolist()))
        return (samples.density * float(widths[1]) + dense) / _PER_ENTRY
