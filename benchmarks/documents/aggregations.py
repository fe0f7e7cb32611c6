"""The second table of the benchmark: policies by aggregations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from agewise import statistics
from agewise.experiment import Measured, Plan, Result, RunOptions, execute
from agewise.experiment.summary import corrected_together
from agewise.policies import make_policy
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

    def table(self, scenario: str) -> pl.DataFrame:
        """A row per policy and aggregation in one scenario.

        ``gain`` is the paired difference from the same policy with the plain average; p-values
        are corrected (Holm) over all policies and aggregations of the scenario.
        """
        scores, rows = self.scores[scenario], []
        for (policy, aggregation), own in scores.items():
            interval = statistics.mean_interval(own)
            row: dict[str, Any] = {"policy": policy, "aggregation": aggregation}
            row |= {"score": interval.mean, "score_low": interval.low, "score_high": interval.high}
            row |= dict.fromkeys(("gain", "gain_low", "gain_high", "p"))
            if aggregation != AVERAGE:
                paired = statistics.paired_difference(own, scores[policy, AVERAGE])
                row |= {"gain": paired.difference, "p": paired.p_value}
                row |= {"gain_low": paired.low, "gain_high": paired.high}
            rows.append(row)
        return corrected_together(pl.DataFrame(rows, infer_schema_length=None), ["p"])


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
    measured = Measured.of({seed: histories[seed] for seed in seeds})
    return np.asarray(np.mean([measured.at(point) for point in CHECKPOINTS], axis=0))
