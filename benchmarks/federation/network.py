"""Where a federation's processes run: namespaces with shaped links, or the loopback address.

The SuperLink's namespace and that of each node are joined by a pair of virtual interfaces. A token
bucket on the node's end limits what it sends, its uplink; what it receives is not limited.
"""

import shutil
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field

_HUB = "10.83.0.1"
_PORT = 9000


class NoNamespaces(RuntimeError):
    """Shaped links cannot be made here; the message says why."""


@dataclass(frozen=True)
class Network:
    """The address of the SuperLink, and what commands are put behind to run in their place."""

    address: str
    port: int
    hub: tuple[str, ...] = ()
    nodes: tuple[tuple[str, ...], ...] = field(default=())

    @property
    def shaped(self) -> bool:
        """Whether links have the rates that were asked for."""
        return bool(self.hub)

    def node(self, number: int) -> tuple[str, ...]:
        """What the commands of a node are put behind."""
        return self.nodes[number] if self.nodes else ()


def loopback() -> Network:
    """All processes side by side, with no limit on their links."""
    return Network("127.0.0.1", free_port())


def shaped(name: str, rates_mbit_s: Sequence[float]) -> Network:
    """Namespaces that are called after the federation, a node for each of these uplink rates."""
    if not shutil.which("ip") or not shutil.which("tc"):
        raise NoNamespaces("the programs ip and tc are not installed")
    hub = f"{name}-hub"
    _do("ip", "netns", "add", hub)
    _within(hub, "ip", "link", "set", "lo", "up")
    _within(hub, "ip", "address", "add", f"{_HUB}/32", "dev", "lo")
    nodes = []
    for number, rate in enumerate(rates_mbit_s):
        nodes.append(_joined(name, hub, number, rate))
    return Network(_HUB, _PORT, _inside(hub), tuple(_inside(node) for node in nodes))


def _joined(name: str, hub: str, number: int, rate_mbit_s: float) -> str:
    """A node's namespace, with a link to the hub."""
    node, here, there = f"{name}-{number}", f"10.83.{number + 1}.1", f"10.83.{number + 1}.2"
    inside, outside = f"up{number}", f"node{number}"
    _do("ip", "netns", "add", node)
    _within(node, "ip", "link", "add", inside, "type", "veth", "peer", outside, "netns", hub)
    for place, device, address in ((node, inside, there), (hub, outside, here)):
        _within(place, "ip", "address", "add", f"{address}/24", "dev", device)
        _within(place, "ip", "link", "set", device, "up")
    _within(node, "ip", "link", "set", "lo", "up")
    _within(node, "ip", "route", "add", _HUB, "via", here)
    bucket = ("rate", f"{round(1000 * rate_mbit_s)}kbit", "burst", "16kb", "latency", "400ms")
    _within(node, "tc", "qdisc", "add", "dev", inside, "root", "tbf", *bucket)
    return node


def free_port() -> int:
    """A port of the loopback address that nobody uses now."""
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


def _inside(namespace: str) -> tuple[str, ...]:
    return "ip", "netns", "exec", namespace


def _within(namespace: str, *command: str) -> None:
    _do("ip", "-n", namespace, *command[1:]) if command[0] == "ip" else _do(
        *_inside(namespace), *command
    )


def _do(*command: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    except subprocess.CalledProcessError as error:
        raise NoNamespaces(f"{' '.join(command)}: {error.stderr.strip()}") from error
