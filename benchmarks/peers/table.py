"""The table of `benchmarks.peers`, and what its columns say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.peers import common

#: The name of Agewise among the frameworks.
OURS = "agewise"
#: A measurement whose neighbours on the machine took more cores than this is marked.
DISTURBED_CORES = 0.2


@dataclass(frozen=True)
class Row:
    """What came out for one framework and workload: a measurement or a failure."""

    peer: str
    workload: str
    measured: dict[str, Any] | None = None
    failure: str | None = None
    #: How many times as fast Agewise is, per second and per CPU second.
    agewise_times_as_fast: float | None = None
    agewise_times_as_thrifty: float | None = None


def tabulate(rows: Sequence[Row], titles: Mapping[str, str]) -> Table:
    """The table, a section per workload; ``titles`` of the frameworks by name."""
    table = Table(title="10 of 100 clients a round on MNIST")
    for heading, justify in (
        ("", "left"), ("framework", "left"), ("version", "left"),
        ("CPU ms a round", "right"), ("Agewise per CPU second", "right"), ("rounds/s", "right"),
        ("Agewise per second", "right"), ("first result", "right"), ("memory", "right"),
        ("cores", "right"), (f"accuracy at {common.COMPARED_ROUND}", "right"),
        ("at the end", "right"),
    ):  # fmt: skip
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    for workload in common.WORKLOADS:
        for row in rows:
            if row.workload == workload:
                table.add_row(workload, titles[row.peer], *_cells(row))
        table.add_section()
    return table


def _cells(row: Row) -> list[str]:
    measured = row.measured
    if measured is None:
        return [f"failed: {row.failure}"]
    mark = "*" if measured["cores_of_others"] > DISTURBED_CORES else ""
    return [
        measured["version"],
        f"{_digits(measured['cpu_ms_per_round'])}{mark}",
        _times(row, row.agewise_times_as_thrifty),
        f"{_digits(measured['rounds_per_s'])}{mark}",
        _times(row, row.agewise_times_as_fast),
        f"{measured['first_result_s']:.1f} s",
        f"{measured['memory_mb']:,.0f} MB",
        f"{measured['cores']:.1f}",
        f"{measured['compared_accuracy']:.3f}",
        f"{measured['accuracy']:.3f} ({measured['rounds']:,})",
    ]


def _times(row: Row, ratio: float | None) -> str:
    return "" if ratio is None or row.peer == OURS else f"{_digits(ratio)} x"


def _digits(value: float) -> str:
    """Three digits or, of large numbers, all before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def legend(rows: Sequence[Row], budget_s: float, passes: int, logs: Path) -> str:
    """What the columns say, and what is to be known about this run."""
    lines = [
        *(
            f"{name}: {work.model}, {work.steps} steps of {work.batch} sample(s) per client and "
            "round."
            for name, work in common.WORKLOADS.items()
        ),
        f"rounds/s: over {budget_s:g} s after ten rounds of warm-up, evaluations on 10,000 images",
        f"  every tenth round included; of {passes} pass(es) the best counts.",
        "CPU ms a round: of all its processes. Agewise per (CPU) second: that many times as many",
        "  rounds. cores: mean number that it kept busy.",
        "first result: from the start of the process to the accuracy of round 10.",
        "memory: the peak; of several processes the sum, with shared pages counted once.",
        f"accuracy: after {common.COMPARED_ROUND} rounds, and at the end (its round in brackets).",
    ]
    for row in rows:
        if row.measured and row.measured["first_run_s"]:
            lines.append(
                "Agewise's very first run compiles its kernels: first result after "
                f"{row.measured['first_run_s']:.1f} s, once per installation."
            )
            break
    if any(row.measured and row.measured["cores_of_others"] > DISTURBED_CORES for row in rows):
        lines.append(
            f"* other processes took more than {DISTURBED_CORES:g} cores meanwhile: measure again."
        )
    if any(row.failure for row in rows):
        lines.append(f"Logs of what failed: {logs}")
    return "\n".join(lines)
