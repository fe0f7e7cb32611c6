"""A run as it happens: the ages, who is scheduled and the accuracy, round by round."""

import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.live import Live as Screen
from rich.panel import Panel
from rich.text import Text

import agewise
from agewise.checks import visible
from agewise.tables._words import counted

if TYPE_CHECKING:
    from agewise.experiment import Plan, Result, RunOptions
    from agewise.records import RoundRecord

#: Rounds are computed faster than anybody can see: in a terminal each is shown at least so long.
_SHOWN_S = 0.1
_BLOCKS = "▁▂▃▄▅▆▇█"
_WIDTH = 60


def watched(plan: "Plan", folder: Path, options: "RunOptions", *, as_json: bool) -> "Result":
    """Carry out the plan of one policy in this process, and show every round as it happens."""
    others = {
        f"--engine {options.engine}": options.engine not in ("auto", "inline"),
        "--workers": options.workers is not None,
        "--json": as_json,
    }
    for option in (option for option, given in others.items() if given):
        raise ValueError(
            f"--live shows runs of this process as they happen, and {option} cannot go with it: "
            "leave out one of the two"
        )
    with Live(str(plan.policies[0]), plan.scenario.run.rounds) as watch:
        return agewise.experiment.execute(plan, folder, replace(options, quiet=True), watch)


class Live:
    """Shows the rounds of runs that happen in this process: a callback for ``on_round``.

    A panel in a terminal, which is there between entering and leaving, lines elsewhere.
    """

    def __init__(self, title: str, count: int) -> None:
        self.title, self.count, self.shown = title, count, 0
        self._accuracies: list[float] = []
        self._screen = Screen(auto_refresh=False) if sys.stdout.isatty() else None

    def __enter__(self) -> "Live":
        if self._screen:
            self._screen.start()
        else:
            typer.echo(visible(self.title))
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._screen:
            self._screen.stop()
        if self.shown == 0 and kind is None:
            typer.echo("Nothing to watch: these rounds are finished; --out FOLDER runs them anew.")

    def __call__(self, record: "RoundRecord") -> None:
        """Show this round."""
        self.shown += 1
        if record.t == 0:
            self._accuracies.clear()
        if record.evaluation is not None:
            self._accuracies.append(record.evaluation.accuracy)
        if self._screen:
            panel = picture(record, self._accuracies, self.title, self.count)
            self._screen.update(panel, refresh=True)
            time.sleep(_SHOWN_S)
            return
        accuracy = None if record.evaluation is None else record.evaluation.accuracy
        measured = "" if accuracy is None else f", accuracy {100 * accuracy:.1f}%"
        typer.echo(f"round {record.t + 1} of {self.count}: {_facts(record)}{measured}")


def picture(record: "RoundRecord", accuracies: list[float], title: str, count: int) -> Panel:
    """One round as a panel of text."""
    text = Text(f"round {record.t + 1} of {count}: {_facts(record)}\n\n")
    uploads = " ".join(map(str, record.delivery.scheduled.tolist())) or "nobody"
    text.append("uploads   ", "bold").append(f"{uploads}\n", "dark_orange")
    bars, edges = age_histogram(record)
    text.append("ages      ", "bold").append(f"{bars}", "cyan").append(f"  {edges}\n")
    text.append("accuracy  ", "bold").append(sparkline(accuracies[-_WIDTH:]), "green")
    text.append(f"  {100 * accuracies[-1]:.1f}%" if accuracies else "not measured yet")
    return Panel(text, title=Text(visible(title)), title_align="left", width=90)


def age_histogram(record: "RoundRecord", bins: int = 20) -> tuple[str, str]:
    """How many UEs have which age, as small bars, and what the bars span."""
    largest = int(record.ages.max())
    bins = min(bins, largest + 1)
    counts = Counter(age * bins // (largest + 1) for age in record.ages.tolist())
    return sparkline([counts[place] for place in range(bins)], zero=True), f"0 to {largest}"


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
    scheduled, received, *_ = record.delivery
    owner, lost = record.delivery.owner, scheduled.size - received.size
    return (
        f"{counted(scheduled.size, 'UE')} on {int((owner >= 0).sum())} of "
        f"{counted(owner.size, 'subchannel')}{f', {lost} lost' if lost else ''}, "
        f"{int((record.participation > 0).sum())} heard so far, "
        f"age {record.ages.mean():.1f} (largest {int(record.ages.max())})"
    )
