"""Where fair scheduling gains under which aggregation: ``make study NAME=phase``.

Age-based scheduling and round-robin against max-pack, over the data of UEs and the rate threshold,
with every aggregation as tuned for the data. Runs are kept in ``runs/phase`` and resume; the
picture, docs/data/phase.csv and docs/guide.md are written from them.
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from agewise import statistics
from agewise.experiment import LearningCurve, Plan, RunOptions, execute
from agewise.policies import make_policy
from agewise.report._style import ink
from agewise.statistics import Contrast
from agewise.tables import Cell, Column, Table
from agewise.tables._words import and_list, counted, points_text, starred
from benchmarks.documents.benchmark_scenarios import SCENARIOS, tuned
from benchmarks.documents.pages import compact, limits, write_csv, write_document

FAIR: Final = ("age-based", "round-robin")
MAX_PACK: Final = "max-pack"
THRESHOLDS: Final = (1.0, 2.0, 4.0, 6.0)
DATA: Final[dict[str, Any]] = {
    "all alike": "iid",
    "Dirichlet 0.5": {"kind": "dirichlet", "concentration": 0.5},
    "2 digits": {"kind": "shards", "classes_per_ue": 2},
    "1 digit": {"kind": "shards", "classes_per_ue": 1},
}
#: On which scenario the aggregations of a row were tuned: one with the same data, or the row itself
#: at the paper's threshold.
TUNED_ON: Final = {
    "all alike": "all alike",
    "Dirichlet 0.5": "low-rate",
    "2 digits": "paper",
    "1 digit": "one-digit",
}
Regime = tuple[str, float]


@dataclass(frozen=True, eq=False)
class Phase:
    """``scores[aggregation, data, threshold, policy]`` by seed."""

    scores: Mapping[tuple[str, str, float, str], NDArray[np.float64]]
    seeds: int

    @property
    def aggregations(self) -> list[str]:
        """The aggregations, in order."""
        return list(dict.fromkeys(key[0] for key in self.scores))

    def gains(self, aggregation: str, policy: str) -> dict[Regime, Contrast]:
        """What a policy gains over max-pack in every regime, all of them one family of tests."""
        return self.differences(aggregation, policy, MAX_PACK)

    def differences(self, aggregation: str, first: str, second: str) -> dict[Regime, Contrast]:
        """The first policy minus the second in every regime, one family of tests."""
        regimes = [(data, rate) for data in DATA for rate in THRESHOLDS]
        made = [
            statistics.contrast(
                self.scores[aggregation, *regime, first], self.scores[aggregation, *regime, second]
            )
            for regime in regimes
        ]
        return dict(zip(regimes, statistics.correct(made), strict=True))

    def best(self, regime: Regime) -> tuple[str, str]:
        """The aggregation and the policy with the highest mean score."""
        found = {key: float(x.mean()) for key, x in self.scores.items() if key[1:3] == regime}
        winner = max(found, key=lambda key: found[key])
        return winner[0], winner[3]


def measure_phase(seeds: int, folder: Path, options: RunOptions) -> Phase:
    """Run all regimes with all aggregations, on seeds that tuning has not used."""
    base, forms = SCENARIOS["paper"].scenario, tuned("aggregations")
    policies = [*FAIR, MAX_PACK]
    scores = {}
    for aggregation in forms["paper"]:
        changes = {
            (data, rate): {
                **forms[TUNED_ON[data]][aggregation],
                "data.partition": partition,
                "threshold.rate": rate,
            }
            for data, partition in DATA.items()
            for rate in THRESHOLDS
        }
        plan = Plan.of(base, policies, seeds, changes.values())
        result = execute(plan, folder / aggregation.lower(), options)
        for regime, change in changes.items():
            for policy in policies:
                done = result.histories(make_policy(policy), change)
                curve = LearningCurve.of({seed: done[seed] for seed in plan.seeds})
                scores[aggregation, *regime, policy] = curve.score
    return Phase(scores, seeds)


def draw_phase(phase: Phase, path: Path) -> Path:
    """A row for each fair policy, a panel for each aggregation, a square for each regime."""
    names = phase.aggregations
    figure, axes = plt.subplots(
        len(FAIR), len(names), figsize=(2.3 * len(names) + 0.8, 4.6), sharex=True, sharey=True,
        layout="constrained",
    )  # fmt: skip
    found = {(policy, name): phase.gains(name, policy) for policy in FAIR for name in names}
    largest = max(abs(each.mean) for gains in found.values() for each in gains.values())
    for (policy, name), gains in found.items():
        axis = axes[FAIR.index(policy), names.index(name)]
        for (data, rate), gain in gains.items():
            x, y = THRESHOLDS.index(rate), list(DATA).index(data)
            strength = min(1.0, abs(gain.mean) / largest) * (0.85 if gain.shown else 0.25)
            axis.add_patch(
                Rectangle(
                    (x - 0.48, y - 0.48), 0.96, 0.96, linewidth=0, alpha=strength,
                    facecolor=ink("win" if gain.mean > 0 else "lose"),
                )
            )  # fmt: skip
            text = starred(gain)
            axis.text(x, y, text, ha="center", va="center", fontsize=6.5,
                      color="black" if gain.shown else "#777777")  # fmt: skip
        axis.set(xlim=(-0.5, len(THRESHOLDS) - 0.5), ylim=(len(DATA) - 0.5, -0.5))
        axis.set_xticks(range(len(THRESHOLDS)), [f"{rate:g}" for rate in THRESHOLDS])
        axis.set_yticks(range(len(DATA)), list(DATA))
        axis.tick_params(length=0, labelsize=7)
        axis.set_title(f"{policy}, {name}", fontsize=8)
        for side in axis.spines.values():
            side.set_visible(False)
    figure.supxlabel("rate threshold in bit", fontsize=8)
    figure.suptitle(
        f"Points of accuracy over max-pack, {phase.seeds} seeds; stars: shown; grey: not shown",
        fontsize=9,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    return path


def phase_rows(phase: Phase) -> list[dict[str, Any]]:
    """A line for each aggregation, regime and fair policy."""
    return [
        {
            "aggregation": name,
            "data": data,
            "rate": rate,
            "policy": policy,
            "seeds": phase.seeds,
            "score": f"{phase.scores[name, data, rate, policy].mean():.5f}",
            **limits("over_max_pack", gain),
        }
        for name in phase.aggregations
        for policy in FAIR
        for (data, rate), gain in phase.gains(name, policy).items()
    ]


def shown(gains: Mapping[Regime, Contrast]) -> tuple[int, int]:
    """In how many regimes a gain, and a loss, is shown."""
    verdicts = [each.verdict for each in gains.values()]
    return verdicts.count("better"), verdicts.count("worse")


_GUIDE = """\
# Which policy for which setting

Written by `make study NAME=phase` from {runs} runs: age-based scheduling, round-robin and \
max-pack on the paper's cell, over the data of UEs and the rate threshold, with five \
aggregations, each tuned for the data of a row ([tuning](tuning.md)), {seeds}, none of which tuned \
anything. A score is the mean accuracy over all evaluated rounds, as in the \
[benchmark](benchmark.md).

![Gain of fair scheduling over max-pack by aggregation, data and threshold](images/phase.svg)

## What it says

{said}

## What to choose

1. *Look at the data first.* {data} Where the gain is near zero, take what is simplest.
2. *Then at the aggregation.* It often moves the accuracy by more than the policy does: {step}.
3. *Then at the policy.* {policy}
4. *Deadlines and late updates turn rankings over.* Age-based asks who was not heard for long, and \
so who is always late, unless the access point filters them or retries with a back-off; where UEs \
hold updates until they are heard, it hears the stalest. See [results](results.md) and \
[late updates](late-updates.md).

In each square below stand the aggregation and the policy with the highest mean; means that close \
together are not told apart.

{best}

Measure your own setting rather than look it up here: `agewise race SCENARIO` compares policies, \
packings and aggregations on it, and `agewise compare SCENARIO --policy age-based --policy \
max-pack --policy round-robin --seeds 20` these three.

All numbers with intervals and p-values: [phase.csv](data/phase.csv). The 16 regimes of one policy \
and aggregation are corrected together (single-step max-t, or Bonferroni below 20 seeds); there \
are {families} such families, not corrected for each other. One cell, linear models and MNIST: \
other cells are in the [benchmark](benchmark.md), neural models in [results](results.md).
"""


def guide_markdown(phase: Phase) -> str:
    """The page, from the map."""
    lines = []
    for name in phase.aggregations:
        told = []
        for policy in FAIR:
            gains = phase.gains(name, policy)
            better, worse = shown(gains)
            low, high = (f(each.mean for each in gains.values()) for f in (min, max))
            told.append(
                f"{policy} is shown ahead of max-pack in {better} and behind it in {worse} of "
                f"{len(gains)} regimes ({points_text(low)} to {points_text(high)} points)"
            )
        between = shown(phase.differences(name, *FAIR))
        lines.append(
            f"- **{name}**: {'; '.join(told)}. Age-based is shown ahead of round-robin in "
            f"{between[0]} and behind it in {between[1]}."
        )
    regimes = [(data, rate) for data in DATA for rate in THRESHOLDS]
    best = {regime: phase.best(regime) for regime in regimes}
    by_data = {data: [best[data, rate] for rate in THRESHOLDS] for data in DATA}
    columns = [Column("data of a UE", kind="words"), *(Column(f"{x:g} bit") for x in THRESHOLDS)]
    rows: list[list[Cell]] = [
        [data, *(f"{policy}, {name}" for name, policy in found)] for data, found in by_data.items()
    ]
    return _GUIDE.format(
        runs=f"{sum(x.size for x in phase.scores.values()):,}",
        seeds=counted(phase.seeds, "seed"),
        said="\n".join(lines),
        data=by_data_text(phase),
        step=_steps(phase),
        policy=_advice(best),
        best=compact(Table("", columns, rows)),
        families=len(FAIR) * len(phase.aggregations),
    )


def by_data_text(phase: Phase) -> str:
    """Age-based minus max-pack by the data and by the threshold, in the mean of all else."""
    found = [each for name in phase.aggregations for each in phase.gains(name, FAIR[0]).items()]

    def mean(chosen: Any) -> str:
        return points_text(float(np.mean([x.mean for regime, x in found if chosen in regime])))

    data = and_list(f"{mean(name)} with {name}" for name in DATA)
    rates = and_list(f"{mean(rate)} at {rate:g} bit" for rate in THRESHOLDS)
    return (
        f"Over all aggregations and thresholds age-based gains {data} over max-pack, in points; "
        f"over all aggregations and data {rates}."
    )


def _steps(phase: Phase) -> str:
    """What the best aggregation adds to age-based scheduling, by the data."""
    told = []
    for data in ("2 digits", "1 digit"):
        regime = (data, 4.0)
        means = {name: phase.scores[name, *regime, FAIR[0]].mean() for name in phase.aggregations}
        best = max(means, key=lambda name: means[name])
        added = points_text(means[best] - means["average"])
        gain = points_text(phase.gains("average", FAIR[0])[regime].mean)
        told.append(
            f"with {data} and 4 bit {best} adds {added} points over the average to age-based, "
            f"which gains {gain} over max-pack"
        )
    return and_list(told)


def _advice(best: Mapping[Regime, tuple[str, str]]) -> str:
    counts = dict.fromkeys((*FAIR, MAX_PACK), 0)
    for _, policy in best.values():
        counts[policy] += 1
    told = and_list(f"{policy} in {count}" for policy, count in counts.items())
    return f"With the best aggregation for it, the highest mean has {told} of {len(best)} regimes."


def main() -> None:
    """Run what is missing, and write picture, numbers and page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/phase"))
    parser.add_argument("--docs", type=Path, default=Path("docs"))
    parser.add_argument("--seeds", type=int, default=20)
    given = parser.parse_args()
    phase = measure_phase(given.seeds, given.out, RunOptions(fail_fast=True))
    draw_phase(phase, given.docs / "images/phase.svg")
    write_csv(given.docs / "data/phase.csv", phase_rows(phase))
    print(f"Page: {write_document(given.docs / 'guide.md', guide_markdown(phase))}")


if __name__ == "__main__":
    main()
