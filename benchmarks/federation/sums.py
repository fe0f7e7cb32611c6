"""How large the trainings of `make federation` are, and what they came to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

SELECTIONS = ("age-based", "max-pack", "flower")


@dataclass(frozen=True)
class Size:
    """How large a training is: uplink rates, that of all, bytes of an update, rounds, seconds.

    A training ends with the round in which it reaches the ``target``, or with the first that ends
    after ``budget_s``.
    """

    rates_mbit_s: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 4.0, 16.0)
    capacity_mbit_s: float | None = 4.0
    update_bytes: int = 1_600_000
    deadline_s: float = 100.0
    rounds: int = 100
    budget_s: float = 720.0
    target: float = 0.65


SHORT = Size((1.0, 4.0, 4.0, 8.0, 8.0, 16.0), 8.0, 200_000, 40.0, 2, 60.0, 1.0)


@dataclass(frozen=True)
class Training:
    """What a training came to; seconds to a target that it did not reach are ``None``."""

    selection: str
    ended: str
    rounds: int
    seconds: float
    accuracy: float
    seconds_to_target: float | None
    mean_age: float
    largest_age: int
    updates: tuple[int, ...]


def ages_of(arrived: Sequence[Sequence[int]], clients: int) -> NDArray[np.int64]:
    """``[round, client]``: the ages after every round, by Eq. 2, of who arrived in it.

    >>> ages_of([[0, 1], [1], []], 2).tolist()
    [[0, 0], [1, 0], [2, 1]]
    """
    ages = np.zeros((len(arrived) + 1, clients), np.int64)
    for t, rows in enumerate(arrived):
        ages[t + 1] = ages[t] + 1
        ages[t + 1, list(rows)] = 0
    return ages[1:]


def summed_up(
    selection: str, ended: str, notes: Sequence[Mapping[str, Any]], size: Size
) -> Training:
    """A training by the notes of its rounds, of which the first is the initial model."""
    clients, arrived = len(size.rates_mbit_s), [note["arrived"] for note in notes[1:]]
    reached = [note["seconds"] for note in notes if note["accuracy"] >= size.target]
    ages = ages_of(arrived, clients)
    counts = np.bincount([k for rows in arrived for k in rows], minlength=clients)
    return Training(
        selection=selection,
        ended=ended,
        rounds=len(arrived),
        seconds=notes[-1]["seconds"],
        accuracy=max(note["accuracy"] for note in notes),
        seconds_to_target=min(reached, default=None),
        mean_age=float(ages.mean()) if arrived else 0.0,
        largest_age=int(ages.max()) if arrived else 0,
        updates=tuple(counts.tolist()),
    )


def table(trainings: Sequence[Training], size: Size) -> str:
    """The trainings side by side; ``s to 0.5`` are the seconds to that accuracy."""
    names = ["rounds", "seconds", "accuracy", f"s to {size.target:g}", "mean age", "largest age"]
    lines = ["".join([f"{'':16}", *_right(names), "  updates by client"])]
    for each in trainings:
        seconds = each.seconds_to_target
        cells = [str(each.rounds), f"{each.seconds:.0f}", f"{each.accuracy:.3f}"]
        cells += ["missed" if seconds is None else f"{seconds:.0f}"]
        cells += [f"{each.mean_age:.2f}", str(each.largest_age)]
        updates = " ".join(map(str, each.updates))
        lines.append("".join([f"{each.selection:16}", *_right(cells), f"  {updates}"]))
    return "\n".join(lines)


def _right(cells: Sequence[str]) -> list[str]:
    return [f"{cell:>13}" for cell in cells]
