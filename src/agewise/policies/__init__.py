"""Who transmits: the policies, what they see, and the registry by name."""

from agewise.policies.age_based import AgeBased
from agewise.policies.base import Policy, RoundView
from agewise.policies.lessons import Lessons
from agewise.policies.max_pack import MaxPack
from agewise.policies.once import schedule
from agewise.policies.random_order import Random
from agewise.policies.registry import make_policy, names, policy_class, summary
from agewise.policies.round_robin import RoundRobin

__all__ = [
    "AgeBased",
    "Lessons",
    "MaxPack",
    "Policy",
    "Random",
    "RoundRobin",
    "RoundView",
    "make_policy",
    "names",
    "policy_class",
    "schedule",
    "summary",
]
