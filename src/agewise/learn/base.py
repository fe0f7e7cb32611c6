"""What a learner is."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from agewise.random import Streams

Params = NDArray[np.float32]


@dataclass(frozen=True)
class Evaluation:
    """How good a model is on the test samples: share classified rightly, mean loss."""

    accuracy: float
    loss: float


class Learner(Protocol):
    """A model, the samples of every UE, and local learning.

    A model is one flat float32 vector, so that averaging, compression and transport need not
    know what it means.
    """

    @property
    def sizes(self) -> NDArray[np.int64]:
        """|D_k|: the number of samples of each UE."""
        ...

    def init(self, streams: Streams) -> Params:
        """The initial model w^0."""
        ...

    def train(self, params: Params, ues: NDArray[np.int64], t: int, streams: Streams) -> Params:
        """``[len(ues), len(params)]``: the model of each of these UEs after its local steps.

        What a UE does depends on the model, the round ``t``, the UE and the seed alone.
        """
        ...

    def losses(self, params: Params, ues: NDArray[np.int64]) -> NDArray[np.float64]:
        """The mean loss of this model on the samples of each of these UEs."""
        ...

    def evaluate(self, params: Params) -> Evaluation:
        """Accuracy and mean loss on the test samples."""
        ...

    def objective(self, params: Params) -> float:
        """P(w) of Eq. 1 on the training samples of all UEs."""
        ...
