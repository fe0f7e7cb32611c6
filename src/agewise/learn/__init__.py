"""Local learning on the UEs (Eq. 1, Algorithm 3) and what the access point makes of it."""

from typing import TYPE_CHECKING

from agewise.data import Dataset, Partition
from agewise.learn.average import average
from agewise.learn.base import Evaluation, Learner, Params
from agewise.learn.kmeans import KMeansLearner
from agewise.learn.lessons import lessons
from agewise.learn.linear import LinearLearner

if TYPE_CHECKING:
    from agewise.scenario import Learn

__all__ = [
    "Evaluation",
    "KMeansLearner",
    "Learner",
    "LinearLearner",
    "Params",
    "average",
    "lessons",
    "make_learner",
]


def make_learner(dataset: Dataset, partition: Partition, settings: "Learn") -> Learner:
    """The learner that a scenario describes."""
    if not partition.sizes.all():
        empty = int((partition.sizes == 0).argmax())
        raise ValueError(f"UE {empty} has no samples: every UE needs at least one")
    kind = KMeansLearner if settings.loss == "k-means" else LinearLearner
    return kind.of(dataset, partition, settings)
