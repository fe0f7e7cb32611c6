"""Grids around Flower's: one that keeps deadlines, one that offers a strategy only some nodes."""

import queue
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from agewise.checks import real_number, whole_number
from agewise.flower.api import FederationError, Grid, Message, RecordDict
from agewise.flower.links import Delivery

#: A strategy that asks for the nodes more often than this in a round waits for more of them.
_MOST_ASKED = 4


@dataclass(frozen=True)
class Pace:
    """How long a federation waits, in seconds.

    ``deadline_s`` is when a reply is late, by default the deadline of the links, else the
    ``timeout`` that Flower's `start` is given. ``least_round_s`` is the least time of a round, so
    that rounds in which nobody can transmit do not pass at once. ``wait_s`` is how long to wait for
    the least number of nodes that the strategy asks for. ``poll_s`` is the time between two looks
    for a reply. After ``patience`` rounds in a row in which no update arrived the run is stopped.
    """

    deadline_s: float | None = None
    least_round_s: float = 1.0
    wait_s: float = 120.0
    poll_s: float = 0.5
    patience: int = 20

    def __post_init__(self) -> None:
        whole_number("patience", self.patience, least=1)
        for name in ("least_round_s", "wait_s"):
            if not real_number(name, getattr(self, name)) >= 0:
                raise ValueError(f"{name} must not be negative")
        for name in ("deadline_s", "poll_s"):
            value = getattr(self, name)
            if value is not None and not real_number(name, value) > 0:
                raise ValueError(f"{name} must be positive, not {value:g}")


class Reply(NamedTuple):
    """A reply, the node that was asked, and what was measured on the way."""

    node: int
    message: Message
    delivery: Delivery


class _Passed(Grid):
    """A grid that passes everything on."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid

    def set_run(self, run: Any) -> None:
        """Set the run."""
        self._grid.set_run(run)

    @property
    def run(self) -> Any:
        """The run."""
        return self._grid.run

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        """Create a message."""
        return self._grid.create_message(content, message_type, dst_node_id, group_id, ttl)

    def get_node_ids(self) -> Iterable[int]:
        """The ids of the nodes."""
        return list(self._grid.get_node_ids())

    def get_nodes(self) -> Iterable[Any]:
        """The nodes."""
        return list(self._grid.get_nodes())

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Send messages."""
        return list(self._grid.push_messages(messages))

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Get the replies that are there."""
        return list(self._grid.pull_messages(message_ids))

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Send messages and get their replies."""
        return list(self._grid.send_and_receive(messages, timeout=timeout))


class OfferedGrid(_Passed):
    """A grid on which a strategy finds these nodes and no others.

    Flower's strategies wait for ever where there are fewer nodes than they insist on: here that is
    an error.
    """

    def __init__(self, grid: Grid, nodes: Sequence[int]) -> None:
        super().__init__(grid)
        self._nodes, self._asked = list(nodes), 0

    def get_node_ids(self) -> Iterable[int]:
        """The nodes that are offered."""
        self._asked += 1
        if self._asked > _MOST_ASKED:
            raise FederationError(
                f"the strategy waits for more than the {len(self._nodes)} nodes that it is "
                "offered: set its least numbers of nodes (min_train_nodes, min_evaluate_nodes, "
                "min_available_nodes) to 1"
            )
        return list(self._nodes)

    def get_nodes(self) -> Iterable[Any]:
        """The nodes that are offered."""
        wanted = set(self._nodes)
        return [node for node in self._grid.get_nodes() if node.node_id in wanted]


class PromptGrid(_Passed):
    """A grid whose deadlines hold: a thread for each message waits for its reply.

    Flower pulls all replies in one call that blocks until the slowest has come over its link,
    whatever the timeout. Here one that is late holds up nobody: it is waited for in the background
    and handed over by `late`; until then its node is in `busy`.
    """

    def __init__(self, grid: Grid, poll_s: float) -> None:
        super().__init__(grid)
        self._poll_s = poll_s
        self._stop = threading.Event()
        self._arrived: queue.SimpleQueue[tuple[str, Reply | Exception]] = queue.SimpleQueue()
        self._waiting: dict[str, int] = {}
        self._late: list[Reply] = []

    @property
    def busy(self) -> frozenset[int]:
        """The nodes whose reply to an earlier message is still to come."""
        return frozenset(self._waiting.values())

    def exchange(self, messages: Sequence[Message], deadline_s: float) -> list[Reply]:
        """Send messages; the replies that are there by the deadline, errors among them."""
        ids = list(self._grid.push_messages(messages)) if messages else []
        started = time.monotonic()  # sending is the server's own time
        if len(ids) != len(messages):
            raise FederationError("the messages of a round could not be sent: they are too large")
        sent = {
            id_: message.metadata.dst_node_id
            for id_, message in zip(ids, messages, strict=True)
            if id_ is not None
        }
        self._waiting |= sent
        for id_, node in sent.items():
            threading.Thread(target=self._wait, args=(id_, node, started), daemon=True).start()
        replies: list[Reply] = []
        missing = set(sent)
        while missing and (left := started + deadline_s - time.monotonic()) > 0:
            try:
                id_, reply = self._arrived.get(timeout=left)
            except queue.Empty:
                break
            taken = self._take(id_, reply)
            (replies if id_ in missing else self._late).append(taken)
            missing.discard(id_)
        return replies

    def late(self) -> list[Reply]:
        """The replies that came after their deadline, each once."""
        late, self._late = self._late, []
        while True:
            try:
                late.append(self._take(*self._arrived.get_nowait()))
            except queue.Empty:
                return late

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """The replies that are there in time."""
        deadline_s = threading.TIMEOUT_MAX if timeout is None else timeout
        return [reply.message for reply in self.exchange(list(messages), deadline_s)]

    def close(self) -> None:
        """End the threads that still wait, each after its present look."""
        self._stop.set()

    def _take(self, id_: str, reply: Reply | Exception) -> Reply:
        self._waiting.pop(id_, None)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def _wait(self, id_: str, node: int, started: float) -> None:
        """Look for one reply until it is there."""
        try:
            while not self._stop.is_set():
                looked = time.monotonic()
                found = list(self._grid.pull_messages([id_]))
                now = time.monotonic()
                if found:
                    bits = 8.0 * _payload_bytes(found[0])
                    delivery = Delivery(now - started, now - looked, bits)
                    self._arrived.put((id_, Reply(node, found[0], delivery)))
                    return
                self._stop.wait(self._poll_s)
        except Exception as error:  # it is raised where the round waits
            self._arrived.put((id_, error))


def _payload_bytes(message: Message) -> int:
    """The size of the arrays that a reply carries."""
    if not message.has_content():
        return 0
    records = message.content.array_records.values()
    return sum(len(array.data) for record in records for array in record.values())
