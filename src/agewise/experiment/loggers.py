"""Runs handed to other tools as they finish: CSV, TensorBoard, Weights & Biases, Trackio."""

import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from agewise.checks import short
from agewise.dependencies import pl, require
from agewise.experiment.plan import Run
from agewise.records import History

NAMES = ("csv", "tensorboard", "wandb", "trackio")
_LEARNED = ("accuracy", "test_loss", "objective", "gradient_diversity")
_COSTS = ("seconds", "channel_uses", "bits")


@dataclass(frozen=True)
class LoggedRun:
    """A finished run: a name, what was set, and per round what was measured, by name."""

    name: str
    settings: Mapping[str, object]
    rounds: Sequence[Mapping[str, float]]

    @classmethod
    def of(cls, run: Run, history: History) -> "LoggedRun":
        """The numbers of each round that are known."""
        settings = {
            "policy": run.policy.name,
            **{f"policy.{name}": value for name, value in run.policy.parameters.items()},
            "seed": run.seed,
            **run.variation,
        }
        known = [name for name in (*_LEARNED, *_COSTS) if name in history.frame.columns]
        columns = {name: history.numbers(name) for name in known} | {
            "age_mean": history.ages.mean(axis=1),
            "age_largest": history.ages.max(axis=1),
            "received": history.frame["received"].list.len().to_numpy(),
        }
        rounds = [
            {n: float(x[t]) for n, x in columns.items() if math.isfinite(x[t])}
            for t in range(history.frame.height)
        ]
        return cls(run.file_name.removesuffix(".parquet"), settings, rounds)


class Logger(Protocol):
    """Takes finished runs; ``name`` is that of its folder below ``logs/`` of the results."""

    @property
    def name(self) -> str:
        """What it is called."""

    def log(self, run: LoggedRun) -> None:
        """Write one run; one that was written before is replaced."""


@dataclass(frozen=True)
class _CsvLogger:
    """One CSV a run, with a row a round, in a folder."""

    folder: Path
    name: str = "csv"

    def log(self, run: LoggedRun) -> None:
        """Write the file of this run."""
        self.folder.mkdir(parents=True, exist_ok=True)
        rows = [{"round": t, **values} for t, values in enumerate(run.rounds, start=1)]
        table = pl.DataFrame(rows, infer_schema_length=None)
        table.write_csv(self.folder / f"{run.name}.csv")


@dataclass(frozen=True)
class _TensorBoardLogger:
    """One folder a run, which TensorBoard shows as a curve: ``tensorboard --logdir FOLDER``."""

    folder: Path
    name: str = "tensorboard"

    def __post_init__(self) -> None:
        require("tensorboardX", "tensorboard")

    def log(self, run: LoggedRun) -> None:
        """Write the events of this run."""
        place = self.folder / run.name
        shutil.rmtree(place, ignore_errors=True)  # a second file would double every curve
        writer = require("tensorboardX", "tensorboard").SummaryWriter(str(place))
        try:
            writer.add_text(
                "settings", "\n".join(f"    {n} = {x}" for n, x in run.settings.items())
            )
            for t, values in enumerate(run.rounds, start=1):
                for name, value in values.items():
                    writer.add_scalar(name, value, t)
        finally:
            writer.close()


@dataclass(frozen=True)
class _TrackerLogger:
    """A module with ``init``, ``log`` and ``finish``, as wandb and trackio have them."""

    module: Any
    project: str
    name: str

    def log(self, run: LoggedRun) -> None:
        """One run of the tracker."""
        self.module.init(project=self.project, name=run.name, config=dict(run.settings))
        try:
            for t, values in enumerate(run.rounds, start=1):
                self.module.log({"round": t, **values})
        finally:
            self.module.finish()


def make_loggers(loggers: Sequence["Logger | str"], folder: Path | None) -> list[Logger]:
    """Loggers by name, with files in ``logs/`` of the results folder, or objects as they are."""
    return [_make(each, folder) for each in ([loggers] if isinstance(loggers, str) else loggers)]


def _make(name: "Logger | str", folder: Path | None) -> Logger:
    if not isinstance(name, str):
        if not callable(getattr(name, "log", None)):
            raise ValueError(f"a logger is a name or has a log, not {short(repr(name))}")
        return name
    if name not in NAMES:
        raise ValueError(f"unknown logger {name!r}; there are {', '.join(NAMES)}")
    if name in ("wandb", "trackio"):
        project = "agewise" if folder is None else folder.resolve().name
        return _TrackerLogger(require(name, name), project, name)
    if folder is None:
        raise ValueError(f"the logger {name} writes files: give a results folder with out=")
    kind = _CsvLogger if name == "csv" else _TensorBoardLogger
    return kind(folder / "logs" / name)


class Logged:
    """Which runs each logger of a results folder has had, in ``logs/NAME.txt``."""

    def __init__(self, loggers: Sequence[Logger], folder: Path) -> None:
        self.loggers, self.folder = loggers, folder / "logs"

    def log(self, run: Run, kept: Path, *, is_new: bool) -> None:
        """Hand a run to every logger, or if it is not new to those that have not had it."""
        loggers = [one for one in self.loggers if is_new or run.file_name not in self._had(one)]
        if not loggers:
            return
        described = LoggedRun.of(run, History.load(kept))
        self.folder.mkdir(exist_ok=True)
        for logger in loggers:
            logger.log(described)
            with (self.folder / f"{logger.name}.txt").open("a", encoding="utf-8") as file:
                file.write(f"{run.file_name}\n")

    def _had(self, logger: Logger) -> set[str]:
        file = self.folder / f"{logger.name}.txt"
        return set(file.read_text(encoding="utf-8").split("\n")) if file.exists() else set()
