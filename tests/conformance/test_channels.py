"""What every channel must do, however it is made.

`channels.json` has what their blocks were when they were frozen: who means to change them writes
it anew, ``python -m tests.conformance.test_channels``.
"""

import hashlib
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from agewise import Scenario, Streams
from tests.radio.cells import DRIFT, WALK, office, street
from tests.radio.trace_files import FILES, SEEDED, trace_channel
from tests.scenarios import tiny

BAND = {"cell.subchannel_bandwidth_hz": 180e3}
MOTION = {"kind": "jakes", "carrier_hz": 3e9, "speed_m_s": 1.0}
FIXED = {"kind": "fixed", "k_db": 6.0}
PROFILES = ("epa", "eva", "etu", "tdl-a", "tdl-b", "tdl-c", "tdl-d", "tdl-e")


def taps(profile):
    spread = {"delay_spread_s": 1e-7} if profile.startswith("tdl") else {}
    return {"kind": "taps", "profile": profile} | spread


FADING = {
    "rician": ({"kind": "rician", "k_factor": FIXED}, {}),
    "nakagami": ({"kind": "nakagami", "m": 0.7}, {}),
    "doppler": ({"kind": "rayleigh", "time": MOTION}, {"channel.round_s": 0.01}),
    "rician-doppler-eva": (
        {"kind": "rician", "k_factor": FIXED, "time": MOTION, "frequency": taps("eva")},
        {"channel.round_s": 0.01} | BAND,
    ),
} | {name: ({"kind": "rayleigh", "frequency": taps(name)}, BAND) for name in PROFILES}
CSI = {
    "estimated": {"kind": "estimated", "pilot_snr_db": 10.0},
    "delayed": {"kind": "delayed", "delay_s": 0.01, "carrier_hz": 3e9, "speed_m_s": 1.0},
    "quantised": {"kind": "quantised", "bits": 4, "lowest_db": -20.0, "highest_db": 10.0},
    "statistics": {"kind": "statistics"},
}


#: What differs from a street cell (or from the tiny one, for the power law) under each name.
_LOUD = {"kind": "cells", "inter_site_distance_m": 200.0, "tiers": 2, "load": 0.5,
         "power_share": 0.1}  # fmt: skip
_HALL = {"kind": "inf", "carrier_ghz": 3.5, "hall": "dh", "access_point_height_m": 8.0,
         "ue_height_m": 1.5, "clutter_density": 0.6, "clutter_size_m": 2.0,
         "clutter_height_m": 6.0}  # fmt: skip
PARTS = {
    "umi": {},
    "uma": {"channel.path_loss": {"kind": "uma", "carrier_ghz": 3.5, "access_point_height_m": 25.0,
                                  "ue_height_m": 1.5, "indoor_share": 0.5}},
    "inf": {"channel.path_loss": _HALL},
    "free-space": {"channel.path_loss": {"kind": "free-space", "carrier_ghz": 3.5},
                   "channel.shadowing": "none"},
    "annulus": {"channel.placement": {"kind": "annulus", "least_distance_m": 10.0,
                                      "radius_m": 90.0}},
    "clusters": {"channel.placement": {"kind": "clusters", "radius_m": 90.0, "clusters": 3,
                                       "cluster_radius_m": 9.0}},
    "random-waypoint": {"channel.mobility": WALK, "channel.round_s": 5.0},
    "gauss-markov": {"channel.mobility": DRIFT, "channel.round_s": 5.0},
    "level": {"channel.interference": {"kind": "level", "rise_db": 3.0}},
    "cells": {"channel.interference": _LOUD},
    "all": {"channel.interference": _LOUD, "channel.mobility": WALK, "channel.round_s": 5.0,
            "channel.path_loss.indoor_share": 0.5},
}  # fmt: skip
#: Parts that a user brings, each of a few lines of NumPy (`own_parts.py`).
OWN = {
    "own placement": {"channel.placement": "Line"},
    "own mobility": {"channel.mobility": "Shuttle", "channel.round_s": 5.0},
    "own path loss": {"channel.path_loss": "DualSlope"},
    "own path loss with line of sight": {"channel.path_loss": "Clearing"},
    "own shadowing": {"channel.shadowing": "Hill"},
    "own fading": {"channel.fading": "LogNormalFading"},
    "own profile": {"channel.fading.frequency": "TwoTaps", **BAND},
    "own csi": {"channel.csi": "Noisy"},
    "own interference": {"channel.interference": "Jammer"},
    "own channel": {"channel": "Coin"},
}
MODELS = ["model", "unfaded", "physical", "office", "positions", "tracks", *PARTS]


@pytest.fixture(params=[*MODELS, *FADING, *CSI, *FILES, *OWN])
def kind(request):
    return request.param


def placed_by_file(kind, path):
    positions = np.random.default_rng(0).uniform(-50.0, 50.0, (2, 12, 2))
    if kind == "positions":
        np.savez(path, positions_m=positions[0])
        placement = {"kind": "file", "path": str(path), "radius_m": 100.0}
        return tiny(**{"channel.placement": placement})
    np.savez(path, times_s=[0.0, 60.0], positions_m=positions)
    mobility = {"kind": "file", "path": str(path)}
    return tiny(**{"channel.mobility": mobility, "channel.round_s": 5.0})


@pytest.fixture
def scenario(kind, tmp_path):
    return scenario_of(kind, tmp_path)


def scenario_of(kind, tmp_path):
    if kind in ("positions", "tracks"):
        return placed_by_file(kind, tmp_path / "ues.npz")
    if kind in OWN:
        file = Path(__file__).with_name("own_parts.py")
        own = {k: f"{file}:{v}" if isinstance(v, str) else v for k, v in OWN[kind].items()}
        return tiny(**own).loaded()
    if kind in PARTS:
        return street(**PARTS[kind])
    if kind == "office":
        return office()
    if kind == "model":
        return tiny()
    if kind == "unfaded":
        return tiny(**{"channel.fading": "none"})
    if kind == "physical":
        return Scenario.preset("physical").with_(**{"cell.ues": 12, "cell.subchannels": 5})
    if kind in FADING:
        fading, needs = FADING[kind]
        return tiny(**{"channel.fading": fading}, **needs)
    if kind in CSI:
        return tiny(**{"channel.csi": CSI[kind]})
    channel = trace_channel(tmp_path, kind, power_budget=2.0)
    return tiny(channel=channel, **{"cell.subchannel_bandwidth_hz": 180e3})


def test_blocks_have_the_size_of_the_cell(scenario):
    channel = scenario.make_channel(Streams(1))
    assert (channel.ue_count, channel.subchannel_count) == (12, 5)
    assert channel.power_budget > 0
    for t in range(8):
        block = channel.block(t)
        for gains in (block.seen, block.true):
            assert gains.shape == (12, 5)
            assert gains.dtype == np.float64
            assert gains.flags.c_contiguous
            assert (np.isfinite(gains) & (gains >= 0)).all()
        if block.positions_m is not None:
            assert block.positions_m.shape == (12, 2)
            assert np.isfinite(block.positions_m).all()


def test_any_block_in_any_order(scenario):
    forwards, backwards = (scenario.make_channel(Streams(5)) for _ in range(2))
    first = {t: forwards.block(t) for t in (0, 1, 7)}
    for t in (7, 1, 0, 0):
        again = backwards.block(t)
        np.testing.assert_array_equal(again.seen, first[t].seen)
        np.testing.assert_array_equal(again.true, first[t].true)
        if again.positions_m is not None:
            np.testing.assert_array_equal(again.positions_m, first[t].positions_m)


def test_the_seed_alone_decides(scenario, kind):
    one, other = (scenario.make_channel(Streams(seed)).block(0) for seed in (5, 6))
    is_random = kind not in FILES or kind in SEEDED
    assert np.array_equal(one.true, other.true) != is_random


#: Channels whose bytes are the same on every x86-64 machine: those of users follow NumPy.
FROZEN = [*MODELS, *FADING, *CSI, *FILES]
DIGESTS = Path(__file__).with_name("channels.json")


def digest_of(scenario):
    channel, digest = scenario.make_channel(Streams(5)), hashlib.sha256()
    for t in (7, 0, 1):
        block = channel.block(t)
        for array in (block.true, block.seen, block.positions_m):
            digest.update(b"" if array is None else array.tobytes())
    return digest.hexdigest()[:16]


@pytest.mark.parametrize("kind", FROZEN)
def test_blocks_are_what_they_were(kind, scenario):
    assert digest_of(scenario) == json.loads(DIGESTS.read_text(encoding="utf-8"))[kind]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        made = {kind: digest_of(scenario_of(kind, Path(folder))) for kind in FROZEN}
    DIGESTS.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"{len(made)} channels\n")
