"""Budgets and thresholds of UEs that differ: what an uplink takes, and what packing makes of it."""

import math

import numpy as np
import pytest

from agewise import schedule
from agewise.spectrum import (
    Auction,
    Exact,
    Greedy,
    InOrder,
    Uplink,
    fewest_subchannels,
    fill,
    solve,
)
from tests import reference
from tests.cells import draw_gains


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_a_bad_budget_names_its_ue(bad):
    with pytest.raises(
        ValueError, match="power budget must be positive and finite: that of UE 2 is"
    ):
        Uplink(np.ones((3, 2)), [1.0, 2.0, bad], 1.0)


@pytest.mark.parametrize("bad", [-1.0, math.nan, -math.inf])
def test_a_bad_threshold_names_its_ue(bad):
    with pytest.raises(ValueError, match="rate_threshold must be non-negative: that of UE 1 is"):
        Uplink(np.ones((3, 2)), 1.0, np.array([1.0, bad, 0.0]))


def test_all_arrays_are_read_only():
    """What fits is taken without a copy, and stays the caller's to write to."""
    power, threshold = np.array([1.0, 2.0, 3.0]), [1, 2, 3]
    uplink = Uplink(np.ones((3, 2)), power, threshold)
    assert np.shares_memory(uplink.power_budget, power)
    assert uplink.rate_threshold.tolist() == [1.0, 2.0, 3.0]
    assert Uplink(np.ones((3, 2)), 4, 0.5).power_budget.tolist() == [4.0] * 3
    for values in (uplink.gains, uplink.power_budget, uplink.rate_threshold):
        assert values.dtype == np.float64
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 9.0
    again = Uplink(uplink.gains, uplink.power_budget, uplink.rate_threshold)
    assert again.power_budget is uplink.power_budget
    power[0] = 5.0
    strided = Uplink(np.ones((3, 2)), np.arange(1.0, 7.0)[::2], 1.0)
    assert strided.power_budget.tolist() == [1.0, 3.0, 5.0]


def test_an_infinite_threshold_is_as_gains_of_zero():
    gains = np.full((3, 2), 1e300)  # too large for any budget above 1, were they of use
    gains[1:] = [[3.0, 1.0], [2.0, 2.0]]
    uplink = Uplink(gains, [9.0, 1.0, 1.0], [math.inf, 0.5, 0.5])
    assert uplink.gains.tolist() == [[0.0, 0.0], [3.0, 1.0], [2.0, 2.0]]
    assert uplink.best_gains.tolist() == [0.0, 3.0, 2.0]
    assert uplink.needs()[0].tolist() == [0, 1, 1]
    assert gains[0, 0] == 1e300


@pytest.mark.parametrize("seed", range(5))
def test_one_subchannel_serves_a_ue_if_half_the_logarithm_reaches_its_threshold(seed):
    rng = np.random.default_rng(seed)
    gains = rng.exponential(size=(200, 1)) * 10 ** rng.uniform(-2, 3, (200, 1))
    power, threshold = 10 ** rng.uniform(-1, 1, 200), rng.uniform(0, 4, 200)
    reached = 0.5 * np.log2(1 + gains[:, 0] * power) >= threshold
    assert 20 < reached.sum() < 180
    assert (Uplink(gains, power, threshold).needs()[0] > 0).tolist() == reached.tolist()


def test_the_bound_on_the_need_excludes_nothing():
    """`needs` looks for no bound; on equal gains it is tight, for n carry n/2 log2(1 + snr / n)."""
    rng = np.random.default_rng(6)
    for trial in range(600):
        subchannels, count = rng.integers(1, 300), rng.integers(1, 300)
        snr, power = 10 ** rng.uniform(-14, 6), 10 ** rng.uniform(-3, 3)
        gains = np.full((1, subchannels), snr / power)
        if trial % 2:
            gains *= rng.exponential(size=gains.shape)
        threshold = count / 2 * math.log1p(snr / count) / math.log(2)
        found = fewest_subchannels(gains[0], power, threshold)
        need = Uplink(gains, power, threshold).needs()[0][0]
        assert need == (0 if found is None else found.size)


@pytest.mark.parametrize("packing", [Greedy(), InOrder(), Auction(), Exact()])
def test_budgets_and_gains_that_give_the_same_snr_give_the_same_owners(packing):
    rng = np.random.default_rng(7)
    for _ in range(15):
        gains, weights, rank = draw_gains(rng, 30, 10, 5.0), rng.random(30), rng.permutation(30)
        threshold, factor = rng.uniform(0.5, 4.0, 30), 10 ** rng.uniform(-3, 3, 30)
        plain = packing.pack(Uplink(gains, 1.0, threshold), weights, rank)
        uplink = Uplink(gains / factor[:, np.newaxis], factor, threshold)
        scaled = packing.pack(uplink, weights, rank)
        scaled.validate(uplink)
        assert scaled.owner.tolist() == plain.owner.tolist()
        np.testing.assert_allclose(scaled.power, plain.power * np.append(factor, 0)[plain.owner])


def mixed_cell(rng, ues, subchannels):
    """Gains, weights, budgets and thresholds in which every UE differs from all others."""
    gains = draw_gains(rng, ues, subchannels, rng.uniform(-10, 15))
    return gains, rng.random(ues), 10 ** rng.uniform(-1, 1, ues), rng.uniform(0.1, 4.0, ues)


@pytest.mark.parametrize("seed", range(10))
def test_cells_of_ues_that_differ_are_packed_as_the_slow_twin_packs_them(seed):
    rng = np.random.default_rng([11, seed])
    for ues, subchannels in ((1, 1), (6, 1), (3, 12), (25, 10), (40, 20)):
        gains, weights, power, threshold = mixed_cell(rng, ues, subchannels)
        uplink, order = Uplink(gains, power, threshold), rng.permutation(ues)
        given = gains.tolist(), power.tolist(), threshold.tolist()
        for packed, twin in (
            (Greedy().pack(uplink, weights, order),
             reference.pack(given[0], weights.tolist(), order.tolist(), *given[1:])),
            (fill(uplink, order), reference.fill(given[0], order.tolist(), *given[1:])),
        ):  # fmt: skip
            packed.validate(uplink)
            assert packed.owner.tolist() == twin[0]
            np.testing.assert_allclose(packed.power, twin[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_the_optimum_of_ues_that_differ_is_that_of_enumeration(seed):
    rng = np.random.default_rng([12, seed])
    for ues, subchannels in ((2, 5), (4, 4), (5, 5), (3, 6), (7, 4)):
        gains, weights, power, threshold = mixed_cell(rng, ues, subchannels)
        uplink = Uplink(gains, power, threshold)
        best, auction = solve(uplink, weights), Auction().pack(uplink, weights)
        for allocation in (best.allocation, auction):
            allocation.validate(uplink)
        given = gains.tolist(), weights.tolist(), power.tolist(), threshold.tolist()
        assert best.proven
        assert best.value == pytest.approx(reference.best_value(*given), rel=1e-9)
        assert weights[auction.scheduled].sum() <= best.value * (1 + 1e-9)


def test_larger_cells_of_ues_that_differ_are_proven():
    rng = np.random.default_rng(13)
    for _ in range(5):
        gains, weights, power, threshold = mixed_cell(rng, 60, 15)
        uplink = Uplink(gains, power, threshold)
        best = solve(uplink, weights)
        best.allocation.validate(uplink)
        assert best.proven
        for packing in (Greedy(), Auction()):
            assert weights[packing.pack(uplink, weights).scheduled].sum() <= best.value + 1e-9


def test_one_call_takes_a_budget_and_a_threshold_of_each_ue():
    gains, ages = np.array([[1.0], [1.0], [1.0]]), [1, 2, 3]
    made = schedule(gains, ages, power=[3.0, 3.0, 1.0], rate_threshold=[1.0, 1.0, 1.0])
    assert made.owner.tolist() == [1]
    made = schedule(gains, ages, power=[3.0, 3.0, 1.0], rate_threshold=[1.0, np.inf, 0.5])
    assert made.owner.tolist() == [2]
    with pytest.raises(
        ValueError, match="power budget must be positive and finite: that of UE 1 is -3"
    ):
        schedule(gains, ages, power=[3.0, -3.0, 1.0], rate_threshold=1.0)
