"""Lazy, eager and plain Python make the same decisions; the paper's special cases hold."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings

from agewise.spectrum import Auction, Greedy, Uplink, fill
from benchmarks.eager import pack_eagerly
from tests import reference
from tests.cells import cells, draw_gains

pack = Greedy().pack


@dataclass(frozen=True)
class OneExponent(Auction):
    exponents = (1.0,)


def assert_same_decisions(gains, weights, rank, budget, threshold):
    uplink = Uplink(np.array(gains), budget, threshold)
    lazy = pack(uplink, weights, rank)
    lazy.validate(np.array(gains))
    eager_owner, eager_power, _ = pack_eagerly(
        uplink.gains, np.array(weights, float), np.array(rank), uplink.power_budget,
        uplink.rate_threshold,
    )  # fmt: skip
    owner, power = reference.pack(gains, weights, rank, budget, threshold)
    assert lazy.owner.tolist() == eager_owner.tolist() == owner
    np.testing.assert_array_equal(lazy.power, eager_power)
    np.testing.assert_allclose(lazy.power, power, rtol=1e-9, atol=1e-12 * np.max(budget))
    return lazy


@given(cells())
@settings(max_examples=600)
def test_lazy_eager_and_twin_agree_on_odd_cells(cell):
    assert_same_decisions(*cell)


@pytest.mark.parametrize("threshold", [0.0, 0.5, 1.0, 2.0, 4.0, 6.0, 1000.0])
@pytest.mark.parametrize("edge_snr_db", [-10, 0, 10, 20])
def test_lazy_eager_and_twin_agree_on_paper_like_cells(edge_snr_db, threshold):
    rng = np.random.default_rng([edge_snr_db + 100, int(threshold * 10)])
    sizes = ((1, 1), (1, 6), (6, 1), (3, 12), (25, 10), (40, 20))
    for ues, subchannels in sizes:
        for weights in (np.ones(ues), np.sqrt(rng.integers(0, 12, ues)), np.zeros(ues)):
            gains = draw_gains(rng, ues, subchannels, edge_snr_db)
            lazy = assert_same_decisions(
                gains.tolist(), weights.tolist(), rng.permutation(ues).tolist(), 1.0, threshold
            )
            if threshold == 1000.0:
                assert not lazy.scheduled.any()
            if threshold == 0.0:
                assert lazy.scheduled.sum() == min(ues, subchannels)


@given(cells())
@settings(max_examples=500)
def test_fill_agrees_with_twin(cell):
    gains, _, order, budget, threshold = cell
    filled = fill(Uplink(np.array(gains), budget, threshold), order)
    filled.validate(np.array(gains))
    owner, _ = reference.fill(gains, order, budget, threshold)
    assert filled.owner.tolist() == owner


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (1, 1)])
def test_smallest_sizes(shape):
    uplink = Uplink(np.ones(shape), 3.0, 1.0)
    owners = [0] * shape[1] if shape == (1, 1) else [-1] * shape[1]
    assert pack(uplink, np.ones(shape[0])).owner.tolist() == owners
    assert fill(uplink, np.arange(shape[0])).owner.tolist() == owners


def test_score_then_fewer_subchannels_then_rank():
    """UE 0 needs two subchannels for weight 2, UEs 1 and 2 one for weight 1: all score 1."""
    gains = np.array([[1.0, 1.0], [3.0, 0.0], [3.0, 0.0]])
    uplink = Uplink(gains, 1.0, 0.58)
    assert pack(uplink, [2.0, 1.0, 1.0]).owner.tolist() == [1, -1]
    assert pack(uplink, [2.0, 1.0, 1.0], rank=[0, 2, 1]).owner.tolist() == [2, -1]
    assert pack(uplink, [2.1, 1.0, 1.0]).owner.tolist() == [0, 0]


def equal_scores(most_age=120, most_need=6):
    """(age, need) twice, where 2 sqrt(age) / need is the same number but not the same float."""
    pairs = [(age, need) for age in range(1, most_age + 1) for need in range(1, most_need + 1)]
    for (age, need), (other_age, other_need) in itertools.combinations(pairs, 2):
        same = age * other_need**2 == other_age * need**2
        if same and 2 * math.sqrt(age) / need != 2 * math.sqrt(other_age) / other_need:
            yield (age, need), (other_age, other_need)


def needing(counts):
    """Gains and a threshold with which UE k needs ``counts[k]`` subchannels, each on all of them.

    n equal subchannels of gain g carry n/2 log2(1 + g/n): g is what n of them need for 1 bit.
    """
    gains = [[n * (4 ** (1 / n) - 1) * (1 + 1e-6)] * max(counts) for n in counts]
    return gains, 1.0


def test_scores_that_differ_by_rounding_alone_are_equal():
    cases = list(equal_scores())
    assert len(cases) > 10
    for (age, need), (other_age, other_need) in cases:
        gains, threshold = needing((need, other_need))
        weights = [2 * math.sqrt(age), 2 * math.sqrt(other_age)]
        first = int(other_need < need)
        for ues in ([0, 1], [1, 0]):
            rows = [gains[ue] for ue in ues]
            packed = assert_same_decisions(
                rows, [weights[ue] for ue in ues], [0, 1], 1.0, threshold
            )
            assert packed.scheduled[ues.index(first)]
            assert packed.owner[0] == ues.index(first)
            priced = OneExponent(price_rounds=0).pack(
                Uplink(np.array(rows), 1.0, threshold), [weights[ue] for ue in ues]
            )
            assert priced.scheduled[ues.index(first)]


def test_scores_that_differ_by_more_than_rounding_are_not_equal():
    gains, threshold = needing((2, 1))
    for more, first in ((1e-11, 0), (1e-13, 1), (0.0, 1), (-1e-13, 1)):
        packed = assert_same_decisions(gains, [2.0 + 2 * more, 1.0], [0, 1], 1.0, threshold)
        assert packed.scheduled.tolist() == [first == 0, first == 1]


def test_equal_ranks_go_by_index():
    uplink = Uplink(np.full((3, 2), 3.0), 1.0, 1.0)
    assert pack(uplink, [1.0, 1.0, 1.0], rank=[0, 0, 0]).owner.tolist() == [0, 1]


def test_equal_gains_go_to_the_lowest_subchannels():
    assert pack(Uplink(np.full((1, 4), 1.0), 1.0, 0.55), [1.0]).owner.tolist() == [0, 0, -1, -1]


def test_extra_memory_is_linear():
    """No copy of the gains, nor anything of their size, is made."""
    import tracemalloc

    gains = np.random.default_rng(0).exponential(size=(20_000, 64))
    pack(Uplink(gains[:10], 10.0, 2.0), np.ones(10))  # loads the kernels
    tracemalloc.start()
    uplink = Uplink(gains, 10.0, 2.0)
    pack(uplink, np.ones(20_000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < gains.nbytes / 4


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], "one entry for each of the 2 UEs"),
        ([1.0, -1.0], "UE 1 is -1"),
        ([np.nan, 1.0], "UE 0 is nan"),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        pack(Uplink(np.ones((2, 3)), 1.0, 1.0), weights)


def test_bad_order_and_rank():
    uplink = Uplink(np.ones((2, 3)), 1.0, 1.0)
    with pytest.raises(ValueError, match="at most once: entry 1 is UE 0"):
        fill(uplink, [0, 0])
    with pytest.raises(ValueError, match="from 0 to 1.*entry 0 is UE 2"):
        fill(uplink, [2])
    with pytest.raises(ValueError, match="order must hold whole numbers, not float64"):
        fill(uplink, [1.9, 0.1])
    with pytest.raises(ValueError, match="rank must hold whole numbers, not float64"):
        pack(uplink, [1.0, 1.0], rank=[0.9, 0.1])
    with pytest.raises(ValueError, match="rank must have"):
        pack(uplink, [1.0, 1.0], rank=[0])
