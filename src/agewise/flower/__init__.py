"""The same policies on a live federation: Flower, or a server of your own.

Links and `RoundPlanner` need no Flower; `Scheduled` and what goes with it are imported when they
are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from agewise.extras import require
from agewise.flower.clients import Clients, PlannedRound, RoundPlanner
from agewise.flower.links import (
    Airtime,
    FederationError,
    Links,
    Modelled,
    Reported,
    Slots,
    UploadTiming,
)

if TYPE_CHECKING:
    from agewise.flower.grid import Timeouts, identify
    from agewise.flower.strategy import Scheduled

__all__ = [
    "Airtime",
    "Clients",
    "FederationError",
    "Links",
    "Modelled",
    "PlannedRound",
    "Reported",
    "RoundPlanner",
    "Scheduled",
    "Slots",
    "Timeouts",
    "UploadTiming",
    "identify",
]

#: Where the names are that need Flower.
_NEED_FLOWER = {"Scheduled": "strategy", "Timeouts": "grid", "identify": "grid"}


def __getattr__(name: str) -> object:
    if name not in _NEED_FLOWER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require("flwr", "flower")
    return getattr(import_module(f"{__name__}.{_NEED_FLOWER[name]}"), name)


def __dir__() -> list[str]:
    return __all__
