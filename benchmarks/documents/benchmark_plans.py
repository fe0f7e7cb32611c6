"""The runs behind the benchmark, by folder."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agewise.experiment import Plan
from agewise.scheduling import Policy
from agewise.studies.optimality import with_optimum
from benchmarks.documents.aggregations import aggregation_folder, aggregation_plan
from benchmarks.documents.benchmark_scenarios import (
    EXACT_SEEDS,
    SCENARIOS,
    benchmark_policies,
    is_exact,
)

#: Of the optimum in a benchmark: enough for nearly all rounds, and bounded for the others.
WORK_LIMIT: Final = 1_000_000


@dataclass(frozen=True, eq=False)
class BenchmarkPlan:
    """What a benchmark runs.

    ``asked`` has the policies and seeds. For each scenario ``solved`` has the runs beside which
    the optimum is worked out, from the first seeds, and ``fast`` those of all policies that are
    not exact, if there are any. ``aggregations`` says whether there is the table of them.
    """

    asked: Plan
    solved: Mapping[str, Plan]
    fast: Mapping[str, Plan]
    aggregations: bool

    @classmethod
    def of(
        cls,
        policies: Sequence[Policy | str] | None,
        scenarios: Iterable[str] | None,
        seeds: int | Iterable[int],
        every: int,
        baseline: Policy | str | None = None,
    ) -> "BenchmarkPlan":
        """All policies in their tuned forms on all scenarios, or these."""
        chosen = list(scenarios or SCENARIOS)
        unknown = [name for name in chosen if name not in SCENARIOS]
        if unknown:
            raise ValueError(
                f"the benchmark has no scenario {unknown[0]!r}; there are {', '.join(SCENARIOS)}"
            )
        first = SCENARIOS[chosen[0]].scenario
        asked = Plan.of(first, policies or benchmark_policies(), seeds, baseline=baseline)
        fast = [policy for policy in asked.policies if not is_exact(policy.key)]
        few = asked.seeds[:EXACT_SEEDS]
        own = {name: SCENARIOS[name].scenario for name in chosen}
        return cls(
            asked,
            {
                name: Plan.of(with_optimum(scenario, every, WORK_LIMIT), asked.policies, few)
                for name, scenario in own.items()
            },
            {name: Plan.of(scenario, fast, asked.seeds) for name, scenario in own.items() if fast},
            policies is None,
        )

    def by_folder(self, out: Path | str) -> dict[Path, Plan]:
        """All plans by the folders below ``out`` in which their results are kept."""
        folder = Path(out)
        plans = {folder / solved_folder(name): plan for name, plan in self.solved.items()}
        plans |= {folder / name: plan for name, plan in self.fast.items()}
        if self.aggregations:
            for name in self.solved:
                plan = aggregation_plan(name, self.asked.seeds)
                plans[folder / aggregation_folder(name)] = plan
        return plans


def solved_folder(scenario: str) -> str:
    """The name of the folder of runs with the optimum beside them."""
    return f"{scenario}-optimum"
