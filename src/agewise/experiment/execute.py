"""Carry out a plan on an engine into a folder, continuing where an earlier run stopped."""

import contextlib
import functools
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, Unpack

from agewise.engines import Engine, Inline, Local, make_engine
from agewise.experiment.counting import Counts, compute_group, shared_counts
from agewise.experiment.description import FolderError
from agewise.experiment.folder import Folder
from agewise.experiment.forecast import expected_of
from agewise.experiment.loggers import Logged, Logger, make_loggers
from agewise.experiment.progress import Progress, progress, say
from agewise.experiment.result import Result
from agewise.experiment.runs import (
    Failure,
    OnRound,
    Plan,
    Run,
    product,
    with_same_samples,
)
from agewise.memory import require_memory
from agewise.policies import Policy
from agewise.resources import expected_seconds, kept_memories
from agewise.scenario import Scenario

#: What is compared if nobody says: the paper's two policies.
PAIR = ("age-based", "max-pack")


class AllFailed(ValueError):
    """No run came to its end, each for another reason."""


class _Work(NamedTuple):
    """How runs are carried out."""

    engine: Engine
    quiet: bool
    on_round: OnRound | None
    fail_fast: bool
    logged: Logged


class StudyOptions(TypedDict, total=False):
    """How a study is carried out, which needs all its runs; defaults are in brackets.

    ``engine`` says where the runs happen ("local"), with how many ``workers`` if it is local (one
    per core) and at an ``address`` if it is ray; ``quiet`` shows no progress (False);
    ``force`` begins a folder anew that holds another experiment (False); ``loggers`` get every
    finished run: csv, tensorboard, wandb, trackio or objects of your own (none).
    """

    engine: str | Engine
    workers: int | None
    address: str | None
    quiet: bool
    force: bool
    loggers: Sequence[Logger | str]


class Options(StudyOptions, total=False):
    """How an experiment is carried out: as a study, and whether it goes on without failed runs.

    ``fail_fast`` stops at the first run that fails (False).
    """

    fail_fast: bool


def run(
    scenario: Scenario,
    policy: Policy | str = "age-based",
    seeds: int | Iterable[int] = 1,
    out: Path | str | None = None,
    *,
    on_round: OnRound | None = None,
    baseline: Policy | str | None = None,
    **options: Unpack[Options],
) -> Result:
    """One policy over several seeds; the options are those of `compare`.

    ``on_round(record)`` is called after every round, for which the runs happen in this process,
    one after the other; without it they happen on the engine local by default.
    """
    plan = Plan.of(scenario, [policy], seeds, baseline=baseline)
    return _carry_out(plan, out, options, on_round)


def compare(
    scenario: Scenario,
    policies: Sequence[Policy | str] = PAIR,
    seeds: int | Iterable[int] = 20,
    out: Path | str | None = None,
    *,
    baseline: Policy | str | None = None,
    **options: Unpack[Options],
) -> Result:
    """Policies on the same channels, samples and initial models, over several seeds.

    ``out`` is a results folder: one that holds part of these results is continued. Without one
    the results last as long as the returned object, while the command always has a folder,
    ``runs/compare-NAME`` by default. ``baseline`` is the policy that the others are compared
    with: max-pack by default, or the first where that is not among them. `Options` says how the
    runs are carried out: ``engine``, ``workers``, ``address``, ``quiet``, ``fail_fast``,
    ``force`` and ``loggers``.

    A run that fails is named in ``Result.failed`` and the others go on, unless ``fail_fast``; the
    next time it is tried again. If there is no other run, its error is raised.
    """
    return _carry_out(Plan.of(scenario, policies, seeds, baseline=baseline), out, options)


def sweep(
    scenario: Scenario,
    policies: Sequence[Policy | str],
    vary: Mapping[str, Sequence[Any]],
    seeds: int | Iterable[int] = 10,
    out: Path | str | None = None,
    *,
    baseline: Policy | str | None = None,
    **options: Unpack[Options],
) -> Result:
    """`compare` for every combination of values: ``vary={"threshold.rate": [1, 2]}``.

    A section that comes in kinds takes names of kinds, or mappings with their fields.
    """
    return _carry_out(Plan.of(scenario, policies, seeds, product(vary), baseline), out, options)


def _carry_out(
    plan: Plan, out: Path | str | None, options: Options, on_round: OnRound | None = None
) -> Result:
    _require_known(options, Options.__optional_keys__)
    engine = engine_of(options, "local" if on_round is None else "inline")
    if on_round is not None and not isinstance(engine, Inline):
        raise ValueError(
            "on_round needs the runs in this process: leave out engine, or give inline"
        )
    return execute(
        plan,
        out,
        engine,
        quiet=options.get("quiet", False),
        on_round=on_round,
        fail_fast=options.get("fail_fast", False),
        force=options.get("force", False),
        loggers=options.get("loggers") or (),
    )


def execute_study(plan: Plan, out: Path | str, options: StudyOptions) -> Result:
    """The result of all runs of a plan; the first that fails ends it."""
    _require_known(options, StudyOptions.__optional_keys__)
    return _carry_out(plan, out, {**options, "fail_fast": True})


def engine_of(options: StudyOptions, usual: str = "local") -> Engine:
    """The engine that the options name."""
    given = options.get("engine")  # an engine object may be empty, and false
    return make_engine(
        usual if given is None else given, options.get("workers"), options.get("address")
    )


def _require_known(options: StudyOptions, known: Iterable[str]) -> None:
    unknown = [name for name in options if name not in known]
    if unknown:
        raise TypeError(f"there is no option {unknown[0]!r}; there are {', '.join(sorted(known))}")


def execute(
    plan: Plan,
    out: Path | str | None,
    engine: Engine,
    *,
    quiet: bool = False,
    on_round: OnRound | None = None,
    fail_fast: bool = False,
    force: bool = False,
    loggers: Sequence[Logger | str] = (),
) -> Result:
    """The runs of the plan that are not finished yet, and the result of all.

    ``on_round`` is called in the process in which a run happens; the other options are those of
    `Options`.
    """
    if isinstance(out, str) and not out.strip():
        raise ValueError("out is empty: give the name of a results folder")
    made = make_loggers(loggers, None if out is None else Path(out))
    path = tempfile.mkdtemp(prefix="agewise-") if out is None else str(out)
    work = _Work(engine, quiet, on_round, fail_fast, Logged(made, Path(path)))
    if out is not None:
        if force:
            Folder(Path(out)).clear_other(plan)
        try:
            return _in_folder(Folder(Path(out)), plan, work)
        except KeyboardInterrupt:
            kept = len(Folder(Path(out)).file_names())
            raise KeyboardInterrupt(
                f"{kept} finished {'run is' if kept == 1 else 'runs are'} kept in {out}; the same "
                "command goes on from there"
            ) from None
    try:
        result = _in_folder(Folder(Path(path)), plan, work)
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise
    weakref.finalize(result, shutil.rmtree, path, ignore_errors=True)
    return result


def _in_folder(folder: Folder, plan: Plan, work: _Work) -> Result:
    runs = plan.runs()  # first, so that a mistake in a variation leaves no folder behind
    with folder.opened(plan) as described:
        missing, changed = folder.unfinished(runs, described)
        for sentence in changed:
            folder.log(sentence)
            say(sentence, quiet=work.quiet)
        folder.log(f"{len(runs) - len(missing)} of {len(runs)} runs were there")
        if not work.quiet:
            _warn_of_length(missing)
        _announce_memory(missing, work)
        absent = {run.file_name for run in missing}
        for run in runs:
            if run.file_name not in absent:
                work.logged.log_missing(run, folder.runs / run.file_name)
        failures = _run_missing(missing, folder, work)
        if failures:
            folder.log(f"{len(failures)} of {len(runs)} runs failed, the others are there")
        else:
            folder.log(f"all {len(runs)} runs are there")
    _require_any(failures, len(runs))
    return Result.open(folder.path)


def _warn_of_length(runs: list[Run]) -> None:
    """Say so if the runs will take days: nobody should wait for years without knowing."""
    days = sum(expected_seconds(run.scenario, run.policy) for run in runs) / 86_400
    if days > 1:
        length = f"{days:,.0f} days" if days < 1000 else f"{days / 365:,.0f} years"
        say(f"agewise: {len(runs):,} runs will take about {length} of one core", quiet=False)


def _announce_memory(runs: list[Run], work: _Work) -> None:
    """Say what learning will keep of every UE, and refuse what all processes cannot get."""
    described = [(one.scenario.cell.ues, one.scenario.learn, one.scenario.data) for one in runs]
    scenarios = dict(zip(described, (one.scenario for one in runs), strict=True))
    kept = {memory for scenario in scenarios.values() for memory in kept_memories(scenario)}
    groups = len(with_same_samples(runs))
    processes = work.engine.processes(groups) if isinstance(work.engine, Local) else 1
    among = f", in each of {processes} processes" if processes > 1 else ""
    for memory in sorted(kept):
        require_memory(processes * memory.bytes, f"{memory.what}{among}")
        say(f"{memory}{among}", quiet=work.quiet)


def _require_any(failures: list[Failure], count: int) -> None:
    """Where every run failed, that is no result: the error, or the first of several."""
    if len(failures) < count:
        return
    if len({failure.reason for failure in failures}) == 1:
        raise failures[0].error
    raise AllFailed(f"all {count} runs failed, the first with: {failures[0].reason}")


def _run_missing(missing: list[Run], folder: Folder, work: _Work) -> list[Failure]:
    """Compute these runs and keep what comes of them; those that failed."""
    failures = []
    groups = list(enumerate(with_same_samples(missing)))
    with _progress_of(missing, len(groups), work) as (counted, counts):
        compute = functools.partial(
            compute_group,
            on_round=work.on_round,
            fail_fast=work.fail_fast,
            place=None if counts is None else counts.place,
        )
        try:
            for (number, runs), outcomes in work.engine.run(compute, groups):
                if counts is not None:
                    counts.forget(number)
                for one, outcome in zip(runs, outcomes, strict=False):
                    counted.advance(one.scenario.run.rounds)
                    if isinstance(outcome, bytes):
                        folder.keep(one, outcome)
                        work.logged.log(one, folder.runs / one.file_name)
                        continue
                    folder.keep_failure(one, outcome)
                    failures.append(outcome)
                    if work.fail_fast:
                        raise outcome.error
        except BaseException as error:
            why = "interrupted" if isinstance(error, KeyboardInterrupt) else f"stopped: {error}"
            with contextlib.suppress(FolderError):  # a full disk must not hide the cause
                folder.log(why)
            raise
    return failures


@contextlib.contextmanager
def _progress_of(
    missing: list[Run], groups: int, work: _Work
) -> Iterator[tuple[Progress, Counts | None]]:
    """Progress over these runs, and where the engine's processes count rounds, if they can."""
    expected_s, _ = expected_of(missing, work.engine)
    rounds = sum(run.scenario.run.rounds for run in missing)
    with contextlib.ExitStack() as stack:
        counts = None
        if not work.quiet and isinstance(work.engine, Inline | Local):  # on this very machine
            counts = stack.enter_context(shared_counts(groups))
        shown = progress(
            len(missing),
            rounds,
            quiet=work.quiet,
            expected_s=expected_s,
            underway=None if counts is None else counts.total,
        )
        yield stack.enter_context(shown), counts
