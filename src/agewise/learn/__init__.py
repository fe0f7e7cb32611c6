"""Local learning on the UEs (Eq. 1, Algorithm 3) and what the access point makes of it."""

from agewise.learn.aggregation import (
    Aggregated,
    Aggregator,
    Average,
    Memory,
    State,
    Updates,
    VarianceReduced,
    average,
    is_finite,
    keeps_updates,
    make_aggregator,
    memory_bytes,
)
from agewise.learn.base import Evaluation, Learner, LearnerKind, Params, proximal_weight
from agewise.learn.compression import (
    Compressor,
    Trained,
    compression_bytes,
    compression_state,
    keeps_unsent,
    make_compressor,
)
from agewise.learn.federation import Diverged, Federation, FederationState, Probe
from agewise.learn.kmeans import KMeansLearner
from agewise.learn.linear import LinearLearner
from agewise.learn.local import (
    LocalObjective,
    keeps_variates,
    make_local_objective,
    variates_bytes,
)
from agewise.learn.makers import add_module, added_maker, source_file
from agewise.learn.mlp import MlpLearner
from agewise.learn.registry import make_learner, model_length, rate_threshold
from agewise.learn.reports import update_reports
from agewise.learn.threads import set_threads

__all__ = [
    "Aggregated",
    "Aggregator",
    "Average",
    "Compressor",
    "Diverged",
    "Evaluation",
    "Federation",
    "FederationState",
    "KMeansLearner",
    "Learner",
    "LearnerKind",
    "LinearLearner",
    "LocalObjective",
    "Memory",
    "MlpLearner",
    "Params",
    "Probe",
    "State",
    "Trained",
    "Updates",
    "VarianceReduced",
    "add_module",
    "added_maker",
    "average",
    "compression_bytes",
    "compression_state",
    "is_finite",
    "keeps_unsent",
    "keeps_updates",
    "keeps_variates",
    "make_aggregator",
    "make_compressor",
    "make_learner",
    "make_local_objective",
    "memory_bytes",
    "model_length",
    "proximal_weight",
    "rate_threshold",
    "set_threads",
    "source_file",
    "update_reports",
    "variates_bytes",
]
