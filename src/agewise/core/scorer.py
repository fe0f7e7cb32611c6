"""Kernels of learned policies: what they see of the UEs, and the scores of a small perceptron."""

import math

import numpy as np

from agewise.core.elementary import exp, log, log1p
from agewise.core.jit import kernel

#: SNRs beyond this are shown as this, and so is the SNR of who cannot transmit, below 0.
MOST_DB = 100.0
#: A score is at most exp of this, and at least exp of the opposite.
_MOST_LOGARITHM = 50.0
#: Columns of the features: the SNR and the reliability; the others count something.
_SNR, _RELIABILITY = 2, 4


@kernel
def observe(ages, need, best_gains, power_budget, staleness, attempts, successes, data_sizes):
    """The features of each UE, ``[ue, feature]``, in the order of `agewise.policies.FEATURES`."""
    features = np.empty((ages.size, 6))
    for ue in range(ages.size):
        decibels = 10.0 / math.log(10.0) * log(best_gains[ue] * power_budget[ue])
        features[ue, 0] = ages[ue]
        features[ue, 1] = need[ue]
        features[ue, _SNR] = min(max(decibels, -MOST_DB), MOST_DB)
        features[ue, 3] = staleness[ue]
        features[ue, _RELIABILITY] = (successes[ue] + 1.0) / (attempts[ue] + 1.0)
        features[ue, 5] = data_sizes[ue]
    return features


@kernel
def score(features, weights, context, bias, output):
    """The score of each UE: exp of a perceptron with one hidden layer of ReLU.

    ``weights[unit, feature]`` weigh the UE's own features and ``context[unit, feature]`` their
    means over the UEs. Counts enter as log(1 + count), SNRs in units of 20 dB.
    """
    ues, count = features.shape
    inputs, means = np.empty((ues, count)), np.zeros(count)
    for ue in range(ues):
        for i in range(count):
            value = features[ue, i]
            if i == _SNR:
                value /= 20.0
            elif i != _RELIABILITY:
                value = log1p(value)
            inputs[ue, i] = value
            means[i] += value
    units = bias.size
    shared = bias.copy()
    for unit in range(units):
        for i in range(count):
            shared[unit] += context[unit, i] * (means[i] / ues)
    scores = np.empty(ues)
    for ue in range(ues):
        total = 0.0
        for unit in range(units):
            hidden = shared[unit]
            for i in range(count):
                hidden += weights[unit, i] * inputs[ue, i]
            total += output[unit] * max(hidden, 0.0)
        scores[ue] = exp(min(max(total, -_MOST_LOGARITHM), _MOST_LOGARITHM))
    return scores
