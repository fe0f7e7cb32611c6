"""Where the UEs are."""

import functools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from agewise import scenario
from agewise.core.elementary import circle_each
from agewise.core.mobility import Area, draw_points
from agewise.files import stamp
from agewise.radio.files import read_positions

_Floats = NDArray[np.float64]


class Placement(Protocol):
    """Where UEs may be, and where they are at first."""

    @property
    def area(self) -> Area:
        """Inside which UEs stay when they move."""
        ...

    def draw(self, ues: int, rng: np.random.Generator) -> _Floats:
        """Positions ``[ue, (x, y)]`` in metres."""
        ...


@dataclass(frozen=True)
class UniformDisc:
    """Uniform by area in a disc around the access point at (0, 0)."""

    radius_m: float

    @property
    def area(self) -> Area:
        """The disc."""
        return Area(0.0, self.radius_m, math.inf)

    def draw(self, ues: int, rng: np.random.Generator) -> _Floats:
        """Positions ``[ue, (x, y)]`` in metres."""
        distance = self.radius_m * np.sqrt(rng.random(ues))
        return np.asarray(distance[:, np.newaxis] * circle_each(rng.random(ues)))


@dataclass(frozen=True)
class UniformArea:
    """Uniform in an annulus or a hexagon with a least distance."""

    area: Area

    def draw(self, ues: int, rng: np.random.Generator) -> _Floats:
        """Positions ``[ue, (x, y)]`` in metres."""
        key = rng.integers(2**64, dtype=np.uint64)
        return np.asarray(draw_points(key, ues, self.area))


@dataclass(frozen=True)
class ClusteredDisc:
    """Each UE in one of several discs, whose middles are uniform as far as they fit in a larger."""

    radius_m: float
    clusters: int
    cluster_radius_m: float

    @property
    def area(self) -> Area:
        """The larger disc."""
        return Area(0.0, self.radius_m, math.inf)

    def draw(self, ues: int, rng: np.random.Generator) -> _Floats:
        """Positions ``[ue, (x, y)]`` in metres."""
        middles = UniformDisc(self.radius_m - self.cluster_radius_m).draw(self.clusters, rng)
        around = UniformDisc(self.cluster_radius_m).draw(ues, rng)
        return middles[rng.integers(self.clusters, size=ues)] + around


@dataclass(frozen=True)
class GivenPositions:
    """Positions that a user brings."""

    path: str
    radius_m: float

    @property
    def area(self) -> Area:
        """The disc of the cell."""
        return Area(0.0, self.radius_m, math.inf)

    def draw(self, ues: int, rng: np.random.Generator) -> _Floats:
        """Positions ``[ue, (x, y)]`` in metres, the same for every seed."""
        positions = _read(self.path, *_stamp(self.path))
        if len(positions) != ues:
            raise ValueError(
                f"{self.path}: it has {len(positions)} positions, the scenario {ues} UEs: set "
                f"cell.ues={len(positions)}"
            )
        require_within(positions, self.radius_m, self.path)
        return positions


def require_within(positions_m: _Floats, reach_m: float, path: str) -> None:
    """``ValueError`` unless all of ``positions_m[..., ue, (x, y)]`` are that near."""
    distance = np.sqrt((positions_m * positions_m).sum(axis=-1))
    if distance.max(initial=0.0) > reach_m * (1.0 + 1e-9):
        ue = int(np.argmax(distance)) % distance.shape[-1]
        raise ValueError(
            f"{path}: UE {ue} is {distance.max():g} m from the access point, and the placement "
            f"reaches to {reach_m:g} m: set its radius to at least {math.ceil(distance.max())}"
        )


def _stamp(path: str) -> tuple[int, ...]:
    try:
        return stamp(path)
    except OSError as error:
        where = Path(path).absolute()
        raise ValueError(f"{where}: the positions cannot be read: {error.strerror}") from error


@functools.lru_cache(maxsize=2)
def _read(path: str, *_: int) -> _Floats:
    """The positions in a file, read once as long as it stays what it is."""
    positions = read_positions(Path(path))
    positions.flags.writeable = False
    return positions


def make_placement(settings: scenario.PlacementKind) -> Placement:
    """The placement that a scenario describes."""
    if isinstance(settings, scenario.Disc):
        return UniformDisc(settings.radius_m)
    if isinstance(settings, scenario.Annulus):
        return UniformArea(Area(settings.least_distance_m, settings.radius_m, math.inf))
    if isinstance(settings, scenario.Hexagon):
        apothem_m = settings.inter_site_distance_m / 2.0
        return UniformArea(Area(settings.least_distance_m, settings.reach_m, apothem_m))
    if isinstance(settings, scenario.Clusters):
        return ClusteredDisc(settings.radius_m, settings.clusters, settings.cluster_radius_m)
    return GivenPositions(settings.path, settings.radius_m)
