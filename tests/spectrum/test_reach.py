"""How good all channels are at once, against one UE at a time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agewise.spectrum import Uplink, fewest_subchannels, waterfill
from tests.cells import cells


@given(cells(), st.data())
@settings(max_examples=500)
def test_needs_are_those_of_each_ue(cell, data):
    gains, _, _, budget, threshold = cell
    uplink = Uplink(np.array(gains), budget, threshold)
    every = st.sampled_from(range(uplink.subchannel_count))
    free = np.array(sorted(data.draw(st.sets(every, min_size=1))))
    need, rates = uplink.needs(free)
    for ue in range(uplink.ue_count):
        budget = uplink.power_budget[ue]
        found = fewest_subchannels(gains[ue], budget, uplink.rate_threshold[ue], free)
        assert need[ue] == (0 if found is None else found.size)
        if found is not None:
            assert rates[ue] == pytest.approx(waterfill(uplink.gains[ue, found], budget).rate)


@given(cells())
def test_highest_rates_are_water_filled(cell):
    gains, _, _, budget, threshold = cell
    uplink = Uplink(np.array(gains), budget, threshold)
    alone = [waterfill(*each).rate for each in zip(gains, uplink.power_budget, strict=True)]
    assert uplink.highest_rates().tolist() == pytest.approx(alone)


def test_no_subchannels():
    uplink = Uplink(np.empty((3, 0)), 1.0, 0.0)
    assert uplink.highest_rates().tolist() == uplink.mean_snrs().tolist() == [0.0] * 3
    assert uplink.needs()[0].tolist() == [0, 0, 0]
