"""Placement and mobility: laws by statistics, limits by every place, files by what is said."""

import math

import numpy as np
import pytest

from agewise import Streams, simulate
from agewise.core.mobility import Area, drift
from agewise.radio.mobility import GaussMarkov, MobilityFile, RandomWaypoint
from agewise.radio.placement import Annulus, Clusters, Disc, Hexagon
from agewise.scenario import ScenarioError
from tests.radio.cells import DRIFT, WALK, street
from tests.radio.test_parts import largest_gap, of_ues
from tests.scenarios import tiny

HEXAGON = Hexagon(inter_site_distance_m=200.0, least_distance_m=10.0)
ANNULUS = Annulus(least_distance_m=60.0, radius_m=100.0)
CRITICAL = 1.63  # over the root of the sample's size: the 1% level of Kolmogorov and Smirnov


def is_inside(positions, area, slack=1e-6):
    x, y = positions[..., 0], positions[..., 1]
    distance = np.hypot(x, y)
    sides = [abs(x * math.cos(a) + y * math.sin(a)) for a in np.deg2rad([0, 60, 120])]
    return (
        (distance >= area.least_m - slack).all()
        and (distance <= area.reach_m + slack).all()
        and all((side <= area.apothem_m + slack).all() for side in sides)
    )


def test_annulus_is_uniform_by_area():
    positions = ANNULUS.positions(of_ues(20_000))
    distance = np.hypot(*positions.T)
    law = lambda d: (d**2 - 60.0**2) / (100.0**2 - 60.0**2)  # noqa: E731
    assert largest_gap(distance, law) < CRITICAL / math.sqrt(20_000)
    assert is_inside(positions, ANNULUS.area)


def test_hexagon_is_uniform_by_area():
    """Its x goes by the height of the hexagon there: equal for |x| to the side, turned by 60."""
    whole = HEXAGON.model_copy(update={"least_distance_m": 0.0})
    positions, corner = whole.positions(of_ues(20_000, seed=1)), whole.reach_m
    assert is_inside(positions, Area(0.0, 200.0 / math.sqrt(3.0), 100.0))

    def below(x):  # the hexagon is corner - |x| / sqrt(3) high on either side of the x-axis
        share = np.abs(x) * (corner - np.abs(x) / (2 * math.sqrt(3.0)))
        return 0.5 + np.sign(x) * 0.5 * share / (100.0 * (corner - 100.0 / (2 * math.sqrt(3.0))))

    for angle in np.deg2rad([0, 60, 120]):
        across = positions @ np.array([math.cos(angle), math.sin(angle)])
        assert largest_gap(across, below) < CRITICAL / math.sqrt(20_000)


def test_clusters():
    clusters = Clusters(radius_m=100.0, clusters=3, cluster_radius_m=5.0)
    positions = clusters.positions(of_ues(3000, seed=2))
    assert np.hypot(*positions.T).max() <= 100.0
    points = clusters.model_copy(update={"cluster_radius_m": 0.0})
    middles = points.positions(of_ues(3000, seed=2))
    assert len(np.unique(middles.round(9), axis=0)) == 3
    near = np.linalg.norm(positions[:, None] - positions[None, :100], axis=2) <= 10.0
    assert 0.2 < near.mean() < 0.6  # a third of the others are in a UE's own cluster, or two touch


# ---------------------------------------------------------------------------------------- mobility
def walk(placement, times_s, ues=4000):
    """(positions, speeds) of UEs at these times, which rise: speeds over 0.1 ms."""
    mobility = RandomWaypoint(slowest_m_s=0.5, fastest_m_s=4.0, pause_s=30.0)
    state = mobility.start(of_ues(ues, round_s=1e-4), placement)
    for time_s in times_s:
        first, state = mobility.move(state, 10_000 * time_s)
        then, state = mobility.move(state, 10_000 * time_s + 1)
        yield first, np.linalg.norm(then - first, axis=1) / 1e-4


@pytest.mark.parametrize("placement", [HEXAGON, ANNULUS], ids=["hexagon", "annulus"])
def test_random_waypoint_starts_in_its_steady_state(placement):
    """What a UE does at time 0 has the law of what it does 2000 s (some 20 legs) later.

    4000 UEs: two independent samples differ by 1.63 sqrt(2 / 4000) at the 1% level.
    """
    (first, slow), (later, fast) = walk(placement, [0, 2000])
    for one, other in (
        (np.hypot(*first.T), np.hypot(*later.T)), (first[:, 0], later[:, 0]), (slow, fast)
    ):  # fmt: skip
        places = np.sort(np.concatenate([one, other]))
        ranks = [np.searchsorted(np.sort(x), places, side="right") / x.size for x in (one, other)]
        assert abs(ranks[0] - ranks[1]).max() < CRITICAL * math.sqrt(2 / 4000)


def test_speeds_and_pauses_in_the_steady_state_of_a_disc():
    """Legs of a disc are 128 R / (45 pi) long on average, and moving UEs have 1/v speeds."""
    ((_, speed),) = walk(Disc(radius_m=100.0), [0], ues=20_000)
    travel_s = 128 * 100.0 / (45 * math.pi) * math.log(8) / 3.5
    pausing = 30.0 / (30.0 + travel_s)
    assert (speed == 0).mean() == pytest.approx(pausing, abs=4 * math.sqrt(0.25 / 20_000))
    moving = speed[speed > 0]
    assert largest_gap(moving, lambda v: np.log(v / 0.5) / math.log(8)) < CRITICAL / math.sqrt(
        moving.size
    )


LONG_STEPS = [
    {"mean_speed_m_s": 1.0, "deviation_m_s": 0.3, "memory_s": 10.0},
    {"mean_speed_m_s": 0.0, "deviation_m_s": 3.0, "memory_s": 1e3},
    {"mean_speed_m_s": 20.0, "deviation_m_s": 5.0, "memory_s": 30.0},
]


@pytest.mark.parametrize("law", LONG_STEPS, ids=["slow", "without a mean", "fast"])
@pytest.mark.parametrize("seed", [0, 1])
def test_gauss_markov_ues_stay_uniform_however_long_the_steps(law, seed):
    """30 steps of 10 s in a disc, a ring and a hexagon, 4000 UEs each, by area from the middle.

    UEs are independent: the gap to the law is below 1.63 / sqrt(4000) at the 1% level.
    """
    hexagon = 2.0 * math.sqrt(3.0) * 100.0**2
    for placement, share_within in (
        (Disc(radius_m=100.0), lambda d: (d / 100.0) ** 2),
        (ANNULUS, lambda d: (d**2 - 60.0**2) / (100.0**2 - 60.0**2)),
        (HEXAGON, lambda d: math.pi * (d**2 - 10.0**2) / (hexagon - math.pi * 10.0**2)),
    ):
        run = of_ues(4000, seed=seed, round_s=10.0)
        mobility = GaussMarkov(**law)
        positions, _ = mobility.move(mobility.start(run, placement), 30)
        assert is_inside(positions, placement.area)
        distance = np.sort(np.hypot(*positions.T))
        distance = distance[distance < 100.0]  # the others are in the corners of the hexagon
        ranks = np.arange(1, distance.size + 1) / 4000
        assert abs(ranks - share_within(distance)).max() < CRITICAL / math.sqrt(4000)


def test_ways_are_mirrored_where_they_meet_a_wall():
    """20 s at 5 m/s from (60, 0): x^2 + y^2 = 100^2 at (60 + 3 t, 4 t)."""
    state = np.array([[60.0, 0.0, 3.0, 4.0, 3.0, -4.0]])
    disc = (0.0, 100.0, math.inf)
    (place,) = drift(np.uint64(0), (0, 1), 20.0, disc, (1.0, 0.0), state)
    met_s = (-360.0 + math.sqrt(360.0**2 + 100.0 * 6400.0)) / 50.0
    met = np.array([60.0 + 3.0 * met_s, 4.0 * met_s])
    normal = met / 100.0
    mirror = np.eye(2) - 2.0 * np.outer(normal, normal)
    np.testing.assert_allclose(place, met + (20.0 - met_s) * (mirror @ [3.0, 4.0]))
    np.testing.assert_allclose(state[0, 2:4], mirror @ [3.0, 4.0])
    np.testing.assert_allclose(state[0, 4:], mirror @ [3.0, -4.0])


@pytest.mark.parametrize("placement", ["disc", "annulus", "hexagon", "clusters"])
@pytest.mark.parametrize("mobility", [WALK | {"fastest_m_s": 30.0}, DRIFT], ids=lambda m: m["kind"])
def test_ues_stay_inside_and_move_no_faster_than_they_can(placement, mobility):
    kinds = {
        "disc": {"radius_m": 100.0},
        "annulus": {"radius_m": 100.0, "least_distance_m": 60.0},
        "hexagon": {"inter_site_distance_m": 200.0, "least_distance_m": 10.0},
        "clusters": {"radius_m": 100.0, "clusters": 2, "cluster_radius_m": 10.0},
    }
    scenario = tiny(**{
        "channel.placement": {"kind": placement} | kinds[placement], "channel.mobility": mobility,
        "channel.round_s": 2.0, "cell.ues": 40,
    })  # fmt: skip
    channel = scenario.make_channel(Streams(4))
    track = np.stack([channel.block(t).positions_m for t in range(200)])
    assert is_inside(track, scenario.channel.placement.area)
    steps = np.linalg.norm(np.diff(track, axis=0), axis=2)
    assert steps.mean() > 0.0
    fastest = 30.0 if mobility["kind"] == "random-waypoint" else 5.0 + 2.0 * 7
    assert steps.max() <= 2.0 * fastest


def test_gauss_markov_velocities():
    """Far from any wall: mean speed 5, deviation 2 an axis, correlation exp(-t/10)."""
    scenario = tiny(**{
        "channel.placement.radius_m": 1e6, "channel.mobility": DRIFT, "channel.round_s": 2.0,
        "cell.ues": 5000,
    })  # fmt: skip
    channel = scenario.make_channel(Streams(1))
    place = [channel.block(t).positions_m for t in range(12)]
    velocity = np.diff(place, axis=0) / 2.0
    mean = velocity.mean()
    assert abs(mean) < 4 * math.sqrt((25 / 2 + 4) / 5000)
    # Over all UEs: half of 25 by the mean velocities' directions and 4 by deviations.
    assert velocity[0].var() == pytest.approx(12.5 + 4.0, rel=0.08)
    drifted = (velocity[0] * velocity[5]).mean() - 12.5
    assert drifted == pytest.approx(4.0 * math.exp(-1.0), abs=4 * 16.5 / math.sqrt(10_000))


def test_any_time_in_any_order():
    for mobility in (WALK, DRIFT):
        scenario = street(**{"channel.mobility": mobility, "channel.round_s": 50.0})
        one, other = (scenario.make_channel(Streams(2)) for _ in range(2))
        forwards = [one.large_scale(t) for t in range(30)]
        for t in (29, 3, 4, 0, 17, 16, 29):
            again = other.large_scale(t)
            for name in ("positions_m", "mean_gains", "line_of_sight"):
                np.testing.assert_array_equal(getattr(again, name), getattr(forwards[t], name))
        assert not np.array_equal(forwards[0].positions_m, forwards[1].positions_m)


def test_tracks_are_straight_between_their_times(tmp_path):
    positions = np.array([[[0.0, 0.0]], [[2.0, 0.0]], [[2.0, 8.0]]])
    np.savez(tmp_path / "tracks.npz", times_s=[5.0, 7.0, 11.0], positions_m=positions)
    tracks = MobilityFile(path=str(tmp_path / "tracks.npz"))
    run = of_ues(1, round_s=1.5)._replace(rounds=5)
    state = tracks.start(run, Disc(radius_m=100.0))
    places = [tracks.move(state, t)[0][0].tolist() for t in range(5)]
    assert places == [[0, 0], [1.5, 0], [2, 2], [2, 5], [2, 8]]
    with pytest.raises(ValueError, match="the tracks end after 6 s, before round 5"):
        tracks.move(state, 5)


# ------------------------------------------------------------------------------------------- files
def test_positions_of_a_file_are_the_placement_and_a_source(tmp_path):
    positions = np.random.default_rng(0).uniform(-50, 50, (12, 2))
    np.savetxt(tmp_path / "ues.csv", positions, delimiter=",", header="x,y")
    np.savez(tmp_path / "ues.npz", positions_m=positions)
    for name in ("ues.csv", "ues.npz"):
        path = str(tmp_path / name)
        placed = tiny(**{"channel.placement": {"kind": "file", "path": path, "radius_m": 100.0}})
        history = simulate(placed, "max-pack", 3)
        np.testing.assert_allclose(history.info.positions_m, positions)
        assert len(history.info.sources[f"positions:{path}"]) == 64
        assert history.positions_m is None


def test_tracks_of_a_file_are_kept_in_the_record(tmp_path):
    rng, times = np.random.default_rng(0), np.array([0.0, 10.0, 30.0])
    positions = rng.uniform(-50, 50, (3, 12, 2))
    np.savez(tmp_path / "tracks.npz", times_s=times, positions_m=positions)
    rows = [(t, ue, *positions[i, ue]) for i, t in enumerate(times) for ue in range(12)]
    np.savetxt(tmp_path / "tracks.csv", rng.permutation(rows), delimiter=",")
    histories = []
    for name in ("tracks.npz", "tracks.csv"):
        mobility = {"kind": "file", "path": str(tmp_path / name)}
        scenario = tiny(**{"channel.mobility": mobility, "channel.round_s": 4.0})
        histories.append(simulate(scenario, "max-pack", 3))
        assert f"tracks:{tmp_path / name}" in histories[-1].info.sources
    first, again = histories
    np.testing.assert_allclose(first.positions_m, again.positions_m, atol=1e-4)
    assert first.positions_m.shape == (8, 12, 2)
    np.testing.assert_allclose(first.positions_m[5], positions[1:].mean(axis=0), atol=1e-4)
    first.save(tmp_path / "run.parquet")
    read = type(first).load(tmp_path / "run.parquet")
    np.testing.assert_array_equal(read.positions_m, first.positions_m)


WAYS = {
    "given": ({}, {"speed_m_s": 2.0}),
    "random-waypoint": ({"slowest_m_s": 0.5, "fastest_m_s": 2.0, "pause_s": 1.0}, {}),
    "gauss-markov": ({"mean_speed_m_s": 1.2, "deviation_m_s": 0.2, "memory_s": 5.0}, {}),
    "file": ({}, {}),
}


@pytest.mark.parametrize("kind", WAYS)
def test_fading_by_movement_may_not_alias(kind, tmp_path):
    """2 m/s at 3 GHz is a Doppler shift of 20.01 Hz: rounds of up to 0.02498 s."""
    mobility, time = WAYS[kind]
    if kind == "file":
        positions = np.zeros((3, 12, 2))
        positions[1:, 4] = [0.0, 20.0]  # one UE is fast, for ten of thirty seconds
        path = saved(tmp_path, times_s=np.array([0.0, 10.0, 30.0]), positions_m=positions)
        mobility = {"path": path}

    def channel(round_s):
        changes = {
            "channel.fading": {
                "kind": "rayleigh",
                "time": {"kind": "jakes", "carrier_hz": 3e9} | time,
            }
        }
        changes["channel.mobility"] = "none" if kind == "given" else {"kind": kind} | mobility
        return tiny(**changes, **{"channel.round_s": round_s}).make_channel(Streams(0))

    assert channel(0.0249).block(3).true.shape == (12, 5)
    words = r"channel.round_s = 0.0251: must be from 1e-06 to 0.02498 with .* of 20.01 Hz"
    whose = "" if kind == "given" else " of UEs that move at 2 m/s"
    with pytest.raises(ValueError, match=f"{words}{whose}, or fading aliases; the nearest is 0.02"):
        channel(0.0251)


def saved(tmp_path, **arrays):
    np.savez(tmp_path / "x.npz", **arrays)
    return str(tmp_path / "x.npz")


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        (np.ones((11, 2)), "it has 11 positions, the scenario 12 UEs: set cell.ues=11"),
        (np.ones((12, 3)), r"positions_m must be \[ue, \(x, y\)\], not of shape \(12, 3\)"),
        (np.full((12, 2), np.nan), r"positions_m\[0, 0\] is nan: all must be finite"),
        (np.full((12, 2), 90.0), "UE 0 is 127.279 m from the access point.*radius to at least 128"),
    ],
)
def test_positions_that_cannot_be(tmp_path, positions, message):
    path = saved(tmp_path, positions_m=positions)
    placed = tiny(**{"channel.placement": {"kind": "file", "path": path, "radius_m": 100.0}})
    with pytest.raises(ValueError, match=message):
        simulate(placed, "max-pack")


@pytest.mark.parametrize(
    ("times", "positions", "message"),
    [
        ([0.0, 40.0], np.ones((2, 11, 2)), "the tracks have 11 UEs, the scenario 12: set cell.ues"),
        ([0.0, 6.0], np.ones((2, 12, 2)), "last 6 s, and 8 rounds of 4 s.*run.rounds to at most 2"),
        ([0.0, 0.0], np.ones((2, 12, 2)), "times_s must rise: 0 s is followed by 0 s"),
        ([0.0], np.ones((2, 12, 2)), r"not of shapes \(2, 12, 2\) and \(1,\)"),
        ([0.0, 40.0], np.full((2, 12, 2), 90.0), "the placement reaches to 100 m"),
    ],
)
def test_tracks_that_cannot_be(tmp_path, times, positions, message):
    path = saved(tmp_path, times_s=times, positions_m=positions)
    moved = tiny(**{"channel.mobility": {"kind": "file", "path": path}, "channel.round_s": 4.0})
    with pytest.raises(ValueError, match=message):
        simulate(moved, "max-pack")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("0,0,1\n", "rows must be time, UE, x and y: 4 values, not 3"),
        ("0,0,1,1\n0,2,1,1\n", "UEs must be whole numbers from 0 on, without gaps"),
        ("0,0,1,1\n0,1,1,1\n1,0,1,1\n", "3 rows for 2 times and 2 UEs"),
    ],
)
def test_rows_of_tracks_that_cannot_be(tmp_path, rows, message):
    (tmp_path / "x.csv").write_text(rows)
    mobility = {"kind": "file", "path": str(tmp_path / "x.csv")}
    with pytest.raises(ValueError, match=message):
        simulate(tiny(**{"channel.mobility": mobility, "channel.round_s": 4.0}), "max-pack")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"channel.placement": {"kind": "annulus", "least_distance_m": 120.0, "radius_m": 100.0}},
         "channel.placement: least_distance_m = 120: must be from 0 to below radius_m = 100; 50"),
        ({"channel.placement": {"kind": "hexagon", "least_distance_m": 110.0,
                                "inter_site_distance_m": 200.0}},
         "least_distance_m = 110: must be from 0 to below inter_site_distance_m / 2 = 100"),
        ({"channel.placement": {"kind": "clusters", "radius_m": 10.0, "clusters": 2,
                                "cluster_radius_m": 11.0}},
         "cluster_radius_m = 11: must be from 0 to radius_m = 10; the nearest is 10"),
        ({"channel.mobility": WALK}, "channel.round_s is missing"),
        ({"channel.mobility": WALK | {"slowest_m_s": 1.0}, "channel.round_s": 1.0},
         "slowest_m_s = 1: must be from 0.001 to fastest_m_s = 0.7; the nearest is 0.7"),
        ({"channel.mobility": WALK, "channel.round_s": 1e9},
         "channel.round_s = 1e\\+09: must be from 1e-06 to 142857 at 0.7 m/s"),
        ({"channel.mobility": WALK, "channel.round_s": 1.0, "channel.placement": {
            "kind": "annulus", "least_distance_m": 99.9, "radius_m": 100.0}},
         "least_distance_m = 99.9: must be from 0 to 99 with mobility.kind = random-waypoint"),
        ({"channel.mobility": {"kind": "walk"}}, "channel.mobility.kind = 'walk': there are none"),
    ],
)  # fmt: skip
def test_impossible_geometry(changes, message):
    with pytest.raises(ScenarioError, match=message):
        tiny(**changes)
