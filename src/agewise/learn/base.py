"""What a learner is, and what its kinds share."""

from collections.abc import Callable
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from agewise.core.linear import Cohort, Descent
from agewise.core.samples import Rows, rows_of
from agewise.data import Dataset, Partition, Samples
from agewise.learn.threads import in_chunks
from agewise.random import Streams
from agewise.records import Evaluation as Evaluation
from agewise.scenario import Learn, NoPenalty, Proximal

Params = NDArray[np.float32]

#: Samples whose losses are added up together in evaluation, whichever thread does it.
_PART: Final = 128
#: In the order of the kernels' codes.
PENALTIES: Final = ("none", "l2", "l1")


class Learner(Protocol):
    """A model, the samples of every UE, and local learning.

    A model is one flat float32 vector, so that averaging, compression and transport need not
    know what it means.
    """

    @property
    def sizes(self) -> NDArray[np.int64]:
        """``|D_k|``: the number of samples of each UE."""
        ...

    def init(self, streams: Streams) -> Params:
        """The initial model w^0."""
        ...

    def train(
        self,
        params: Params,
        ues: NDArray[np.int64],
        t: int,
        streams: Streams,
        corrections: Params | None = None,
    ) -> Params:
        """``[len(ues), len(params)]``: the model of each of these UEs after its local steps.

        What a UE does depends on the model, the round ``t``, the UE, the seed and its correction
        alone. A local step of UE k goes against ``gradient + mu (w - params) + corrections[k]``:
        mu is `proximal_weight` of the settings, and without ``corrections[len(ues),
        len(params)]`` there are none (`agewise.learn.local`).
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


class LearnerKind(Protocol):
    """What makes the learners of one kind of ``learn.model``: a class with these two methods."""

    def of(self, dataset: Dataset, partition: Partition, settings: Learn) -> Learner:
        """A learner of this data set with these samples on each UE."""
        ...

    def length(self, dataset: Dataset, settings: Learn) -> int:
        """How many numbers a model of this data set has."""
        ...


def proximal_weight(settings: Learn) -> float:
    """mu, the weight of the proximal term; 0 without one."""
    return settings.local.mu if isinstance(settings.local, Proximal) else 0.0


def descent_of(settings: Learn) -> Descent:
    """Local SGD with these settings, as the kernels take it."""
    penalty = settings.penalty
    weight = 0.0 if isinstance(penalty, NoPenalty) else penalty.weight
    code = PENALTIES.index(penalty.kind)
    steps, batch = settings.local_steps, settings.batch_size
    return Descent(code, weight, steps, batch, proximal_weight(settings))


def cohort_of(ues: NDArray[np.int64], corrections: Params | None, chunk: slice) -> Cohort:
    """A chunk of the UEs that train, with their corrections, as the kernels take it."""
    if corrections is None:
        return Cohort(ues[chunk], np.empty((0, 0), np.float32))
    return Cohort(ues[chunk], np.ascontiguousarray(corrections[chunk], np.float32))


def parts_of(rows: Rows) -> NDArray[np.int64]:
    """``int64[part, (first row, one behind the last)]`` of parts of equal size."""
    cuts = np.append(np.arange(0, rows.labels.size, _PART), rows.labels.size)
    return np.stack((cuts[:-1], cuts[1:]), axis=1)


def measure_parts(
    measure: Callable[[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]], object],
    parts: NDArray[np.int64],
    classes: int,
    entries: float,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """``float64[part]``: the sum of losses of each part of the samples; rightly classified.

    ``parts[i]`` are the first row of a part and the one behind its last. ``measure`` fills the
    losses of some parts, and adds to what is classified rightly. The second result is
    ``int64[class]``, over all parts. A sample costs ``entries``.
    """
    losses = np.empty(len(parts))
    right: list[NDArray[np.int64]] = []

    def work(chunk: slice) -> None:
        found = np.zeros(classes, np.int64)
        measure(parts[chunk], losses[chunk], found)
        right.append(found)

    samples = float((parts[:, 1] - parts[:, 0]).sum())
    in_chunks(work, len(parts), samples * entries)
    return losses, np.sum(right, axis=0)


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
