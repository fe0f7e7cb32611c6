"""The benchmark as a Markdown page."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agewise.files import write_whole
from agewise.report.names import short_names
from agewise.suite.scenarios import CHECKPOINTS, SCENARIOS, VERSION
from agewise.version import __version__

if TYPE_CHECKING:
    from agewise.suite.run import Benchmark

_Row = Mapping[str, Any]

_INTRODUCTION = """\
# Benchmark

Every registered policy with its default parameters on the suite of scenarios, version {suite}, \
with Agewise {version} and {seeds} seeds each. `make benchmark` writes this page; it keeps what is \
finished and goes on from there. All policies meet the same places, channels, samples and initial \
models, so differences are paired over the seeds.

*Score* is the mean test accuracy after {points} rounds, *rank* the mean rank by score. *Gain* is \
the paired difference in score from {baseline}, with a p-value corrected (Holm) over the policies. \
Intervals are 95% over the seeds, around means over the scenarios. *Age* is the mean over UEs and \
rounds, *fairness* Jain's index of how often each UE's updates arrived, *used* the subchannels \
used in a round. *Loss* is the share of the largest possible weight, the sum of f(age) over the \
scheduled UEs, that a round left (problem 3, solved exactly in sampled rounds{unproven}); policies \
that weigh something else than age are not meant to make it small.
"""
_DESCRIPTION = """\
{0}. The target is an accuracy of {1:.0%}: the median rounds to it, and in how many runs it was \
reached.
"""


def write_markdown(made: "Benchmark", path: Path | str) -> Path:
    """Write the page of this benchmark."""
    first = next(iter(made.measures.values()))
    ranks = made.ranking().to_dicts()
    baseline = next(row["policy"] for row in ranks if row["gain"] is None)
    unproven = sum(row["unproven"] for row in ranks)
    parts = [
        _INTRODUCTION.format(
            suite=VERSION,
            version=__version__,
            seeds=len(next(iter(first.values())).seeds),
            points=", ".join(map(str, CHECKPOINTS[:-1])) + f" and {CHECKPOINTS[-1]}",
            baseline=short_names([row["policy"] for row in ranks])[baseline],
            unproven=f"; {unproven} of them only within a bound" if unproven else "",
        ),
        "## All scenarios\n",
        _table(ranks, _OVERALL),
    ]
    for name in made.measures:
        described = SCENARIOS[name]
        parts += [
            f"## {name}\n",
            _DESCRIPTION.format(described.what[0].upper() + described.what[1:], described.target),
            _table(made.table(name).to_dicts(), _BY_SCENARIO),
        ]
    file = Path(path)
    with write_whole(file) as temporary:
        temporary.write_text("\n".join(parts), encoding="utf-8")
    return file


def _table(rows: Sequence[_Row], columns: Mapping[str, Callable[[_Row], str]]) -> str:
    names = short_names([row["policy"] for row in rows])
    lines = [
        "| | policy | " + " | ".join(columns) + " |",
        "|---:|---|" + "---:|" * len(columns),
    ]
    for place, row in enumerate(rows, start=1):
        cells = [str(place), names[row["policy"]], *(say(row) for say in columns.values())]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _percent(name: str) -> Callable[[_Row], str]:
    def say(row: _Row) -> str:
        half = (row[f"{name}_high"] - row[f"{name}_low"]) / 2
        return f"{100 * row[name]:.1f} ± {100 * half:.1f}"

    return say


def _gain(row: _Row) -> str:
    if row["gain"] is None:
        return "baseline"
    p = row["p"]
    chance = "" if p is None else ", p < 0.001" if p < 0.001 else f", p = {p:.3f}"
    gain, low, high = (100 * row[name] for name in ("gain", "gain_low", "gain_high"))
    return f"{gain:+.1f} ({low:+.1f} to {high:+.1f}{chance})"


def _rank(row: _Row) -> str:
    return f"{row['rank']:.1f} ± {(row['rank_high'] - row['rank_low']) / 2:.1f}"


def _to_target(row: _Row) -> str:
    taken = row["rounds_to_target"]
    median = f"{taken:.0f}" if taken is not None and math.isfinite(taken) else "-"
    return f"{median} ({row['reached']}/{row['seeds']})"


_COMMON: dict[str, Callable[[_Row], str]] = {
    "UEs": lambda row: f"{row['ues']:.1f}",
    "age": lambda row: f"{row['age']:.1f}",
    "fairness": lambda row: f"{row['fairness']:.2f}",
    "used": lambda row: f"{row['subchannels']:.1f}",
    "loss %": lambda row: f"{100 * row['loss']:.1f}",
}
_OVERALL = {"score %": _percent("score"), "rank": _rank, "gain, points": _gain, **_COMMON}
_BY_SCENARIO = {
    "score %": _percent("score"),
    "gain, points": _gain,
    **{f"round {point}": _percent(f"accuracy@{point}") for point in CHECKPOINTS},
    "rounds to target": _to_target,
    **_COMMON,
}
