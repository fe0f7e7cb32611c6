"""How much of the transmitted power arrives, fading averaged out."""

from typing import Literal

from pydantic import Field

from agewise.scenario.section import MOST_DB, Section


class PowerLaw(Section):
    """Mean gain falls as a power of the distance; only its shape is known, not its scale."""

    kind: Literal["power-law"] = "power-law"
    exponent: float = Field(gt=0, le=10, description="beta of the power law")
    reference_distance_m: float = Field(
        ge=1e-3,
        le=1e7,
        description="distance in metres at which the law starts; nearer UEs have its gain",
    )


class LogDistance(Section):
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
