"""The results in a folder, finished or not."""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from agewise.experiment.folder import Folder, FolderError
from agewise.records import History
from agewise.scenario import Scenario

if TYPE_CHECKING:
    import pandas
    import polars


@dataclass(frozen=True, eq=False)
class Entry:
    """One finished cell: what it was, and where it is."""

    variation: Mapping[str, Any]
    policy: str
    seed: int
    file: Path


@dataclass(frozen=True, eq=False)
class Result:
    """All finished cells of a folder. ``damaged`` names files that cannot be read."""

    path: Path
    scenario: Scenario
    variations: list[Mapping[str, Any]]
    policies: list[str]
    seeds: list[int]
    entries: list[Entry]
    damaged: list[str]
    expected: int

    @classmethod
    def open(cls, path: Path | str) -> "Result":
        """What is whole in this folder, while it is still being filled or after."""
        folder = Folder(Path(path))
        described = folder.description()
        scenario = _scenario(described["scenario"], folder.path)
        variations: list[Mapping[str, Any]] = described["variations"]
        of_scenario = {
            _key(scenario.with_(**variation).resolved()): variation for variation in variations
        }
        entries, damaged = [], []
        for file in sorted(folder.cells.glob("*.parquet")):
            try:
                info = History.load(file).info
            except ValueError as error:
                damaged.append(str(error))
                continue
            variation = of_scenario.get(_key(info.scenario))
            if variation is not None:
                entries.append(Entry(variation, _label(info), info.seed, file))
        policies = described["policies"]
        seeds = sorted(described["seeds"])
        expected = len(variations) * len(policies) * len(seeds)
        return cls(folder.path, scenario, variations, policies, seeds, entries, damaged, expected)

    def history(
        self, policy: str, seed: int = 0, variation: Mapping[str, Any] | None = None
    ) -> History:
        """The rounds of one cell. A policy's name is enough where only one has it."""
        label = self.label(policy)
        for entry in self.entries:
            if (entry.policy, entry.seed) == (label, seed) and entry.variation == (variation or {}):
                return _load(entry.file)
        raise ValueError(f"{self.path}: no finished cell of {label} with seed {seed}")

    def label(self, policy: str) -> str:
        """The full name of a policy of this result."""
        found = [name for name in self.policies if policy in (name, name.split("(")[0])]
        if len(found) != 1:
            problem = "is not one" if not found else "means several"
            raise ValueError(f"{policy!r} {problem} of the policies: {', '.join(self.policies)}")
        return found[0]

    def histories(self, policy: str, variation: Mapping[str, Any]) -> dict[int, History]:
        """All finished seeds of a policy under a variation."""
        return {
            entry.seed: _load(entry.file)
            for entry in sorted(self.entries, key=lambda entry: entry.seed)
            if entry.policy == policy and entry.variation == variation
        }

    def accuracy(
        self, policy: str, variation: Mapping[str, Any] | None = None
    ) -> NDArray[np.float64]:
        """``[seed, round]`` of the finished seeds, in rising order."""
        histories = self.histories(self.label(policy), variation or {})
        return np.array([history.accuracy for history in histories.values()])

    def table(self) -> "polars.DataFrame":
        """A row per policy and variation: intervals over seeds and paired differences."""
        from agewise.experiment.summary import summarise

        return summarise(self)

    def to_polars(self) -> "polars.DataFrame":
        """All rounds of all finished cells, with their policy, seed and variation."""
        import polars as pl

        if not self.entries:
            raise FolderError(f"{self.path}: no cell is finished yet")
        return pl.concat(
            _load(entry.file).frame.select(
                pl.lit(entry.policy).alias("policy"),
                pl.lit(entry.seed).alias("seed"),
                *(pl.lit(value).alias(name) for name, value in entry.variation.items()),
                pl.all(),
            )
            for entry in self.entries
        )

    def to_pandas(self) -> "pandas.DataFrame":
        """`to_polars` for those who want pandas (``pip install 'agewise[pandas]'``)."""
        from agewise.records import as_pandas

        return as_pandas(self.to_polars())


def _load(file: Path) -> History:
    """The history in a file, read once as long as the file stays what it is."""
    state = file.stat()
    return _load_state(file, state.st_mtime_ns, state.st_size, state.st_ino)


@functools.lru_cache(maxsize=4096)
def _load_state(file: Path, *_state: int) -> History:
    return History.load(file)


def _scenario(values: Mapping[str, Any], path: Path) -> Scenario:
    try:
        return Scenario.model_validate(values)
    except ValueError as error:
        raise FolderError(
            f"{path / 'experiment.json'}: its scenario is damaged: {error}"
        ) from error


def _label(info: Any) -> str:
    inside = ", ".join(f"{name}={value}" for name, value in info.parameters.items())
    return f"{info.policy}({inside})" if inside else str(info.policy)


def _key(scenario: Mapping[str, Any]) -> str:
    return json.dumps(scenario, sort_keys=True)
