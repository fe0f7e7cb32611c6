"""Placement, path loss, fading: their laws by statistics, their scale by hand."""

import numpy as np
import pytest
from pydantic import ValidationError

from agewise import Streams
from agewise.radio import CellChannel, mean_gains, power_budget, power_law, uniform_in_disc
from agewise.scenario import Cell, Channel, LinkBudget, Upload

CHANNEL = Channel(
    path_loss_exponent=3.5, reference_distance_m=1.0, edge_snr_db=10.0, rate_threshold=4.0
)
PHYSICAL = Channel(
    path_loss_exponent=3.5,
    reference_distance_m=1.0,
    link_budget=LinkBudget(
        transmit_power_dbm=10.0,
        noise_density_dbm_hz=-174.0,
        noise_figure_db=5.0,
        reference_loss_db=38.0,
    ),
    upload=Upload(payload_bits=251_200.0, deadline_s=0.1),
    subchannel_bandwidth_hz=180e3,
)
CELL = Cell(ues=50, subchannels=20, radius_m=100.0)


def largest_gap(sample, law):
    """Kolmogorov-Smirnov distance of a sample from a distribution function."""
    ordered = law(np.sort(sample))
    steps = np.arange(sample.size + 1) / sample.size
    return max((steps[1:] - ordered).max(), (ordered - steps[:-1]).max())


def test_uniform_by_area():
    positions = uniform_in_disc(20_000, 100.0, np.random.default_rng(0))
    distance = np.hypot(*positions.T)
    angle = np.arctan2(positions[:, 1], positions[:, 0])
    critical = 1.63 / np.sqrt(20_000)  # 1% level
    assert largest_gap(distance, lambda d: (d / 100.0) ** 2) < critical
    assert largest_gap(angle, lambda a: (a + np.pi) / (2 * np.pi)) < critical


def test_rayleigh_fading_has_unit_mean_and_is_exponential_and_independent():
    channel = CellChannel.of(CELL, CHANNEL, Streams(3))
    blocks = np.stack([channel.gains(t) for t in range(40)]) / channel.mean_gains[:, None]
    critical = 1.63 / np.sqrt(blocks.size)
    assert largest_gap(blocks.ravel(), lambda g: 1 - np.exp(-g)) < critical
    assert blocks.mean() == pytest.approx(1.0, abs=4 / np.sqrt(blocks.size))
    across_blocks = np.corrcoef(blocks[:-1].ravel(), blocks[1:].ravel())[0, 1]
    across_subchannels = np.corrcoef(blocks[..., :-1].ravel(), blocks[..., 1:].ravel())[0, 1]
    across_ues = np.corrcoef(blocks[:, :-1].ravel(), blocks[:, 1:].ravel())[0, 1]
    for correlation in (across_blocks, across_subchannels, across_ues):
        assert abs(correlation) < 4 / np.sqrt(blocks.size)


def test_gains_of_any_round_in_any_order():
    forwards = CellChannel.of(CELL, CHANNEL, Streams(5))
    backwards = CellChannel.of(CELL, CHANNEL, Streams(5))
    first = {t: forwards.gains(t) for t in (0, 1, 7)}
    for t in (7, 1, 0, 0):
        np.testing.assert_array_equal(backwards.gains(t), first[t])
    assert not np.array_equal(first[0], first[1])
    assert not np.array_equal(CellChannel.of(CELL, CHANNEL, Streams(6)).gains(0), first[0])


def test_edge_snr_is_met_at_the_edge():
    at_edge, half_way = mean_gains(np.array([100.0, 50.0]), CHANNEL, 100.0)
    assert at_edge * power_budget(CHANNEL) == pytest.approx(10.0)
    assert half_way / at_edge == pytest.approx(2**3.5)


def test_path_loss_stops_growing_below_the_reference_distance():
    assert power_law(np.array([0.0, 1.0]), 3.5, 1.0).tolist() == [1.0, 1.0]


def test_physical_units_by_hand():
    """10 dBm - 38 dB - 70 dB of path loss over -174 + 5 dBm/Hz in 180 kHz."""
    snr_db = 10.0 - 38.0 - 35.0 * np.log10(100.0) - (-169.0 + 10 * np.log10(180e3))
    edge = mean_gains(np.array([100.0]), PHYSICAL, 100.0)[0] * power_budget(PHYSICAL)
    assert 10 * np.log10(edge) == pytest.approx(snr_db)
    assert power_budget(PHYSICAL) == pytest.approx(0.01)
    same = CHANNEL.model_copy(update={"edge_snr_db": snr_db})
    distances = np.array([3.0, 40.0, 100.0])
    np.testing.assert_allclose(
        mean_gains(distances, same, 100.0), mean_gains(distances, PHYSICAL, 100.0) * 0.01
    )


def test_threshold_from_payload_and_deadline():
    """251,200 bits in 0.1 s over 180 kHz: 36,000 real channel uses."""
    assert PHYSICAL.threshold_bits == pytest.approx(251_200 / 36_000)
    assert CHANNEL.threshold_bits == 4.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edge_snr_db": None}, "exactly one of edge_snr_db and link_budget"),
        ({"link_budget": PHYSICAL.link_budget}, "exactly one of edge_snr_db and link_budget"),
        ({"rate_threshold": None}, "exactly one of rate_threshold and upload"),
        ({"rate_threshold": None, "upload": PHYSICAL.upload}, "need subchannel_bandwidth_hz"),
        ({"rate_threshold": -1.0}, "greater than or equal to 0"),
        ({"path_loss_exponent": 0.0}, "greater than 0"),
        ({"edge_snr_db": float("nan")}, "finite"),
        ({"edge_snr": 3.0}, "edge_snr"),
    ],
)
def test_impossible_channels(change, message):
    with pytest.raises(ValidationError, match=message):
        Channel(**(CHANNEL.model_dump() | change))
