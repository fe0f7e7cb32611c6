"""What `Scheduled` costs over the strategy inside it: ``python -m benchmarks.flower``.

A grid in this process answers at once with the model that it was sent, so that what is timed is
the server alone.
"""

import hashlib
import logging
import statistics
import time
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg
from flwr.supercore.task_identity import TaskIdentity

from agewise.flower import Airtime, Scheduled, Slots, Timeouts

_ROUNDS = 12
_MODEL = 10_000


class EchoGrid(Grid):
    """Every node sends back the model that it got."""

    def __init__(self, nodes: int) -> None:
        self._nodes = [
            NodeInfo(node_id=1000 + k, public_key=hashlib.sha256(str(k).encode()).digest())
            for k in range(nodes)
        ]
        self._ids = [node.node_id for node in self._nodes]
        self._replies: dict[str, Message] = {}

    def set_run(self, run):
        """There is only one."""

    @property
    def run(self):
        """There is only one."""
        return None

    def create_message(self, *_, **__):
        """Nobody asks for it."""
        raise NotImplementedError

    def get_nodes(self):
        """All nodes."""
        return self._nodes

    def get_node_ids(self):
        """Their numbers."""
        return self._ids

    def push_messages(self, messages):
        """Make the replies at once."""
        ids = []
        for message in messages:
            id_ = f"{len(self._replies)}"
            message.metadata.__dict__["_message_id"] = id_
            metrics = MetricRecord({"num-examples": 10})
            content = RecordDict({"arrays": message.content["arrays"], "metrics": metrics})
            self._replies[id_] = Message(content, reply_to=message)
            ids.append(id_)
        return ids

    def pull_messages(self, message_ids):
        """The replies."""
        return [self._replies[id_] for id_ in message_ids]

    def send_and_receive(self, messages, *, timeout=None):
        """Both."""
        return self.pull_messages(self.push_messages(list(messages)))


def seconds_a_round(strategy: Any, grid: EchoGrid, arrays: ArrayRecord) -> float:
    """The median over the rounds after the first, which compiles."""
    ends = []

    def note(*_):
        ends.append(time.perf_counter())

    strategy.start(grid, arrays, num_rounds=_ROUNDS, timeout=60.0, evaluate_fn=note)
    return float(statistics.median(np.diff(ends)[1:]))


def measure(clients: int, chosen: int) -> None:
    """Print the seconds of a round with and without scheduling."""
    arrays = ArrayRecord({"model": Array(np.zeros(_MODEL, np.float32))})
    plain = FedAvg(fraction_train=chosen / clients, fraction_evaluate=0.0, min_train_nodes=chosen)
    alone = seconds_a_round(plain, EchoGrid(clients), arrays)
    print(f"{clients:,} clients, {chosen} a round: FedAvg {1e3 * alone:.1f} ms")
    timeouts = Timeouts(least_round_s=0.0)
    for name, links in (
        ("Slots", Slots(chosen)),
        ("Airtime", Airtime(shares=chosen, deadline_s=60.0)),
    ):
        strategy = Scheduled(FedAvg(fraction_evaluate=0.0), links=links, timeouts=timeouts)
        taken = seconds_a_round(strategy, EchoGrid(clients), arrays)
        print(f"  age-based over {name}: {1e3 * (taken - alone):.1f} ms more")


def main() -> None:
    """Both sizes of the goal."""
    logging.getLogger("flwr").setLevel(logging.ERROR)
    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 1, 1
    measure(100, 10)
    measure(100_000, 10)


if __name__ == "__main__":
    main()
