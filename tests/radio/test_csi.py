"""What the access point sees of the gains that uploads meet."""

import math

import numpy as np
import pytest

from agewise import Streams
from agewise.radio.fading import bessel_j0
from tests.scenarios import tiny

LIGHT_M_S = 299_792_458.0
DELAYED = {"kind": "delayed", "delay_s": 0.01, "carrier_hz": 3e9, "speed_m_s": 1.0}
JAKES = {"kind": "jakes", "carrier_hz": 3e9, "speed_m_s": 1.0}
RICIAN = {"kind": "rician", "k_factor": {"kind": "fixed", "k_db": 3.0}}


def looked_at(ues=20_000, **changes):
    """Seen and true gains over their means, ``[ue, subchannel]``."""
    scenario = tiny(**{"cell.ues": ues, "cell.subchannels": 2}, **changes)
    channel = scenario.make_channel(Streams(2))
    block, means = channel.block(3), channel.large_scale(3).mean_gains[:, None]
    return block.seen / means, block.true / means


def test_truth_does_not_depend_on_what_is_known_of_it():
    kinds = ["perfect", "statistics", DELAYED, {"kind": "estimated", "pilot_snr_db": 3.0}]
    truths = [looked_at(ues=50, **{"channel.csi": kind})[1] for kind in kinds]
    for truth in truths[1:]:
        np.testing.assert_array_equal(truth, truths[0])


def test_perfect_knowledge_is_one_array():
    block = tiny().make_channel(Streams(0)).block(0)
    assert block.seen is block.true


@pytest.mark.parametrize(
    ("changes", "rho"),
    [
        ({"channel.csi": DELAYED}, bessel_j0(2 * math.pi * 0.01 * 3e9 / LIGHT_M_S)),
        (
            {"channel.csi": {"kind": "estimated", "pilot_snr_db": 3.0}},
            math.sqrt(10**0.3 / (1 + 10**0.3)),
        ),
        (
            {
                "channel.fading": {
                    "kind": "rayleigh",
                    "frequency": {"kind": "taps", "profile": "eva"},
                },
                "cell.subchannel_bandwidth_hz": 180e3,
                "channel.csi": DELAYED,
            },
            bessel_j0(2 * math.pi * 0.01 * 3e9 / LIGHT_M_S),
        ),
    ],
)
def test_seen_and_true_amplitudes_share_rho(changes, rho):
    """40,000 gains: both are exponential with mean 1 and have the correlation rho²."""
    seen, true = (gains.ravel() for gains in looked_at(**changes))
    tolerance = 6 / math.sqrt(20_000)  # neighbours on the two subchannels may be alike
    for gains in (seen, true):
        assert gains.mean() == pytest.approx(1.0, abs=tolerance)
        assert (gains**2).mean() == pytest.approx(2.0, abs=5 * tolerance)
    covariance = np.mean((seen - 1.0) * (true - 1.0))
    assert covariance == pytest.approx(rho**2, abs=2 * tolerance)


def test_rician_delay_leaves_the_direct_path():
    """The direct path is seen as it is; scattered ones, 1 / (1 + K) of the power, as by rho."""
    seen, true = (
        gains.ravel() for gains in looked_at(**{"channel.fading": RICIAN, "channel.csi": DELAYED})
    )
    k, rho = 10**0.3, bessel_j0(2 * math.pi * 0.01 * 3e9 / LIGHT_M_S)
    scattered = 1 / (1 + k)
    expected = (rho * scattered) ** 2 + 2 * rho * scattered * (1 - scattered)
    assert np.mean((seen - 1) * (true - 1)) == pytest.approx(expected, abs=0.05)
    assert seen.mean() == pytest.approx(1.0, abs=0.03)


def test_a_delay_under_doppler_is_the_channel_before():
    """With rounds of 10 ms and a delay of 10 ms the last round is seen."""
    fading = {"kind": "rayleigh", "time": JAKES}
    scenario = tiny(
        **{
            "channel.fading": fading,
            "channel.round_s": 0.01,
            "channel.csi": {"kind": "delayed", "delay_s": 0.01},
        }
    )
    channel = scenario.make_channel(Streams(2))
    np.testing.assert_allclose(channel.block(7).seen, channel.block(6).true, rtol=1e-6)


WAYS = {
    "straight": {"kind": "random-waypoint", "slowest_m_s": 1.0, "fastest_m_s": 2.0, "pause_s": 0.0},
    "drifting": {"kind": "gauss-markov", "mean_speed_m_s": 1.0, "deviation_m_s": 0.3,
                 "memory_s": 0.02},
}  # fmt: skip


def moving(way, round_s, delay_s=0.01):
    """Gains over their means of UEs that meet waves at 3 GHz by where they are."""
    scenario = tiny(**{
        "cell.ues": 500, "channel.mobility": WAYS[way], "channel.round_s": round_s,
        "channel.fading": {"kind": "rayleigh", "time": {"kind": "jakes", "carrier_hz": 3e9}},
        "channel.csi": {"kind": "delayed", "delay_s": delay_s},
    })  # fmt: skip
    channel = scenario.make_channel(Streams(5))

    def at(t):
        block, means = channel.block(t), channel.large_scale(t).mean_gains[:, np.newaxis]
        return (block.seen / means).ravel(), (block.true / means).ravel()

    return at


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rounds", [1, 3])
def test_moving_ues_are_seen_where_they_were_rounds_ago(way, rounds):
    at = moving(way, 0.01, 0.01 * rounds)
    for t in (7, 5, 4, 12):  # in any order
        np.testing.assert_allclose(at(t)[0], at(t - rounds)[1], rtol=1e-6, atol=1e-9)


def test_moving_ues_are_seen_where_they_were_between_rounds():
    """Half a round ago, as rounds of half the length tell; some UEs have turned since."""
    whole, half = moving("straight", 0.02), moving("straight", 0.01)
    for t in (1, 9, 3):
        seen, true = whole(t)[0], half(2 * t - 1)[1]
        assert np.corrcoef(seen, true)[0, 1] > 0.999
        assert np.mean(np.isclose(seen, true, rtol=1e-6)) > 0.99


def test_before_the_first_round_ues_came_straight():
    """10 ms at 1 to 2 m/s (as 1/v) are 0.1 to 0.2 wavelengths: J0² on average."""
    seen, true = moving("straight", 0.01)(0)
    lengths = np.geomspace(1.0, 2.0, 100) * 0.01 * 3e9 / LIGHT_M_S
    expected = np.mean([bessel_j0(2 * math.pi * length) ** 2 for length in lengths])
    assert np.mean((seen - 1) * (true - 1)) == pytest.approx(expected, abs=6 / math.sqrt(2500))


def test_quantised_gains_are_the_levels_reached():
    """2 bits from -10 to 10 dB: levels at -10, 0 and 10 dB over the mean, and zero below."""
    kind = {"kind": "quantised", "bits": 2, "lowest_db": -10.0, "highest_db": 10.0}
    seen, true = looked_at(ues=2000, **{"channel.csi": kind})
    expected = np.select([true >= 10.0, true >= 1.0, true >= 0.1], [10.0, 1.0, 0.1], 0.0)
    np.testing.assert_allclose(seen, expected)
    assert set(np.unique(expected)) >= {0.0, 0.1, 1.0}


def test_statistics_are_the_means():
    seen, true = looked_at(ues=100, **{"channel.csi": "statistics"})
    np.testing.assert_allclose(seen, 1.0, rtol=1e-12)
    assert true.std() > 0.5
