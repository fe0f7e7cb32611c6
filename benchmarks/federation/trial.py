"""The trainings of `make federation` without processes and links, to choose sizes and target by.

``python -m benchmarks.federation --trial`` trains the same clients in this process. Seconds are
those of an idle machine: `ROUND_S`, and the upload of the slowest client that was chosen.
"""

import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agewise.flower import Airtime, RoundPlanner, UploadTiming
from benchmarks.federation.sums import Size, Training, summed_up, table

APP = Path(__file__).resolve().parents[2] / "examples" / "flower"
#: A round without its uploads: nodes look for messages every 3 s and start a process for each.
ROUND_S = 8.0
SAMPLINGS = 20

#: Who trains in each round.
Choices = Iterator[NDArray[np.int64]]


def trial(selection: str, size: Size, seed: int = 0) -> Training:
    """One training; with Flower's sampling, ``seed`` decides who is drawn."""
    settings = tomllib.loads((APP / "pyproject.toml").read_text(encoding="utf-8"))
    config = settings["tool"]["flwr"]["app"]["config"] | {"clients": len(size.rates_mbit_s)}
    upload_s = 8e-6 * size.update_bytes / np.array(size.rates_mbit_s)
    if selection == "flower":
        choices = _drawn(config["places"], upload_s.size, seed)
    else:
        links = Airtime(config["shares"], size.deadline_s, payload_bytes=size.update_bytes)
        choices = _scheduled(selection, links, upload_s)
    notes = list(_rounds(choices, config, upload_s, size))
    return summed_up(selection, "trial", notes, size)


def print_trial(size: Size, selections: Sequence[str]) -> None:
    """All trainings; of Flower's sampling twenty, by the seconds that they took."""
    trainings = [trial(each, size) for each in selections if each != "flower"]
    samplings = range(SAMPLINGS if "flower" in selections else 0)
    drawn = [trial("flower", size, seed) for seed in samplings]
    drawn.sort(key=lambda each: each.seconds)
    print(table([*trainings, *drawn], size))


def _drawn(places: int, clients: int, seed: int) -> Choices:
    rng = np.random.default_rng(seed)
    while True:
        yield np.sort(rng.choice(clients, places, replace=False))


def _scheduled(policy: str, links: Airtime, upload_s: NDArray[np.float64]) -> Choices:
    """Whom a policy chooses over measured airtime, every upload being there in its time."""
    names = {f"client {k}": 1 for k in range(upload_s.size)}
    planner = RoundPlanner([policy], links, sizes=names)
    bits = 8.0 * (links.payload_bytes or 0.0)
    while True:
        planned = planner.plan(np.arange(upload_s.size))
        yield planned.chosen
        for row in planned.chosen.tolist():
            links.observe(
                planned.t, row, UploadTiming(ROUND_S + upload_s[row], upload_s[row], bits)
            )
        planner.receive(planned, planned.chosen)


def _rounds(
    choices: Choices, config: dict[str, Any], upload_s: NDArray[np.float64], size: Size
) -> Iterator[dict[str, Any]]:
    """The notes of the rounds, as the example's server writes them."""
    model = _make_model()(config)
    arrays, seconds = model.initial(), 0.0
    yield {"round": 0, "seconds": 0.0, "accuracy": model.evaluate(arrays)[0], "arrived": []}
    for t, rows in zip(range(size.rounds), choices, strict=False):
        trained = [model.train(arrays, k, t)["model"] for k in rows.tolist()]
        weights = np.array([model.size(k) for k in rows.tolist()], np.float64)
        mean = np.average(trained, axis=0, weights=weights).astype(np.float32)
        arrays, accuracy = {"model": mean}, model.evaluate({"model": mean})[0]
        seconds += ROUND_S + float(upload_s[rows].max())
        yield {"round": t + 1, "seconds": seconds, "accuracy": accuracy, "arrived": rows.tolist()}
        if accuracy >= size.target or seconds >= size.budget_s:
            return


def _make_model() -> Callable[[dict[str, Any]], Any]:
    """What makes the model of the example, which is an app and no package of this environment."""
    if str(APP) not in sys.path:
        sys.path.insert(0, str(APP))
    made: Callable[[dict[str, Any]], Any] = import_module("agewise_example.task").make_model
    return made
