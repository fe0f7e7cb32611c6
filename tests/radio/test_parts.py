"""Placement, path loss, fading: their laws by statistics, their scale by hand."""

import numpy as np
import pytest

from agewise import Scenario, Streams
from agewise.radio.cell import Cell, EdgeSnr, RunContext
from agewise.radio.path_loss import PowerLaw
from agewise.radio.placement import Disc
from agewise.scenario import ScenarioError
from tests.scenarios import tiny

SMALL = tiny(**{"cell.ues": 50, "cell.subchannels": 20})
PHYSICAL = Scenario.preset("physical").with_(
    **{"channel.link.noise_figure_db": 5.0, "channel.path_loss.reference_loss_db": 38.0}
)


LAW = PowerLaw(exponent=3.5, reference_distance_m=1.0)
NOWHERE = np.zeros(2, bool)


def of_ues(ues, seed=0, **more):
    """What a run with so many UEs asks of its channel."""
    return RunContext(Cell(ues=ues, subchannels=2), 8, more.get("round_s"), Streams(seed))


def largest_gap(sample, law):
    """Kolmogorov-Smirnov distance of a sample from a distribution function."""
    ordered = law(np.sort(sample))
    steps = np.arange(sample.size + 1) / sample.size
    return max((steps[1:] - ordered).max(), (ordered - steps[:-1]).max())


def test_uniform_by_area():
    positions = Disc(radius_m=100.0).positions(of_ues(20_000))
    distance = np.hypot(*positions.T)
    angle = np.arctan2(positions[:, 1], positions[:, 0])
    critical = 1.63 / np.sqrt(20_000)  # 1% level
    assert largest_gap(distance, lambda d: (d / 100.0) ** 2) < critical
    assert largest_gap(angle, lambda a: (a + np.pi) / (2 * np.pi)) < critical


def test_rayleigh_fading_has_unit_mean_and_is_exponential_and_independent():
    channel = SMALL.make_channel(Streams(3))
    blocks = (
        np.stack([channel.block(t).true for t in range(40)])
        / channel.large_scale(0).mean_gains[:, None]
    )
    critical = 1.63 / np.sqrt(blocks.size)
    assert largest_gap(blocks.ravel(), lambda g: 1 - np.exp(-g)) < critical
    assert blocks.mean() == pytest.approx(1.0, abs=4 / np.sqrt(blocks.size))
    across_blocks = np.corrcoef(blocks[:-1].ravel(), blocks[1:].ravel())[0, 1]
    across_subchannels = np.corrcoef(blocks[..., :-1].ravel(), blocks[..., 1:].ravel())[0, 1]
    across_ues = np.corrcoef(blocks[:, :-1].ravel(), blocks[:, 1:].ravel())[0, 1]
    for correlation in (across_blocks, across_subchannels, across_ues):
        assert abs(correlation) < 4 / np.sqrt(blocks.size)


def test_without_fading_gains_stay_at_their_means():
    channel = SMALL.with_(**{"channel.fading": "none"}).make_channel(Streams(3))
    for t in (0, 5):
        expected = np.repeat(channel.large_scale(0).mean_gains[:, None], 20, axis=1)
        np.testing.assert_array_equal(channel.block(t).true, expected)


def test_edge_snr_is_met_at_the_edge():
    link = EdgeSnr(edge_snr_db=10.0)
    gains = LAW.gain(np.array([100.0, 50.0]), NOWHERE)
    at_edge, half_way = gains * link.scale(LAW, 100.0, 0.0)
    assert at_edge * link.power_budget == pytest.approx(10.0)
    assert half_way / at_edge == pytest.approx(2**3.5)


def test_path_loss_stops_growing_below_the_reference_distance():
    assert LAW.gain(np.array([0.0, 1.0]), NOWHERE).tolist() == [1.0, 1.0]
    assert LAW.loss_db(np.array([0.0, 10.0]), NOWHERE) == pytest.approx([0.0, 35.0])


def test_physical_units_by_hand():
    """10 dBm - 38 dB - 35 dB a decade of distance over -174 + 5 dBm/Hz in 180 kHz."""
    channel = PHYSICAL.make_channel(Streams(1))
    distance = np.hypot(*channel.block(0).positions_m.T)
    snr_db = 10.0 - 38.0 - 35.0 * np.log10(distance) - (-169.0 + 10 * np.log10(180e3))
    np.testing.assert_allclose(
        10 * np.log10(channel.large_scale(0).mean_gains * channel.power_budget), snr_db
    )
    assert channel.power_budget == pytest.approx(0.01)


def test_threshold_from_payload_and_deadline():
    """251,200 bits in 0.15 s over 180 kHz: 54,000 real channel uses."""
    assert PHYSICAL.rate_threshold == pytest.approx(251_200 / 54_000)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"channel.path_loss.exponent": 0.0}, "must be (above|from) 0"),
        ({"channel.link.edge_snr_db": float("nan")}, "finite"),
        ({"channel.placement.radius_m": -1.0}, "must be (above|from) 0"),
        ({"threshold.rate": -1.0}, "must be from 0"),
    ],
)
def test_impossible_channels(change, message):
    with pytest.raises(ScenarioError, match=message):
        tiny(**change)
