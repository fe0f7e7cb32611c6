"""Streams: independent of each other and of the order of drawing, and pinned."""

import numpy as np
import pytest

from agewise import Streams
from agewise.core.random import fold_in, randint


def test_streams_differ_by_seed_purpose_and_round_and_by_nothing_else():
    made = [
        (seed, t, Streams(seed).policy(t).integers(2**63)) for seed in (0, 1) for t in (0, 1, 2)
    ]
    fixed = [
        draw
        for seed in (0, 1)
        for draw in (
            Streams(seed).placement().integers(2**63),
            Streams(seed).partition().integers(2**63),
            Streams(seed).model().integers(2**63),
            *(Streams(seed).replay(t).integers(2**63) for t in (0, 1)),
            int(Streams(seed).channel),
            int(Streams(seed).sgd),
        )
    ]
    values = [value for *_, value in made] + fixed
    assert len(set(values)) == len(values)
    for seed, t, value in reversed(made):
        assert Streams(seed).policy(t).integers(2**63) == value


def test_draws_are_pinned():
    """Results of one version stay reproducible: a changed stream must be a decision."""
    streams = Streams(2020)
    drawn = [int(s.integers(10**6)) for s in (streams.placement(), streams.policy(3))]
    assert (*drawn, int(streams.channel), int(streams.sgd)) == (
        759733,
        41093,
        15990196956417779321,
        10239816613416895843,
    )


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1, 2**32, 2**64 + 3, 2**128 + 9, 10**60])
def test_streams_are_numpys_for_the_same_seed_sequence(seed):
    for t in (0, 1, 10**6):
        sequence = np.random.SeedSequence(seed, spawn_key=(3, t))
        expected = np.random.default_rng(sequence).integers(2**63, size=8)
        np.testing.assert_array_equal(Streams(seed).policy(t).integers(2**63, size=8), expected)
    key = np.random.SeedSequence(seed, spawn_key=(6, 0)).generate_state(1, np.uint64)[0]
    assert Streams(seed).sgd == key


def test_kernel_draws_are_uniform_and_independent_of_neighbours():
    """Chi-squared over cells, for counts, rounds and UEs next to each other."""
    key = np.uint64(12345)
    cells, draws = 50, 50_000
    by_count = [randint(key, np.int64(n), cells) for n in range(draws)]
    by_round = [randint(np.uint64(fold_in(key, t)), 0, cells) for t in range(draws)]
    by_ue = [
        randint(np.uint64(fold_in(np.uint64(fold_in(key, 7)), ue)), 3, cells) for ue in range(draws)
    ]
    for drawn in (by_count, by_round, by_ue):
        counts = np.bincount(drawn, minlength=cells)
        statistic = ((counts - draws / cells) ** 2 / (draws / cells)).sum()
        assert 24 < statistic < 86  # the 0.1% and 99.9% points of chi-squared(49) are 23.98, 85.35
        pairs = np.corrcoef(drawn[:-1], drawn[1:])[0, 1]
        assert abs(pairs) < 4 / np.sqrt(draws)


@pytest.mark.parametrize("seed", [-1, 1.5, "x", None])
def test_bad_seeds(seed):
    with pytest.raises(ValueError, match="seed must be a whole number of at least 0, not"):
        Streams(seed)
