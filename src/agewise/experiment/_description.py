"""What a results folder says of itself: the content of experiment.json, with a checksum."""

import hashlib
import json
import platform
import shlex
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    PlainSerializer,
    PlainValidator,
    ValidationError,
)

from agewise.experiment.plan import Plan, find_policy, variation_key
from agewise.files import NO_CHECKSUM, add_checksum, parse_json, verify_checksum
from agewise.provenance import policy_source, source_names
from agewise.records import PolicyKey
from agewise.scenario import Scenario
from agewise.version import __version__

#: The format that is written, and the oldest one that is still read.
_FORMAT = 2
_OLDEST = 2
_PACKAGES = ("numpy", "numba", "polars", "scipy")
_REMEDY = "put back the file as it was written, or give another folder"


class FolderError(ValueError):
    """A folder that cannot take these results; the message says why and what to do."""


def _scenario_of(values: Any) -> Scenario:
    return values if isinstance(values, Scenario) else Scenario.read(values)


def _key_of(values: object) -> PolicyKey:
    return values if isinstance(values, PolicyKey) else PolicyKey.from_json(values)


if TYPE_CHECKING:
    _Scenario: TypeAlias = Scenario
    _Key: TypeAlias = PolicyKey
else:  # of which pydantic should know no more than how they are read and written
    _Scenario = Annotated[Any, PlainValidator(_scenario_of), PlainSerializer(Scenario.resolved)]
    _Key = Annotated[Any, PlainValidator(_key_of), PlainSerializer(PolicyKey.to_json)]


class Description(BaseModel):
    """The content of experiment.json: what the folder is to hold, and how it was made.

    ``baseline`` is ``None`` unless one was given; ``sources`` has the digests of what the runs are
    computed from (`agewise.provenance`), to which all of them must keep; ``scenario_toml`` is the
    SHA-256 of the file scenario.toml.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    format: int
    agewise: str
    scenario: _Scenario
    scenario_toml: str
    variations: list[dict[str, Any]]
    policies: list[_Key]
    seeds: list[int]
    baseline: _Key | None
    sources: dict[str, str]
    command: str | None
    python: str
    packages: dict[str, str]
    checksum: str

    @property
    def version(self) -> str:
        """The version of the package that made the folder."""
        return self.agewise

    @property
    def scenarios(self) -> list[Scenario]:
        """The scenario under each variation."""
        return [self.scenario.with_(**varied) for varied in self.variations]

    @classmethod
    def of(cls, plan: Plan) -> "Description":
        """What this plan, carried out here and now, is described by."""
        return cls(
            format=_FORMAT,
            agewise=__version__,
            scenario=plan.scenario,
            scenario_toml=digest(plan.scenario.to_toml()),
            variations=[dict(varied) for varied in plan.variations],
            policies=plan.keys,
            seeds=plan.seeds,
            baseline=None,
            sources=plan.sources,
            command=_command(),
            python=platform.python_version(),
            packages={name: version(name) for name in _PACKAGES},
            checksum=NO_CHECKSUM,
        )

    @classmethod
    def from_bytes(cls, content: bytes, file: Path) -> "Description":
        """What `to_bytes` gave; `FolderError` names the file and what is wrong with it."""
        try:
            values = parse_json(content.decode("utf-8"))
        except ValueError as error:
            raise FolderError(f"{file}: damaged: {error}: {_REMEDY}") from error
        _require_format(values, file)
        if not verify_checksum(content):
            raise FolderError(
                f"{file}: changed since it was written (its checksum does not match): {_REMEDY}"
            )
        try:
            described = cls.model_validate(values)
            _ = (
                described.scenarios,
                described.baseline and find_policy(described.baseline, described.policies),
            )
        except ValidationError as error:
            first = error.errors()[0]
            where, why = (
                ".".join(map(str, first["loc"])),
                first["msg"].removeprefix("Value error, "),
            )
            raise FolderError(f"{file}: damaged: {where}: {why}: {_REMEDY}") from error
        except (ValueError, TypeError) as error:
            reason = str(error).replace("\n", "; ")
            raise FolderError(f"{file}: damaged: {reason}: {_REMEDY}") from error
        return described

    def to_bytes(self) -> bytes:
        """The content of experiment.json, with its checksum."""
        values = self.model_dump() | {"checksum": NO_CHECKSUM}
        return add_checksum((json.dumps(values, indent=2) + "\n").encode())

    def extended(self, new: "Description", path: Path) -> "Description":
        """With the policies, seeds and variations of both; nothing else may differ."""
        if self.version != new.version:
            raise FolderError(
                f"{path}: made with agewise {self.version}, this is {new.version}: give another "
                "folder, or begin this one anew with --force"
            )
        old_values, new_values = self.scenario.resolved(), new.scenario.resolved()
        if old_values != new_values:
            raise FolderError(
                f"{path}: holds results of another scenario "
                f"({difference(old_values, new_values)}): give another folder, or begin this "
                "one anew with --force"
            )
        varied = {variation_key(each): each for each in self.variations}
        for each in new.variations:
            varied.setdefault(variation_key(each), each)
        changes = {
            "variations": list(varied.values()),
            "policies": list(dict.fromkeys([*self.policies, *new.policies])),
            "seeds": list(dict.fromkeys([*self.seeds, *new.seeds])),
            "sources": self._sources_after(new),
        }
        return self.model_copy(update=changes)

    def _sources_after(self, new: "Description") -> dict[str, str]:
        """The new sources, and the old ones of what the new plan does not have.

        A policy that is now the package's own has no source; a file that is gone keeps its digest.
        """
        again = {policy_source(policy.name) for policy in new.policies}
        kept = {name: known for name, known in self.sources.items() if name not in again}
        return kept | dict(new.sources)

    def sources_for(self, scenario: Scenario, policy: PolicyKey) -> dict[str, str]:
        """The sources that a run of this policy must name."""
        names = {*source_names(scenario), policy_source(policy.name)}
        return {name: known for name, known in self.sources.items() if name in names}


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """The first value that differs, by its dotted name."""
    before, after = _flat(old), _flat(new)
    name = next((key for key in before | after if before.get(key) != after.get(key)), "")
    return f"{name} is {before.get(name, 'absent')} there and {after.get(name, 'absent')} here"


def _flat(values: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= _flat(value, f"{path}{key}.") if isinstance(value, dict) else {path + key: value}
    return flat


def digest(content: bytes | str) -> str:
    """The SHA-256 of a file's content."""
    raw = content.encode() if isinstance(content, str) else content
    return hashlib.sha256(raw).hexdigest()


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


def _command() -> str | None:
    """The command that made the results, for a shell to repeat; ``None`` from Python."""
    called = Path(sys.argv[0]).name == "agewise"
    return shlex.join(["agewise", *sys.argv[1:]]) if called else None
