"""TR 38.901 by hand; `tests/checked.py` has golden values of ns-3 and a second implementation."""

import math

import numpy as np
import pytest

from agewise.radio.path_loss import (
    ByCondition,
    FreeSpace,
    IndoorFactory,
)
from agewise.scenario import ScenarioError
from tests.checked import MODELS, losses_db
from tests.radio.cells import office, street


@pytest.mark.parametrize(
    ("hall", "constant", "slope"),
    [("sl", 33.0, 25.5), ("dl", 18.6, 35.7), ("sh", 32.4, 23.0), ("dh", 33.63, 21.9)],
)
def test_halls_by_hand(hall, constant, slope):
    dense, high = hall[0] == "d", hall[1] == "h"
    settings = IndoorFactory(
        carrier_ghz=3.5, hall=hall, access_point_height_m=8.0 if high else 1.5, ue_height_m=1.5,
        clutter_density=0.6 if dense else 0.2, clutter_size_m=2.0 if dense else 10.0,
        clutter_height_m=6.0 if dense else 2.0,
    )  # fmt: skip
    distance = np.array([10.0, 50.0, 300.0])
    lg = np.log10(np.hypot(distance, 6.5 if high else 0.0))
    seen = 31.84 + 21.5 * lg + 19 * math.log10(3.5)
    np.testing.assert_allclose(losses_db(settings, distance, seen=True), seen)
    hidden = np.maximum(seen, constant + slope * lg + 20 * math.log10(3.5))
    if hall == "dl":  # at least that of the sparse hall
        hidden = np.maximum(hidden, 33.0 + 25.5 * lg + 20 * math.log10(3.5))
    np.testing.assert_allclose(losses_db(settings, distance, seen=False), hidden)
    clear = -settings.clutter_size_m / math.log(1 - settings.clutter_density)
    clear *= 6.5 / (settings.clutter_height_m - 1.5) if high else 1.0
    np.testing.assert_allclose(settings.los_probability(distance), np.exp(-distance / clear))


def test_free_space_by_hand():
    """Friis at 3 GHz: waves of 0.1 m, (4 pi d / 0.1)^2; below 1 m as at 1 m."""
    gain = FreeSpace(carrier_ghz=3.0).gain(np.array([0.1, 1.0, 100.0]), np.zeros(3, bool))
    np.testing.assert_allclose(gain, (0.1 / (4 * math.pi * np.array([1, 1, 100.0]))) ** 2)


def test_los_probabilities_by_hand():
    distance = np.array([1.0, 5.0, 6.4, 18.0, 50.0, 100.0])
    far = 18 / distance[4:]
    for name, fall in (("uma", 63.0), ("umi", 36.0)):
        expected = [*np.ones(4), *(far + np.exp(-distance[4:] / fall) * (1 - far))]
        np.testing.assert_allclose(MODELS[name].los_probability(distance), expected)
    expected = [1, 1, *np.exp(-np.array([1.4, 13.0]) / 70.8),
                *0.54 * np.exp(-np.array([1.0, 51.0]) / 211.7)]  # fmt: skip
    np.testing.assert_allclose(MODELS["inh"].los_probability(distance), expected)
    expected = [1, *np.exp(-np.array([3.8, 5.2]) / 4.7),
                *0.32 * np.exp(-np.array([11.5, 43.5, 93.5]) / 32.6)]  # fmt: skip
    mixed = MODELS["inh"].model_copy(update={"office": "mixed"})
    np.testing.assert_allclose(mixed.los_probability(distance), expected)


def test_near_ues_have_the_loss_where_the_model_begins():
    for name, nearest in (("uma", 10.0), ("umi", 10.0)):
        near, first = losses_db(MODELS[name], [0.0, nearest], seen=True)
        assert near == first
    flat = MODELS["inh"].model_copy(update={"ue_height_m": 3.0})
    assert losses_db(flat, [0.0], seen=True) == losses_db(flat, [1.0], seen=True)


def test_shadowing_constants():
    loss = MODELS["umi"]
    assert loss.shadowing_sigma_db == ByCondition(4, 7.82, 7)
    assert loss.shadowing_decorrelation_m == ByCondition(10, 13, 7)


@pytest.mark.parametrize(
    ("make", "changes", "message"),
    [
        (street, {"channel.path_loss.carrier_ghz": 200.0}, "carrier_ghz = 200.0: must be from 0.5"),
        (street, {"channel.path_loss.ue_height_m": 0.5}, "ue_height_m = 0.5: must be from 1.5 to"),
        (street, {"channel.path_loss.access_point_height_m": 60.0},
         "access_point_height_m = 60.0: must be from 3"),
        (street, {"channel.path_loss.carrier_ghz": 28.0, "channel.path_loss.indoor_share": 0.5},
         "indoor_share = 0.5: must be 0 from carrier_ghz = 6 on.*; 0 would do"),
        (street, {"channel.placement": {"kind": "disc", "radius_m": 6000.0}},
         "up to 6000 m away, and umi holds to 5000 m: make it smaller by a factor of 1.2"),
        (office, {"channel.placement.radius_m": 300.0}, "inh holds to 150 m"),
        (office, {"channel.link": {"kind": "edge-snr", "edge_snr_db": 3.0}},
         'channel.link: inh gives path loss.*: set channel.link to kind = "budget"'),
        (street, {"channel.interference": {"kind": "cells", "inter_site_distance_m": 4000.0,
                                           "tiers": 1, "load": 0.5, "power_share": 0.1}},
         "inter_site_distance_m = 4000: must be from 0.001 to 3169.9 with tiers = 1, because umi"),
        (office, {"channel.path_loss": {
            "kind": "inf", "carrier_ghz": 3.5, "hall": "sl", "access_point_height_m": 1.5,
            "ue_height_m": 1.5, "clutter_density": 0.6, "clutter_size_m": 2.0,
            "clutter_height_m": 6.0}},
         'clutter_density = 0.6: must be above 0 to below 0.4 .*; hall = "dl" would do'),
        (office, {"channel.path_loss": {
            "kind": "inf", "carrier_ghz": 3.5, "hall": "dh", "access_point_height_m": 5.0,
            "ue_height_m": 1.5, "clutter_density": 0.6, "clutter_size_m": 2.0,
            "clutter_height_m": 6.0}},
         "clutter_height_m = 6: must be above ue_height_m = 1.5 to below access_point_height_m"),
    ],
)  # fmt: skip
def test_models_outside_their_range(make, changes, message):
    with pytest.raises(ScenarioError, match=message):
        make(**changes)
