"""Elementary functions against decimal numbers of 60 digits, and at the ends of their ranges."""

import math
from decimal import Decimal, localcontext

import numba
import numpy as np
import pytest

from agewise.core import elementary
from agewise.core.elementary import cos_sin_each, exp_each, log1p_each, power_each

RNG = np.random.default_rng(7)
COUNT = 400
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
TINY = RNG.standard_normal(COUNT) * 10.0 ** RNG.integers(-20, 0, COUNT)


@numba.njit
def each(function, values):
    found = np.empty(values.size)
    for i in range(values.size):
        found[i] = function(values[i])
    return found


@numba.njit
def exp32_each(values):
    found = np.empty(values.size, np.float32)
    for i in range(values.size):
        found[i] = elementary.exp32(values[i])
    return found


def worst(found, exact):
    """The largest error in units in the last place of the exact result."""
    pairs = zip(found.tolist(), exact, strict=True)
    return max(float(abs(Decimal(x) - y) / Decimal(math.ulp(float(y)))) for x, y in pairs)


@pytest.fixture(autouse=True)
def _digits():
    with localcontext(prec=60):
        yield


def sine_series(x):
    """The sum of the terms x^n / n! of the cosine and of the sine, with their signs."""
    term, sums = Decimal(1), [Decimal(1), Decimal(0)]
    for n in range(1, 70):
        term *= x / n
        sums[n % 2] += term * (-1) ** (n // 2)
    return sums


def test_exp():
    x = np.concatenate((RNG.uniform(-708.0, 709.7, COUNT), RNG.uniform(-1.0, 1.0, COUNT), TINY))
    assert worst(exp_each(x), [Decimal(v).exp() for v in x.tolist()]) < 0.6


def test_expm1():
    x = np.concatenate((RNG.uniform(-41.0, 700.0, COUNT), RNG.uniform(-1.5, 1.5, COUNT), TINY))
    found = each(elementary.expm1, x)
    assert worst(found, [Decimal(v).exp() - 1 for v in x.tolist()]) < 0.9


def test_log():
    wide = 10.0 ** RNG.uniform(-323.0, 308.0, COUNT)
    x = np.concatenate((wide, RNG.uniform(0.5, 2.0, COUNT), 1.0 + 1e-3 * TINY))
    x = x[x != 1.0]
    assert worst(each(elementary.log, x), [Decimal(v).ln() for v in x.tolist()]) < 0.9


def test_log1p():
    wide = 10.0 ** RNG.uniform(-20.0, 308.0, COUNT)
    x = np.concatenate((wide, RNG.uniform(-0.999, 3.0, COUNT), TINY[TINY > -1.0]))
    exact = [(1 + Decimal(v)).ln() for v in x.tolist()]
    assert worst(log1p_each(x), exact) < 0.9


@pytest.mark.parametrize("exponent", [-3.5, -0.5, 0.3, 1.0, 1.7, 40.25])
def test_power(exponent):
    bases = np.concatenate((10.0 ** RNG.uniform(-7.0, 7.0, COUNT), RNG.uniform(0.5, 2.0, COUNT)))
    exact = [(Decimal(v).ln() * Decimal(exponent)).exp() for v in bases.tolist()]
    assert worst(power_each(bases, exponent), exact) < 0.6


def test_cos_sin():
    whole = RNG.uniform(-40.0, 40.0, COUNT)
    turns = np.concatenate((RNG.random(COUNT), whole, 0.25 - 2.0 ** -np.arange(5.0, 50.0)))
    found = cos_sin_each(turns)
    exact = [sine_series(2 * PI * (Decimal(v) - round(Decimal(v)))) for v in turns.tolist()]
    assert worst(found[:, 0], [cosine for cosine, _ in exact]) < 0.9
    assert worst(found[:, 1], [sine for _, sine in exact]) < 0.9
    quarters = [[1, 0], [0, 1], [-1, 0], [0, -1], [1, 0]]
    np.testing.assert_array_equal(cos_sin_each(np.linspace(0.0, 1.0, 5)), quarters)
    np.testing.assert_array_equal(cos_sin_each(np.linspace(-2.0, -1.0, 5)), quarters)


def test_log_of_the_unit_interval():
    x = np.concatenate((RNG.random(COUNT), 2.0 ** -np.arange(53.0), 1.0 - 2.0 ** -np.arange(2, 53)))
    np.testing.assert_array_equal(each(elementary.log_unit, x), each(elementary.log, x))


def test_exp_of_float32_is_rounded_from_double():
    x = -np.abs(20.0 * RNG.standard_normal(5000)).astype(np.float32)
    exact = exp_each(x.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(exp32_each(x), exact)
    ends = np.array([0.0, -103.9, -200.0, -np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(exp32_each(ends), np.float32([1.0, 1.4e-45, 0.0, 0.0, np.nan]))


def test_ends_of_the_ranges():
    inf, nan = np.inf, np.nan
    ends = np.array([-inf, -746.0, 0.0, 709.79, inf, nan])
    np.testing.assert_array_equal(exp_each(ends), [0, 0, 1, inf, inf, nan])
    ends = np.array([-inf, -746.0, 0.0, 709.79, inf, nan])
    np.testing.assert_array_equal(each(elementary.expm1, ends), [-1, -1, 0, inf, inf, nan])
    ends = np.array([-1.0, 0.0, inf, nan])
    np.testing.assert_array_equal(each(elementary.log, ends), [nan, -inf, inf, nan])
    ends = np.array([-2.0, -1.0, 0.0, inf, nan])
    np.testing.assert_array_equal(log1p_each(ends), [nan, -inf, 0, inf, nan])
    bases = np.array([-1.0, 0.0, 1.0, 4.0, inf, nan])
    np.testing.assert_array_equal(power_each(bases, 1.5), [nan, 0, 1, 8, inf, nan])
    np.testing.assert_array_equal(power_each(bases, -1e308), [nan, inf, 1, 0, 0, nan])
    np.testing.assert_array_equal(power_each(bases, 0.0), np.ones(6))
    np.testing.assert_array_equal(power_each(np.array([10.0]), -323.0), [1e-323])
