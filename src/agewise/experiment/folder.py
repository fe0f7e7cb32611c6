"""A results folder that explains itself and is never half written."""

import contextlib
import datetime
import json
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from agewise.experiment.cells import Cell
from agewise.files import write_whole
from agewise.records import History
from agewise.scenario import Scenario
from agewise.version import __version__

_FORMAT = 1
_LISTS = ("variations", "policies", "seeds")
_NEEDED = ("agewise", "scenario", *_LISTS)


class FolderError(ValueError):
    """A folder that cannot take these results; the message says why and what to do."""


@dataclass(frozen=True)
class Folder:
    """Results at ``path``: scenario.toml, experiment.json, log.txt and cells/*.parquet."""

    path: Path

    @property
    def cells(self) -> Path:
        """Where the finished cells are."""
        return self.path / "cells"

    def description(self) -> dict[str, Any]:
        """What experiment.json says."""
        file = self.path / "experiment.json"
        try:
            described: Any = json.loads(file.read_text(encoding="utf-8"))
        except OSError:
            raise FolderError(f"{self.path}: not a results folder (no experiment.json)") from None
        except ValueError as error:
            raise FolderError(f"{file}: damaged: {error}") from error
        if not isinstance(described, dict) or "format" not in described:
            raise FolderError(f"{file}: damaged: it does not describe an experiment")
        if described["format"] != _FORMAT:
            raise FolderError(
                f"{file}: written in format {described['format']}, this version reads {_FORMAT}"
            )
        absent = [name for name in _NEEDED if name not in described]
        if absent:
            raise FolderError(f"{file}: damaged: there is no {absent[0]}")
        return dict(described)

    @contextlib.contextmanager
    def opened(self, scenario: Scenario, cells: list[Cell]) -> Iterator[None]:
        """The folder made or continued for these cells, closed to other processes meanwhile."""
        with contextlib.ExitStack() as held:
            with self._writing():
                self.cells.mkdir(parents=True, exist_ok=True)
                held.enter_context(_locked(self.path))
                self._describe(scenario, cells)
                for leftover in self.path.rglob(".*.tmp"):  # of a process that was killed
                    leftover.unlink()
            yield

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """What the system says against writing here, as one sentence."""
        try:
            yield
        except OSError as error:
            raise FolderError(f"{self.path}: cannot be written: {error.strerror}") from error

    def _describe(self, scenario: Scenario, cells: list[Cell]) -> None:
        described = self._made_here(scenario, cells)
        if (self.path / "experiment.json").exists():
            described = _merged(self.description(), described, self.path)
        elif any(self.cells.glob("*.parquet")):
            raise FolderError(
                f"{self.path}: holds cells but no experiment.json that says of what: give another "
                "folder"
            )
        else:
            with write_whole(self.path / "scenario.toml") as temporary:
                temporary.write_text(scenario.to_toml(), encoding="utf-8")
        with write_whole(self.path / "experiment.json") as temporary:
            temporary.write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")

    def _made_here(self, scenario: Scenario, cells: list[Cell]) -> dict[str, Any]:
        packages = ("numpy", "numba", "polars", "scipy")
        return {
            "format": _FORMAT,
            "agewise": __version__,
            "scenario": scenario.resolved(),
            "variations": _distinct([dict(cell.variation) for cell in cells]),
            "policies": _distinct([str(cell.policy) for cell in cells]),
            "seeds": _distinct([cell.seed for cell in cells]),
            "command": " ".join(["agewise", *sys.argv[1:]]) if _on_command_line() else None,
            "python": platform.python_version(),
            "packages": {name: version(name) for name in packages},
        }

    def finished(self, cell: Cell) -> History | None:
        """The cell's history if its file is whole, else nothing."""
        file = self.cells / cell.file_name
        if not file.exists():
            return None
        try:
            history = History.load(file)
        except ValueError as error:
            self.log(f"damaged, run again: {error}")
            return None
        expected = (cell.scenario.resolved(), cell.policy.name, cell.seed)
        info = history.info
        if (info.scenario, info.policy, info.seed) != expected or info.version != __version__:
            raise FolderError(f"{file} is of another scenario or version: give another folder")
        return history

    def keep(self, cell: Cell, content: bytes) -> None:
        """Write the file of a finished cell."""
        with self._writing(), write_whole(self.cells / cell.file_name) as temporary:
            temporary.write_bytes(content)

    def log(self, line: str) -> None:
        """Add a line with the time to log.txt."""
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")
        with self._writing(), (self.path / "log.txt").open("a", encoding="utf-8") as file:
            file.write(f"{now} {line}\n")


def _merged(old: dict[str, Any], new: dict[str, Any], path: Path) -> dict[str, Any]:
    """What both describe; more seeds, policies and variations may come, nothing else."""
    if old["agewise"] != new["agewise"]:
        raise FolderError(
            f"{path}: made with agewise {old['agewise']}, this is {new['agewise']}: give another "
            "folder"
        )
    if old["scenario"] != new["scenario"]:
        raise FolderError(
            f"{path}: holds results of another scenario "
            f"({_difference(old['scenario'], new['scenario'])}): give another folder"
        )
    return old | {name: _distinct(old[name] + new[name]) for name in _LISTS}


def _difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    """The first value that differs, by its dotted name."""
    before, after = _flat(old), _flat(new)
    name = next(key for key in before | after if before.get(key) != after.get(key))
    return f"{name} is {before.get(name, 'absent')} there and {after.get(name, 'absent')} here"


def _flat(values: dict[str, Any], path: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= _flat(value, f"{path}{key}.") if isinstance(value, dict) else {path + key: value}
    return flat


def _distinct(values: list[Any]) -> list[Any]:
    return [value for i, value in enumerate(values) if value not in values[:i]]


def _on_command_line() -> bool:
    return Path(sys.argv[0]).name == "agewise"


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Only one process at a time; the system lets go of the lock if the process dies."""
    import fcntl

    with (path / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FolderError(f"{path}: another process is working in this folder") from None
        yield
