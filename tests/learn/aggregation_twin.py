"""The slow twins of aggregation: each rule as it is published, NumPy in double, sharing no code.

A twin is called with every round so far, as a list of ``{ue: update}``, and works out from all of
them what the model moves by in the last one.
"""

import numpy as np


def weighted_mean(updates, sizes):
    """FedAvg: the sum of |D_k| u_k over the sum of |D_k|."""
    whole = sum(sizes[ue] for ue in updates)
    return sum(sizes[ue] / whole * update for ue, update in updates.items())


def last_updates(history):
    """The last update of each UE, and the rounds that have passed since."""
    last = {}
    for t, updates in enumerate(history):
        last.update({ue: (update, t) for ue, update in updates.items()})
    return {ue: (update, len(history) - 1 - t) for ue, (update, t) in last.items()}


def average(history, sizes):
    return weighted_mean(history[-1], sizes) if history[-1] else 0.0


def memory(history, sizes, rate):
    """MIFA with weights |D_k| exp(-rate age), over the UEs that were ever heard."""
    last = last_updates(history)
    if not last:
        return 0.0
    weights = {ue: sizes[ue] * np.exp(-rate * age) for ue, (_, age) in last.items()}
    whole = sum(weights.values())
    return sum(weights[ue] / whole * update for ue, (update, _) in last.items())


def with_steps(rule, history, sizes, steps):
    """MIFA and FedVARP as published: G = u / eta of its round, and eta of now times what it makes.

    ``steps[t]`` are the step sizes.
    """
    gradients = [
        {ue: update / step for ue, update in updates.items()}
        for updates, step in zip(history, steps, strict=True)
    ]
    return steps[-1] * rule(gradients, sizes)


def agreed_rate(history):
    """Minus the logarithm of what an update keeps in a round, from all pairs of updates."""
    inner = squares = rounds = 0.0
    for t, updates in enumerate(history):
        before = last_updates(history[:t])
        pairs = [(new, *before[ue]) for ue, new in updates.items() if ue in before]
        if pairs:
            inner, squares, rounds = 0.9 * inner, 0.9 * squares, 0.9 * rounds
        for new, old, age in pairs:
            inner += new @ old
            squares += old @ old
            rounds += (age + 1) * (old @ old)
    if squares == 0.0:
        return 0.0
    return -np.log(min(max(inner / squares, 1e-3), 1.0)) * squares / rounds


def memory_by_agreement(history, sizes):
    """`memory` with the rate that was known before each round that has passed since."""
    last = last_updates(history)
    if not last:
        return 0.0
    rates = [agreed_rate(history[:t]) for t in range(len(history))]
    weights = {
        ue: sizes[ue] * np.exp(-sum(rates[len(rates) - age :])) for ue, (_, age) in last.items()
    }
    whole = sum(weights.values())
    return sum(weights[ue] / whole * update for ue, (update, _) in last.items())


def variance_reduced(history, sizes):
    """FedVARP, Algorithm 2, with means weighted by |D_k|; the memory of who was not heard is 0."""
    updates, before = history[-1], last_updates(history[:-1])
    if not updates:
        return 0.0
    zero = np.zeros_like(next(iter(updates.values())))
    remembered = {ue: before[ue][0] if ue in before else zero for ue in range(len(sizes))}
    corrected = {ue: update - remembered[ue] for ue, update in updates.items()}
    return weighted_mean(remembered, sizes) + weighted_mean(corrected, sizes)


def momentum(history, sizes, beta, step):
    """FedAvgM: the sum of beta^n times the mean update n rounds before."""
    heard = [weighted_mean(updates, sizes) for updates in history if updates]
    if not history[-1]:
        return 0.0
    return step * sum(beta**n * mean for n, mean in enumerate(reversed(heard)))


def adam(history, sizes, beta_1, beta_2, step, tau):
    """FedAdam: Reddi et al., Algorithm 2, with v = tau^2 before the first round."""
    if not history[-1]:
        return 0.0
    m, v = 0.0, tau**2
    for mean in (weighted_mean(updates, sizes) for updates in history if updates):
        m = beta_1 * m + (1 - beta_1) * mean
        v = beta_2 * v + (1 - beta_2) * mean**2
    return step * m / (np.sqrt(v) + tau)
