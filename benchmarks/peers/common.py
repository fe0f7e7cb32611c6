"""What all measurements share: the workloads, the data, and the meter.

Every script of this folder runs one framework on one workload in a process of its own and prints
one line of JSON. The task is the same for all: 100 clients of 600 MNIST images each; 10 random
clients a round; plain averaging of their models; float32; the accuracy on the 10,000 test images
after every tenth round. W and W32 learn a linear support vector machine (one-versus-rest hinge
loss) with 784 inputs, a bias and 10 classes, step size 0.01, L2 penalty 1e-4. N1 learns a
perceptron 784-200-200-10 and N3 LeNet-5 with ReLU and max-pooling, both with softmax
cross-entropy and step size 0.05.

The environment says where the data lies (``PEER_DATA``) and for how many seconds to measure
(``PEER_BUDGET``). Worker processes, which have no command line of ours, find the workload there too
(``PEER_WORKLOAD``).

This module needs NumPy and Linux (``/proc``), nothing else.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FEATURES, CLASSES = 784, 10
CLIENTS, SAMPLES, COHORT = 100, 600, 10
EVALUATE_EVERY = 10
#: Every measurement goes at least this far, so that accuracies can be compared at this round.
COMPARED_ROUND = 20

_TICKS = os.sysconf("SC_CLK_TCK")


class Workload(NamedTuple):
    """What a client does in a round."""

    steps: int
    batch: int
    model: str = "linear"
    step_size: float = 0.01
    penalty: float = 1e-4


WORKLOADS = {
    "W": Workload(50, 1),
    "W32": Workload(20, 32),
    "N1": Workload(60, 10, "mlp", 0.05, 0.0),
    "N3": Workload(20, 32, "lenet5", 0.05, 0.0),
}


def chosen_workload() -> Workload:
    """The workload that the command line names."""
    return WORKLOADS[_workload_name()]


def _workload_name() -> str:
    return os.environ.get("PEER_WORKLOAD") or (sys.argv[1] if len(sys.argv) > 1 else "W")


def load(name: str, *, mapped: bool = False) -> NDArray[Any]:
    """One of the arrays ``xtrain``, ``ytrain``, ``xtest`` and ``ytest``.

    Client k has the rows ``k * SAMPLES`` to ``(k + 1) * SAMPLES`` of the training arrays.
    """
    path = Path(os.environ["PEER_DATA"]) / f"{name}.npy"
    array: NDArray[Any] = np.load(path, mmap_mode="r" if mapped else None)
    return array


def rows_of(client: int) -> slice:
    """The rows of the training arrays that this client has."""
    return slice(client * SAMPLES, (client + 1) * SAMPLES)


class Meter:
    """Counts rounds and says at the end how long they took and how much memory they needed.

    A script calls `after_round` after every round. The first ten rounds warm up; from there
    on blocks of ten rounds and one evaluation are timed until the budget is used up.
    """

    def __init__(self, *, several_processes: bool = False) -> None:
        self.budget_s = float(os.environ.get("PEER_BUDGET", "8"))
        self.rounds = 0
        self.first_round_s = self.first_result_s = 0.0
        self.accuracies: dict[int, float] = {}
        self.blocks: list[float] = []
        self._started = self._last = 0.0
        self._own = self._busy = 0.0
        self._peak_mb = 0.0
        self._several = several_processes
        self._done = threading.Event()
        if several_processes:
            threading.Thread(target=self._watch_memory, daemon=True).start()

    @property
    def evaluation_is_due(self) -> bool:
        """Whether the round that runs now ends with an evaluation."""
        return (self.rounds + 1) % EVALUATE_EVERY == 0

    def after_round(self, accuracy: float | None = None) -> bool:
        """Note the end of a round, with the accuracy of every tenth; True if it is to go on."""
        self.rounds += 1
        if self.rounds == 1:
            self.first_round_s = _process_age()
        if self.rounds % EVALUATE_EVERY:
            return True
        if accuracy is None:
            raise ValueError(f"round {self.rounds} has not been evaluated")
        self.accuracies[self.rounds] = accuracy
        now = time.perf_counter()
        if self.rounds == EVALUATE_EVERY:
            self.first_result_s = _process_age()
            self._own, self._busy = _cpu_seconds_of_tree(), _cpu_seconds_of_machine()
            self._started = self._last = time.perf_counter()
            return True
        self.blocks.append(now - self._last)
        self._last = now
        return self.rounds < COMPARED_ROUND or now - self._started < self.budget_s

    def finish(self, version: str) -> None:
        """Print what was measured as one line of JSON."""
        self._done.set()
        wall = time.perf_counter() - self._started
        own = _cpu_seconds_of_tree() - self._own
        others = max(0.0, _cpu_seconds_of_machine() - self._busy - own)
        memory = max(self._peak_mb, _memory_of_tree_mb()) if self._several else _peak_memory_mb()
        blocks = sorted(self.blocks)
        timed = EVALUATE_EVERY * len(blocks)
        result = {
            "workload": _workload_name(),
            "version": version,
            "rounds_per_s": timed / sum(blocks),
            "cpu_ms_per_round": own / timed * 1e3,
            "median_block_rounds_per_s": EVALUATE_EVERY / blocks[len(blocks) // 2],
            "best_block_rounds_per_s": EVALUATE_EVERY / blocks[0],
            "first_round_s": self.first_round_s,
            "first_result_s": self.first_result_s,
            "memory_mb": memory,
            "cores": own / wall,
            "cores_of_others": others / wall,
            "compared_accuracy": self.accuracies[COMPARED_ROUND],
            "rounds": self.rounds,
            "accuracy": self.accuracies[self.rounds],
        }
        print(json.dumps(result), flush=True)

    def _watch_memory(self) -> None:
        while not self._done.wait(2.0):
            self._peak_mb = max(self._peak_mb, _memory_of_tree_mb())


def _stat(pid: str) -> list[str]:
    """The fields of ``/proc/PID/stat`` after the name, from the state (field 3) on."""
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()


def _process_age() -> float:
    """Seconds since the kernel created this process (in steps of 10 ms)."""
    up = float(Path("/proc/uptime").read_text().split()[0])
    return up - int(_stat("self")[19]) / _TICKS


def _tree() -> list[str]:
    """Numbers of this process and of all that descend from it."""
    children: dict[str, list[str]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                children.setdefault(_stat(entry.name)[1], []).append(entry.name)
            except OSError:  # it has ended meanwhile
                continue
    tree = [str(os.getpid())]
    for pid in tree:
        tree.extend(children.get(pid, ()))
    return tree


def _memory_of_tree_mb() -> float:
    """Resident memory of the tree of processes; pages that they share count once."""
    kilobytes = 0
    for pid in _tree():
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        kilobytes += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return kilobytes / 1024


def _peak_memory_mb() -> float:
    """The most resident memory that this process ever had."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def _cpu_seconds_of_tree() -> float:
    ticks = 0
    for pid in _tree():
        try:
            ticks += sum(map(int, _stat(pid)[11:15]))
        except OSError:
            continue
    return ticks / _TICKS


def _cpu_seconds_of_machine() -> float:
    """What all cores did so far, also for other virtual machines, except being idle."""
    user, nice, system, _idle, _waiting, *rest = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    )
    return (user + nice + system + sum(rest)) / _TICKS
