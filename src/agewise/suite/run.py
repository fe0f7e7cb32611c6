"""Run the suite: every policy, every scenario, the same seeds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agewise.engines import make_engine
from agewise.experiment import Plan, Result, execute
from agewise.experiment.runs import as_policies, as_seeds
from agewise.optimality import losses_of
from agewise.policies import Policy, names
from agewise.records import PolicyKey
from agewise.suite.measures import Measures, measure
from agewise.suite.ranking import ranking, scenario_table
from agewise.suite.scenarios import SCENARIOS

if TYPE_CHECKING:
    import polars

    from agewise.engines import Engine

#: Of the optimum in a benchmark: enough for nearly all rounds, and bounded for the others.
WORK_LIMIT = 1_000_000


@dataclass(frozen=True, eq=False)
class Benchmark:
    """What every policy did in every scenario; ``measures[scenario][policy]``."""

    results: Mapping[str, Result]
    measures: Mapping[str, Mapping[PolicyKey, Measures]]

    def ranking(self) -> "polars.DataFrame":
        """A row per policy over all scenarios, the best first."""
        return ranking(self.measures)

    def table(self, scenario: str) -> "polars.DataFrame":
        """A row per policy in one scenario, the best first."""
        return scenario_table(self.measures[scenario], SCENARIOS[scenario].target)


def benchmark(
    policies: Sequence[Policy | str] | None = None,
    scenarios: Iterable[str] | None = None,
    seeds: int | Iterable[int] = 10,
    out: Path | str = "runs/benchmark",
    *,
    every: int = 30,
    engine: "str | Engine" = "local",
    workers: int | None = None,
    quiet: bool = False,
) -> Benchmark:
    """All registered policies on all scenarios of the suite, or these.

    Distances from the optimum are measured in every so many rounds. Everything is kept in the
    folder ``out``: a benchmark that was stopped goes on where it was, and policies and seeds may
    be added later.
    """
    chosen, engine = list(scenarios or SCENARIOS), make_engine(engine, workers)
    unknown = [name for name in chosen if name not in SCENARIOS]
    if unknown:
        raise ValueError(
            f"the suite has no scenario {unknown[0]!r}; there are {', '.join(SCENARIOS)}"
        )
    compared, wanted = as_policies(policies or names()), as_seeds(seeds)
    results: dict[str, Result] = {}
    measures: dict[str, dict[PolicyKey, Measures]] = {}
    for name in chosen:
        scenario = SCENARIOS[name].scenario
        plan = Plan.of(scenario, compared, wanted)
        made = execute(plan, Path(out) / name, engine, quiet=quiet)
        losses = losses_of(made, engine, every=every, work_limit=WORK_LIMIT, quiet=quiet)
        of_run = {(entry.policy, entry.seed): own for entry, own in losses}
        results[name], measures[name] = made, {}
        for policy in (one.key for one in compared):
            histories = made.histories(policy, {})  # there may be more seeds from before
            measures[name][policy] = measure(
                {seed: histories[seed] for seed in wanted},
                [of_run[policy, seed] for seed in wanted],
            )
    return Benchmark(results, measures)
