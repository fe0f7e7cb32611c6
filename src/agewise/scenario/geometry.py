"""Where the UEs of a scenario are, and how they move."""

import math
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from agewise.part import LARGE, ByName, Part, RelativeTo

_FROM_ACCESS_POINT = "no UE is nearer to the access point, in metres"


class Disc(Part):
    """UEs uniform by area in a disc around the access point."""

    kind: Literal["disc"] = "disc"
    radius_m: float = Field(ge=1e-3, le=1e7, description="radius of the disc in metres")

    @property
    def reach_m(self) -> float:
        """The largest distance from the access point that a UE can have."""
        return self.radius_m


class Annulus(Part):
    """UEs uniform by area between two circles around the access point."""

    kind: Literal["annulus"] = "annulus"
    least_distance_m: float = Field(ge=0, le=1e7, description=_FROM_ACCESS_POINT)
    radius_m: float = Field(ge=1e-3, le=1e7, description="outer radius in metres")

    @property
    def reach_m(self) -> float:
        """The largest distance from the access point that a UE can have."""
        return self.radius_m

    @model_validator(mode="after")
    def _has_room(self) -> Self:
        _require_room(self.least_distance_m, self.radius_m, "radius_m")
        return self


class Hexagon(Part):
    """UEs uniform by area in the hexagon of one site among others, the access point in the middle.

    Two of its sides cross the x-axis.
    """

    kind: Literal["hexagon"] = "hexagon"
    inter_site_distance_m: float = Field(
        ge=1e-3, le=1e7, description="distance to the next site in metres, twice to the side"
    )
    least_distance_m: float = Field(ge=0, le=1e7, description=_FROM_ACCESS_POINT)

    @property
    def reach_m(self) -> float:
        """The largest distance from the access point that a UE can have: to a corner."""
        return self.inter_site_distance_m / math.sqrt(3.0)

    @model_validator(mode="after")
    def _has_room(self) -> Self:
        side = self.inter_site_distance_m / 2.0
        _require_room(self.least_distance_m, side, "inter_site_distance_m / 2")
        return self


class Clusters(Part):
    """UEs in round clusters, such as buildings or squares, spread over a disc (Matérn 1960)."""

    kind: Literal["clusters"] = "clusters"
    radius_m: float = Field(ge=1e-3, le=1e7, description="radius of the disc in metres")
    clusters: int = Field(ge=1, le=1_000_000, description="number of clusters")
    cluster_radius_m: float = Field(
        ge=0, le=1e7, description="radius of a cluster in metres, in which its UEs are uniform"
    )

    @property
    def reach_m(self) -> float:
        """The largest distance from the access point that a UE can have."""
        return self.radius_m

    @model_validator(mode="after")
    def _has_room(self) -> Self:
        if self.cluster_radius_m > self.radius_m:
            raise ValueError(
                f"cluster_radius_m = {self.cluster_radius_m:g}: must be from 0 to "
                f"radius_m = {self.radius_m:g}; the nearest is {self.radius_m:g}"
            )
        return self


class PlacementFile(Part):
    """Positions from a file: a CSV with a row ``x, y`` per UE, or an NPZ with ``positions_m``."""

    kind: Literal["file"] = "file"
    path: str = Field(description="a .csv, or an .npz with an array positions_m[ue, (x, y)]")
    relative_to: RelativeTo = "working-folder"
    radius_m: float = Field(
        ge=1e-3, le=1e7, description="radius of the cell in metres, beyond which no UE may be"
    )

    @property
    def reach_m(self) -> float:
        """The largest distance from the access point that a UE can have."""
        return self.radius_m


class NoMobility(Part):
    """UEs stay where they are."""

    kind: Literal["none"] = "none"


class RandomWaypoint(Part):
    """Each UE goes straight to a random point of the area, pauses, and goes on to the next.

    Started in its steady state, in which UEs are more often in the middle than at the edge.
    """

    kind: Literal["random-waypoint"] = "random-waypoint"
    slowest_m_s: float = Field(ge=1e-3, le=1000, description="least speed of a leg in m/s")
    fastest_m_s: float = Field(ge=1e-3, le=1000, description="largest speed of a leg in m/s")
    pause_s: float = Field(ge=0, le=LARGE, description="seconds of rest before each leg")

    @property
    def top_speed_m_s(self) -> float:
        """A speed that UEs hardly exceed."""
        return self.fastest_m_s

    @model_validator(mode="after")
    def _has_range(self) -> Self:
        if self.slowest_m_s > self.fastest_m_s:
            raise ValueError(
                f"slowest_m_s = {self.slowest_m_s:g}: must be from 0.001 to "
                f"fastest_m_s = {self.fastest_m_s:g}; the nearest is {self.fastest_m_s:g}"
            )
        return self


class GaussMarkov(Part):
    """Each UE drifts with a mean velocity of its own and a correlated deviation from it.

    Velocities are mirrored at the edge of the area (Liang and Haas 1999).
    """

    kind: Literal["gauss-markov"] = "gauss-markov"
    mean_speed_m_s: float = Field(
        ge=0, le=1000, description="length of a UE's mean velocity in m/s; its direction is random"
    )
    deviation_m_s: float = Field(
        ge=0, le=1000, description="standard deviation from it along each axis in m/s"
    )
    memory_s: float = Field(
        ge=1e-6,
        le=LARGE,
        description="seconds in which its correlation falls to 1/e",
    )

    @property
    def top_speed_m_s(self) -> float:
        """A speed that UEs hardly exceed."""
        return self.mean_speed_m_s + 4.0 * self.deviation_m_s


class MobilityFile(Part):
    """Positions over time from a file; straight lines between its times."""

    kind: Literal["file"] = "file"
    path: str = Field(
        description="an .npz with times_s[time] and positions_m[time, ue, (x, y)], or a .csv with "
        "rows time in s, UE from 0, x and y in m"
    )
    relative_to: RelativeTo = "working-folder"


def _require_room(least_m: float, most_m: float, name: str) -> None:
    if least_m >= most_m:
        raise ValueError(
            f"least_distance_m = {least_m:g}: must be from 0 to below {name} = {most_m:g}; "
            f"{0.5 * most_m:g} would do"
        )


PlacementKind = Disc | Annulus | Hexagon | Clusters | PlacementFile
MobilityKind = NoMobility | RandomWaypoint | GaussMarkov | MobilityFile
Placement = Annotated[PlacementKind, Field(discriminator="kind"), ByName]
Mobility = Annotated[MobilityKind, Field(discriminator="kind"), ByName]
