"""The baseline: federated averaging of a linear SVM as a plain, parallel Numba loop.

Dense float32 rows, one thread per client, fast mathematics, no scheduling and no records: what a
researcher would write by hand in an afternoon.
"""

import numpy as np
from numba import njit, prange


@njit(parallel=True, fastmath=True)
def train(x, labels, weights, bias, rows, models, biases, steps, batch, rate, kept):
    """Local steps of every client: ``rows[client, step, sample]`` says which samples it draws."""
    for client in prange(rows.shape[0]):
        own, offset = models[client], biases[client]
        own[:] = weights
        offset[:] = bias
        slopes = np.empty((batch, weights.shape[0]), np.float32)
        for step in range(steps):
            for sample in range(batch):
                row = rows[client, step, sample]
                for output in range(weights.shape[0]):
                    score = np.float32(0.0)
                    for feature in range(x.shape[1]):
                        score += own[output, feature] * x[row, feature]
                    y = np.float32(1.0) if labels[row] == output else np.float32(-1.0)
                    short = y * (score + offset[output]) < np.float32(1.0)
                    slopes[sample, output] = rate * y if short else np.float32(0.0)
            for output in range(weights.shape[0]):
                for sample in range(batch):
                    slope = slopes[sample, output]
                    shrink = kept if sample == 0 else np.float32(1.0)
                    if slope != 0 or sample == 0:
                        row = rows[client, step, sample]
                        for feature in range(x.shape[1]):
                            own[output, feature] = (
                                shrink * own[output, feature] + slope * x[row, feature]
                            )
                        offset[output] += slope


@njit(parallel=True, fastmath=True)
def count_right(x, labels, weights, bias):
    """How many samples are classified rightly."""
    right = 0
    for row in prange(x.shape[0]):
        best, answer = np.float32(-1e30), -1
        for output in range(weights.shape[0]):
            score = bias[output]
            for feature in range(x.shape[1]):
                score += weights[output, feature] * x[row, feature]
            if score > best:
                best, answer = score, output
        right += answer == labels[row]
    return right


class PlainLoop:
    """Rounds of the baseline on data whose clients hold equal, consecutive parts."""

    def __init__(self, train_part, test_part, clients, chosen, steps, batch, step, shrinkage):
        self.x, self.labels = train_part
        self.test = test_part
        self.clients, self.chosen, self.steps, self.batch = clients, chosen, steps, batch
        self.rate, self.kept = np.float32(step / batch), np.float32(1 - step * shrinkage)
        self.rng = np.random.default_rng(1)
        outputs = int(self.labels.max()) + 1
        self.weights = np.zeros((outputs, self.x.shape[1]), np.float32)
        self.bias = np.zeros(outputs, np.float32)
        self.models = np.empty((chosen, *self.weights.shape), np.float32)
        self.biases = np.empty((chosen, outputs), np.float32)

    def round(self):
        """Draw clients and samples, train, average."""
        size = len(self.labels) // self.clients
        picked = self.rng.choice(self.clients, self.chosen, replace=False)
        rows = self.rng.integers(0, size, (self.chosen, self.steps, self.batch))
        rows += (picked * size)[:, None, None]
        train(
            self.x, self.labels, self.weights, self.bias, rows, self.models, self.biases,
            self.steps, self.batch, self.rate, self.kept,
        )  # fmt: skip
        self.weights, self.bias = self.models.mean(0), self.biases.mean(0)

    def accuracy(self):
        """Test accuracy of the model as it is."""
        return count_right(*self.test, self.weights, self.bias) / len(self.test[1])
