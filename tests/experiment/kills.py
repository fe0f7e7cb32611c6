"""Kill an experiment with all its workers at random moments, resume it, and compare every byte.

``python -m tests.experiment.kills --seconds 60 --seed 0`` prints the counts, and ends with an
error if anything differs. The experiment is that of `tests.experiment.job`.
"""

import argparse
import dataclasses
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.experiment.job import experiment
from tests.experiment.watch import end, files, leftovers, runs, session, start, until

#: A folder is killed at most so often before it may finish.
MOST_KILLS = 4


@dataclasses.dataclass
class Counts:
    """What was done, and a sentence on each difference."""

    folders: int = 0
    kills: int = 0
    resumes: int = 0
    found: list = dataclasses.field(default_factory=list)
    differences: list = dataclasses.field(default_factory=list)

    def compare(self, made, whole, where):
        """Note each file that is not what it is in an undisturbed run."""
        for name in sorted(made.keys() | whole.keys()):
            if made.get(name) != whole.get(name):
                self.differences.append(f"{where}: {name} differs")

    def __str__(self):
        return (
            f"{self.folders} folders, {self.kills} kills, {self.resumes} resumes, "
            f"{len(self.differences)} differences; runs finished when killed: "
            f"{min(self.found, default=0)} to {max(self.found, default=0)}"
        )


def disturb(out, whole, chance, counts):
    """Kill and resume the experiment in one folder until it has finished."""
    for _ in range(chance.randint(1, MOST_KILLS)):
        if not killed(out, chance):
            break
        counts.kills += 1
        counts.resumes += 1
        done = {f"runs/{name}": content for name, content in runs(out).items()}
        counts.found.append(len(done))
        counts.compare(done, {name: whole.get(name) for name in done}, f"{out.name}, killed")
    process = start("-m", "tests.experiment.job", out)
    try:
        _, errors = process.communicate(timeout=120)
    finally:
        end(process)
    if process.returncode != 0:
        counts.differences.append(f"{out.name}: resuming ended with {errors[-500:]}")
    counts.compare(files(out), whole, f"{out.name}, resumed")
    counts.differences += [f"{out.name}: {name} is left" for name in leftovers(out)]
    counts.folders += 1


def killed(out, chance):
    """Whether the experiment was killed, at a random moment; it may have finished before."""
    process = start("-m", "tests.experiment.job", out)
    try:
        if chance.random() < 0.3:  # while it starts
            time.sleep(chance.uniform(0.1, 2.0))
        else:  # while it runs and writes
            more = len(runs(out)) + chance.randint(0, 4)
            until(lambda: len(runs(out)) >= more or process.poll() is not None, 120)
            time.sleep(chance.uniform(0.0, 0.1))
        if process.poll() is not None:
            return False
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        until(lambda: not session(process))
        return True
    finally:
        end(process)


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.experiment.kills", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="begin no folder after these")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    counts = Counts()
    with tempfile.TemporaryDirectory(prefix="agewise-crash-") as folder:
        experiment(Path(folder) / "whole", engine="inline")
        whole = files(Path(folder) / "whole")
        begun = time.monotonic()
        while counts.folders == 0 or time.monotonic() - begun < given.seconds:
            chance = random.Random(f"{given.seed}/{counts.folders}")  # noqa: S311
            disturb(Path(folder) / str(counts.folders), whole, chance, counts)
    print("\n".join([*counts.differences, f"Killed at random moments: {counts}"]))
    return int(bool(counts.differences))


if __name__ == "__main__":
    sys.exit(main())
