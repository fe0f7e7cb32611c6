"""A federation in this process: real messages, ClientApps and strategies, and no sockets."""

import hashlib
import itertools
import traceback
from dataclasses import dataclass, replace

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Error, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg
from flwr.supercore.task_identity import TaskIdentity

from agewise.flower import Clients, Scheduled, Timeouts
from agewise.random import Streams
from agewise.simulation import samples_of

TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 1, 1
#: No waiting in tests.
FAST = Timeouts(least_round_s=0.0, wait_s=2.0, poll_s=0.002)
IMPATIENT = replace(FAST, patience=3)


def key_of(number):
    return f"key {number}".encode()


def id_of(number):
    return hashlib.sha256(key_of(number)).hexdigest()


class InProcessGrid(Grid):
    """Nodes 1000, 1001, ... run one ClientApp when a message is sent to them.

    ``present(t)`` are the numbers of the clients that are connected before round ``t``;
    ``held(number, sent, t)`` says whether the reply to a message of round ``sent`` is still under
    way in round ``t``.
    """

    def __init__(self, app, present, held=None, keys=True, config=None):
        self.app, self._present, self._held, self._keys = app, present, held, keys
        self._config = config or {}
        self.t, self._count, self._replies, self.asked = 0, itertools.count(1), {}, []

    def set_run(self, run): ...

    @property
    def run(self):
        return None

    def create_message(self, *_, **__):
        raise NotImplementedError

    def get_nodes(self):
        return [
            NodeInfo(node_id=1000 + k, public_key=key_of(k) if self._keys else b"")
            for k in self._present(self.t)
        ]

    def get_node_ids(self):
        return [node.node_id for node in self.get_nodes()]

    def push_messages(self, messages):
        ids = []
        for message in messages:
            message.metadata.__dict__["_message_id"] = id_ = f"message {next(self._count)}"
            node = message.metadata.dst_node_id
            self.asked.append((self.t, message.metadata.message_type, node - 1000))
            context = Context(1, node, {"partition-id": node - 1000}, RecordDict(), self._config)
            try:
                reply = self.app(message, context)
            except Exception:
                reply = Message(Error(2, traceback.format_exc()), reply_to=message)
            self._replies[id_] = reply, node - 1000, self.t
            ids.append(id_)
        return ids

    def pull_messages(self, message_ids):
        return [self._replies.pop(i)[0] for i in list(message_ids) if self._is_there(i)]

    def _is_there(self, id_):
        if id_ not in self._replies:
            return False
        _, number, sent = self._replies[id_]
        return self._held is None or not self._held(number, sent, self.t)

    def send_and_receive(self, messages, *, timeout=None):
        return self.pull_messages(list(self.push_messages(messages)))


@dataclass
class Problem:
    """The learner of a scenario, as a ClientApp and as the server's test set."""

    scenario: object
    seed: int = 0
    fails: frozenset = frozenset()
    mods: tuple = ()

    def __post_init__(self):
        self.streams = Streams(self.seed)
        self.learner = samples_of(self.scenario, self.streams).learner
        self.app = ClientApp(mods=list(self.mods))
        self.app.train()(self.train)

    @property
    def sizes(self):
        return {id_of(k): int(size) for k, size in enumerate(self.learner.sizes)}

    @property
    def arrays(self):
        return ArrayRecord({"model": Array(self.learner.init(self.streams))})

    def train(self, message, context):
        number, content = context.node_config["partition-id"], message.content
        if number in self.fails:
            raise RuntimeError("out of memory")
        start, t = content["arrays"]["model"].numpy(), content["config"]["server-round"] - 1
        ue = np.array([number])
        (model,) = self.learner.train(start, ue, t, self.streams)
        metrics = {
            "num-examples": int(self.learner.sizes[number]),
            "start-loss": float(self.learner.losses(start, ue)[0]),
        }
        reply = {"arrays": ArrayRecord({"model": Array(model)}), "metrics": MetricRecord(metrics)}
        return Message(RecordDict(reply), reply_to=message)

    def evaluate(self, server_round, arrays):
        found = self.learner.evaluate(arrays["model"].numpy())
        return MetricRecord({"accuracy": found.accuracy, "loss": found.loss})

    def everyone(self, t):
        return range(self.scenario.cell.ues)

    def start(self, strategy, rounds, present=None, held=None):
        """Train for this number of rounds; Flower's result."""
        grid = InProcessGrid(self.app, present or self.everyone, held)

        def evaluate(server_round, arrays):
            grid.t = server_round  # the next round, from 0
            return self.evaluate(server_round, arrays)

        self.grid = grid
        return strategy.start(grid, self.arrays, rounds, timeout=5.0, evaluate_fn=evaluate)

    def scheduled(self, policy, links, **options):
        options = {
            "timeouts": FAST,
            "losses": "start-loss",
            "clients": Clients(self.sizes),
        } | options
        inner = options.pop("inner", None) or FedAvg(fraction_evaluate=0.0)
        return Scheduled(inner, policy, links=links, seed=self.seed, **options)
