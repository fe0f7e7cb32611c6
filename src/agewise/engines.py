"""Engines for independent runs: this process, local processes, a Ray cluster."""

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from multiprocessing import resource_tracker
from pathlib import Path
from types import ModuleType
from typing import Final, Protocol, TypeVar

from loky import ProcessPoolExecutor

from agewise.dependencies import require
from agewise.learn.threads import available_cores, set_threads

__all__ = ["Engine", "Inline", "Local", "Ray", "make_engine"]

NAMES = ("local", "inline", "ray")
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
#: Where Linux keeps semaphores that have a name.
_SEMAPHORES: Final = Path("/dev/shm")  # noqa: S108 - looked at, not written to
#: The oldest version with token authentication, without which whoever reaches it may run code.
_OLDEST = (2, 52)
#: Ray's name for whether it forms clusters: if not, it serves the loopback address alone. It looks
#: when it is imported; a node address alone would be replaced by that of the network.
_CLUSTERS = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
_LOOPBACK = "127.0.0.1"


class Engine(Protocol):
    """Runs a function on items and hands the results back as they finish, in any order."""

    def run(
        self, work: Callable[[_Item], _Result], items: Sequence[_Item]
    ) -> Iterator[tuple[_Item, _Result]]:
        """Yield each item with its result. Leaving the iteration early stops what still runs."""
        ...


@dataclass(frozen=True)
class Inline:
    """In this process, one after the other: the easiest to debug."""

    def run(
        self, work: Callable[[_Item], _Result], items: Sequence[_Item]
    ) -> Iterator[tuple[_Item, _Result]]:
        """Yield each item with its result, in order."""
        for item in items:
            yield item, work(item)


@dataclass(frozen=True)
class Local:
    """One process per core, one thread each.

    Work and results travel by cloudpickle (loky), so policies may be written in a script or a
    notebook, and the script needs no guard around its main part.
    """

    workers: int | None = None

    def processes(self, items: int) -> int:
        """Number of processes that work on this number of items."""
        return min(self.workers or available_cores(), items)

    def run(
        self, work: Callable[[_Item], _Result], items: Sequence[_Item]
    ) -> Iterator[tuple[_Item, _Result]]:
        """Yield each item with its result, as they finish."""
        count = self.processes(len(items))
        if count <= 0:
            return
        with _semaphores_removed():
            pool = ProcessPoolExecutor(count, initializer=_prepare_worker, initargs=(os.getpid(),))
            finished = False
            try:
                with _interrupts_held_back():
                    pending = {pool.submit(work, item): item for item in items}
                for future in as_completed(pending):
                    yield pending[future], future.result()
                finished = True
            finally:
                with contextlib.suppress(Exception):
                    pool.shutdown(wait=finished, kill_workers=not finished)


@contextlib.contextmanager
def _semaphores_removed() -> Iterator[None]:
    """If this process is killed with all of its group, its semaphores do not stay behind.

    loky's own tracker would be killed as well. A shell in a session of its own waits at a pipe
    for a word, or for the end of this process.
    """
    if not _SEMAPHORES.is_dir():  # no Linux: they are no files
        yield
        return
    script = f'read -r word || rm -f {_SEMAPHORES}/sem.loky-"$1"-*'
    waiting = subprocess.Popen(  # noqa: S603 - a fixed script and a number
        ["/bin/sh", "-c", script, "sh", str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        waiting.communicate(b"done\n")


@contextlib.contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Ctrl-C waits, and is for this process: those that it starts meanwhile never get it."""
    resource_tracker.ensure_running()  # loky needs it, and starting it would let interrupts in
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _prepare_worker(parent: int) -> None:
    """Let a worker use one thread, and end with the process that started it."""
    set_threads(1)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """A killed process cannot end its workers, and they would wait for work for ever."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


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


def make_engine(
    engine: str | Engine, workers: int | None = None, address: str | None = None
) -> Engine:
    """Make an engine by name, or give an engine object back as it is."""
    if not isinstance(engine, str):
        if workers is not None or address is not None:
            raise ValueError("workers and an address go with an engine by name, not an object")
        return engine
    if engine not in NAMES:
        raise ValueError(f"unknown engine {engine!r}; there are {', '.join(NAMES)}")
    if address is not None and engine != "ray":
        raise ValueError("an address goes with the engine ray")
    if workers is not None and engine != "local":
        raise ValueError("workers go with the engine local")
    if workers is not None and workers < 1:
        raise ValueError(f"workers must be at least 1, not {workers}")
    if engine == "ray":
        return Ray(address)
    return Inline() if engine == "inline" else Local(workers)
