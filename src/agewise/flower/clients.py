"""Which client is which: stable ids, whatever numbers the nodes get."""

import hashlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agewise.checks import whole_number
from agewise.flower.api import (
    ClientApp,
    ConfigRecord,
    FederationError,
    Grid,
    Message,
    MessageType,
    RecordDict,
)
from agewise.flower.grid import Pace, PromptGrid

#: The action that a client answers with its id, and the record of the answer.
_ACTION = "agewise"
_RECORD = "agewise"


@dataclass(frozen=True)
class Clients:
    """How clients are known.

    A client's id is the SHA-256 of its node's public key, which it keeps over restarts. In Flower's
    simulation nodes have new keys each time: with ``ask`` each new node is asked once for its id,
    and the ClientApp answers through `identify`. ``sizes`` has the numbers of samples of clients
    that are known beforehand, by id: they have the first rows, in this order.
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
    ask: bool = False

    def __post_init__(self) -> None:
        for id_, size in self.sizes.items():
            whole_number(f"the number of samples of client {id_}", size, least=1)


def identify(app: ClientApp, key: str = "partition-id") -> ClientApp:
    """Let a ClientApp say who it is: the entry ``key`` of its node's configuration."""

    @app.query(_ACTION)
    def say(message: Message, context: Any) -> Message:
        id_ = str(context.node_config[key])
        return Message(RecordDict({_RECORD: ConfigRecord({"id": id_})}), reply_to=message)

    return app


class Directory:
    """The ids of the nodes that were seen, each worked out once."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._ids: dict[int, str] = {}

    def wait_for(self, least: int, grid: Grid, pace: Pace) -> dict[str, int]:
        """The connected nodes by client, as soon as there are at least ``least``."""
        end = time.monotonic() + pace.wait_s
        while len(nodes := self.connected(grid, pace.wait_s)) < least:
            if time.monotonic() >= end:
                if least == 1:
                    raise FederationError(f"no node is connected after {pace.wait_s:g} s")
                raise FederationError(
                    f"{len(nodes)} nodes are connected after {pace.wait_s:g} s, and the strategy "
                    f"insists on {least}: start more, or set its min_available_nodes"
                )
            time.sleep(min(1.0, pace.poll_s))
        return nodes

    def connected(self, grid: Grid, timeout_s: float) -> dict[str, int]:
        """The nodes that are connected now, by the ids of their clients."""
        nodes = list(grid.get_nodes())
        busy = grid.busy if isinstance(grid, PromptGrid) else frozenset()
        new = [n for n in nodes if n.node_id not in self._ids and n.node_id not in busy]
        if new:
            self._ids |= self._asked(grid, new, timeout_s) if self._clients.ask else _keyed(new)
        found: dict[str, int] = {}
        for node in nodes:
            id_ = self._ids.get(node.node_id)  # none while it has not answered
            if id_ is None:
                continue
            if id_ in found:
                raise FederationError(f"two nodes say that they are the client {id_}")
            found[id_] = node.node_id
        return found

    def _asked(self, grid: Grid, nodes: Iterable[Any], timeout_s: float) -> dict[int, str]:
        kind = f"{MessageType.QUERY}.{_ACTION}"
        messages = [Message(RecordDict(), node.node_id, kind) for node in nodes]
        ids: dict[int, str] = {}
        for reply in grid.send_and_receive(messages, timeout=timeout_s):
            if reply.has_error():
                raise FederationError(
                    "a client cannot say who it is: put its ClientApp through "
                    f"agewise.flower.identify ({reply.error.reason})"
                )
            ids[reply.metadata.src_node_id] = str(reply.content[_RECORD]["id"])
        return ids


def _keyed(nodes: Iterable[Any]) -> dict[int, str]:
    """Ids by keys; a node without a key is known by its number."""
    return {
        node.node_id: hashlib.sha256(node.public_key).hexdigest()
        if node.public_key
        else f"node-{node.node_id}"
        for node in nodes
    }
