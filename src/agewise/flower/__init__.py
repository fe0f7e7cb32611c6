"""The same policies on a live federation: Flower."""

from agewise.flower.api import FederationError
from agewise.flower.clients import Clients, identify
from agewise.flower.grid import Pace
from agewise.flower.links import Airtime, Delivery, Links, Modelled, Slots
from agewise.flower.reported import Reported
from agewise.flower.strategy import Scheduled

__all__ = [
    "Airtime",
    "Clients",
    "Delivery",
    "FederationError",
    "Links",
    "Modelled",
    "Pace",
    "Reported",
    "Scheduled",
    "Slots",
    "identify",
]
