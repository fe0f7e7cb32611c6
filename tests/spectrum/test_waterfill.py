"""Water-filling by its own certificate, its accuracy by exact arithmetic, Algorithm 1 by force."""

import itertools
import math
from decimal import Decimal, getcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agewise.spectrum import Greedy, Uplink, fewest_subchannels, waterfill
from tests.cells import BUDGETS, ODD_GAINS, PLAIN_GAINS, THRESHOLDS

getcontext().prec = 80


def exact_rate(gains, budget):
    """The water-filling rate in 80 decimal digits, by the printed closed form."""
    best = sorted((Decimal(float(g)) for g in gains if g > 0), reverse=True)
    rate, inverse, log_sum = Decimal(0), Decimal(0), Decimal(0)
    for n, g in enumerate(best, start=1):
        level = (Decimal(budget) + inverse + 1 / g) / n
        if level * g <= 1:
            break
        inverse += 1 / g
        log_sum += g.ln()
        rate = (n * level.ln() + log_sum) / (2 * Decimal(2).ln())
    return rate


@given(st.lists(ODD_GAINS | PLAIN_GAINS, min_size=1, max_size=12), BUDGETS)
def test_optimality_conditions(gains, budget):
    """KKT: power wherever the level is above 1/gain and nowhere else; the budget is spent."""
    filled = waterfill(gains, budget)
    gains = np.array(gains)
    if not gains.any():
        assert not filled.power.any()
        assert filled.rate == 0
        assert filled.level == math.inf
        return
    assert filled.power.sum() == pytest.approx(budget, rel=1e-12)
    with np.errstate(divide="ignore"):
        height = 1 / gains
    expected = np.maximum(0, filled.level - height)
    np.testing.assert_allclose(filled.power, expected, atol=1e-9 * filled.level)
    np.testing.assert_array_equal(filled.subchannels, np.flatnonzero(filled.power > 0))
    by_definition = np.log2(1 + gains * filled.power).sum() / 2
    assert filled.rate == pytest.approx(by_definition, rel=1e-9)


@given(
    st.lists(st.floats(-15, 15), min_size=1, max_size=10),
    st.sampled_from([1e-6, 1.0, 1e6]),
)
def test_thirty_orders_of_magnitude(exponents, budget):
    gains = [10.0**e for e in exponents]
    assert waterfill(gains, budget).rate == pytest.approx(
        float(exact_rate(gains, budget)), rel=1e-12
    )


def exact_powers(gains, budget):
    """The water-filling powers in 80 decimal digits."""
    order = sorted((n for n, g in enumerate(gains) if g > 0), key=lambda n: -gains[n])
    used, level = [], Decimal(0)
    for n in order:
        more = [*used, n]
        raised = (Decimal(budget) + sum(1 / Decimal(gains[i]) for i in more)) / len(more)
        if raised * Decimal(gains[n]) <= 1:
            break
        used, level = more, raised
    return [float(level - 1 / Decimal(g)) if n in used else 0.0 for n, g in enumerate(gains)]


@given(
    st.floats(-15, 15),
    st.lists(st.floats(0, 1), min_size=1, max_size=8),
    st.sampled_from([1e-6, 0.3, 1.0, 7e5]),
    st.integers(0, 40),
)
def test_powers_keep_their_digits(exponent, offsets, budget, closeness):
    """Also where gains are nearly equal and the SNR is tiny: what counts is their difference."""
    gains = [10.0**exponent * (1 + offset * 2.0**-closeness) for offset in offsets]
    expected = exact_powers(gains, budget)
    np.testing.assert_allclose(waterfill(gains, budget).power, expected, atol=1e-12 * budget)
    packed = Greedy().pack(
        Uplink(np.array([gains]), budget, 0.999 * waterfill(gains, budget).rate), [1.0]
    )
    chosen = [gains[n] for n in packed.subchannels_of(0)]
    np.testing.assert_allclose(
        packed.power[packed.subchannels_of(0)], exact_powers(chosen, budget), atol=1e-12 * budget
    )


@pytest.mark.parametrize("gain", [1e-307, 1e-200, 1e300])
def test_extreme_gains(gain):
    filled = waterfill([gain, gain], 1.0)
    assert filled.power.sum() == pytest.approx(1.0, rel=1e-12)
    assert filled.rate == pytest.approx(float(exact_rate([gain, gain], 1.0)), rel=1e-12)


def test_gains_below_every_normal_number_cannot_be_used():
    assert waterfill([1.5e-323], 0.9).rate == 0
    assert fewest_subchannels([3.3e-300], 1e-21, 0.0) is None


@given(st.lists(st.floats(-15, 15), min_size=1, max_size=6), st.sampled_from([0.3, 1.0, 1e6]))
def test_the_threshold_is_sharp(exponents, budget):
    """A threshold a hair below the highest rate is met by all of it, a hair above by nothing."""
    gains = [10.0**e for e in exponents]
    highest = exact_rate(gains, budget)
    within, beyond = (float(highest * (1 + Decimal(side) * Decimal("1e-11"))) for side in (-1, 1))
    found = fewest_subchannels(gains, budget, within)
    assert found is not None
    assert exact_rate([gains[n] for n in found], budget) >= Decimal(within)
    assert fewest_subchannels(gains, budget, beyond) is None


@given(
    st.lists(ODD_GAINS, min_size=1, max_size=6) | st.lists(PLAIN_GAINS, min_size=1, max_size=6),
    BUDGETS,
    THRESHOLDS,
)
@settings(max_examples=1000)
def test_fewest_by_brute_force(gains, budget, threshold):
    """No smaller set of any subchannels reaches the threshold; the one that is returned does."""

    def reaches(chosen):
        if not any(gains[n] > 0 for n in chosen):
            return False
        return waterfill([gains[n] for n in chosen], budget).rate >= threshold * (1 - 1e-12)

    sets = (
        chosen
        for size in range(1, len(gains) + 1)
        for chosen in itertools.combinations(range(len(gains)), size)
        if reaches(chosen)
    )
    smallest = next(sets, None)
    found = fewest_subchannels(gains, budget, threshold)
    if smallest is None:
        assert found is None
    else:
        assert found is not None
        assert len(found) == len(smallest)
        assert reaches(found)
        assert list(found) == sorted(found, key=lambda n: (-gains[n], n))


def test_fewest_among_available():
    gains = [8.0, 4.0, 1.0, 0.0]
    assert fewest_subchannels(gains, 2.0, 2.0).tolist() == [0]
    assert fewest_subchannels(gains, 2.0, 1.5, available=[2, 1]).tolist() == [1]
    assert fewest_subchannels(gains, 2.0, 0.0, available=[3]) is None
    assert fewest_subchannels(gains, 2.0, 0.0, available=[]) is None
    with pytest.raises(ValueError, match="from 0 to 3"):
        fewest_subchannels(gains, 2.0, 1.0, available=[4])


def test_threshold_met_exactly_counts():
    """½ log2(1 + 3) is 1 and ½ log2(1 + 15) is 2: an exact hit is a hit."""
    assert fewest_subchannels([3.0], 1.0, 1.0).tolist() == [0]
    assert fewest_subchannels([15.0], 1.0, 2.0).tolist() == [0]
    assert fewest_subchannels([3.0], 1.0, 1.0 + 1e-9) is None


def test_bad_gains_name_the_place():
    with pytest.raises(ValueError, match="UE 1 on subchannel 0 is nan"):
        Uplink(np.array([[1.0], [np.nan]]), 1.0, 1.0)
    with pytest.raises(ValueError, match="UE 0 on subchannel 2 is -1"):
        Uplink(np.array([[1.0, 2.0, -1.0], [np.inf, 1.0, 1.0]]), 1.0, 1.0)
    with pytest.raises(ValueError, match="UE 0 on subchannel 0 is inf"):
        waterfill([np.inf], 1.0)
    with pytest.raises(ValueError, match="too large"):
        Uplink(np.array([[1e298]]), 1e3, 1.0)
    with pytest.raises(ValueError, match="masked"):
        Uplink(np.ma.masked_equal(np.ones((1, 1)), 1.0), 1.0, 1.0)
    with pytest.raises(ValueError, match="not 1-D"):
        Uplink(np.array([1.0]), 1.0, 1.0)
    with pytest.raises(ValueError, match="its rows differ in length"):
        Uplink([[1.0, 2.0], [1.0]], 1.0, 1.0)
    with pytest.raises(ValueError, match="real numbers"):
        Uplink(np.array([[1j]]), 1.0, 1.0)
    with pytest.raises(ValueError, match="one UE"):
        waterfill(np.ones((2, 2)), 1.0)


@pytest.mark.parametrize(
    ("power", "threshold", "message"),
    [
        (0.0, 1.0, "power budget must be positive"),
        (-1.0, 1.0, "power budget must be positive"),
        (math.nan, 1.0, "power budget must be a finite number, not nan"),
        (math.inf, 1.0, "power budget must be a finite number"),
        (10**400, 1.0, "power budget must be a finite number"),
        (None, 1.0, "power budget must be a finite number, not None"),
        ("10", 1.0, "power budget must be a finite number, not '10'"),
        (1.0, -0.5, "rate_threshold must be non-negative"),
        (1.0, math.nan, "rate_threshold must be a finite number"),
        (1.0, math.inf, "rate_threshold must be a finite number, not inf"),
        (
            [1.0, 2.0],
            1.0,
            r"power budget must be a number, or have one for each of the 1 UEs, not shape .2,",
        ),
        (1.0, [[1.0]], r"rate_threshold must be a number, or have one .* not shape .1, 1."),
        (1.0, ["1"], "rate_threshold must be real numbers, not <U1"),
        (np.ma.masked_equal([0.0], 0.0), 1.0, "power budget must not be masked"),
    ],
)
def test_bad_scalars(power, threshold, message):
    with pytest.raises(ValueError, match=message):
        Uplink(np.ones((1, 1)), power, threshold)


def test_uplink_neither_copies_nor_rejects_negative_zero():
    gains = np.ones((3, 4))
    assert np.shares_memory(Uplink(gains, 1.0, 1.0).gains, gains)
    gains[1] = -0.0
    assert Uplink(gains, 1.0, 1.0).best_gains.tolist() == [1.0, 0.0, 1.0]
    assert Uplink(np.asfortranarray(gains[::-1, ::2]), 1.0, 0.0).best_gains.tolist() == [1, 0, 1]
