"""Compiled kernels of k-means by SGD.

The loss of a sample is half its squared distance to the nearest centre, so a step moves that
centre towards it. A model is ``[cluster, feature]``. Rows, keys and draws are those of the linear
kernels.
"""

import numpy as np
from numba import njit

from agewise.compiled import compiled
from agewise.learn.kernels import L1, L2
from agewise.core.random import below, subkey


@njit
def nearest(features, values, starts, unit, row, centres, lengths):
    """The nearest centre of a row, and half the squared distance to it."""
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
def squared_lengths(centres):
    """The squared length of each centre."""
    lengths = np.zeros(centres.shape[0])
    for cluster in range(centres.shape[0]):
        for feature in range(centres.shape[1]):
            lengths[cluster] += np.float64(centres[cluster, feature]) ** 2
    return lengths


@njit
def train_one(
    features, values, starts, unit, first, size, key, centres,
    penalty, penalty_weight, step_size, steps, batch,
):  # fmt: skip
    """``steps`` steps of SGD on one UE's samples, in place."""
    step = np.float32(step_size / batch)
    rate = np.float32(step_size * penalty_weight)
    rows, chosen = np.empty(batch, np.int64), np.empty(batch, np.int64)
    for s in range(steps):
        lengths = squared_lengths(centres)
        for j in range(batch):  # all at the same centres, before any of them moves
            rows[j] = first + below(key, s * batch + j, size)
            chosen[j], _ = nearest(features, values, starts, unit, rows[j], centres, lengths)
        counts = np.zeros(centres.shape[0], np.float32)
        for j in range(batch):
            counts[chosen[j]] += np.float32(1.0)
        for cluster in range(centres.shape[0]):
            kept = np.float32(1.0) - step * counts[cluster]
            for feature in range(centres.shape[1]):
                centre = centres[cluster, feature]
                pull = np.float32(0.0)
                if penalty == L2:
                    pull = rate * centre
                elif penalty == L1:
                    pull = rate * np.sign(centre)
                centres[cluster, feature] = kept * centre - pull
        for j in range(batch):
            for at in range(starts[rows[j]], starts[rows[j] + 1]):
                centres[chosen[j], features[at]] += step * (unit * values[at])


@compiled(nogil=True)
def train(
    features, values, starts, unit, offsets, ues, key, t, model,
    penalty, penalty_weight, step_size, steps, batch, trained,
):  # fmt: skip
    """``trained[i]``: the centres of ``ues[i]`` after its local steps."""
    for i in range(ues.size):
        ue = ues[i]
        trained[i] = model
        train_one(
            features, values, starts, unit, offsets[ue], offsets[ue + 1] - offsets[ue],
            subkey(subkey(key, t), ue), trained[i],
            penalty, penalty_weight, step_size, steps, batch,
        )  # fmt: skip


@compiled(nogil=True)
def assign(features, values, starts, unit, centres, chosen, losses):
    """The nearest centre of every row, and half the squared distance to it."""
    lengths = squared_lengths(centres)
    for row in range(chosen.size):
        chosen[row], losses[row] = nearest(features, values, starts, unit, row, centres, lengths)
