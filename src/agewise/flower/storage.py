"""Where a federation's state is kept, so that a server that was stopped can go on."""

import contextlib
import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from logging import INFO
from pathlib import Path
from typing import Any

from agewise.files import open_plain
from agewise.flower import inner as inside
from agewise.flower.api import FederationError, Result, Strategy, log
from agewise.flower.federation import Arrays, Federation
from agewise.flower.models import Growing
from agewise.flower.state import (
    array_record,
    inner_state,
    named_arrays,
    read_state,
    restore_inner,
    restore_result,
    result_values,
    write_state,
)

_STATE = "state.npz"
_LOCK = ".server"


@dataclass(frozen=True, eq=False)
class Storage:
    """The state in a folder: of the federation, the inner strategy and the aggregation rule."""

    folder: Path | None
    inner: Strategy
    federation: Federation
    rule: Growing

    @contextlib.contextmanager
    def claimed(self) -> Iterator[None]:
        """The folder is this server's alone; the system lets go of it if the process dies."""
        if self.folder is None:
            yield
            return
        if self.federation.t > 0:
            raise FederationError(
                f"{self.folder}: these rounds are over: make a new Scheduled to go on from there"
            )
        if not (self.folder / _STATE).exists() and (self.folder / "experiment.json").exists():
            raise FederationError(f"{self.folder}: holds other results: give another folder")
        self.folder.mkdir(parents=True, exist_ok=True)
        handle = open_plain(self.folder / _LOCK, os.O_RDWR | os.O_CREAT)
        try:
            _lock(handle, self.folder)
            yield
        finally:
            os.close(handle)

    def save(self, identity: Mapping[str, Any], done: int, silent: int, result: Result) -> None:
        """Write the state after ``done`` rounds; the last ``silent`` of them brought no update."""
        if self.folder is None:
            return
        parts = {
            "federation": self.federation.snapshot(),
            "inner": inner_state(self.inner),
            "rule": self.rule.state or {},
        }
        arrays = {f"{part}/{name}": x for part, own in parts.items() for name, x in own.items()}
        values = {"identity": identity, "done": done, "silent": silent}
        values["privacy"] = [each.state_dict() for each in inside.accountants(self.inner)]
        write_state(
            self.folder / _STATE,
            arrays | named_arrays(result.arrays, "model/"),
            values | {"metrics": result_values(result)},
        )

    def resume(self, identity: Mapping[str, Any], result: Result) -> tuple[int, int]:
        """Take up the state, with the model and metrics in the result; `save`'s two numbers.

        Both are 0 where nothing was saved. `FederationError` if it is another federation's.
        """
        if self.folder is None or not (path := self.folder / _STATE).exists():
            return 0, 0
        arrays, values = read_state(path)
        _require_same(path, values.get("identity", {}), identity)
        parts: dict[str, Arrays] = {"federation": {}, "inner": {}, "rule": {}, "model": {}}
        for name, array in arrays.items():
            part, _, rest = name.partition("/")
            parts[part][rest] = array
        self.federation.restore(parts["federation"])
        restore_inner(self.inner, parts["inner"])
        self._restore_privacy(path, values.get("privacy", []))
        self.rule.state = parts["rule"] or None
        restore_result(result, values["metrics"])
        result.arrays = array_record(parts["model"], "")
        log(INFO, "going on after round %s of %s", values["done"], path)
        return int(values["done"]), int(values["silent"])

    def _restore_privacy(self, path: Path, spent: Sequence[dict[str, Any]]) -> None:
        """Go on with the privacy that was spent before."""
        accountants = inside.accountants(self.inner)
        _require_same(path, {"accountants": len(spent)}, {"accountants": len(accountants)})
        for accountant, state in zip(accountants, spent, strict=True):
            accountant.load_state_dict(state)


def _lock(handle: int, folder: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise FederationError(f"{folder}: another server works in this folder") from None


def _require_same(path: Path, found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    for name, wanted in expected.items():
        if found.get(name) != wanted:
            raise FederationError(
                f"{path}: the state of another federation ({name} is {found.get(name)} there and "
                f"{wanted} here): give another folder"
            )
