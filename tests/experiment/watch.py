"""To look at folders and processes from outside. Linux: processes are read from /proc."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from agewise.files import NO_CHECKSUM, add_checksum

ROOT = Path(__file__).parents[2]


def files(folder):
    """Every file below the folder that results consist of, with its content."""
    found = [*folder.glob("runs/*"), folder / "scenario.toml", folder / "experiment.json"]
    return {str(file.relative_to(folder)): file.read_bytes() for file in found}


def runs(folder):
    """The finished runs, with their content."""
    return {file.name: file.read_bytes() for file in folder.glob("runs/*.parquet")}


def times(folder):
    """When each finished run was written."""
    return {file.name: file.stat().st_mtime_ns for file in folder.glob("runs/*.parquet")}


def everything(folder):
    """All files with their contents and times, but for the empty lock."""
    found = [file for file in sorted(folder.rglob("*")) if file.is_file() and file.name != ".lock"]
    return [(file, file.stat().st_mtime_ns, file.read_bytes()) for file in found]


def rewrite(file, **changes):
    """Change members of a sealed JSON file and add_checksum it again; ``...`` takes one away."""
    values = json.loads(file.read_text()) | changes | {"checksum": NO_CHECKSUM}
    kept = {name: value for name, value in values.items() if value is not ...}
    file.write_bytes(add_checksum(json.dumps(kept, indent=2).encode()))


class Counting(list):
    """An engine in this process, and the policy and seed of every run that it made."""

    def run(self, work, items):
        for group in items:
            self.extend((run.policy.name, run.seed) for run in group[1])  # behind its number
            yield group, work(group)


def leftovers(folder):
    """Temporary files of writes that did not come to an end."""
    return [file.name for file in folder.rglob("*.tmp")]


def until(condition, seconds=300.0):
    """Wait until the condition holds and return what it gave; fail after so many seconds."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"still waiting after {seconds} s"
        time.sleep(0.005)
    return value


def start(*arguments, **options):
    """Python in a session of its own, so that all that it starts can be found and ended."""
    return subprocess.Popen(
        [sys.executable, *map(str, arguments)], cwd=ROOT, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip


def session(process):
    """The living processes of the session that `start` made: number and command."""
    alive = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, group = (entry / "stat").read_text().rsplit(")", 1)[1].split()[:4]
            if int(group) == process.pid and state not in "ZX":
                alive[int(entry.name)] = (entry / "cmdline").read_text()
        except OSError:  # ended meanwhile
            continue
    return alive


def listening(process):
    """The addresses, in the kernel's hexadecimal form, at which the session takes connections."""
    inodes = set()
    for number in session(process):
        with contextlib.suppress(OSError):  # ended meanwhile
            for handle in Path(f"/proc/{number}/fd").iterdir():
                with contextlib.suppress(OSError):
                    inodes.add(str(handle.readlink()).removeprefix("socket:[").rstrip("]"))
    tables = [Path("/proc/net") / name for name in ("tcp", "tcp6")]
    rows = [line.split() for table in tables for line in table.read_text().splitlines()[1:]]
    return {row[1].partition(":")[0] for row in rows if row[3] == "0A" and row[9] in inodes}


def workers(process):
    """The worker processes of the local engine in the session."""
    return [number for number, command in session(process).items() if "popen_loky" in command]


def children():
    """The living worker processes of the local engine that this process started."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (entry / "stat").read_text().rsplit(")", 1)[1].split()[:2]
            mine = int(parent) == os.getpid() and state not in "ZX"
            if mine and "popen_loky" in (entry / "cmdline").read_text():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def end(process):
    """Kill what is left of a session and close its pipes."""
    while session(process) or process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            break
        time.sleep(0.01)
    process.communicate()
