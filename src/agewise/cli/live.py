"""A run as it happens: the ages, who is scheduled and the accuracy, round by round."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import typer

from agewise.engines.base import Item, Result

if TYPE_CHECKING:
    from agewise.experiment.cells import Cell
    from agewise.records import RoundRecord

#: Rounds are computed faster than anybody can see: in a terminal each is shown at least so long.
_SHOWN_S = 0.1
_BLOCKS = "▁▂▃▄▅▆▇█"
_WIDTH = 60


@dataclass(frozen=True)
class Live:
    """An engine for eyes: cells run in this process, one after the other, round by round.

    What it hands back is what the other engines do, to the byte.
    """

    def run(
        self,
        work: Callable[[Item], Result],  # noqa: ARG002 (the rounds of the same work, one by one)
        items: Sequence[Item],
    ) -> Iterator[tuple[Item, Result]]:
        """Each group of cells with the contents of their files, and no error."""
        if not items:
            typer.echo("Nothing to watch: these rounds are finished; --out FOLDER runs them anew.")
        for item in items:
            contents = [_watch(cell) for cell in cast("Sequence[Cell]", item)]
            yield item, cast(Result, (contents, None))


def _watch(cell: "Cell") -> bytes:
    from agewise.records import History, RunInfo
    from agewise.simulate import rounds
    from agewise.version import __version__

    policy, scenario = cell.policy, cell.scenario
    happening = rounds(scenario, policy, cell.seed)
    show = _in_terminal if sys.stdout.isatty() else _as_lines
    records = list(show(happening, f"{policy}, seed {cell.seed}", scenario.run.rounds))
    info = RunInfo(scenario.resolved(), policy.name, policy.parameters, cell.seed, __version__)
    return History.collect(info, records, scenario.run.age_alpha).to_bytes()


def _as_lines(
    happening: "Iterator[RoundRecord]", title: str, count: int
) -> "Iterator[RoundRecord]":
    typer.echo(title)
    for record in happening:
        measured = "" if record.accuracy is None else f", accuracy {100 * record.accuracy:.1f}%"
        typer.echo(f"round {record.t + 1} of {count}: {_facts(record)}{measured}")
        yield record


def _in_terminal(
    happening: "Iterator[RoundRecord]", title: str, count: int
) -> "Iterator[RoundRecord]":
    from rich.live import Live as Screen

    accuracies: list[float] = []
    with Screen(auto_refresh=False) as screen:
        for record in happening:
            if record.accuracy is not None:
                accuracies.append(record.accuracy)
            screen.update(picture(record, accuracies, title, count), refresh=True)
            yield record
            time.sleep(_SHOWN_S)


def picture(record: "RoundRecord", accuracies: list[float], title: str, count: int) -> Any:
    """One round as a panel of text."""
    from rich.panel import Panel
    from rich.text import Text

    text = Text(f"round {record.t + 1} of {count}: {_facts(record)}\n\n")
    uploads = " ".join(map(str, record.scheduled.tolist())) or "nobody"
    text.append("uploads   ", "bold").append(f"{uploads}\n", "dark_orange")
    bars, edges = age_histogram(record)
    text.append("ages      ", "bold").append(f"{bars}", "cyan").append(f"  {edges}\n")
    text.append("accuracy  ", "bold").append(sparkline(accuracies[-_WIDTH:]), "green")
    text.append(f"  {100 * accuracies[-1]:.1f}%" if accuracies else "not measured yet")
    return Panel(text, title=Text(title), title_align="left", width=90)


def age_histogram(record: "RoundRecord", bins: int = 20) -> tuple[str, str]:
    """How many UEs have which age, as small bars, and what the bars span."""
    peak = int(record.ages.max())
    counts, _ = np.histogram(record.ages, bins=min(bins, peak + 1), range=(0, peak + 1))
    return sparkline(counts.tolist(), zero=True), f"0 to {peak}"


def sparkline(values: Sequence[float], *, zero: bool = False) -> str:
    """Small bars from the lowest value, or from zero, where zero itself is blank.

    >>> sparkline([0.1, 0.5, 0.9])
    '▁▅█'
    >>> sparkline([0, 4, 8], zero=True)
    ' ▅█'
    """
    if not values:
        return ""
    low = 0.0 if zero else min(values)
    span = max(max(values) - low, 1e-12)
    steps = [round((value - low) / span * (len(_BLOCKS) - 1)) for value in values]
    return "".join(
        " " if zero and value == 0 else _BLOCKS[step]
        for value, step in zip(values, steps, strict=True)
    )


def _facts(record: "RoundRecord") -> str:
    return (
        f"{record.scheduled.size} UEs on {int((record.owner >= 0).sum())} of "
        f"{record.owner.size} subchannels, {int((record.participation > 0).sum())} heard so far, "
        f"age {record.ages.mean():.1f} (peak {int(record.ages.max())})"
    )
