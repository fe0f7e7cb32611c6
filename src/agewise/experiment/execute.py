"""Run cells on an engine into a folder, continuing where an earlier run stopped."""

import contextlib
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agewise.engines import Engine, make_engine
from agewise.experiment.cells import (
    Cell,
    Variation,
    as_policies,
    as_seeds,
    compute_all,
    make_cells,
    product,
    with_same_samples,
)
from agewise.experiment.folder import Folder, FolderError
from agewise.experiment.progress import progress
from agewise.experiment.result import Result
from agewise.policies import Policy
from agewise.scenario import Scenario


def run(
    scenario: Scenario,
    policy: Policy | str = "age-based",
    seeds: int | Iterable[int] = 1,
    out: Path | str | None = None,
    **options: Any,
) -> Result:
    """One policy; the options are those of `compare`."""
    return compare(scenario, [policy], seeds, out, **options)


def compare(
    scenario: Scenario,
    policies: Sequence[Policy | str],
    seeds: int | Iterable[int] = 20,
    out: Path | str | None = None,
    *,
    engine: str | Engine = "local",
    workers: int | None = None,
    quiet: bool = False,
) -> Result:
    """Policies on the same channels, samples and initial models, over several seeds.

    ``out`` is a results folder: one that holds part of these results is continued; without one
    the results last as long as the returned object.
    """
    return execute(scenario, policies, seeds, [{}], out, make_engine(engine, workers), quiet=quiet)


def sweep(
    scenario: Scenario,
    policies: Sequence[Policy | str],
    vary: Mapping[str, Sequence[Any]],
    seeds: int | Iterable[int] = 10,
    out: Path | str | None = None,
    *,
    engine: str | Engine = "local",
    workers: int | None = None,
    quiet: bool = False,
) -> Result:
    """`compare` for every combination of values: ``vary={"channel.rate_threshold": [1, 2]}``."""
    chosen = make_engine(engine, workers)
    return execute(scenario, policies, seeds, product(vary), out, chosen, quiet=quiet)


def execute(
    scenario: Scenario,
    policies: Sequence[Policy | str],
    seeds: int | Iterable[int],
    variations: Sequence[Variation],
    out: Path | str | None,
    engine: Engine,
    *,
    quiet: bool,
) -> Result:
    """The cells of all combinations that are not finished yet, and the result of all."""
    cells = make_cells(scenario, as_policies(policies), as_seeds(seeds), variations)
    if out is None:
        return _in_memory(scenario, cells, engine, quiet=quiet)
    return _in_folder(Folder(Path(out)), scenario, cells, engine, quiet=quiet)


def _in_memory(scenario: Scenario, cells: list[Cell], engine: Engine, *, quiet: bool) -> Result:
    """Results in a folder that lasts as long as the returned object."""
    path = tempfile.mkdtemp(prefix="agewise-")
    try:
        result = _in_folder(Folder(Path(path)), scenario, cells, engine, quiet=quiet)
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise
    weakref.finalize(result, shutil.rmtree, path, ignore_errors=True)
    return result


def _in_folder(
    folder: Folder, scenario: Scenario, cells: list[Cell], engine: Engine, *, quiet: bool
) -> Result:
    with folder.opened(scenario, cells):
        missing = [cell for cell in cells if folder.finished(cell) is None]
        folder.log(f"{len(cells) - len(missing)} of {len(cells)} cells were there")
        _run_missing(missing, folder, engine, quiet=quiet)
        folder.log(f"all {len(cells)} cells are there")
    return Result.open(folder.path)


def _run_missing(missing: list[Cell], folder: Folder, engine: Engine, *, quiet: bool) -> None:
    with progress(len(missing), quiet=quiet) as shown:
        try:
            for group, (contents, error) in engine.run(compute_all, with_same_samples(missing)):
                for cell, content in zip(group, contents, strict=False):
                    folder.keep(cell, content)
                    shown.advance(cell.scenario.run.rounds)
                if error is not None:
                    raise error
        except BaseException as error:
            why = "interrupted" if isinstance(error, KeyboardInterrupt) else f"stopped: {error}"
            with contextlib.suppress(FolderError):  # a full disk must not hide the cause
                folder.log(why)
            raise
