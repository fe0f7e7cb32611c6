"""Fading of every kind: distributions, correlations over time and frequency, bad input."""

import math

import numpy as np
import pytest

from agewise import Streams
from agewise.core.fading import fade_paths
from agewise.radio.fading import DrawnK, Rician, bessel_j0
from agewise.radio.profiles import Taps
from agewise.scenario import ScenarioError
from tests.radio.test_parts import largest_gap, of_ues
from tests.scenarios import tiny

BAND = {"cell.subchannel_bandwidth_hz": 180e3}
JAKES = {"kind": "jakes", "carrier_hz": 3e9, "speed_m_s": 1.0}
MOVING = {"kind": "jakes", "carrier_hz": 3e9}
LIGHT_M_S = 299_792_458.0


def fading_of(fading, rounds=1, ues=4000, subchannels=5, seed=3, **changes):
    """``[round, ue, subchannel]``: true gains over their means."""
    size = {"cell.ues": ues, "cell.subchannels": subchannels, "channel.fading": fading}
    channel = tiny(**size, **changes).make_channel(Streams(seed))
    means = channel.large_scale(0).mean_gains[:, None]
    return np.stack([channel.block(t).true / means for t in range(rounds)])


def marcum_law(k):
    """The distribution function of a Rician gain of mean 1: a Poisson mixture of gamma ones."""

    def law(gain):
        x, total = (1.0 + k) * gain, np.zeros_like(gain)
        weight, tail, term = math.exp(-k), np.exp(-x), np.exp(-x)
        for j in range(60):
            total += weight * (1.0 - tail)
            weight *= k / (j + 1)
            term = term * x / (j + 1)
            tail = tail + term
        return total

    return law


def erlang_law(m):
    def law(gain):
        return 1.0 - np.exp(-m * gain) * sum((m * gain) ** j / math.factorial(j) for j in range(m))

    return law


@pytest.mark.parametrize(
    ("fading", "law"),
    [
        ({"kind": "rician", "k_factor": {"kind": "fixed", "k_db": 6.0}}, marcum_law(10**0.6)),
        ({"kind": "nakagami", "m": 1.0}, erlang_law(1)),
        ({"kind": "nakagami", "m": 3.0}, erlang_law(3)),
    ],
)
def test_distributions(fading, law):
    """100,000 gains: Kolmogorov-Smirnov at the level of 1%, and the mean within 4 deviations."""
    gains = fading_of(fading, rounds=5).ravel()
    assert gains.size == 100_000
    assert largest_gap(gains, law) < 1.63 / math.sqrt(gains.size)
    assert gains.mean() == pytest.approx(1.0, abs=4 * gains.std() / math.sqrt(gains.size))


def test_nakagami_below_one():
    """m = 0.5 is the square of one normal number x: E x⁴ = 3, E |x| = √(2/π), 100,000 of them."""
    gains = fading_of({"kind": "nakagami", "m": 0.5}, rounds=5).ravel()
    assert gains.mean() == pytest.approx(1.0, abs=4 * math.sqrt(2.0 / gains.size))
    assert (gains**2).mean() == pytest.approx(3.0, abs=4 * math.sqrt(96.0 / gains.size))
    assert np.sqrt(gains).mean() == pytest.approx(
        math.sqrt(2 / math.pi), abs=4 * 0.61 / math.sqrt(gains.size)
    )


PROFILES = ["epa", "eva", "etu", "tdl-a", "tdl-b", "tdl-c", "tdl-d", "tdl-e"]


def taps_of(name, delay_spread_s=300e-9):
    return Taps(profile=name, delay_spread_s=delay_spread_s if name.startswith("tdl") else None)


def rms_delay_s(profile):
    """The rms delay spread, the direct path included."""
    powers = np.append((1 - profile.direct_share) * profile.powers, profile.direct_share)
    delays = np.append(profile.delays_s, 0.0)
    return np.sqrt(powers @ (delays - powers @ delays) ** 2)


@pytest.mark.parametrize("name", PROFILES)
def test_taps_make_subchannels(name):
    """20,000 UEs: unit mean on every subchannel, and neighbours as alike as the profile says.

    With scattered paths alone gains have the correlation |R|². Errors of means and products are
    below 5 / sqrt(20,000).
    """
    gains = fading_of(
        {"kind": "rayleigh", "frequency": taps_of(name)}, ues=20_000, subchannels=4, **BAND
    )[0]
    assert np.abs(gains.mean(axis=0) - 1.0).max() < 4 / math.sqrt(20_000)
    profile = taps_of(name).delay_profile()
    share = profile.direct_share
    phases = np.exp(-2j * np.pi * 180e3 * profile.delays_s)
    for step in (1, 2, 3):
        scattered = (1 - share) * (profile.powers @ phases**step)
        # |a + x|² and |a + y|² with direct a and normal x, y of correlation R.
        covariance = abs(scattered) ** 2 + 2 * share * scattered.real
        found = np.mean((gains[:, 0] - 1.0) * (gains[:, step] - 1.0))
        assert found == pytest.approx(covariance, abs=8 * (1 - share**2) / math.sqrt(20_000))


@pytest.mark.parametrize(
    ("name", "spread_ns", "correlation"),
    [("epa", 43, 0.999), ("eva", 357, 0.93), ("etu", 991, 0.82)],
)
def test_profiles_of_36104(name, spread_ns, correlation):
    profile = taps_of(name).delay_profile()
    assert round(rms_delay_s(profile) * 1e9) == spread_ns
    response = abs(profile.powers @ np.exp(-2j * np.pi * 180e3 * profile.delays_s))
    assert response == pytest.approx(correlation, abs=0.005)


@pytest.mark.parametrize("name", PROFILES[3:])
def test_profiles_of_38901_have_the_delay_spread_asked_for(name):
    """The tables are rounded: to 1% for TDL-D, whose powers are small."""
    profile = taps_of(name, 100e-9).delay_profile()
    assert rms_delay_s(profile) == pytest.approx(100e-9, rel=0.01)
    first = {"tdl-d": 13.3, "tdl-e": 22.0}.get(name)
    if first is None:
        assert profile.direct_share == 0.0
    else:
        at_zero = (1 - profile.direct_share) * profile.powers[0]
        assert 10 * math.log10(profile.direct_share / at_zero) == pytest.approx(first, abs=0.01)


@pytest.mark.parametrize("x", [0.0, 0.3, 2.404825557695773, 10.0, 123.4])
def test_j0(x):
    steps = (np.arange(4000) + 0.5) / 4000 * math.pi
    assert bessel_j0(x) == pytest.approx(np.cos(x * np.sin(steps)).mean(), abs=1e-12)


@pytest.mark.parametrize("frequency", ["independent", taps_of("eva")], ids=["independent", "eva"])
def test_doppler(frequency):
    """Gains of 10,000 UEs so many rounds apart have the correlation J0², and unit mean.

    The sum of 16 waves leaves 1/16 of it out of account (their own power does not vary).
    """
    round_s = 0.01
    fading = {"kind": "rayleigh", "time": JAKES, "frequency": frequency}
    gains = fading_of(
        fading, rounds=24, ues=10_000, subchannels=2, **BAND, **{"channel.round_s": round_s}
    )[..., 0]
    tolerance = 5 / math.sqrt(10_000)
    assert np.abs(gains.mean(axis=1) - 1.0).max() < tolerance
    shift = 3e9 / LIGHT_M_S
    for step in (1, 2, 4, 7, 11, 23):
        expected = bessel_j0(2 * math.pi * shift * round_s * step) ** 2
        found = np.mean((gains[0] - 1.0) * (gains[step] - 1.0))
        assert found == pytest.approx(expected, abs=tolerance + 1 / 16)
    assert (gains[0] ** 2).mean() == pytest.approx(2.0, abs=1 / 16 + 5 * math.sqrt(20 / 10_000))


def test_waves_come_from_all_sides():
    """Places any way apart: the correlation is J0² of the distance, over 40,000 UEs."""
    ues = 40_000
    paths = (np.uint64(9), np.empty((2, 0, 0)))
    none = (np.uint64(1), 1.0, np.empty((0, 2)))

    def gains(x, y, share):
        moved = np.tile([x, y], (ues, 1))
        out = np.empty((ues, 1))
        scene = (np.ones(ues), np.full(ues, share), np.empty(0, np.bool_), moved)
        fade_paths(paths, 0, scene, none, out, np.empty((0, 0)))
        return out[:, 0]

    def covariance(x, y):
        return np.mean((gains(0.0, 0.0, 0.0) - 1) * (gains(x, y, 0.0) - 1))

    for x, y in ((0.1, 0.0), (0.0, 0.1), (0.18, 0.24), (-0.5, 0.5)):
        distance = math.hypot(x, y)
        expected = bessel_j0(2 * math.pi * distance) ** 2
        assert covariance(x, y) == pytest.approx(expected, abs=1 / 16 + 4 * 2 / math.sqrt(ues))
    assert gains(0.3, 0.7, 0.9).mean() == pytest.approx(1.0, abs=4 / math.sqrt(ues))


def test_a_round_is_the_same_alone():
    """Rounds far apart, asked for in any order: correlated fading has no state."""
    size = {"cell.ues": 20, "channel.round_s": 0.01}
    scenario = tiny(**size, **{"channel.fading": {"kind": "rayleigh", "time": JAKES}})
    late = scenario.make_channel(Streams(1)).block(1_000_000).true
    channel = scenario.make_channel(Streams(1))
    for t in (0, 999_999, 5):
        channel.block(t)
    np.testing.assert_array_equal(channel.block(1_000_000).true, late)


def test_doppler_of_moving_ues():
    """UEs that walk meet waves by where they are: alike over millimetres, not over metres."""
    walk = {"kind": "random-waypoint", "slowest_m_s": 1.0, "fastest_m_s": 1.0, "pause_s": 0.0}
    fading = {"kind": "rayleigh", "time": MOVING}
    motion = {"channel.mobility": walk, "channel.round_s": 0.01}
    scenario = tiny(**{"cell.ues": 4000, "cell.subchannels": 2, "channel.fading": fading}, **motion)
    channel = scenario.make_channel(Streams(3))
    at = {
        t: channel.block(t).true / channel.large_scale(t).mean_gains[:, None] for t in (0, 1, 500)
    }
    near, far = (np.mean((at[0] - 1) * (at[t] - 1)) for t in (1, 500))
    # 1 cm of 10 cm; 8000 gains vary by about 2 / sqrt(8000) = 0.02 in these means.
    assert near == pytest.approx(bessel_j0(2 * math.pi * 0.1) ** 2, abs=0.1 + 1 / 16)
    assert far == pytest.approx(0.0, abs=0.1)


def test_k_factors_are_drawn_in_line_of_sight_only():
    """TR 38.901 table 7.5-6: 9 dB on average over UEs in UMa, with a deviation of 3.5 dB."""
    fading = Rician(k_factor=DrawnK(environment="uma"))
    assert fading.k_factor.needs_los
    share = fading.prepare(of_ues(20_000, seed=1)).direct_share
    k_db = 10 * np.log10(share / (1 - share))
    assert k_db.mean() == pytest.approx(9.0, abs=4 * 3.5 / math.sqrt(20_000))
    assert k_db.std() == pytest.approx(3.5, abs=4 * 3.5 / math.sqrt(40_000))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"channel.fading": {"kind": "nakagami", "m": 0.4}}, "must be from 0.5"),
        ({"channel.fading": {"kind": "rayleigh", "frequency": taps_of("eva")}}, "needs cell.subch"),
        ({"channel.fading.frequency": {"kind": "tap"}}, "did you mean taps"),
        ({"channel.fading.frequency": {"kind": "taps", "profile": "evb"}}, "'epa', 'eva', 'etu'"),
        ({"channel.fading.frequency": {"kind": "taps", "profile": "tdl-b"}},
         "channel.fading.frequency: delay_spread_s is missing: the delays of tdl-b are in units"),
        ({"channel.fading.frequency": {"kind": "taps", "profile": "eva", "delay_spread_s": 1e-8}},
         "delay_spread_s = 1e-08: eva has delays of its own; leave it out"),
        ({"channel.fading": {"kind": "rayleigh", "time": JAKES}}, "needs channel.round_s"),
        (
            {
                "channel.fading": {"kind": "rayleigh", "time": MOVING},
                "channel.round_s": 0.01,
            },
            "without channel.mobility it must be given",
        ),
        (
            {
                "channel.fading": {"kind": "rayleigh", "time": MOVING},
                "channel.round_s": 0.1,
                "channel.mobility": {
                    "kind": "random-waypoint", "slowest_m_s": 1.0, "fastest_m_s": 2.0,
                    "pause_s": 0.0,
                },
            },
            "channel.round_s = .*: must be from 1e-06 to 0.02498",
        ),
        (
            {
                "channel.fading": {
                    "kind": "rician", "k_factor": {"kind": "drawn", "environment": "umi"},
                }
            },
            "channel.fading.k_factor to fixed",
        ),
        (
            {"channel.fading": {"kind": "rayleigh", "time": JAKES}, "channel.round_s": 0.06},
            r"the nearest is 0.04997, or take channel.fading.time = \"independent\"",
        ),
        (
            {
                "channel.fading": {"kind": "nakagami", "m": 2.0},
                "channel.csi": {"kind": "estimated", "pilot_snr_db": 10.0},
            },
            "channel.fading to rayleigh or rician",
        ),
        (
            {"channel.csi": {"kind": "delayed", "delay_s": 0.01, "carrier_hz": 1e9}},
            "channel.csi.speed_m_s is missing",
        ),
        (
            {
                "channel.fading": {"kind": "rayleigh", "time": JAKES},
                "channel.round_s": 0.01,
                "channel.csi": {"kind": "delayed", "delay_s": 0.01, "carrier_hz": 1e9},
            },
            "channel.csi.carrier_hz is that of channel.fading.time: leave it out",
        ),
        (
            {
                "channel.csi": {
                    "kind": "quantised", "bits": 3, "lowest_db": 5.0, "highest_db": 5.0,
                }
            },
            "must be above lowest_db = 5",
        ),
    ],
)  # fmt: skip
def test_fading_that_cannot_be(change, message):
    with pytest.raises(ScenarioError, match=message):
        tiny(**change)
