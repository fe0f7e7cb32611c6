"""Kernels of k-means by SGD.

The loss of a sample is half its squared distance to the nearest centre, so a step moves that
centre towards it. A model is ``[cluster, feature]``. Rows, keys and draws are those of the linear
kernels.
"""

import numpy as np

from agewise.core.jit import kernel, njit
from agewise.core.linear import L1, L2
from agewise.core.samples import draw_rows


@njit
def _nearest(rows, row, centres, lengths):
    """The nearest centre of a row, and half the squared distance to it."""
    features, values, starts, _, unit = rows
    own = 0.0
    for at in range(starts[row], starts[row + 1]):
        value = np.float64(unit * values[at])
        own += value * value
    best, least = 0, np.inf
    for cluster in range(centres.shape[0]):
        inner = 0.0
        for at in range(starts[row], starts[row + 1]):
            inner += np.float64(unit * values[at]) * centres[cluster, features[at]]
        squared = own - 2.0 * inner + lengths[cluster]
        if squared < least:
            best, least = cluster, squared
    return best, max(0.0, 0.5 * least)


@njit
def _squared_lengths(centres):
    """The squared length of each centre."""
    lengths = np.zeros(centres.shape[0])
    for cluster in range(centres.shape[0]):
        for feature in range(centres.shape[1]):
            lengths[cluster] += np.float64(centres[cluster, feature]) ** 2
    return lengths


@njit
def _train_one(rows, drawn, descent, step_size, centres):
    """SGD on the rows ``drawn[step * batch + sample]`` of one UE, in place."""
    features, values, starts, _, unit = rows
    penalty, batch = descent.penalty, descent.batch
    step = np.float32(step_size / batch)
    rate = np.float32(step_size * descent.penalty_weight)
    chosen = np.empty(batch, np.int64)
    for s in range(0, drawn.size, batch):
        lengths = _squared_lengths(centres)
        counts = np.zeros(centres.shape[0], np.float32)
        for j in range(batch):  # all at the same centres, before any of them moves
            chosen[j], _ = _nearest(rows, drawn[s + j], centres, lengths)
            counts[chosen[j]] += np.float32(1.0)
        for cluster in range(centres.shape[0]):
            kept = np.float32(1.0) - step * counts[cluster]
            for feature in range(centres.shape[1]):
                centre = centres[cluster, feature]
                slope = np.float32(0.0)
                if penalty == L2:
                    slope = rate * centre
                elif penalty == L1:
                    slope = rate * np.sign(centre)
                centres[cluster, feature] = kept * centre - slope
        for j in range(batch):
            row = drawn[s + j]
            for at in range(starts[row], starts[row + 1]):
                centres[chosen[j], features[at]] += step * (unit * values[at])


@kernel(nogil=True)
def train(rows, offsets, descent, key, cohort, starts, trained):
    """``trained[i]``: the centres of the cohort's UE i after its local steps."""
    for i in range(cohort.ues.size):
        count = descent.steps * descent.batch
        drawn = draw_rows(key, cohort.t[i], cohort.ues[i], offsets, count)
        trained[i] = starts[cohort.start[i]]
        _train_one(rows, drawn, descent, cohort.step_size[i], trained[i])


@kernel(nogil=True)
def assign(rows, first, centres, chosen, losses):
    """The nearest centre of each row from ``first`` on, and half the squared distance to it."""
    lengths = _squared_lengths(centres)
    for i in range(chosen.size):
        chosen[i], losses[i] = _nearest(rows, first + i, centres, lengths)
