"""The benchmark as a Markdown page."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agewise.files import write_whole
from agewise.report.names import short_names
from agewise.report.words import with_interval
from agewise.suite.scenarios import CHECKPOINTS, SCENARIOS, VERSION
from agewise.version import __version__

if TYPE_CHECKING:
    from agewise.suite.run import Benchmark

_Row = Mapping[str, Any]

_INTRODUCTION = """\
# Benchmark

{policies} policies on {scenarios} scenarios of the suite (version {suite}), with Agewise \
{version} and {seeds} of each. `make benchmark` writes this page for all policies with their \
default parameters; it keeps what is finished and goes on from there. All policies meet the same \
places, channels, samples and initial models, so differences are paired over the seeds.

*Score* is the mean test accuracy after {points} rounds, *rank* the mean rank by score. *Gain* is \
the paired difference in score from {baseline}, with a p-value corrected (Holm) over the policies. \
Intervals are 95% over the seeds, around means over the scenarios. *UEs* are updates that arrived \
in a round, *arrived* is their share of those scheduled (only deadlines lose any). *Age* is the \
mean over UEs and rounds, *fairness* Jain's index of how often each UE's updates arrived, *used* \
the subchannels used in a round. *Loss* is the share of the largest possible weight, the sum of \
f(age) over the scheduled UEs, whether they arrive or not, that a round left (problem 3, solved \
in sampled rounds{unproven}); policies that weigh something else than age are not meant to make \
it small.
"""
_DESCRIPTION = """\
{0}. The target is an accuracy of {1:.0%}: the median rounds to it, and in how many runs it was \
reached.
"""


def write_markdown(made: "Benchmark", path: Path | str) -> Path:
    """Write the page of this benchmark."""
    first = next(iter(made.measures.values()))
    seeds = len(next(iter(first.values())).seeds)
    names = short_names(list(first))
    ranks = made.ranking().to_dicts()
    baseline = next(row["policy"] for row in ranks if row["gain"] is None)
    unproven = sum(row["unproven"] for row in ranks)
    parts = [
        _INTRODUCTION.format(
            suite=VERSION,
            version=__version__,
            policies=len(ranks),
            scenarios=f"{len(made.measures)} of {len(SCENARIOS)}",
            seeds=f"{seeds} seeds" if seeds > 1 else "one seed",
            points=", ".join(map(str, CHECKPOINTS[:-1])) + f" and {CHECKPOINTS[-1]}",
            baseline=names[baseline],
            unproven=f"; {unproven} of them to within a bound" if unproven else "",
        ),
        "## All scenarios\n",
        _table(ranks, _OVERALL, names),
    ]
    for name in made.measures:
        described = SCENARIOS[name]
        parts += [
            f"## {name}\n",
            _DESCRIPTION.format(described.what[0].upper() + described.what[1:], described.target),
            _table(made.table(name).to_dicts(), _BY_SCENARIO, names),
        ]
    file = Path(path)
    with write_whole(file) as temporary:
        temporary.write_text("\n".join(parts), encoding="utf-8")
    return file


def _table(
    rows: Sequence[_Row], columns: Mapping[str, Callable[[_Row], str]], names: Mapping[str, str]
) -> str:
    lines = [
        "| | policy | " + " | ".join(columns) + " |",
        "|---:|---|" + "---:|" * len(columns),
    ]
    for place, row in enumerate(rows, start=1):
        cells = [str(place), names[row["policy"]], *(say(row) for say in columns.values())]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _accuracy(point: int) -> Callable[[_Row], str]:
    return lambda row: with_interval(row, f"accuracy@{point}")


def _gain(row: _Row) -> str:
    if row["gain"] is None:
        return "baseline"
    if math.isnan(row["gain_low"]):
        return f"{100 * row['gain']:+.1f}"
    p = row["p"]
    chance = "" if p is None else ", p < 0.001" if p < 0.001 else f", p = {p:.3f}"
    gain, low, high = (100 * row[name] for name in ("gain", "gain_low", "gain_high"))
    return f"{gain:+.1f} ({low:+.1f} to {high:+.1f}{chance})"


def _to_target(row: _Row) -> str:
    taken = row["rounds_to_target"]
    median = f"{taken:.0f}" if taken is not None and math.isfinite(taken) else "-"
    return f"{median} ({row['reached']}/{row['seeds']})"


_COMMON: dict[str, Callable[[_Row], str]] = {
    "UEs": lambda row: f"{row['ues']:.1f}",
    "arrived %": lambda row: f"{100 * row['arrived']:.0f}",
    "age": lambda row: f"{row['age']:.1f}",
    "fairness": lambda row: f"{row['fairness']:.2f}",
    "used": lambda row: f"{row['subchannels']:.1f}",
    "loss %": lambda row: f"{100 * row['loss']:.1f}",
}
_OVERALL = {
    "score %": lambda row: with_interval(row, "score"),
    "rank": lambda row: with_interval(row, "rank", scale=1),
    "gain, points": _gain,
    **_COMMON,
}
_BY_SCENARIO = {
    "score %": lambda row: with_interval(row, "score"),
    "gain, points": _gain,
    **{f"round {point}": _accuracy(point) for point in CHECKPOINTS},
    "rounds to target": _to_target,
    **_COMMON,
}
