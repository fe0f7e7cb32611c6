"""Carry out a plan on an engine into a folder, continuing where an earlier run stopped."""

import contextlib
import functools
import itertools
import pickle
import shutil
import signal
import tempfile
import threading
import traceback
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from agewise.checks import path_of, require_memory, short
from agewise.engines import Engine, Inline, Local, make_engine
from agewise.experiment._description import FolderError
from agewise.experiment._folder import Folder
from agewise.experiment._progress import (
    Progress,
    RoundCounts,
    counter,
    duration_text,
    progress,
    round_counts,
    say,
)
from agewise.experiment.loggers import Logged, Logger, make_loggers
from agewise.experiment.plan import Plan, Run, product
from agewise.experiment.result import Result
from agewise.policies import Policy
from agewise.records import MOST_BYTES, RoundRecord
from agewise.resources import KeptMemory, expected_seconds, kept_memories
from agewise.scenario import Scenario
from agewise.simulation import simulate
from agewise.tables._words import counted

#: What is compared if nobody says: the paper's two policies.
_PAIR = ("age-based", "max-pack")
#: Work that is expected to take one core less than this happens in this process: to start others
#: would take longer.
_QUICK_S = 5.0
#: Set by Ctrl-C while this process carries out a plan.
_INTERRUPTED = threading.Event()
_OnRound = Callable[[RoundRecord], object]


class AllFailed(ValueError):
    """No run came to its end, each for another reason."""


@dataclass(frozen=True)
class RunOptions:
    """How runs are carried out.

    ``engine`` says where: local (processes), inline (this process), ray, an engine object, or auto:
    inline for work of a few seconds, else local. ``workers`` are the processes of local (one per
    core), ``address`` is that of a Ray cluster. ``quiet`` shows no progress; ``force`` begins a
    folder anew that holds another experiment, or results of other code; ``loggers`` get every
    finished run: csv, tensorboard, wandb, trackio or objects of your own; ``fail_fast`` stops at
    the first run that fails, and else the others go on; ``dry_run`` raises `DryRun`, which says
    what it would take, in place of a run.
    """

    engine: str | Engine = "auto"
    workers: int | None = None
    address: str | None = None
    quiet: bool = False
    force: bool = False
    loggers: Sequence[Logger | str] = ()
    fail_fast: bool = False
    dry_run: bool = False

    def __post_init__(self) -> None:
        for name in ("quiet", "force", "fail_fast", "dry_run"):
            if not isinstance(given := getattr(self, name), bool):
                raise ValueError(f"{name} must be true or false, not {short(repr(given))}")
        self.engine_for(0.0)  # tells a mistake before anything is done

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "RunOptions":
        """The options that were given by name; ``TypeError`` names one that there is not."""
        known = [field.name for field in fields(cls)]
        unknown = [name for name in given if name not in known]
        if unknown:
            raise TypeError(f"there is no option {unknown[0]!r}; there are {', '.join(known)}")
        return cls(**given)

    def engine_for(self, seconds: float) -> Engine:
        """The engine for work that is expected to take one core this long."""
        engine = self.engine
        if engine == "auto":
            engine = "inline" if seconds < _QUICK_S and self.workers is None else "local"
        return make_engine(engine, self.workers, self.address)


class DryRun(Exception):
    """A plan that was not carried out because ``dry_run`` asked what it takes: a `Forecast`."""

    def __init__(self, forecast: "Forecast") -> None:
        super().__init__(str(forecast))
        self.forecast = forecast


@dataclass(frozen=True)
class Forecast:
    """How many runs and rounds there are, how many are left, and roughly what they take.

    ``memories`` says in a line each what learning will keep of models.
    """

    runs: int
    finished: int
    rounds: int
    seconds: float
    processes: int
    out: Path
    memories: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Say how many runs there are, how long they take and where results would be."""
        there = f", of which {self.finished} are in {self.out} already" if self.finished else ""
        on = f"{self.processes} processes" if self.processes > 1 else "one process"
        kept = "".join(f" {line[0].upper()}{line[1:]}." for line in self.memories)
        return (
            f"{counted(self.runs, 'run')}{there}; {counted(self.rounds, 'round')} to go, about "
            f"{duration_text(self.seconds)} on {on}. Results would be in {self.out}.{kept}"
        )


def forecast(
    plans: Mapping[Path, Plan], out: Path | str, options: RunOptions | None = None
) -> Forecast:
    """What carrying out the plans takes, each in its folder at or below ``out``: a rough guess."""
    finished, seconds, processes, missing = 0, 0.0, 1, list[Run]()
    for folder, plan in plans.items():
        present, runs = Folder(folder).file_names(), plan.runs()
        left = [run for run in runs if run.file_name not in present]
        core_s = _core_seconds(left)
        used = _processes((options or RunOptions()).engine_for(core_s), left)
        finished, missing = finished + len(runs) - len(left), missing + left
        seconds, processes = seconds + core_s / used, max(processes, used)
    rounds = sum(run.scenario.run.rounds for run in missing)
    kept = tuple(map(str, _memories(missing)))
    return Forecast(finished + len(missing), finished, rounds, seconds, processes, Path(out), kept)


def run(
    scenario: Scenario,
    policy: Policy | str = "age-based",
    seeds: int | Iterable[int] = 1,
    out: Path | str | None = None,
    *,
    on_round: _OnRound | None = None,
    baseline: Policy | str | None = None,
    **options: Any,
) -> Result:
    """Run one policy over several seeds; the options are those of `compare`.

    ``on_round(record)`` is called after every round, for which the runs happen in this process,
    one after the other.
    """
    plan = Plan.of(scenario, [policy], seeds, baseline=baseline)
    return execute(plan, out, RunOptions.of(options), on_round)


def compare(
    scenario: Scenario,
    policies: Sequence[Policy | str] = _PAIR,
    seeds: int | Iterable[int] = 20,
    out: Path | str | None = None,
    *,
    baseline: Policy | str | None = None,
    **options: Any,
) -> Result:
    """Run policies on the same channels, samples and initial models, over several seeds.

    ``out`` is a results folder: one that holds part of these results is continued. Without one
    the results last as long as the returned object, while the command always has a folder,
    ``runs/compare-NAME`` by default. ``baseline`` is the policy that the others are compared
    with: max-pack by default, or the first where that is not among them. The other options are
    the fields of `RunOptions`: ``engine``, ``workers``, ``quiet``, ``fail_fast`` and so on.

    A run that fails is named in ``Result.failed`` and the others go on, unless ``fail_fast``; the
    next time it is tried again. If there is no other run, its error is raised.
    """
    plan = Plan.of(scenario, policies, seeds, baseline=baseline)
    return execute(plan, out, RunOptions.of(options))


def sweep(
    scenario: Scenario,
    policies: Sequence[Policy | str],
    vary: Mapping[str, Sequence[Any]],
    seeds: int | Iterable[int] = 10,
    out: Path | str | None = None,
    *,
    baseline: Policy | str | None = None,
    **options: Any,
) -> Result:
    """`compare` for every combination of values: ``vary={"threshold.rate": [1, 2]}``.

    A section that comes in kinds takes names of kinds, or mappings with their fields.
    """
    plan = Plan.of(scenario, policies, seeds, product(vary), baseline)
    return execute(plan, out, RunOptions.of(options))


def execute(
    plan: Plan,
    out: Path | str | None,
    options: RunOptions | None = None,
    on_round: _OnRound | None = None,
) -> Result:
    """Carry out the runs of the plan that are not finished yet, and return the result of all.

    ``on_round`` is called in the process in which a run happens.
    """
    options = options or RunOptions()
    out = None if out is None else path_of("out", out)
    if on_round is not None and not isinstance(options.engine_for(0.0), Inline):
        raise ValueError(
            "on_round needs the runs in this process: leave out engine, or give inline"
        )
    loggers = make_loggers(options.loggers, out)
    if options.dry_run:
        if out is None:
            raise ValueError("dry_run says what is left to do in a results folder: give out")
        raise DryRun(forecast({out: plan}, out, options))
    path = Path(tempfile.mkdtemp(prefix="agewise-") if out is None else out)
    execution = _Execution(Folder(path), plan, options, on_round, Logged(loggers, path))
    try:
        with _interruptible():
            result = execution.result()
    except BaseException as error:
        if out is None:
            shutil.rmtree(path, ignore_errors=True)
        elif isinstance(error, KeyboardInterrupt):
            kept = len(execution.folder.file_names())
            if kept == 0:
                raise KeyboardInterrupt("nothing was finished yet") from None
            raise KeyboardInterrupt(
                f"{kept} finished {'run is' if kept == 1 else 'runs are'} kept in {out}; the same "
                "command goes on from there"
            ) from None
        raise
    if out is None:
        weakref.finalize(result, shutil.rmtree, path, ignore_errors=True)
    return result


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C ends what is computed meanwhile, at the latest behind the next round.

    A KeyboardInterrupt alone may be lost: Numba and Pydantic make other errors of one that comes
    amid their calls, and Python prints those of finalizers and callbacks and goes on.
    """
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        try:
            before(number, frame)
        except KeyboardInterrupt:
            _INTERRUPTED.set()
            raise

    try:
        signal.signal(signal.SIGINT, interrupt)
        yield
        _end_if_interrupted()
    except Exception:
        _end_if_interrupted()
        raise
    finally:
        signal.signal(signal.SIGINT, before)
        _INTERRUPTED.clear()


def _end_if_interrupted() -> None:
    if _INTERRUPTED.is_set():
        raise KeyboardInterrupt


class _Failure(NamedTuple):
    """Why a run has no file: its error, and how that came about where it is no plain mistake."""

    error: Exception
    reason: str
    details: str


@dataclass(frozen=True)
class _Execution:
    """A plan that is carried out in a folder."""

    folder: Folder
    plan: Plan
    options: RunOptions
    on_round: _OnRound | None
    logged: Logged

    def result(self) -> Result:
        """Compute what is missing and open the folder."""
        runs = self.plan.runs()  # first, so that a mistake in a variation leaves no folder behind
        folder, quiet = self.folder, self.options.quiet
        with folder.opened(self.plan, force=self.options.force) as described:
            missing, changed = folder.unfinished(runs, described)
            for sentence in changed:
                folder.log(sentence)
                say(sentence, quiet=False)  # a warning, not progress
            folder.log(f"{len(runs) - len(missing)} of {len(runs)} runs were there")
            on_round, chosen = self.on_round, self.options.engine_for(_core_seconds(missing))
            engine = chosen if on_round is None else Inline()
            _announce(missing, engine, quiet=quiet)
            absent = {run.file_name for run in missing}
            for run in runs:
                if run.file_name not in absent:
                    self.logged.log(run, folder.runs / run.file_name, is_new=False)
            failures = self._run_missing(missing, engine)
            if failures:
                folder.log(f"{len(failures)} of {len(runs)} runs failed, the others are there")
            else:
                folder.log(f"all {len(runs)} runs are there")
        if len(failures) == len(runs):
            if len({failure.reason for failure in failures}) == 1:
                raise failures[0].error
            first = failures[0].reason
            raise AllFailed(f"all {len(runs)} runs failed, the first with: {first}")
        return Result.open(folder.path)

    def _run_missing(self, missing: list[Run], engine: Engine) -> list[_Failure]:
        """Compute these runs and keep what comes of them; return those that failed."""
        failures = []
        groups = list(enumerate(_with_same_samples(missing)))
        with self._progress(missing, len(groups), engine) as (counted, counts):
            compute = functools.partial(
                _compute_group,
                on_round=self.on_round,
                fail_fast=self.options.fail_fast,
                counts=None if counts is None else counts.filename,
            )
            try:
                for (number, runs), outcomes in engine.run(compute, groups):
                    if counts is not None:
                        counts[number] = 0
                    for one, outcome in zip(runs, outcomes, strict=False):
                        counted.advance(one.scenario.run.rounds)
                        if isinstance(outcome, bytes):
                            self.folder.keep(one, outcome)
                            self.logged.log(one, self.folder.runs / one.file_name, is_new=True)
                            continue
                        self.folder.keep_failure(one, outcome.reason, outcome.details)
                        failures.append(outcome)
                        if self.options.fail_fast:
                            raise outcome.error
                    _end_if_interrupted()
            except BaseException as error:
                why = "interrupted" if isinstance(error, KeyboardInterrupt) else f"stopped: {error}"
                with contextlib.suppress(FolderError):  # a full disk must not hide the cause
                    self.folder.log(why)
                raise
        return failures

    @contextlib.contextmanager
    def _progress(
        self, missing: list[Run], groups: int, engine: Engine
    ) -> Iterator[tuple[Progress, RoundCounts | None]]:
        """Progress over these runs, and where the engine's processes count rounds, if they can."""
        rounds, quiet = sum(run.scenario.run.rounds for run in missing), self.options.quiet
        with contextlib.ExitStack() as stack:
            counts = None
            if missing and not quiet and isinstance(engine, Inline | Local):  # on this very machine
                with contextlib.suppress(OSError):
                    counts = stack.enter_context(round_counts(self.folder.path, groups))
            underway = None if counts is None else counts.sum
            shown = progress(len(missing), rounds, quiet=quiet, underway=underway)
            yield stack.enter_context(shown), counts


def _with_same_samples(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs of one seed and variation together: one worker prepares their samples once."""
    alike = itertools.groupby(runs, key=lambda run: (run.seed, run.scenario))
    return [list(group) for _, group in alike]


def _core_seconds(runs: list[Run]) -> float:
    """Roughly how many seconds these runs take one core."""
    return sum(expected_seconds(run.scenario, run.policy) for run in runs)


def _processes(engine: Engine, runs: list[Run]) -> int:
    """Among how many processes of this machine an engine divides these runs."""
    if not isinstance(engine, Local):
        return 1
    return max(engine.processes(len(_with_same_samples(runs))), 1)


def _announce(runs: list[Run], engine: Engine, *, quiet: bool) -> None:
    """Say what takes days, and what learning keeps of every UE; refuse more than there is."""
    seconds = _core_seconds(runs)
    if seconds > 86_400:  # nobody should wait for years without knowing
        length = f"{len(runs):,} runs will take about {duration_text(seconds)} of one core"
        say(f"agewise: {length}", quiet=quiet)
    processes = _processes(engine, runs)
    among = f", in each of {processes} processes" if processes > 1 else ""
    for memory in _memories(runs):
        require_memory(processes * memory.bytes, f"{memory.what}{among}")
        say(f"{memory}{among}", quiet=quiet)


def _memories(runs: list[Run]) -> list[KeptMemory]:
    """What learning keeps of models in any of the runs."""
    scenarios = (one.scenario for one in runs)
    different = {(one.cell.ues, one.learn, one.data, one.pace): one for one in scenarios}
    return sorted({memory for each in different.values() for memory in kept_memories(each)})


def _compute_group(
    group: tuple[int, list[Run]], *, on_round: _OnRound | None, fail_fast: bool, counts: str | None
) -> list[bytes | _Failure]:
    """Run a group one after the other: the content of each file, or why there is none.

    Rounds are counted in the file ``counts`` under the group's number (`round_counts`). After the
    first failure the other runs are left out if it is to be fast.
    """
    number, runs = group
    outcomes: list[bytes | _Failure] = []
    calls = [call for call in (counter(counts, number), on_round) if call is not None]

    def after_round(record: RoundRecord) -> None:
        _end_if_interrupted()
        for call in calls:
            call(record)

    for run in runs:
        try:
            history = simulate(run.scenario, run.policy, run.seed, after_round, run.sources)
            content = history.to_bytes()
            if len(content) > MOST_BYTES:
                raise ValueError(
                    f"its file would take {len(content):,} bytes, more than the {MOST_BYTES:,} "
                    "that one may have: fewer rounds"
                )
            outcomes.append(content)
        except Exception as error:
            _end_if_interrupted()
            outcomes.append(_failure(error))
            if fail_fast:
                break
    return outcomes


def _failure(error: Exception) -> _Failure:
    """What can travel between processes, whatever the error is made of."""
    mistake = isinstance(error, ValueError)
    reason = str(error) if mistake else f"{type(error).__name__}: {error}"
    details = "" if mistake else "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 (what was just written)
    except Exception:
        error = RuntimeError(reason)
    return _Failure(error, reason, details)
