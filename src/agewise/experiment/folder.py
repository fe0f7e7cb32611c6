"""A results folder that explains itself, is never half written, and notices what was changed."""

import contextlib
import datetime
import fcntl
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from agewise.experiment.description import Description, FolderError, difference, digest
from agewise.experiment.runs import Plan, Run, find_policy
from agewise.files import write_whole
from agewise.records import PolicyKey, read_info
from agewise.version import __version__


class Identity(NamedTuple):
    """What a run's file must say of its run: the resolved scenario, and the rest."""

    scenario: Mapping[str, Any]
    policy: PolicyKey
    seed: int
    version: str


@dataclass(frozen=True)
class Folder:
    """Results at ``path``: scenario.toml, experiment.json, log.txt and runs/*.parquet."""

    path: Path

    @property
    def runs(self) -> Path:
        """Where the finished runs are."""
        return self.path / "runs"

    @property
    def description_file(self) -> Path:
        """The file that says what the folder is to hold."""
        return self.path / "experiment.json"

    def file_names(self) -> set[str]:
        """The names of the files of runs that are there."""
        return {file.name for file in self.runs.glob("*.parquet")}

    def description(self) -> Description:
        """What experiment.json says, once it and scenario.toml are found to be as written."""
        try:
            content = self.description_file.read_bytes()
        except OSError:
            raise FolderError(f"{self.path}: not a results folder (no experiment.json)") from None
        described = Description.from_bytes(content, self.description_file)
        self._check_toml(described)
        return described

    def problem(self, name: str, expected: Identity) -> str | None:
        """What is wrong with the file of a run, in one sentence; ``None`` if nothing is."""
        file = self.runs / name
        try:
            info = read_info(file)
        except ValueError as error:
            return str(error)
        for what, found, wanted in (
            ("policy", info.policy, expected.policy),
            ("seed", info.seed, expected.seed),
            ("version", info.version, expected.version),
        ):
            if found != wanted:
                return f"{file}: holds a run of the {what} {found}, not {wanted}, as its name says"
        if info.scenario != expected.scenario:
            differs = difference(info.scenario, expected.scenario)
            return f"{file}: holds a run of another scenario ({differs})"
        return None

    @contextlib.contextmanager
    def opened(self, plan: Plan) -> Iterator[None]:
        """The folder made or continued for this plan, closed to other processes meanwhile."""
        if plan.baseline is not None and not self.description_file.exists():
            find_policy(plan.baseline, plan.keys)  # a mistake should leave no folder behind
        with contextlib.ExitStack() as held:
            with self._writing():
                self.runs.mkdir(parents=True, exist_ok=True)
                held.enter_context(_locked(self.path))
                self._describe(plan)
                for leftover in self.path.rglob(".*.tmp"):  # of a process that was killed
                    leftover.unlink()
            yield

    def unfinished(self, runs: list[Run]) -> list[Run]:
        """The runs whose file is not there, or not what it should be, which is logged."""
        present = self.file_names()
        scenarios = {id(run.scenario): run.scenario for run in runs}
        resolved = {number: scenario.resolved() for number, scenario in scenarios.items()}
        missing = []
        for run in runs:
            name, scenario = run.file_name, resolved[id(run.scenario)]
            if name in present:
                problem = self.problem(
                    name, Identity(scenario, run.policy.key, run.seed, __version__)
                )
                if problem is None:
                    continue
                self.log(f"run again: {problem}")
            missing.append(run)
        return missing

    def keep(self, run: Run, content: bytes) -> None:
        """Write the file of a finished run."""
        with self._writing(), write_whole(self.runs / run.file_name) as temporary:
            temporary.write_bytes(content)

    def log(self, line: str) -> None:
        """Add a line with the time to log.txt."""
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")
        with self._writing(), (self.path / "log.txt").open("a", encoding="utf-8") as file:
            file.write(f"{now} {line}\n")

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """What the system says against writing here, as one sentence."""
        try:
            yield
        except OSError as error:
            raise FolderError(f"{self.path}: cannot be written: {error.strerror}") from error

    def _check_toml(self, described: Description) -> None:
        toml = self.path / "scenario.toml"
        try:
            content = toml.read_bytes()
        except FileNotFoundError:
            return  # no run depends on it, and continuing writes it again
        except OSError as error:
            raise FolderError(f"{toml}: cannot be read: {error.strerror}") from error
        if digest(content) != described.scenario_toml:
            raise FolderError(
                f"{toml}: changed since it was written, but the runs are of the scenario that "
                "experiment.json holds: delete it, or give another folder for another scenario"
            )

    def _describe(self, plan: Plan) -> None:
        described = Description.of(plan)
        if self.description_file.exists():
            described = self.description().extended(described, self.path)
        elif self.file_names():
            raise FolderError(
                f"{self.path}: holds runs but no experiment.json that says of what: give another "
                "folder"
            )
        if plan.baseline is not None:
            baseline = find_policy(plan.baseline, described.policies)
            described = replace(described, baseline=baseline)
        toml = self.path / "scenario.toml"
        if not (toml.exists() and self.description_file.exists()):
            text = plan.scenario.to_toml()
            described = replace(described, scenario_toml=digest(text))
            with write_whole(toml) as temporary:
                temporary.write_text(text, encoding="utf-8")
        with write_whole(self.description_file) as temporary:
            temporary.write_bytes(described.to_bytes())


def strays(names: Iterable[str], expected: set[str], folder: Folder) -> list[str]:
    """A sentence on each file that is none of the expected ones."""
    return [
        f"{folder.runs / name}: no run of this experiment has this name: renamed or copied here"
        for name in sorted(set(names) - expected)
    ]


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Only one process at a time; the system lets go of the lock if the process dies."""
    with (path / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FolderError(f"{path}: another process is working in this folder") from None
        yield
