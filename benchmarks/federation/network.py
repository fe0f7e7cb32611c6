"""Where a federation's processes run: namespaces with shaped links, or the loopback address.

The namespace of each node is joined to that of an access point, and this to the SuperLink's, by
pairs of virtual interfaces. Token buckets limit what each node sends, its uplink, and what all
send together, the capacity of the access point; what they receive is not limited.
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


def shaped(name: str, rates_mbit_s: Sequence[float], capacity_mbit_s: float | None) -> Network:
    """Namespaces that are called after the federation, a node for each of these uplink rates.

    The nodes share the capacity of an access point, if it has one.
    """
    if not shutil.which("ip") or not shutil.which("tc"):
        raise NoNamespaces("the programs ip and tc are not installed")
    hub, ap = f"{name}-hub", f"{name}-ap"
    for each in (hub, ap):
        _do("ip", "netns", "add", each)
        _within(each, "ip", "link", "set", "lo", "up")
    _within(hub, "ip", "address", "add", f"{_HUB}/32", "dev", "lo")
    _pair(ap, "uplink", "10.84.0.2/24", hub, "ap", "10.84.0.1/24")
    _within(ap, "ip", "route", "add", _HUB, "via", "10.84.0.1")
    _within(hub, "ip", "route", "add", "10.83.0.0/16", "via", "10.84.0.2")
    _within(ap, "sysctl", "-qw", "net.ipv4.ip_forward=1")
    if capacity_mbit_s is not None:
        _limit(ap, "uplink", capacity_mbit_s)
    nodes = []
    for number, rate in enumerate(rates_mbit_s):
        nodes.append(_joined(name, ap, number, rate))
    return Network(_HUB, _PORT, _inside(hub), tuple(_inside(node) for node in nodes))


def _joined(name: str, ap: str, number: int, rate_mbit_s: float) -> str:
    """A node's namespace, with a link to the access point."""
    node, here, there = f"{name}-{number}", f"10.83.{number + 1}.1", f"10.83.{number + 1}.2"
    _do("ip", "netns", "add", node)
    _pair(node, "uplink", f"{there}/24", ap, f"node{number}", f"{here}/24")
    _within(node, "ip", "link", "set", "lo", "up")
    _within(node, "ip", "route", "add", _HUB, "via", here)
    _limit(node, "uplink", rate_mbit_s)
    return node


def _pair(one: str, device: str, address: str, other: str, peer: str, there: str) -> None:
    """Join two namespaces by a pair of interfaces with these addresses."""
    _within(one, "ip", "link", "add", device, "type", "veth", "peer", peer, "netns", other)
    for place, end, its in ((one, device, address), (other, peer, there)):
        _within(place, "ip", "address", "add", its, "dev", end)
        _within(place, "ip", "link", "set", end, "up")


def _limit(namespace: str, device: str, rate_mbit_s: float) -> None:
    bucket = ("rate", f"{round(1000 * rate_mbit_s)}kbit", "burst", "16kb", "latency", "400ms")
    _within(namespace, "tc", "qdisc", "add", "dev", device, "root", "tbf", *bucket)


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
