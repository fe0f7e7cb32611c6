"""Three trainings over links that differ: ``python -m benchmarks.federation`` (`make federation`).

A SuperLink and six SuperNodes with TLS and node keys, each in a network namespace with its own
uplink rate, train the example app: with age-based and max-pack scheduling over measured airtime,
and with Flower's own random sampling. Where namespaces are not allowed all run on the loopback
address, with links of the simulator's channel.
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agewise.experiment import Result
from agewise.report import write_page
from benchmarks.federation.deployment import Deployment, interrupts_as_exceptions

APP = Path(__file__).resolve().parents[2] / "examples" / "flower"
RATES_MBIT_S = (0.25, 0.5, 1.0, 2.0, 4.0, 16.0)
SELECTIONS = ("age-based", "max-pack", "flower")
_NAMES = {"flower": "random (Flower)"}


@dataclass(frozen=True)
class Size:
    """How large a training is: uplink rates, bytes of an update, rounds, seconds, accuracy."""

    rates_mbit_s: tuple[float, ...] = RATES_MBIT_S
    update_bytes: int = 1_600_000
    deadline_s: float = 100.0
    rounds: int = 100
    budget_s: float = 210.0
    target: float = 0.65


SHORT = Size((1.0, 4.0, 4.0, 8.0, 8.0, 16.0), 200_000, 40.0, 2, 60.0, 1.0)


@dataclass(frozen=True)
class Training:
    """What a training came to; rounds and seconds to the target are ``None`` if it was missed."""

    selection: str
    ended: str
    rounds: int
    seconds: float
    accuracy: float
    rounds_to_target: int | None
    seconds_to_target: float | None
    mean_age: float
    largest_age: int
    updates: tuple[int, ...]


def ages_of(arrived: Sequence[Sequence[int]], clients: int) -> "np.typing.NDArray[np.int64]":
    """``[round, client]``: the ages after every round, by Eq. 2, of who arrived in it.

    >>> ages_of([[0, 1], [1], []], 2).tolist()
    [[0, 0], [1, 0], [2, 1]]
    """
    ages = np.zeros((len(arrived) + 1, clients), np.int64)
    for t, rows in enumerate(arrived):
        ages[t + 1] = ages[t] + 1
        ages[t + 1, list(rows)] = 0
    return ages[1:]


def summed_up(selection: str, ended: str, notes: list[dict[str, Any]], size: Size) -> Training:
    """A training by the notes of its rounds, of which the first is the initial model."""
    clients, arrived = len(size.rates_mbit_s), [note["arrived"] for note in notes[1:]]
    ages = ages_of(arrived, clients)
    reached = next((note for note in notes if note["accuracy"] >= size.target), None)
    counts = np.bincount([k for rows in arrived for k in rows], minlength=clients)
    return Training(
        selection=selection,
        ended=ended,
        rounds=len(arrived),
        seconds=notes[-1]["seconds"],
        accuracy=max(note["accuracy"] for note in notes),
        rounds_to_target=None if reached is None else reached["round"],
        seconds_to_target=None if reached is None else reached["seconds"],
        mean_age=float(ages.mean()) if arrived else 0.0,
        largest_age=int(ages.max()) if arrived else 0,
        updates=tuple(counts.tolist()),
    )


def config_of(selection: str, size: Size, shaped: bool) -> dict[str, Any]:
    """The run configuration of a training."""
    return {
        "selection": selection,
        "links": "airtime" if shaped else "modelled",
        "clients": len(size.rates_mbit_s),
        "deadline-s": size.deadline_s,
        "num-server-rounds": size.rounds,
        "budget-s": size.budget_s,
        "target-accuracy": size.target,
        "update-bytes": size.update_bytes,
        "shadow": "max-pack,random" if selection == "age-based" else "",
    }


def train(deployment: Deployment, config: Mapping[str, Any], folder: Path) -> tuple[str, list[Any]]:
    """Run a training in this folder: how it ended, and the notes of its rounds."""
    ids = deployment.folder / "client-ids"
    ids.write_text("\n".join(deployment.ids), encoding="utf-8")
    run = deployment.run(APP, {**config, "folder": str(folder), "client-ids": str(ids)})
    ended = deployment.wait(run, float(config["budget-s"]) + 3 * float(config["deadline-s"]) + 60)
    file = folder / "notes.jsonl"
    if not file.exists():
        raise SystemExit(f"the training ended with {ended}:\n{deployment.server_log(run)}")
    return ended, [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def table(trainings: Sequence[Training], size: Size) -> str:
    """The trainings side by side."""
    head = f"{'':17}{'rounds':>7}{'seconds':>9}{'accuracy':>10}   to {size.target:g}: "
    lines = [f"{head}{'rounds':>7}{'seconds':>9}{'mean age':>10}{'largest':>9}   updates by client"]
    for each in trainings:
        name = _NAMES.get(each.selection, each.selection)
        to = [each.rounds_to_target, each.seconds_to_target]
        rounds, seconds = ("-" if value is None else f"{value:.0f}" for value in to)
        lines.append(
            f"{name:17}{each.rounds:7d}{each.seconds:9.0f}{each.accuracy:10.3f}   "
            f"{'':{len(f'to {size.target:g}: ')}}{rounds:>7}{seconds:>9}"
            f"{each.mean_age:10.2f}{each.largest_age:9d}   {' '.join(map(str, each.updates))}"
        )
    return "\n".join(lines)


def ratio_text(trainings: Sequence[Training]) -> str:
    """How age-based compares with Flower's random sampling, in seconds to the target."""
    by = {each.selection: each for each in trainings}
    if not {"age-based", "flower"} <= by.keys():
        return ""
    one, other = by["age-based"], by["flower"]
    if one.seconds_to_target is None:
        return "age-based did not reach the target in its time"
    if other.seconds_to_target is None:
        least = other.seconds / one.seconds_to_target
        return f"random sampling missed the target: age-based is over {least:.2f} times as fast"
    ratio = other.seconds_to_target / one.seconds_to_target
    return f"seconds to the target, random sampling / age-based: {ratio:.2f}"


def where_text(deployment: Deployment, size: Size) -> str:
    """What links the federation has, and why they are not shaped if they are not."""
    if deployment.network.shaped:
        return f"uplinks of {', '.join(f'{rate:g}' for rate in size.rates_mbit_s)} Mbit/s"
    return f"loopback with modelled links ({deployment.why_not_shaped or 'as asked for'})"


def federation(
    size: Size, selections: Sequence[str], folder: Path, loopback: bool = False
) -> list[Training]:
    """All trainings one after the other, on the same nodes; prints and keeps what they came to."""
    trainings = []
    with Deployment(len(size.rates_mbit_s), None if loopback else size.rates_mbit_s) as deployment:
        shaped, where = deployment.network.shaped, where_text(deployment, size)
        print(f"{len(size.rates_mbit_s)} SuperNodes, TLS, node keys; {where}", flush=True)
        for selection in selections:
            place = folder / selection
            config = config_of(selection, size, shaped)
            ended, notes = train(deployment, config, place)
            trainings.append(summed_up(selection, ended, notes, size))
            print(f"  {selection}: {ended}, {trainings[-1].seconds:.0f} s", flush=True)
            if selection != "flower":
                print(f"    page: {write_page(Result.open(place))}", flush=True)
    print(table(trainings, size))
    print(ratio_text(trainings))
    summary = {"size": asdict(size), "shaped": shaped, "trainings": [asdict(x) for x in trainings]}
    (folder / "summary.json").write_text(json.dumps(summary, indent=1), encoding="utf-8")
    return trainings


def main(words: Sequence[str] | None = None) -> None:
    """Read the command line and train."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.federation", description=__doc__)
    parser.add_argument("--folder", type=Path, help="where results go; runs/federation-<time>")
    parser.add_argument("--short", action="store_true", help="two rounds each, small updates")
    parser.add_argument(
        "--loopback", action="store_true", help="modelled links, also where namespaces are allowed"
    )
    parser.add_argument("--selection", action="append", choices=SELECTIONS, help="only these")
    given = parser.parse_args(words)
    folder = given.folder or Path("runs") / time.strftime("federation-%Y%m%d-%H%M%S")
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with interrupts_as_exceptions():
        try:
            size, selections = SHORT if given.short else Size(), given.selection or SELECTIONS
            federation(size, selections, folder, given.loopback)
        except KeyboardInterrupt:
            sys.exit("interrupted; everything that was started is ended")


if __name__ == "__main__":
    main()
