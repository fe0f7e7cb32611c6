"""The access point: what a policy is and sees, whose update is how old, who uploads next."""

from agewise.scheduling.access_point import AccessPoint
from agewise.scheduling.policy import Policy
from agewise.scheduling.view import Feedback, Report, RoundView, State

__all__ = ["AccessPoint", "Feedback", "Policy", "Report", "RoundView", "State"]
