"""Decibels as ratios."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agewise import units


@given(st.floats(-300, 300))
def test_round_trips(value):
    assert 10.0 * math.log10(units.db_to_linear(value)) == pytest.approx(value, abs=1e-9)
    watts = units.dbm_to_watt(value)
    assert 10.0 * math.log10(1000.0 * watts) == pytest.approx(value, abs=1e-9)


def test_known_values():
    assert units.db_to_linear(3.0) == pytest.approx(1.9953, rel=1e-4)
    assert units.dbm_to_watt(23.0) == pytest.approx(0.19953, rel=1e-4)
