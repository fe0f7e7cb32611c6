"""Results folders: continued and extended, never mixed, and told from what is not one."""

import contextlib
import errno
import fcntl
import json
import os
import re
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest

import agewise
from agewise.experiment import Folder, FolderError, Plan, Result, RunOptions, execute
from agewise.files import atomic_write
from agewise.policies import AgeBased
from tests.experiment.watch import (
    Counting,
    end,
    everything,
    files,
    leftovers,
    rewrite,
    runs,
    start,
    times,
    until,
)
from tests.scenarios import tiny

SCENARIO = tiny(**{"run.rounds": 3})
POLICIES = ["age-based", "max-pack"]


def compare(out, policies=POLICIES, seeds=3, scenario=SCENARIO, engine="inline"):
    return agewise.compare(scenario, policies, seeds, out, engine=engine, quiet=True)


@pytest.fixture
def out(tmp_path):
    """A finished folder of six runs."""
    folder = tmp_path / "out"
    compare(folder)
    return folder


def test_a_folder_explains_itself(out):
    described = json.loads((out / "experiment.json").read_text())
    assert described["agewise"] == agewise.__version__
    assert described["scenario"] == SCENARIO.resolved()
    assert described["policies"] == [
        {
            "name": "age-based",
            "parameters": {
                "alpha": 0.5,
                "form": "paper",
                "cap": None,
                "packing": "greedy",
                "ties": "random",
            },
            "usual": ["alpha", "form", "cap", "packing", "ties"],
        },
        {
            "name": "max-pack",
            "parameters": {"packing": "greedy", "ties": "random"},
            "usual": ["packing", "ties"],
        },
    ]
    assert described["seeds"] == [0, 1, 2]
    assert {"python", "packages", "command"} < described.keys()
    assert agewise.Scenario.load(out / "scenario.toml") == SCENARIO
    assert len(runs(out)) == 6
    assert (out / "log.txt").read_text().endswith("all 6 runs are there\n")
    assert leftovers(out) == []


def test_resuming_runs_only_what_is_missing(out):
    before, written, computed = files(out), times(out), Counting()
    compare(out, engine=computed)
    assert computed == []
    gone = sorted(runs(out))[1]
    (out / "runs" / gone).unlink()
    result = compare(out, engine=computed)
    assert computed == [("age-based", 1)]
    assert len(result.entries) == 6
    assert files(out) == before
    assert times(out).items() >= written.items() - {(gone, written[gone])}
    assert "5 of 6 runs were there" in (out / "log.txt").read_text()


def test_more_seeds_and_policies_extend_the_folder(out, tmp_path):
    written, computed = times(out), Counting()
    compare(out, ["random", "max-pack"], seeds=[1, 7], engine=computed)
    assert computed == [("random", 1), ("random", 7), ("max-pack", 7)]
    assert written.items() <= times(out).items()
    result = compare(out, [*POLICIES, "random"], seeds=[0, 1, 2, 7])
    assert len(result.entries) == result.expected == 12
    compare(tmp_path / "at once", [*POLICIES, "random"], seeds=[0, 1, 2, 7])
    assert files(out) == files(tmp_path / "at once")


def test_a_sweep_extends_and_keeps_variations_apart(tmp_path):
    vary, out = {"threshold.rate": [2.0, 3.0]}, tmp_path / "out"
    first, computed = {"threshold.rate": [1.0]}, Counting()
    agewise.sweep(SCENARIO, ["age-based", "max-pack"], first, 3, out, engine="inline", quiet=True)
    result = agewise.sweep(SCENARIO, ["max-pack"], vary, 2, out, engine=computed, quiet=True)
    assert len(computed) == 4
    assert [dict(v) for v in result.variations] == [
        {"threshold.rate": 1.0}, {"threshold.rate": 2.0}, {"threshold.rate": 3.0}
    ]  # fmt: skip
    assert len(result.entries) == 10
    rounds = result.history("max-pack", 1, {"threshold.rate": 2.0})
    assert rounds.info.scenario["threshold"]["rate"] == 2.0


def test_the_same_sweep_in_other_words_is_finished(tmp_path):
    out, computed = tmp_path / "out", Counting()
    vary = {"threshold.rate": [2.0, 3.0], "learn.local_steps": [5]}
    agewise.sweep(SCENARIO, ["age-based:alpha=1"], vary, 2, out, engine=computed, quiet=True)
    assert len(computed) == 4
    other = {"learn.local_steps": [5, 5], "threshold.rate": [3, 2]}
    policy = AgeBased(alpha=1)
    result = agewise.sweep(SCENARIO, [policy], other, [1, 0, 1], out, engine=computed, quiet=True)
    assert len(computed) == 4
    assert len(result.entries) == result.expected == 4
    assert result.damaged == []


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"threshold.rate": 4.5}, r"threshold.rate is 4.0 there and 4.5 here"),
        ({"learn.local_steps": 11}, r"learn.local_steps is 10 there and 11 here"),
        ({"run.objective_every": 2}, r"run.objective_every is 0 there and 2 here"),
        ({"timing": {"kind": "slots", "deadline_slots": 9},
          "devices.computing": {"kind": "slots", "median_slots": 1, "sigma": 0}},
         r"timing.kind is none there and slots here"),
    ],
)  # fmt: skip
def test_another_scenario_is_refused_and_changes_nothing(changes, difference, out):
    before = everything(out)
    other = SCENARIO.with_(**changes)
    with pytest.raises(FolderError, match=rf"another scenario \({difference}\): give another"):
        compare(out, ["random"], scenario=other)
    assert everything(out) == before


def test_another_version_is_refused_and_changes_nothing(out):
    rewrite(out / "experiment.json", agewise="0.0.1")
    before = everything(out)
    expected = f"made with agewise 0.0.1, this is {agewise.__version__}: give another folder"
    with pytest.raises(FolderError, match=expected):
        compare(out)
    assert everything(out) == before


def test_two_at_once_are_refused_across_processes(tmp_path):
    out = tmp_path / "out"
    first = start("-m", "tests.experiment.job", out)
    try:
        until(lambda: runs(out))
        with pytest.raises(FolderError, match="another process is working in this folder"):
            compare(out)
        partly = Result.open(out)  # looking is allowed
        assert partly.entries
        assert partly.damaged == []
    finally:
        end(first)
    with pytest.raises(FolderError, match="another scenario"):  # the lock went with the process
        compare(out)


def test_a_missing_description_is_one_sentence_and_costs_no_run(out, tmp_path):
    (out / "experiment.json").unlink()
    before = everything(out)
    with pytest.raises(FolderError, match=r"not a results folder \(no experiment.json\)$"):
        Result.open(out)
    for scenario in (SCENARIO, tiny(**{"run.rounds": 4})):
        with pytest.raises(FolderError, match="holds runs but no experiment.json"):
            compare(out, scenario=scenario)
    assert everything(out) == before
    with pytest.raises(FolderError, match="not a results folder"):
        Result.open(tmp_path / "nowhere")


def test_what_a_killed_process_left_is_swept_out_and_nothing_else(out):
    """All that ended in .tmp was deleted, in folders below, too, whosever it was."""
    gone = subprocess.Popen(["true"])  # noqa: S607
    gone.wait()
    dead, alive = f".agewise-{gone.pid}-abc.tmp", f".agewise-{os.getpid()}-abc.tmp"
    (out / "mine").mkdir()
    for name in (dead, f"runs/{dead}"):
        (out / name).write_bytes(b"half")
    others = [".notes.tmp", "runs/.x.parquet.abc.tmp", alive, f"mine/{dead}", "mine/.swap.tmp"]
    for name in others:
        (out / name).write_bytes(b"of others")
    locked = out / f".agewise-{gone.pid}-far.tmp"  # as of a process on another machine
    with locked.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        assert len(Result.open(out).entries) == 6
        compare(out)
        assert locked.exists()
    assert all((out / name).read_bytes() == b"of others" for name in others)
    assert not (out / dead).exists()
    assert not (out / "runs" / dead).exists()


def test_a_folder_is_opened_100_times_while_pages_are_written(out):
    """Opening deleted the page that was being written, and failed on one that had just gone."""
    plan, over, failed = Plan.of(SCENARIO, POLICIES, 3), threading.Event(), []

    def write():
        while not over.is_set():
            try:
                with atomic_write(out / "report.html") as temporary:
                    temporary.write_text("page " * 10_000)
            except OSError as error:
                failed.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(100):
            with Folder(out).opened(plan):
                pass
        assert len(Result.open(out).entries) == 6
    finally:
        over.set()
        writer.join()
    assert failed == []
    assert leftovers(out) == []


@pytest.mark.parametrize("empty", ["", " "])
def test_a_folder_without_a_name_is_refused(empty, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="out must be the name of a file or folder, not ' ?'"):
        compare(empty)
    assert list(tmp_path.iterdir()) == []


def test_many_runs_begin_at_once(tmp_path):
    """Ten times as many take about ten times as long; compared with each other, a hundred times."""

    class Refuses:
        def run(self, work, items):
            raise ConnectionError(f"{len(items)} groups")
            yield

    def seconds(seeds):
        plan = Plan.of(SCENARIO, [*POLICIES, "random", "round-robin"], seeds)
        begun = time.process_time()
        with pytest.raises(ConnectionError, match=f"^{seeds} groups$"):
            execute(plan, tmp_path / str(seeds), RunOptions(engine=Refuses(), quiet=True))
        return time.process_time() - begun

    seconds(5)  # loads what it needs
    assert seconds(5_000) < 40 * seconds(500)


@pytest.mark.parametrize("place", ["file", "file/below", "/proc/agewise"])
def test_a_place_that_cannot_be_written(place, tmp_path):
    (tmp_path / "file").write_text("a file")
    with pytest.raises(FolderError, match=r"cannot be written: [A-Z][a-z ]+$"):
        compare(tmp_path / place)
    assert (tmp_path / "file").read_text() == "a file"


def test_an_error_of_the_work_is_not_blamed_on_the_folder(tmp_path):
    """Ray tells of a cluster that does not answer by a ConnectionError, which is an OSError."""

    class Offline:
        def run(self, work, items):
            raise ConnectionError("nobody answers")
            yield

    with pytest.raises(ConnectionError, match="^nobody answers$"):
        execute(
            Plan.of(SCENARIO, POLICIES, 1),
            tmp_path / "out",
            RunOptions(engine=Offline(), quiet=True),
        )
    assert "stopped: nobody answers" in (tmp_path / "out" / "log.txt").read_text()


@contextlib.contextmanager
def mounted(size):
    """A small file system in memory, where this process may mount one."""
    place = Path(tempfile.mkdtemp(prefix="agewise-test-"))
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "agewise-test", str(place)]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode:
            pytest.skip("mounting is not allowed here")
        try:
            yield place
        finally:
            subprocess.run(["umount", str(place)], check=True)  # noqa: S607
    except FileNotFoundError:
        pytest.skip("there is no mount here")
    finally:
        place.rmdir()


@pytest.mark.parametrize("engine", ["inline", "local"])
def test_a_full_disk_is_one_sentence_and_loses_nothing(engine, tmp_path):
    compare(tmp_path / "whole", seeds=16)
    whole = runs(tmp_path / "whole")
    with mounted("128k") as small:
        out = small / "out"
        for chosen in (engine, "inline"):  # the same again when it is tried again
            with pytest.raises(FolderError, match=r"cannot be written: No space left on device$"):
                compare(out, seeds=16, engine=chosen)
            kept = runs(out)
            assert 4 < len(kept) < 32
            assert kept.items() <= whole.items()
            assert leftovers(out) == []
            assert len(Result.open(out).entries) == len(kept)
        written = times(out)
        subprocess.run(["mount", "-o", "remount,size=4m", str(small)], check=True)  # noqa: S607
        compare(out, seeds=16)
        assert runs(out) == whole
        assert written.items() <= times(out).items()


def test_a_read_only_disk_is_one_sentence_and_can_be_read():
    with mounted("1m") as small:
        compare(small / "out")
        subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)  # noqa: S607
        for place in ("out", "new"):
            with pytest.raises(FolderError, match="cannot be written: Read-only file system$"):
                compare(small / place)
        assert len(Result.open(small / "out").entries) == 6


def test_a_disk_that_fails_while_writing(monkeypatch, tmp_path):
    """The same as a full disk, where none can be mounted; the error of a run is not hidden."""
    out = tmp_path / "out"
    left = 6  # the scenario, the description and four runs
    write_bytes = Path.write_bytes

    def full(path, content):
        nonlocal left
        left -= 1
        if left < 0:
            write_bytes(path, content[: len(content) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write_bytes(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(FolderError, match=r"cannot be written: No space left on device$"):
            compare(out)
    kept = times(out)
    assert len(kept) == 4
    assert leftovers(out) == []
    compare(out)
    compare(tmp_path / "whole")
    assert files(out) == files(tmp_path / "whole")
    assert kept.items() <= times(out).items()


def test_a_sweep_is_not_continued_by_another_one(tmp_path):
    """Its table would have rows without a value, and its map no square for them."""
    scenario, out = tiny(**{"run.rounds": 1}), tmp_path / "out"

    def sweep(vary):
        return agewise.sweep(scenario, ["random"], vary, 1, out, engine="inline", quiet=True)

    sweep({"threshold.rate": [1.0]})
    assert len(sweep({"threshold.rate": [2.0]}).variations) == 2
    for other, varied in (
        (lambda: agewise.run(scenario, "random", out=out, engine="inline", quiet=True), "nothing"),
        (lambda: sweep({"threshold.rate": [1.0], "learn.local_steps": [1]}),
         "learn.local_steps, threshold.rate"),
    ):  # fmt: skip
        said = f"out: holds results that vary threshold.rate, and this varies {varied}: give"
        with pytest.raises(FolderError, match=re.escape(said)):
            other()
    assert len(Result.open(out).entries) == 2
