"""What an experiment would take, said before it runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agewise.engines import Engine, Local
from agewise.experiment.folder import Folder
from agewise.experiment.progress import duration_text
from agewise.experiment.runs import Plan, Run, with_same_samples
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
    seconds, processes = expected_of(missing, engine)
    rounds = sum(run.scenario.run.rounds for run in missing)
    return Forecast(len(runs), len(runs) - len(missing), rounds, seconds, processes, Path(out))


def forecast_all(plans: Mapping[Path, Plan], out: Path | str, engine: Engine) -> Forecast:
    """What carrying out the plans one after the other takes, each in its folder below ``out``."""
    parts = [forecast(plan, folder, engine) for folder, plan in plans.items()]
    return Forecast(
        runs=sum(part.runs for part in parts),
        finished=sum(part.finished for part in parts),
        rounds=sum(part.rounds for part in parts),
        seconds=sum(part.seconds for part in parts),
        processes=max(part.processes for part in parts),
        out=Path(out),
    )


def expected_of(runs: list[Run], engine: Engine) -> tuple[float, int]:
    """Roughly how many seconds these runs take, and the processes that they are divided among."""
    groups = len(with_same_samples(runs))
    processes = max(engine.processes(groups), 1) if isinstance(engine, Local) else 1
    return sum(expected_seconds(run.scenario, run.policy) for run in runs) / processes, processes
