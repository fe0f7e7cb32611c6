# mypy: ignore-errors
"""What a client of `peer_flwr` with a linear model does; imported once by each of Ray's workers.

Plain NumPy, so that the time of a round is the framework's much more than the client's.
"""

import numpy as np

from benchmarks.peers import common

WORKLOAD = common.chosen_workload()

_features = common.load("xtrain", mapped=True)
_labels = common.load("ytrain")
_signs = np.where(_labels[:, None] == np.arange(common.CLASSES), 1, -1).astype(np.float32)
_rng = np.random.default_rng()


def train(arrays, client: int):
    """Local SGD of one client: its weights and bias."""
    steps, batch, _, step_size, penalty = WORKLOAD
    weights, bias = (each.copy() for each in arrays)
    step = np.float32(step_size / batch)
    kept = np.float32(1 - step_size * penalty)
    first = common.rows_of(client).start
    for rows in _rng.integers(0, common.SAMPLES, (steps, batch)) + first:
        if batch == 1:
            x, signs = np.asarray(_features[rows[0]]), _signs[rows[0]]
        else:
            x, signs = np.asarray(_features[rows]), _signs[rows]
        inside = signs * (x @ weights + bias) < np.float32(1)
        pull = np.where(inside, signs, np.float32(0)) * step
        weights *= kept
        weights += x[:, None] * pull if batch == 1 else x.T @ pull
        bias += pull if batch == 1 else pull.sum(0)
    return [weights, bias]
