"""How good the answers of a race are: ``make study NAME=race``.

On ten scenarios that no other document uses a race answers first; then every form runs on twenty
seeds that the race has not seen, and its answer is judged beside the best of these. The folders
``runs/race-NUMBER`` and ``runs/race-NUMBER-all`` resume; the table in docs/race.md is written.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

import agewise
from agewise.experiment import Plan, RunOptions, execute
from agewise.files import write_whole
from agewise.scenario import Scenario
from agewise.statistics import contrast, correct
from agewise.studies.racing import _FIELD, _packed, _score
from agewise.tables import Cell, Column, Table
from agewise.tables._words import contrast_text, counted

POLICIES: Final = (
    "age-based", "max-pack", "round-robin", "whittle", "power-of-choice", "best-norm", "oort",
    "random",
)  # fmt: skip
AGGREGATIONS: Final[tuple[Any, ...]] = (
    "average",
    {"kind": "memory", "discount": {"kind": "fixed", "rate": 0.1}},
)
#: Of the full comparison: neither those of a race nor those of its last comparison.
SEEDS: Final = range(2000, 2020)
_SNR, _SHARDS = "channel.link.edge_snr_db", "data.partition.classes_per_ue"
_DIRICHLET: Final = {"kind": "dirichlet", "concentration": 0.3}
#: By name what is changed of the preset ``paper``; each run has 40 rounds.
SCENARIOS: Final[Mapping[str, dict[str, Any]]] = {
    "60 UEs on 10 subchannels": {"cell.ues": 60, "cell.subchannels": 10},
    "150 UEs, R_s = 3": {"cell.ues": 150, "threshold.rate": 3.0},
    "60 UEs, R_s = 5": {"cell.ues": 60, "threshold.rate": 5.0},
    "60 UEs of one class": {"cell.ues": 60, _SHARDS: 1, "threshold.rate": 3.0},
    "50 UEs of three classes": {"cell.ues": 50, _SHARDS: 3, "cell.subchannels": 8},
    "Dirichlet 0.3, 80 UEs": {"cell.ues": 80, "data.partition": _DIRICHLET},
    "5 dB at the edge": {"cell.ues": 80, _SNR: 5.0},
    "15 dB at the edge, R_s = 5": {"cell.ues": 80, _SNR: 15.0, "threshold.rate": 5.0},
    "20 local steps": {"cell.ues": 80, "learn.local_steps": 20, "learn.step_size": 0.02},
    "40 UEs on 6 subchannels, one class": {"cell.ues": 40, "cell.subchannels": 6, _SHARDS: 1},
}
PAGE: Final = Path("docs/race.md")


class Judged(NamedTuple):
    """The answer of a race, the best of the full comparison, and what the best gains over it."""

    answer: str
    best: str
    behind: agewise.statistics.Contrast
    place: int
    runs: int

    @property
    def right(self) -> bool:
        """Whether the best is not shown to be better."""
        return self.behind.verdict != "better"


def judge(number: int, changes: Mapping[str, Any], **options: Any) -> Judged:
    """Race on a scenario, then run everything on other seeds."""
    base = Scenario.preset("paper").with_(**{"run.rounds": 40, "run.evaluate_every": 2}, **changes)
    folder = Path(f"runs/race-{number}")
    race = agewise.race(base, POLICIES, folder, aggregations=AGGREGATIONS, **options)
    forms = [policy for each in POLICIES for policy in _packed(each)]
    variations = race.result.variations
    plan = Plan.of(base, forms, SEEDS, variations)
    full = execute(plan, f"{folder}-all", RunOptions.of(options))
    scores = {}
    for variation in variations:
        for key in plan.keys:
            runs = full.histories(key, variation)
            kind = variation[_FIELD]["kind"]
            scores[f"{key} with {kind}"] = [_score(runs[seed].accuracy) for seed in SEEDS]
    order = sorted(scores, key=lambda name: -float(np.mean(scores[name])))
    answer, best = str(race.table.winner), order[0]
    gains = correct([contrast(scores[best], scores[name]) for name in order])
    place = order.index(answer)
    return Judged(answer, best, gains[place], place + 1, race.table.runs)


def markdown(found: Mapping[str, Judged]) -> str:
    """The table, and the rate above it."""
    right = sum(each.right for each in found.values())
    lost = [each.behind.mean for each in found.values()]
    first = next(iter(found.values()))
    forms = sum(len(_packed(policy)) for policy in POLICIES) * len(AGGREGATIONS)
    text = (
        f"**In {right} of {len(found)} scenarios the answer is not shown to be behind the best** "
        f"of {forms} forms on {counted(len(SEEDS), 'other seed')}; on average it loses "
        f"{100 * float(np.mean(lost)):.2f} points to it, at most {100 * max(lost):.2f}. A race "
        f"took at most {first.runs:,} runs, the full comparison {forms * len(SEEDS):,}."
    )
    columns = [
        Column("scenario", kind="words"),
        Column("answer", kind="words"),
        Column("its place"),
        Column("best of all", kind="words"),
        Column("best minus answer", kind="words"),
    ]
    rows: list[list[Cell]] = [
        [name, one.answer, one.place, one.best, "" if one.place == 1 else contrast_text(one.behind)]
        for name, one in found.items()
    ]
    return f"{text}\n\n{Table('', columns, rows).to_markdown()}"


def main() -> None:
    """Run what is missing and write the table."""
    found = {
        name: judge(number, changes, fail_fast=True)
        for number, (name, changes) in enumerate(SCENARIOS.items(), start=1)
    }
    pattern = r"(<!-- answers -->\n).*?(<!-- end -->)"
    page = PAGE.read_text("utf-8")
    made = re.sub(pattern, rf"\g<1>\n{markdown(found)}\n\g<2>", page, flags=re.DOTALL)
    write_whole(PAGE, made.encode())


if __name__ == "__main__":
    main()
