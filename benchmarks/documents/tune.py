"""Tune policies and aggregations on seeds that no comparison uses: ``make study NAME=tune``.

All forms run on a few seeds, the best quarter of them on more; runs are kept in ``runs/tune`` and
resume. The best forms are written to ``tuned.json`` beside this file, which the benchmark reads,
and what was tried to docs/tuning.md and docs/data/tuning.csv.
"""

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agewise import statistics
from agewise.experiment import LearningCurve, Plan, RunOptions, execute, product
from agewise.policies import make_policy, names
from agewise.scenario import Scenario
from agewise.studies.racing import LATE
from agewise.tables import Cell, Column, Table
from agewise.tables._words import and_list, contrast_text, estimate_text, variation_text
from benchmarks.documents import aggregations, phase
from benchmarks.documents.benchmark_scenarios import (
    SCENARIOS,
    TUNED_FILE,
    benchmark_policies,
)
from benchmarks.documents.pages import compact, write_csv, write_document

FEW, ALL = range(1000, 1002), range(1000, 1006)
#: At least so many forms of a policy, and at least this share of them, run on all seeds.
_FEW_FORMS, _QUARTER = 3, 0.25
FOLDER, PAGE = Path("runs/tune"), Path("docs/tuning.md")
_ANY: Final = {"packing": ("greedy", "in-order", "auction")}
_TWO: Final = {"packing": ("greedy", "in-order")}
#: Products of values; about a dozen forms each, fewer where there is no more to choose.
GRIDS: Final[dict[str, Sequence[Mapping[str, Sequence[Any]]]]] = {
    "age-based": (
        {"alpha": (-2.0, -1.0, 0.0, 0.5, 1.0), "packing": ("greedy", "auction")},
        {"packing": ("in-order",)},
    ),
    "age-reduction": ({"alpha": (-2.0, -1.0, 0.0, 0.5, 1.0), "packing": ("greedy", "auction")},),
    "alternating": ({"interior_share": (0.3, 0.6, 0.9), "inclusive_every": (1, 3), **_TWO},),
    "best-channel": (_ANY,),
    "best-channel-norm": ({"candidate_share": (0.15, 0.25, 0.5, 1.0), **_ANY},),
    "best-norm": (_ANY,),
    "fed-cs": ({"request_share": (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.75, 1.0)},),
    "freshest": (_ANY,),
    "importance-channel": (
        {"rho": (0.9, 1.0), "draw_share": (0.5, 1.0, 2.0), "floor": (0.3, 1.0)},
    ),
    "learned": (_ANY,),
    "markov": ({"load": (0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0)},),
    "max-pack": (_ANY,),
    "max-weight": ({"channel": ("unseen", "seen"), **_ANY},),
    "oort": ({"least_epsilon": (0.0, 0.2, 1.0), "cutoff": (0.0, 0.5), **_TWO},),
    "power-of-choice": ({"candidate_share": (0.1, 0.3, 0.6, 1.0), **_ANY},),
    "proportional-fair": ({"of": ("gain", "rate"), "memory_rounds": (1, 2, 5, 20), **_TWO},),
    "random": (_ANY,),
    "version-age": ({"alpha": (-2.0, -1.0, 0.0, 0.5, 1.0), "packing": ("greedy", "auction")},),
    "whittle": ({"channel": ("unseen", "seen"), **_ANY},),
}
#: Policies without a parameter that changes whom they prefer.
NOTHING: Final = ("round-robin",)
#: Ends beyond which a parameter has no value, or none that makes a difference in so many rounds.
LIMITS: Final = {
    "alpha": (None, 1.0),
    "discount": (0.0, None),
    "candidate_share": (None, 1.0),
    "cutoff": (0.0, None),
    "floor": (0.0, 1.0),
    "inclusive_every": (1, None),
    "interior_share": (None, 1.0),
    "least_epsilon": (0.0, 1.0),
    "memory_rounds": (1, 60),
    "request_share": (None, 1.0),
    "rho": (None, 1.0),
    "draw_share": (None, None),
    "load": (None, None),
    "server_step": (None, 100.0),  # then local steps are so small that all gradients are of w
    "step_size": (None, None),
    "whole_step": (None, None),
}


_PAGE = """\
# Tuning

Written by `make study NAME=tune`. Every policy of the [benchmark](benchmark.md) runs in the best \
form found here, shown to be better than the default or not. Packing was tuned like any other \
parameter, and about a dozen forms were tried of each policy, fewer where there is no more to \
choose. All forms ran on {few} seeds that no comparison uses, on all {scenarios} scenarios; the \
best quarter of them, at least {fewest}, and the default ran on {all} ({first} to {last}); forms \
that do the same count once. {late} ran only where updates arrive late: elsewhere they are \
age-based or max-pack.

*Score* is that of the benchmark, the mean accuracy over all evaluated rounds, averaged over the \
scenarios, with its 95% interval over the seeds; *over default* the paired difference on the same \
seeds. The best of several forms on the seeds that chose it looks a little better than it is, and \
with so few seeds a form that is better still can be missed: the benchmark, on other seeds, is \
what counts.

{policies}

Round-robin has nothing to tune; it, FedCS, Markov and importance-channel choose sets of UEs and \
have no packing. Oort's `penalty` and `pace` stay at their defaults, as does age-based's `cap`. \
All forms with their scores: [tuning.csv](data/tuning.csv).

## Aggregations

Each rule was tuned in each scenario by itself, for the mean of {with_policies}, so that no policy \
chooses for the others, on the seeds of the policies. {forms} forms of each were tried, {average} \
of the average: of the average (momentum with β 0) seven server steps and of momentum six, with \
six *whole steps* each (local times server step over 1 − β), of Adam six server steps with six \
local ones, of memory six discounts with six local steps, and of FedVARP, which has nothing else \
to set, {forms} local steps. The least local steps are {least}. A server step of 100 is an end by \
nature: local steps are then so small that all gradients are nearly of the same model. `all \
alike` is a row of the [phase map](guide.md) at 4 bit; the other rows take the forms of {shared}, \
whose data they share.

The best form, and its score in percent: local step × server step (memory: local step, rate of \
the discount). All forms: [tuning-aggregations.csv](data/tuning-aggregations.csv).

{aggregations}
"""


@dataclass(frozen=True, eq=False)
class Tried:
    """One form: what it sets, its ``scores[seed]``, and whether it ran on all seeds."""

    name: str
    varied: Mapping[str, Any]
    scores: NDArray[np.float64]
    is_default: bool = False

    @property
    def mean(self) -> float:
        """The mean score; below all others where a run failed."""
        return float(np.nan_to_num(self.scores.mean(), nan=-1.0))


def forms(name: str) -> list[dict[str, Any]]:
    """The forms of a policy that are tried, by what each sets; the default is among them."""
    found = [dict(varied) for grid in GRIDS[name] for varied in product(grid)]
    if make_policy(name).key not in {make_policy(name, **varied).key for varied in found}:
        found.append({})
    return found


def written(name: str, varied: Mapping[str, Any]) -> str:
    """A form as a text that `make_policy` takes."""
    return str(make_policy(name, **varied))


def scores_of(
    texts: Sequence[str], seeds: Sequence[int], folder: Path, options: RunOptions
) -> dict[str, NDArray[np.float64]]:
    """``[seed]``: the mean score over the scenarios of every form."""
    found: dict[str, list[NDArray[np.float64]]] = {text: [] for text in texts}
    for name, described in SCENARIOS.items():
        scenario = described.scenario
        late = scenario.pace.kind != "rounds"
        run = [text for text in texts if late or make_policy(text).name not in LATE]
        if not run:
            continue
        result = execute(Plan.of(scenario, run, seeds), folder / name, options)
        for text in run:
            done = result.histories(make_policy(text))
            curve = LearningCurve.of({seed: done[seed] for seed in seeds if seed in done})
            by_seed = dict(zip(curve.seeds, curve.score.tolist(), strict=True))
            found[text].append(np.array([by_seed.get(seed, np.nan) for seed in seeds]))
    return {text: np.mean(scores, axis=0) for text, scores in found.items()}


def best_quarter(tried: Sequence[Tried]) -> list[Tried]:
    """The forms that run on more seeds: the best quarter, at least three, and the default.

    Of forms that do the same in every run only one takes a place.
    """
    ordered = sorted(tried, key=lambda one: (-one.mean, not one.is_default))
    different = [
        one
        for place, one in enumerate(ordered)
        if not any(np.array_equal(one.scores, x.scores, equal_nan=True) for x in ordered[:place])
    ]
    count = max(_FEW_FORMS, round(_QUARTER * len(ordered)))
    return different[:count] + [one for one in different[count:] if one.is_default]


def tune_policies(
    folder: Path, options: RunOptions, few: Sequence[int] = FEW, all_seeds: Sequence[int] = ALL
) -> dict[str, list[Tried]]:
    """What was tried of every policy; those on all seeds first, the best of them at the front."""
    texts = {name: {written(name, varied): varied for varied in forms(name)} for name in GRIDS}

    def tried(chosen: Mapping[str, Iterable[str]], seeds: Sequence[int]) -> dict[str, list[Tried]]:
        wanted = [text for own in chosen.values() for text in own]
        scores = scores_of(wanted, seeds, folder, options)
        return {
            name: [
                Tried(name, texts[name][text], scores[text], make_policy(text) == make_policy(name))
                for text in own
            ]
            for name, own in chosen.items()
        }

    first = tried(texts, few)
    leading = {
        name: [written(name, one.varied) for one in best_quarter(own)]
        for name, own in first.items()
    }
    return _ranked(first, tried(leading, all_seeds))


def _ranked(
    first: Mapping[str, Sequence[Tried]], second: Mapping[str, Sequence[Tried]]
) -> dict[str, list[Tried]]:
    """Those of the second stage, the best of them at the front, then the others of the first."""
    found = {}
    for name, own in second.items():
        again = [one.varied for one in own]
        others = [one for one in first[name] if one.varied not in again]
        found[name] = [
            one for part in (own, others) for one in sorted(part, key=lambda one: -one.mean)
        ]
    return found


def tuned_on() -> dict[str, Scenario]:
    """The scenarios that each aggregation is tuned on, one by one, by what they are called."""
    paper = SCENARIOS["paper"].scenario
    rows = {
        data: paper.with_(**{"data.partition": phase.DATA[data]})
        for data, name in phase.TUNED_ON.items()
        if name not in SCENARIOS
    }
    return {name: SCENARIOS[name].scenario for name in aggregations.CHOSEN} | rows


def tune_aggregations(
    folder: Path, options: RunOptions, few: Sequence[int] = FEW, all_seeds: Sequence[int] = ALL
) -> dict[str, dict[str, list[Tried]]]:
    """What was tried of every aggregation in each scenario, ordered as for policies."""
    found = {}
    for name, scenario in tuned_on().items():
        own = folder / f"{name}-aggregations"
        first = _aggregations_tried(scenario, aggregations.FORMS, few, own, options)
        leading = {
            aggregation: [one.varied for one in best_quarter(tried)]
            for aggregation, tried in first.items()
        }
        found[name] = _ranked(
            first, _aggregations_tried(scenario, leading, all_seeds, own, options)
        )
    return found


def _aggregations_tried(
    scenario: Scenario,
    forms: Mapping[str, Sequence[aggregations.Form]],
    seeds: Sequence[int],
    folder: Path,
    options: RunOptions,
) -> dict[str, list[Tried]]:
    """The forms with their scores by policy and seed, one behind the other."""
    policies = {name: benchmark_policies("paper")[name] for name in aggregations.TUNED_WITH}
    every = [(name, form) for name, own in forms.items() for form in own]
    scores = aggregations.measure(
        scenario, policies, [form for _, form in every], seeds, folder, options
    )
    found: dict[str, list[Tried]] = {name: [] for name in forms}
    for number, (name, form) in enumerate(every):
        by_policy = [scores[number, policy] for policy in policies]
        found[name].append(Tried(name, form, np.concatenate(by_policy)))
    return found


def edges(best: Mapping[str, Any], tried: Sequence[Mapping[str, Any]]) -> list[str]:
    """The numbers of the best form at an edge of those tried that is not an end by nature."""
    found = []
    for key, value in best.items():
        values = {each[key] for each in tried if isinstance(each.get(key), float | int)}
        at_edge = len(values) > 2 and value in (min(values), max(values))
        if at_edge and value not in LIMITS[key]:
            found.append(f"{key}={value:g}")
    return found


def policy_table(tried: Mapping[str, Sequence[Tried]]) -> Table:
    """The best form of every policy, and what it gains over the default."""
    lines: list[list[Cell]] = []
    for name, own in sorted(tried.items(), key=lambda each: -each[1][0].mean):
        best, default = own[0], next(one for one in own if one.is_default)
        gain = "default" if best is default else contrast_text(
            statistics.contrast(best.scores, default.scores)
        )  # fmt: skip
        lines.append(
            [
                name,
                len(own),
                variation_text(best.varied) or "the default",
                estimate_text(statistics.estimate(best.scores)),
                gain,
            ]
        )
    heads = ["policy", "best form", "score %", "over default, points"]
    columns = [Column(head, kind="words") for head in heads]
    columns.insert(1, Column("tried"))
    return Table("", columns, lines)


def policies_markdown(tried: Mapping[str, Sequence[Tried]]) -> str:
    """The best forms as a table, and which of their numbers are at the edge of a grid."""
    at_edge = [
        f"{name} {one}"
        for name, own in tried.items()
        for one in edges(own[0].varied, [each.varied for each in own])
    ]
    return f"{compact(policy_table(tried))}\n\n{_edges_text(at_edge)}\n"


def _edges_text(at_edge: Sequence[str]) -> str:
    if at_edge:
        return f"At the edge of their grid: {and_list(at_edge)}."
    return "No best value is at the edge of its grid, but for ends by nature."


def aggregation_table(found: Mapping[str, Mapping[str, Sequence[Tried]]]) -> Table:
    """The best form of every aggregation in each scenario: its steps or discount, and its score."""
    lines: list[list[Cell]] = [
        [scenario, *(_steps_text(tried[0]) for tried in own.values())]
        for scenario, own in found.items()
    ]
    names = next(iter(found.values()))
    return Table("", [Column("scenario", kind="words"), *map(Column, names)], lines)


def _steps_text(best: Tried) -> str:
    rule = best.varied["learn.aggregation"]
    steps = f"{best.varied['learn.step_size']:g}"
    if "server_step" in rule:
        steps += f" × {rule['server_step']:g}"
    if "discount" in rule:
        steps += f", {rule['discount'].get('rate', 'none')}"
    return f"{steps}: {100 * best.mean:.1f}"


def aggregations_markdown(found: Mapping[str, Mapping[str, Sequence[Tried]]]) -> str:
    """The best forms as a table, and which of their numbers are at the edge of a grid."""
    grids = {name: [*map(aggregations.numbers, own)] for name, own in aggregations.FORMS.items()}
    at_edge = [
        f"{name} {one} in `{scenario}`"
        for scenario, own in found.items()
        for name, tried in own.items()
        for one in edges(aggregations.numbers(tried[0].varied), grids[name])
    ]
    return f"{compact(aggregation_table(found))}\n\n{_edges_text(at_edge)}\n"


def aggregation_rows(found: Mapping[str, Mapping[str, Sequence[Tried]]]) -> list[dict[str, Any]]:
    """A line for each scenario, aggregation and form."""
    return [
        {
            "scenario": scenario,
            "aggregation": name,
            "form": variation_text(one.varied),
            "seeds": one.scores.size // len(aggregations.TUNED_WITH),
            "score": f"{one.mean:.5f}",
        }
        for scenario, own in found.items()
        for name, tried in own.items()
        for one in tried
    ]


def main() -> None:
    """Run what is missing, write the best forms, the page and the table of all forms."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=FOLDER)
    parser.add_argument("--only", choices=("policies", "aggregations"))
    given = parser.parse_args()
    missing = set(names()) - {*GRIDS, *NOTHING}
    if missing:
        raise SystemExit(
            f"no grid for {and_list(sorted(missing))}: add one to GRIDS, or to NOTHING"
        )
    options = RunOptions()
    kept = json.loads(TUNED_FILE.read_text(encoding="utf-8"))
    if given.only != "aggregations":
        policies = tune_policies(given.out, options)
        kept["policies"] = {
            name: written(name, own[0].varied) for name, own in policies.items()
            if not own[0].is_default
        }  # fmt: skip
        write_document(TUNED_FILE, json.dumps(kept, indent=2) + "\n")
        rows = [
            {
                "policy": name,
                "form": written(name, one.varied),
                "seeds": one.scores.size,
                "score": f"{one.mean:.5f}",
            }
            for name, own in policies.items()
            for one in own
        ]
        write_csv(Path("docs/data/tuning.csv"), rows)
        write_document(given.out / "policies.md", policies_markdown(policies))
    if given.only != "policies":
        found = tune_aggregations(given.out, options)
        kept["aggregations"] = {
            scenario: {name: tried[0].varied for name, tried in own.items()}
            for scenario, own in found.items()
        }
        write_document(TUNED_FILE, json.dumps(kept, indent=2) + "\n")
        write_csv(Path("docs/data/tuning-aggregations.csv"), aggregation_rows(found))
        write_document(given.out / "aggregations.md", aggregations_markdown(found))
    parts = [given.out / f"{name}.md" for name in ("policies", "aggregations")]
    if all(part.exists() for part in parts):
        policies_text, aggregations_text = (part.read_text(encoding="utf-8") for part in parts)
        text = _PAGE.format(
            few=len(FEW),
            scenarios=len(SCENARIOS),
            fewest=_FEW_FORMS,
            all=len(ALL),
            first=ALL[0],
            last=ALL[-1],
            late=and_list(f"`{name}`" for name in LATE),
            policies=policies_text.strip(),
            with_policies=and_list(aggregations.TUNED_WITH),
            forms=len(aggregations.FORMS["FedVARP"]),
            average=len(aggregations.FORMS["average"]),
            least=and_list(
                f"{min(form['learn.step_size'] for form in own):g} ({name})"
                for name, own in aggregations.FORMS.items()
            ),
            shared=and_list(f"`{x}`" for x in phase.TUNED_ON.values() if x in SCENARIOS),
            aggregations=aggregations_text.strip(),
        )
        print(f"Page: {write_document(PAGE, text)}")


if __name__ == "__main__":
    main()
