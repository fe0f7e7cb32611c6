"""Cleans up after a federation, whatever became of the program that started it.

A process of its own waits until the other end of its standard input is closed: by the program, or
by its death. Then it ends the processes of the federation, removes its namespaces and its folder.
Processes are known by an entry of their environment that all that the federation starts inherit.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

#: The name of the entry; its value is the name of the federation.
MARK = "AGEWISE_FEDERATION"
_GRACE_S = 5.0


def marked(name: str) -> list[int]:
    """The processes of the federation of this name."""
    entry = f"{MARK}={name}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            with contextlib.suppress(OSError):  # it ended, or is not ours
                if entry in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
    return found


def end_all(name: str) -> None:
    """End the processes of a federation, at last by force."""
    force = time.monotonic() + _GRACE_S
    for process in marked(name):
        _send(process, signal.SIGTERM)
    while (left := marked(name)) and time.monotonic() < force + _GRACE_S:
        if time.monotonic() > force:
            for process in left:
                _send(process, signal.SIGKILL)
        time.sleep(0.1)


def namespaces(name: str) -> list[str]:
    """The network namespaces of the federation of this name."""
    folder = Path("/run/netns")
    return sorted(each.name for each in folder.glob(f"{name}-*")) if folder.is_dir() else []


def clean(name: str, folder: Path) -> None:
    """End its processes, remove its namespaces and its folder."""
    end_all(name)
    for namespace in namespaces(name):
        subprocess.run(["ip", "netns", "delete", namespace], check=False)  # noqa: S603, S607
    shutil.rmtree(folder, ignore_errors=True)


def start_keeper(name: str, folder: Path) -> subprocess.Popen[bytes]:
    """The process that cleans up when its standard input is closed."""
    command = [sys.executable, str(Path(__file__)), name, str(folder)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)  # noqa: S603


def _send(process: int, what: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, what)


if __name__ == "__main__":
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    sys.stdin.buffer.read()
    clean(sys.argv[1], Path(sys.argv[2]))
