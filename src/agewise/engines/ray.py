"""A Ray cluster."""

import os
import secrets
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TypeVar

from agewise.dependencies import require
from agewise.learn.threads import set_threads

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

#: The oldest version with token authentication, without which whoever reaches it may run code.
_OLDEST = (2, 52)
#: Ray's name for whether it forms clusters: if not, it serves the loopback address alone. It looks
#: when it is imported; a node address alone would be replaced by that of the network.
_CLUSTERS = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Ray:
    """One task per item on the cluster at ``address``, or at ``RAY_ADDRESS``.

    Without either, Ray starts here for as long as the run lasts: it listens on the loopback
    address only, and asks for a token that is made for this process. ``address="auto"`` joins the
    cluster of this machine. A task whose node dies is run again on another, as often as it takes.
    """

    address: str | None = None

    def run(
        self, work: Callable[[_Item], _Result], items: Sequence[_Item]
    ) -> Iterator[tuple[_Item, _Result]]:
        """Yield each item with its result, as they finish."""
        address = self.address or os.environ.get("RAY_ADDRESS")
        if not address and "ray" not in sys.modules:
            _prepare_own()
        ray = require("ray", "ray")
        _require_version(ray)
        started = not ray.is_initialized()
        if started and address:
            _require_answer(address)
            ray.init(address=address, log_to_driver=False, include_dashboard=False)
        elif started:
            _start_own(ray)
        try:
            yield from _as_finished(ray, work, items)
        finally:
            if started:
                ray.shutdown()


def _prepare_own() -> None:
    """Set what Ray reads when it is imported and what the processes that it starts inherit."""
    os.environ[_CLUSTERS] = "0"
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    if "RAY_AUTH_TOKEN_PATH" not in os.environ:
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))


def _start_own(ray: ModuleType) -> None:
    """Start Ray on this machine, for nobody but this process."""
    if os.environ.get(_CLUSTERS) != "0":
        raise RuntimeError(
            f"Ray was imported before it could be kept on the loopback address: set {_CLUSTERS}=0 "
            "before that, or call ray.init() yourself, or name an address"
        )
    ray.init(
        address="local", log_to_driver=False, include_dashboard=False, _node_ip_address=_LOOPBACK
    )
    if (bound := ray.util.get_node_ip_address()) != _LOOPBACK:
        ray.shutdown()
        raise RuntimeError(f"Ray {ray.__version__} listens on {bound} instead of {_LOOPBACK}")


def _require_version(ray: ModuleType) -> None:
    major, minor, *_ = ray.__version__.split(".")
    if (int(major), int(minor)) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise RuntimeError(
            f"the engine ray needs Ray {oldest} or newer, which asks for a token, and this is "
            f"{ray.__version__}: pip install 'agewise[ray]'"
        )


def _as_finished(
    ray: ModuleType, work: Callable[[_Item], _Result], items: Sequence[_Item]
) -> Iterator[tuple[_Item, _Result]]:
    task = ray.remote(num_cpus=1, max_retries=-1)(_on_one_thread)
    shared = ray.put(work)
    pending = {task.remote(shared, item): item for item in items}
    try:
        while pending:
            (done,), _ = ray.wait(list(pending), num_returns=1)
            item = pending.pop(done)
            try:
                result = ray.get(done)
            except ray.exceptions.RayTaskError as error:
                raise error.cause from error  # what the work raised, as the other engines do
            yield item, result
    finally:
        for reference in pending:
            ray.cancel(reference, force=True)


def _on_one_thread(work: Callable[[_Item], _Result], item: _Item) -> _Result:
    set_threads(1)
    return work(item)


def _require_answer(address: str) -> None:
    """Ray tries for minutes before it says that nobody is there."""
    host, _, port = address.rpartition("/")[2].rpartition(":")
    if not port.isdigit():  # a word such as "auto" that Ray knows
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except OSError as error:
        raise ConnectionError(f"no Ray cluster answers at {address}: {error}") from error
