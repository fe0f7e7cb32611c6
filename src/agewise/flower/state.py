"""The state of a federation in one file, written whole after every round; no pickle in it."""

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agewise.files import parse_json, write_whole
from agewise.flower.api import Array, ArrayRecord, FederationError, MetricRecord, Result, Strategy

Arrays = dict[str, NDArray[Any]]
#: Of a result, what is kept for every round.
_METRICS = (
    "train_metrics_clientapp",
    "evaluate_metrics_clientapp",
    "evaluate_metrics_serverapp",
)
_TEXT = "text"


def write_state(path: Path, arrays: Mapping[str, NDArray[Any]], values: Mapping[str, Any]) -> None:
    """Write arrays by name, and plain values as JSON."""
    text = np.frombuffer(json.dumps(values).encode(), np.uint8)
    with write_whole(path) as temporary, temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, **{_TEXT: text}, **arrays)


def read_state(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """What `write_state` wrote; `FederationError` if it is something else."""
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


def result_values(result: Result) -> dict[str, dict[str, dict[str, Any]]]:
    """The metrics of all rounds as plain data."""
    return {
        name: {str(number): dict(record) for number, record in getattr(result, name).items()}
        for name in _METRICS
    }


def restore_result(result: Result, values: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    """Put the metrics that `result_values` gave into a result."""
    for name in _METRICS:
        kept = {int(number): MetricRecord(dict(each)) for number, each in values[name].items()}
        getattr(result, name).update(kept)


def named_arrays(record: ArrayRecord, start: str) -> Arrays:
    """The arrays of a record, by number and name, for a file."""
    return {
        f"{start}{number:06d}.{name}": array.numpy()
        for number, (name, array) in enumerate(record.items())
    }


def array_record(arrays: Mapping[str, NDArray[Any]], start: str) -> ArrayRecord:
    """The record that `named_arrays` took apart."""
    names = sorted(name for name in arrays if name.startswith(start))
    skip = len(start) + 7
    return ArrayRecord({name[skip:]: Array(arrays[name]) for name in names})


def inner_state(strategy: Strategy) -> Arrays:
    """What a strategy and those that it wraps keep in arrays, such as momentum.

    Attributes that are arrays, lists or dictionaries of arrays, records of arrays, or float
    numbers; the path to each is its name. Parameters of the constructor are settings, no state.
    """
    kept: Arrays = {}
    settings = inspect.signature(type(strategy)).parameters
    for name, value in vars(strategy).items():
        if isinstance(value, Strategy):
            kept |= {f"{name}/{inner}": x for inner, x in inner_state(value).items()}
        elif name in settings:
            continue
        elif isinstance(value, np.ndarray | float):
            kept[f"{name}.single"] = np.asarray(value)
        elif isinstance(value, ArrayRecord):
            kept |= named_arrays(value, f"{name}.record.")
        elif isinstance(value, list) and _all_arrays(value):
            kept |= {f"{name}.list.{i:06d}": x for i, x in enumerate(value)}
        elif isinstance(value, dict) and _all_arrays(list(value.values())):
            kept |= {f"{name}.dict.{key}": x for key, x in value.items()}
    return kept


def restore_inner(strategy: Strategy, kept: Mapping[str, NDArray[Any]]) -> None:
    """Give a strategy back what `inner_state` took."""
    inside: dict[str, Arrays] = {}
    grouped: dict[tuple[str, str], Arrays] = {}
    for path, array in kept.items():
        head, slash, rest = path.partition("/")
        if slash and isinstance(getattr(strategy, head, None), Strategy):
            inside.setdefault(head, {})[rest] = array
            continue
        name, kind, *key = path.split(".", 2)
        grouped.setdefault((name, kind), {})["".join(key)] = array
    for name, arrays in inside.items():
        restore_inner(getattr(strategy, name), arrays)
    for (name, kind), arrays in grouped.items():
        setattr(strategy, name, _rebuilt(kind, arrays))


def _rebuilt(kind: str, arrays: Arrays) -> object:
    match kind:
        case "single":
            (array,) = arrays.values()
            return float(array) if array.ndim == 0 else array
        case "list":
            return [arrays[key] for key in sorted(arrays)]
        case "record":
            return array_record(arrays, "")
        case _:
            return arrays


def _all_arrays(values: list[object]) -> bool:
    return bool(values) and all(isinstance(value, np.ndarray) for value in values)
