"""What an experiment would take, said before it runs."""

from dataclasses import dataclass
from pathlib import Path

from agewise.engines import Engine, Local
from agewise.experiment.folder import Folder
from agewise.experiment.runs import Plan, with_same_samples
from agewise.resources import expected_seconds


@dataclass(frozen=True)
class Forecast:
    """How many runs and rounds there are, how many are left, and roughly how long they take."""

    runs: int
    finished: int
    rounds: int
    seconds: float
    processes: int
    out: Path

    def __str__(self) -> str:
        """Two sentences."""
        there = f", of which {self.finished} are in {self.out} already" if self.finished else ""
        on = f"{self.processes} processes" if self.processes > 1 else "one process"
        return (
            f"{self.runs} runs{there}; {self.rounds:,} rounds to go, about "
            f"{duration_text(self.seconds)} on {on}. Results would be in {self.out}."
        )


def forecast(plan: Plan, out: Path | str, engine: Engine) -> Forecast:
    """What carrying out the plan in this folder would take; the time is a rough guess."""
    runs, present = plan.runs(), Folder(Path(out)).file_names()
    missing = [run for run in runs if run.file_name not in present]
    groups = len(with_same_samples(missing))
    processes = max(engine.processes(groups), 1) if isinstance(engine, Local) else 1
    seconds = sum(expected_seconds(run.scenario) for run in missing) / processes
    rounds = sum(run.scenario.run.rounds for run in missing)
    return Forecast(len(runs), len(runs) - len(missing), rounds, seconds, processes, Path(out))


def duration_text(seconds: float) -> str:
    """A length of time to the precision that a guess has.

    >>> [duration_text(x) for x in (0.4, 50.0, 3000.0, 40_000.0, 400_000.0, 1e9)]
    ['1 s', '50 s', '50 min', '11 h', '5 days', '32 years']
    """
    if seconds < 100:
        return f"{max(seconds, 1):.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    if seconds < 2 * 86_400:
        return f"{seconds / 3600:.0f} h"
    days = seconds / 86_400
    return f"{days:,.0f} days" if days < 1000 else f"{days / 365:,.0f} years"
