"""The state of a federation in a folder, so that a server that was stopped can go on.

It is a file that is written whole after every round, with arrays and JSON and no pickle in it. The
ids of clients, which are long and seldom new, have one of their own, known by its digest.
"""

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, MetricRecord
from flwr.serverapp.strategy import Result
from numpy.typing import NDArray

from agewise.checks import first_line
from agewise.files import atomic_write, open_regular_file, parse_json
from agewise.flower.clients import RoundPlanner
from agewise.flower.links import Arrays, FederationError
from agewise.flower.round import InnerStrategy
from agewise.readers import load_arrays

_STATE, _CLIENTS = "state.npz", "clients.npz"
_LOCK = ".server"
#: The entries of the file that hold JSON, and the checksum of all others.
_TEXT, _CHECKSUM = "text", "checksum"
#: What of a result is kept for every round.
_METRICS = ("train_metrics_clientapp", "evaluate_metrics_clientapp", "evaluate_metrics_serverapp")


@dataclass(eq=False)
class StateFolder:
    """Keeps the state of the planner and of the inner strategy in a folder.

    Without a ``folder`` nothing is kept.
    """

    folder: Path | None
    inner: InnerStrategy
    planner: RoundPlanner
    _listed: tuple[int, str] = field(default=(0, ""), init=False)  # clients in their file
    _made: dict[str, dict[int, str]] = field(default_factory=dict, init=False)

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
        with os.fdopen(handle, "r+b"):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                said = f"{self.folder}: another server works in this folder"
                raise FederationError(said) from None
            yield

    def save(self, identity: Mapping[str, Any], done: int, silent: int, result: Result) -> None:
        """Write the state after ``done`` rounds; the last ``silent`` of them brought no update."""
        if self.folder is None:
            return
        parts = {
            "federation": self.planner.snapshot(),
            "inner": self.inner.state(),
            "model": {name: array.numpy() for name, array in result.arrays.items()},
        }
        self._list(parts["federation"].pop("ids"))
        arrays = {f"{part}/{name}": x for part, own in parts.items() for name, x in own.items()}
        values = {
            "identity": identity,
            "clients": self._listed,
            "done": done,
            "silent": silent,
            "privacy": [each.state_dict() for each in self.inner.accountants],
            "metrics": {name: self._texts(name, getattr(result, name)) for name in _METRICS},
        }
        text = np.frombuffer(json.dumps(values).encode(), np.uint8)
        with atomic_write(self.folder / _STATE) as temporary, temporary.open("wb") as file:
            arrays[_TEXT] = text
            np.savez(file, allow_pickle=False, **arrays, **{_CHECKSUM: _checksum(arrays)})

    def _texts(self, name: str, records: Mapping[int, MetricRecord]) -> dict[int, str]:
        """The records of all rounds as JSON, each made once."""
        texts = self._made.setdefault(name, {})
        texts |= {t: json.dumps(dict(x)) for t, x in records.items() if t not in texts}
        return texts

    def _list(self, ids: NDArray[np.bytes_]) -> None:
        """Write the ids of the clients, if there are new ones."""
        if self.folder is not None and ids.size != self._listed[0]:
            with atomic_write(self.folder / _CLIENTS) as temporary, temporary.open("wb") as file:
                np.savez(file, allow_pickle=False, ids=ids)
            self._listed = ids.size, _digest(ids)

    def resume(self, identity: Mapping[str, Any], result: Result) -> tuple[int, int]:
        """Take up the state, with the model and metrics in the result; `save`'s two numbers.

        Both are 0 where nothing was saved. `FederationError` if it is another federation's.
        """
        if self.folder is None or not (path := self.folder / _STATE).exists():
            return 0, 0
        try:
            arrays = load_arrays(path)
            if not np.array_equal(arrays.pop(_CHECKSUM), _checksum(arrays)):
                raise ValueError("its checksum does not hold")
            values: Any = parse_json(arrays.pop(_TEXT).tobytes().decode())
            found, (count, digest) = dict(values["identity"]), values["clients"]
            ids = load_arrays(self.folder / _CLIENTS)["ids"][:count]
            if _digest(ids) != digest:
                raise ValueError(f"{_CLIENTS} has other clients")
            arrays["federation/ids"] = ids
        except Exception as error:
            # A damaged archive fails in the zip reader, in zlib, or in the parser of the header.
            raise FederationError(
                f"{path}: not a readable state of a federation: {first_line(error)}"
            ) from error
        for name, wanted in identity.items():
            if found.get(name) != wanted:
                raise FederationError(
                    f"{path}: the state of another federation ({name} is {found.get(name)} there "
                    f"and {wanted} here): give another folder"
                )
        try:
            return self._take_up(arrays, values, identity["model"], result)
        except FederationError:
            raise
        except Exception as error:
            # Strategies restore what is theirs, and fail in ways of their own.
            raise FederationError(
                f"{path}: not a state that fits this federation: {first_line(error)}"
            ) from error

    def _take_up(
        self, arrays: Arrays, values: Any, shapes: list[list[Any]], result: Result
    ) -> tuple[int, int]:
        """Restore what was read; ``shapes`` has the name and shape of each array of the model."""
        parts: dict[str, Arrays] = {"federation": {}, "inner": {}, "model": {}}
        for name, array in arrays.items():
            part, _, rest = name.partition("/")
            parts[part][rest] = array
        done, silent, model = values["done"], values["silent"], parts["model"]
        if list(model) != [name for name, _ in shapes]:
            raise ValueError("its model has other arrays")
        for name, shape in shapes:
            array = model[name]
            if array.dtype != np.uint8 and list(array.shape) != shape:  # bytes of trees grow
                raise ValueError(f"array {name!r} of its model has the shape {array.shape}")
            if array.dtype.kind not in "fiub" or not np.isfinite(array).all():
                raise ValueError(f"array {name!r} of its model is not finite numbers")
        self.planner.restore(parts["federation"])
        if type(done) is not int or done != self.planner.t or type(silent) is not int or silent < 0:
            raise ValueError(f"it is of {self.planner.t} rounds, and says {done!r} and {silent!r}")
        self.inner.restore(parts["inner"])
        for accountant, state in zip(self.inner.accountants, values["privacy"], strict=True):
            accountant.load_state_dict(state)
        for name in _METRICS:
            for t, text in values["metrics"][name].items():
                record: Any = parse_json(text)
                getattr(result, name)[int(t)] = MetricRecord(dict(record))
        result.arrays = ArrayRecord({name: Array(x) for name, x in model.items()})
        return done, silent


def _digest(ids: NDArray[Any]) -> str:
    return hashlib.sha256(b"\0".join(ids.tolist())).hexdigest()


def _checksum(arrays: Arrays) -> NDArray[np.uint8]:
    """The SHA-256 of the names, types, shapes and contents of arrays, in their order."""
    digest = hashlib.sha256()
    for name, array in arrays.items():
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return np.frombuffer(digest.digest(), np.uint8)
