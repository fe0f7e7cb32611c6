"""Put docs/results.md together from the folders of the studies: ``make study NAME=results``."""

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agewise import Result, explain, reproduce, statistics
from agewise.experiment import LearningCurve, Plan, RunOptions, execute
from agewise.policies import make_policy
from agewise.report import claims_note, draw_figure
from agewise.scenario import Scenario
from agewise.statistics import Contrast
from agewise.studies import Reproduction
from agewise.tables import Cell, Column, Explanation, Table
from agewise.tables._words import (
    STARS_NOTE,
    and_list,
    counted,
    judged_text,
    points_text,
    starred,
)
from benchmarks.documents.aggregations import AggregationTable, compare_aggregations
from benchmarks.documents.benchmark import Benchmark, Row, benchmark
from benchmarks.documents.benchmark_page import leading, shown_against
from benchmarks.documents.benchmark_scenarios import AGE_BASED, BASELINE
from benchmarks.documents.pages import compact, folded, write_document
from benchmarks.documents.phase import FAIR, Phase, by_data_text, measure_phase, shown

#: The seeds of the published figure, and others that no document has used.
PUBLISHED, FRESH = range(20), range(100, 180)
POINTS: Final = (10, 20, 40, 100)
#: Parts of studies that take long, as these left them.
KEPT: Final = Path(__file__).with_name("kept")
LEADS: Final = ((AGE_BASED, BASELINE), ("round-robin", BASELINE), (AGE_BASED, "round-robin"))

_PAGE = """\
# Results

Put together by `make study NAME=results` from the folders of the studies; no number here is \
written by hand. They are measured on the presets, which were fixed beforehand for the reasons in \
[scenarios](scenarios.md).

## In short

{facts}

## The figure

The paper's cell, {rounds} rounds: paired gains in accuracy, in points, at single rounds and in \
the mean over all of them, on the {published} published seeds ({first} to {last}) and on {fresh} \
others ({fresh_first} to {fresh_last}), which no earlier document has used. {family}

{figure}

## The paper's claims

On the published seeds:

{claims}

{note}

## What the gain is made of

Sets of UEs are replayed through the same learner, so that only who is heard changes \
([how](explanation.md)); on the {fresh} other seeds.

![From max-pack to age-based in six steps](images/explanation.svg)

{explained}

{explanation}

## Under which aggregation

Gain over max-pack with the same aggregation, each with tuned steps ([tuning](tuning.md)); \
{aggregation_seeds}. {stars}; single-step max-t over the policies and aggregations of a scenario. \
[Aggregation](aggregation.md) has what each adds.

{aggregations}

Over data and thresholds: [which policy for which setting](guide.md).

## Under which deadline

Updates after the deadline are lost. *Filtered*: the access point offers only UEs that would be in \
time. *Unfiltered*: all of them, and who is always late can be asked for ever; *retry* leaves out \
who failed, for longer each time.

{deadlines}

{kept}
"""


_FACTS = """\
- On the paper's cell round-robin gains {robin} points over max-pack and age-based {paper}, with \
{seeds} seeds: age-based minus round-robin is {lead}. Over {count} scenarios age-based is shown \
ahead of round-robin in {ahead} and behind it in {behind}, ahead of max-pack in {over} and behind \
it in {under}.
- Not shown behind the best, each policy in its best form: {leading} of {count} scenarios.
- Twenty seeds are few: after {points} rounds the published ones have {old} points over max-pack, \
{fresh_seeds} fresh ones {fresh}.
- The server's optimiser decides: on the paper's cell age-based minus max-pack is {by_rule}. With \
one digit per UE it is {digit} with Adam.
- Over thresholds and data age-based is shown ahead of max-pack in {wins} and behind in {losses} \
of {regimes} regimes with the average, in {adam_wins} and {adam_losses} with Adam ({phase_seeds} \
seeds). {by_data}
- Deadlines: age-based minus max-pack is {filtered} where the access point filters, {unfiltered} \
where it does not, and {retry} where it does not and retries.
- Paces, at equal time: {rounds} points in rounds, {hold} where UEs hold updates until they are \
heard, {restart} where they restart (FedBuff's weights).
- With an MLP on MNIST age-based {mlp}; with LeNet-5 on Fashion-MNIST six seeds cannot tell.
- The paper's claims, on the published seeds: {claims}.
"""


@dataclass(frozen=True, eq=False)
class Figure:
    """Gains of the figure's policies at some rounds and in the mean, by the kind of seeds."""

    gains: Mapping[tuple[tuple[str, str], str], Sequence[Contrast]]

    @classmethod
    def of(cls, results: Mapping[str, tuple[Result, Sequence[int]]]) -> "Figure":
        """Of the results by kind of seeds; all gains of one kind are one family."""
        gains = {}
        for kind, (result, seeds) in results.items():
            curves = {}
            for policy in (AGE_BASED, BASELINE, "round-robin"):
                done = result.histories(make_policy(policy))
                curves[policy] = LearningCurve.of({seed: done[seed] for seed in seeds})
            made = [
                statistics.contrast(one, other, list(seeds))
                for first, second in LEADS
                for one, other in [
                    *((curves[first].at(x), curves[second].at(x)) for x in POINTS),
                    (curves[first].score, curves[second].score),
                ]
            ]
            judged, width = statistics.correct(made), len(POINTS) + 1
            for place, pair in enumerate(LEADS):
                gains[pair, kind] = judged[place * width : (place + 1) * width]
        return cls(gains)

    def table(self) -> Table:
        """A row per pair of policies and kind of seeds."""
        heads = [*(f"round {x}" for x in POINTS), "mean"]
        columns = [Column("difference", kind="words"), Column("seeds", kind="words")]
        lines: list[list[Cell]] = [
            [f"{pair[0]} minus {pair[1]}", kind, *(f"{_starred(one)}" for one in gains)]
            for (pair, kind), gains in self.gains.items()
        ]
        return Table("", [*columns, *map(Column, heads)], lines)


@dataclass(frozen=True, eq=False)
class Studies:
    """All that the page is made of."""

    figure: Figure
    reproduction: Reproduction
    explanation: Explanation
    benchmark: Benchmark
    aggregations: AggregationTable
    phase: Phase

    def row(self, scenario: str, policy: str) -> Row:
        """What a policy did in a scenario of the benchmark."""
        return next(row for row in self.benchmark.table(scenario) if row.policy == policy)


def facts(made: Studies) -> str:
    """The findings in sentences; what speaks against age-based scheduling first."""
    tables = {name: made.benchmark.table(name) for name in made.benchmark.measures}
    paper, robin = made.row("paper", AGE_BASED), made.row("paper", "round-robin")
    average = made.phase.gains("average", AGE_BASED)
    adam = made.phase.gains("Adam", AGE_BASED)
    by_rule = {
        name: made.aggregations.over_max_pack("paper")[name, AGE_BASED]
        for name in made.phase.aggregations
    }
    digit = made.aggregations.over_max_pack("one-digit")["Adam", AGE_BASED]
    late = {
        name: made.row(name, AGE_BASED).gain
        for name in ("deadline", "deadline-unfiltered", "deadline-retry")
    }
    gains = {
        kind: [points_text(x.mean) for x in made.figure.gains[LEADS[0], kind][:-1]]
        for kind in ("published", "fresh")
    }
    told = r"is (\S+) points [^+-]*in rounds, (\S+) points [^+-]*hold[^+-]*and (\S+) points"
    paces = re.search(told, _kept("paces"))
    mlp = re.search(r"With average aggregation, age-based scheduling ([^)]*\))", _kept("mlp-mnist"))
    assert paces is not None
    assert mlp is not None
    assert paper.gain is not None
    assert robin.gain is not None
    ahead, behind = shown_against(tables, "round-robin")
    over, under = shown_against(tables, BASELINE)
    (wins, losses), (adam_wins, adam_losses) = shown(average), shown(adam)
    return _FACTS.format(
        robin=points_text(robin.gain.mean),
        paper=points_text(paper.gain.mean),
        seeds=paper.measures.score.size,
        lead=_said(robin.lead),
        count=len(tables),
        ahead=ahead,
        behind=behind,
        over=over,
        under=under,
        leading=and_list(_leading_text(leading(tables))),
        points=and_list(POINTS),
        old=and_list(gains["published"]),
        fresh_seeds=len(FRESH),
        fresh=and_list(gains["fresh"]),
        by_rule=and_list(f"{_said(gain)} with {name}" for name, gain in by_rule.items()),
        digit=_said(digit),
        wins=wins,
        losses=losses,
        regimes=len(average),
        adam_wins=adam_wins,
        adam_losses=adam_losses,
        phase_seeds=made.phase.seeds,
        by_data=by_data_text(made.phase),
        filtered=_said(late["deadline"]),
        unfiltered=_said(late["deadline-unfiltered"]),
        retry=_said(late["deadline-retry"]),
        rounds=paces[1],
        hold=paces[2],
        restart=paces[3],
        mlp=mlp[1],
        claims="; ".join(f"{each.claim}: {each.verdict}" for each in made.reproduction.claims),
    )


def _leading_text(leads: Mapping[str, int]) -> list[str]:
    wanted = sorted(
        (name for name in leads if leads[name] and ", fresh" not in name),
        key=lambda name: -leads[name],
    )[:5]
    chosen = list(dict.fromkeys([*wanted, AGE_BASED, "round-robin", BASELINE]))
    return [f"{name} in {leads[name]}" for name in chosen]


def _said(gain: Contrast | None) -> str:
    if gain is None:
        return "nothing"
    return f"{points_text(gain.mean)} ({judged_text(gain) or 'too few seeds for a test'})"


def _starred(gain: Contrast | None) -> str:
    return "0" if gain is None else starred(gain).replace("*", r"\*")


def aggregation_gains(found: AggregationTable) -> Table:
    """Age-based and round-robin over max-pack: a row per aggregation, a column per scenario."""
    names = list(dict.fromkeys(name for name, _ in next(iter(found.scores.values()))))
    tables = {scenario: found.over_max_pack(scenario) for scenario in found.scores}
    lines: list[list[Cell]] = [
        [name, policy, *(_starred(table[name, policy]) for table in tables.values())]
        for name in names
        for policy in FAIR
    ]
    columns = [Column("aggregation", kind="words"), Column("policy", kind="words")]
    return Table("", [*columns, *map(Column, tables)], lines)


def deadline_table(made: Studies) -> Table:
    """The best policies and those of the paper under each kind of deadline."""
    kinds = {"filtered": "deadline", "unfiltered": "deadline-unfiltered", "retry": "deadline-retry"}
    found = {kind: made.benchmark.table(name) for kind, name in kinds.items()}
    first = [row.policy for rows in found.values() for row in rows[:2]]
    wanted = dict.fromkeys([AGE_BASED, "round-robin", "fed-cs", *first])
    lines: list[list[Cell]] = []
    for policy in wanted:
        rows = [next(row for row in own if row.policy == policy) for own in found.values()]
        lines.append([policy, *(_starred(row.gain) for row in rows)])
    return Table("", [Column("gain over max-pack", kind="words"), *map(Column, kinds)], lines)


def _kept(name: str) -> str:
    return (KEPT / f"{name}.md").read_text(encoding="utf-8")


def kept_parts() -> str:
    """What other studies left, with their tables folded where they are long."""
    return "\n\n".join(folded(_kept(name)) for name in ("gap", "radio", "paces", "mlp-mnist",
                                                       "lenet-fashion"))  # fmt: skip


def results_markdown(made: Studies) -> str:
    """The whole page."""
    rounds = made.reproduction.result.scenario.run.rounds
    claims = [
        f"{number}. **{claim.claim}: {claim.verdict}.** {claim.evidence}."
        for number, claim in enumerate(made.reproduction.claims, start=1)
    ]
    sizes = {name: made.aggregations.seeds(name) for name in made.aggregations.scores}
    return _PAGE.format(
        facts=facts(made),
        rounds=rounds,
        published=len(PUBLISHED),
        first=PUBLISHED[0],
        last=PUBLISHED[-1],
        fresh=len(FRESH),
        fresh_first=FRESH[0],
        fresh_last=FRESH[-1],
        family=f"{STARS_NOTE}; single-step max-t over the differences of one kind of seeds.",
        figure=compact(made.figure.table()),
        claims="\n".join(claims),
        note=claims_note(made.reproduction.axis),
        explained=" ".join(made.explanation.sentences),
        explanation=compact(made.explanation.table()),
        aggregation_seeds=", ".join(f"{n} seeds in {name}" for name, n in sizes.items())
        if len(set(sizes.values())) > 1
        else counted(next(iter(sizes.values())), "seed"),
        stars=STARS_NOTE,
        aggregations=compact(aggregation_gains(made.aggregations)),
        deadlines=compact(deadline_table(made)),
        kept=kept_parts(),
    )


def studies(runs: Path, seeds: int | None, others: Mapping[str, int]) -> Studies:
    """Run what is missing of the studies, and read the others."""
    study = reproduce(None, PUBLISHED, runs / "reproduce-paper", explain=True)
    fresh = Plan.of(Scenario.preset("paper"), [AGE_BASED, BASELINE, "round-robin"], FRESH)
    other = execute(fresh, runs / "reproduce-fresh")
    made = {"published": (study.result, PUBLISHED), "fresh": (other, FRESH)}
    return Studies(
        Figure.of(made),
        study,
        explain(other, AGE_BASED, BASELINE),
        benchmark(seeds=seeds, out=runs / "benchmark"),
        compare_aggregations(others["aggregations"], runs / "aggregations", RunOptions()),
        measure_phase(others["phase"], runs / "phase", RunOptions()),
    )


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--docs", type=Path, default=Path("docs"))
    parser.add_argument("--seeds", type=int, help="at most so many of the benchmark")
    parser.add_argument("--aggregation-seeds", type=int, default=50)
    parser.add_argument("--phase-seeds", type=int, default=20)
    given = parser.parse_args()
    others = {"aggregations": given.aggregation_seeds, "phase": given.phase_seeds}
    made = studies(given.runs, given.seeds, others)
    draw_figure(given.runs / "reproduce-fresh", "waterfall", given.docs / "images/explanation.svg")
    text = results_markdown(made)
    print(f"Page: {write_document(given.docs / 'results.md', text)}")


if __name__ == "__main__":
    main()
