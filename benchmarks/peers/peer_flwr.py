# mypy: ignore-errors
"""Flower: its simulation runtime (Ray) with 100 virtual clients and the strategy FedAvg.

Two worker processes of one core each train the clients: linear models in plain NumPy
(`flwr_client`), networks in PyTorch (`flwr_torch_client`). Memory is that of all processes which
Flower and Ray start.
"""

import logging
import os
from importlib import import_module

# To be set before the imports: no reports to anybody, and one thread per worker process.
os.environ.update(
    FLWR_TELEMETRY_ENABLED="0",
    RAY_USAGE_STATS_ENABLED="0",
    # Despite its name: with 0 Ray listens at 127.0.0.1 only, on Linux too.
    RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0",
    OMP_NUM_THREADS="1",
    OPENBLAS_NUM_THREADS="1",
)

import flwr
import numpy as np
import ray
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

from benchmarks.peers import common

WORKLOAD = common.chosen_workload()
client, server = ClientApp(), ServerApp()


def _worker():
    """What clients do; importing it loads the data, so it is left to the processes that train."""
    name = "flwr_client" if WORKLOAD.model == "linear" else "flwr_torch_client"
    return import_module(f"benchmarks.peers.{name}")


class EnoughMeasured(Exception):
    """Flower's way to end before the last round is an exception."""


@client.train()
def train(message: Message, context: Context) -> Message:
    """A client's answer to the server: its trained model."""
    arrays = message.content["arrays"].to_numpy_ndarrays()
    number = int(context.node_config["partition-id"])
    trained = ArrayRecord(_worker().train(arrays, number))
    metrics = MetricRecord({"num-examples": common.SAMPLES})
    return Message(content=RecordDict({"arrays": trained, "metrics": metrics}), reply_to=message)


def start():
    """The arrays of the initial model."""
    if WORKLOAD.model != "linear":
        return _worker().start()
    return [
        np.zeros((common.FEATURES, common.CLASSES), np.float32),
        np.zeros(common.CLASSES, np.float32),
    ]


def accuracy_of(arrays, features, labels) -> float:
    """The share of rows that a model classifies rightly."""
    if WORKLOAD.model != "linear":
        return _worker().accuracy(arrays, features, labels)
    weights, bias = arrays
    return float(((features @ weights + bias).argmax(1) == labels).mean())


@server.main()
def serve(grid: Grid, _context: Context) -> None:
    """All rounds, with an evaluation on the server after every tenth."""
    meter = common.Meter(several_processes=True)
    features, labels = common.load("xtest"), common.load("ytest")

    def evaluate(number: int, arrays: ArrayRecord) -> MetricRecord | None:
        if number == 0:  # the initial model
            return None
        accuracy = None
        if meter.evaluation_is_due:
            accuracy = accuracy_of(arrays.to_numpy_ndarrays(), features, labels)
        if not meter.after_round(accuracy):
            raise EnoughMeasured
        return None if accuracy is None else MetricRecord({"accuracy": accuracy})

    initial = ArrayRecord(start())
    strategy = FedAvg(
        fraction_train=common.COHORT / common.CLIENTS,
        fraction_evaluate=0.0,
        min_available_nodes=common.CLIENTS,
    )
    try:
        strategy.start(grid=grid, initial_arrays=initial, num_rounds=10**6, evaluate_fn=evaluate)
    except EnoughMeasured:
        meter.finish(f"{flwr.__version__}, ray {ray.__version__}")


def main() -> None:
    """Measure."""
    logging.getLogger("flwr").setLevel(logging.ERROR)
    init_args = {
        "num_cpus": 2,
        "include_dashboard": False,
        "log_to_driver": False,
        "logging_level": logging.ERROR,
        "_node_ip_address": "127.0.0.1",
    }
    if "PEER_SCRATCH" in os.environ:
        init_args["_temp_dir"] = os.environ["PEER_SCRATCH"]
    run_simulation(
        server,
        client,
        common.CLIENTS,
        backend_config={
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
            "init_args": init_args,
        },
    )


if __name__ == "__main__":
    main()
