"""Put docs/results.md together from what the studies left: ``make study NAME=results``.

The paper's figure is run, or read from ``runs/reproduce-*``; all else is in docs/data and kept/.
"What we found" in the README is written too.
"""

import argparse
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from agewise import Result, explain, reproduce, statistics
from agewise.experiment import LearningCurve, Plan, execute
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
    percent_text,
    points_text,
    starred,
)
from benchmarks.documents.benchmark_page import leading, shown_against
from benchmarks.documents.benchmark_scenarios import AGE_BASED, BASELINE
from benchmarks.documents.pages import (
    between,
    compact,
    contrast_in,
    folded,
    read_csv,
    write_document,
)
from benchmarks.documents.phase import FAIR, shown

#: The seeds of the published figure, and others that no document has used.
PUBLISHED, FRESH = range(20), range(100, 180)
POINTS: Final = (10, 20, 40, 100)
#: Parts of studies that take long, as these left them.
KEPT: Final = Path(__file__).with_name("kept")
TUNED: Final = f"{BASELINE}, tuned"
LEADS: Final = ((AGE_BASED, BASELINE), ("round-robin", BASELINE), (AGE_BASED, "round-robin"))

_PAGE = """\
# Results

Put together by `make study NAME=results` from what the studies left; no number here is written \
by hand. They are measured on the presets, which were fixed beforehand for the reasons in \
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

Gain over max-pack with the same aggregation, each tuned in every scenario ([tuning](tuning.md)); \
{aggregation_seeds}. {stars}; single-step max-t over the policies and aggregations of a scenario. \
[Aggregation](aggregation.md) has what each adds. Steps decide gains too: in the \
[benchmark](benchmark.md), with the average and the presets' local step of 0.01, age-based gains \
{preset} in `one-digit`, and {tuned} here.

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
- On the paper's cell age-based gains {tuned} points over max-pack in its best form and {paper} \
over the paper's, round-robin {robin} over the paper's, with {seeds} seeds: age-based minus \
round-robin is {lead}.
- In the paper's forms age-based gains {published} points over all rounds on the \
{published_seeds} published seeds and {fresh} on {fresh_seeds} fresh ones; after {points} rounds \
{old} on the published and {new} on the fresh.
- Which UEs are heard, not how old they are, makes most of the gain: as many uploads as age-based \
has, drawn evenly from all UEs, reach {even}%, age-based {aged}%. Its unevenness ({uneven}) and \
its regular turns ({turns}) together are {net}. Evenness among those heard ({evenness}) and \
coverage ({coverage}) are what drawing at random gives too; that it has fewer uploads costs \
{uploads}.
- Over {count} scenarios, each policy in its best form, age-based is shown ahead of max-pack in \
{over} and behind it in {under} (the paper's max-pack: {plain_over} and {plain_under}), ahead of \
round-robin in {ahead} and behind it in {behind}, ahead of oort in {oort_ahead} and behind it in \
{oort_behind}. The mean over scenarios is {oort_mean}% for oort and {own_mean}% for age-based.
- Not shown behind the best: {leading} of {count} scenarios.
- The server's optimiser changes the gain: on the paper's cell age-based minus the paper's \
max-pack is {by_rule}. With one digit per UE it is {digit}.
- With one digit per UE memory adds {memory} to age-based, which with the average gains {beside} \
over the paper's max-pack; on the paper's cell memory adds {paper_memory}, where it gains \
{average_mean}.
- Over thresholds and data age-based is shown ahead of max-pack in {wins} and behind in {losses} \
of {regimes} regimes with the average, in {adam_wins} and {adam_losses} with Adam ({phase_seeds} \
seeds); [by data and threshold](guide.md).
- Deadlines: age-based minus max-pack in its best form is {filtered} where the access point \
filters, {unfiltered} where it does not, and {retry} where it does not and retries.
- Paces, at equal time: age-based minus the paper's max-pack is {rounds} points in rounds, {hold} \
where UEs hold updates until they are heard, {restart} where they restart (FedBuff's weights).
- With an MLP on MNIST age-based {mlp}; with LeNet-5 on Fashion-MNIST six seeds cannot tell.
- The paper's claims, on the published seeds: {claims}.
"""

_README = """\
- On the paper's cell age-based gains {tuned} points over max-pack at its best, {paper} over the \
paper's; round-robin {robin} ({seeds} seeds). Untuned: published seeds {published}, fresh {fresh}.
- Hardly by age: as many uploads drawn at random reach {even}%, age-based {aged}%.
- In {count} scenarios it is ahead of max-pack in {over}, behind in {under}; of Oort in \
{oort_ahead} and {oort_behind} (mean {own_mean}%, Oort's {oort_mean}%).
- Deadlines: {filtered_mean} filtered, {unfiltered_mean} unfiltered. Late updates: {hold} where \
phones hold them, {restart} where they restart.
- In [{regimes} regimes](docs/guide.md) it is ahead in {wins}, behind in {losses} with the \
average, {adam_wins} and {adam_losses} with Adam. With one digit each, memory adds {memory}, \
age-based {beside}.
- Claims: higher accuracy {higher}, diversity within a round as cause {diversity}, coverage as \
contribution {covers}. With LeNet-5 six seeds cannot tell.

[Results](docs/results.md), [benchmark](docs/benchmark.md).
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


@dataclass(frozen=True)
class Standing:
    """What a policy did in a scenario of the benchmark."""

    policy: str
    seeds: int
    score: float
    gain: Contrast | None
    lead: Contrast | None
    leads: bool

    @classmethod
    def of(cls, row: Mapping[str, str]) -> "Standing":
        """Of a row of benchmark.csv."""
        gain, lead = contrast_in(row, "gain"), contrast_in(row, "age_based_minus_it")
        return cls(
            row["policy"], int(row["seeds"]), float(row["score"]), gain, lead, row["leads"] == "1"
        )


@dataclass(frozen=True, eq=False)
class Studies:
    """All that the page is made of; the last three as rows of their CSV files."""

    figure: Figure
    reproduction: Reproduction
    explanation: Explanation
    benchmark: Sequence[Mapping[str, str]]
    aggregations: Sequence[Mapping[str, str]]
    phase: Sequence[Mapping[str, str]]

    @functools.cached_property
    def tables(self) -> dict[str, list[Standing]]:
        """By scenario of the benchmark, the highest score first."""
        found: dict[str, list[Standing]] = {}
        for row in self.benchmark:
            found.setdefault(row["scenario"], []).append(Standing.of(row))
        return found

    def standing(self, scenario: str, policy: str) -> Standing:
        """What a policy did in a scenario of the benchmark."""
        return next(one for one in self.tables[scenario] if one.policy == policy)

    def best_max_pack(self, scenario: str) -> Standing:
        """Max-pack in the form, the paper's or the tuned, with the higher score."""
        return next(one for one in self.tables[scenario] if one.policy in (BASELINE, TUNED))

    def mean(self, policy: str) -> float:
        """The mean score of a policy over the scenarios."""
        return float(np.mean([self.standing(name, policy).score for name in self.tables]))

    def added(self, scenario: str, aggregation: str, policy: str, over: str) -> Contrast | None:
        """What a policy gains over max-pack, or its aggregation over the average."""
        row = next(
            row
            for row in self.aggregations
            if (row["scenario"], row["aggregation"], row["policy"])
            == (scenario, aggregation, policy)
        )
        return contrast_in(row, f"over_{over}")

    def regimes(self, aggregation: str) -> dict[tuple[str, float], Contrast]:
        """What age-based gains over max-pack, by data and threshold."""
        return {
            (row["data"], float(row["rate"])): gain
            for row in self.phase
            if (row["aggregation"], row["policy"]) == (aggregation, AGE_BASED)
            and (gain := contrast_in(row, "over_max_pack"))
        }


def _in_order(rows: Sequence[Mapping[str, str]], column: str) -> list[str]:
    return list(dict.fromkeys(row[column] for row in rows))


def facts(made: Studies) -> str:
    """The findings in sentences; what speaks against age-based scheduling first."""
    return _FACTS.format(**_found(made))


def readme_part(made: Studies) -> str:
    """The findings in few words, for the README."""
    return _README.format(**_found(made))


def _found(made: Studies) -> dict[str, object]:
    """All figures of both texts."""
    paper, robin = made.standing("paper", AGE_BASED), made.standing("paper", "round-robin")
    tuned = made.best_max_pack("paper")
    better = {name: [replace(made.best_max_pack(name), policy=TUNED)] for name in made.tables}
    average, adam = made.regimes("average"), made.regimes("Adam")
    by_rule = {
        name: made.added("paper", name, AGE_BASED, "max_pack")
        for name in _in_order(made.aggregations, "aggregation")
    }
    late = {
        kind: made.best_max_pack(name).lead
        for kind, name in {
            "filtered": "deadline",
            "unfiltered": "deadline-unfiltered",
            "retry": "deadline-retry",
        }.items()
    }
    gains = {
        kind: [points_text(x.mean) for x in made.figure.gains[LEADS[0], kind]]
        for kind in ("published", "fresh")
    }
    scores, steps = made.explanation.scores, made.explanation.steps
    told = r"is (\S+) points [^+-]*in rounds, (\S+) points [^+-]*hold[^+-]*and (\S+) points"
    paces = re.search(told, _kept("paces"))
    mlp = re.search(r"With average aggregation, age-based scheduling ([^)]*\))", _kept("mlp-mnist"))
    assert paces is not None
    assert mlp is not None
    claims = made.reproduction.claims
    found: dict[str, object] = {
        "tuned": _points(tuned.lead),
        "paper": _points(paper.gain),
        "robin": _points(robin.gain),
        "seeds": paper.seeds,
        "lead": _said(robin.lead),
        "published_seeds": len(PUBLISHED),
        "published": gains["published"][-1],
        "fresh_seeds": len(FRESH),
        "fresh": gains["fresh"][-1],
        "points": and_list(POINTS),
        "old": and_list(gains["published"][:-1]),
        "new": and_list(gains["fresh"][:-1]),
        "even": percent_text(scores[:, 4].mean()),
        "aged": percent_text(scores[:, 6].mean()),
        "net": _said(statistics.contrast(scores[:, 6], scores[:, 4])),
        "count": len(made.tables),
        "oort_mean": percent_text(made.mean("oort")),
        "own_mean": percent_text(made.mean(AGE_BASED)),
        "leading": and_list(_leading_text(leading(made.tables))),
        "by_rule": and_list(f"{_said(gain)} with {name}" for name, gain in by_rule.items()),
        "average_mean": _points(by_rule["average"]),
        "memory": _points(made.added("one-digit", "memory", AGE_BASED, "average")),
        "beside": _points(made.added("one-digit", "average", AGE_BASED, "max_pack")),
        "digit": and_list(
            f"{_said(made.added('one-digit', name, AGE_BASED, 'max_pack'))} with {name}"
            for name in ("Adam", "average")
        ),
        "paper_memory": _points(made.added("paper", "memory", AGE_BASED, "average")),
        "regimes": len(average),
        "phase_seeds": made.phase[0]["seeds"],
        "rounds": paces[1],
        "hold": paces[2],
        "restart": paces[3],
        "mlp": mlp[1],
        "claims": "; ".join(f"{each.claim}: {each.verdict}" for each in claims),
        "higher": claims[0].verdict,
        "diversity": claims[2].verdict,
        "covers": claims[3].verdict,
    }
    names = ("order", "evenness", "coverage", "uploads", "uneven", "turns")
    found |= {name: _points(step) for name, step in zip(names, steps, strict=True)}
    found |= {kind: _said(gain) for kind, gain in late.items()}
    found |= {f"{kind}_mean": _points(gain) for kind, gain in late.items()}
    for (wins, losses), pair in {
        ("over", "under"): shown_against(better, TUNED),
        ("plain_over", "plain_under"): shown_against(made.tables, BASELINE),
        ("ahead", "behind"): shown_against(made.tables, "round-robin"),
        ("oort_ahead", "oort_behind"): shown_against(made.tables, "oort"),
        ("wins", "losses"): shown(average),
        ("adam_wins", "adam_losses"): shown(adam),
    }.items():
        found[wins], found[losses] = pair
    return found


def _leading_text(leads: Mapping[str, int]) -> list[str]:
    wanted = sorted(
        (name for name in leads if leads[name] and ", fresh" not in name),
        key=lambda name: -leads[name],
    )[:5]
    chosen = list(dict.fromkeys([*wanted, AGE_BASED, "round-robin", BASELINE]))
    return [f"{name} in {leads[name]}" for name in chosen]


def _points(gain: Contrast | None) -> str:
    return "nothing" if gain is None else points_text(gain.mean)


def _said(gain: Contrast | None) -> str:
    if gain is None:
        return "nothing"
    return f"{points_text(gain.mean)} ({judged_text(gain) or 'too few seeds for a test'})"


def _starred(gain: Contrast | None) -> str:
    return "0" if gain is None else starred(gain).replace("*", r"\*")


def aggregation_gains(made: Studies) -> Table:
    """Age-based and round-robin over max-pack: a row per aggregation, a column per scenario."""
    scenarios = _in_order(made.aggregations, "scenario")
    lines: list[list[Cell]] = [
        [
            name,
            policy,
            *(_starred(made.added(scenario, name, policy, "max_pack")) for scenario in scenarios),
        ]
        for name in _in_order(made.aggregations, "aggregation")
        for policy in FAIR
    ]
    columns = [Column("aggregation", kind="words"), Column("policy", kind="words")]
    return Table("", [*columns, *map(Column, scenarios)], lines)


def deadline_table(made: Studies) -> Table:
    """The best policies, tuned max-pack and those of the paper under each kind of deadline."""
    kinds = {"filtered": "deadline", "unfiltered": "deadline-unfiltered", "retry": "deadline-retry"}
    first = [one.policy for name in kinds.values() for one in made.tables[name][:2]]
    wanted = dict.fromkeys([AGE_BASED, TUNED, "round-robin", "fed-cs", *first])
    lines: list[list[Cell]] = [
        [policy, *(_starred(made.standing(name, policy).gain) for name in kinds.values())]
        for policy in wanted
    ]
    return Table(
        "", [Column("gain over the paper's max-pack", kind="words"), *map(Column, kinds)], lines
    )


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
    sizes = {row["scenario"]: int(row["seeds"]) for row in made.aggregations}
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
        preset=_said(made.standing("one-digit", AGE_BASED).gain),
        tuned=_said(made.added("one-digit", "average", AGE_BASED, "max_pack")),
        aggregations=compact(aggregation_gains(made)),
        deadlines=compact(deadline_table(made)),
        kept=kept_parts(),
    )


def studies(runs: Path, data: Path) -> Studies:
    """Run what is missing of the paper's figure, and read what the other studies wrote."""
    study = reproduce(None, PUBLISHED, runs / "reproduce-paper", explain=True)
    fresh = Plan.of(Scenario.preset("paper"), [AGE_BASED, BASELINE, "round-robin"], FRESH)
    other = execute(fresh, runs / "reproduce-fresh")
    made = {"published": (study.result, PUBLISHED), "fresh": (other, FRESH)}
    names = ("benchmark", "aggregations", "phase")
    rows = [read_csv(data / f"{name}.csv") for name in names]
    return Studies(Figure.of(made), study, explain(other, AGE_BASED, BASELINE), *rows)


def main() -> None:
    """Write the page, and the README's part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--docs", type=Path, default=Path("docs"))
    given = parser.parse_args()
    made = studies(given.runs, given.docs / "data")
    draw_figure(given.runs / "reproduce-fresh", "waterfall", given.docs / "images/explanation.svg")
    print(f"Page: {write_document(given.docs / 'results.md', results_markdown(made))}")
    readme = given.docs.parent / "README.md"
    text = between(readme.read_text("utf-8"), "found", readme_part(made))
    print(f"Part: {write_document(readme, text)}")


if __name__ == "__main__":
    main()
