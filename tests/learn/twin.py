"""The slow twin of local learning: NumPy in double precision, dense, sharing no code."""

import itertools

import numpy as np

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def subkey(key, index):
    return mix(key ^ mix((index + GOLDEN) & MASK))


def drawn_rows(key, t, ue, count, size):
    """Which of its own samples a UE draws, in order."""
    own = subkey(subkey(key, t), ue)
    words = (mix((own + i * GOLDEN) & MASK) >> 32 for i in range(count))
    return [(word * size) >> 32 for word in words]


def signs(labels, outputs):
    """+1 for a sample's own class, -1 for the others; one output is +1 for class 1."""
    if outputs == 1:
        return np.where(labels[:, None] == 1, 1.0, -1.0)
    return np.where(labels[:, None] == np.arange(outputs), 1.0, -1.0)


def losses(loss, scores, labels):
    """The loss of each sample, from ``scores[sample, output]``."""
    y = signs(labels, scores.shape[1])
    margin = y * scores
    if loss == "hinge":
        return np.maximum(0, 1 - margin).sum(1)
    if loss == "squared-hinge":
        return (np.maximum(0, 1 - margin) ** 2).sum(1)
    if loss == "logistic":
        return np.logaddexp(0, -margin).sum(1)
    if loss == "squared-error":
        return 0.5 * ((scores - y) ** 2).sum(1)
    top = scores.max(1, keepdims=True)
    whole = np.log(np.exp(scores - top).sum(1)) + top[:, 0]
    return whole - scores[np.arange(len(labels)), labels]


def slopes(loss, scores, labels):
    """The derivative of `losses` by each score."""
    y = signs(labels, scores.shape[1])
    margin = y * scores
    if loss == "hinge":
        return np.where(margin < 1, -y, 0.0)
    if loss == "squared-hinge":
        return -2 * y * np.maximum(0, 1 - margin)
    if loss == "logistic":
        return -y / (1 + np.exp(margin))
    if loss == "squared-error":
        return scores - y
    shares = np.exp(scores - scores.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    shares[np.arange(len(labels)), labels] -= 1
    return shares


def penalty(kind, weights):
    if kind == "l2":
        return 0.5 * (weights**2).sum()
    return np.abs(weights).sum() if kind == "l1" else 0.0


def penalty_slope(kind, weights):
    if kind == "l2":
        return weights
    return np.sign(weights) if kind == "l1" else np.zeros_like(weights)


def penalty_weight(settings):
    return getattr(settings.penalty, "weight", 0.0)


def objective(settings, model, x, labels):
    """P(w) of Eq. 1; ``model`` is [feature + 1, output], the bias last."""
    mean = losses(settings.model.loss, x @ model[:-1] + model[-1], labels).mean()
    return mean + penalty_weight(settings) * penalty(settings.penalty.kind, model[:-1])


def local_sgd(settings, model, x, labels, key, t, ue):
    """Algorithm 3's inner loop for one UE with samples ``x``."""
    model = model.astype(np.float64).copy()
    steps, batch = settings.local_steps, settings.batch_size
    step = settings.step_size / (1 + settings.step_decay * t)
    rows = np.array(drawn_rows(key, t, ue, steps * batch, len(labels))).reshape(steps, batch)
    for chosen in rows:
        scores = x[chosen] @ model[:-1] + model[-1]
        slope = slopes(settings.model.loss, scores, labels[chosen]) / batch
        shrinking = penalty_weight(settings) * penalty_slope(settings.penalty.kind, model[:-1])
        model[:-1] -= step * (x[chosen].T @ slope + shrinking)
        model[-1] -= step * slope.sum(0)
    return model


def kmeans_sgd(settings, centres, x, key, t, ue):
    """Algorithm 3's inner loop for k-means."""
    centres = centres.astype(np.float64).copy()
    steps, batch = settings.local_steps, settings.batch_size
    step = settings.step_size / (1 + settings.step_decay * t)
    rows = np.array(drawn_rows(key, t, ue, steps * batch, len(x))).reshape(steps, batch)
    for chosen in rows:
        nearest = ((x[chosen][:, None] - centres) ** 2).sum(-1).argmin(1)
        slope = penalty_weight(settings) * penalty_slope(settings.penalty.kind, centres)
        for sample, cluster in zip(x[chosen], nearest, strict=True):
            slope[cluster] += (centres[cluster] - sample) / batch
        centres -= step * slope
    return centres


def layers_of(widths, model):
    """``[(weights[input, output], bias[output])]`` of a flat multilayer perceptron."""
    layers, at = [], 0
    for before, behind in itertools.pairwise(widths):
        layer = model[at : at + (before + 1) * behind].reshape(before + 1, behind)
        layers.append((layer[:-1], layer[-1]))
        at += layer.size
    assert at == model.size
    return layers


def mlp_scores(widths, model, x):
    """``[sample, class]`` of a multilayer perceptron, and the units of all layers before."""
    units = [x]
    for weights, bias in layers_of(widths, model)[:-1]:
        units.append(np.maximum(0.0, units[-1] @ weights + bias))
    weights, bias = layers_of(widths, model)[-1]
    return units[-1] @ weights + bias, units


def mlp_gradient(widths, model, x, labels):
    """The gradient of the mean loss, flat."""
    scores, units = mlp_scores(widths, model, x)
    slope = slopes("multinomial", scores, labels) / len(labels)
    parts = []
    for (weights, _), before in zip(
        reversed(layers_of(widths, model)), reversed(units), strict=True
    ):
        parts.append(np.vstack((before.T @ slope, slope.sum(0))).ravel())
        slope = (slope @ weights.T) * (before > 0)
    return np.concatenate(parts[::-1])


def mlp_weights(widths):
    """1 for each weight of a flat multilayer perceptron, and 0 for each bias."""
    return np.concatenate(
        [np.repeat([1.0, 0.0], [a * b, b]) for a, b in itertools.pairwise(widths)]
    )


def sgd(settings, gradient, model, size, draw, *, penalised, correction=0.0):
    """Local steps against ``gradient(model, rows)``, with the terms of the local objective.

    ``draw`` is (key, t, ue); ``penalised`` is 1 where the penalty applies.
    """
    start = model.astype(np.float64)
    model, steps = start.copy(), settings.local_steps
    step = settings.step_size / (1 + settings.step_decay * draw[1])
    rows = np.array(drawn_rows(*draw, steps * settings.batch_size, size)).reshape(steps, -1)
    mu = settings.proximal_weight
    for chosen in rows:
        pulled = penalty_weight(settings) * penalty_slope(settings.penalty.kind, model)
        slope = gradient(model, chosen) + pulled * penalised
        model = model - step * (slope + mu * (model - start) + correction)
    return model
