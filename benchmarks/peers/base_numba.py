# mypy: ignore-errors
"""No framework: the loops written out by hand and compiled by Numba, clients in parallel.

This is what the task costs without scheduling, records or checks. The evaluation is a compiled
loop as well: the matrix product of NumPy would be slower here, because its threads and those of
Numba get in each other's way. The kernels are compiled anew in every process.
"""

import numba
import numpy as np

from benchmarks.peers import common


@numba.njit(parallel=True, fastmath=True)
def train(features, labels, weights, bias, rows, local_weights, local_bias, step, kept):
    """Local SGD of all clients of a round; ``rows[client, step, sample]`` says on what."""
    clients, steps, batch = rows.shape
    classes, width = weights.shape
    for k in numba.prange(clients):
        w, b = local_weights[k], local_bias[k]
        for j in range(classes):
            for d in range(width):
                w[j, d] = weights[j, d]
            b[j] = bias[j]
        pull = np.empty((batch, classes), np.float32)
        for t in range(steps):
            for i in range(batch):
                row = rows[k, t, i]
                x = features[row]
                for j in range(classes):
                    w_j = w[j]
                    score = np.float32(0)
                    for d in range(width):
                        score += w_j[d] * x[d]
                    sign = np.float32(1) if labels[row] == j else np.float32(-1)
                    inside = sign * (score + b[j]) < np.float32(1)
                    pull[i, j] = step * sign if inside else np.float32(0)
            for j in range(classes):
                w_j = w[j]
                for i in range(batch):
                    shrink = kept if i == 0 else np.float32(1)
                    if pull[i, j] != 0 or i == 0:
                        x = features[rows[k, t, i]]
                        for d in range(width):
                            w_j[d] = shrink * w_j[d] + pull[i, j] * x[d]
                        b[j] += pull[i, j]


@numba.njit(parallel=True, fastmath=True)
def accuracy_of(weights, bias, features, labels):
    """The share of samples whose label gets the highest score."""
    right = 0
    for r in numba.prange(features.shape[0]):
        x = features[r]
        best, label = np.float32(-1e30), -1
        for j in range(weights.shape[0]):
            w_j = weights[j]
            score = np.float32(0)
            for d in range(x.shape[0]):
                score += w_j[d] * x[d]
            score += bias[j]
            if score > best:
                best, label = score, j
        if label == labels[r]:
            right += 1
    return right / features.shape[0]


def main() -> None:
    """Measure."""
    steps, batch, _, step_size, penalty = common.chosen_workload()
    meter = common.Meter()
    features, labels = common.load("xtrain"), common.load("ytrain")
    test_features, test_labels = common.load("xtest"), common.load("ytest")
    rng = np.random.default_rng(1)
    weights = np.zeros((common.CLASSES, common.FEATURES), np.float32)
    bias = np.zeros(common.CLASSES, np.float32)
    local_weights = np.empty((common.COHORT, *weights.shape), np.float32)
    local_bias = np.empty((common.COHORT, *bias.shape), np.float32)
    step = np.float32(step_size / batch)
    kept = np.float32(1 - step_size * penalty)

    going = True
    while going:
        cohort = rng.choice(common.CLIENTS, common.COHORT, replace=False)
        rows = rng.integers(0, common.SAMPLES, (common.COHORT, steps, batch))
        rows += (cohort * common.SAMPLES)[:, None, None]
        train(features, labels, weights, bias, rows, local_weights, local_bias, step, kept)
        weights, bias = local_weights.mean(0), local_bias.mean(0)
        accuracy = None
        if meter.evaluation_is_due:
            accuracy = accuracy_of(weights, bias, test_features, test_labels)
        going = meter.after_round(accuracy)
    meter.finish(numba.__version__)


if __name__ == "__main__":
    main()
