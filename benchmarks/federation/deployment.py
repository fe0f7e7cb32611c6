"""A SuperLink and its SuperNodes, started and ended together."""

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from benchmarks.federation import keeper, keys, network

_BIN = Path(sys.executable).parent
_ROOT = Path(__file__).resolve().parents[2]
_CONNECTION = "federation"
#: Flower gives up a request that is not answered in 30 s and sends it again from the start. The two
#: pieces under way at a time must go over the slowest link in less: bytes of one, by Mbit/s.
_PIECE_BYTES = 625_000
#: What a SuperNode logs when it has been let in.
_JOINED = "SuperNode ID:"
#: Statuses of a run that is not over.
_UNDER_WAY = ("pending", "starting", "running")


class DeploymentError(RuntimeError):
    """The federation did not come up, or a command of Flower's failed."""


class Deployment:
    """A federation on this machine. Its folder and all that it started are gone when it is closed.

    ``rates_mbit_s`` has an uplink rate for each node, and the nodes share ``capacity_mbit_s``: they
    run in network namespaces if rights allow it. Without rates all run on the loopback address.
    """

    def __init__(
        self,
        nodes: int,
        rates_mbit_s: Sequence[float] | None = None,
        capacity_mbit_s: float | None = None,
    ) -> None:
        self.name = f"agw{secrets.token_hex(3)}"
        self.folder = Path(tempfile.mkdtemp(prefix=f"{self.name}-"))
        self._keeper = keeper.start_keeper(self.name, self.folder)
        self._count, self._ports = nodes, [network.free_port() for _ in range(nodes)]
        self._piece_bytes = round(_PIECE_BYTES * min(rates_mbit_s or (1.0,)))
        self.why_not_shaped = ""
        self.network = self._network(rates_mbit_s, capacity_mbit_s)
        self.ids: list[str] = []
        self.nodes: list[subprocess.Popen[bytes]] = []
        self._started: list[subprocess.Popen[bytes]] = []

    def _network(
        self, rates_mbit_s: Sequence[float] | None, capacity_mbit_s: float | None
    ) -> network.Network:
        if rates_mbit_s is None:
            return network.loopback()
        try:
            return network.shaped(self.name, rates_mbit_s, capacity_mbit_s)
        except (network.NoNamespaces, OSError) as error:
            self.why_not_shaped = str(error)
            return network.loopback()

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End everything; what is left is the keeper's work."""
        if self._keeper.stdin is not None and not self._keeper.stdin.closed:
            self._keeper.stdin.close()
        self._keeper.wait()
        for process in self._started:
            process.wait()

    def _start(self) -> None:
        address = self.network.address
        keys.write_authority(self.folder / "tls", address)
        home = self.folder / "flwr"
        home.mkdir()
        (home / "config.toml").write_text(
            f'[superlink]\ndefault = "{_CONNECTION}"\n[superlink.{_CONNECTION}]\n'
            f'address = "{address}:{self.network.port}"\n'
            f'root-certificates = "{self.folder / "tls" / "ca.pem"}"\n',
            encoding="utf-8",
        )
        tls = self.folder / "tls"
        self.start(
            "superlink",
            [
                *self.network.hub, str(_BIN / "flower-superlink"), "--enable-supernode-auth",
                "--disable-runtime-dependency-installation",
                "--host", address, "--port", str(self.network.port),
                "--ssl-certfile", str(tls / "server.pem"), "--ssl-keyfile", str(tls / "server.key"),
                "--ssl-ca-certfile", str(tls / "ca.pem"),
            ],
        )  # fmt: skip
        wait_until(lambda: self.flwr("list", "--format", "json", check=False) is not None, 90)
        for number in range(self._count):
            self.ids.append(keys.write_node_key(self.key(number)))
            self.flwr("supernode", "register", str(self.key(number).with_suffix(".pub")),
                      "--format", "json")  # fmt: skip
            self.nodes.append(self.start_node(number))

    def key(self, number: int) -> Path:
        """The file with the private key of a node."""
        return self.folder / "keys" / f"node{number}"

    def log(self, name: str) -> Path:
        """What a process that was started under this name printed."""
        return self.folder / f"{name}.log"

    def start_node(
        self, number: int, name: str = "", options: Mapping[str, str | None] | None = None
    ) -> "subprocess.Popen[bytes]":
        """Start a SuperNode; ``options`` change its command line, ``None`` takes one away."""
        given: dict[str, str | None] = {
            "--superlink": f"{self.network.address}:{self.network.port}",
            "--root-certificates": str(self.folder / "tls" / "ca.pem"),
            "--auth-supernode-private-key": str(self.key(number)),
            "--port": str(self._ports[number]),
            "--node-config": f'partition-id={number} orders="{self.orders(number)}"',
        }
        given |= options or {}
        words = [w for k, v in given.items() if v is not None for w in ((k, v) if v else (k,))]
        command = [*self.network.node(number), str(_BIN / "flower-supernode"), *words]
        return self.start(name or f"node{number}", command)

    def orders(self, number: int) -> Path:
        """A file that tests write and the client reads."""
        return self.folder / f"orders{number}"

    def start(self, name: str, command: Sequence[str]) -> "subprocess.Popen[bytes]":
        """Start a process of this federation, in a session of its own."""
        with self.log(name).open("ab") as out:
            process = subprocess.Popen(  # noqa: S603
                command,
                env=self._environment(),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._started.append(process)
        return process

    def kill_node(self, number: int) -> None:
        """Kill a SuperNode with what it started, as when its machine loses power."""
        os.killpg(self.nodes[number].pid, signal.SIGKILL)
        self.nodes[number].wait()

    def return_node(self, number: int, limit_s: float) -> int:
        """Start a killed SuperNode with its key, again while it is refused; how often that was.

        The SuperLink refuses a key until it has noticed that the node before is gone.
        """
        refused, end = 0, time.monotonic() + limit_s
        while time.monotonic() < end:
            known = self.log(f"node{number}").read_text(encoding="utf-8").count(_JOINED)
            node = self.nodes[number] = self.start_node(number)
            while node.poll() is None:
                if self.log(f"node{number}").read_text(encoding="utf-8").count(_JOINED) > known:
                    return refused
                time.sleep(0.5)
            refused += 1
            time.sleep(2.0)
        raise DeploymentError(f"the node was refused for {limit_s:g} s")

    def processes(self, word: str) -> list[int]:
        """The processes of this federation whose command has this word in it."""
        found = []
        for pid in keeper.marked(self.name):
            with contextlib.suppress(OSError):
                if word.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(pid)
        return found

    def flwr(self, *words: str, check: bool = True) -> Any:
        """What a command of Flower's answers, as JSON; ``None`` if it fails and may."""
        done = subprocess.run(  # noqa: S603
            [*self.network.hub, str(_BIN / "flwr"), *words],
            env=self._environment(), capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            answer = {}
        if done.returncode == 0 and answer.get("success", False):
            return answer
        if check:
            raise DeploymentError(f"flwr {' '.join(words)}: {done.stdout} {done.stderr}")
        return None

    def run(self, app: Path, config: Mapping[str, Any]) -> str:
        """Start an app with this run configuration; the id of the run."""
        text = " ".join(f"{key}={_toml(value)}" for key, value in config.items())
        answer = self.flwr("run", str(app), _CONNECTION, "--run-config", text, "--format", "json")
        return str(answer["run-id"])

    def status(self, run: str) -> str:
        """What a run is doing, or how it ended: ``running``, ``finished:completed`` and so on."""
        runs = self.flwr("list", "--format", "json")["runs"]
        return next(str(each["status"]) for each in runs if str(each["run-id"]) == run)

    def wait(self, run: str, limit_s: float) -> str:
        """Wait for the end of a run, and stop it if it takes longer; how it ended."""
        with contextlib.suppress(DeploymentError):
            wait_until(lambda: not self.status(run).startswith(_UNDER_WAY), limit_s, 2.0)
            return self.status(run)
        self.flwr("stop", run, "--format", "json", check=False)
        return "stopped: it took too long"

    def server_log(self, run: str) -> str:
        """What the server of a run logged."""
        done = subprocess.run(  # noqa: S603
            [*self.network.hub, str(_BIN / "flwr"), "log", run, _CONNECTION, "--show"],
            env=self._environment(), capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        return done.stdout + done.stderr

    def _environment(self) -> dict[str, str]:
        paths = [str(_ROOT / "src"), os.environ.get("PYTHONPATH", "")]
        return os.environ | {
            keeper.MARK: self.name,
            "PATH": os.pathsep.join((str(_BIN), os.environ.get("PATH", ""))),
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "FLWR_HOME": str(self.folder / "flwr"),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "FLWR_PRIVATE_MAX_ARRAY_CHUNK_SIZE": str(self._piece_bytes),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }


def wait_until(true: Callable[[], bool], limit_s: float, every_s: float = 0.5) -> None:
    """Look again and again; `DeploymentError` if it does not come true in time."""
    end = time.monotonic() + limit_s
    while not true():
        if time.monotonic() > end:
            raise DeploymentError(f"waited for {limit_s:g} s in vain")
        time.sleep(every_s)


def _toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else json.dumps(value)


@contextlib.contextmanager
def interrupts_as_exceptions() -> Iterator[None]:
    """A request to end (SIGTERM, SIGHUP) unwinds the program as Ctrl-C does."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = {each: signal.signal(each, stop) for each in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
