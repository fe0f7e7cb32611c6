"""Placement: where the UEs are, and the area that they stay in."""

import math
from pathlib import Path
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from agewise.core.elementary import cos_sin_each
from agewise.core.mobility import Area, draw_points
from agewise.part import Part, RelativeTo
from agewise.radio._files import read_positions
from agewise.radio.cell import RunContext

_Floats = NDArray[np.float64]
_FROM_ACCESS_POINT = "no UE is nearer to the access point, in metres"


class Placement(Part):
    """Places of the UEs, with the access point at (0, 0).

    A kind of your own has `reach_m`, and `positions` unless UEs are uniform in their `area`.
    """

    kind: str = ""

    @property
    def reach_m(self) -> float:
        """The largest distance from the access point that a UE can have."""
        raise self.lacks("reach_m")

    @property
    def area(self) -> Area:
        """The area in which UEs stay when they move: a disc, unless said otherwise."""
        return Area(0.0, self.reach_m, math.inf)

    def positions(self, run: RunContext) -> _Floats:
        """Return the positions ``[ue, (x, y)]`` of one run in metres: uniform in the area."""
        key = run.streams.placement().integers(2**64, dtype=np.uint64)
        return np.asarray(draw_points(key, run.cell.ues, self.area))


class _Round(Placement):
    """A placement in a disc."""

    radius_m: float = Field(
        ge=1e-3, le=1e7, description="radius of the cell in metres, beyond which no UE may be"
    )

    @property
    def reach_m(self) -> float:
        """The radius."""
        return self.radius_m


class Disc(_Round):
    """UEs uniform by area in a disc around the access point."""

    kind: Literal["disc"] = "disc"

    def positions(self, run: RunContext) -> _Floats:
        """Return uniform positions."""
        return _in_disc(self.radius_m, run.cell.ues, run.streams.placement())


class Annulus(_Round):
    """UEs uniform by area between two circles around the access point."""

    kind: Literal["annulus"] = "annulus"
    least_distance_m: float = Field(ge=0, le=1e7, description=_FROM_ACCESS_POINT)

    @property
    def area(self) -> Area:
        """The annulus."""
        return Area(self.least_distance_m, self.radius_m, math.inf)

    @model_validator(mode="after")
    def _has_room(self) -> Self:
        _require_room(self.least_distance_m, self.radius_m, "radius_m")
        return self


class Hexagon(Placement):
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
        """The distance to a corner."""
        return self.inter_site_distance_m / math.sqrt(3.0)

    @property
    def area(self) -> Area:
        """The hexagon without its middle."""
        return Area(self.least_distance_m, self.reach_m, self.inter_site_distance_m / 2.0)

    @model_validator(mode="after")
    def _has_room(self) -> Self:
        side = self.inter_site_distance_m / 2.0
        _require_room(self.least_distance_m, side, "inter_site_distance_m / 2")
        return self


class Clusters(_Round):
    """UEs in round clusters, such as buildings or squares, spread over a disc (Matérn 1960)."""

    kind: Literal["clusters"] = "clusters"
    clusters: int = Field(ge=1, le=1_000_000, description="number of clusters")
    cluster_radius_m: float = Field(
        ge=0, le=1e7, description="radius of a cluster in metres, in which its UEs are uniform"
    )

    def positions(self, run: RunContext) -> _Floats:
        """Return positions in clusters whose middles are uniform as far as they fit."""
        rng, ues = run.streams.placement(), run.cell.ues
        middles = _in_disc(self.radius_m - self.cluster_radius_m, self.clusters, rng)
        around = _in_disc(self.cluster_radius_m, ues, rng)
        return middles[rng.integers(self.clusters, size=ues)] + around

    @model_validator(mode="after")
    def _has_room(self) -> Self:
        if self.cluster_radius_m > self.radius_m:
            raise ValueError(
                f"cluster_radius_m = {self.cluster_radius_m:g}: must be from 0 to "
                f"radius_m = {self.radius_m:g}; the nearest is {self.radius_m:g}"
            )
        return self


class PlacementFile(_Round):
    """Positions from a file: a CSV with a row ``x, y`` per UE, or an NPZ with ``positions_m``."""

    kind: Literal["file"] = "file"
    path: str = Field(description="a .csv, or an .npz with an array positions_m[ue, (x, y)]")
    relative_to: RelativeTo = "working-folder"

    def files(self) -> dict[str, Path]:
        """Name the file."""
        return {f"positions:{self.path}": Path(self.path)}

    def positions(self, run: RunContext) -> _Floats:
        """Return the positions of the file, the same for every seed."""
        positions = read_positions(self.path)
        if len(positions) != run.cell.ues:
            raise ValueError(
                f"{self.path}: it has {len(positions)} positions, the scenario {run.cell.ues} UEs: "
                f"set cell.ues={len(positions)}"
            )
        require_within(positions, self.radius_m, self.path)
        return positions


def require_within(positions_m: _Floats, reach_m: float, path: str) -> None:
    """Raise ``ValueError`` unless all of ``positions_m[..., ue, (x, y)]`` are that near."""
    distance = np.sqrt((positions_m * positions_m).sum(axis=-1))
    if distance.max(initial=0.0) > reach_m * (1.0 + 1e-9):
        ue = int(np.argmax(distance)) % distance.shape[-1]
        raise ValueError(
            f"{path}: UE {ue} is {distance.max():g} m from the access point, and the placement "
            f"reaches to {reach_m:g} m: set its radius to at least {math.ceil(distance.max())}"
        )


def _in_disc(radius_m: float, count: int, rng: np.random.Generator) -> _Floats:
    """Draw positions ``[place, (x, y)]`` uniform by area."""
    distance = radius_m * np.sqrt(rng.random(count))
    return np.asarray(distance[:, np.newaxis] * cos_sin_each(rng.random(count)))


def _require_room(least_m: float, most_m: float, name: str) -> None:
    if least_m >= most_m:
        raise ValueError(
            f"least_distance_m = {least_m:g}: must be from 0 to below {name} = {most_m:g}; "
            f"{0.5 * most_m:g} would do"
        )
