"""Policies by aggregations, each tuned in every scenario: ``make study NAME=aggregations``."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agewise import statistics
from agewise.experiment import LearningCurve, Plan, RunOptions, execute
from agewise.policies import make_policy
from agewise.scenario import Scenario
from agewise.statistics import Contrast
from agewise.tables import Cell, Column, Table
from agewise.tables._words import STARS_NOTE, starred
from benchmarks.documents.benchmark_scenarios import SCENARIOS, benchmark_policies, tuned
from benchmarks.documents.pages import between, compact, limits, write_csv, write_document

Form = Mapping[str, Any]
#: Scenarios whose runs take milliseconds and whose data differ; policies that lead somewhere.
CHOSEN: Final = ("paper", "low-rate", "one-digit", "weak-uneven", "deadline-unfiltered")
POLICIES: Final = (
    "age-based", "max-pack", "round-robin", "whittle", "proportional-fair", "oort",
)  # fmt: skip
#: Those whose mean score chooses the forms of an aggregation.
TUNED_WITH: Final = ("age-based", "max-pack", "round-robin")
AVERAGE: Final = "average"
_STEPS: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
#: By how much a model moves if all updates agree: local step times server step over 1 - beta.
_WHOLE_STEPS: Final = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)


def _by_step(steps: Sequence[float], *rules: Form) -> list[Form]:
    """Each rule with every step of local learning."""
    return [{"learn.aggregation": rule, "learn.step_size": x} for rule in rules for x in steps]


def _by_whole_step(beta: float, *server_steps: float) -> list[Form]:
    """Each server step with the local steps that make up every whole step with it."""
    return [
        {
            "learn.aggregation": {"kind": "momentum", "beta": beta, "server_step": x},
            "learn.step_size": float(f"{whole * (1 - beta) / x:.2g}"),
        }
        for x in server_steps
        for whole in _WHOLE_STEPS
    ]


#: The forms that are tried, by what an aggregation is called; about as many of each.
FORMS: Final[dict[str, list[Form]]] = {
    "average": _by_whole_step(0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0),
    "memory": _by_step(
        _STEPS,
        {"kind": "memory", "discount": {"kind": "none"}},
        *(
            {"kind": "memory", "discount": {"kind": "fixed", "rate": x}}
            for x in (0.01, 0.03, 0.1, 0.3, 1.0)
        ),
    ),
    "FedVARP": _by_step(
        [float(f"{x:.2g}") for x in np.geomspace(0.000072, 0.3, 36)], {"kind": "variance-reduced"}
    ),
    "momentum": _by_whole_step(0.9, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0),
    "Adam": _by_step(
        _STEPS,
        *(
            {"kind": "adam", "beta_1": 0.9, "beta_2": 0.99, "tau": 1e-3, "server_step": x}
            for x in (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
        ),
    ),
}


def numbers(form: Form) -> dict[str, float]:
    """The numbers of a form that its grid is made of."""
    rule, step = form["learn.aggregation"], form["learn.step_size"]
    if "beta" in rule:
        whole = step * rule["server_step"] / (1 - rule["beta"])
        return {"server_step": rule["server_step"], "whole_step": float(f"{whole:.1g}")}
    found = {"step_size": step}
    if "discount" in rule:
        found["discount"] = rule["discount"].get("rate", 0.0)
    if "server_step" in rule:
        found["server_step"] = rule["server_step"]
    return found


def measure(
    scenario: Scenario,
    policies: Mapping[str, str],
    forms: Sequence[Form],
    seeds: Sequence[int],
    folder: Path,
    options: RunOptions,
) -> dict[tuple[int, str], NDArray[np.float64]]:
    """``[seed]``: the scores by form, counted from 0, and policy; NaN where a run failed."""
    result = execute(Plan.of(scenario, list(policies.values()), seeds, forms), folder, options)
    found = {}
    for number, form in enumerate(forms):
        for name, text in policies.items():
            done = result.histories(make_policy(text), form)
            curve = LearningCurve.of({seed: done[seed] for seed in seeds if seed in done})
            by_seed = dict(zip(curve.seeds, curve.score.tolist(), strict=True))
            found[number, name] = np.array([by_seed.get(seed, np.nan) for seed in seeds])
    return found


@dataclass(frozen=True, eq=False)
class AggregationTable:
    """``scores[scenario][aggregation, policy]`` by seed."""

    scores: Mapping[str, Mapping[tuple[str, str], NDArray[np.float64]]]

    def seeds(self, scenario: str) -> int:
        """How many seeds ran."""
        return next(iter(self.scores[scenario].values())).size

    def over_average(self, scenario: str) -> dict[tuple[str, str], Contrast]:
        """What an aggregation adds to a policy with the average; a scenario is one family."""
        return self._over(scenario, lambda key: (AVERAGE, key[1]))

    def over_max_pack(self, scenario: str) -> dict[tuple[str, str], Contrast]:
        """What a policy gains over max-pack with the same aggregation; a scenario is one family."""
        return self._over(scenario, lambda key: (key[0], "max-pack"))

    def _over(
        self, scenario: str, other: Callable[[tuple[str, str]], tuple[str, str]]
    ) -> dict[tuple[str, str], Contrast]:
        scores = self.scores[scenario]
        made = {
            key: statistics.contrast(own, scores[other(key)])
            for key, own in scores.items()
            if other(key) != key
        }
        return dict(zip(made, statistics.correct(list(made.values())), strict=True))


def compare_aggregations(
    seeds: int, folder: Path, options: RunOptions, scenarios: Sequence[str] = CHOSEN
) -> AggregationTable:
    """Policies that lead somewhere with every aggregation, all in their best forms."""
    scores = {}
    for scenario in scenarios:
        forms = tuned("aggregations")[scenario]
        policies = {name: benchmark_policies(scenario)[name] for name in POLICIES}
        found = measure(
            SCENARIOS[scenario].scenario, policies, list(forms.values()), range(seeds),
            folder / f"{scenario}-aggregations", options,
        )  # fmt: skip
        scores[scenario] = {
            (aggregation, name): found[number, name]
            for number, aggregation in enumerate(forms)
            for name in policies
        }
    return AggregationTable(scores)


def added_table(found: AggregationTable) -> Table:
    """The score of every policy with the average, and what other aggregations add to it."""
    tables = {name: found.over_average(name) for name in found.scores}
    keys = list(next(iter(found.scores.values())))
    lines: list[list[Cell]] = [
        [
            aggregation,
            policy,
            *(
                f"{100 * found.scores[name][aggregation, policy].mean():.1f}"
                if aggregation == AVERAGE
                else starred(table[aggregation, policy]).replace("*", r"\*")
                for name, table in tables.items()
            ),
        ]
        for aggregation, policy in keys
    ]
    columns = [Column("aggregation", kind="words"), Column("policy", kind="words")]
    return Table("", [*columns, *map(Column, tables)], lines)


def aggregation_rows(found: AggregationTable) -> list[dict[str, Any]]:
    """A line for each scenario, aggregation and policy."""
    rows = []
    for name, own in found.scores.items():
        over_average, over_max_pack = found.over_average(name), found.over_max_pack(name)
        rows += [
            {
                "scenario": name,
                "aggregation": key[0],
                "policy": key[1],
                "seeds": found.seeds(name),
                "score": f"{scores.mean():.5f}",
                **limits("over_average", over_average.get(key)),
                **limits("over_max_pack", over_max_pack.get(key)),
            }
            for key, scores in own.items()
        ]
    return rows


def main() -> None:
    """Run what is missing, and write the table into docs/aggregation.md, and all numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/aggregations"))
    parser.add_argument("--docs", type=Path, default=Path("docs"))
    parser.add_argument("--seeds", type=int, default=50)
    given = parser.parse_args()
    found = compare_aggregations(given.seeds, given.out, RunOptions(fail_fast=True))
    write_csv(given.docs / "data/aggregations.csv", aggregation_rows(found))
    text = (
        f"{given.seeds} seeds; {STARS_NOTE}, paired t tests against the same policy with the "
        "average, all of a scenario together.\n\n<details><summary>Table</summary>\n\n"
        f"{compact(added_table(found))}\n\n</details>"
    )
    page = given.docs / "aggregation.md"
    print(f"Page: {write_document(page, between(page.read_text('utf-8'), 'measured', text))}")


if __name__ == "__main__":
    main()
