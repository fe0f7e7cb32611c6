"""The second table of the benchmark: policies by aggregations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agewise import statistics
from agewise.experiment import LearningCurve, Plan, Result, RunOptions, execute
from agewise.policies import make_policy
from agewise.statistics import Estimate
from benchmarks.documents.benchmark_scenarios import CHECKPOINTS, SCENARIOS

POLICIES: Final = ("age-based", "max-pack", "round-robin", "random")
#: By what they are called in the table; the first is what the others are compared with.
AGGREGATIONS: Final[dict[str, dict[str, Any]]] = {
    "average": {"kind": "average"},
    "memory": {"kind": "memory", "discount": {"kind": "none"}},
    "memory, fixed 0.1": {"kind": "memory", "discount": {"kind": "fixed", "rate": 0.1}},
    "memory, fixed 0.3": {"kind": "memory", "discount": {"kind": "fixed", "rate": 0.3}},
    "memory, agreement": {"kind": "memory", "discount": {"kind": "agreement"}},
    "variance-reduced": {"kind": "variance-reduced"},
}
AVERAGE: Final = "average"
_VARIATIONS: Final = {name: {"learn.aggregation": value} for name, value in AGGREGATIONS.items()}


@dataclass(frozen=True, eq=False)
class AggregationTable:
    """``scores[scenario][policy, aggregation]`` by seed, the mean accuracy at the checkpoints."""

    scores: Mapping[str, Mapping[tuple[str, str], NDArray[np.float64]]]
    seeds: int

    def estimates(self, scenario: str) -> dict[tuple[str, str], Estimate]:
        """The scores by policy and aggregation in one scenario.

        Gains are over the same policy with the plain average, all of the scenario one family.
        """
        scores = self.scores[scenario]
        pairs = {
            (policy, aggregation): statistics.contrast(own, scores[policy, AVERAGE])
            for (policy, aggregation), own in scores.items()
            if aggregation != AVERAGE
        }
        gains = dict(zip(pairs, statistics.correct(list(pairs.values())), strict=True))
        return {key: statistics.estimate(own, gains.get(key)) for key, own in scores.items()}


def aggregation_plan(scenario: str, seeds: Sequence[int]) -> Plan:
    """Four policies with every aggregation on this scenario of the benchmark."""
    return Plan.of(SCENARIOS[scenario].scenario, POLICIES, seeds, _VARIATIONS.values())


def aggregation_folder(scenario: str) -> str:
    """The name of the folder of these runs."""
    return f"{scenario}-aggregations"


def compare_aggregations(
    scenarios: Sequence[str], seeds: Sequence[int], folder: Path, options: RunOptions
) -> AggregationTable:
    """Four policies with every aggregation on these scenarios."""
    scores = {}
    for scenario in scenarios:
        plan = aggregation_plan(scenario, seeds)
        result = execute(plan, folder / aggregation_folder(scenario), options)
        scores[scenario] = {
            (policy, name): _scores(result, policy, variation, plan.seeds)
            for name, variation in _VARIATIONS.items()
            for policy in POLICIES
        }
    return AggregationTable(scores, len(seeds))


def _scores(
    result: Result, policy: str, variation: Mapping[str, Any], seeds: Sequence[int]
) -> NDArray[np.float64]:
    """``[seed]``: the mean accuracy at the checkpoints."""
    histories = result.histories(make_policy(policy), variation)
    curve = LearningCurve.of({seed: histories[seed] for seed in seeds})
    return np.asarray(np.mean([curve.at(point) for point in CHECKPOINTS], axis=0))
