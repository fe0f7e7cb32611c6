"""Agewise side by side with federated-learning frameworks: ``make bench NAME=peers``.

Each framework is installed once, with pinned versions, in an environment of its own under
``.peers/``. Then each runs the same workloads (see `benchmarks.peers.common`) alone on the
machine, one after the other, and one table says how fast, how soon, with how much memory and how
well it learned. A framework that cannot be installed or fails gets a row that says why.

It needs Linux and, for the pinned versions, Python 3.11; installing needs the package registry and
3 GB of disk, more where ``torch`` comes with GPU libraries. Nothing listens beyond this machine.
"""

import argparse
import contextlib
import hashlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from agewise.data import Mnist
from benchmarks.peers import common
from benchmarks.peers.table import OURS, Row, legend, tabulate

ROOT = Path(__file__).parents[2]
PINS = Path(__file__).parent / "requirements"
HOME = ROOT / ".peers"
DATA, LOGS = HOME / "data", HOME / "logs"
#: The environment that `make unit-flower` sets up.
SECOND = ROOT / ".venv-flower" / "bin" / "python"

#: Whoever is below this after `common.COMPARED_ROUND` rounds has not learned, whatever its speed.
LEAST_ACCURACY = 0.5
INSTALL_LIMIT_S = 1800.0
START_LIMIT_S = 300.0


class PeerFailed(Exception):
    """A framework could not be installed or measured; the text says why in one clause."""


@dataclass(frozen=True)
class Peer:
    """A framework to measure: its script, and its environment unless it is the project's own."""

    name: str
    title: str
    module: str
    installed: bool = True
    models: tuple[str, ...] = ("linear", "mlp", "lenet5")

    @property
    def environment(self) -> Path:
        """The folder of its virtual environment."""
        return HOME / self.name

    @property
    def pins(self) -> Path:
        """Its requirements file."""
        return PINS / f"{self.name}.txt"

    @property
    def python(self) -> Path:
        """The interpreter that runs it; Agewise's own has PyTorch where there is one."""
        if self.installed:
            return self.environment / "bin" / "python"
        return SECOND if SECOND.exists() else Path(sys.executable)

    @property
    def workloads(self) -> list[str]:
        """Those that it can do."""
        return [name for name, work in common.WORKLOADS.items() if work.model in self.models]


AGEWISE = Peer(OURS, "Agewise", "agewise_rounds", installed=False)
PEERS = (
    AGEWISE,
    Peer("numba", "plain Numba loop", "base_numba", models=("linear",)),
    Peer("fedjax", "FedJAX", "peer_fedjax"),
    Peer("flwr", "Flower simulation", "peer_flwr"),
    Peer("pfl", "pfl-research", "peer_pfl"),
    Peer("fluke", "fluke", "peer_fluke"),
)


def run(command: Sequence[str], log: Path, limit_s: float, **variables: str) -> str:
    """Run a command, end it and all that it started, and return what it wrote.

    The command gets a process group of its own. Its leader is waited for without being reaped, so
    that the group's number cannot yet belong to anybody else when the group is ended.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as output:
        try:
            process = subprocess.Popen(  # noqa: S603 (the commands are those of this file)
                command,
                cwd=ROOT,
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise PeerFailed(f"not started: {error}") from error
        try:
            in_time = _ends_within(process, limit_s)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
    text = log.read_text(errors="replace")
    if not in_time:
        raise PeerFailed(f"not done after {limit_s:.0f} s")
    if code != 0:
        raise PeerFailed(_clause(text) or f"ended with status {code}")
    return text


def _ends_within(process: subprocess.Popen[bytes], limit_s: float) -> bool:
    deadline = time.monotonic() + limit_s
    look = os.WEXITED | os.WNOWAIT | os.WNOHANG
    while os.waitid(os.P_PID, process.pid, look) is None:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def _clause(log: str) -> str:
    """The line of a log that says best what went wrong."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]  # as pip writes them
    return (errors or lines or [""])[-1].removeprefix("ERROR: ")[:150]


def install(peer: Peer) -> None:
    """Set up the environment of a framework, unless its pinned versions are installed already."""
    if not peer.installed:
        return
    stamp = peer.environment / ".ready"
    state = hashlib.sha256(peer.pins.read_bytes() + sys.version.encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == state and peer.python.exists():
        return
    note(f"installing {peer.title} ...")
    shutil.rmtree(peer.environment, ignore_errors=True)
    log = LOGS / f"{peer.name}-install.txt"
    pip = [str(peer.python), "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
    try:
        run([sys.executable, "-m", "venv", str(peer.environment)], log, INSTALL_LIMIT_S)
        run([*pip, "--quiet", "--requirement", str(peer.pins)], log, INSTALL_LIMIT_S)
    except PeerFailed as failure:
        raise PeerFailed(f"not installed: {failure}") from failure
    stamp.write_text(state)


def write_data() -> None:
    """MNIST as plain arrays for the frameworks, the training images in a fixed random order."""
    if all((DATA / f"{name}.npy").exists() for name in ("xtrain", "ytrain", "xtest", "ytest")):
        return
    DATA.mkdir(parents=True, exist_ok=True)
    dataset = Mnist().load()
    shuffled = dataset.train.take(np.random.default_rng(0).permutation(len(dataset.train)))
    for name, samples in (("train", shuffled), ("test", dataset.test)):
        np.save(DATA / f"x{name}.npy", samples.values())
        np.save(DATA / f"y{name}.npy", samples.labels)


def measure(peer: Peer, workload: str, budget_s: float, kernels: Path) -> dict[str, Any]:
    """One measurement in a fresh process."""
    log = LOGS / f"{peer.name}-{workload}.txt"
    with _scratch() as scratch:
        written = run(
            [str(peer.python), "-m", f"benchmarks.peers.{peer.module}", workload],
            log,
            START_LIMIT_S + 5 * budget_s,
            PYTHONPATH=f"{ROOT}{os.pathsep}{ROOT / 'src'}",
            PEER_DATA=str(DATA),
            PEER_BUDGET=str(budget_s),
            PEER_WORKLOAD=workload,
            PEER_SCRATCH=str(scratch),
            FLWR_HOME=str(scratch),
            FLWR_TELEMETRY_ENABLED="0",
            RAY_USAGE_STATS_ENABLED="0",
            NUMBA_CACHE_DIR=str(kernels),
        )
    results = [line for line in written.splitlines() if line.startswith("{")]
    if not results:
        raise PeerFailed(_clause(written) or "printed no result")
    measured: dict[str, Any] = json.loads(results[-1])
    if measured["compared_accuracy"] < LEAST_ACCURACY:
        raise PeerFailed(f"learned nothing: accuracy {measured['compared_accuracy']:.2f}")
    return measured


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    """A folder for the time of one run; its path is short, for Ray puts sockets there."""
    folder = Path(tempfile.mkdtemp(prefix="peer-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def compare(
    peers: Sequence[Peer], workloads: Sequence[str], budget_s: float, passes: int
) -> list[Row]:
    """Install and measure all; of several passes the best counts.

    Agewise finds its kernels compiled by a run before the first pass, as a user does from the
    second run on; ``first_run_s`` is what that very first one took to its first result.
    """
    write_data()
    failures: dict[tuple[str, str], str] = {}
    ready = []
    for peer in peers:
        try:
            install(peer)
            ready.append(peer)
        except PeerFailed as failure:
            failures.update({(peer.name, workload): str(failure) for workload in peer.workloads})
    best: dict[tuple[str, str], dict[str, Any]] = {}
    with _scratch() as kernels:
        first_runs: dict[str, float] = {}
        for number in range(1, passes + 1):
            for workload in workloads:
                for peer in (one for one in ready if workload in one.workloads):
                    key = peer.name, workload
                    note(f"pass {number} of {passes}: {peer.title}, {workload} ...")
                    try:
                        if peer is AGEWISE and not first_runs:
                            cold = measure(peer, workload, 0.0, kernels)
                            first_runs[peer.name] = cold["first_result_s"]
                        measured = measure(peer, workload, budget_s, kernels)
                    except PeerFailed as failure:
                        failures[key] = str(failure)
                        continue
                    measured["first_run_s"] = first_runs.get(peer.name)
                    best[key] = _better(best.get(key), measured)
    return [
        _row(peer.name, workload, best, failures)
        for workload in workloads
        for peer in peers
        if workload in peer.workloads
    ]


def _better(before: dict[str, Any] | None, now: dict[str, Any]) -> dict[str, Any]:
    if before is None:
        return now
    faster = max(before, now, key=lambda measured: float(measured["rounds_per_s"]))
    least = {key: min(before[key], now[key]) for key in ("first_result_s", "cpu_ms_per_round")}
    return {**faster, **least}


def _row(
    peer: str,
    workload: str,
    best: Mapping[tuple[str, str], dict[str, Any]],
    failures: Mapping[tuple[str, str], str],
) -> Row:
    measured, ours = best.get((peer, workload)), best.get((AGEWISE.name, workload))
    if measured is None:
        return Row(peer, workload, failure=failures[peer, workload])
    if ours is None:
        return Row(peer, workload, measured)
    faster = ours["rounds_per_s"] / measured["rounds_per_s"]
    thriftier = measured["cpu_ms_per_round"] / ours["cpu_ms_per_round"]
    return Row(peer, workload, measured, None, faster, thriftier)


def note(text: str) -> None:
    """Tell the user what goes on."""
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    """The command."""
    summary = (__doc__ or "").split("\n", 1)[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=summary)
    names = [peer.name for peer in PEERS]
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument(
        "--workloads", nargs="+", choices=common.WORKLOADS, default=list(common.WORKLOADS)
    )
    parser.add_argument("--budget", type=float, default=6.0, help="seconds of each measurement")
    parser.add_argument("--passes", type=int, default=2, help="passes; the best counts")
    parser.add_argument("--json", action="store_true", help="print JSON in place of the table")
    options = parser.parse_args()
    if options.budget <= 0 or options.passes < 1:
        parser.error("--budget and --passes must be positive")

    chosen = [peer for peer in PEERS if not options.only or peer.name in options.only]
    rows = compare(chosen, options.workloads, options.budget, options.passes)
    if options.json:
        settings = {"budget_s": options.budget, "passes": options.passes}
        machine = {"cores": os.cpu_count(), "python": platform.python_version()}
        print(json.dumps({**settings, **machine, "rows": [asdict(row) for row in rows]}, indent=2))
    else:
        console = Console(width=None if sys.stdout.isatty() else 170)
        console.print(tabulate(rows, {peer.name: peer.title for peer in PEERS}))
        console.print(legend(rows, options.budget, options.passes, LOGS), highlight=False)
    return 0 if any(row.measured for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
