"""What the schedules of finished runs were worth beside the optimum of the same rounds."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from agewise.age import f_alpha
from agewise.experiment.progress import progress
from agewise.files import write_whole
from agewise.radio import CellChannel, power_budget
from agewise.random import Streams
from agewise.scenario import Scenario
from agewise.spectrum import Uplink
from agewise.spectrum.exact import solve

if TYPE_CHECKING:
    from agewise.engines import Engine
    from agewise.experiment import Result
    from agewise.experiment.result import Entry
    from agewise.records import History

#: Steps of the search in a round, some seconds at most: nearly every round is proven before.
WORK_LIMIT = 3_000_000


@dataclass(frozen=True)
class Losses:
    """Of each round looked at: the weight that was scheduled, and the optimum.

    The weight is the sum of f_alpha(age) over the scheduled UEs. ``optima`` are the best values
    found, and ``bounds`` what no schedule can exceed; they agree where the optimum is proven.
    """

    rounds: list[int]
    values: list[float]
    optima: list[float]
    bounds: list[float]

    @property
    def per_round(self) -> float:
        """The mean share of the optimum that a round loses; NaN if no round had any to lose."""
        shares = [
            1.0 - value / best
            for value, best in zip(self.values, self.optima, strict=True)
            if best > 0
        ]
        return float(np.mean(shares)) if shares else float("nan")

    @property
    def over_run(self) -> float:
        """The share of the optima of all rounds together that was lost."""
        whole = sum(self.optima)
        return 1.0 - sum(self.values) / whole if whole > 0 else float("nan")

    @property
    def proven(self) -> int:
        """In how many rounds the optimum is proven."""
        return sum(
            bound <= best * (1 + 1e-9) for bound, best in zip(self.bounds, self.optima, strict=True)
        )


def losses_of_run(history: "History", every: int = 10, work_limit: int = WORK_LIMIT) -> Losses:
    """The losses of a run in every so many rounds.

    Channel and ages of a round follow from the history; alpha is the scenario's ``age_alpha``.
    """
    info = history.info
    scenario = Scenario.model_validate(info.scenario)
    channel = CellChannel.of(scenario.cell, scenario.channel, Streams(info.seed))
    budget, threshold = power_budget(scenario.channel), scenario.channel.threshold_bits
    ages, owners = history.ages, history.owner
    looked_at = list(range(every - 1, len(history), every))
    values, optima, bounds = [], [], []
    for t in looked_at:
        before = ages[t - 1] if t else np.zeros_like(ages[0])
        weights = f_alpha(before, scenario.run.age_alpha)
        scheduled = np.unique(owners[t][owners[t] >= 0])
        value = float(weights[scheduled].sum())
        best = solve(Uplink(channel.gains(t), budget, threshold), weights, work_limit=work_limit)
        values.append(value)
        optima.append(max(value, best.value))
        bounds.append(max(value, best.bound))
    return Losses(looked_at, values, optima, bounds)


@dataclass(frozen=True, eq=False)
class _Task:
    """One run whose losses are wanted, and the file that will keep them."""

    file: Path
    history: "History"
    every: int
    work_limit: int


def losses_of(
    result: "Result",
    engine: "Engine",
    *,
    every: int = 10,
    work_limit: int = WORK_LIMIT,
    quiet: bool = False,
) -> list[tuple["Entry", Losses]]:
    """The losses of every finished run, kept in the folder's ``optimum/`` and not redone."""
    if not 1 <= every <= result.scenario.run.rounds:
        raise ValueError(
            f"every must be from 1 to the {result.scenario.run.rounds} rounds of a run, not {every}"
        )
    folder = result.path / "optimum"
    folder.mkdir(exist_ok=True)
    files = {
        entry.file: folder / f"{entry.file.stem}--every-{every}.json" for entry in result.entries
    }
    missing = [
        _Task(
            files[entry.file],
            result.history(entry.policy, entry.seed, entry.variation),
            every,
            work_limit,
        )
        for entry in result.entries
        if _kept(files[entry.file], work_limit) is None
    ]
    with progress(len(missing), quiet=quiet, what="runs solved") as shown:
        for task, losses in engine.run(_measure, missing):
            with write_whole(task.file) as temporary:
                kept = {"work_limit": work_limit} | asdict(losses)
                temporary.write_text(json.dumps(kept) + "\n", encoding="utf-8")
            shown.advance(len(losses.rounds))
    return list(_all_kept(result, files, work_limit))


def _measure(task: _Task) -> Losses:
    return losses_of_run(task.history, task.every, task.work_limit)


def _kept(file: Path, work_limit: int) -> Losses | None:
    """What a file keeps, or nothing if there is none that is whole and of this limit."""
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        kept = json.loads(file.read_text(encoding="utf-8"))
        if kept.pop("work_limit") == work_limit:
            return Losses(**kept)
    return None


def _all_kept(
    result: "Result", files: dict[Path, Path], work_limit: int
) -> Iterator[tuple["Entry", Losses]]:
    for entry in result.entries:
        losses = _kept(files[entry.file], work_limit)
        if losses is not None:
            yield entry, losses
