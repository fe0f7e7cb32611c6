"""Kill an experiment before each of its file operations in turn, and resume it.

``python -m tests.experiment.crashes FOLDER`` leaves FOLDER/whole, undisturbed, and FOLDER/0,
FOLDER/1, ... killed and resumed. Each run is a fork of this process, which has imported and
compiled everything but run nothing in threads, so that a run takes a tenth of a second. The
counts are printed.
"""

import os
import signal
import sys
from pathlib import Path

import polars  # noqa: F401 (imported once, for all runs)

import agewise
from agewise.simulation import rounds
from tests.experiment.watch import files, runs
from tests.scenarios import tiny

SCENARIO = tiny(**{"run.rounds": 2})
POLICIES = ["age-based"]
SEEDS = 2


def run(out, killed_before=None):
    """The exit status of the experiment, in a process of its own."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if killed_before is not None:
                kill_before(killed_before, out)
            agewise.compare(SCENARIO, POLICIES, SEEDS, out, engine="inline", quiet=True)
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill_before(operation, out):
    """Python announces every opening, renaming and removing of a file to its audit hooks."""
    left = operation

    def hook(event, arguments):
        nonlocal left
        if event in {"open", "os.mkdir", "os.rename", "os.remove", "os.chmod"}:
            if not str(arguments[0]).startswith(str(out)):
                return
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1

    sys.addaudithook(hook)


def main(folder):
    for policy in POLICIES:
        list(rounds(SCENARIO, policy))
    assert run(folder / "whole") == 0
    whole = runs(folder / "whole")
    operation = 0
    while (status := run(folder / str(operation), killed_before=operation)) != 0:
        assert status == -signal.SIGKILL, f"exit status {status} at operation {operation}"
        for name, content in runs(folder / str(operation)).items():
            assert content == whole[name], f"{name} is not whole at operation {operation}"
        assert run(folder / str(operation)) == 0
        operation += 1
    resumed = [folder / str(number) for number in range(operation)]
    differ = [out.name for out in resumed if files(out) != files(folder / "whole")]
    assert not differ, f"resumed after {', '.join(differ)} file operations, they differ"
    print(f"Killed before each file operation: {operation} kills and resumes, 0 differences")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
