"""How often a family of tests in which nothing is true shows something; 5% is meant.

``python -m benchmarks.families``: single-step max-t as `agewise.statistics.correct` has it at any
number of seeds, beside a multivariate t with one variance for all tests.
"""

import numpy as np
from numpy.typing import NDArray

from agewise import statistics

_TESTS, _EXPERIMENTS, _DRAWS = 19, 2000, 5000


def _multivariate_t(gaps: NDArray[np.float64], rng: np.random.Generator) -> float:
    """The critical value of the largest |t| if all tests had one variance."""
    apart = gaps - gaps.mean(axis=0)
    apart /= np.sqrt((apart**2).sum(axis=0))
    drawn = np.abs(rng.standard_normal((_DRAWS, len(gaps))) @ apart).max(axis=1)
    spread = np.sqrt(rng.chisquare(len(gaps) - 1, _DRAWS) / (len(gaps) - 1))
    return float(np.quantile(drawn / spread, 0.95))


def shares(seeds: int, together: float = 0.0) -> tuple[float, float]:
    """The share of experiments with a false claim: by max-t, and by the multivariate t."""
    rng, shown = np.random.default_rng(1), np.zeros(2)
    for _ in range(_EXPERIMENTS):
        shared, own = rng.standard_normal((seeds, 1)), rng.standard_normal((seeds, _TESTS))
        gaps = together**0.5 * shared + (1 - together) ** 0.5 * own
        found = [statistics.contrast(column, np.zeros(seeds)) for column in gaps.T]
        p_values, _ = statistics._max_t(np.array([each.p for each in found]), gaps)
        t = np.abs(gaps.mean(axis=0) / gaps.std(axis=0, ddof=1)) * seeds**0.5
        shown += p_values.min() < 0.05, t.max() > _multivariate_t(gaps, rng)
    one, other = shown / _EXPERIMENTS
    return float(one), float(other)


if __name__ == "__main__":
    statistics._DRAWS = _DRAWS
    for seeds in (5, 10, 20):
        one, other = shares(seeds)
        print(f"{seeds} seeds, {_TESTS} tests: {one:.1%} by max-t, {other:.1%} with one variance")
