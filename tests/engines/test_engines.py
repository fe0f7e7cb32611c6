"""Engines: the same bytes everywhere, errors that arrive as they were, nothing left running."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import agewise
from agewise import InfeasibleAllocation
from agewise.engines import Inline, Local, Ray, local, make_engine
from agewise.learn import Diverged
from agewise.policies import Policy
from agewise.spectrum import Greedy
from tests.engines.policies import DeadlyFor, InfeasibleFor
from tests.experiment.watch import ROOT, children, end, files, runs, start, times, until
from tests.scenarios import DIVERGING, tiny

SCENARIO = tiny(**{"run.rounds": 3})
POLICIES = ["age-based", "max-pack", "round-robin"]
SHARED = Path("/dev/shm")  # noqa: S108 - only looked at


@dataclass(frozen=True)
class Backwards(Policy):
    """The highest index first."""

    name = "backwards"

    def schedule(self, view, rng):
        rank = np.arange(view.ue_count)[::-1].copy()
        return Greedy().pack(view.uplink, np.ones(view.ue_count), rank)


@dataclass(frozen=True)
class Shuffled:
    """Every item in this process, in a drawn order."""

    seed: int

    def run(self, work, items):
        for i in np.random.default_rng(self.seed).permutation(len(items)):
            yield items[i], work(items[i])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of an undisturbed run in this process."""
    out = tmp_path_factory.mktemp("engines") / "whole"
    agewise.compare(SCENARIO, [*POLICIES, Backwards()], 4, out, engine="inline", quiet=True)
    return out


@pytest.mark.parametrize("engine", [Local(3), Shuffled(1), Shuffled(2)], ids=str)
def test_the_same_bytes_on_every_engine_in_any_order(engine, whole, tmp_path):
    """One of the policies is of this module: it travels to the workers."""
    out = tmp_path / "out"
    result = agewise.compare(SCENARIO, [*POLICIES, Backwards()], 4, out, engine=engine, quiet=True)
    assert len(result.entries) == result.expected == 16
    assert files(out) == files(whole)
    until(lambda: not children())


def test_a_policy_of_a_script_without_a_guard(tmp_path):
    """Workers do not run the script again, which would start workers for ever."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
            import sys
            from dataclasses import dataclass
            import numpy as np
            import agewise
            from tests.scenarios import DIVERGING, tiny

            @dataclass(frozen=True)
            class LowestIndex(agewise.Policy):
                name = "lowest-index"
                ties: str = "lowest-index"
                def utility(self, view, rng):
                    return np.ones(view.ue_count)

            print("main part")
            policies = [LowestIndex(), "max-pack:ties=lowest-index"]
            result = agewise.compare(tiny(**{"run.rounds": 3}), policies, 2, workers=2, quiet=True)
            first, second = (result.accuracy(policy).tolist() for policy in result.policies)
            assert first == second
            print(len(result.entries))
            """)
    )
    before = os.environ.get("PYTHONPATH")
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), before]))}
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False, env=paths
    )
    assert (done.stdout, done.stderr) == ("main part\n4\n", "")


@pytest.mark.parametrize("engine", [Inline(), Local(2)], ids=str)
def test_the_first_error_stops_the_runs_if_asked_and_keeps_what_is_finished(engine, tmp_path):
    out = tmp_path / "out"
    expected = tmp_path / "expected"
    policy = InfeasibleFor(seed=3)
    agewise.compare(SCENARIO, [policy], [0, 1, 2, 4, 5], expected, engine="inline", quiet=True)
    message = r"^infeasible-for:seed=3 in round 1: power constraint \(3c\)"
    with pytest.raises(InfeasibleAllocation, match=message):
        agewise.compare(SCENARIO, [policy], 6, out, engine=engine, quiet=True, fail_fast=True)
    kept = times(out)
    assert runs(out).items() <= runs(expected).items()
    if engine == Inline():
        assert len(kept) == 3
    log = (out / "log.txt").read_text()
    assert "stopped: infeasible-for:seed=3 in round 1" in log
    with pytest.raises(InfeasibleAllocation, match=message):
        agewise.compare(SCENARIO, [policy], 6, out, engine="inline", quiet=True, fail_fast=True)
    agewise.compare(SCENARIO, [policy], [0, 1, 2, 4, 5], out, engine="inline", quiet=True)
    assert runs(out) == runs(expected)
    assert kept.items() <= times(out).items()
    until(lambda: not children())


def test_a_diverging_model_stops_the_run(tmp_path):
    wild = tiny(**DIVERGING)
    with pytest.raises(Diverged, match=r"^the model diverged in round \d"):
        agewise.compare(wild, ["random"], 1, tmp_path / "out", workers=1, quiet=True)


def test_a_worker_that_dies_ends_the_run_and_loses_nothing(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(RuntimeError, match="worker process .* was unexpectedly terminated"):
        agewise.compare(SCENARIO, [DeadlyFor(seed=3)], 6, out, workers=1, quiet=True)
    kept = times(out)
    assert len(kept) == 3
    assert "stopped: A worker process" in (out / "log.txt").read_text()
    result = agewise.compare(
        SCENARIO, [DeadlyFor(seed=3)], [0, 1, 2, 4], out, workers=1, quiet=True
    )
    assert len(result.entries) == 4
    assert kept.items() <= times(out).items()
    until(lambda: not children())


def test_leaving_early_ends_the_workers():
    results = Local(2).run(sleep_behind_the_first, [0, 1, 2, 3])
    assert next(results) == (0, "slept")
    assert len(children()) == 2
    results.close()
    until(lambda: not children())


def test_as_many_workers_as_cores_are_available(monkeypatch):
    monkeypatch.setattr(local, "available_cores", lambda: 1)
    results = Local().run(abs, range(3))
    next(results)
    assert len(children()) == 1
    results.close()
    until(lambda: not children())


@pytest.mark.skipif(not SHARED.is_dir(), reason="semaphores are files on Linux only")
@pytest.mark.parametrize("killed", [True, False])
def test_no_semaphores_are_left(killed):
    """A killed group takes the tracker along that would have removed them."""
    work = "from agewise.engines import Local\nfrom time import sleep\n"
    work += (
        f"for _ in Local(2).run(sleep, [0.0, {30.0 if killed else 0.0}]): print('one', flush=True)"
    )
    process = start("-c", work)
    try:
        assert process.stdout.readline() == "one\n"
        if killed:
            assert semaphores(process)
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(300)
        until(lambda: not semaphores(process))
    finally:
        end(process)


def semaphores(process):
    return list(SHARED.glob(f"sem.loky-{process.pid}-*"))


def sleep_behind_the_first(item):
    time.sleep(3600 if item else 0)
    return "slept"


def test_no_items_no_processes():
    assert list(Local(2).run(abs, [])) == []
    assert list(Inline().run(abs, [])) == []
    assert children() == []


def test_engines_by_name():
    assert make_engine("inline") == Inline()
    assert make_engine("local", 3) == Local(3)
    assert make_engine("ray", address="127.0.0.1:6379") == Ray("127.0.0.1:6379")
    given = Shuffled(0)
    assert make_engine(given) is given
    with pytest.raises(ValueError, match="unknown engine 'dask'; there are local, inline, ray"):
        make_engine("dask")
    with pytest.raises(ValueError, match="an address goes with the engine ray"):
        make_engine("local", address="127.0.0.1:6379")
    with pytest.raises(ValueError, match="workers must be a whole number of at least 1, not 0"):
        make_engine("local", workers=0)
    with pytest.raises(ValueError, match="go with an engine by name"):
        make_engine(given, workers=2)


def test_without_ray_one_sentence_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'agewise\[ray\]'$"):
        agewise.compare(SCENARIO, ["random"], 1, tmp_path / "out", engine="ray", quiet=True)
