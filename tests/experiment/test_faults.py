"""Ctrl-C and SIGKILL at many moments: the folder goes on to the bytes of an undisturbed run."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from agewise.experiment import Result
from tests.experiment.job import COUNT, experiment
from tests.experiment.watch import (
    ROOT,
    end,
    files,
    leftovers,
    runs,
    session,
    start,
    times,
    until,
    workers,
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What the folder of `tests.experiment.job` holds if nothing disturbs it."""
    out = tmp_path_factory.mktemp("faults") / "whole"
    experiment(out, engine="inline")
    made = files(out)
    assert len(made) == COUNT + 2
    return made


@pytest.fixture
def job(tmp_path):
    """Start the job in ``tmp_path / "out"``, as often as wanted; all are ended with the test."""
    started = []

    def begin():
        started.append(start("-m", "tests.experiment.job", tmp_path / "out"))
        return started[-1]

    yield begin
    for process in started:
        end(process)


def imports_numpy(worker):
    with contextlib.suppress(OSError):
        return "numpy" in Path(f"/proc/{worker}/maps").read_text()


def whole_runs(made):
    return {name.removeprefix("runs/"): made[name] for name in made if name.startswith("runs/")}


def test_ctrl_c_ends_at_once_and_the_same_command_goes_on(job, whole, tmp_path):
    """In a terminal Ctrl-C goes to the whole group: the process and its workers."""
    out = tmp_path / "out"
    process = job()
    until(lambda: len(runs(out)) >= 3 or process.poll() is not None)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == -signal.SIGINT
    assert errors.count("Traceback") == 1, errors  # the workers say nothing
    assert "the same command goes on from there" in errors
    until(lambda: not session(process))
    kept = times(out)
    assert 3 <= len(kept) < COUNT
    assert leftovers(out) == []
    assert (out / "log.txt").read_text().endswith("interrupted\n")
    assert len(Result.open(out).entries) == len(kept)
    again = job()
    assert again.wait(timeout=300) == 0
    assert files(out) == whole
    assert kept.items() <= times(out).items()


def test_ctrl_c_while_the_workers_start(job, tmp_path):
    """They import for a second, in which Python would tell of an interrupt at length."""
    process = job()
    until(lambda: any(map(imports_numpy, workers(process))) or process.poll() is not None)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == -signal.SIGINT
    assert errors.count("Traceback") == 1, errors
    until(lambda: not session(process))
    assert leftovers(tmp_path / "out") == []


def test_workers_end_with_a_process_that_could_not_end_them(job, whole, tmp_path):
    """As when the system runs out of memory: only the process that writes is killed."""
    process = job()
    until(lambda: runs(tmp_path / "out") or process.poll() is not None)
    assert len(workers(process)) == 2
    process.kill()
    assert process.wait(timeout=300) == -signal.SIGKILL
    until(lambda: not session(process))
    assert runs(tmp_path / "out").items() <= whole_runs(whole).items()


@pytest.mark.slow
def test_killed_at_many_moments_and_resumed(job, whole, tmp_path):
    """Process and workers at once, before the first run, between runs and while writing."""
    chance = np.random.default_rng(4)
    out = tmp_path / "out"
    out.mkdir()
    found = []
    for kill in range(8):
        process = job()
        more = len(runs(out)) + chance.choice([0, 1, 1, 2])
        if kill < 3:
            time.sleep(chance.uniform(0.2, 1.5))
        else:
            until(lambda: len(runs(out)) >= more or process.poll() is not None)  # noqa: B023
            time.sleep(chance.uniform(0.0, 0.05))
        if process.poll() is not None:
            break
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        until(lambda: not session(process))  # noqa: B023
        now = runs(out)
        assert now.items() <= whole_runs(whole).items()
        found.append(len(now))
    assert len(found) >= 5
    assert len(set(found)) >= 3, "the kills came too early or too late to say anything"
    last = job()
    assert last.wait(timeout=300) == 0, last.communicate()
    assert files(out) == whole
    assert leftovers(out) == []
    result = Result.open(out)
    assert (len(result.entries), result.damaged) == (COUNT, [])


@pytest.mark.slow
def test_killed_before_every_file_operation_and_resumed(tmp_path):
    command = [sys.executable, "-m", "tests.experiment.crashes", str(tmp_path)]
    one_thread = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # the process forks
    done = subprocess.run(
        command, cwd=ROOT, env=one_thread, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    whole = files(tmp_path / "whole")
    resumed = [folder for folder in tmp_path.iterdir() if folder.name != "whole"]
    assert len(resumed) > 25
    for folder in resumed:
        assert files(folder) == whole, folder.name
        assert leftovers(folder) == [], folder.name
