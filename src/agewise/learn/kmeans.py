"""K-means by SGD: the unsupervised example of Eq. 1."""

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agewise.core import kmeans as kernels
from agewise.core.linear import Descent, Round
from agewise.core.samples import Rows
from agewise.data import Dataset, Partition
from agewise.learn.base import Evaluation, Params, descent_of, penalty_of, sample_rows
from agewise.learn.threads import in_chunks
from agewise.random import Streams, normal
from agewise.scenario import KMeans, Learn


@dataclass(frozen=True, eq=False)
class KMeansLearner:
    """Centres that sum up the samples; labels are used only to judge the clusters.

    A model is flat ``[cluster, feature]``. A cluster is named after the commonest class of the
    test samples in it, and a sample counts as classified rightly in a cluster of its own class.
    """

    settings: Learn
    model: KMeans
    features: int
    offsets: NDArray[np.int64]
    train_rows: Rows
    test_rows: Rows
    test_counts: NDArray[np.int64]

    @classmethod
    def of(cls, dataset: Dataset, partition: Partition, settings: Learn) -> "KMeansLearner":
        """A learner of this data set with these samples on each UE."""
        model = _section(settings)
        if model.clusters > len(dataset.train):
            raise ValueError(
                f"k-means: {model.clusters} clusters, but only {len(dataset.train)} training "
                "samples"
            )
        return cls(
            settings,
            model,
            dataset.train.feature_count,
            partition.offsets,
            sample_rows(dataset.train, partition.order),
            sample_rows(dataset.test),
            np.bincount(dataset.test.labels, minlength=dataset.class_count),
        )

    @classmethod
    def length(cls, dataset: Dataset, settings: Learn) -> int:
        """A number for each feature of each centre."""
        return dataset.train.feature_count * _section(settings).clusters

    @functools.cached_property
    def sizes(self) -> NDArray[np.int64]:
        """``|D_k|``: the number of samples of each UE."""
        return np.diff(self.offsets)

    def init(self, streams: Streams) -> Params:
        """Centres at random training samples, with the scenario's deviation around them."""
        rng = streams.model()
        rows = self.train_rows
        chosen = rng.choice(rows.labels.size, self.model.clusters, replace=False)
        noise = normal(rng, (self.model.clusters, self.features), np.float32)
        centres = np.float32(self.model.initial_deviation) * noise
        for centre, row in zip(centres, chosen, strict=True):
            entries = slice(rows.starts[row], rows.starts[row + 1])
            centre[rows.features[entries]] += rows.unit * rows.values[entries]
        return centres.ravel()

    def train(
        self,
        params: Params,
        ues: NDArray[np.int64],
        t: int,
        streams: Streams,
        corrections: Params | None = None,
    ) -> Params:
        """Local SGD of Algorithm 3; there are no gradients to correct."""
        if corrections is not None:
            raise ValueError("k-means moves centres: it takes no corrections of gradients")
        centres = self._centres(params)
        trained = np.empty((ues.size, *centres.shape), np.float32)
        now = Round(streams.sgd, t, self.settings.step_of(t))

        def work(chunk: slice) -> None:
            kernels.train(
                self.train_rows, self.offsets, self._descent, now, ues[chunk], centres,
                trained[chunk],
            )  # fmt: skip

        # A step reads all centres, and their distances to its samples.
        samples = self.settings.local_steps * (self.settings.batch_size + 1)
        in_chunks(work, ues.size, float(ues.size) * samples * params.size)
        return trained.reshape(ues.size, params.size)

    def losses(self, params: Params, ues: NDArray[np.int64]) -> NDArray[np.float64]:
        """The mean loss (without the penalty) of this model on the samples of each UE."""
        _, losses = self._assign(self.train_rows, params)
        sums = np.add.reduceat(losses, self.offsets[:-1])
        return np.asarray(sums[ues] / self.sizes[ues])

    def evaluate(self, params: Params) -> Evaluation:
        """Share of test samples in a cluster named after their class; mean loss."""
        chosen, losses = self._assign(self.test_rows, params)
        classes = self.test_counts.size
        counts = np.zeros((self.model.clusters, classes), np.int64)
        np.add.at(counts, (chosen, self.test_rows.labels), 1)
        right = np.zeros(classes, np.int64)
        np.add.at(right, counts.argmax(axis=1), counts.max(axis=1))
        return Evaluation.of(right, self.test_counts, float(losses.sum()))

    def objective(self, params: Params) -> float:
        """P(w): the mean loss over all training samples plus xi times the penalty."""
        _, losses = self._assign(self.train_rows, params)
        return float(losses.mean()) + penalty_of(params.astype(np.float64), self.settings)

    def _assign(self, rows: Rows, params: Params) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """``[row]``: the nearest centre of each row, and half the squared distance to it."""
        centres = self._centres(params)
        count = rows.labels.size
        chosen, losses = np.empty(count, np.int64), np.empty(count)

        def work(chunk: slice) -> None:
            kernels.assign(rows, chunk.start, centres, chosen[chunk], losses[chunk])

        in_chunks(work, count, float(rows.starts[-1]) * self.model.clusters)
        return chosen, losses

    def _centres(self, params: Params) -> Params:
        flat = np.ascontiguousarray(params, np.float32)
        return flat.reshape(self.model.clusters, self.features)

    @functools.cached_property
    def _descent(self) -> Descent:
        return descent_of(self.settings)


def _section(settings: Learn) -> KMeans:
    assert isinstance(settings.model, KMeans)  # noqa: S101 - the registry is by kind
    return settings.model
