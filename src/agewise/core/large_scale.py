"""Mean gains by 3GPP TR 38.901: sight, path loss, walls and shadowing of all places in one pass."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agewise.core.elementary import exp
from agewise.core.jit import inlined, kernel, njit
from agewise.core.lanes import LANES
from agewise.core.propagation import (
    MOST_TURNS,
    decibels,
    fill_estimate,
    fill_field,
    normal_cdf,
    padded,
    ratio_of,
)

#: The estimate of a field is wrong by less than 2e-4, and its distribution function, whose slope is
#: at most 0.4, by less than half of this.
_DOUBT = 2e-4
SEEN, HIDDEN, INDOOR = 0, 1, 2


class Slope(NamedTuple):
    """``constant + per_decade lg d`` in dB, d the distance in metres between the antennas."""

    constant_db: float
    per_decade_db: float


class Loss(NamedTuple):
    """Path loss (tables 7.4.1-1 of the report).

    In sight it follows ``near`` up to the breakpoint and ``far`` beyond; out of sight it is the
    largest of that and of two ``hidden`` slopes. Places nearer than the least distance on the
    ground have the loss there, and antennas are at least 1 m apart.
    """

    height_m: float
    least_ground_m: float
    breakpoint_m: float
    near: Slope
    far: Slope
    hidden: tuple[Slope, Slope]


class Chance(NamedTuple):
    """The probability of line of sight over the distance on the ground (table 7.4.2-1).

    1 up to ``certain_m``, from there on falling to 1/e in ``fall_m``; beyond ``turn_m`` it is
    ``far_share``, falling to 1/e in ``far_fall_m``. In streets a share ``street_m`` / distance is
    in sight besides.
    """

    certain_m: float
    fall_m: float
    turn_m: float = math.inf
    far_share: float = 1.0
    far_fall_m: float = 1.0
    street_m: float = 0.0


class Terrain(NamedTuple):
    """What decides over mean gains: laws, and random fields over the plane.

    ``fields[field, wave, (x, y, phase)]`` is that of sight and, unless nothing is shadowed, those
    of shadowing in sight, out of it and indoors, with deviations ``sigma_db``.
    """

    loss: Loss
    chance: Chance
    fields: NDArray[np.float64]
    sigma_db: tuple[float, float, float]
    noise_w: float

    def numbers(self) -> NDArray[np.float64]:
        """All but the fields in one vector: reading a nest of tuples takes longer than its use."""
        loss = (*self.loss[:3], *self.loss.near, *self.loss.far, *self.loss.hidden[0])
        return np.array(
            [*loss, *self.loss.hidden[1], *self.chance, *self.sigma_db, self.noise_w], float
        )


@inlined
def _terrain_of(numbers, fields):
    """The terrain of such numbers."""
    near, far = Slope(numbers[3], numbers[4]), Slope(numbers[5], numbers[6])
    hidden = (Slope(numbers[7], numbers[8]), Slope(numbers[9], numbers[10]))
    loss = Loss(numbers[0], numbers[1], numbers[2], near, far, hidden)
    chance = Chance(numbers[11], numbers[12], numbers[13], numbers[14], numbers[15], numbers[16])
    return Terrain(loss, chance, fields, (numbers[17], numbers[18], numbers[19]), numbers[20])


@inlined
def _on(slope, lg_distance):
    return slope.constant_db + slope.per_decade_db * lg_distance


@inlined
def _loss_db(loss, distance_m, seen):
    """Path loss at a distance on the ground, shadowing and fading averaged out."""
    ground = max(distance_m, loss.least_ground_m)
    square = ground * ground + loss.height_m * loss.height_m
    lg_distance = 0.05 * decibels(max(square, 1.0))
    found = _on(loss.far if ground > loss.breakpoint_m else loss.near, lg_distance)
    if seen:
        return found
    return max(max(found, _on(loss.hidden[0], lg_distance)), _on(loss.hidden[1], lg_distance))


@inlined
def _chance(law, distance_m):
    """The probability that a place at this distance is in sight."""
    street = law.street_m / max(distance_m, law.street_m) if law.street_m > 0.0 else 0.0
    if distance_m <= law.turn_m:
        rest = exp(-max(distance_m - law.certain_m, 0.0) / law.fall_m)
    else:
        rest = law.far_share * exp(-max(distance_m - law.turn_m, 0.0) / law.far_fall_m)
    return street + rest * (1.0 - street)


@kernel
def losses_db(loss, distances_m, seen):
    """``[place]``: path loss at distances on the ground ``[place]``, in sight where ``seen``."""
    found = np.empty(distances_m.size)
    for i in range(distances_m.size):
        found[i] = _loss_db(loss, distances_m[i], seen[i])
    return found


@kernel
def chances(law, distances_m):
    """``[place]``: probabilities of line of sight at distances on the ground."""
    found = np.empty(distances_m.size)
    for i in range(distances_m.size):
        found[i] = _chance(law, distances_m[i])
    return found


@njit
def _field_of(waves, x, y, chosen, field):
    """``field[k]`` at place ``chosen[k]``, for those places alone."""
    count = chosen.size
    at_x, at_y = np.zeros((2, padded(count)))
    for k in range(count):
        at_x[k], at_y[k] = x[chosen[k]], y[chosen[k]]
    fill_field(at_x, at_y, waves, field)


@inlined
def _rough_reach(waves):
    """How far from (0, 0) the estimate of a field holds."""
    steepest = 0.0
    for wave in range(waves.shape[0]):
        steepest = max(steepest, abs(waves[wave, 0]) + abs(waves[wave, 1]))
    return (MOST_TURNS - 1.0) / max(steepest, 1e-300)


@njit
def _find_seen(terrain, x, y, distances, seen):
    """Fill ``seen[place]``: by an estimate of the field where that decides, and else by itself.

    Here and below, each loop does one thing, so that it becomes vector instructions.
    """
    waves, count = terrain.fields[0], seen.size
    estimate, field = np.empty(x.size, np.float32), np.empty(padded(count))
    chance, surplus = np.empty(count), np.empty(count)
    doubtful, doubts = np.empty(count, np.int64), 0
    fill_estimate(x, y, waves, estimate)
    reach = _rough_reach(waves)
    for i in range(count):
        chance[i] = _chance(terrain.chance, distances[i])
    for i in range(count):
        surplus[i] = chance[i] - normal_cdf(np.float64(estimate[i]))
    for i in range(count):
        seen[i] = surplus[i] > 0.0
    for i in range(count):
        if not (abs(surplus[i]) > _DOUBT and distances[i] < reach):
            doubtful[doubts] = i
            doubts += 1
    if doubts:
        _field_of(waves, x, y, doubtful[:doubts], field)
        for k in range(doubts):
            i = doubtful[k]
            seen[i] = normal_cdf(field[k]) < chance[i]


@njit
def _find_shadows(terrain, x, y, states, lost_db):
    """Add to ``lost_db[place]`` what shadowing takes, the places of each state together."""
    chosen, field = np.empty(states.size, np.int64), np.empty(padded(states.size))
    for state in range(3):
        count = 0
        for i in range(states.size):
            chosen[count] = i
            count += states[i] == state
        if count:
            _field_of(terrain.fields[1 + state], x, y, chosen[:count], field)
            for k in range(count):
                lost_db[chosen[k]] = terrain.sigma_db[state] * field[k] + lost_db[chosen[k]]


@kernel(nogil=True)
def mean_gains(numbers, fields, positions, indoor_db):
    """(``gains[place]`` as SNR per watt, ``seen[place]``) at ``positions[place, (x, y)]``.

    ``numbers`` are those of a `Terrain`, ``fields`` its fields.
    ``indoor_db[place]`` is what walls take, 0 outdoors, or empty if all places are outdoors;
    nobody indoors is in sight, but what the walls add to is the loss at the place outside.
    """
    terrain, count = _terrain_of(numbers, fields), positions.shape[0]
    x, y, distances = np.zeros((3, (count + LANES - 1) // LANES * LANES))
    for i in range(count):
        x[i], y[i] = positions[i, 0], positions[i, 1]
    for i in range(count):
        distances[i] = math.sqrt(x[i] * x[i] + y[i] * y[i])
    gains, seen, states = np.empty(count), np.empty(count, np.bool_), np.empty(count, np.int8)
    _find_seen(terrain, x, y, distances, seen)
    for i in range(count):
        gains[i] = ratio_of(-_loss_db(terrain.loss, distances[i], seen[i])) / terrain.noise_w
    lost_db = np.zeros(count)
    if indoor_db.size:
        lost_db[:] = indoor_db
    for i in range(count):
        states[i] = INDOOR if lost_db[i] > 0.0 else (SEEN if seen[i] else HIDDEN)
    for i in range(count):
        seen[i] = states[i] == SEEN
    if terrain.fields.shape[0] > 1:
        _find_shadows(terrain, x, y, states, lost_db)
    for i in range(count):
        gains[i] *= ratio_of(-lost_db[i])
    return gains, seen
