"""The exact optimum: against exhaustive search, against assignment, and its proof at limits."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import linear_sum_assignment

from agewise.core.exact import Quota, sets_within
from agewise.spectrum import Greedy, Uplink, solve
from agewise.spectrum._columns import Columns
from agewise.spectrum._search import ExactSearch
from tests import reference
from tests.cells import cells, draw_gains


def assert_optimal(gains, weights, budget, threshold, rank=None):
    uplink = Uplink(np.array(gains), budget, threshold)
    best = solve(uplink, weights, rank)
    best.allocation.validate(np.array(gains))
    value = math.fsum(np.asarray(weights)[best.allocation.scheduled])
    assert best.value == value == best.bound
    assert best.proven
    assert best.gap == 0.0
    expected = reference.best_value(gains, weights, budget, threshold)
    assert best.value == pytest.approx(expected, rel=1e-9, abs=0)
    return best


@given(cells(max_ues=5, max_subchannels=5))
@settings(max_examples=400)
def test_exhaustive_search_agrees_on_odd_cells(cell):
    gains, weights, rank, budget, threshold = cell
    assert_optimal(gains, weights, budget, threshold, rank)


@pytest.mark.parametrize("threshold", [0.3, 1.0, 2.0, 3.0, 4.0])
@pytest.mark.parametrize("edge_snr_db", [-10, 0, 10])
def test_exhaustive_search_agrees_on_paper_like_cells(edge_snr_db, threshold):
    rng = np.random.default_rng([edge_snr_db + 100, int(10 * threshold)])
    for ues, subchannels in ((2, 5), (4, 4), (5, 5), (3, 6)):
        gains = draw_gains(rng, ues, subchannels, edge_snr_db).tolist()
        for weights in (np.ones(ues), np.sqrt(rng.integers(0, 9, ues)), rng.integers(1, 5, ues)):
            assert_optimal(gains, weights.tolist(), 1.0, threshold)


def test_the_greedy_packing_can_be_half_the_optimum():
    """UE 0 takes the only subchannel that UE 1 could use, though another would have done."""
    uplink = Uplink(np.array([[4.0, 3.0], [3.0, 0.0]]), 1.0, 1.0)
    assert Greedy().pack(uplink, [1.0, 1.0]).owner.tolist() == [0, -1]
    assert solve(uplink, [1.0, 1.0]).allocation.owner.tolist() == [1, 0]


def test_a_heavy_weight_does_not_hide_the_light_ones():
    gains = np.array([[1000.0, 0, 0, 0], [0, 3, 7, 16], [0, 3, 3, 8], [0, 3, 3, 3]])
    best = solve(Uplink(gains, 1.0, 1.5), [1e10, 3, 1, 5])
    assert (best.value, best.bound, best.proven) == (1e10 + 5, 1e10 + 5, True)


@pytest.mark.parametrize("ratio", [1e9, 1e10, 1e12, 1e15])
def test_whole_weights_that_lie_far_apart_are_proven_exactly(ratio):
    """One UE outweighs the rest; from 1e13 on only arithmetic without rounding can tell."""
    rng = np.random.default_rng(12)
    for trial in range(60):
        gains = rng.choice([0.0, 3.0, 3.0, 7.0, 8.0, 16.0], (5, 5))
        gains[0], gains[:, 0], gains[0, 0] = 0.0, 0.0, 1000.0
        if trial % 3 == 1:
            gains[1, 0] = 20.0
        weights = rng.integers(1, 10, 5)
        weights[0] = int(ratio) * (weights[0] if trial % 2 else 1)
        best = solve(Uplink(gains, 1.0, 1.5), weights)
        assert best.proven
        value = sum(weights[best.allocation.scheduled].tolist())
        assert value == reference.best_value(gains.tolist(), weights.tolist(), 1.0, 1.5)


@pytest.mark.parametrize("heavy", [1e3, 1e9, 1e20, 1e200])
def test_the_answer_beside_a_heavy_weight_is_that_without_it(heavy):
    rng = np.random.default_rng(13)
    for _ in range(15):
        gains = draw_gains(rng, 5, 5, 5.0)
        gains[0], gains[:, 0], gains[0, 0] = 0.0, 0.0, 1000.0
        weights = np.append(heavy, rng.exponential(size=4))
        light = reference.best_value(gains[1:].tolist(), weights[1:].tolist(), 1.0, 2.0)
        best = solve(Uplink(gains, 1.0, 2.0), weights)
        served = best.allocation.scheduled
        assert best.proven
        assert served[0]
        assert math.fsum(weights[1:][served[1:]]) == pytest.approx(light, rel=1e-9)


def test_weights_of_all_magnitudes_against_exhaustive_search_without_rounding():
    rng = np.random.default_rng(15)
    for trial in range(60):
        gains = rng.choice([0.0, 3.0, 3.0, 7.0, 8.0, 16.0], (5, 5))
        weights = 10.0 ** rng.uniform(*((-3, 3), (-9, 9), (-40, 40), (-300, 300))[trial % 4], 5)
        best = solve(Uplink(gains, 1.0, 1.5), weights)
        exact = [Fraction(weight) for weight in weights.tolist()]
        value = sum(exact[ue] for ue in np.flatnonzero(best.allocation.scheduled))
        assert best.proven
        optimum = reference.best_value(gains.tolist(), exact, 1.0, 1.5)
        assert optimum - value <= min(exact) / 10**9


def test_where_exact_arithmetic_would_take_too_long_nothing_is_called_proven():
    rng = np.random.default_rng(14)
    gains = draw_gains(rng, 60, 15, 0.0)
    weights = np.append(np.full(3, 1e17) * np.sqrt([2.0, 3.0, 5.0]), rng.exponential(size=57))
    best = solve(Uplink(gains, 1.0, 4.0), weights, work_limit=100_000)
    assert not best.proven
    assert best.value <= best.bound <= best.value * (1 + 1e-9)


def test_exact_search_finds_the_best_packing_or_says_that_it_gave_up():
    columns = Columns(np.array([0, 0, 1, 2]), np.array([0, 1, 2, 4, 5]), np.array([0, 1, 0, 1, 1]))
    weights = [Fraction(2**60), Fraction(2**60 + 1), Fraction(1)]
    duals = [Fraction(0), Fraction(0), *weights]
    search = ExactSearch.over(columns, weights, duals, Fraction(2**60))
    assert not ExactSearch.over(columns, weights, duals, Fraction(2**60)).run(most_states=2)
    assert search.run(most_states=1_000)
    assert search.best in ([0, 3], [2])  # both are worth 2**60 + 1
    again = ExactSearch.over(columns, weights, duals, Fraction(2**60 + 1))
    assert again.run(most_states=1_000)
    assert again.best is None


@pytest.mark.parametrize("every", [True, False])
def test_sets_within_a_price_are_those_of_exhaustive_enumeration(every):
    rng = np.random.default_rng(5)
    for _ in range(150):
        ues, subchannels = 3, int(rng.integers(1, 8))
        gains = draw_gains(rng, ues, subchannels, float(rng.integers(-10, 15)))
        gains[rng.random(gains.shape) < 0.1] = 0.0
        prices = rng.choice([0.0, 0.2, 0.5, 0.5, 1.0], subchannels) * rng.choice(
            [1.0, rng.random()]
        )
        limits = rng.random(ues) * 3
        power = rng.choice([0.5, 1.0, 3.0], ues)
        threshold = rng.choice([0.0, 0.5, 1.0, 2.0, 3.0], ues)
        uplink = Uplink(gains, power, threshold)
        least, rounding, of, cost, start, members, nodes, enough = sets_within(
            uplink.gains, uplink.power_budget, uplink.rate_threshold, np.arange(ues), prices,
            limits, Quota(not every, 10**6, 10**9),
        )  # fmt: skip
        for ue in range(ues):
            expected = {
                chosen: sum(prices[list(chosen)])
                for chosen in reference.minimal_sets(gains[ue].tolist(), power[ue], threshold[ue])
                if sum(prices[list(chosen)]) < limits[ue]
            }
            found = {
                tuple(sorted(members[start[s] : start[s + 1]].tolist())): cost[s]
                for s in np.flatnonzero(of == ue)
            }
            cheapest = min(expected.values(), default=limits[ue])
            assert least[ue] == pytest.approx(cheapest)
            if every:
                assert found == pytest.approx(expected)
            else:
                assert list(found.values()) == pytest.approx([cheapest] if expected else [])
                assert found.keys() <= expected.keys()
        assert enough
        assert nodes < 10**9
        assert 0 <= rounding <= 1e-14 * limits.sum()


def best_assignment(gains, weights, threshold):
    enough = np.log2(1 + gains) / 2 >= threshold
    profit = np.where(enough & (gains > 0), np.asarray(weights)[:, None], 0.0)
    return profit[linear_sum_assignment(profit, maximize=True)].sum()


@pytest.mark.parametrize("threshold", [0.0, 0.1, 2.0])
def test_where_one_subchannel_each_suffices_it_is_the_assignment_problem(threshold):
    """On gains of 0 or enough for the threshold no larger set is of use."""
    rng = np.random.default_rng(3)
    for ues, subchannels in ((4, 4), (30, 10), (10, 30), (60, 20)):
        gains = np.where(rng.random((ues, subchannels)) < 0.1, 100.0, 0.0)
        weights = rng.exponential(size=ues)
        best = solve(Uplink(gains, 1.0, threshold), weights)
        assert best.proven
        assert best.value == pytest.approx(best_assignment(gains, weights, threshold))


def test_without_a_threshold_the_heaviest_are_served():
    rng = np.random.default_rng(4)
    weights = rng.exponential(size=50)
    best = solve(Uplink(draw_gains(rng, 50, 12, 0.0), 1.0, 0.0), weights)
    assert best.proven
    assert np.flatnonzero(best.allocation.scheduled).tolist() == sorted(np.argsort(-weights)[:12])


@pytest.mark.parametrize("threshold", [0.0, 2.0])
def test_a_large_cell_in_which_one_subchannel_each_suffices(threshold):
    rng = np.random.default_rng(6)
    gains = rng.exponential(100.0, (20_000, 273))
    weights = np.sqrt(rng.integers(0, 200, 20_000))
    best = solve(Uplink(gains, 1.0, threshold), weights)
    assert best.proven
    assert best.value == pytest.approx(np.sort(weights)[-273:].sum())


REGIMES = list(itertools.product([-10, 0, 10, 20], [1.0, 3.0, 4.0]))


@pytest.mark.parametrize(("edge_snr_db", "threshold"), REGIMES)
def test_cells_of_the_papers_size_are_proven(edge_snr_db, threshold):
    rng = np.random.default_rng([edge_snr_db + 100, int(threshold)])
    uplink = Uplink(draw_gains(rng, 100, 20, edge_snr_db), 1.0, threshold)
    for weights in (np.ones(100), np.sqrt(rng.integers(0, 40, 100))):
        best = solve(uplink, weights)
        best.allocation.validate(uplink.gains)
        assert best.proven
        assert best.value >= weights[Greedy().pack(uplink, weights).scheduled].sum() - 1e-9


@pytest.fixture(scope="module")
def solved():
    """Uplinks and weights of contested cells, with their optima."""
    cases = []
    for seed, (edge_snr_db, threshold) in enumerate([(-10, 2.0), (0, 5.0), (10, 4.0), (20, 5.0)]):
        rng = np.random.default_rng(seed)
        uplink = Uplink(draw_gains(rng, 60, 15, edge_snr_db), 1.0, threshold)
        for weights in (np.ones(60), np.sqrt(rng.integers(0, 40, 60))):
            best = solve(uplink, weights)
            assert best.proven
            cases.append((uplink, weights, best.value))
    return cases


@pytest.mark.parametrize("limit", [0, 1, 30, 100, 300, 1_000, 3_000, 10_000, 30_000])
def test_at_a_limit_value_and_bound_still_enclose_the_optimum(solved, limit):
    unproven = 0
    for uplink, weights, optimum in solved:
        stopped = solve(uplink, weights, work_limit=limit)
        stopped.allocation.validate(uplink.gains)
        assert stopped.value <= optimum * (1 + 1e-9)
        assert optimum <= stopped.bound * (1 + 1e-9)
        assert stopped.value >= weights[Greedy().pack(uplink, weights).scheduled].sum() - 1e-9
        assert 0 <= stopped.gap <= 1
        if stopped.proven:
            assert stopped.value == pytest.approx(optimum)
        unproven += not stopped.proven
    if limit == 0:
        assert unproven > 0


def test_same_work_same_answer():
    rng = np.random.default_rng(8)
    uplink = Uplink(draw_gains(rng, 100, 20, 0.0), 1.0, 6.0)
    weights = np.sqrt(rng.integers(0, 40, 100))
    for work_limit in (0, 3_000, None):
        first, again = (solve(uplink, weights, work_limit=work_limit) for _ in range(2))
        assert first.allocation.owner.tolist() == again.allocation.owner.tolist()
        assert (first.value, first.bound) == (again.value, again.bound)


def test_relabelling_the_ues_relabels_the_answer():
    rng = np.random.default_rng(9)
    gains, weights = draw_gains(rng, 50, 12, 0.0), np.sqrt(rng.integers(0, 9, 50))
    rank, order = rng.permutation(50), rng.permutation(50)
    owner = solve(Uplink(gains, 1.0, 3.0), weights, rank).allocation.owner
    moved = solve(Uplink(gains[order], 1.0, 3.0), weights[order], rank[order]).allocation.owner
    assert np.where(moved < 0, -1, order[moved]).tolist() == owner.tolist()


def test_weights_of_any_scale():
    rng = np.random.default_rng(10)
    uplink = Uplink(draw_gains(rng, 40, 10, 0.0), 1.0, 3.0)
    weights = np.sqrt(rng.integers(0, 40, 40))
    plain = solve(uplink, weights)
    for scale in (1e-200, 2.0**40, 1e200):
        scaled = solve(uplink, weights * scale)
        assert scaled.proven
        assert scaled.value == pytest.approx(plain.value * scale)


def test_ues_of_weight_zero_get_what_is_left():
    gains = np.full((4, 3), 3.0)
    best = solve(Uplink(gains, 1.0, 1.0), [0.0, 5.0, 0.0, 0.0], rank=[3, 0, 1, 2])
    assert np.flatnonzero(best.allocation.scheduled).tolist() == [1, 2, 3]
    assert (best.value, best.proven) == (5.0, True)
    nobody_counts = solve(Uplink(gains, 1.0, 1.0), np.zeros(4))
    assert nobody_counts.allocation.scheduled.sum() == 3
    assert (nobody_counts.value, nobody_counts.gap, nobody_counts.proven) == (0.0, 0.0, True)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (1, 1), (1, 4), (4, 1)])
def test_smallest_sizes(shape):
    best = solve(Uplink(np.full(shape, 3.0), 1.0, 1.0), np.ones(shape[0]))
    assert best.value == min(shape)
    assert best.proven


def test_nobody_reaches_the_threshold():
    best = solve(Uplink(np.ones((5, 4)), 1.0, 1e3), np.ones(5))
    assert (best.value, best.bound, best.proven) == (0.0, 0.0, True)
    assert best.allocation.owner.tolist() == [-1] * 4


def test_bad_arguments():
    uplink = Uplink(np.ones((2, 3)), 1.0, 1.0)
    with pytest.raises(ValueError, match="UE 1 is -1"):
        solve(uplink, [1.0, -1.0])
    with pytest.raises(ValueError, match="UE 0 is nan"):
        solve(uplink, [np.nan, 1.0])
    with pytest.raises(ValueError, match="one entry for each of the 2 UEs"):
        solve(uplink, [1.0])
    with pytest.raises(ValueError, match="work_limit must be non-negative, not -1"):
        solve(uplink, [1.0, 1.0], work_limit=-1)


def test_running_out_of_sets_does_not_use_up_the_work():
    gains = np.random.default_rng(0).exponential(1.0, (1, 12))
    uplink = Uplink(gains, 1.0, 1.0 / (2 * math.log(2)))
    limits = uplink.power_budget, uplink.rate_threshold
    given = uplink.gains, *limits, np.arange(1), np.zeros(12), np.ones(1)
    *_, all_nodes, enough = sets_within(*given, Quota(False, 10**6, 10**9))
    assert enough
    _, _, of, *_, nodes, enough = sets_within(*given, Quota(False, 3, 10**9))
    assert (of.size, enough) == (3, False)
    assert nodes < all_nodes


def test_weights_whose_sum_overflows():
    with pytest.raises(ValueError, match="their sum overflows; scale them"):
        solve(Uplink(np.ones((2, 2)), 1.0, 0.5), [1e308, 1e308])
