"""What `Scheduled` costs over the strategy inside it: ``python -m benchmarks.flower [--write]``.

A grid in this process answers at once with the model that it was sent, so that what is timed is
the server alone. Every size is measured in a process of its own, for its memory. ``--write`` puts
the table into docs/federation.md.
"""

import argparse
import hashlib
import json
import logging
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg
from flwr.supercore.task_identity import TaskIdentity

from agewise.flower import Airtime, RoundPlanner, Scheduled, Slots, Timeouts, UploadTiming
from agewise.flower.replies import ReplyCheck
from benchmarks.federation.pages import put

_ROUNDS = 20
_MODEL, _LARGE_MODEL = 10_000, 1_000_000
#: Clients, places, and whether a folder keeps the rounds.
_SIZES = ((100, 10, False), (100, 10, True), (100_000, 10, False), (100_000, 100, True))


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
            self._replies[id_] = reply_to(message)
            ids.append(id_)
        return ids

    def pull_messages(self, message_ids):
        """The replies."""
        return [self._replies[id_] for id_ in message_ids]

    def send_and_receive(self, messages, *, timeout=None):
        """Both."""
        return self.pull_messages(self.push_messages(list(messages)))


def reply_to(message: Message) -> Message:
    """The model of a message, as an update."""
    metrics = MetricRecord({"num-examples": 10})
    content = RecordDict({"arrays": message.content["arrays"], "metrics": metrics})
    return Message(content, reply_to=message)


def seconds_a_round(strategy: Any, clients: int) -> np.ndarray:
    """CPU time: median, mean and the most of the rounds after the first, which compiles."""
    ends: list[float] = []

    def note(*_):
        ends.append(time.process_time())

    arrays = ArrayRecord({"model": Array(np.zeros(_MODEL, np.float32))})
    strategy.start(EchoGrid(clients), arrays, num_rounds=_ROUNDS, timeout=60.0, evaluate_fn=note)
    seconds = np.diff(ends)[1:]
    return np.array([np.median(seconds), seconds.mean(), seconds.max()])


def measure(clients: int, places: int, folder: bool) -> dict[str, Any]:
    """Seconds of a round more than FedAvg takes, MB of the files, and GB of memory.

    The files of a round are the last state and round and, what is written now and then, results.
    """
    share = places / clients
    plain = FedAvg(fraction_train=share, fraction_evaluate=0.0, min_train_nodes=places)
    alone, timeouts = seconds_a_round(plain, clients), Timeouts(least_round_s=0.0)
    found: dict[str, Any] = {"alone": alone[0]}
    for name, links in (
        ("slots", Slots(places)),
        ("airtime", Airtime(shares=places, deadline_s=60.0)),
    ):
        with tempfile.TemporaryDirectory() as place:
            strategy = Scheduled(
                FedAvg(fraction_evaluate=0.0), links=links, timeouts=timeouts,
                folder=place if folder else None,
            )  # fmt: skip
            found[name] = (seconds_a_round(strategy, clients) - alone).tolist()
            files = {x: 1e-6 * x.stat().st_size for x in Path(place).rglob("*") if x.is_file()}
            others = ("trace.npz", "clients.npz", "log.txt")
            last = Path(place, "rounds", f"{_ROUNDS - 1:06d}.npz")
            found[f"{name} MB"] = (
                sum(
                    size
                    for x, size in files.items()
                    if x.name not in others and (x == last or x.parent != last.parent)
                ),
                sum(files.values()),
            )
    found["GB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return found


def seconds_a_reply() -> float:
    """The check of a reply with a model of a million weights."""
    arrays = ArrayRecord({"model": Array(np.ones(_LARGE_MODEL, np.float32))})
    sent = Message(RecordDict({"arrays": arrays}), 1, "train")
    check, times = ReplyCheck(["num-examples"], "num-examples", 100), []
    for _ in range(20):
        began = time.process_time()
        assert not check.refusals({0: reply_to(sent)}, {0: arrays})
        times.append(time.process_time() - began)
    return statistics.median(times)


def megabytes_measured(clients: int) -> float:
    """What `Airtime` has in the state of a federation when it has measured all clients."""
    links, ids = Airtime(shares=1, deadline_s=60.0), [str(k) for k in range(clients)]
    planner = RoundPlanner(["round-robin"], links)
    links.gains(0, ids)
    for row in planner.rows(ids).tolist():
        links.observe(0, row, UploadTiming(9.0, 3.0, 1e6))
    state = planner.snapshot()
    return 1e-6 * sum(x.nbytes for name, x in state.items() if name.startswith("links."))


def table() -> str:
    """What all sizes cost, each in a process of its own; of times median, mean and the most."""
    head = ("clients", "places", "folder", "FedAvg, ms", "`Slots`, ms more", "`Airtime`, ms more",
            "MB a round", "MB of the folder", "GB in all")  # fmt: skip
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for clients, places, folder in _SIZES:
        words = [sys.executable, "-m", "benchmarks.flower", "--size", *map(str, (clients, places)),
                 str(int(folder))]  # fmt: skip
        done = subprocess.run(words, check=True, capture_output=True, text=True)  # noqa: S603
        found = json.loads(done.stdout.splitlines()[-1])
        cells = [f"{clients:,}", str(places), "yes" if folder else "no"]
        cells += [f"{1e3 * found['alone']:.1f}"]
        for name in ("slots", "airtime"):
            cells += ["{:.1f}, {:.1f}, {:.1f}".format(*(1e3 * x for x in found[name]))]
        both = zip(found["slots MB"], found["airtime MB"], strict=True)
        cells += [*(f"{slots:.2f}, {airtime:.2f}" for slots, airtime in both)]
        cells += [f"{found['GB']:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    lines += [
        "",
        (
            f"Times are median, mean and the most of {_ROUNDS - 1} rounds, files with `Slots` and "
            "with `Airtime`. The most, with a folder, is when results are first written; later "
            "that takes at most a hundredth of the time. The folder has the clients' ids, written "
            "when there are new ones, and the trace, written at the end. Once all of 100,000 "
            "clients are measured, `Airtime` "
            f"adds {megabytes_measured(100_000):.1f} MB to the state of a round."
        ),
        "",
        f"A reply with a million weights is checked in {1e3 * seconds_a_reply():.1f} ms.",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure all sizes, or one."""
    logging.getLogger("flwr").setLevel(logging.ERROR)
    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 1, 1
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flower")
    parser.add_argument("--size", nargs=3, type=int, help="clients, places, folder: one size alone")
    parser.add_argument("--write", action="store_true", help="put it into docs/federation.md")
    given = parser.parse_args()
    if given.size:
        print(json.dumps(measure(*given.size)))
        return
    text = table()
    print(text)
    if given.write:
        put("overhead", text)


if __name__ == "__main__":
    main()
