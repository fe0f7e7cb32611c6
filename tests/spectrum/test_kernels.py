"""Water-filling of owners, and the checks of arrays, each against NumPy."""

import numpy as np
import pytest
from hypothesis import given

from agewise.core.proof import best_gains, check_utilities, first_repeated
from agewise.core.waterfill import waterfill_owners
from agewise.spectrum import Uplink, waterfill
from tests.cells import cells, draw_gains


def test_owners_share_their_power_as_if_each_were_alone():
    rng = np.random.default_rng(2)
    for edge_snr_db in (-20.0, 0.0, 20.0):  # at -20 dB not every subchannel gets power
        gains = draw_gains(rng, 4, 15, edge_snr_db)
        gains[1, ::2] = 0.0
        owner = rng.integers(-1, 4, 15)
        budget = np.array([2.0, 2.0, 0.5, 7.0])
        power = waterfill_owners(gains, budget, owner)
        for ue in range(4):
            held = owner == ue
            alone = waterfill(gains[ue, held], budget[ue]).power
            np.testing.assert_array_equal(power[held], alone)
        assert not power[owner < 0].any()


@given(cells())
def test_best_gains(cell):
    uplink = Uplink(np.array(cell[0]), cell[3], cell[4])
    gains, power = uplink.gains, uplink.power_budget
    best, best_snr, unreachable = best_gains(gains, power, uplink.rate_threshold)
    assert best.tolist() == gains.max(axis=1).tolist()
    assert best_snr == (gains.max(axis=1) * power).max()
    assert not unreachable


@pytest.mark.parametrize("bad", [-1e-300, -0.0, np.inf, -np.inf, np.nan, -np.nan])
def test_bad_gains_are_seen_wherever_they_stand(bad):
    for place in range(6):
        gains = np.ones((2, 3))
        gains.flat[place] = bad
        assert np.isnan(best_gains(gains, np.ones(2), np.ones(2))[1])


@pytest.mark.parametrize("place", [0, 1, 2])
def test_bad_budgets_and_thresholds_are_seen_wherever_they_stand(place):
    gains = np.ones((3, 2))
    for name, values in (("power", [0.0, -1.0, np.inf, np.nan]), ("threshold", [-1e-300, np.nan])):
        for bad in values:
            given = {"power": np.ones(3), "threshold": np.ones(3)}
            given[name][place] = bad
            assert np.isnan(best_gains(gains, *given.values())[1]), (name, bad)


def test_first_bad_entries():
    assert check_utilities(np.array([0.0, 1e308, 5e-324, -0.0])) == (-1, True)
    assert check_utilities(np.array([0.0, np.inf, -np.inf])) == (-1, False)
    for bad in (-1e-300, np.nan):
        assert check_utilities(np.array([1.0, bad, np.nan])) == (1, True)
        assert check_utilities(np.array([np.inf, bad, np.nan])) == (1, False)
    assert first_repeated(np.array([2, 0, 1]), 3) == -1
    assert first_repeated(np.array([2, 0, 2]), 3) == 2
    assert first_repeated(np.array([2, 3]), 3) == first_repeated(np.array([2, -1]), 3) == 1
