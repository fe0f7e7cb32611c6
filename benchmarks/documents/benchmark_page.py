"""The benchmark as a Markdown page, and its headline."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agewise.report.text import (
    STARS_NOTE,
    and_list,
    count_tests,
    family_text,
    p_text,
    points_text,
    short_names,
    stars,
    with_interval,
)
from agewise.version import __version__
from benchmarks.documents.benchmark_scenarios import (
    CHECKPOINTS,
    EVALUATE_EVERY,
    EXACT,
    SCENARIOS,
    VERSION,
)
from benchmarks.documents.results import markdown_table, write_document

if TYPE_CHECKING:
    from benchmarks.documents.aggregations import AggregationTable
    from benchmarks.documents.benchmark import Benchmark

_Row = Mapping[str, Any]
_Columns = Mapping[str, Callable[[_Row], str]]

_INTRODUCTION = """\
# Benchmark

{policies} on {scenarios} scenarios of the benchmark (version {benchmark}), with Agewise {version} \
and {seeds}{fewer}. `make study NAME=benchmark` writes this page; it keeps what is \
finished and goes on from \
there. Policies run in the forms that [tuning](tuning.md) found on other seeds. All of them meet \
the same places, channels, samples and initial models, so differences are paired over the seeds.

*Score* is the mean test accuracy after {points} rounds. {gain}Policies of one *group* are a tie: \
they were not shown to be behind the first of the group (paired t tests of the best of those left \
against the others left, corrected together (Holm), 5% level). Intervals are 95%, each by itself. \
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
aggregations add to the same policy: the paired gain in points with half the width of its 95% \
interval, {seeds}. p-values: paired t tests against the same policy with the plain average, all \
{tests} of a scenario (policies and aggregations) corrected together (Holm): {stars}.
"""
_HEADLINE = """\
## The benchmark

Gain in score over {baseline} in each scenario of the [benchmark](benchmark.md) (version \
{version}, {seeds}{fewer}), in points; in brackets the group, in which policies are not shown to \
differ from the best of it. p-values: paired t tests against {baseline}, corrected together (Holm) \
over the {tests} policies of a scenario: {stars}.
"""


def write_benchmark_page(benchmark: "Benchmark", path: Path | str) -> Path:
    """Write the page of this benchmark."""
    names = _names(benchmark)
    parts = [_introduction(benchmark, names)]
    for name in benchmark.measures:
        described, rows = SCENARIOS[name], benchmark.table(name).to_dicts()
        summary = described.summary[0].upper() + described.summary[1:]
        parts += [
            f"## {name}\n",
            _DESCRIPTION.format(summary, described.target, EVALUATE_EVERY),
            _table(rows, _BY_SCENARIO, names),
            *_family(benchmark, rows, names),
        ]
    parts += ["## All scenarios\n", *_overall(benchmark, names)]
    if benchmark.aggregations is not None:
        parts += _aggregations(benchmark.aggregations)
    return write_document(Path(path), "\n".join(parts))


def headline(benchmark: "Benchmark") -> str:
    """The gains of every policy in every scenario, in one table."""
    names, baseline = _names(benchmark), benchmark.baseline
    tables = {name: benchmark.table(name).to_dicts() for name in benchmark.measures}
    found = {(name, row["policy"]): row for name, rows in tables.items() for row in rows}
    text = _HEADLINE.format(
        baseline="nothing" if baseline is None else names[str(baseline)],
        version=VERSION,
        seeds=_seeds(benchmark),
        fewer=_fewer(benchmark, names),
        tests=count_tests(next(iter(tables.values()))),
        stars=STARS_NOTE,
    )
    lines = [
        [names[policy], *(_short_gain(found[name, policy]) for name in tables)]
        for policy in map(str, benchmark.policies)
    ]
    overall = "\n".join(_overall(benchmark, names, with_table=False))
    return f"{text}\n{markdown_table(['policy', *tables], lines)}\n{overall}"


def _names(benchmark: "Benchmark") -> dict[str, str]:
    return {str(policy): name for policy, name in short_names(benchmark.policies).items()}


def _seeds(benchmark: "Benchmark", *, fewest: bool = False) -> str:
    """The seeds of most policies, or of those with the fewest."""
    counts = [len(one.seeds) for of in benchmark.measures.values() for one in of.values()]
    count = min(counts) if fewest else max(counts)
    return f"{count} seeds" if count > 1 else "one seed"


def _fewer(benchmark: "Benchmark", names: Mapping[str, str]) -> str:
    exact = [names[str(policy)] for policy in benchmark.policies if policy.name in EXACT]
    if not exact:
        return ""
    few = _seeds(benchmark, fewest=True)
    return _EXACT.format(
        and_list(exact), *(("", few, "have") if len(exact) > 1 else ("s", few, "has"))
    )


def _introduction(benchmark: "Benchmark", names: Mapping[str, str]) -> str:
    baseline = benchmark.baseline
    unproven = sum(one.unproven for of in benchmark.losses.values() for one in of.values())
    few = next(iter(next(iter(benchmark.losses.values())).values())).seeds
    return _INTRODUCTION.format(
        benchmark=VERSION,
        version=__version__,
        policies=f"{len(names)} policies" if len(names) > 1 else "One policy",
        scenarios=f"{len(benchmark.measures)} of {len(SCENARIOS)}",
        seeds=_seeds(benchmark),
        fewer=_fewer(benchmark, names),
        points=and_list(CHECKPOINTS),
        gain="" if baseline is None else _GAIN.format(names[str(baseline)]),
        optimum=f"{few} seeds" if few > 1 else "one seed",
        unproven=f"; {unproven} of them to within a bound" if unproven else "",
    )


def _family(benchmark: "Benchmark", rows: Sequence[_Row], names: Mapping[str, str]) -> list[str]:
    """The sentence on the tests behind the p-values of a table."""
    if benchmark.baseline is None:
        return []
    text = family_text(count_tests(rows), names[str(benchmark.baseline)], "policies")
    return [f"{text}\n"] if text else []


def _overall(
    benchmark: "Benchmark", names: Mapping[str, str], *, with_table: bool = True
) -> list[str]:
    """The ranking over all scenarios, or why there is none."""
    reasons = benchmark.decided_by_one()
    if reasons:
        return [_NO_OVERALL.format(" ".join(reasons))]
    rows = benchmark.overall().to_dicts()
    if not with_table:
        leading = and_list(names[row["policy"]] for row in rows if row["group"] == 1)
        return [f"{_OVERALL_TEXT.strip()} It is {leading}.\n"]
    return [_OVERALL_TEXT, _table(rows, _OVERALL, names), *_family(benchmark, rows, names)]


def _aggregations(second: "AggregationTable") -> list[str]:
    tables = {name: second.table(name).to_dicts() for name in second.scores}
    found = {
        (row["policy"], row["aggregation"], name): row
        for name, rows in tables.items()
        for row in rows
    }
    keys = list(dict.fromkeys((policy, aggregation) for policy, aggregation, _ in found))
    text = _AGGREGATIONS.format(
        seeds=f"{second.seeds} seeds" if second.seeds > 1 else "one seed",
        tests=count_tests(next(iter(tables.values()))),
        stars=STARS_NOTE,
    )
    lines = [
        [aggregation, policy, *(_added(found[policy, aggregation, name]) for name in tables)]
        for policy, aggregation in keys
    ]
    return [text, markdown_table(["aggregation", "policy", *tables], lines, words=2)]


def _added(row: _Row) -> str:
    if row["gain"] is None:
        return with_interval(row, "score")
    half = 100 * (row["gain_high"] - row["gain_low"]) / 2
    interval = f" ± {half:.1f}" if math.isfinite(half) else ""
    return f"{points_text(row['gain'])}{interval}{stars(row['p'])}"


def _table(rows: Sequence[_Row], columns: _Columns, names: Mapping[str, str]) -> str:
    lines = [[names[row["policy"]], *(text(row) for text in columns.values())] for row in rows]
    return markdown_table(["policy", *columns], lines)


def _accuracy(point: int) -> Callable[[_Row], str]:
    return lambda row: with_interval(row, f"accuracy@{point}")


def _gain(row: _Row) -> str:
    if row["gain"] is None:
        return "baseline"
    gain = points_text(row["gain"])
    if math.isnan(row["gain_low"]):
        return gain
    interval = f"{points_text(row['gain_low'])} to {points_text(row['gain_high'])}"
    return f"{gain} ({', '.join(filter(None, (interval, p_text(row['p']))))})"


def _short_gain(row: _Row) -> str:
    gain = "baseline" if row["gain"] is None else points_text(row["gain"]) + stars(row["p"])
    return gain if row["group"] is None else f"{gain} ({row['group']})"


def _group(row: _Row) -> str:
    return "-" if row["group"] is None else str(row["group"])


def _to_target(row: _Row) -> str:
    taken = row["rounds_to_target"]
    median = f"{taken:.0f}" if taken is not None and math.isfinite(taken) else "-"
    return f"{median} ({row['reached']}/{row['seeds']})"


_COMMON: _Columns = {
    "UEs": lambda row: f"{row['ues']:.1f}",
    "arrived %": lambda row: f"{100 * row['arrived']:.0f}",
    "age": lambda row: f"{row['age']:.1f}",
    "fairness": lambda row: f"{row['fairness']:.2f}",
    "used": lambda row: f"{row['subchannels']:.1f}",
}
_OVERALL: _Columns = {
    "gain, points": _gain,
    "group": _group,
    "score %": lambda row: with_interval(row, "score"),
    **_COMMON,
}
_BY_SCENARIO: _Columns = {
    "gain, points": _gain,
    "group": _group,
    "score %": lambda row: with_interval(row, "score"),
    **{f"round {point}": _accuracy(point) for point in CHECKPOINTS},
    "rounds to target": _to_target,
    **_COMMON,
    "loss %": lambda row: "-" if math.isnan(row["loss"]) else f"{100 * row['loss']:.1f}",
}
