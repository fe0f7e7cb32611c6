"""Linear models: support vector machine, logistic, multinomial, least squares."""

import functools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from agewise.data import Dataset, Partition
from agewise.learn.base import Evaluation, Params
from agewise.learn.memory import aligned
from agewise.learn.penalty import PENALTIES, penalty
from agewise.learn.rows import Rows
from agewise.learn.team import Team
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
    # What the threads of the team share, and padded memory of the one that leads.
    _team: Team = field(init=False, repr=False)
    _step_sizes: NDArray[np.float64] = field(init=False, repr=False)
    _shown: Params = field(init=False, repr=False)
    _stored: Params = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name, value in (
            ("_team", Team(self._help_out)),
            ("_step_sizes", np.empty(1)),
            ("_shown", self._padded()),
            ("_stored", self._padded()),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, dataset: Dataset, partition: Partition, settings: "Learn") -> "LinearLearner":
        """A learner of this data set with these samples on each UE."""
        binary = dataset.class_count == 2 and settings.loss != "multinomial"
        outputs = 1 if binary else dataset.class_count
        return cls(
            settings,
            outputs,
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
        """Gaussian weights of the scenario's deviation, and no bias."""
        model = np.zeros((self.features + 1, self.outputs), np.float32)
        drawn = streams.model().standard_normal((self.features, self.outputs), np.float32)
        model[:-1] = np.float32(self.settings.initial_deviation) * drawn
        return model.ravel()

    def train(self, params: Params, ues: NDArray[np.int64], t: int, streams: Streams) -> Params:
        """Local SGD of Algorithm 3."""
        from agewise.learn import kernels

        # Helpers read these by their address, so they must lie in one piece.
        params = np.ascontiguousarray(params, np.float32)
        ues = np.ascontiguousarray(ues, np.int64)
        trained = np.empty((ues.size, params.size), np.float32)
        with self._team.lock:
            kernels.train(
                self._team.gather(), self._step_sizes, self._stored, *self._training,
                *self.train_rows.arrays, streams.sgd, t, self.settings.step_of(t), ues, params,
                trained.reshape(-1),
            )  # fmt: skip
        return trained

    def losses(self, params: Params, ues: NDArray[np.int64]) -> NDArray[np.float64]:
        """The mean loss (without the penalty) of this model on the samples of each UE."""
        parts = np.stack((self.offsets[ues], self.offsets[ues + 1]), axis=1)
        _, losses = self._measure(self.train_rows, params, parts)
        return losses / self.sizes[ues]

    def evaluate(self, params: Params) -> Evaluation:
        """Accuracy and mean loss (without the penalty) on the test samples."""
        right, losses = self._measure(self.test_rows, params, self.test_rows.chunks)
        count = self.test_rows.labels.size
        return Evaluation(int(right.sum()) / count, float(losses.sum()) / count)

    def objective(self, params: Params) -> float:
        """P(w): the mean loss over all training samples plus xi times the penalty."""
        _, losses = self._measure(self.train_rows, params, self.train_rows.chunks)
        weights = params[: self.features * self.outputs].astype(np.float64)
        loss = float(losses.sum()) / self.train_rows.labels.size
        return loss + penalty(weights, self.settings)

    def _measure(
        self, rows: Rows, params: Params, parts: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """How many samples of each part are classified rightly, and the sum of their losses.

        ``parts[i]`` are the first row of a part and the one behind its last.
        """
        from agewise.learn import kernels

        params = np.ascontiguousarray(params, np.float32)
        right, losses = np.empty(len(parts), np.int64), np.empty(len(parts))
        kind = kernels.MEASURING_TEST if rows is self.test_rows else kernels.MEASURING_TRAIN
        with self._team.lock:
            kernels.measure(
                self._team.gather(), kind, self._shown, *self._training[:2], *rows.arrays, params,
                parts.reshape(-1), right, losses,
            )  # fmt: skip
        return right, losses

    def _help_out(self, board: NDArray[np.int64], looks: int) -> None:
        from agewise.learn import kernels

        kernels.help_out(
            board, self._step_sizes, self._shown, *self._training, *self.train_rows.arrays,
            *self.test_rows.arrays, (self.features + 1) * self.outputs, self._padded(), looks,
        )  # fmt: skip

    @functools.cached_property
    def _training(self) -> tuple[Any, ...]:
        """What the kernels need to know of the settings, in their order."""
        settings = self.settings
        return (
            self.outputs,
            LOSSES.index(settings.loss),
            PENALTIES.index(settings.penalty),
            settings.penalty_weight,
            settings.local_steps,
            settings.batch_size,
            self.offsets,
        )

    def _padded(self) -> Params:
        """Memory for a model whose outputs are padded to whole lanes."""
        return aligned((self.features + 1) * _LANES * math.ceil(self.outputs / _LANES))
