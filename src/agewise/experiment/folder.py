"""A results folder that explains itself, is never half written, and notices what was changed."""

import contextlib
import datetime
import fcntl
import hashlib
import json
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from agewise.experiment.runs import Plan, Run, Variation, find_policy, variation_key
from agewise.files import NO_CHECKSUM, seal, seal_holds, write_whole
from agewise.records import PolicyKey, read_info
from agewise.scenario import Scenario
from agewise.version import __version__

#: The format that is written, and the oldest one that is still read.
_FORMAT = 2
_OLDEST = 2
_PACKAGES = ("numpy", "numba", "polars", "scipy")
_REMEDY = "put back the file as it was written, or give another folder"


class FolderError(ValueError):
    """A folder that cannot take these results; the message says why and what to do."""


class Identity(NamedTuple):
    """What a run's file must say of its run: the resolved scenario, and the rest."""

    scenario: Mapping[str, Any]
    policy: PolicyKey
    seed: int
    version: str


class _Content(BaseModel):
    """The members of experiment.json and their types."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    format: int
    agewise: str
    scenario: dict[str, Any]
    scenario_toml: str
    variations: list[dict[str, Any]]
    policies: list[dict[str, Any]]
    seeds: list[int]
    baseline: dict[str, Any] | None
    command: str | None
    python: str
    packages: dict[str, str]
    checksum: str


@dataclass(frozen=True, eq=False)
class Description:
    """What experiment.json says: what the folder is to hold, and how it was made.

    ``scenarios[variation]`` are the varied scenarios. ``baseline`` is ``None`` unless one was
    given; ``scenario_toml`` is the SHA-256 of the file scenario.toml.
    """

    version: str
    scenario: Scenario
    variations: list[Variation]
    scenarios: list[Scenario]
    policies: list[PolicyKey]
    seeds: list[int]
    baseline: PolicyKey | None
    scenario_toml: str
    command: str | None
    python: str
    packages: Mapping[str, str]

    @classmethod
    def of(cls, plan: Plan) -> "Description":
        """What this plan, carried out here and now, is described by."""
        return cls(
            version=__version__,
            scenario=plan.scenario,
            variations=plan.variations,
            scenarios=[plan.scenario.with_(**varied) for varied in plan.variations],
            policies=plan.keys,
            seeds=plan.seeds,
            baseline=None,
            scenario_toml=_digest(plan.scenario.to_toml()),
            command=_command(),
            python=platform.python_version(),
            packages={name: version(name) for name in _PACKAGES},
        )

    @classmethod
    def from_bytes(cls, content: bytes, file: Path) -> "Description":
        """What `to_bytes` gave; `FolderError` names the file and what is wrong with it."""
        try:
            values: object = json.loads(content.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise FolderError(f"{file}: damaged: {error}: {_REMEDY}") from error
        _require_format(values, file)
        if not seal_holds(content):
            raise FolderError(
                f"{file}: changed since it was written (its checksum does not match): {_REMEDY}"
            )
        try:
            return cls._read(_Content.model_validate(values))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise FolderError(f"{file}: damaged: {where}: {first['msg']}: {_REMEDY}") from error
        except (ValueError, TypeError) as error:
            reason = str(error).replace("\n", "; ")
            raise FolderError(f"{file}: damaged: {reason}: {_REMEDY}") from error

    @classmethod
    def _read(cls, content: _Content) -> "Description":
        scenario = Scenario.model_validate(content.scenario)
        policies = [PolicyKey.from_json(values) for values in content.policies]
        baseline = None
        if content.baseline is not None:
            baseline = find_policy(PolicyKey.from_json(content.baseline), policies)
        return cls(
            version=content.agewise,
            scenario=scenario,
            variations=list(content.variations),
            scenarios=[scenario.with_(**varied) for varied in content.variations],
            policies=policies,
            seeds=content.seeds,
            baseline=baseline,
            scenario_toml=content.scenario_toml,
            command=content.command,
            python=content.python,
            packages=content.packages,
        )

    def to_bytes(self) -> bytes:
        """The content of experiment.json, sealed by a checksum."""
        content = _Content(
            format=_FORMAT,
            agewise=self.version,
            scenario=self.scenario.resolved(),
            scenario_toml=self.scenario_toml,
            variations=[dict(varied) for varied in self.variations],
            policies=[key.to_json() for key in self.policies],
            seeds=self.seeds,
            baseline=None if self.baseline is None else self.baseline.to_json(),
            command=self.command,
            python=self.python,
            packages=dict(self.packages),
            checksum=NO_CHECKSUM,
        )
        return seal((json.dumps(content.model_dump(), indent=2) + "\n").encode())

    def extended(self, new: "Description", path: Path) -> "Description":
        """With the policies, seeds and variations of both; nothing else may differ."""
        if self.version != new.version:
            raise FolderError(
                f"{path}: made with agewise {self.version}, this is {new.version}: give another "
                "folder"
            )
        old_values, new_values = self.scenario.resolved(), new.scenario.resolved()
        if old_values != new_values:
            raise FolderError(
                f"{path}: holds results of another scenario "
                f"({_difference(old_values, new_values)}): give another folder"
            )
        varied = {
            variation_key(variation): (variation, scenario)
            for one in (new, self)
            for variation, scenario in zip(one.variations, one.scenarios, strict=True)
        }
        order = dict.fromkeys(map(variation_key, [*self.variations, *new.variations]))
        return replace(
            self,
            variations=[varied[key][0] for key in order],
            scenarios=[varied[key][1] for key in order],
            policies=list(dict.fromkeys([*self.policies, *new.policies])),
            seeds=list(dict.fromkeys([*self.seeds, *new.seeds])),
        )


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
            difference = _difference(info.scenario, expected.scenario)
            return f"{file}: holds a run of another scenario ({difference})"
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
        if _digest(content) != described.scenario_toml:
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
            described = replace(described, scenario_toml=_digest(text))
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


def _require_format(values: object, file: Path) -> None:
    number = values.get("format") if isinstance(values, dict) else None
    if not isinstance(number, int):
        raise FolderError(f"{file}: damaged: it does not describe an experiment: {_REMEDY}")
    if number < _OLDEST:
        raise FolderError(
            f"{file}: written by an older version (format {number}); run it again in another folder"
        )
    if number > _FORMAT:
        raise FolderError(
            f"{file}: written by a newer version (format {number}); this one reads up to {_FORMAT}"
        )


def _difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """The first value that differs, by its dotted name."""
    before, after = _flat(old), _flat(new)
    name = next((key for key in before | after if before.get(key) != after.get(key)), "")
    return f"{name} is {before.get(name, 'absent')} there and {after.get(name, 'absent')} here"


def _flat(values: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= _flat(value, f"{path}{key}.") if isinstance(value, dict) else {path + key: value}
    return flat


def _digest(content: bytes | str) -> str:
    raw = content.encode() if isinstance(content, str) else content
    return hashlib.sha256(raw).hexdigest()


def _command() -> str | None:
    """The command that made the results; ``None`` from Python."""
    called = Path(sys.argv[0]).name == "agewise"
    return " ".join(["agewise", *sys.argv[1:]]) if called else None


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Only one process at a time; the system lets go of the lock if the process dies."""
    with (path / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FolderError(f"{path}: another process is working in this folder") from None
        yield
