"""UEs on the move inside an area: random waypoints, and Gauss-Markov."""

import math
from typing import NamedTuple

import numpy as np

from agewise.core.elementary import cos_sin, log1p, power
from agewise.core.jit import inlined, kernel, njit
from agewise.core.random import complex_normal, fold_in, random_bits, uniform

#: A path may come as much nearer than the least distance as rounding takes it.
_NEARLY = 1.0 - 1e-9
_HALF_ROOT = math.sqrt(3.0) / 2.0
_MOST_BOUNCES = 1000
_ROOT_TWO = math.sqrt(2.0)  # the parts of a complex normal number have the variance 1/2


class Area(NamedTuple):
    """Between two circles around (0, 0) and, if the apothem is finite, in a hexagon as well.

    The hexagon has two sides across the x-axis.
    """

    least_m: float
    reach_m: float
    apothem_m: float


class Walk(NamedTuple):
    """The law of a random waypoint walk: uniform speeds, and a pause before each leg."""

    slowest_m_s: float
    fastest_m_s: float
    pause_s: float


@inlined
def _in_hexagon(x, y, apothem):
    across, up = 0.5 * x, _HALF_ROOT * y
    return abs(x) <= apothem and abs(across + up) <= apothem and abs(across - up) <= apothem


@njit
def draw_point(key, count, area):
    """(x, y, next count): uniform in the area."""
    inner = area.least_m * area.least_m
    # Uniform in the ring, for areas grow with the square of the distance; what falls outside of
    # the hexagon is drawn again.
    while True:
        share = uniform(random_bits(key, count))
        cosine, sine = cos_sin(uniform(random_bits(key, count + 1)))
        count += 2
        distance = math.sqrt(inner + share * (area.reach_m * area.reach_m - inner))
        x, y = distance * cosine, distance * sine
        if _in_hexagon(x, y, area.apothem_m):
            return x, y, count


@kernel
def draw_points(key, count, area):
    """``[point, (x, y)]``: uniform in an area, each from its own stream."""
    points = np.empty((count, 2))
    for i in range(count):
        points[i, 0], points[i, 1], _ = draw_point(fold_in(key, i), 0, area)
    return points


@njit
def _is_clear(x, y, to_x, to_y, least_m):
    """Whether the straight way between two points keeps the least distance from (0, 0)."""
    along_x, along_y = to_x - x, to_y - y
    square = along_x * along_x + along_y * along_y
    # The nearest point of the way to (0, 0) is its foot, if that lies between the two ends.
    share = 0.0
    if square > 0.0:
        share = min(max(-(x * along_x + y * along_y) / square, 0.0), 1.0)
    near_x, near_y = x + share * along_x, y + share * along_y
    return near_x * near_x + near_y * near_y >= least_m * least_m * _NEARLY


@inlined
def _length(leg):
    across, up = leg[2] - leg[0], leg[3] - leg[1]
    return math.sqrt(across * across + up * up)


@njit
def _start(key, area, walk, leg):
    """Fill a leg in which time 0 lies as it does in the walk's steady state; the next count.

    A leg lies over time 0 with a chance proportional to its duration, a sum of pause and travel
    (Navidi and Camp 2004; Le Boudec and Vojnovic 2005). Travelling is proposed as if each leg were
    as long as the area allows, and accepted by the leg's length; then the speed's density falls
    as 1/v. Pairs of points with a clear way between them are uniform among such pairs.
    """
    longest = 2.0 * area.reach_m
    # Seconds per metre in the mean over speeds: the mean of 1 / v for uniform v.
    slowness = 1.0 / walk.slowest_m_s
    if walk.fastest_m_s > walk.slowest_m_s:
        ratio = walk.fastest_m_s / walk.slowest_m_s
        slowness = log1p(ratio - 1.0) / (walk.fastest_m_s - walk.slowest_m_s)
    # Of the longest leg with its pause, the share of time under way.
    travelling = longest * slowness / (longest * slowness + walk.pause_s)
    count = 0
    while True:
        moves = uniform(random_bits(key, count)) < travelling
        share, speed = uniform(random_bits(key, count + 1)), uniform(random_bits(key, count + 2))
        accepted = uniform(random_bits(key, count + 3)) * longest
        leg[0], leg[1], count = draw_point(key, count + 4, area)
        leg[2], leg[3], count = draw_point(key, count, area)
        if not _is_clear(leg[0], leg[1], leg[2], leg[3], area.least_m):
            continue
        if not moves:
            # In its pause: the speed to come is uniform, and time 0 anywhere in the pause.
            leg[4] = walk.slowest_m_s + speed * (walk.fastest_m_s - walk.slowest_m_s)
            leg[5] = -share * walk.pause_s
            return count
        # Under way: longer legs last longer, so time 0 falls into them more often.
        if accepted < _length(leg):
            # The distribution with a density that falls as 1/v, inverted.
            leg[4] = walk.slowest_m_s * power(walk.fastest_m_s / walk.slowest_m_s, speed)
            leg[5] = -walk.pause_s - share * _length(leg) / leg[4]
            return count


@njit
def _next_leg(key, count, area, walk, leg):
    """Replace a leg by the one that follows; the next count."""
    leg[5] += walk.pause_s + _length(leg) / leg[4]
    leg[0], leg[1] = leg[2], leg[3]
    speed = uniform(random_bits(key, count))
    leg[4] = walk.slowest_m_s + speed * (walk.fastest_m_s - walk.slowest_m_s)
    count += 1
    while True:
        leg[2], leg[3], count = draw_point(key, count, area)
        if _is_clear(leg[0], leg[1], leg[2], leg[3], area.least_m):
            return count


@kernel(nogil=True)
def start_walks(key, ues, area, walk):
    """``legs[ue, (x, y, to_x, to_y, speed, since)]`` at time 0, and numbers drawn ``[ue]``."""
    legs, counts = np.empty((ues, 6)), np.empty(ues, np.int64)
    for ue in range(ues):
        counts[ue] = _start(fold_in(key, ue), area, walk, legs[ue])
    return legs, counts


@kernel(nogil=True)
def go_on(key, time_s, bounds, law, legs, counts):
    """Bring legs on to a later time; ``positions[ue, (x, y)]`` at it.

    The values of `Area` and `Walk` come as plain tuples: named ones take longer to pass.
    """
    ues, area, walk = legs.shape[0], Area(*bounds), Walk(*law)
    positions = np.empty((ues, 2))
    for ue in range(ues):
        leg, ue_key = legs[ue], fold_in(key, ue)
        length = _length(leg)
        # Legs that are over by then; each draws from the UE's own stream, whoever asks and when.
        while time_s >= leg[5] + walk.pause_s + length / leg[4]:
            counts[ue] = _next_leg(ue_key, counts[ue], area, walk, leg)
            length = _length(leg)
        gone_m = (time_s - leg[5] - walk.pause_s) * leg[4]
        # Before 0 metres it is still in the pause at the beginning of the leg.
        share = min(gone_m / length, 1.0) if gone_m >= 0.0 else 0.0
        positions[ue, 0] = leg[0] + share * (leg[2] - leg[0])
        positions[ue, 1] = leg[1] + share * (leg[3] - leg[1])
    return positions


# ------------------------------------------------------------------------------------ Gauss-Markov
@njit
def _way_to_wall(x, y, along_x, along_y, area):
    """(metres, (x, y)): how far the wall is along a unit vector, and the wall's normal there."""
    along = x * along_x + y * along_y
    # |p + s d| = reach is a quadratic equation in s; ahead lies its larger root.
    beside = along * along - (x * x + y * y)
    metres = math.sqrt(max(beside + area.reach_m * area.reach_m, 0.0)) - along
    inner = beside + area.least_m * area.least_m
    # The inner circle is met on the way in alone, at the smaller root.
    if along < 0.0 and inner > 0.0:
        metres = min(metres, -along - math.sqrt(inner))
    metres = max(metres, 0.0)
    normal_x, normal_y = x + metres * along_x, y + metres * along_y
    distance = math.sqrt(normal_x * normal_x + normal_y * normal_y)
    normal_x, normal_y = normal_x / distance, normal_y / distance
    for side in range(6):
        across = (1.0, 0.5, -0.5, -1.0, -0.5, 0.5)[side]
        up = (0.0, _HALF_ROOT, _HALF_ROOT, 0.0, -_HALF_ROOT, -_HALF_ROOT)[side]
        # A side of the hexagon, if the way leads to it and meets it before any wall so far.
        nearing = along_x * across + along_y * up
        if nearing > 0.0 and area.apothem_m - (x * across + y * up) < metres * nearing:
            metres = max((area.apothem_m - (x * across + y * up)) / nearing, 0.0)
            normal_x, normal_y = across, up
    return metres, normal_x, normal_y


@inlined
def _mirror(state, at, normal_x, normal_y):
    """Mirror a velocity at a wall of this normal."""
    along = state[at] * normal_x + state[at + 1] * normal_y
    state[at] -= 2.0 * along * normal_x
    state[at + 1] -= 2.0 * along * normal_y


@njit
def _move(state, step_s, area):
    """One step along the velocity, mirrored where it meets a wall, and its mean with it.

    Volumes of places and velocities are kept, so that UEs that are uniform in the area stay so.
    With more bounces than are followed a UE is back where it was, and all its velocities turned.
    """
    before = state[0], state[1], -state[2], -state[3], -state[4], -state[5]
    left_s = step_s
    for _ in range(_MOST_BOUNCES):
        speed = math.sqrt(state[2] * state[2] + state[3] * state[3])
        if speed == 0.0:
            return
        along_x, along_y = state[2] / speed, state[3] / speed
        metres, normal_x, normal_y = _way_to_wall(state[0], state[1], along_x, along_y, area)
        # No wall on what is left of the way.
        if left_s * speed <= metres:
            state[0] += left_s * state[2]
            state[1] += left_s * state[3]
            return
        state[0] += metres * along_x
        state[1] += metres * along_y
        left_s -= metres / speed
        # The mean velocity turns as well, or the UE would be driven into the wall again.
        _mirror(state, 2, normal_x, normal_y)
        _mirror(state, 4, normal_x, normal_y)
    for i in range(6):
        state[i] = before[i]


@kernel(nogil=True)
def start_drifts(key, positions, mean_speed, deviation):
    """``[ue, (x, y, vx, vy, mean vx, mean vy)]`` at time 0, in the steady state of the speeds."""
    states = np.empty((positions.shape[0], 6))
    for ue in range(positions.shape[0]):
        ue_key = fold_in(key, ue)
        cosine, sine = cos_sin(uniform(random_bits(ue_key, 0)))
        across, up = complex_normal(fold_in(ue_key, 0), 0)
        states[ue, 0], states[ue, 1] = positions[ue, 0], positions[ue, 1]
        states[ue, 4], states[ue, 5] = mean_speed * cosine, mean_speed * sine
        states[ue, 2] = states[ue, 4] + _ROOT_TWO * deviation * across
        states[ue, 3] = states[ue, 5] + _ROOT_TWO * deviation * up
    return states


@kernel(nogil=True)
def drift(key, steps, step_s, bounds, law, states):
    """Bring states on by the steps ``steps[0] < n <= steps[1]``; law is (memory, deviation).

    Returns ``positions[ue, (x, y)]`` there. The bounds are those of an `Area`.
    """
    area = Area(*bounds)
    # v[n+1] = mean + a (v[n] - mean) + sqrt(1 - a^2) sigma z keeps the deviation sigma at any a.
    memory, fresh = law[0], _ROOT_TWO * law[1] * math.sqrt(max(1.0 - law[0] * law[0], 0.0))
    for ue in range(states.shape[0]):
        state, ue_key = states[ue], fold_in(key, ue)
        for step in range(steps[0] + 1, steps[1] + 1):
            across, up = complex_normal(fold_in(ue_key, step), 0)
            state[2] = state[4] + memory * (state[2] - state[4]) + fresh * across
            state[3] = state[5] + memory * (state[3] - state[5]) + fresh * up
            _move(state, step_s, area)
    return states[:, :2].copy()
