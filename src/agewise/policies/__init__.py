"""Who transmits: the policies, what they see, and the registry by name."""

from agewise.policies.age_based import AgeBased
from agewise.policies.age_based_plus import AgeBasedPlus
from agewise.policies.age_dissimilarity import AgeDissimilarity
from agewise.policies.best_channel import BestChannel
from agewise.policies.best_channel_norm import BestChannelNorm
from agewise.policies.best_norm import BestNorm
from agewise.policies.cell_interior import CellInterior
from agewise.policies.described import Parameter, PolicyDescription, describe
from agewise.policies.fed_cs import FedCS
from agewise.policies.from_file import text_of_file
from agewise.policies.importance_channel import ImportanceChannel
from agewise.policies.markov import Markov
from agewise.policies.max_pack import MaxPack
from agewise.policies.max_pack_exact import MaxPackExact
from agewise.policies.max_weight import MaxWeight
from agewise.policies.oort import Oort
from agewise.policies.optimal import Optimal
from agewise.policies.power_of_choice import PowerOfChoice
from agewise.policies.proportional_fair import ProportionalFair
from agewise.policies.random_order import Random
from agewise.policies.registry import make_policy, names, policy_class, schedule, summary
from agewise.policies.round_robin import RoundRobin
from agewise.policies.whittle import Whittle
from agewise.scheduling import Policy, RoundView

__all__ = [
    "AgeBased",
    "AgeBasedPlus",
    "AgeDissimilarity",
    "BestChannel",
    "BestChannelNorm",
    "BestNorm",
    "CellInterior",
    "FedCS",
    "ImportanceChannel",
    "Markov",
    "MaxPack",
    "MaxPackExact",
    "MaxWeight",
    "Oort",
    "Optimal",
    "Parameter",
    "Policy",
    "PolicyDescription",
    "PowerOfChoice",
    "ProportionalFair",
    "Random",
    "RoundRobin",
    "RoundView",
    "Whittle",
    "describe",
    "make_policy",
    "names",
    "policy_class",
    "schedule",
    "summary",
    "text_of_file",
]
