"""How large the trainings of `make federation` are, and what they came to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

SELECTIONS = ("age-based", "max-pack", "flower")
_NAMES = {"flower": "random (Flower)"}


@dataclass(frozen=True)
class Size:
    """How large a training is: uplink rates, bytes of an update, rounds, seconds, accuracies.

    A training ends with the round in which it reaches the ``target``, or with the first that ends
    after ``budget_s``. The target and the ``levels`` below it were chosen by ``--trial``, before
    any run over links of this size: 0.65 is the best accuracy of random sampling after 8 rounds
    (the median of 20 samplings), and all 20 reach it before their time is over.
    """

    rates_mbit_s: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 4.0, 16.0)
    update_bytes: int = 1_600_000
    deadline_s: float = 100.0
    rounds: int = 100
    budget_s: float = 720.0
    target: float = 0.65
    levels: tuple[float, ...] = (0.5, 0.6)


SHORT = Size((1.0, 4.0, 4.0, 8.0, 8.0, 16.0), 200_000, 40.0, 2, 60.0, 1.0)


@dataclass(frozen=True)
class Training:
    """What a training came to; rounds and seconds to what it did not reach are ``None``.

    ``seconds_to_levels`` are those to the levels of its size, in their order.
    """

    selection: str
    ended: str
    rounds: int
    seconds: float
    accuracy: float
    rounds_to_target: int | None
    seconds_to_target: float | None
    seconds_to_levels: tuple[float | None, ...]
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

    def first(level: float) -> Mapping[str, Any]:
        return next((note for note in notes if note["accuracy"] >= level), {})

    clients, arrived = len(size.rates_mbit_s), [note["arrived"] for note in notes[1:]]
    ages, reached = ages_of(arrived, clients), first(size.target)
    counts = np.bincount([k for rows in arrived for k in rows], minlength=clients)
    return Training(
        selection=selection,
        ended=ended,
        rounds=len(arrived),
        seconds=notes[-1]["seconds"],
        accuracy=max(note["accuracy"] for note in notes),
        rounds_to_target=reached.get("round"),
        seconds_to_target=reached.get("seconds"),
        seconds_to_levels=tuple(first(level).get("seconds") for level in size.levels),
        mean_age=float(ages.mean()) if arrived else 0.0,
        largest_age=int(ages.max()) if arrived else 0,
        updates=tuple(counts.tolist()),
    )


def table(trainings: Sequence[Training], size: Size) -> str:
    """The trainings side by side; ``s to 0.5`` are the seconds to that accuracy."""
    levels = [f"s to {level:g}" for level in (*size.levels, size.target)]
    names = ["rounds", "seconds", "accuracy", *levels, f"rounds to {size.target:g}"]
    names += ["mean age", "largest age"]
    widths = [max(len(name), 7) + 2 for name in names]
    lines = ["".join([f"{'':16}", *_right(names, widths), "  updates by client"])]
    for each in trainings:
        seconds = [*each.seconds_to_levels, each.seconds_to_target]
        cells = [str(each.rounds), f"{each.seconds:.0f}", f"{each.accuracy:.3f}"]
        cells += ["missed" if value is None else f"{value:.0f}" for value in seconds]
        cells += ["missed" if each.rounds_to_target is None else str(each.rounds_to_target)]
        cells += [f"{each.mean_age:.2f}", str(each.largest_age)]
        name, updates = name_of(each.selection), " ".join(map(str, each.updates))
        lines.append("".join([f"{name:16}", *_right(cells, widths), f"  {updates}"]))
    return "\n".join(lines)


def name_of(selection: str) -> str:
    """How a selection is called for readers."""
    return _NAMES.get(selection, selection)


def _right(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)]


def ratios_text(trainings: Sequence[Training], size: Size) -> str:
    """The ratio of seconds to each accuracy, of Flower's random sampling over age-based."""
    by = {each.selection: each for each in trainings}
    if not {"age-based", "flower"} <= by.keys():
        return ""
    one, other = by["age-based"], by["flower"]
    lines = ["ratio of seconds, random sampling / age-based:"]
    for i, level in enumerate((*size.levels, size.target)):
        ours, theirs = ([*x.seconds_to_levels, x.seconds_to_target][i] for x in (one, other))
        word = "the target" if i == len(size.levels) else "a level below it"
        lines.append(f"  to {level:g} ({word}): {_ratio(ours, theirs, one, other)}")
    return "\n".join(lines)


def _ratio(ours: float | None, theirs: float | None, one: Training, other: Training) -> str:
    if ours is not None and theirs is not None:
        return f"{theirs / ours:.2f}"
    if ours is not None:
        least = other.seconds / ours
        return f"over {least:.2f}, for random sampling missed it in {other.seconds:.0f} s"
    if theirs is not None:
        most = theirs / one.seconds
        return f"under {most:.2f}, for age-based missed it in {one.seconds:.0f} s"
    return "none, for both missed it"
