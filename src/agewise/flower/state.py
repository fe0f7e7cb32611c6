"""The state of a federation in a folder, so that a server that was stopped can go on.

It is one file, written whole after every round, with arrays and JSON and no pickle in it.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, MetricRecord
from flwr.serverapp.strategy import Result

from agewise.files import atomic_write, open_regular_file, parse_json
from agewise.flower.clients import RoundPlanner
from agewise.flower.links import Arrays, FederationError
from agewise.flower.round import InnerStrategy

_STATE = "state.npz"
_LOCK = ".server"
#: The entry of the file that holds JSON.
_TEXT = "text"
#: What of a result is kept for every round.
_METRICS = ("train_metrics_clientapp", "evaluate_metrics_clientapp", "evaluate_metrics_serverapp")


@dataclass(frozen=True, eq=False)
class StateFolder:
    """Keeps the state of the planner and of the inner strategy in a folder.

    Without a ``folder`` nothing is kept.
    """

    folder: Path | None
    inner: InnerStrategy
    planner: RoundPlanner

    @contextlib.contextmanager
    def claimed(self) -> Iterator[None]:
        """The folder is this server's alone; the system lets go of it if the process dies."""
        if self.folder is None:
            yield
            return
        if self.planner.t > 0:
            raise FederationError(
                f"{self.folder}: these rounds are over: make a new Scheduled to go on from there"
            )
        if not (self.folder / _STATE).exists() and (self.folder / "experiment.json").exists():
            raise FederationError(f"{self.folder}: holds other results: give another folder")
        self.folder.mkdir(parents=True, exist_ok=True)
        handle = open_regular_file(self.folder / _LOCK, os.O_RDWR | os.O_CREAT)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise FederationError(
                    f"{self.folder}: another server works in this folder"
                ) from None
            yield
        finally:
            os.close(handle)

    def save(self, identity: Mapping[str, Any], done: int, silent: int, result: Result) -> None:
        """Write the state after ``done`` rounds; the last ``silent`` of them brought no update."""
        if self.folder is None:
            return
        parts = {
            "federation": self.planner.snapshot(),
            "inner": self.inner.state(),
            "model": {name: array.numpy() for name, array in result.arrays.items()},
        }
        arrays = {f"{part}/{name}": x for part, own in parts.items() for name, x in own.items()}
        values = {
            "identity": identity,
            "done": done,
            "silent": silent,
            "privacy": [each.state_dict() for each in self.inner.accountants],
            "metrics": {
                name: {
                    str(number): dict(record) for number, record in getattr(result, name).items()
                }
                for name in _METRICS
            },
        }
        text = np.frombuffer(json.dumps(values).encode(), np.uint8)
        with atomic_write(self.folder / _STATE) as temporary, temporary.open("wb") as file:
            np.savez(file, allow_pickle=False, **{_TEXT: text}, **arrays)

    def resume(self, identity: Mapping[str, Any], result: Result) -> tuple[int, int]:
        """Take up the state, with the model and metrics in the result; `save`'s two numbers.

        Both are 0 where nothing was saved. `FederationError` if it is another federation's.
        """
        if self.folder is None or not (path := self.folder / _STATE).exists():
            return 0, 0
        arrays, values = _read(path)
        found = values.get("identity", {})
        for name, wanted in identity.items():
            if found.get(name) != wanted:
                raise FederationError(
                    f"{path}: the state of another federation ({name} is {found.get(name)} there "
                    f"and {wanted} here): give another folder"
                )
        parts: dict[str, Arrays] = {"federation": {}, "inner": {}, "model": {}}
        for name, array in arrays.items():
            part, _, rest = name.partition("/")
            parts[part][rest] = array
        self.planner.restore(parts["federation"])
        self.inner.restore(parts["inner"])
        for accountant, state in zip(self.inner.accountants, values["privacy"], strict=True):
            accountant.load_state_dict(state)
        for name in _METRICS:
            kept = {int(t): MetricRecord(dict(x)) for t, x in values["metrics"][name].items()}
            getattr(result, name).update(kept)
        result.arrays = ArrayRecord({name: Array(x) for name, x in parts["model"].items()})
        return int(values["done"]), int(values["silent"])


def _read(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """The arrays and values of a state; `FederationError` if it is something else."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        values = parse_json(arrays.pop(_TEXT).tobytes().decode())
    except Exception as error:
        # A damaged archive fails in the zip reader, in zlib, or in the parser of the header.
        raise FederationError(f"{path}: not a readable state of a federation: {error}") from error
    if not isinstance(values, dict):
        raise FederationError(f"{path}: not a state of a federation")
    return arrays, values
