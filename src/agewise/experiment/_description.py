"""What a results folder says of itself: the content of experiment.json, with a checksum."""

import hashlib
import platform
import shlex
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, PlainValidator, ValidationError

from agewise.experiment.plan import Plan, find_policy, variation_key
from agewise.files import NO_CHECKSUM, json_with_checksum, parse_json, verify_checksum
from agewise.part import Values
from agewise.provenance import code_digests, policy_source, scorer_files, source_names
from agewise.records import PolicyKey, RunInfo
from agewise.scenario import Scenario
from agewise.version import __version__

#: The format that is written and read.
_FORMAT = 3
_PACKAGES = ("numpy", "numba", "polars", "scipy")
_REMEDY = "put back the file as it was written, or give another folder"


class FolderError(ValueError):
    """A folder that cannot take these results; the message says why and what to do."""


class OtherResults(FolderError):
    """A folder of results that are not of this scenario and version."""


_Scenario = Annotated[Scenario, PlainValidator(Scenario.read), PlainSerializer(Scenario.resolved)]
if TYPE_CHECKING:
    _Key: TypeAlias = PolicyKey
else:  # whose nested values pydantic cannot follow
    _Key = Annotated[Any, PlainValidator(PolicyKey.from_json), PlainSerializer(PolicyKey.to_json)]


class Description(BaseModel):
    """The content of experiment.json: what the folder is to hold, and how it was made.

    ``baseline`` is ``None`` unless one was given; ``sources`` has the digests of what the runs are
    computed from (`agewise.provenance`), to which all of them must keep; ``code`` those of the
    package's own files, `SEVERAL` for one that has changed between runs; ``scenario_toml`` is the
    SHA-256 of the file scenario.toml.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    format: int
    version: str = Field(alias="agewise")
    scenario: _Scenario
    scenario_toml: str
    variations: list[Values]
    policies: list[_Key]
    seeds: list[int]
    baseline: _Key | None
    sources: dict[str, str]
    code: dict[str, str]
    command: str | None
    python: str
    packages: dict[str, str]
    checksum: str

    @property
    def scenarios(self) -> list[Scenario]:
        """The scenario under each variation."""
        return [self.scenario.with_(**varied) for varied in self.variations]

    @property
    def _varied(self) -> str:
        """The fields that a sweep varies, in words."""
        return ", ".join(sorted({n for each in self.variations for n in each})) or "nothing"

    @classmethod
    def of(cls, plan: Plan) -> "Description":
        """What this plan, carried out here and now, is described by."""
        return cls.model_construct(
            format=_FORMAT,
            agewise=__version__,
            scenario=plan.scenario,
            scenario_toml=digest(plan.scenario.to_toml().encode()),
            variations=[dict(varied) for varied in plan.variations],
            policies=plan.keys,
            seeds=plan.seeds,
            baseline=None,
            sources=plan.sources,
            code=code_digests(),
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
            _ = described.scenarios
            if described.baseline is not None:
                find_policy(described.baseline, described.policies)
        except ValidationError as error:
            first = error.errors()[0]
            where, why = ".".join(map(str, first["loc"])), first["msg"]
            why = why.removeprefix("Value error, ")
            raise FolderError(f"{file}: damaged: {where}: {why}: {_REMEDY}") from error
        except (ValueError, TypeError) as error:
            reason = str(error).replace("\n", "; ")
            raise FolderError(f"{file}: damaged: {reason}: {_REMEDY}") from error
        return described

    def to_bytes(self) -> bytes:
        """The content of experiment.json, with its checksum."""
        return json_with_checksum(self.model_dump(by_alias=True))

    def extended(self, new: "Description", path: Path) -> "Description":
        """With the policies, seeds and variations of both; nothing else may differ."""
        old_values, new_values, differs = self.scenario.resolved(), new.scenario.resolved(), ""
        if self.version != new.version:
            differs = f"made with agewise {self.version}, this is {new.version}"
        elif old_values != new_values:
            differs = f"holds results of another scenario ({difference(old_values, new_values)})"
        elif self._varied != new._varied:
            differs = f"holds results that vary {self._varied}, and this varies {new._varied}"
        if differs:
            remedy = "give another folder, or begin this one anew with --force"
            raise OtherResults(f"{path}: {differs}: {remedy}")
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

    def changed_code(self) -> list[str]:
        """The files of the package that are now other ones than those of the runs here."""
        return sorted({name for name, _ in code_digests().items() ^ self.code.items()})

    def _sources_after(self, new: "Description") -> dict[str, str]:
        """The new sources, and the old ones of what the new plan does not have.

        A policy that is now the package's own has no source; a file that is gone keeps its digest.
        """
        again = {policy_source(policy.name) for policy in new.policies}
        kept = {name: known for name, known in self.sources.items() if name not in again}
        return kept | dict(new.sources)

    def run(self, scenario: Scenario, resolved: Values, policy: PolicyKey, seed: int) -> RunInfo:
        """What the file of a run must say of it, in so far as that is known beforehand."""
        names = {*source_names(scenario), policy_source(policy.name), *scorer_files(policy)}
        sources = {name: known for name, known in self.sources.items() if name in names}
        return RunInfo(resolved, policy, seed, self.version, None, None, (), sources)


def difference(old: Mapping[str, object], new: Mapping[str, object]) -> str:
    """The first value that differs, by its dotted name."""
    before, after = _flat(old), _flat(new)
    name = next((key for key in before | after if before.get(key) != after.get(key)), "")
    return f"{name} is {before.get(name, 'absent')} there and {after.get(name, 'absent')} here"


def _flat(values: Mapping[str, object], path: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for key, value in values.items():
        flat |= _flat(value, f"{path}{key}.") if isinstance(value, dict) else {path + key: value}
    return flat


def digest(content: bytes) -> str:
    """The SHA-256 of a file's content."""
    return hashlib.sha256(content).hexdigest()


def _require_format(values: object, file: Path) -> None:
    match values:
        case {"format": int(number)} if number == _FORMAT:
            return
        case {"format": int(number)}:
            whose, remedy = "an older", "run it again in another folder"
            if number > _FORMAT:
                whose, remedy = "a newer", f"this one reads up to {_FORMAT}"
            raise FolderError(f"{file}: written by {whose} version (format {number}); {remedy}")
    raise FolderError(f"{file}: damaged: it does not describe an experiment: {_REMEDY}")


def _command() -> str | None:
    """The command that made the results, for a shell to repeat; ``None`` from Python."""
    called = Path(sys.argv[0]).name == "agewise"
    return shlex.join(["agewise", *sys.argv[1:]]) if called else None
