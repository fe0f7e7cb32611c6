"""How the mean gain falls with the distance, and what turns it into SNR."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agewise import scenario
from agewise.core.elementary import power_each
from agewise.core.large_scale import Chance, Loss, Slope, chances, losses_db
from agewise.core.propagation import decibels_each
from agewise.radio import sight
from agewise.units import db_to_linear, dbm_to_watt

_Floats = NDArray[np.float64]
#: As TR 38.901 has it for the breakpoint.
_LIGHT_M_S = 3.0e8


@dataclass(frozen=True)
class PowerLawLoss:
    """``(d / d_0)^-exponent`` times the gain at the reference distance d_0.

    Below the reference distance the law would grow without bound; such UEs get its gain there.

    >>> PowerLawLoss(exponent=3.0, reference_distance_m=1.0).gain(np.array([0.1, 1.0, 10.0]))
    array([1.   , 1.   , 0.001])
    """

    exponent: float
    reference_distance_m: float
    reference_loss_db: float = 0.0

    def gain(self, distance_m: _Floats | float) -> _Floats:
        """Received over transmitted power at these distances, fading averaged out."""
        ratio = np.maximum(distance_m, self.reference_distance_m) / self.reference_distance_m
        lost = db_to_linear(self.reference_loss_db)
        powers = power_each(np.ravel(ratio), -self.exponent)
        return np.asarray(powers.reshape(np.shape(ratio)) / lost)


@dataclass(frozen=True)
class BySight:
    """One value in line of sight, without it, and inside buildings."""

    seen: float
    hidden: float
    indoor: float


@dataclass(frozen=True)
class StandardLoss:
    """A path loss of 3GPP TR 38.901 with what belongs to it: sight and shadowing."""

    loss: Loss
    chance: Chance
    sight_decorrelation_m: float
    sigma_db: BySight
    decorrelation_m: BySight

    def loss_db(self, distance_m: _Floats, line_of_sight: NDArray[np.bool_]) -> _Floats:
        """Path loss at these distances on the ground, shadowing and fading averaged out."""
        return np.asarray(losses_db(self.loss, distance_m, line_of_sight))

    def chance_of_sight(self, distance_m: _Floats) -> _Floats:
        """The probability of line of sight at these distances on the ground."""
        return np.asarray(chances(self.chance, distance_m))


@dataclass(frozen=True)
class EdgeScale:
    """Scales gains so that a UE at the edge has this mean SNR with all power on one subchannel."""

    edge_snr_db: float
    edge_gain: float
    power_budget = 1.0

    def snr_per_power(self, gains: _Floats) -> _Floats:
        """Mean SNR of UEs with these gains per unit of the power budget."""
        return gains * (db_to_linear(self.edge_snr_db) / self.edge_gain)


@dataclass(frozen=True)
class NoiseScale:
    """Divides gains by the noise of one subchannel: SNR per watt."""

    power_budget: float
    noise_w: float

    def snr_per_power(self, gains: _Floats) -> _Floats:
        """Mean SNR of UEs with these gains per watt."""
        return gains / self.noise_w


PathLoss = PowerLawLoss | StandardLoss


def make_path_loss(settings: scenario.PathLossKind) -> PathLoss:
    """The path loss that a scenario describes."""
    if isinstance(settings, scenario.PowerLaw):
        return PowerLawLoss(settings.exponent, settings.reference_distance_m)
    if isinstance(settings, scenario.LogDistance):
        loss_db = settings.reference_loss_db
        return PowerLawLoss(settings.exponent, settings.reference_distance_m, loss_db)
    if isinstance(settings, scenario.FreeSpace):
        metre_db = 2.0 * _db(4.0 * math.pi * settings.carrier_ghz * 1e9 / _LIGHT_M_S)
        return PowerLawLoss(2.0, 1.0, metre_db)
    if isinstance(settings, scenario.UrbanMacro):
        return _urban_macro(settings)
    if isinstance(settings, scenario.UrbanMicro):
        return _urban_micro(settings)
    if isinstance(settings, scenario.IndoorHotspot):
        return _indoor_hotspot(settings)
    return _indoor_factory(settings)


def make_scale(
    settings: scenario.EdgeSnr | scenario.LinkBudget,
    loss: PathLoss,
    edge_distance_m: float,
    bandwidth_hz: float,
) -> EdgeScale | NoiseScale:
    """What turns path loss into SNR: an SNR at the edge, or transmit power and noise."""
    if isinstance(settings, scenario.LinkBudget):
        density_w_hz = dbm_to_watt(settings.noise_density_dbm_hz + settings.noise_figure_db)
        return NoiseScale(dbm_to_watt(settings.transmit_power_dbm), bandwidth_hz * density_w_hz)
    if isinstance(loss, StandardLoss):
        raise TypeError("a path loss of TR 38.901 has a scale of its own: it needs a link budget")
    return EdgeScale(settings.edge_snr_db, float(loss.gain(edge_distance_m)))


def _db(ratio: float) -> float:
    """10 lg of a ratio, the same to the bit on every machine."""
    return float(decibels_each(np.array([ratio]))[0])


def _urban_macro(settings: scenario.UrbanMacro) -> StandardLoss:
    carrier_db = 2.0 * _db(settings.carrier_ghz)
    hidden_db = 13.54 + carrier_db - 0.6 * (settings.ue_height_m - 1.5)
    return StandardLoss(
        loss=_urban(settings, Slope(28.0 + carrier_db, 22.0), Slope(hidden_db, 39.08)),
        chance=sight.urban(63.0),
        sight_decorrelation_m=50.0,
        sigma_db=BySight(4.0, 6.0, 7.0),
        decorrelation_m=BySight(37.0, 50.0, 7.0),
    )


def _urban_micro(settings: scenario.UrbanMicro) -> StandardLoss:
    carrier_db = _db(settings.carrier_ghz)
    hidden_db = 22.4 + 2.13 * carrier_db - 0.3 * (settings.ue_height_m - 1.5)
    return StandardLoss(
        loss=_urban(settings, Slope(32.4 + 2.0 * carrier_db, 21.0), Slope(hidden_db, 35.3)),
        chance=sight.urban(36.0),
        sight_decorrelation_m=50.0,
        sigma_db=BySight(4.0, 7.82, 7.0),
        decorrelation_m=BySight(10.0, 13.0, 7.0),
    )


def _urban(settings: scenario.UrbanMacro | scenario.UrbanMicro, near: Slope, hidden: Slope) -> Loss:
    """In sight the near slope up to the breakpoint, and from the loss there on 40 dB a decade."""
    height, breakpoint_m = _height_m(settings), _breakpoint_m(settings)
    squared_db = _db(breakpoint_m * breakpoint_m + height * height)
    far_db = near.constant_db - (40.0 - near.per_decade_db) / 20.0 * squared_db
    return Loss(
        height_m=height,
        least_ground_m=10.0,
        near=near,
        far=Slope(far_db, 40.0),
        breakpoint_m=breakpoint_m,
        hidden=(hidden, hidden),
    )


def _indoor_hotspot(settings: scenario.IndoorHotspot) -> StandardLoss:
    seen = Slope(32.4 + 2.0 * _db(settings.carrier_ghz), 17.3)
    hidden = Slope(17.3 + 2.49 * _db(settings.carrier_ghz), 38.3)
    return StandardLoss(
        loss=Loss(
            height_m=_height_m(settings),
            least_ground_m=0.0,
            near=seen,
            far=seen,
            breakpoint_m=math.inf,
            hidden=(hidden, hidden),
        ),
        chance=sight.OPEN_OFFICE if settings.office == "open" else sight.MIXED_OFFICE,
        sight_decorrelation_m=10.0,
        sigma_db=BySight(3.0, 8.03, 8.03),
        decorrelation_m=BySight(10.0, 6.0, 6.0),
    )


#: Out of sight in a hall: constant and slope of the loss, and shadowing.
_HALLS = {"sl": (33.0, 25.5, 5.7), "dl": (18.6, 35.7, 7.2)}
_HALLS |= {"sh": (32.4, 23.0, 5.9), "dh": (33.63, 21.9, 4.0)}


def _indoor_factory(settings: scenario.IndoorFactory) -> StandardLoss:
    carrier_db = 2.0 * _db(settings.carrier_ghz)
    seen = Slope(31.84 + 0.95 * carrier_db, 21.5)
    first, second = ("sl", "dl") if settings.hall == "dl" else (settings.hall, settings.hall)
    sigma_db = _HALLS[settings.hall][2]
    return StandardLoss(
        loss=Loss(
            height_m=_height_m(settings),
            least_ground_m=0.0,
            near=seen,
            far=seen,
            breakpoint_m=math.inf,
            hidden=(_hidden(first, carrier_db), _hidden(second, carrier_db)),
        ),
        chance=sight.factory(sight.clear_distance_m(settings)),
        sight_decorrelation_m=settings.clutter_size_m / 2.0,
        sigma_db=BySight(4.3, sigma_db, sigma_db),
        decorrelation_m=BySight(10.0, 10.0, 10.0),
    )


def _hidden(hall: str, carrier_db: float) -> Slope:
    constant_db, per_decade_db, _ = _HALLS[hall]
    return Slope(constant_db + carrier_db, per_decade_db)


def _height_m(settings: scenario.StandardPathLoss) -> float:
    return settings.access_point_height_m - settings.ue_height_m


def _breakpoint_m(settings: scenario.UrbanMacro | scenario.UrbanMicro) -> float:
    """Where the ray from the ground takes over, the environment being 1 m high."""
    heights = (settings.access_point_height_m - 1.0) * (settings.ue_height_m - 1.0)
    return 4.0 * heights * settings.carrier_ghz * 1e9 / _LIGHT_M_S
