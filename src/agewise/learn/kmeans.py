"""K-means by SGD: the unsupervised example of Eq. 1."""

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agewise.core import kmeans as kernels
from agewise.data import Dataset
from agewise.learn.model import LocalRound, LocalSteps, Model, OrderedSamples, UeSamples
from agewise.learn.threads import in_chunks
from agewise.learn.updates import Params
from agewise.part import LARGE, MOST
from agewise.random import normal
from agewise.records import Evaluation


class KMeans(Model):
    """Cluster centres; the loss is half the squared distance to the nearest one.

    Labels are used only to judge the clusters: a cluster is named after the commonest class of the
    test samples in it, and a sample counts as classified rightly in a cluster of its own class. A
    model is flat ``[cluster, feature]``.
    """

    kind: Literal["k-means"] = "k-means"
    clusters: int = Field(ge=1, le=MOST, description="the number of centres")
    initial_deviation: float = Field(
        ge=0, le=LARGE, description="deviation of the initial centres from random training samples"
    )
    has_gradients: ClassVar[bool] = False
    is_small: ClassVar[bool] = True

    def length(self, dataset: Dataset) -> int:
        """Count a number for each feature of each centre."""
        return dataset.train.feature_count * self.clusters

    def init(self, samples: UeSamples, rng: np.random.Generator) -> Params:
        """Draw centres at random training samples, with the scenario's deviation around them."""
        count, features = len(samples.train), samples.dataset.train.feature_count
        if self.clusters > count:
            raise ValueError(
                f"k-means: {self.clusters} clusters, but only {count} training samples"
            )
        chosen = rng.choice(count, self.clusters, replace=False)
        noise = normal(rng, (self.clusters, features), np.float32)
        centres = np.float32(self.initial_deviation) * noise
        centres += samples.train.batch(chosen)[0]
        return centres.ravel()

    def train(self, samples: UeSamples, steps: LocalSteps, start: LocalRound) -> Params:
        """Take the steps of local SGD of Algorithm 3; there are no gradients to correct."""
        if start.corrections is not None:
            raise ValueError("k-means moves centres: it takes no corrections of gradients")
        count, starts = start.ues.size, np.stack([self._centres(each) for each in start.starts])
        trained = np.empty((count, *starts.shape[1:]), np.float32)
        rows, offsets, descent = samples.train.rows, samples.offsets, steps.descent

        def work(chunk: slice) -> None:
            kernels.train(
                rows, offsets, descent, start.key, start.cohort(chunk), starts, trained[chunk]
            )

        # A step reads all centres, and their distances to its samples.
        entries = float(trained.size) * steps.local_steps * (steps.batch_size + 1)
        in_chunks(work, count, entries)
        return trained.reshape(count, start.length)

    def losses(
        self, samples: UeSamples, params: Params, ues: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """The mean loss (without the penalty) of this model on the samples of each UE."""
        _, losses = self._assign(samples.train, params)
        sums = np.add.reduceat(losses, samples.offsets[:-1])
        return np.asarray(sums[ues] / samples.sizes[ues])

    def evaluate(self, samples: UeSamples, params: Params) -> Evaluation:
        """Share of test samples in a cluster named after their class; mean loss."""
        chosen, losses = self._assign(samples.test, params)
        classes = samples.test_counts.size
        counts = np.zeros((self.clusters, classes), np.int64)
        np.add.at(counts, (chosen, samples.test.rows.labels), 1)
        right = np.zeros(classes, np.int64)
        np.add.at(right, counts.argmax(axis=1), counts.max(axis=1))
        return Evaluation.of(right, samples.test_counts, float(losses.sum()))

    def mean_loss(self, samples: UeSamples, params: Params) -> float:
        """The mean loss (without the penalty) over all training samples."""
        return float(self._assign(samples.train, params)[1].mean())

    def seconds_per_sample(self) -> float:
        """Guess by what MNIST takes."""
        return 5e-7

    def _assign(
        self, samples: OrderedSamples, params: Params
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """``[sample]``: the nearest centre of each, and half the squared distance to it."""
        centres, count = self._centres(params), len(samples)
        chosen, losses = np.empty(count, np.int64), np.empty(count)

        def work(chunk: slice) -> None:
            kernels.assign(samples.rows, chunk.start, centres, chosen[chunk], losses[chunk])

        in_chunks(work, count, samples.density * count * self.clusters)
        return chosen, losses

    def _centres(self, params: Params) -> Params:
        return params.reshape(self.clusters, -1)
