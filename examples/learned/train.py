"""Train the learned policy of the package: evolution strategies on the ages of the preset paper.

    pip install 'agewise[gym]'
    python examples/learned/train.py scorer.npz
    agewise traffic paper --policy learned:path=scorer.npz --rounds 2000

Evolution strategies (Salimans et al. 2017) need no gradients: perturbed scorers play an episode
each, in pairs of opposite perturbations on the same channels, and the weights move towards those
that kept the ages low.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agewise import Scenario
from agewise.gym import SchedulingEnv
from agewise.policies import FEATURES, Scorer

STEPS, PAIRS, ROUNDS, BURN_IN = 60, 8, 150, 30
UNITS, DEVIATION, STEP_SIZE, MOMENTUM = 8, 0.1, 0.05, 0.8
#: What varies in an episode without learning and losses: the rest of the features gets no weight.
VARYING = ("age", "need", "best SNR in dB")
#: Seeds of episodes in training and between: none that documents or tests compare policies on.
TRAINING, VALIDATION = 1_000_000, (2_000_000, 2_000_001)


def first_scorer(rng: np.random.Generator) -> Scorer:
    """Score (1 + age)^2, as policies from theory do, with small weights everywhere else."""
    shape = UNITS, len(FEATURES)
    weights, context = 0.1 * rng.standard_normal((2, *shape)) * np.isin(FEATURES, VARYING)
    output = np.zeros(UNITS)
    weights[0], context[0], output[0] = 0.0, 0.0, 2.0
    weights[0, FEATURES.index("age")] = 1.0
    return Scorer(weights, context, np.zeros(UNITS), output)


def flat(scorer: Scorer) -> NDArray[np.float64]:
    """All weights in a row."""
    return np.concatenate([array.ravel() for array in scorer])


def unflat(numbers: NDArray[np.float64], like: Scorer) -> Scorer:
    """The weights of a row."""
    parts = np.split(numbers, np.cumsum([array.size for array in like])[:-1])
    return Scorer(*(part.reshape(of.shape) for part, of in zip(parts, like, strict=True)))


def mean_age(env: SchedulingEnv, scorer: Scorer, seed: int) -> float:
    """The mean age in an episode, after its first rounds."""
    observation, _ = env.reset(seed=seed)
    rewards, is_over = [], False
    while not is_over:
        observation, reward, _, is_over, _ = env.step(scorer.scores(observation))
        rewards.append(reward)
    return -float(np.mean(rewards[BURN_IN:]))


def train(steps: int = STEPS, rounds: int = ROUNDS) -> Iterator[tuple[int, Scorer]]:
    """Every tenth step, from 0, and the scorer after it."""
    rng = np.random.default_rng(0)
    env = SchedulingEnv(Scenario.preset("paper").with_(**{"run.rounds": rounds}))
    scorer = first_scorer(rng)
    numbers, velocity = flat(scorer), 0.0
    varying = np.tile(np.isin(FEATURES, VARYING).astype(np.float64), (UNITS, 1))
    free = flat(Scorer(varying, varying, np.ones(UNITS), np.ones(UNITS)))
    yield 0, scorer
    for step in range(steps):
        noises = rng.standard_normal((PAIRS, numbers.size)) * free
        older = np.empty(PAIRS)
        for pair, noise in enumerate(noises):
            seed = TRAINING + step * PAIRS + pair
            both = (unflat(numbers + sign * DEVIATION * noise, scorer) for sign in (1, -1))
            ages = [mean_age(env, one, seed) for one in both]
            older[pair] = ages[0] - ages[1]
        # Differences in units of their size: a step is as long early as late.
        older /= max(float(np.abs(older).mean()), 1e-9)
        gradient = (older[:, np.newaxis] * noises).mean(axis=0)
        velocity = MOMENTUM * velocity + gradient
        numbers = numbers - STEP_SIZE * (1 - MOMENTUM) * velocity
        if (step + 1) % 10 == 0:
            yield step + 1, unflat(numbers, scorer)


if __name__ == "__main__":
    playground, curve = SchedulingEnv(Scenario.preset("paper").with_(**{"run.rounds": ROUNDS})), []
    for done, trained in train():
        curve.append(float(np.mean([mean_age(playground, trained, seed) for seed in VALIDATION])))
        print(f"step {done}: mean age {curve[-1]:.3f}", flush=True)
    provenance = f"examples/learned/train.py, mean ages while training: {curve}"
    trained.save(Path(sys.argv[1]), provenance)
