"""What one policy did in one scenario."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agewise import statistics
from agewise.experiment import Measured
from agewise.optimality import Losses
from agewise.records import History
from agewise.suite.scenarios import CHECKPOINTS


@dataclass(frozen=True, eq=False)
class Measures:
    """``[seed]`` each, except ``curves[seed, round]`` and ``accuracy[seed, checkpoint]``.

    ``ues`` counts the updates that arrived in a round, and ``arrived`` is their share of those
    scheduled; ``ages`` are means over UEs and rounds, ``fairness`` is Jain's index of how often
    the updates of each UE arrived, ``loss`` the share of the optimal weight that a round lost.
    """

    seeds: list[int]
    curves: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    ues: NDArray[np.float64]
    arrived: NDArray[np.float64]
    ages: NDArray[np.float64]
    fairness: NDArray[np.float64]
    subchannels: NDArray[np.float64]
    loss: NDArray[np.float64]
    unproven: int

    @property
    def score(self) -> NDArray[np.float64]:
        """``[seed]``: the mean accuracy over the checkpoints."""
        return np.asarray(self.accuracy.mean(axis=1))


def measure(histories: Mapping[int, History], losses: Sequence[Losses]) -> Measures:
    """The measures of these runs."""
    measured = Measured.of(histories)
    return Measures(
        seeds=measured.seeds,
        curves=measured.accuracy,
        accuracy=np.stack([measured.at(point) for point in CHECKPOINTS], axis=1),
        ues=measured.ues_per_round,
        arrived=np.array([_arrived(one) for one in histories.values()]),
        ages=measured.age_mean,
        fairness=np.array([statistics.jain(one.participation) for one in histories.values()]),
        subchannels=np.array(
            [one.frame["subchannels_used"].to_numpy().mean() for one in histories.values()]
        ),
        loss=np.array([one.per_round for one in losses]),
        unproven=sum(len(one.rounds) - one.proven for one in losses),
    )


def _arrived(history: History) -> float:
    """The share of scheduled updates that arrived; 1 if there were none."""
    counts = [int(history.frame[name].list.len().sum()) for name in ("received", "scheduled")]
    return counts[0] / counts[1] if counts[1] else 1.0
