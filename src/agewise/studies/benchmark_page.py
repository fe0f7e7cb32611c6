"""The benchmark as a Markdown page."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agewise.files import write_whole
from agewise.report.text import and_list, p_text, points_text, short_names, with_interval
from agewise.studies.benchmark_scenarios import CHECKPOINTS, SCENARIOS, VERSION
from agewise.version import __version__

if TYPE_CHECKING:
    from agewise.studies.ranking import Benchmark

_Row = Mapping[str, Any]
_Columns = Mapping[str, Callable[[_Row], str]]

_INTRODUCTION = """\
# Benchmark

{policies} on {scenarios} scenarios of the benchmark (version {benchmark}), with Agewise \
{version} and {seeds} of each. `make benchmark` writes this page for all policies with their \
default parameters; it keeps what is finished and goes on from there. All policies meet the same \
places, channels, samples and initial models, so differences are paired over the seeds.

*Score* is the mean test accuracy after {points} rounds, *rank* the mean rank by score. {gain}\
Intervals are 95% over the seeds, around means over the scenarios. *UEs* are updates that arrived \
in a round, *arrived* is their share of those scheduled (only deadlines lose any). *Age* is the \
mean over UEs and rounds, *fairness* Jain's index of how often each UE's updates arrived, *used* \
the subchannels used in a round. *Loss* is the share of the largest possible weight, the sum of \
f(age) over the scheduled UEs, whether they arrive or not, that a round left (problem 3, solved \
in sampled rounds{unproven}); policies that weigh something else than age are not meant to make \
it small.
"""
_GAIN = """\
*Gain* is the paired difference in score from {0}, with a p-value corrected (Holm) over the \
policies. """
_DESCRIPTION = """\
{0}. The target is an accuracy of {1:.0%}: the median rounds to it, and in how many runs it was \
reached.
"""


def write_benchmark_page(benchmark: "Benchmark", path: Path | str) -> Path:
    """Write the page of this benchmark."""
    policies = benchmark.policies
    names = {str(policy): name for policy, name in short_names(policies).items()}
    ranks = benchmark.ranking().to_dicts()
    parts = [
        _introduction(benchmark, names, sum(row["unproven"] for row in ranks)),
        "## All scenarios\n",
        _table(ranks, _OVERALL, names),
    ]
    for name in benchmark.measures:
        described = SCENARIOS[name]
        summary = described.summary[0].upper() + described.summary[1:]
        parts += [
            f"## {name}\n",
            _DESCRIPTION.format(summary, described.target),
            _table(benchmark.table(name).to_dicts(), _BY_SCENARIO, names),
        ]
    file = Path(path)
    with write_whole(file) as temporary:
        temporary.write_text("\n".join(parts), encoding="utf-8")
    return file


def _introduction(benchmark: "Benchmark", names: Mapping[str, str], unproven: int) -> str:
    seeds = len(next(iter(next(iter(benchmark.measures.values())).values())).seeds)
    baseline = benchmark.baseline
    return _INTRODUCTION.format(
        benchmark=VERSION,
        version=__version__,
        policies=f"{len(names)} policies" if len(names) > 1 else "One policy",
        scenarios=f"{len(benchmark.measures)} of {len(SCENARIOS)}",
        seeds=f"{seeds} seeds" if seeds > 1 else "one seed",
        points=and_list(CHECKPOINTS),
        gain="" if baseline is None else _GAIN.format(names[str(baseline)]),
        unproven=f"; {unproven} of them to within a bound" if unproven else "",
    )


def _table(rows: Sequence[_Row], columns: _Columns, names: Mapping[str, str]) -> str:
    lines = [
        "| | policy | " + " | ".join(columns) + " |",
        "|---:|---|" + "---:|" * len(columns),
    ]
    for place, row in enumerate(rows, start=1):
        entries = [str(place), names[row["policy"]], *(text(row) for text in columns.values())]
        lines.append("| " + " | ".join(entries) + " |")
    return "\n".join(lines) + "\n"


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
    "loss %": lambda row: f"{100 * row['loss']:.1f}",
}
_OVERALL: _Columns = {
    "score %": lambda row: with_interval(row, "score"),
    "rank": lambda row: with_interval(row, "rank", scale=1),
    "gain, points": _gain,
    **_COMMON,
}
_BY_SCENARIO: _Columns = {
    "score %": lambda row: with_interval(row, "score"),
    "gain, points": _gain,
    **{f"round {point}": _accuracy(point) for point in CHECKPOINTS},
    "rounds to target": _to_target,
    **_COMMON,
}
