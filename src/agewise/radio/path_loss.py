"""Path loss: how the mean gain falls with the distance, in and out of line of sight."""

import functools
import math
from typing import ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from agewise.core.elementary import exp_each, log1p_each, power_each
from agewise.core.propagation import decibels_each, ratios_each
from agewise.part import Decibels, Part, given
from agewise.units import db_to_linear

_Floats = NDArray[np.float64]
_Flags = NDArray[np.bool_]
#: As TR 38.901 has it for the breakpoint.
_LIGHT_M_S = 3.0e8
#: Below this carrier frequency in GHz the simple loss into buildings holds.
_O2I_BELOW_GHZ = 6.0
_CARRIER = "carrier frequency in GHz"
_ACCESS_POINT = "height of the access point's antenna in metres"
_UE = "height of the UEs' antennas in metres"
_INDOOR = (
    "share of the UEs that are inside buildings, 0 to 25 m deep: they lose another 20 dB and "
    "0.5 dB a metre (below 6 GHz only)"
)


class ByCondition(NamedTuple):
    """One value in line of sight, one without it, one from outdoors to indoors."""

    los: float
    nlos: float
    o2i: float


class PathLoss(Part):
    """Fall of the mean gain with the distance on the ground, fading and shadowing averaged out.

    A kind of your own has `loss_db`, and `los_probability` with `los_decorrelation_m` if UEs may
    be in line of sight. Distances are ``float64[place]``, line of sight ``bool[place]``.
    """

    #: The links that make sense of it: one with a shape alone needs an SNR at the edge.
    links: ClassVar[tuple[str, ...]] = ("edge-snr", "budget")
    #: The distance up to which it holds.
    most_distance_m: ClassVar[float] = math.inf
    #: The distance over which line of sight persists; ``None`` where it is not known.
    los_decorrelation_m: ClassVar[float | None] = None
    #: Deviation and decorrelation of the shadowing that belongs to it.
    shadowing_sigma_db: ClassVar[ByCondition | None] = None
    shadowing_decorrelation_m: ClassVar[ByCondition | None] = None

    kind: str = ""

    def loss_db(self, distance_m: _Floats, line_of_sight: _Flags) -> _Floats:
        """Return the path loss in dB at these distances."""
        raise self.lacks("loss_db")

    def gain(self, distance_m: _Floats, line_of_sight: _Flags) -> _Floats:
        """Return received over transmitted power at these distances."""
        loss_db = self.loss_db(distance_m, line_of_sight)
        return np.asarray(ratios_each(-given(self, "loss_db", loss_db, distance_m.shape)))

    def los_probability(self, distance_m: _Floats) -> _Floats:
        """Return the probability of line of sight at these distances outdoors."""
        return np.zeros(distance_m.size)

    @property
    def o2i_share(self) -> float:
        """The share of the UEs that are inside buildings."""
        return 0.0


# ------------------------------------------------------------------------------ powers of distance
class _Power(PathLoss):
    """A power law of the distance."""

    exponent: float = Field(gt=0, le=10, description="beta of the power law")
    reference_distance_m: float = Field(
        ge=1e-3,
        le=1e7,
        description="distance in metres at which the law starts; nearer UEs have its gain",
    )

    @property
    def _reference_db(self) -> float:
        """The loss at the reference distance in dB."""
        return 0.0

    def gain(self, distance_m: _Floats, line_of_sight: _Flags) -> _Floats:
        """Return received over transmitted power at these distances."""
        reference_m = self.reference_distance_m
        ratio = np.maximum(distance_m, reference_m) / reference_m
        return np.asarray(power_each(ratio, -self.exponent) / db_to_linear(self._reference_db))

    def loss_db(self, distance_m: _Floats, line_of_sight: _Flags) -> _Floats:
        """Return the path loss in dB at these distances."""
        return np.asarray(-decibels_each(self.gain(distance_m, line_of_sight)))


class PowerLaw(_Power):
    """Mean gain falls as a power of the distance; only its shape is known, not its scale."""

    links: ClassVar[tuple[str, ...]] = ("edge-snr",)

    kind: Literal["power-law"] = "power-law"


class LogDistance(_Power):
    """A power law that starts from a known loss at the reference distance."""

    kind: Literal["log-distance"] = "log-distance"
    reference_loss_db: Decibels = Field(description="path loss in dB at the reference distance")

    @property
    def _reference_db(self) -> float:
        return self.reference_loss_db


class FreeSpace(PathLoss):
    """Nothing in the way: (4 pi d f / c)^2, from 1 m on."""

    kind: Literal["free-space"] = "free-space"
    carrier_ghz: float = Field(ge=1e-3, le=1000, description=_CARRIER)

    def loss_db(self, distance_m: _Floats, line_of_sight: _Flags) -> _Floats:
        """Return the path loss in dB at these distances."""
        per_metre = 4.0 * math.pi * self.carrier_ghz * 1e9 / _LIGHT_M_S
        return 2.0 * np.asarray(decibels_each(per_metre * np.maximum(distance_m, 1.0)))


# ------------------------------------------------------------------------------ 3GPP TR 38.901
class _Slope(NamedTuple):
    """``constant + carrier 10 lg f + per_decade lg d - ue_height (h - 1.5)`` in dB.

    f is the carrier in GHz, d the distance between the antennas and h the height of a UE in metres.
    """

    constant_db: float
    carrier: float
    per_decade_db: float
    ue_height: float = 0.0


class _Tr38901(PathLoss):
    """A path loss of 3GPP TR 38.901 (tables 7.4.1-1 and 7.4.2-1).

    In line of sight it follows one slope up to the breakpoint and another beyond; out of it, it
    is at least that and the largest of the NLOS slopes. Antennas are at least 1 m apart.
    """

    links: ClassVar[tuple[str, ...]] = ("budget",)
    #: Nearer places have the loss at this distance on the ground.
    least_distance_m: ClassVar[float] = 0.0
    los_slope: ClassVar[_Slope]
    nlos_slopes: ClassVar[tuple[_Slope, ...]]

    carrier_ghz: float = Field(ge=0.5, le=100, description=_CARRIER)
    access_point_height_m: float = Field(description=_ACCESS_POINT)
    ue_height_m: float = Field(description=_UE)

    def _at_1_m(self, slope: _Slope) -> float:
        """Return the loss in dB where a slope begins."""
        at_carrier = slope.constant_db + slope.carrier * _db(self.carrier_ghz)
        return at_carrier - slope.ue_height * (self.ue_height_m - 1.5)

    def _beyond(self) -> tuple[float, float]:
        """Return the breakpoint in metres, and where the 40 dB a decade beyond it begin."""
        return math.inf, 0.0

    def loss_db(self, distance_m: _Floats, line_of_sight: _Flags) -> _Floats:
        """Return the path loss in dB at these distances on the ground."""
        ground = np.maximum(distance_m, self.least_distance_m)
        height = self.access_point_height_m - self.ue_height_m
        squared = np.maximum(ground * ground + height * height, 1.0)
        lg_distance = 0.05 * np.asarray(decibels_each(squared))
        breakpoint_m, far_db = self._beyond()
        near = self._at_1_m(self.los_slope) + self.los_slope.per_decade_db * lg_distance
        nlos = los = np.where(ground > breakpoint_m, far_db + 40.0 * lg_distance, near)
        for slope in self.nlos_slopes:
            nlos = np.maximum(nlos, self._at_1_m(slope) + slope.per_decade_db * lg_distance)
        return np.where(line_of_sight, los, nlos)


class _Urban(_Tr38901):
    """Streets: a ray from the ground takes over beyond the breakpoint; some UEs are indoors."""

    most_distance_m: ClassVar[float] = 5000.0
    least_distance_m: ClassVar[float] = 10.0
    los_decorrelation_m: ClassVar[float | None] = 50.0
    #: Metres in which the probability of line of sight falls to 1/e beyond 18 m.
    los_fall_m: ClassVar[float]

    indoor_share: float = Field(default=0.0, ge=0, le=1, description=_INDOOR)

    @property
    def o2i_share(self) -> float:
        """The share of the UEs that are inside buildings."""
        return self.indoor_share

    def _beyond(self) -> tuple[float, float]:
        """Go on from the loss at the breakpoint; the environment is 1 m high."""
        heights = (self.access_point_height_m - 1.0) * (self.ue_height_m - 1.0)
        breakpoint_m = 4.0 * heights * self.carrier_ghz * 1e9 / _LIGHT_M_S
        height, near = self.access_point_height_m - self.ue_height_m, self.los_slope
        squared_db = _db(breakpoint_m * breakpoint_m + height * height)
        far_db = self._at_1_m(near) - (40.0 - near.per_decade_db) / 20.0 * squared_db
        return breakpoint_m, far_db

    def los_probability(self, distance_m: _Floats) -> _Floats:
        """Take 1 to 18 m; then 18 m / d, and of the rest a share that falls exponentially."""
        street = 18.0 / np.maximum(distance_m, 18.0)
        rest = np.asarray(exp_each(-distance_m / self.los_fall_m))
        return street + rest * (1.0 - street)

    @model_validator(mode="after")
    def _is_valid_indoors(self) -> Self:
        if self.indoor_share > 0 and self.carrier_ghz >= _O2I_BELOW_GHZ:
            raise ValueError(
                f"indoor_share = {self.indoor_share:g}: must be 0 from carrier_ghz = "
                f"{_O2I_BELOW_GHZ:g} on, where the loss into buildings is another one; 0 would "
                "do, or a lower carrier_ghz"
            )
        return self


class UrbanMacro(_Urban):
    """3GPP TR 38.901 UMa: an access point above the roofs of a city (25 m), 10 m to 5 km."""

    los_fall_m: ClassVar[float] = 63.0
    los_slope: ClassVar[_Slope] = _Slope(28.0, 2.0, 22.0)
    nlos_slopes: ClassVar[tuple[_Slope, ...]] = (_Slope(13.54, 2.0, 39.08, 0.6),)
    shadowing_sigma_db: ClassVar[ByCondition | None] = ByCondition(4.0, 6.0, 7.0)
    shadowing_decorrelation_m: ClassVar[ByCondition | None] = ByCondition(37.0, 50.0, 7.0)

    kind: Literal["uma"] = "uma"
    access_point_height_m: float = Field(ge=10, le=50, description=_ACCESS_POINT)
    ue_height_m: float = Field(ge=1.5, le=13, description=_UE)


class UrbanMicro(_Urban):
    """3GPP TR 38.901 UMi street canyon: an access point below the roofs (10 m), 10 m to 5 km."""

    los_fall_m: ClassVar[float] = 36.0
    los_slope: ClassVar[_Slope] = _Slope(32.4, 2.0, 21.0)
    nlos_slopes: ClassVar[tuple[_Slope, ...]] = (_Slope(22.4, 2.13, 35.3, 0.3),)
    shadowing_sigma_db: ClassVar[ByCondition | None] = ByCondition(4.0, 7.82, 7.0)
    shadowing_decorrelation_m: ClassVar[ByCondition | None] = ByCondition(10.0, 13.0, 7.0)

    kind: Literal["umi"] = "umi"
    access_point_height_m: float = Field(ge=3, le=20, description=_ACCESS_POINT)
    ue_height_m: float = Field(ge=1.5, le=22.5, description=_UE)


class IndoorHotspot(_Tr38901):
    """3GPP TR 38.901 InH: an access point at the ceiling of an office, 1 m to 150 m.

    In the report it is 3 m high, and UEs 1 m.
    """

    most_distance_m: ClassVar[float] = 150.0
    los_slope: ClassVar[_Slope] = _Slope(32.4, 2.0, 17.3)
    nlos_slopes: ClassVar[tuple[_Slope, ...]] = (_Slope(17.3, 2.49, 38.3),)
    los_decorrelation_m: ClassVar[float | None] = 10.0
    shadowing_sigma_db: ClassVar[ByCondition | None] = ByCondition(3.0, 8.03, 8.03)
    shadowing_decorrelation_m: ClassVar[ByCondition | None] = ByCondition(10.0, 6.0, 6.0)

    kind: Literal["inh"] = "inh"
    office: Literal["open", "mixed"] = Field(
        description="desks in one large room, or rooms and corridors as well"
    )
    access_point_height_m: float = Field(ge=1, le=10, description=_ACCESS_POINT)
    ue_height_m: float = Field(ge=0.5, le=10, description=_UE)

    def los_probability(self, distance_m: _Floats) -> _Floats:
        """Take 1 nearby, then fall exponentially, from the turn on by another law."""
        certain, fall, turn, share, far = (
            (5.0, 70.8, 49.0, 0.54, 211.7) if self.office == "open" else (1.2, 4.7, 6.5, 0.32, 32.6)
        )
        near = np.asarray(exp_each(-np.maximum(distance_m - certain, 0.0) / fall))
        beyond = share * np.asarray(exp_each(-np.maximum(distance_m - turn, 0.0) / far))
        return np.where(distance_m <= turn, near, beyond)


class IndoorFactory(_Tr38901):
    """3GPP TR 38.901 InF: an access point in a hall with machines, 1 m to 600 m.

    In the report it is 1.5 m high, or 8 m above the clutter, and UEs 1.5 m.
    """

    most_distance_m: ClassVar[float] = 600.0
    los_slope: ClassVar[_Slope] = _Slope(31.84, 1.9, 21.5)
    shadowing_decorrelation_m: ClassVar[ByCondition | None] = ByCondition(10.0, 10.0, 10.0)

    kind: Literal["inf"] = "inf"
    hall: Literal["sl", "dl", "sh", "dh"] = Field(
        description="sparse or dense clutter, and the access point lower or higher than it"
    )
    access_point_height_m: float = Field(ge=0.5, le=25, description=_ACCESS_POINT)
    ue_height_m: float = Field(ge=0.5, le=10, description=_UE)
    clutter_density: float = Field(
        gt=0, lt=1, description="share of the floor under clutter: below 0.4 sparse, else dense"
    )
    clutter_size_m: float = Field(
        gt=0, le=100, description="typical size of clutter in metres: 10 if sparse, 2 if dense"
    )
    clutter_height_m: float = Field(gt=0, le=25, description="height of the clutter in metres")

    @property
    def los_decorrelation_m(self) -> float:  # type: ignore[override]
        """Half the size of the clutter."""
        return self.clutter_size_m / 2.0

    @property
    def shadowing_sigma_db(self) -> ByCondition:  # type: ignore[override]
        """The deviation of shadowing in this hall."""
        return ByCondition(4.3, _HALLS[self.hall][1], _HALLS[self.hall][1])

    @property
    def nlos_slopes(self) -> tuple[_Slope, ...]:  # type: ignore[override]
        """A dense hall with a low access point loses at least as much as a sparse one."""
        halls = ("sl", "dl") if self.hall == "dl" else (self.hall,)
        return tuple(_HALLS[hall][0] for hall in halls)

    def los_probability(self, distance_m: _Floats) -> _Floats:
        """Exponential in the distance; the further, the higher the access point over clutter."""
        clear_m = -self.clutter_size_m / float(log1p_each(np.array([-self.clutter_density]))[0])
        if self.hall.endswith("h"):
            over = self.access_point_height_m - self.ue_height_m
            clear_m = clear_m * over / (self.clutter_height_m - self.ue_height_m)
        return np.asarray(exp_each(-distance_m / clear_m))

    @model_validator(mode="after")
    def _is_a_hall(self) -> Self:
        dense, high = self.hall.startswith("d"), self.hall.endswith("h")
        if dense != (self.clutter_density >= 0.4):
            name = ("d" if not dense else "s") + self.hall[1]
            raise ValueError(
                f"clutter_density = {self.clutter_density:g}: must be "
                f"{'from 0.4 to below 1' if dense else 'above 0 to below 0.4'} with hall = "
                f'"{self.hall}"; hall = "{name}" would do'
            )
        if high and not self.ue_height_m < self.clutter_height_m < self.access_point_height_m:
            raise ValueError(
                f"clutter_height_m = {self.clutter_height_m:g}: must be above ue_height_m = "
                f"{self.ue_height_m:g} to below access_point_height_m = "
                f'{self.access_point_height_m:g} with hall = "{self.hall}"; '
                f'otherwise hall = "{self.hall[0]}l"'
            )
        return self


#: NLOS in a hall: the loss, and the deviation of shadowing.
_HALLS = {
    "sl": (_Slope(33.0, 2.0, 25.5), 5.7),
    "dl": (_Slope(18.6, 2.0, 35.7), 7.2),
    "sh": (_Slope(32.4, 2.0, 23.0), 5.9),
    "dh": (_Slope(33.63, 2.0, 21.9), 4.0),
}


@functools.lru_cache(maxsize=64)
def _db(ratio: float) -> float:
    """10 lg of a ratio, the same to the bit on every machine."""
    return float(decibels_each(np.array([ratio]))[0])
