"""Eq. 2 and f_alpha."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agewise.age import check_ages, f_alpha, next_ages
from tests import reference


def test_ages_follow_equation_2():
    ages = np.zeros(3, dtype=np.int64)
    seen = []
    for received in ([1, 0, 0], [0, 0, 1], [0, 0, 0], [1, 0, 1]):
        ages = next_ages(ages, np.array(received, dtype=bool))
        seen.append(ages.tolist())
    assert seen == [[0, 1, 1], [1, 2, 0], [2, 3, 1], [0, 4, 0]]
    assert ages.dtype == np.int64
    with pytest.raises(ValueError, match="one entry per UE"):
        next_ages(ages, np.zeros(2, dtype=bool))


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=5), st.floats(-2, 0.99) | st.just(1.0))
def test_paper_form(ages, alpha):
    expected = [reference.f_alpha(age, alpha) for age in ages]
    np.testing.assert_allclose(f_alpha(ages, alpha), expected, rtol=1e-12)


@given(st.floats(0, 1e4), st.sampled_from([-1.0, 0.0, 0.5, 1.0, 1.5, 3.0]))
def test_continuous_form_is_continuous_in_alpha_and_rises_with_age(age, alpha):
    here = f_alpha([age], alpha, "continuous")[0]
    beside = f_alpha([age], alpha + 1e-9, "continuous")[0]
    assert beside == pytest.approx(here, rel=1e-6, abs=1e-12)
    assert f_alpha([age + 1], alpha, "continuous")[0] > here >= 0
    if alpha == 1:
        assert here == math.log1p(age)


def test_the_papers_log_is_not_the_limit_of_its_powers():
    """Why the continuous form exists: near alpha = 1 the printed one is nowhere near log(1+x)."""
    assert f_alpha([9], 0.999)[0] > 400 * f_alpha([9], 1.0)[0]
    assert f_alpha([9], 0.999, "continuous")[0] == pytest.approx(f_alpha([9], 1.0)[0], rel=2e-3)


def test_errors():
    with pytest.raises(ValueError, match=r"alpha must be at most 1, not 1\.5"):
        f_alpha([1], 1.5)
    with pytest.raises(ValueError, match="finite"):
        f_alpha([1], math.nan, "continuous")
    with pytest.raises(ValueError, match="alpha must be a finite number, not '0.5'"):
        f_alpha([1], "0.5")
    with pytest.raises(ValueError, match="paper, continuous"):
        f_alpha([1], 0.5, "other")
    with pytest.raises(ValueError, match="non-negative"):
        f_alpha([-1], 0.5)
    with pytest.raises(ValueError, match="overflows"):
        f_alpha([1e200], -5.0)


@pytest.mark.parametrize(
    ("ages", "message"),
    [
        ([0, -1], "UE 1 is -1"),
        ([math.nan, 0], "UE 0 is nan"),
        ([0, math.inf], "UE 1 is inf"),
        ([0], r"2 UEs \(rows\), the ages have shape \(1,\)"),
        (["a", "b"], "real numbers"),
    ],
)
def test_bad_ages(ages, message):
    with pytest.raises(ValueError, match=message):
        check_ages(ages, 2)
