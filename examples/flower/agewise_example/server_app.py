"""The server: FedAvg, with a policy that chooses who trains."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flwr.app import Array, ArrayRecord, ConfigRecord, Context, MetricRecord, RecordDict
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from agewise.flower import Airtime, Clients, Links, Modelled, Scheduled, Slots, Timeouts

from .task import PADDING, Model, make_model, padded, scenario

app = ServerApp()


class Finished(Exception):
    """The target was reached, or the time is over."""


class Watched(FedAvg):
    """FedAvg that notes every round and ends when the target is reached.

    A note is a line of JSON: the round, seconds since the start, accuracy, and who arrived.
    """

    def __init__(self, model: Model, config: Mapping[str, Any], **options: Any) -> None:
        super().__init__(train_metrics_aggr_fn=self._note_arrived, **options)
        self._model, self._config = model, config
        self._arrived: list[int] = []
        self._began, self._finished = 0.0, False
        folder = config["folder"]
        self._notes = Path(folder, "notes.jsonl") if folder else None

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Any:
        """As FedAvg, unless the end was reached."""
        if self._finished:
            raise Finished
        return super().configure_train(server_round, arrays, config, grid)

    def evaluate(self, server_round: int, arrays: ArrayRecord) -> MetricRecord:
        """Accuracy and loss on the server's test samples; the clock starts with the first model."""
        model = {name: array.numpy() for name, array in arrays.items() if name != PADDING}
        accuracy, loss = self._model.evaluate(model)
        self._began = self._began or time.monotonic()
        seconds = time.monotonic() - self._began
        note = {
            "round": server_round,
            "seconds": round(seconds, 3),
            "accuracy": accuracy,
            "loss": loss,
            "arrived": sorted(self._arrived),
        }
        self._arrived = []
        if self._notes is not None:
            self._notes.parent.mkdir(parents=True, exist_ok=True)
            with self._notes.open("a", encoding="utf-8") as file:
                file.write(json.dumps(note) + "\n")
        over = seconds >= float(self._config["budget-s"])
        self._finished = over or accuracy >= float(self._config["target-accuracy"])
        return MetricRecord({"accuracy": accuracy, "loss": loss})

    def _note_arrived(self, replies: list[RecordDict], weighted_by_key: str) -> MetricRecord:
        records = [reply["metrics"] for reply in replies]
        self._arrived = [int(record["client"]) for record in records]
        return MetricRecord({weighted_by_key: sum(int(r[weighted_by_key]) for r in records)})


def make_links(config: Mapping[str, Any]) -> Links:
    """The links that the run configuration names."""
    match config["links"]:
        case "slots":
            return Slots(int(config["places"]))
        case "airtime":
            return Airtime(shares=int(config["shares"]), deadline_s=float(config["deadline-s"]))
        case "modelled":
            return Modelled(scenario(config), seed=int(config["seed"]))
        case other:
            raise ValueError(f"links must be slots, airtime or modelled, not {other!r}")


def make_strategy(config: Mapping[str, Any], model: Model) -> tuple[Watched, Any]:
    """FedAvg, and the strategy to start: FedAvg itself, or `Scheduled` around it."""
    clients, places = int(config["clients"]), int(config["places"])
    if config["selection"] == "flower":
        watched = Watched(
            model,
            config,
            fraction_train=places / clients,
            fraction_evaluate=0.0,
            min_train_nodes=places,
            min_available_nodes=clients,
        )
        return watched, watched
    watched = Watched(model, config, fraction_evaluate=0.0, min_available_nodes=clients)
    sizes = {id_: model.size(k) for k, id_ in enumerate(_known(config))}
    strategy = Scheduled(
        watched,
        policy=str(config["selection"]),
        links=make_links(config),
        losses="start-loss",
        shadow=[name.strip() for name in str(config["shadow"]).split(",") if name.strip()],
        clients=Clients(sizes, ask=bool(config["simulated"])),
        folder=config["folder"] or None,
        timeouts=Timeouts(poll_s=float(config["poll-s"])),
        seed=int(config["seed"]),
    )
    return watched, strategy


def _known(config: Mapping[str, Any]) -> list[str]:
    """The ids of the clients that are known beforehand, in the order of their numbers."""
    file = config["client-ids"]
    return Path(file).read_text(encoding="utf-8").split() if file else []


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train as the run configuration says."""
    config = context.run_config
    model = make_model(config)
    watched, strategy = make_strategy(config, model)
    start = padded(model.initial(), int(config["update-bytes"]), -1, -1)
    arrays = ArrayRecord({name: Array(array) for name, array in start.items()})
    try:
        strategy.start(
            grid=grid,
            initial_arrays=arrays,
            num_rounds=int(config["num-server-rounds"]),
            timeout=max(float(config["deadline-s"]), 600.0),
            evaluate_fn=watched.evaluate,
        )
    except Finished:
        print("the target is reached, or the time is over")
