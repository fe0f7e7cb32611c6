"""The benchmark as a Markdown page, and its headline."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agewise.statistics import Estimate
from agewise.tables import Cell, Column, Table
from agewise.tables._words import (
    NOTHING,
    STARS_NOTE,
    and_list,
    contrast_text,
    estimate_text,
    family_text,
    limits_text,
    sentence_case,
    short_text,
    starred,
)
from agewise.version import __version__
from benchmarks.documents.benchmark_scenarios import (
    CHECKPOINTS,
    EVALUATE_EVERY,
    SCENARIOS,
    VERSION,
    is_exact,
)
from benchmarks.documents.results import write_document

if TYPE_CHECKING:
    from benchmarks.documents.aggregations import AggregationTable
    from benchmarks.documents.benchmark import Benchmark, Ranked

_INTRODUCTION = """\
# Benchmark

{policies} on {scenarios} scenarios of the benchmark (version {benchmark}), with Agewise {version} \
and {seeds}{fewer}. `make study NAME=benchmark` writes this page; it keeps what is \
finished and goes on from \
there. Policies run in the forms that [tuning](tuning.md) found on other seeds. All of them meet \
the same places, channels, samples and initial models, so differences are paired over the seeds.

*Score* is the mean test accuracy after {points} rounds. {gain}Policies of one *group* are a tie: \
they were not shown to be behind the first of the group (paired t tests of the best of those left \
against the others left, together by single-step max-t or Bonferroni, 5% level). Intervals of \
scores are 95%, each by itself. \
*UEs* are updates that arrived in a round, *arrived* is their share of those scheduled (all, \
as the access point offers only UEs that are in time). *Age* is the mean over UEs and rounds, \
*fairness* Jain's index of how often each UE's updates arrived, *used* the subchannels used in a \
round. *Loss* is the share of the \
largest possible weight, the sum of f(age) over the scheduled UEs, that a round left (problem 3, \
solved in sampled rounds of {optimum}{unproven}); policies that weigh something else than age are \
not meant to make it small.
"""
_GAIN = """\
*Gain* is the paired difference in score from {0}, in points. """
_EXACT = """\
; {0}, which solve{1} every round exactly, {3} {2} and stand{1} last without a group, as their \
scores are of other seeds"""
_DESCRIPTION = """\
{0}. The target is an accuracy of {1:.0%}: the median rounds to it (models are evaluated every {2} \
rounds), and in how many runs it was reached.
"""
_NO_OVERALL = """\
There is no overall ranking, because one scenario would decide it: the leading group must stay in \
the same order whichever scenario is left out. {0}
"""
_OVERALL_TEXT = """\
Of the mean scores over the scenarios. The leading group stays in the same order whichever \
scenario is left out.
"""
_AGGREGATIONS = """\
## Policies by aggregations

Scores in percent with the plain average (`learn.aggregation`), and below them what the other \
aggregations add to the same policy: the paired gain in points with its 95% \
interval, {seeds}. {family} {stars}.
"""
_HEADLINE = """\
## The benchmark

Gain in score over {baseline} in each scenario of the [benchmark](benchmark.md) (version \
{version}, {seeds}{fewer}), in points; in brackets the group, in which policies are not shown to \
differ from the best of it. {family} {stars}.
"""


def write_benchmark_page(benchmark: "Benchmark", path: Path | str) -> Path:
    """Write the page of this benchmark."""
    parts = [_introduction(benchmark)]
    for name in benchmark.measures:
        described, rows = SCENARIOS[name], benchmark.table(name)
        parts += [
            f"## {name}\n",
            _DESCRIPTION.format(sentence_case(described.summary), described.target, EVALUATE_EVERY),
            _table(rows, _BY_SCENARIO),
            *_family(benchmark, rows),
        ]
    parts += ["## All scenarios\n", *_overall(benchmark)]
    if benchmark.aggregations is not None:
        parts += _aggregations(benchmark.aggregations)
    return write_document(Path(path), "\n".join(parts))


def headline(benchmark: "Benchmark") -> str:
    """The gains of every policy in every scenario, in one table."""
    baseline = benchmark.baseline
    tables = {name: benchmark.table(name) for name in benchmark.measures}
    found = {(name, row.policy): row for name, rows in tables.items() for row in rows}
    text = _HEADLINE.format(
        baseline=baseline or "nothing",
        version=VERSION,
        seeds=_seeds(benchmark),
        fewer=_fewer(benchmark),
        family=_family_text(benchmark, next(iter(tables.values()))),
        stars=STARS_NOTE,
    )
    lines: list[list[Cell]] = [
        [str(policy), *(_short_gain(found[name, policy]) for name in tables)]
        for policy in benchmark.policies
    ]
    columns = [Column("policy", kind="words"), *(Column(name) for name in tables)]
    overall = "\n".join(_overall(benchmark, with_table=False))
    return f"{text}\n{Table('', columns, lines).to_markdown()}\n{overall}"


def _seeds(benchmark: "Benchmark", *, fewest: bool = False) -> str:
    """The seeds of most policies, or of those with the fewest."""
    counts = [len(one.seeds) for of in benchmark.measures.values() for one in of.values()]
    count = min(counts) if fewest else max(counts)
    return f"{count} seeds" if count > 1 else "one seed"


def _fewer(benchmark: "Benchmark") -> str:
    exact = [str(policy) for policy in benchmark.policies if is_exact(policy)]
    if not exact:
        return ""
    few = _seeds(benchmark, fewest=True)
    return _EXACT.format(
        and_list(exact), *(("", few, "have") if len(exact) > 1 else ("s", few, "has"))
    )


def _introduction(benchmark: "Benchmark") -> str:
    baseline = benchmark.baseline
    unproven = sum(one.unproven for of in benchmark.losses.values() for one in of.values())
    few = next(iter(next(iter(benchmark.losses.values())).values())).seeds
    return _INTRODUCTION.format(
        benchmark=VERSION,
        version=__version__,
        policies=f"{len(benchmark.policies)} policies"
        if len(benchmark.policies) > 1
        else "One policy",
        scenarios=f"{len(benchmark.measures)} of {len(SCENARIOS)}",
        seeds=_seeds(benchmark),
        fewer=_fewer(benchmark),
        points=and_list(CHECKPOINTS),
        gain="" if baseline is None else _GAIN.format(baseline),
        optimum=f"{few} seeds" if few > 1 else "one seed",
        unproven=f"; {unproven} of them to within a bound" if unproven else "",
    )


def _family(benchmark: "Benchmark", rows: Sequence["Ranked"]) -> list[str]:
    """The paragraph on the tests behind the gains of a table."""
    text = _family_text(benchmark, rows)
    return [f"{text}\n"] if text else []


def _family_text(benchmark: "Benchmark", rows: Sequence["Ranked"]) -> str:
    gains = [row.score.gain for row in rows if row.score.gain is not None]
    return family_text(gains, str(benchmark.baseline), "policies of a scenario")


def _overall(benchmark: "Benchmark", *, with_table: bool = True) -> list[str]:
    """The ranking over all scenarios, or why there is none."""
    reasons = benchmark.decided_by_one()
    if reasons:
        return [_NO_OVERALL.format(" ".join(reasons))]
    rows = benchmark.overall()
    if not with_table:
        leading = and_list(row.policy for row in rows if row.group == 1)
        return [f"{_OVERALL_TEXT.strip()} It is {leading}.\n"]
    return [_OVERALL_TEXT, _table(rows, _OVERALL), *_family(benchmark, rows)]


def _aggregations(second: "AggregationTable") -> list[str]:
    tables = {name: second.estimates(name) for name in second.scores}
    first = next(iter(tables.values()))
    text = _AGGREGATIONS.format(
        seeds=f"{second.seeds} seeds" if second.seeds > 1 else "one seed",
        family=family_text(
            [each.gain for each in first.values() if each.gain is not None],
            "the same policy with the plain average",
            "policies and aggregations of a scenario",
        ),
        stars=STARS_NOTE,
    )
    lines: list[list[Cell]] = [
        [aggregation, policy, *(_added(found[policy, aggregation]) for found in tables.values())]
        for policy, aggregation in first
    ]
    columns = [Column(head, kind="words") for head in ("aggregation", "policy")]
    return [text, Table("", [*columns, *map(Column, tables)], lines).to_markdown()]


def _added(score: Estimate) -> str:
    gain = score.gain
    if gain is None:
        return estimate_text(score)
    limits = limits_text(gain)
    return starred(gain) + (f" ({limits})" if limits else "")


def _table(rows: Sequence["Ranked"], columns: "_Columns") -> str:
    heads = [Column("policy", kind="words"), *map(Column, columns)]
    lines: list[list[Cell]] = [
        [str(row.policy), *(told(row) for told in columns.values())] for row in rows
    ]
    return Table("", heads, lines).to_markdown()


def _gain(row: "Ranked") -> str:
    gain = row.score.gain
    if gain is None:
        return "baseline"
    return contrast_text(gain)


def _short_gain(row: "Ranked") -> str:
    gain = "baseline" if row.score.gain is None else starred(row.score.gain)
    return gain if row.group is None else f"{gain} ({row.group})"


def _to_target(row: "Ranked") -> str:
    taken = row.taken
    return (
        NOTHING
        if taken is None
        else f"{short_text(taken.median, 3)} ({taken.reached}/{taken.runs})"
    )


def _loss(row: "Ranked") -> str:
    loss = row.loss
    return NOTHING if loss is None or loss.mean != loss.mean else f"{100 * loss.mean:.1f}"


_Columns = Mapping[str, Callable[["Ranked"], str]]
_FIRST: _Columns = {
    "gain, points": _gain,
    "group": lambda row: NOTHING if row.group is None else str(row.group),
    "score %": lambda row: estimate_text(row.score),
}
_COMMON: _Columns = {
    "UEs": lambda row: f"{row.means['ues']:.1f}",
    "arrived %": lambda row: f"{100 * row.means['arrived']:.0f}",
    "age": lambda row: f"{row.means['age']:.1f}",
    "fairness": lambda row: f"{row.means['fairness']:.2f}",
    "used": lambda row: f"{row.means['subchannels']:.1f}",
}
_OVERALL: _Columns = {**_FIRST, **_COMMON}
_BY_SCENARIO: _Columns = {
    **_FIRST,
    **{
        f"round {point}": lambda row, point=point: estimate_text(row.at[point])  # type: ignore[misc]
        for point in CHECKPOINTS
    },
    "rounds to target": _to_target,
    **_COMMON,
    "loss %": _loss,
}
