"""Policies: who transmits, what they see, and the registry by name."""

from agewise.policies.age_based import AgeBased, MaxPack
from agewise.policies.alternating import Alternating
from agewise.policies.best_channel import BestChannel, BestChannelNorm, BestNorm
from agewise.policies.fed_cs import FedCS
from agewise.policies.importance_channel import ImportanceChannel
from agewise.policies.learned import FEATURES, Learned, Scorer, features_of
from agewise.policies.markov import Markov
from agewise.policies.max_weight import MaxWeight, Whittle
from agewise.policies.oort import Oort
from agewise.policies.power_of_choice import PowerOfChoice
from agewise.policies.proportional_fair import ProportionalFair
from agewise.policies.random_order import Random
from agewise.policies.registry import (
    Parameter,
    PolicyDescription,
    describe,
    find_class,
    make_policy,
    names,
    schedule,
    summary,
)
from agewise.policies.round_robin import RoundRobin
from agewise.policies.staleness import AgeReduction, Freshest, VersionAge
from agewise.scheduling import Policy, RoundView

__all__ = [
    "FEATURES",
    "AgeBased",
    "AgeReduction",
    "Alternating",
    "BestChannel",
    "BestChannelNorm",
    "BestNorm",
    "FedCS",
    "Freshest",
    "ImportanceChannel",
    "Learned",
    "Markov",
    "MaxPack",
    "MaxWeight",
    "Oort",
    "Parameter",
    "Policy",
    "PolicyDescription",
    "PowerOfChoice",
    "ProportionalFair",
    "Random",
    "RoundRobin",
    "RoundView",
    "Scorer",
    "VersionAge",
    "Whittle",
    "describe",
    "features_of",
    "find_class",
    "make_policy",
    "names",
    "schedule",
    "summary",
]
