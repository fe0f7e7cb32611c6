"""How much of the transmitted power arrives, fading averaged out, and what else arrives with it."""

import math
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from agewise.part import MOST_DB, ByName, Part

_CARRIER = "carrier frequency in GHz"
_ACCESS_POINT = "height of the access point's antenna in metres"
_UE = "height of the UEs' antennas in metres"
_INDOOR = (
    "share of the UEs that are inside buildings, 0 to 25 m deep: they lose another 20 dB and "
    "0.5 dB a metre (below 6 GHz only)"
)
#: Below this carrier frequency in GHz the simple loss into buildings holds.
INDOOR_BELOW_GHZ = 6.0


class PowerLaw(Part):
    """Mean gain falls as a power of the distance; only its shape is known, not its scale."""

    kind: Literal["power-law"] = "power-law"
    exponent: float = Field(gt=0, le=10, description="beta of the power law")
    reference_distance_m: float = Field(
        ge=1e-3,
        le=1e7,
        description="distance in metres at which the law starts; nearer UEs have its gain",
    )


class LogDistance(Part):
    """A power law that starts from a known loss at the reference distance."""

    kind: Literal["log-distance"] = "log-distance"
    exponent: float = Field(gt=0, le=10, description="beta of the power law")
    reference_distance_m: float = Field(
        ge=1e-3,
        le=1e7,
        description="distance in metres at which the law starts; nearer UEs have its gain",
    )
    reference_loss_db: float = Field(
        ge=-MOST_DB, le=MOST_DB, description="path loss in dB at the reference distance"
    )


class FreeSpace(Part):
    """Nothing in the way: (4 pi d f / c)^2, from 1 m on."""

    kind: Literal["free-space"] = "free-space"
    carrier_ghz: float = Field(ge=1e-3, le=1000, description=_CARRIER)


class UrbanMacro(Part):
    """3GPP TR 38.901 UMa: an access point above the roofs of a city, 10 m to 5 km."""

    most_distance_m: ClassVar[float] = 5000.0

    kind: Literal["uma"] = "uma"
    carrier_ghz: float = Field(ge=0.5, le=100, description=_CARRIER)
    access_point_height_m: float = Field(
        ge=10, le=50, description=f"{_ACCESS_POINT}, 25 in the report"
    )
    ue_height_m: float = Field(ge=1.5, le=13, description=_UE)
    indoor_share: float = Field(default=0.0, ge=0, le=1, description=_INDOOR)

    @model_validator(mode="after")
    def _is_valid_indoors(self) -> Self:
        _require_indoor(self.indoor_share, self.carrier_ghz)
        return self


class UrbanMicro(Part):
    """3GPP TR 38.901 UMi street canyon: an access point below the roofs, 10 m to 5 km."""

    most_distance_m: ClassVar[float] = 5000.0

    kind: Literal["umi"] = "umi"
    carrier_ghz: float = Field(ge=0.5, le=100, description=_CARRIER)
    access_point_height_m: float = Field(
        ge=3, le=20, description=f"{_ACCESS_POINT}, 10 in the report"
    )
    ue_height_m: float = Field(ge=1.5, le=22.5, description=_UE)
    indoor_share: float = Field(default=0.0, ge=0, le=1, description=_INDOOR)

    @model_validator(mode="after")
    def _is_valid_indoors(self) -> Self:
        _require_indoor(self.indoor_share, self.carrier_ghz)
        return self


class IndoorHotspot(Part):
    """3GPP TR 38.901 InH: an access point at the ceiling of an office, 1 m to 150 m."""

    most_distance_m: ClassVar[float] = 150.0

    kind: Literal["inh"] = "inh"
    carrier_ghz: float = Field(ge=0.5, le=100, description=_CARRIER)
    office: Literal["open", "mixed"] = Field(
        description="desks in one large room, or rooms and corridors as well"
    )
    access_point_height_m: float = Field(
        ge=1, le=10, description=f"{_ACCESS_POINT}, 3 in the report"
    )
    ue_height_m: float = Field(ge=0.5, le=10, description=f"{_UE}, 1 in the report")


class IndoorFactory(Part):
    """3GPP TR 38.901 InF: an access point in a hall with machines, 1 m to 600 m."""

    most_distance_m: ClassVar[float] = 600.0

    kind: Literal["inf"] = "inf"
    carrier_ghz: float = Field(ge=0.5, le=100, description=_CARRIER)
    hall: Literal["sl", "dl", "sh", "dh"] = Field(
        description="sparse or dense clutter, and the access point lower or higher than it"
    )
    access_point_height_m: float = Field(
        ge=0.5, le=25, description=f"{_ACCESS_POINT}, 1.5 if low and 8 if high in the report"
    )
    ue_height_m: float = Field(ge=0.5, le=10, description=f"{_UE}, 1.5 in the report")
    clutter_density: float = Field(
        gt=0, lt=1, description="share of the floor under clutter: below 0.4 sparse, else dense"
    )
    clutter_size_m: float = Field(
        gt=0, le=100, description="typical size of clutter in metres: 10 if sparse, 2 if dense"
    )
    clutter_height_m: float = Field(gt=0, le=25, description="height of the clutter in metres")

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


def _require_indoor(share: float, carrier_ghz: float) -> None:
    if share > 0 and carrier_ghz >= INDOOR_BELOW_GHZ:
        raise ValueError(
            f"indoor_share = {share:g}: must be 0 from carrier_ghz = {INDOOR_BELOW_GHZ:g} on, "
            "where the loss into buildings is another one; 0 would do, or a lower carrier_ghz"
        )


class NoShadowing(Part):
    """UEs at the same distance in the same sight have the same mean gain."""

    kind: Literal["none"] = "none"


class LogNormalShadowing(Part):
    """Path loss varies by normal decibels, correlated in space: exp(-distance / decorrelation)."""

    kind: Literal["log-normal"] = "log-normal"
    sigma_db: float | None = Field(
        default=None,
        ge=0,
        le=30,
        description="standard deviation in dB; without it that of the 38.901 model, by the sight",
    )
    decorrelation_m: float | None = Field(
        default=None,
        ge=1e-3,
        le=1e7,
        description="metres in which the correlation falls to 1/e; without it those of the 38.901 "
        "model, by the sight",
    )


class NoInterference(Part):
    """Only noise disturbs an upload."""

    kind: Literal["none"] = "none"


class LevelInterference(Part):
    """Interference of one given level on all subchannels in all rounds."""

    kind: Literal["level"] = "level"
    rise_db: float = Field(
        ge=0, le=100, description="interference and noise over noise alone, in dB"
    )


class CellInterference(Part):
    """UEs of neighbouring hexagonal cells transmit on the same subchannels, others each round."""

    kind: Literal["cells"] = "cells"
    inter_site_distance_m: float = Field(
        ge=1e-3, le=1e7, description="distance between neighbouring access points in metres"
    )
    tiers: Literal[1, 2] = Field(description="rings of cells: 1 has 6 of them, 2 have 18")
    load: float = Field(
        ge=0, le=1, description="chance that a neighbouring cell uses a subchannel in a round"
    )
    power_share: float = Field(
        ge=0, le=1, description="part of its power P_TX that a neighbouring UE puts on a subchannel"
    )

    @property
    def reach_m(self) -> float:
        """The largest distance of a UE that interferes."""
        return self.inter_site_distance_m * (self.tiers + 1.0 / math.sqrt(3.0))


StandardPathLoss = UrbanMacro | UrbanMicro | IndoorHotspot | IndoorFactory
PathLossKind = PowerLaw | LogDistance | FreeSpace | StandardPathLoss
ShadowingKind = NoShadowing | LogNormalShadowing
InterferenceKind = NoInterference | LevelInterference | CellInterference
PathLoss = Annotated[PathLossKind, Field(discriminator="kind"), ByName]
Shadowing = Annotated[ShadowingKind, Field(discriminator="kind"), ByName]
Interference = Annotated[InterferenceKind, Field(discriminator="kind"), ByName]
