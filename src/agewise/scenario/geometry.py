"""Where the UEs of a scenario are, and how they move."""

from typing import Literal

from pydantic import Field

from agewise.scenario.section import Section


class Disc(Section):
    """UEs uniform by area in a disc around the access point."""

    kind: Literal["disc"] = "disc"
    radius_m: float = Field(ge=1e-3, le=1e7, description="radius of the disc in metres")
