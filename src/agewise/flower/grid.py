"""Nodes and messages: who is connected, grids that keep deadlines or show only some nodes."""

import contextlib
import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, FIRST_EXCEPTION, Future, wait
from dataclasses import dataclass
from logging import WARNING
from typing import Any, NamedTuple

from flwr.app import ConfigRecord, Context, Error, Message, MessageType, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.supercore import log
from google.protobuf.message import DecodeError

from agewise.checks import number_within, whole_number
from agewise.flower.links import FederationError, UploadTiming

try:
    from flwr.supercore.inflatable.inflatable_utils import pull_objects as _pull_objects
except ImportError:  # before Flower 1.41
    _pull_objects = None
#: A strategy that asks for the nodes more often than this in a round waits for more of them.
_MOST_ASKED = 4
#: The most looks for replies in a second, for all that are to come, and the seconds between two
#: looks for one that are not exceeded for that: those who are silent must not hide the others.
_MOST_LOOKS, _LONGEST_PAUSE_S = 100, 0.5
#: The most characters of a client's id.
_LONGEST_ID = 256
#: The action that a client answers with its id, and the record of the answer.
_ACTION = _RECORD = "agewise"
#: What Flower raises where the bytes that a client sent are no message; none is of a connection.
_UNREADABLE = (
    ArithmeticError, AttributeError, DecodeError, LookupError, MemoryError, RecursionError,
    TypeError, ValueError,
)  # fmt: skip


@dataclass(frozen=True)
class Timeouts:
    """Deadlines and waiting times of a federation, in seconds.

    ``deadline_s`` is when a reply is late, by default the deadline of the links, else the
    ``timeout`` that Flower's `start` is given. ``least_round_s`` is the least time of a round, so
    that rounds in which nobody can transmit do not pass at once. ``wait_s`` is how long to wait for
    the least number of nodes that the strategy asks for. ``poll_s`` is the time between two looks
    for a reply; it is longer, up to half a second, where more than a hundred looks a second would
    come of it. After ``patience`` rounds in a row in which no update arrived the run is stopped.
    """

    deadline_s: float | None = None
    least_round_s: float = 1.0
    wait_s: float = 120.0
    poll_s: float = 0.2
    patience: int = 20

    def __post_init__(self) -> None:
        whole_number("patience", self.patience, least=1)
        number_within("least_round_s", self.least_round_s, 0.0)
        number_within("wait_s", self.wait_s, 0.0)
        number_within("poll_s", self.poll_s, 0.0, above=True)
        if self.deadline_s is not None:
            number_within("deadline_s", self.deadline_s, 0.0, above=True)


class UnreadableReply(Error):
    """Takes the place of a reply that Flower cannot unpack; no error that a client sends is one."""


class Reply(NamedTuple):
    """A reply, the node that was asked, and what was measured on the way."""

    node: int
    message: Message
    timing: UploadTiming


def _forward(name: str) -> Callable[..., Any]:
    """A method that calls the one of this name of the grid inside."""

    def method(self: "_ForwardingGrid", *args: object, **options: object) -> object:
        return getattr(self.inside, name)(*args, **options)

    return method


class _ForwardingGrid(Grid):
    """A grid that passes everything on to another one."""

    def __init__(self, grid: Grid) -> None:
        self.inside = grid

    set_run = _forward("set_run")
    run = property(lambda self: self.inside.run)
    create_message = _forward("create_message")
    get_node_ids = _forward("get_node_ids")
    get_nodes = _forward("get_nodes")
    push_messages = _forward("push_messages")
    pull_messages = _forward("pull_messages")
    send_and_receive = _forward("send_and_receive")


class SubsetGrid(_ForwardingGrid):
    """A grid on which a strategy finds these nodes and no others.

    Flower's strategies wait for ever where there are fewer nodes than they insist on: here that is
    an error.
    """

    def __init__(self, grid: Grid, nodes: Sequence[int]) -> None:
        super().__init__(grid)
        self._nodes, self._asked = list(nodes), 0

    def get_node_ids(self) -> Iterable[int]:
        """The ids of these nodes."""
        self._asked += 1
        if self._asked > _MOST_ASKED:
            raise FederationError(
                f"the strategy waits for more than the {len(self._nodes)} nodes that were chosen: "
                "set its least numbers of nodes (min_train_nodes, min_evaluate_nodes, "
                "min_available_nodes) to 1"
            )
        return list(self._nodes)

    def get_nodes(self) -> Iterable[Any]:
        """These nodes, where they are connected."""
        wanted = set(self._nodes)
        return [node for node in self.inside.get_nodes() if node.node_id in wanted]


class DeadlineGrid(_ForwardingGrid):
    """A grid whose deadlines hold: a thread for each message waits for its reply.

    Flower pulls all replies in one call that blocks until the slowest has come over its link,
    whatever the timeout. Here one that is late holds up nobody: it is waited for in the background
    and handed over by `late`; until then its node is in `busy`. A reply that cannot be unpacked is
    an error of its client; one of the connection is raised.
    """

    def __init__(self, grid: Grid, poll_s: float) -> None:
        super().__init__(grid)
        self._poll_s = poll_s
        self._stop = threading.Event()
        self._pending: dict[Future[Reply], int] = {}

    @property
    def busy(self) -> frozenset[int]:
        """The nodes whose reply to an earlier message is still to come."""
        return frozenset(self._pending.values())

    @property
    def pause_s(self) -> float:
        """Seconds between two looks for a reply."""
        return max(self._poll_s, min(len(self._pending) / _MOST_LOOKS, _LONGEST_PAUSE_S))

    def exchange(self, messages: Sequence[Message], timeout_s: float | None) -> list[Reply]:
        """Send messages; the replies that are there in time, errors among them."""
        ids = list(self.inside.push_messages(messages)) if messages else []
        started = time.monotonic()  # sending is the server's own time
        if len(ids) != len(messages):
            raise FederationError("the messages of a round could not be sent: they are too large")
        asked: list[Future[Reply]] = []
        for id_, message in zip(ids, messages, strict=True):
            if id_ is None:
                continue
            future: Future[Reply] = Future()
            self._pending[future] = message.metadata.dst_node_id
            work = (future, id_, message, started)
            threading.Thread(target=self._wait, args=work, daemon=True).start()
            asked.append(future)
        done, _ = wait(asked, timeout_s, FIRST_EXCEPTION)
        return self._take(future for future in asked if future in done)

    def late(self, wait_s: float = 0.0) -> list[Reply]:
        """The replies that came after their deadline, each once; wait so long for the first."""
        wait(self._pending, wait_s, FIRST_COMPLETED)
        return self._take(future for future in list(self._pending) if future.done())

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Send messages; the replies that are there in time."""
        return [reply.message for reply in self.exchange(list(messages), timeout)]

    def close(self) -> None:
        """End the threads that still wait, each after its present look."""
        self._stop.set()

    def _take(self, futures: Iterable[Future[Reply]]) -> list[Reply]:
        taken = list(futures)
        for future in taken:
            del self._pending[future]
        return [future.result() for future in taken]

    def _wait(self, future: Future[Reply], id_: str, message: Message, started: float) -> None:
        """Look for one reply until it is there."""
        try:
            while not self._stop.is_set():
                looked = time.monotonic()
                try:
                    found = list(self.inside.pull_messages([id_]))
                    bits = sum(map(_payload_bits, found))
                    if found and found[0].metadata.reply_to_message_id != id_:
                        raise ValueError  # clients write this themselves
                except _UNREADABLE as error:
                    reason = f"it cannot be read as an answer ({type(error).__name__})"
                    found, bits = [Message(UnreadableReply(0, reason), reply_to=message)], 0.0
                now = time.monotonic()
                if found:
                    timing = UploadTiming(now - started, now - looked, bits)
                    future.set_result(Reply(message.metadata.dst_node_id, found[0], timing))
                    return
                self._stop.wait(self.pause_s)
        except Exception as error:  # it is raised where the round waits
            future.set_exception(error)


@contextlib.contextmanager
def frequent_looks(every_s: float) -> Iterator[None]:
    """Let Flower look so often for the parts of a reply that are on their way.

    It waits 1, 2, 4 ... 10 s between two looks, which would be in every time that is measured. Its
    waits are no setting: where they cannot be found they stay.
    """
    waits = getattr(_pull_objects, "__kwdefaults__", {})
    before = dict(waits)
    if "backoff_cap" in waits:
        waits |= {"initial_backoff": every_s, "backoff_cap": every_s, "max_tries_per_object": None}
    try:
        yield
    finally:
        waits |= before


def _payload_bits(message: Message) -> float:
    """The size of the arrays that a reply carries."""
    if not message.has_content():
        return 0.0
    records = message.content.array_records.values()
    return 8.0 * sum(len(array.data) for record in records for array in record.values())


def identify(app: ClientApp, key: str = "partition-id") -> ClientApp:
    """Let a ClientApp say who it is: the entry ``key`` of its node's configuration."""

    @app.query(_ACTION)
    def say(message: Message, context: Context) -> Message:
        id_ = str(context.node_config[key])
        return Message(RecordDict({_RECORD: ConfigRecord({"id": id_})}), reply_to=message)

    return app


class Directory:
    """The client ids of the nodes that were seen; with ``ask`` nodes are asked, each once.

    A node that says nothing of use, or the id of another one, is left out.
    """

    def __init__(self, ask: bool) -> None:
        self._ask = ask
        self._ids: dict[int, str] = {}
        self._numbers: list[int] = []  # of the nodes in ``_found``
        self._found: dict[str, int] = {}

    def wait_for(
        self, least: int, grid: Grid, timeouts: Timeouts, content: RecordDict
    ) -> dict[str, int]:
        """The connected nodes by client, as soon as there are at least ``least``.

        ``content`` is sent along to those that are asked, for mods of ClientApps that read it.
        """
        end = time.monotonic() + timeouts.wait_s
        while len(nodes := self._connected(grid, timeouts.wait_s, content)) < least:
            if time.monotonic() >= end:
                raise FederationError(
                    f"{len(nodes) or 'no'} nodes are connected after {timeouts.wait_s:g} s, and "
                    f"{least} are needed: start more, or set min_available_nodes of the strategy"
                )
            time.sleep(min(1.0, timeouts.poll_s))
        return nodes

    def _connected(self, grid: Grid, timeout_s: float, content: RecordDict) -> dict[str, int]:
        nodes, busy = list(grid.get_nodes()), getattr(grid, "busy", ())
        numbers = [node.node_id for node in nodes]
        if numbers == self._numbers:  # as a rule
            return self._found
        new = [n for n in nodes if n.node_id not in self._ids and n.node_id not in busy]
        if self._ask:
            self._ask_for_ids(grid, [node.node_id for node in new], timeout_s, content)
        else:
            for node in new:  # without a key a client is known by the number of its node
                key, id_ = node.public_key, f"node-{node.node_id}"
                self._ids[node.node_id] = hashlib.sha256(key).hexdigest() if key else id_
        found: dict[str, int] = {}
        for number in filter(self._ids.get, numbers):
            if (id_ := self._ids[number]) in found:
                log(WARNING, "node %s is left out: node %s is client %s", number, found[id_], id_)
                self._ids[number] = ""
            else:
                found[id_] = number
        self._found, self._numbers = found, numbers if self._ids.keys() >= set(numbers) else []
        return found

    def _ask_for_ids(
        self, grid: Grid, nodes: Sequence[int], timeout_s: float, content: RecordDict
    ) -> None:
        kind, known = f"{MessageType.QUERY}.{_ACTION}", any(self._ids.values())
        messages, why = [Message(content, node, kind) for node in nodes], ""
        asked: dict[int, str] = {}
        for reply in grid.send_and_receive(messages, timeout=timeout_s) if messages else ():
            node, reason = reply.metadata.src_node_id, "no id in its answer"
            asked[node] = ""
            if reply.has_error():
                reason = (reply.error.reason.strip() or "no reason given").splitlines()[-1]
            elif _RECORD in (records := reply.content.config_records):
                id_ = str(records[_RECORD].get("id", ""))[:_LONGEST_ID]
                asked[node] = id_ if id_.isprintable() else ""
            if not asked[node]:
                why = f"agewise.flower.identify ({reason})"
                log(WARNING, "node %s is left out, for it does not say who it is: %s", node, reason)
        self._ids |= asked
        if why and not known and not any(asked.values()):
            raise FederationError(f"a client cannot say who it is: put its ClientApp through {why}")
