"""What a channel means before anything is simulated: measured, printed, drawn."""

import json

import matplotlib as mpl
import numpy as np
import pytest
from typer.testing import CliRunner

import agewise
from agewise import Scenario, Streams
from agewise.cli._app import app
from agewise.spectrum import fewest_subchannels
from agewise.studies.channel_picture import draw_channel
from agewise.studies.channel_view import view_channel, view_trace
from tests.radio.cells import DRIFT, street
from tests.scenarios import tiny

mpl.use("Agg")
PAPER = Scenario.preset("paper")
#: Taps of 3GPP TS 36.104 B.2, Extended Vehicular A: delays in ns and powers in dB.
EVA_NS = (0, 30, 150, 310, 370, 710, 1090, 1730, 2510)
EVA_DB = (0, -1.5, -1.4, -3.6, -0.6, -9.1, -7.0, -12.0, -16.9)


def test_needs_are_those_of_algorithm_1():
    scenario = tiny(**{"run.rounds": 6, "threshold.rate": 5.0, "channel.link.edge_snr_db": 0.0})
    view = view_channel(scenario, seed=3)
    channel, needed = scenario.make_channel(Streams(3)), np.zeros((6, 12), int)
    for t in range(6):
        for ue, gains in enumerate(channel.block(t).true):
            found = fewest_subchannels(gains, channel.power_budget, 5.0)
            needed[t, ue] = 0 if found is None else found.size
    np.testing.assert_allclose(view.needed, np.bincount(needed.ravel(), minlength=6) / 72)
    np.testing.assert_allclose(view.served_share, (needed > 0).mean(axis=0))
    assert view.never_served == (needed == 0).all(axis=0).sum() > 0


def test_the_paper_s_channel_is_independent_and_has_the_snr_of_its_distances():
    view = view_channel(PAPER, seed=1)
    distance = np.hypot(*view.positions_m.T)
    expected = 10.0 - 35.0 * np.log10(distance / 100.0)
    # The mean of 2,000 exponentials deviates by 1/sqrt(2000), which is 0.1 dB.
    np.testing.assert_allclose(view.mean_snr_db, expected, atol=0.5)
    # 200,000 gains: correlations of independent ones deviate by 0.0023.
    for values in (view.time_correlation, view.frequency_correlation[:10]):
        assert values[0] == pytest.approx(1.0)
        assert np.abs(values[1:]).max() < 0.015
    middle = view.area.snr_db.shape[0] // 2
    assert np.isnan(view.area.snr_db[0, 0])
    edge_m = 100.0 * (160.5 / 161 * 2 - 1)
    level = 10.0 - 35.0 * np.log10(edge_m / 100.0)
    assert view.area.snr_db[middle, -1] == pytest.approx(level, abs=1e-6)
    assert view.line_of_sight is None
    assert view.seen_error_db is None


def test_a_delay_line_correlates_subchannels_as_its_taps_say():
    fading = {"kind": "rayleigh", "frequency": {"kind": "taps", "profile": "eva"}}
    view = view_channel(
        PAPER.with_(**{"channel.fading": fading, "cell.subchannel_bandwidth_hz": 180e3})
    )
    power = 10 ** (np.array(EVA_DB) / 10)
    lags = np.arange(4)
    turns = np.exp(-2j * np.pi * 180e3 * lags[:, None] * np.array(EVA_NS) * 1e-9)
    expected = np.abs((turns * power).sum(axis=1) / power.sum()) ** 2
    # 10,000 independent draws of a UE and a round; powers of Rayleigh amplitudes have unit
    # variance, and the estimate is low by one over the effective draws of a UE, here about 1/300.
    np.testing.assert_allclose(view.frequency_correlation[:4], expected, atol=0.05)
    assert abs(view.time_correlation[1]) < 0.03


def test_what_the_access_point_sees_wrong_is_told_in_decibels():
    known = {"kind": "estimated", "pilot_snr_db": 10.0}
    wrong = view_channel(tiny(**{"channel.csi": known})).seen_error_db
    worse = view_channel(tiny(**{"channel.csi": known | {"pilot_snr_db": 0.0}}))
    assert 0.5 < wrong < worse.seen_error_db


def test_a_street_has_sight_and_shadowing_in_its_map():
    view = view_channel(street(**{"cell.ues": 60}))
    assert 0 < view.summary()["line_of_sight_share"] < 1
    seen = view.area.line_of_sight
    assert np.nanmean(view.area.snr_db[seen]) > np.nanmean(view.area.snr_db[~seen]) + 10
    # UEs have the SNR of the square that they stand on, but for fading and the size of squares.
    squares = ((view.positions_m / view.area.reach_m + 1) / 2 * 161).astype(int)
    below = view.area.snr_db[squares[:, 1], squares[:, 0]]
    assert np.median(np.abs(below - view.mean_snr_db)) < 3


def test_the_map_of_a_hexagon_is_one():
    placement = {"kind": "hexagon", "inter_site_distance_m": 200.0, "least_distance_m": 10.0}
    view = view_channel(street(**{"channel.placement": placement, "run.rounds": 1}))
    inside = np.isfinite(view.area.snr_db)
    # Of the square around its corners a hexagon fills 3 sqrt(3) / 8; 161 squares to a side.
    assert inside.mean() == pytest.approx(0.6495, abs=0.01)
    middles = ((np.arange(161) + 0.5) / 161 * 2 - 1) * view.area.reach_m
    sides = middles[inside.any(axis=0)]
    assert np.abs(sides).max() == pytest.approx(100.0, abs=1.5), "two sides cross the x-axis"


def test_gains_that_do_not_vary_have_no_correlation():
    view = view_channel(tiny(**{"channel.fading": "none"}))
    assert np.isnan(view.time_correlation).all()
    assert view.summary()["time_correlation_1"] is None


def test_a_recorded_trace_is_seen_as_its_channel(tmp_path):
    scenario = street(**{"channel.mobility": DRIFT, "channel.round_s": 5.0})
    view = view_channel(scenario, 2)
    file = agewise.record_trace(scenario, tmp_path / "t.npz", 2)
    again = view_trace(file, scenario.rate_threshold)
    own = {"line_of_sight_share"}  # which a trace does not keep
    assert {n: x for n, x in again.summary().items() if n not in own} == {
        n: x for n, x in view.summary().items() if n not in own
    }
    assert view_trace(file).needed is None
    with pytest.raises(ValueError, match="rounds must be a whole number from 1 to 8, not 9"):
        view_trace(file, rounds=9)
    np.save(tmp_path / "empty.npy", np.ones((0, 3, 2)))
    with pytest.raises(ValueError, match="at least one of each, not float64 of shape"):
        view_trace(tmp_path / "empty.npy")


@pytest.mark.parametrize(
    "scenario",
    [street(), tiny(**{"channel.fading": "none", "cell.subchannels": 1, "run.rounds": 1}),
     tiny(**{"channel.link.edge_snr_db": -200.0})],
    ids=["street", "smallest", "hopeless"],
)  # fmt: skip
def test_pictures_are_the_same_file_again(scenario, tmp_path):
    view = view_channel(scenario, rounds=3)
    files = [draw_channel(view, tmp_path / f"{name}.svg").read_bytes() for name in "ab"]
    assert files[0] == files[1]
    assert b"<svg" in files[0]
    with pytest.raises(ValueError, match=r"x.bmp: a figure ends in .png, .pdf, .svg, .eps"):
        draw_channel(view, tmp_path / "x.bmp")


def command(*arguments):
    run = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert run.exit_code == 0, run.output
    return run.stdout


def test_commands_record_show_and_draw(tmp_path):
    (tmp_path / "tiny.toml").write_text(tiny().to_toml())
    file, picture = tmp_path / "t.npz", tmp_path / "t.png"
    said = command("trace", "record", tmp_path / "tiny.toml", "--out", file, "--seed", 3)
    assert said == f"Trace: {file}\n"
    shown = command("trace", "show", file, "--rate-threshold", 4, "-o", picture)
    assert f"Picture: {picture}" in shown
    assert picture.read_bytes().startswith(b"\x89PNG")
    described = json.loads(command("channel", tmp_path / "tiny.toml", "--seed", 3, "--json"))
    shown = json.loads(command("trace", "show", file, "--rate-threshold", 4, "--json"))
    assert described.pop("devices")["kind"] == "alike"  # a trace does not know
    assert described == shown
    assert described["never_served"] == view_channel(tiny(), 3).never_served
    assert len(described["each_ue"]["mean_snr_db"]) == 12
    text = command("channel", tmp_path / "tiny.toml", "--seed", 3)
    assert "UEs that can never be served" in text
