"""Local learning on the UEs (Eq. 1, Algorithm 3) and what the access point makes of it."""

from agewise.learn.aggregation import (
    Aggregated,
    Aggregation,
    AgreementDiscount,
    Discount,
    FixedDiscount,
    NoDiscount,
    ServerAdam,
    ServerMomentum,
    UpdateMemory,
    VarianceReduced,
    WeightedAverage,
)
from agewise.learn.compression import Compression, NoCompression, Qsgd, Sign, TopK
from agewise.learn.federation import Diverged, Federation, FederationState, Learn, Learned, Probe
from agewise.learn.kmeans import KMeans
from agewise.learn.linear import Linear
from agewise.learn.local import ControlVariates, LocalObjective, PlainObjective, Proximal
from agewise.learn.mlp import Mlp
from agewise.learn.model import (
    L1,
    L2,
    Learner,
    LocalRound,
    LocalSteps,
    Model,
    NoPenalty,
    Penalty,
    UeSamples,
)
from agewise.learn.pytorch import Torch, add_module
from agewise.learn.staleness import (
    ConstantStaleness,
    ExponentialStaleness,
    HingeStaleness,
    PolynomialStaleness,
    Staleness,
)
from agewise.learn.threads import set_threads
from agewise.learn.updates import (
    ArraySpec,
    LocalModels,
    Params,
    State,
    Updates,
    is_finite,
    update_reports,
)

__all__ = [
    "L1",
    "L2",
    "Aggregated",
    "Aggregation",
    "AgreementDiscount",
    "ArraySpec",
    "Compression",
    "ConstantStaleness",
    "ControlVariates",
    "Discount",
    "Diverged",
    "ExponentialStaleness",
    "Federation",
    "FederationState",
    "FixedDiscount",
    "HingeStaleness",
    "KMeans",
    "Learn",
    "Learned",
    "Learner",
    "Linear",
    "LocalModels",
    "LocalObjective",
    "LocalRound",
    "LocalSteps",
    "Mlp",
    "Model",
    "NoCompression",
    "NoDiscount",
    "NoPenalty",
    "Params",
    "Penalty",
    "PlainObjective",
    "PolynomialStaleness",
    "Probe",
    "Proximal",
    "Qsgd",
    "ServerAdam",
    "ServerMomentum",
    "Sign",
    "Staleness",
    "State",
    "TopK",
    "Torch",
    "UeSamples",
    "UpdateMemory",
    "Updates",
    "VarianceReduced",
    "WeightedAverage",
    "add_module",
    "is_finite",
    "set_threads",
    "update_reports",
]
