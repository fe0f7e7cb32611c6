"""The benchmark as a page: a matrix as a picture, a compact table per scenario, and CSV."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Rectangle

from agewise.statistics import Contrast
from agewise.studies.racing import LATE
from agewise.tables import Cell, Column, Table
from agewise.tables._words import (
    STARS_NOTE,
    and_list,
    counted,
    points_text,
    sentence_case,
    starred,
)
from agewise.version import __version__
from benchmarks.documents.benchmark_scenarios import (
    AGE_BASED,
    BASELINE,
    EVALUATE_EVERY,
    FRESH,
    FRESH_SEEDS,
    ROUNDS,
    SCENARIOS,
    VERSION,
    is_bound,
)
from benchmarks.documents.pages import compact, limits, short, write_csv, write_document

if TYPE_CHECKING:
    from benchmarks.documents.benchmark import Benchmark, Row


class Placed(Protocol):
    """What a policy did in a scenario, as far as scenarios are counted."""

    @property
    def policy(self) -> str:
        """What it is called."""

    @property
    def leads(self) -> bool:
        """Whether it is a rival that is not shown to be behind the best."""

    @property
    def lead(self) -> Contrast | None:
        """Age-based minus this policy."""


#: Points of accuracy from which on a square of the matrix is no darker.
_DARKEST = 5.0

_PAGE = """\
# Benchmark

![Policies by scenarios: gain over max-pack, and who leads](images/benchmark.svg)

{found}

Version {version}, written by `make study NAME=benchmark` with Agewise {agewise}: {policies} \
policies on {scenarios} scenarios of {rounds} rounds, {seeds}. All policies meet the same places, \
channels, samples and initial models, so differences are paired over the seeds. Each runs in the \
best form that [tuning](tuning.md) found on other seeds, packing included; max-pack, the baseline, \
and "{age_based}, the paper's" are as in the paper. Local steps and aggregation are the presets'; \
[tuned ones](results.md#under-which-aggregation) give other gains. All forms, numbers, intervals \
and p-values: [benchmark.csv](data/benchmark.csv).

- *Score*: test accuracy, the mean over all evaluated rounds (every {every}th).
- *Gain*: score minus that of max-pack, in points.
- *ABS minus it*: score of age-based minus that of the policy: above 0, age-based is ahead.
- **Bold**: not shown to be behind the best policy of the scenario.
- *Uploads*: updates that arrived in a round; *age*: the mean over UEs and rounds; *fairness*: \
Jain's index of how often each UE's updates arrived.

Stars: {stars}; paired t tests. Gains, differences from age-based and differences from the best \
are three families for each scenario, corrected within each (single-step max-t, or Bonferroni \
below 20 seeds). Over all scenarios that makes {families} families with {tests} statements, which \
are not corrected for each other: if nothing differed, about one family in twenty would still \
show something. The best is the best that was observed, so that its lead is a little flattered.

What to know of single policies: FedCS without a deadline is max-pack on a random part of the \
UEs. {fresh} have every UE learn and answer before every round: bounds of {fresh_seeds} seeds, \
not rivals. {late} differ from age-based and max-pack only where updates arrive late, and run \
only there.

{scenarios_text}
"""
_SCENARIO = """\
## {name}

{summary}. {seeds}{lost}. Best: {best} ({score:.1f}%).

{table}
"""


def write_benchmark_page(benchmark: "Benchmark", folder: Path) -> Path:
    """Write the page, its picture and its numbers into the folder of documents."""
    tables = {name: benchmark.table(name) for name in benchmark.measures}
    write_csv(folder / "data/benchmark.csv", _numbers(tables))
    draw_matrix(tables, folder / "images/benchmark.svg")
    counts = benchmark.seeds
    text = _PAGE.format(
        found=_found(tables),
        version=VERSION,
        agewise=__version__,
        policies=len({row.policy for rows in tables.values() for row in rows}),
        scenarios=len(tables),
        rounds=ROUNDS,
        seeds=_seeds(counts),
        age_based=AGE_BASED,
        every=EVALUATE_EVERY,
        stars=STARS_NOTE,
        families=3 * len(tables),
        tests=sum(
            contrast is not None
            for rows in tables.values()
            for row in rows
            for contrast in (row.gain, row.lead, row.behind)
        ),
        fresh=and_list(f"`{name}` with fresh {what}" for name, what in FRESH.items()),
        fresh_seeds=FRESH_SEEDS,
        late=and_list(f"`{name}`" for name in LATE),
        scenarios_text="\n".join(
            _section(name, rows, counts[name]) for name, rows in tables.items()
        ),
    )
    return write_document(folder / "benchmark.md", text)


def _found(tables: "dict[str, list[Row]]") -> str:
    """What the matrix says, in sentences; what speaks against age-based scheduling first."""
    leads = leading(tables)
    rivals = {name: count for name, count in leads.items() if not is_bound(name)}
    order = sorted(rivals, key=lambda name: -rivals[name])
    behind = [name for name, rows in tables.items() if not _row(rows, AGE_BASED).leads]
    ahead = shown_against(tables, "round-robin")
    return (
        f"No policy leads everywhere. Not shown behind the best: "
        f"{and_list(f'{name} in {rivals[name]}' for name in order[:6])} of "
        f"{counted(len(tables), 'scenario')}. "
        + (f"Age-based is shown behind in {and_list(f'`{name}`' for name in behind)}. "
           if behind else "Age-based is nowhere shown behind. ")
        + f"Against round-robin it is shown ahead in {ahead[0]} and behind in {ahead[1]}."
    )  # fmt: skip


def leading(tables: Mapping[str, Sequence[Placed]]) -> dict[str, int]:
    """In how many scenarios a policy is not shown to be behind the best."""
    found: dict[str, int] = {}
    for rows in tables.values():
        for row in rows:
            found[row.policy] = found.get(row.policy, 0) + row.leads
    return found


def shown_against(tables: Mapping[str, Sequence[Placed]], policy: str) -> tuple[int, int]:
    """In how many scenarios age-based is shown to be ahead of a policy, and behind it."""
    verdicts = [
        row.lead.verdict
        for rows in tables.values()
        for row in rows
        if row.policy == policy and row.lead is not None
    ]
    return verdicts.count("better"), verdicts.count("worse")


def _section(name: str, rows: "list[Row]", seeds: int) -> str:
    arrived = min(float(row.measures.arrived.mean()) for row in rows)
    return _SCENARIO.format(
        name=name,
        summary=sentence_case(SCENARIOS[name].summary),
        seeds=counted(seeds, "seed"),
        lost="" if arrived > 0.9995 else f"; down to {100 * arrived:.0f}% of the uploads arrive",
        best=rows[0].policy,
        score=100 * rows[0].score.mean,
        table=compact(_table(rows)),
    )


def _table(rows: "list[Row]") -> Table:
    heads = ("gain", "ABS minus it", "uploads", "age", "fairness")
    columns = [Column("policy", kind="words"), *map(Column, heads)]
    lines: list[list[Cell]] = [
        [
            f"**{row.policy}**" if row.leads else row.policy,
            _starred(row.gain),
            _starred(row.lead),
            f"{row.measures.uploads.mean():.1f}",
            f"{row.measures.age.mean():.1f}",
            f"{row.measures.fairness.mean():.2f}",
        ]
        for row in rows
    ]
    return Table("", columns, lines)


def _starred(contrast: Contrast | None) -> str:
    return "0" if contrast is None else starred(contrast).replace("*", r"\*")


def _numbers(tables: "dict[str, list[Row]]") -> list[dict[str, str | int | float]]:
    """A line per scenario and policy: all that the page rests on."""
    return [
        {
            "scenario": name,
            "policy": row.policy,
            "form": row.form,
            "seeds": row.measures.score.size,
            "score": short(row.score.mean),
            "score_low": short(row.score.low),
            "score_high": short(row.score.high),
            **limits("gain", row.gain),
            **limits("age_based_minus_it", row.lead),
            **limits("best_minus_it", row.behind),
            "leads": int(row.leads),
            "uploads": short(row.measures.uploads.mean()),
            "arrived_share": short(row.measures.arrived.mean()),
            "age": short(row.measures.age.mean()),
            "fairness": short(float(np.nanmean(row.measures.fairness))),
        }
        for name, rows in tables.items()
        for row in rows
    ]


def _seeds(counts: Mapping[str, int]) -> str:
    most = max(counts.values())
    fewer = {name: count for name, count in counts.items() if count < most}
    text = and_list(f"{count} in {name}" for name, count in fewer.items())
    return counted(most, "seed") + (f" ({text}, where runs take longer)" if fewer else "")


def _row(rows: "list[Row]", policy: str) -> "Row":
    return next(row for row in rows if row.policy == policy)


def draw_matrix(tables: "dict[str, list[Row]]", path: Path) -> Path:
    """Draw gains over max-pack by policy and scenario; frames for those not shown behind the best.

    Rows stand in the order of how often a policy leads, bounds that no rival reaches last.
    """
    leads, scenarios = leading(tables), list(tables)
    order = sorted(leads, key=lambda name: (is_bound(name), name in LATE, -leads[name]))
    figure, (axis, bars) = plt.subplots(
        1, 2, figsize=(11.5, 0.33 * len(order) + 1.6), width_ratios=(len(scenarios), 2.2),
        sharey=True, layout="constrained",
    )  # fmt: skip
    colours = plt.get_cmap("BrBG")
    for column, rows in enumerate(tables.values()):
        for row in rows:
            place = order.index(row.policy)
            gain = 0.0 if row.gain is None else 100 * row.gain.mean
            shown = row.gain is not None and row.gain.shown
            shade = 0.5 + 0.5 * float(np.clip(gain / _DARKEST, -1.0, 1.0)) * (1.0 if shown else 0.4)
            axis.add_patch(
                Rectangle((column - 0.5, place - 0.5), 1, 1, facecolor=colours(shade), linewidth=0)
            )
            if row.leads:
                axis.add_patch(
                    Rectangle((column - 0.47, place - 0.44), 0.94, 0.88, fill=False, linewidth=1.5)
                )
            ink = "white" if abs(shade - 0.5) > 0.36 else "black" if shown else "#777777"
            text = "baseline" if row.policy == BASELINE else points_text(gain / 100)
            axis.text(column, place, text, ha="center", va="center", fontsize=7.5, color=ink)
    axis.set_xticks(range(len(scenarios)), scenarios, rotation=35, ha="right", fontsize=8)
    axis.set_yticks(range(len(order)), order, fontsize=8)
    axis.set(xlim=(-0.5, len(scenarios) - 0.5), ylim=(len(order) - 0.5, -0.5))
    axis.set_title(
        "Points of accuracy gained over max-pack. Framed: not shown behind the best of the "
        "scenario.\nPale and grey: not shown to differ from max-pack. Empty: not run there.",
        fontsize=9, loc="left",
    )  # fmt: skip
    bars.barh(range(len(order)), [leads[name] for name in order], color="#444444", height=0.7)
    for place, name in enumerate(order):
        bars.text(leads[name] + 0.2, place, str(leads[name]), va="center", fontsize=8)
    bars.set_title(f"leads in,\nof {len(scenarios)}", fontsize=9)
    bars.axis("off")
    for side in axis.spines.values():
        side.set_visible(False)
    axis.tick_params(length=0)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    return path
