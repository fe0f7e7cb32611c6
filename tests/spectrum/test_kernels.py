"""Water-filling of owners, and the checks of arrays, each against NumPy."""

import numpy as np
import pytest
from hypothesis import given

from agewise.core.proof import best_gains, check_utilities, first_repeated
from agewise.core.waterfill import waterfill_owners
from agewise.spectrum import waterfill
from tests.cells import cells, draw_gains


def test_owners_share_their_power_as_if_each_were_alone():
    rng = np.random.default_rng(2)
    for edge_snr_db in (-20.0, 0.0, 20.0):  # at -20 dB not every subchannel gets power
        gains = draw_gains(rng, 4, 15, edge_snr_db)
        gains[1, ::2] = 0.0
        owner = rng.integers(-1, 4, 15)
        power = waterfill_owners(gains, 2.0, owner)
        for ue in range(4):
            held = owner == ue
            np.testing.assert_array_equal(power[held], waterfill(gains[ue, held], 2.0).power)
        assert not power[owner < 0].any()


@given(cells())
def test_best_gains(cell):
    gains = np.array(cell[0])
    best, largest = best_gains(gains)
    assert best.tolist() == gains.max(axis=1).tolist()
    assert largest == gains.max()


@pytest.mark.parametrize("bad", [-1e-300, -0.0, np.inf, -np.inf, np.nan, -np.nan])
def test_bad_gains_are_seen_wherever_they_stand(bad):
    for place in range(6):
        gains = np.ones((2, 3))
        gains.flat[place] = bad
        assert np.isnan(best_gains(gains)[1])


def test_first_bad_entries():
    assert check_utilities(np.array([0.0, 1e308, 5e-324, -0.0])) == (-1, True)
    assert check_utilities(np.array([0.0, np.inf, -np.inf])) == (-1, False)
    for bad in (-1e-300, np.nan):
        assert check_utilities(np.array([1.0, bad, np.nan])) == (1, True)
        assert check_utilities(np.array([np.inf, bad, np.nan])) == (1, False)
    assert first_repeated(np.array([2, 0, 1]), 3) == -1
    assert first_repeated(np.array([2, 0, 2]), 3) == 2
    assert first_repeated(np.array([2, 3]), 3) == first_repeated(np.array([2, -1]), 3) == 1
