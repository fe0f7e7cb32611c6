"""K-means by SGD: the unsupervised example of Eq. 1."""

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agewise.data import Dataset, Partition
from agewise.learn.base import Evaluation, Params
from agewise.learn.penalty import PENALTIES, penalty
from agewise.learn.rows import Rows
from agewise.random import Streams

if TYPE_CHECKING:
    from agewise.scenario import Learn


@dataclass(frozen=True, eq=False)
class KMeansLearner:
    """Centres that sum up the samples; labels are used only to judge the clusters.

    A model is flat ``[cluster, feature]``. The accuracy is that of calling every cluster by the
    commonest class of the test samples in it.
    """

    settings: "Learn"
    clusters: int
    features: int
    offsets: NDArray[np.int64]
    train_rows: Rows
    test_rows: Rows

    @classmethod
    def of(cls, dataset: Dataset, partition: Partition, settings: "Learn") -> "KMeansLearner":
        """A learner of this data set with these samples on each UE."""
        clusters = settings.clusters or dataset.class_count
        if clusters > len(dataset.train):
            raise ValueError(
                f"k-means: {clusters} clusters, but only {len(dataset.train)} training samples"
            )
        return cls(
            settings,
            clusters,
            dataset.train.feature_count,
            partition.offsets,
            Rows.of(dataset.train, partition.order),
            Rows.of(dataset.test),
        )

    @functools.cached_property
    def sizes(self) -> NDArray[np.int64]:
        """|D_k|: the number of samples of each UE."""
        return np.diff(self.offsets)

    def init(self, streams: Streams) -> Params:
        """Centres at random training samples, with the scenario's deviation around them."""
        rng = streams.model()
        rows = self.train_rows
        chosen = rng.choice(rows.labels.size, self.clusters, replace=False)
        noise = rng.standard_normal((self.clusters, self.features), np.float32)
        centres = np.float32(self.settings.initial_deviation) * noise
        for centre, row in zip(centres, chosen, strict=True):
            entries = slice(rows.starts[row], rows.starts[row + 1])
            centre[rows.features[entries]] += rows.unit * rows.values[entries]
        return centres.ravel()

    def train(self, params: Params, ues: NDArray[np.int64], t: int, streams: Streams) -> Params:
        """Local SGD of Algorithm 3."""
        from agewise.learn import kmeans_kernels

        settings, rows = self.settings, self.train_rows
        trained = np.empty((ues.size, self.clusters, self.features), np.float32)
        kmeans_kernels.train(
            rows.features,
            rows.values,
            rows.starts,
            rows.unit,
            self.offsets,
            ues,
            streams.sgd,
            t,
            params.reshape(self.clusters, self.features),
            PENALTIES.index(settings.penalty),
            settings.penalty_weight,
            settings.step_of(t),
            settings.local_steps,
            settings.batch_size,
            trained,
        )
        return trained.reshape(ues.size, params.size)

    def losses(self, params: Params, ues: NDArray[np.int64]) -> NDArray[np.float64]:
        """The mean loss (without the penalty) of this model on the samples of each UE."""
        _, losses = self._assign(self.train_rows, params)
        sums = np.add.reduceat(losses, self.offsets[:-1])
        return np.asarray(sums[ues] / self.sizes[ues])

    def evaluate(self, params: Params) -> Evaluation:
        """Share of test samples in a cluster named after their class; mean loss."""
        chosen, losses = self._assign(self.test_rows, params)
        labels = self.test_rows.labels
        classes = int(labels.max()) + 1
        counts = np.bincount(chosen * classes + labels, minlength=self.clusters * classes)
        right = counts.reshape(self.clusters, classes).max(axis=1).sum()
        return Evaluation(float(right) / labels.size, float(losses.sum()) / labels.size)

    def objective(self, params: Params) -> float:
        """P(w): the mean loss over all training samples plus xi times the penalty."""
        _, losses = self._assign(self.train_rows, params)
        weights = params.astype(np.float64)
        return float(losses.mean()) + penalty(weights, self.settings)

    def _assign(self, rows: Rows, params: Params) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        from agewise.learn import kmeans_kernels

        centres = params.reshape(self.clusters, self.features)
        count = rows.labels.size
        chosen, losses = np.empty(count, np.int64), np.empty(count)
        kmeans_kernels.assign(
            rows.features, rows.values, rows.starts, rows.unit, centres, chosen, losses
        )
        return chosen, losses
