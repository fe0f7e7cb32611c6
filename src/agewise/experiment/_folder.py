"""A results folder that explains itself, is never half written, and notices what was changed."""

import contextlib
import datetime
import fcntl
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agewise.checks import visible
from agewise.experiment._description import (
    Description,
    FolderError,
    OtherResults,
    difference,
    digest,
)
from agewise.experiment.plan import Plan, Run, find_policy
from agewise.files import (
    NotRegularFile,
    clear_leftovers,
    json_with_checksum,
    open_regular_file,
    parse_json,
    read_regular_file,
    verify_checksum,
    write_whole,
)
from agewise.provenance import SEVERAL, source_text
from agewise.radio import TraceChannel
from agewise.records import PolicyKey, RunInfo, read_info
from agewise.scenario import Scenario
from agewise.tables import Variation
from agewise.version import __version__

#: The largest experiment.json, scenario.toml or record of a failed run that is read.
_MOST_BYTES = 16 * 2**20
_RUN, _FAILED = ".parquet", ".failed.json"


class Outdated(ValueError):
    """A run that is whole, but of sources that are no longer what they were: ``changed``."""

    def __init__(self, message: str, changed: list[str]) -> None:
        super().__init__(message)
        self.changed = changed


@dataclass(frozen=True)
class Folder:
    """Results at ``path``: scenario.toml, experiment.json, log.txt and runs/.

    A finished run is a .parquet file in runs/, one that failed a .failed.json file. Nothing is
    read or written through a link, and nothing is read that is not a regular file, for the folder
    may be somebody else's.
    """

    path: Path

    @property
    def runs(self) -> Path:
        """Where the finished runs are."""
        return self.path / "runs"

    @property
    def description_file(self) -> Path:
        """The file that says what the folder is to hold."""
        return self.path / "experiment.json"

    @property
    def scenario_file(self) -> Path:
        """The scenario for people to read."""
        return self.path / "scenario.toml"

    def file_names(self) -> set[str]:
        """The names of the files of finished runs that are there."""
        return self._names(_RUN)

    def failed_names(self) -> set[str]:
        """The names that the files of failed runs would have if they had not failed."""
        return {name.removesuffix(_FAILED) + _RUN for name in self._names(_FAILED)}

    def _names(self, ending: str) -> set[str]:
        if self.runs.is_symlink():
            raise FolderError(f"{self.runs}: a link, which is not followed: put the folder there")
        try:
            return {file.name for file in self.runs.iterdir() if file.name.endswith(ending)}
        except (FileNotFoundError, NotADirectoryError):
            return set()
        except OSError as error:
            raise FolderError(f"{self.runs}: cannot be read: {error.strerror}") from error

    def description(self) -> Description:
        """What experiment.json says, once it and scenario.toml are found to be as written."""
        try:
            content = _read(self.description_file)
        except (FileNotFoundError, NotADirectoryError):
            raise FolderError(f"{self.path}: not a results folder (no experiment.json)") from None
        described = Description.from_bytes(content, self.description_file)
        self._check_toml(described)
        return described

    def require(self, name: str, expected: RunInfo) -> None:
        """``ValueError`` with one sentence unless the file of a run is whole and what it should be.

        `Outdated` if it is just computed from something else.
        """
        file = self.runs / name
        info = read_info(file)
        for what in ("policy", "seed", "version"):
            found, wanted = getattr(info, what), getattr(expected, what)
            if found != wanted:
                raise ValueError(
                    f"{file}: holds a run of the {what} {found}, not {wanted}, as its name says"
                )
        if info.scenario != expected.scenario:
            differs = difference(info.scenario, expected.scenario)
            raise ValueError(f"{file}: holds a run of another scenario ({differs})")
        names = {**expected.sources, **info.sources}
        changed = [n for n in names if info.sources.get(n) != expected.sources.get(n)]
        if changed:
            listed = " and ".join(map(source_text, changed))
            raise Outdated(f"{file}: {listed} has changed since it was computed", changed)

    def failure(self, name: str, expected: RunInfo) -> str:
        """Why the run failed whose file would have this name; ``ValueError`` if damaged."""
        file = self.failed_file(name)
        try:
            content = _read(file)
            values = parse_json(content.decode("utf-8"))
        except (OSError, ValueError) as error:
            raise ValueError(f"{file}: damaged: {error}") from error
        if not verify_checksum(content) or not isinstance(values, dict):
            raise ValueError(f"{file}: damaged: its content does not match its checksum")
        named = values.get("policy"), values.get("seed"), values.get("agewise")
        if named != (expected.policy.to_json(), expected.seed, expected.version):
            raise ValueError(f"{file}: tells of another run than its name says")
        return str(values.get("reason"))

    @contextlib.contextmanager
    def opened(self, plan: Plan, *, force: bool = False) -> Iterator[Description]:
        """The folder made or continued for this plan, closed to other processes meanwhile.

        With ``force`` it is begun anew unless it holds results of this plan's scenario, version
        and code; without runs that are finished it is begun anew anyway for another scenario.
        """
        if plan.baseline is not None and not self.description_file.exists():
            find_policy(plan.baseline, plan.keys)  # a mistake should leave no folder behind
        with contextlib.ExitStack() as held:
            with self._writing():
                self._names(_RUN)
                self.runs.mkdir(parents=True, exist_ok=True)
                held.enter_context(_locked(self.path))
                described = self._describe(plan, force=force)
                clear_leftovers(self.path)
                clear_leftovers(self.runs)
            yield described

    def _clear(self) -> None:
        """Delete the results here, and only files that an experiment writes."""
        for name in sorted(self.file_names()):
            (self.runs / name).unlink()
        for name in sorted(self.failed_names()):
            self.failed_file(name).unlink(missing_ok=True)
        for file in (self.description_file, self.scenario_file):
            file.unlink(missing_ok=True)
        self.log("begun anew: what was here before is deleted")

    def unfinished(self, runs: list[Run], described: Description) -> tuple[list[Run], list[str]]:
        """The runs that are to be computed, and a sentence on each source that has changed.

        One is on the package's own files: what they computed stays. The files of the runs are not
        there, not what they should be, which is logged, or computed from something else than would
        be now.
        """
        present, failed = self.file_names(), self.failed_names()
        scenarios = {id(run.scenario): run.scenario for run in runs}
        resolved = {number: scenario.resolved() for number, scenario in scenarios.items()}
        missing, changed = [], Counter[str]()
        for run in runs:
            name, key = run.file_name, run.policy.key
            if name in present:
                expected = described.run(run.scenario, resolved[id(run.scenario)], key, run.seed)
                try:
                    self.require(name, expected)
                except ValueError as problem:
                    changed.update(problem.changed if isinstance(problem, Outdated) else ())
                    self.log(f"run again: {problem}")
                else:
                    if name in failed:  # killed between writing the one and deleting the other
                        self.failed_file(name).unlink(missing_ok=True)
                    continue
            missing.append(run)
        sentences = [_computed_again(name, count) for name, count in changed.items()]
        if other := described.changed_code():
            sentences.append(_other_code(self.path, other))
            if missing:
                code = described.code | dict.fromkeys(other, SEVERAL)
                mixed = described.model_copy(update={"code": code})
                with self._writing():
                    write_whole(self.description_file, mixed.to_bytes())
        return missing, sentences

    def keep(self, run: Run, content: bytes) -> None:
        """Write the file of a finished run."""
        with self._writing():
            write_whole(self.runs / run.file_name, content)
            self.failed_file(run.file_name).unlink(missing_ok=True)

    def keep_failure(self, run: Run, reason: str, details: str) -> None:
        """Write down that a run failed and why, and its details in the log."""
        values = {
            "agewise": __version__,
            "policy": run.policy.key.to_json(),
            "seed": run.seed,
            "variation": dict(run.variation),
            "reason": reason,
        }
        with self._writing():
            write_whole(self.failed_file(run.file_name), json_with_checksum(values))
        where = run_text(run.variation, run.policy.key, run.seed)
        self.log(f"failed: {where}: {reason}", details)

    def failed_file(self, name: str) -> Path:
        """Where it is written that a run failed whose file would have this name."""
        return self.runs / (name.removesuffix(_RUN) + _FAILED)

    def log(self, line: str, details: str = "") -> None:
        """Add a line with the time to log.txt, and below it details of several lines."""
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")
        below = "".join(f"    {visible(each)}\n" for each in details.splitlines())
        with self._writing():
            log = self.path / "log.txt"
            handle = open_regular_file(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                if os.fstat(handle).st_nlink > 1:
                    raise NotRegularFile(log, "a second name of another file")
                file.write(f"{now} {visible(line)}\n{below}")

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """What the system says against writing here, as one sentence."""
        try:
            yield
        except NotRegularFile as error:
            raise FolderError(
                f"{error.filename}: {error.strerror}, and is not written to: take it away, or give "
                "another folder"
            ) from error
        except OSError as error:
            raise FolderError(f"{self.path}: cannot be written: {error.strerror}") from error
        except RecursionError as error:
            raise FolderError(f"{self.path}: cannot be written: too many levels") from error

    def lost(self) -> list[str]:
        """A sentence on each file that no run depends on and that is not there."""
        if self.scenario_file.exists():
            return []
        return [f"{self.scenario_file}: deleted; going on with the experiment writes it again"]

    def _check_toml(self, described: Description) -> None:
        toml = self.scenario_file
        try:
            content = _read(toml)
        except FileNotFoundError:
            return  # no run depends on it, and continuing writes it again
        if digest(content) != described.scenario_toml:
            raise FolderError(
                f"{toml}: changed since it was written, but the runs are of the scenario that "
                "experiment.json holds: delete it, or give another folder for another scenario"
            )

    def _describe(self, plan: Plan, *, force: bool) -> Description:
        described, anew = Description.of(plan), False
        continued = self.description_file.exists() or self.description_file.is_symlink()
        if continued:
            try:
                before = self.description()
                anew = bool(before.changed_code()) and (force or not self.file_names())
                described = described if anew else before.extended(described, self.path)
            except FolderError as error:
                anew = force or (isinstance(error, OtherResults) and not self.file_names())
                if not anew:
                    raise
        elif self.file_names():
            raise FolderError(
                f"{self.path}: holds runs but no experiment.json that says of what: give another "
                "folder"
            )
        if plan.baseline is not None:
            baseline = find_policy(plan.baseline, described.policies)
            described = described.model_copy(update={"baseline": baseline})
        if anew:
            self._clear()
        if not (self.scenario_file.exists() and continued):
            toml = plan.scenario.to_toml().encode()
            described = described.model_copy(update={"scenario_toml": digest(toml)})
            write_whole(self.scenario_file, toml)
        write_whole(self.description_file, described.to_bytes())
        return described


def run_text(variation: Variation, policy: PolicyKey, seed: int) -> str:
    """Which run is meant, in words."""
    varied = [f"{name}={value}" for name, value in variation.items()]
    return ", ".join([str(policy), f"seed {seed}", *varied])


def unexpected_files(folder: Folder, finished: Iterable[str], failed: Iterable[str]) -> list[str]:
    """A sentence on each of these files, which are none of the expected ones."""
    files = [*(folder.runs / name for name in finished), *map(folder.failed_file, failed)]
    return [
        f"{file}: no run of this experiment has this name: renamed or copied here"
        for file in sorted(files)
    ]


def _computed_again(name: str, count: int) -> str:
    counted = "1 run is" if count == 1 else f"{count} runs are"
    return f"{source_text(name)} has changed since: {counted} computed again"


def _other_code(path: Path, files: list[str]) -> str:
    listed = ", ".join(files[:3]) + (f" and {len(files) - 3} others" if files[3:] else "")
    return (
        f"{path}: the package has changed since these results were begun ({listed}): what is "
        "finished stays as it is, and --force computes it anew"
    )


def _read(file: Path) -> bytes:
    """The content of a file of the folder; `FolderError` if it is there but no plain file."""
    try:
        return read_regular_file(file, _MOST_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except NotRegularFile as error:
        raise FolderError(f"{file}: not read: it is {error.strerror}") from error
    except OSError as error:
        raise FolderError(f"{file}: cannot be read: {error.strerror}") from error


def replay_scenario(folder: Path | str, learning: Scenario | None = None) -> Scenario:
    """The scenario that replays the links in a results folder of a recorded federation.

    What is learned is as the folder says, or as in the scenario ``learning``: samples that stayed
    on the clients of a live federation cannot be simulated.
    """
    path = Path(folder)
    recorded = Folder(path).description().scenario
    channel = recorded.channel
    if not isinstance(channel, TraceChannel):
        raise FolderError(f"{path}: its links were not recorded but modelled: no trace to replay")
    beside = path.resolve() / Path(channel.path).name
    if beside.exists():  # the folder may have been moved
        channel = channel.model_copy(update={"path": str(beside)})
    base = recorded if learning is None else learning
    return base.with_(
        **{
            "channel": channel.model_dump(),
            "threshold": recorded.threshold.model_dump(),
            "timing": recorded.timing.model_dump(),
            "cell.ues": recorded.cell.ues,
            "cell.subchannels": recorded.cell.subchannels,
            "run.rounds": recorded.run.rounds,
        }
    )


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Only one process at a time; the system lets go of the lock if the process dies."""
    handle = open_regular_file(path / ".lock", os.O_RDWR | os.O_CREAT)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            raise FolderError(f"{path}: another process is working in this folder") from None
        try:
            yield
        finally:
            # A worker that is being started has the handle too, until it runs its own program:
            # closing ours alone would leave the folder locked for that moment.
            fcntl.flock(handle, fcntl.LOCK_UN)
    finally:
        os.close(handle)
