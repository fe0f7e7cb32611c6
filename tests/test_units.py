"""Decibels there and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agewise import units


@given(st.floats(-300, 300))
def test_round_trips(value):
    assert units.linear_to_db(units.db_to_linear(value)) == pytest.approx(value, abs=1e-9)
    assert units.watt_to_dbm(units.dbm_to_watt(value)) == pytest.approx(value, abs=1e-9)


def test_known_values():
    assert units.db_to_linear(3.0) == pytest.approx(1.9953, rel=1e-4)
    assert units.dbm_to_watt(23.0) == pytest.approx(0.19953, rel=1e-4)
