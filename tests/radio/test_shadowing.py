"""Sight and shadowing as fields, and interference: laws by statistics over many seeds."""

import math

import numpy as np
import pytest

from agewise import Streams
from agewise.core.propagation import field_each, normal_cdf_each
from agewise.radio.interference import CellInterference
from agewise.radio.shadowing import GaussianField
from agewise.scenario import ScenarioError
from tests.radio.cells import WALK, street
from tests.radio.test_parts import largest_gap
from tests.scenarios import tiny

FIELDS = 4000
SHADOWED = {"kind": "log-normal", "sigma_db": 8.0, "decorrelation_m": 20.0}


def test_covariance_of_a_field():
    """4000 fields at distances up to 3 decorrelation lengths, in two directions.

    A product of two standard normals of correlation r has the variance 1 + r^2.
    """
    along = np.array([0.0, 5.0, 20.0, 60.0])
    places = np.concatenate([np.column_stack([along, 0 * along]),
                             np.column_stack([0.6 * along[1:], 0.8 * along[1:]])])  # fmt: skip
    values = np.stack([GaussianField.draw(np.uint64(7), i, 20.0).at(places) for i in range(FIELDS)])
    correlation = np.exp(-np.concatenate([along, along[1:]]) / 20.0)
    found = (values[:, :1] * values).mean(axis=0)
    bound = 4 * np.sqrt((1 + correlation**2) / FIELDS)
    assert (abs(found - correlation) < bound).all()
    assert abs(values.mean(axis=0)).max() < 4 / math.sqrt(FIELDS)
    normal = largest_gap(values[:, 3], normal_cdf_each)
    assert normal < 1.63 / math.sqrt(FIELDS) + 0.002  # 1% level; 128 waves are nearly normal


def test_a_single_field_has_its_covariance_over_places():
    """One field over 200 x 200 places, 2 decorrelation lengths apart: its own spread is normal."""
    grid = np.stack(np.meshgrid(np.arange(200.0), np.arange(200.0)), axis=-1).reshape(-1, 2) * 40
    field = GaussianField.draw(np.uint64(1), 0, 20.0)
    values, beside = field.at(grid), field.at(grid + np.array([0.0, 10.0]))
    assert values.var() == pytest.approx(1.0, abs=0.1)
    assert (values * beside).mean() == pytest.approx(math.exp(-0.5), abs=0.1)


def test_waves_by_hand():
    waves = np.array([[0.25, 0.0, 0.1], [0.0, -2.0, 0.7], [1e3, 1e3, 0.0]])
    places = np.array([[1.0, 0.3], [-7.5, 2.25]])
    turns = places @ waves[:, :2].T + waves[:, 2]
    expected = math.sqrt(2 / 3) * np.cos(2 * math.pi * turns).sum(axis=1)
    np.testing.assert_allclose(field_each(places, waves), expected, atol=1e-11)


def environment_of(scenario, seed):
    model = scenario.channel
    return model.environment(model.context(scenario.cell, 8, Streams(seed)))


def test_line_of_sight_and_gains_by_parts():
    """1000 places of a street against NumPy, in every condition.

    The chance of line of sight is that of the way outside, the path loss that of the whole way.
    """
    scenario = street(**{"channel.shadowing": {"kind": "log-normal"}})
    around, loss = environment_of(scenario, 2), scenario.channel.path_loss
    rng = np.random.default_rng(1)
    places = rng.uniform(-150.0, 150.0, (1000, 2))
    depth_m = np.where(rng.random(1000) < 0.5, rng.uniform(0.0, 25.0, 1000), 0.0)
    distance = np.sqrt((places * places).sum(axis=1))
    chance = loss.los_probability(distance - depth_m)
    outside = normal_cdf_each(around.los_field.at(places)) < chance
    assert (outside & (chance > loss.los_probability(distance))).sum() > 50
    condition = np.where(depth_m > 0, 2, np.where(outside, 0, 1))
    walls_db = np.where(depth_m > 0, 20.0 + 0.5 * depth_m, 0.0)
    shadow = [sigma * field.at(places) for field, sigma in around.shadowing_state]
    lost_db = loss.loss_db(distance, outside) + walls_db + np.choose(condition, shadow)
    gains, los = around.mean_gains(places, depth_m)
    np.testing.assert_array_equal(los, condition == 0)
    noise_w = scenario.channel.link.noise_w(180e3)
    np.testing.assert_allclose(gains, 10 ** (-lost_db / 10) / noise_w, rtol=1e-12)
    assert np.unique(condition).size == 3
    alone = [around.mean_gains(places[i : i + 1], depth_m[i : i + 1]) for i in range(50)]
    np.testing.assert_array_equal([gain[0] for gain, _ in alone], gains[:50])


def test_distribution_function():
    values = np.linspace(-6, 6, 121)
    exact = [0.5 * math.erfc(-x / math.sqrt(2)) for x in values]
    np.testing.assert_allclose(normal_cdf_each(values), exact, atol=1e-7)


def test_shadowing_multiplies_the_paper_s_means_by_normal_decibels():
    """500 UEs in each of 20 seeds, 8 dB: near UEs share theirs, so the bound is by 20 seeds."""
    scenario = tiny(**{"channel.shadowing": SHADOWED, "cell.ues": 500})
    ratios = []
    for seed in range(20):
        shadowed = scenario.make_channel(Streams(seed)).large_scale(0).mean_gains
        plain = scenario.with_(**{"channel.shadowing": "none"}).make_channel(Streams(seed))
        ratios.append(10 * np.log10(shadowed / plain.large_scale(0).mean_gains))
    assert np.mean(ratios) == pytest.approx(0.0, abs=4 * 8 / math.sqrt(20 * 15))
    assert np.std(ratios) == pytest.approx(8.0, rel=0.15)


def test_sight_follows_its_chance_and_is_shared_by_neighbours():
    """2000 seeds at 60 m (chance 0.43 in a street), 1 m and 300 m apart.

    Fields with correlation exp(-1/50) agree on a median in 1/2 + asin(r)/pi of all cases.
    """
    places = np.array([[60.0, 0.0], [60.0, 1.0], [-60.0, 0.0]])
    scenario, seen, states = street(), [], []
    for seed in range(2000):
        around = environment_of(scenario, seed)
        states.append(around.los_field.at(places))
        seen.append(around.mean_gains(places)[1])
    seen, states = np.array(seen), np.array(states)
    chance = 18 / 60 + math.exp(-60 / 36) * (1 - 18 / 60)
    assert abs(seen.mean(axis=0) - chance).max() < 4 * math.sqrt(chance * (1 - chance) / 2000)
    both = ((states[:, 0] < 0) == (states[:, 1] < 0)).mean()
    agreed = 0.5 + math.asin(math.exp(-1 / 50)) / math.pi
    assert both == pytest.approx(agreed, abs=4 * math.sqrt(agreed * (1 - agreed) / 2000))
    assert (seen[:, 0] == seen[:, 1]).mean() > 0.9 > (seen[:, 0] == seen[:, 2]).mean()


def test_sigma_depends_on_sight():
    """At one place over 2000 seeds: 4 dB in sight and 7.82 dB out of it (UMi)."""
    loss, seen = [], []
    for seed in range(2000):
        around = environment_of(street(), seed)
        gains, sight = around.mean_gains(np.array([[60.0, 0.0]]))
        loss.append(-10 * np.log10(gains[0]))
        seen.append(sight[0])
    loss, seen = np.array(loss), np.array(seen)
    for state, sigma in ((True, 4.0), (False, 7.82)):
        sample = loss[seen == state]
        assert sample.std() == pytest.approx(sigma, rel=4 / math.sqrt(2 * sample.size))


def test_walking_changes_shadowing_by_its_decorrelation():
    """Steps of 1 m in 10 to 13 m of decorrelation: most of a UE's shadowing stays."""
    walk = WALK | {"slowest_m_s": 1.0, "fastest_m_s": 1.0, "pause_s": 0.0}
    scenario = street(**{"channel.mobility": walk, "channel.round_s": 1.0, "cell.ues": 300})
    channel = scenario.make_channel(Streams(0))
    before, after, later = (channel.large_scale(t) for t in (0, 1, 60))
    level = [np.log10(large.mean_gains) for large in (before, after, later)]
    assert np.corrcoef(level[0], level[1])[0, 1] > 0.9
    assert np.corrcoef(level[0], level[2])[0, 1] < 0.8
    assert (before.line_of_sight == after.line_of_sight).mean() > 0.9


def test_walls_of_buildings():
    """All indoors: 20 dB and 0.5 dB over U(0, 25) m more, nobody in line of sight.

    Whoever is in line of sight at the whole distance also is at the one outside.
    """
    plain = street(**{"channel.shadowing": "none", "cell.ues": 2000})
    inside = plain.with_(**{"channel.path_loss.indoor_share": 1.0})
    out, within = (one.make_channel(Streams(0)).large_scale(0) for one in (plain, inside))
    lost = 10 * np.log10(out.mean_gains / within.mean_gains)
    los = lost[out.line_of_sight]
    assert largest_gap(los, lambda x: (x - 20.0) / 12.5) < 1.63 / math.sqrt(los.size)
    assert out.line_of_sight.any()
    assert not within.line_of_sight.any()


# ------------------------------------------------------------------------------------ interference
def test_sites_of_the_neighbours():
    for tiers, count in ((1, 6), (2, 18)):
        sites = CellInterference(**cells(tiers=tiers)).sites_m()
        assert len(sites) == count
        apart = np.linalg.norm(sites[:, None] - sites[None], axis=2) + 1e9 * np.eye(count)
        assert apart.min() == pytest.approx(200.0)
        assert np.linalg.norm(sites, axis=1).min() == pytest.approx(200.0)


def cells(**changes):
    return {"kind": "cells", "inter_site_distance_m": 200.0, "tiers": 1, "load": 0.5,
            "power_share": 0.1} | changes  # fmt: skip


def noise_rises(scenario, rounds):
    """``[round, subchannel]`` of seed 1."""
    channel = scenario.make_channel(Streams(1))
    part, state = scenario.channel.interference, channel.interference
    return np.stack([part.noise_rise(state, t) for t in range(rounds)])


def test_a_given_level():
    quiet, loud = tiny(), tiny(**{"channel.interference": {"kind": "level", "rise_db": 3.0}})
    gains = [one.make_channel(Streams(1)).block(4) for one in (quiet, loud)]
    np.testing.assert_allclose(gains[0].true, gains[1].true * 10**0.3)
    assert gains[1].seen is gains[1].true


def test_neighbouring_cells_raise_the_noise_by_their_load():
    """Without load nothing; with it the mean rise grows in proportion, over 2000 rounds."""
    quiet = tiny()
    idle = quiet.with_(**{"channel.interference": cells(load=0.0)})
    np.testing.assert_array_equal(
        quiet.make_channel(Streams(1)).block(0).true, idle.make_channel(Streams(1)).block(0).true
    )
    means, errors = [], []
    for load in (0.25, 1.0):
        loaded = quiet.with_(**{"channel.interference": cells(load=load)})
        rise = noise_rises(loaded, 2000) - 1.0
        means.append(rise.mean())
        errors.append(rise.std() / math.sqrt(rise.size))
        assert (rise >= 0).all()
        assert ((rise == 0).mean() == 0) == (load == 1.0)
    assert 4 * means[0] == pytest.approx(means[1], abs=4 * (4 * errors[0] + errors[1]))


def test_interference_of_the_paper_s_power_law_by_hand():
    """Six full cells: the mean over their hexagons of 10 dB (d / 100 m)^-3.5 times the share."""
    loaded = tiny(**{"channel.interference": cells(load=1.0)})
    rise = noise_rises(loaded.with_(**{"cell.subchannels": 20}), 500) - 1.0
    along = np.linspace(-200.0 / math.sqrt(3.0), 200.0 / math.sqrt(3.0), 801)
    grid = np.stack(np.meshgrid(along, along), axis=-1).reshape(-1, 2)
    sides = [grid @ [math.cos(a), math.sin(a)] for a in np.deg2rad([0, 60, 120])]
    inside = (np.abs(sides) <= 100.0).all(axis=0)
    distance = np.linalg.norm(grid[inside] + np.array([200.0, 0.0]), axis=1)
    expected = 6 * 0.1 * 10.0 * ((distance / 100.0) ** -3.5).mean()
    assert rise.mean() == pytest.approx(expected, abs=4 * rise.std() / math.sqrt(rise.size))


def test_shadowing_needs_its_numbers_without_a_model():
    for name in ("sigma_db", "decorrelation_m"):
        settings = {key: value for key, value in SHADOWED.items() if key != name}
        with pytest.raises(ScenarioError, match=f"channel.shadowing.{name} is missing: power-law"):
            tiny(**{"channel.shadowing": settings})
