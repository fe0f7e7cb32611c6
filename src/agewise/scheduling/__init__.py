"""The access point: what a policy is and sees, whose update is how old, who uploads next."""

from agewise.scheduling.access_point import AccessPoint
from agewise.scheduling.policy import (
    Feedback,
    Known,
    Policy,
    Report,
    RoundView,
    State,
    Ties,
    parameter_names,
)
from agewise.scheduling.retry import BackOff, BackOffByTurns, NoPause, Retry

__all__ = [
    "AccessPoint",
    "BackOff",
    "BackOffByTurns",
    "Feedback",
    "Known",
    "NoPause",
    "Policy",
    "Report",
    "Retry",
    "RoundView",
    "State",
    "Ties",
    "parameter_names",
]
