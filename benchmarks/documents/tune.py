"""Tune every policy once, on seeds that the benchmark does not use: ``make study NAME=tune``.

The score is that of the benchmark: the mean accuracy at its checkpoints, averaged over its
scenarios. Runs are kept in ``runs/tune``, so that what was stopped goes on where it was, and the
outcome is written to ``docs/tuning.md``. The chosen forms are copied by hand into ``TUNED`` of
``benchmark_scenarios`` beside this file, so that a benchmark never depends on a folder.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agewise import statistics
from agewise.experiment import LearningCurve, Plan, execute, product
from agewise.policies import Policy, make_policy, names
from agewise.records import PolicyKey
from agewise.tables._words import (
    and_list,
    estimate_text,
    limits_text,
    points_text,
    variation_text,
)
from benchmarks.documents.benchmark_scenarios import CHECKPOINTS, SCENARIOS, VERSION
from benchmarks.documents.results import write_document

SEEDS = range(1000, 1010)
FOLDER, PAGE = Path("runs/tune"), Path("docs/tuning.md")
GRIDS: dict[str, dict[str, Sequence[Any]]] = {
    "age-based": {"alpha": (0.0, 0.25, 0.5, 0.75, 1.0)},
    "age-reduction": {"alpha": (0.0, 0.25, 0.5, 0.75, 1.0)},
    "age-based:packing=auction": {"alpha": (0.0, 0.25, 0.5, 0.75, 1.0)},
    "alternating": {"interior_share": (0.25, 0.5, 0.75), "inclusive_every": (2, 3)},
    "best-channel-norm": {"candidate_share": (0.25, 0.5, 0.75)},
    "fed-cs": {"request_share": (0.1, 0.25, 0.5, 1.0)},
    "importance-channel": {
        "rho": (0.5, 0.9),
        "draw_share": (0.5, 1.0, 2.0),
        "floor": (0.1, 0.3),
    },
    "markov": {"load": (0.25, 0.5, 0.75, 1.0, 1.5)},
    "max-weight": {"channel": ("unseen", "seen")},
    "oort": {"epsilon": (0.5, 0.9), "least_epsilon": (0.2, 0.5), "cutoff": (0.5, 0.95)},
    "power-of-choice": {"candidate_share": (0.2, 0.4, 0.6, 0.8, 1.0)},
    "proportional-fair": {"of": ("gain", "rate"), "memory_rounds": (10, 30, 100)},
    "version-age": {"alpha": (0.0, 0.25, 0.5, 0.75, 1.0)},
    "whittle": {"channel": ("unseen", "seen")},
}
#: Policies without a parameter that changes whom they prefer.
NOTHING = ("best-channel", "best-norm", "freshest", "learned", "max-pack", "random", "round-robin")

_INTRODUCTION = """\
# Tuning

Written by `make study NAME=tune`. The parameters of every policy of the \
[benchmark](benchmark.md) (version \
{version}) were tried over the grids below on {seeds} seeds that the benchmark does not use \
({first} to {last}), on its {scenarios} scenarios. *Score* is the mean test accuracy after \
{points} rounds, averaged over the scenarios, in percent with its 95% interval over the seeds; \
*over default* the paired difference from the default parameters, in points with its 95% interval. \
The benchmark runs the form with the highest score if its interval over the default excludes 0, \
else the default. The intervals are not corrected for the size of a grid: a rival gets the benefit \
of the doubt.

Nothing to tune: {nothing}. Policies that are packed exactly \
take the parameters of the greedy ones, because their rounds take too long for a grid. Oort's \
`penalty` and `pace` are left out: they act on UEs slower than the deadline, which the access \
point does not offer.
"""


@dataclass(frozen=True, eq=False)
class Tried:
    """One form of a policy, its ``scores[seed]`` and the paired gain over the default form."""

    policy: Policy
    varied: Mapping[str, Any]
    scores: NDArray[np.float64]
    gain: statistics.Contrast


def grid(name: str) -> dict[PolicyKey, tuple[Policy, Mapping[str, Any]]]:
    """The forms of a policy that are tried, with what each of them sets."""
    forms = [(make_policy(name, **varied), varied) for varied in product(GRIDS[name])]
    return {policy.key: (policy, varied) for policy, varied in forms}


def chosen(name: str, tried: Sequence[Tried]) -> Tried:
    """The best form if it is better than the default beyond its interval, else the default."""
    best = max(tried, key=lambda one: float(one.scores.mean()))
    if best.gain.low > 0:
        return best
    default = make_policy(name).key
    return next(one for one in tried if one.policy.key == default)


def run_all(folder: Path) -> dict[PolicyKey, NDArray[np.float64]]:
    """``[seed]``: the score of every form, averaged over the scenarios."""
    policies = [policy for name in GRIDS for policy, _ in grid(name).values()]
    scores: dict[PolicyKey, list[NDArray[np.float64]]] = {one.key: [] for one in policies}
    for name, described in SCENARIOS.items():
        plan = Plan.of(described.scenario, policies, SEEDS)
        result = execute(plan, folder / name)
        for key, of_scenarios in scores.items():
            curve = LearningCurve.of(result.histories(key))
            of_scenarios.append(np.mean([curve.at(point) for point in CHECKPOINTS], axis=0))
    return {key: np.mean(of_scenarios, axis=0) for key, of_scenarios in scores.items()}


def tried_forms(name: str, scores: Mapping[PolicyKey, NDArray[np.float64]]) -> list[Tried]:
    """The forms of one policy with what came of them."""
    default = scores[make_policy(name).key]
    return [
        Tried(policy, varied, scores[key], statistics.contrast(scores[key], default))
        for key, (policy, varied) in grid(name).items()
    ]


def section(name: str, tried: Sequence[Tried]) -> str:
    """The grid of one policy as a table; the form that the benchmark runs is marked."""
    taken, default = chosen(name, tried), make_policy(name).key
    lines = [f"## {name}\n", "| form | score % | over default, points | |", "|---|---:|---:|---|"]
    for one in sorted(tried, key=lambda one: -float(one.scores.mean())):
        gain = f"{points_text(one.gain.mean)} ({limits_text(one.gain)})"
        is_default = one.policy.key == default
        said = "default" if is_default else ""
        said = ", ".join(filter(None, (said, "**in the benchmark**" if one is taken else "")))
        lines.append(
            f"| {variation_text(one.varied)} | {estimate_text(statistics.estimate(one.scores))} | "
            f"{'-' if is_default else gain} | {said} |"
        )
    return "\n".join(lines) + "\n"


def tuned(sections: Mapping[str, Sequence[Tried]]) -> dict[str, str]:
    """The forms other than the default that the benchmark is to run, as they are written."""
    found = {}
    for name, tried in sections.items():
        one = chosen(name, tried)
        if one.policy.key != make_policy(name).key:
            varied = ",".join(f"{k}={v}" for k, v in one.varied.items())
            found[name] = f"{name}{',' if ':' in name else ':'}{varied}"
    return found


def main() -> None:
    """Run what is missing, write the page and print what belongs into ``TUNED``."""
    missing = set(names()) - {*GRIDS, *NOTHING}
    if missing:
        raise SystemExit(
            f"no grid for {and_list(sorted(missing))}: add one to GRIDS, or to NOTHING"
        )
    scores = run_all(FOLDER)
    sections = {name: tried_forms(name, scores) for name in GRIDS}
    introduction = _INTRODUCTION.format(
        version=VERSION,
        seeds=len(SEEDS),
        first=SEEDS[0],
        last=SEEDS[-1],
        scenarios=len(SCENARIOS),
        points=and_list(CHECKPOINTS),
        nothing=and_list(f"`{name}`" for name in NOTHING),
    )
    parts = [introduction, *(section(name, tried) for name, tried in sections.items())]
    write_document(PAGE, "\n".join(parts))
    print(f"Page: {PAGE}\nTUNED = {tuned(sections)}")


if __name__ == "__main__":
    main()
