"""Local learning on the UEs (Eq. 1, Algorithm 3) and what the access point makes of it."""

from agewise.accounting import payload_bits
from agewise.data import Dataset, Partition, load_once
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
from agewise.learn.base import Evaluation, Learner, Params
from agewise.learn.compression import (
    Compressor,
    Trained,
    compression_bytes,
    compression_state,
    keeps_unsent,
    make_compressor,
)
from agewise.learn.kmeans import KMeansLearner
from agewise.learn.linear import LinearLearner, outputs_of
from agewise.learn.reports import reports, update_reports
from agewise.learn.threads import set_threads
from agewise.scenario import Learn, Linear, ModelThreshold, Scenario

__all__ = [
    "Aggregated",
    "Aggregator",
    "Average",
    "Compressor",
    "Evaluation",
    "KMeansLearner",
    "Learner",
    "LinearLearner",
    "Memory",
    "Params",
    "State",
    "Trained",
    "Updates",
    "VarianceReduced",
    "average",
    "compression_bytes",
    "compression_state",
    "is_finite",
    "keeps_unsent",
    "keeps_updates",
    "make_aggregator",
    "make_compressor",
    "make_learner",
    "memory_bytes",
    "model_length",
    "rate_threshold",
    "reports",
    "set_threads",
    "update_reports",
]


def make_learner(dataset: Dataset, partition: Partition, settings: Learn) -> Learner:
    """The learner that a scenario describes."""
    if not partition.sizes.all():
        empty = int((partition.sizes == 0).argmax())
        raise ValueError(f"UE {empty} has no samples: every UE needs at least one")
    model = settings.model
    if isinstance(model, Linear):
        return LinearLearner.of(dataset, partition, settings, model)
    return KMeansLearner.of(dataset, partition, settings, model)


def model_length(dataset: Dataset, settings: Learn) -> int:
    """How many numbers a model of this data set has."""
    model, features = settings.model, dataset.train.feature_count
    if isinstance(model, Linear):
        return (features + 1) * outputs_of(dataset, model)
    return features * model.clusters


def rate_threshold(scenario: Scenario) -> float:
    """R_s in bits per real channel use, whatever it follows from; a model's length is looked up."""
    if not isinstance(scenario.threshold, ModelThreshold):
        return scenario.rate_threshold
    length = model_length(load_once(scenario.data), scenario.learn)
    return scenario.rate_for(payload_bits(scenario, length))
