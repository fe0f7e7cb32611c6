"""What a learner is, and what its kinds share."""

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from agewise.core.linear import Descent
from agewise.core.samples import Rows, rows_of
from agewise.data import Samples
from agewise.random import Streams
from agewise.scenario import Learn, NoPenalty

Params = NDArray[np.float32]

#: In the order of the kernels' codes.
PENALTIES: Final = ("none", "l2", "l1")


@dataclass(frozen=True, eq=False)
class Evaluation:
    """How good a model is on the test samples: share classified rightly, mean loss.

    ``class_accuracy[class]`` is the share of the class's own test samples that are classified
    rightly, NaN where it has none.
    """

    accuracy: float
    loss: float
    class_accuracy: NDArray[np.float64]

    @classmethod
    def of(cls, right: NDArray[np.int64], samples: NDArray[np.int64], loss: float) -> "Evaluation":
        """From how many ``samples[class]`` there are and are classified ``right[class]``."""
        share = np.full(samples.size, np.nan)
        np.divide(right, samples, out=share, where=samples > 0)
        count = int(samples.sum())
        return cls(int(right.sum()) / count, loss / count, share)


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


def descent_of(settings: Learn) -> Descent:
    """Local SGD with these settings, as the kernels take it."""
    penalty = settings.penalty
    weight = 0.0 if isinstance(penalty, NoPenalty) else penalty.weight
    code = PENALTIES.index(penalty.kind)
    return Descent(code, weight, settings.local_steps, settings.batch_size)


def penalty_of(weights: NDArray[np.float64], settings: Learn) -> float:
    """The term xi r(w): half the squared length (l2), the sum of magnitudes (l1), or 0."""
    penalty = settings.penalty
    if isinstance(penalty, NoPenalty):
        return 0.0
    size = (
        0.5 * float((weights * weights).sum())
        if penalty.kind == "l2"
        else float(np.abs(weights).sum())
    )
    return penalty.weight * size


def sample_rows(samples: Samples, order: NDArray[np.int64] | None = None) -> Rows:
    """The samples as the kernels read them, in this order."""
    order = np.arange(len(samples)) if order is None else order
    return rows_of(samples.features, samples.labels, samples.unit, order)
