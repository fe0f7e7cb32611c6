"""Runs that fail: written down with their reason, while the others go on."""

import json
import sys
from dataclasses import dataclass

import pytest

import agewise
from agewise.cli import main
from agewise.engines import Local
from agewise.experiment import AllFailed, FolderError, Result
from agewise.learn import Diverged
from agewise.policies import MaxPack, Policy
from agewise.report._verdict import missing
from tests.engines.policies import InfeasibleFor, is_round
from tests.experiment.watch import Counting, files, leftovers, runs
from tests.scenarios import tiny

SCENARIO = tiny(**{"run.rounds": 3})
#: One value under which the model diverges, and one under which it does not.
VARY = {"learn.step_size": [50.0, 0.01]}
UNSTABLE = tiny(**{"run.rounds": 3, "learn.model.loss": "squared-error", "learn.local_steps": 200})


class Odd(Exception):
    """An error that cannot travel between processes."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


@dataclass(frozen=True)
class Buggy(Policy):
    """MaxPack, but with one seed its programmer made a mistake."""

    name = "buggy"
    seed: int

    def schedule(self, view, rng):
        if is_round(rng, self.seed, 1):
            raise Odd("one", "two")
        return MaxPack().schedule(view, rng)


def sweep(out, engine="inline", **options):
    options = {"quiet": True} | options
    return agewise.sweep(UNSTABLE, ["max-pack"], VARY, 2, out, engine=engine, **options)


@pytest.mark.parametrize("engine", ["inline", Local(1)], ids=str)
def test_a_diverging_run_does_not_stop_a_sweep(engine, tmp_path):
    out = tmp_path / "out"
    result = sweep(out, engine)
    assert [(e.variation["learn.step_size"], e.seed) for e in result.entries] == [
        (0.01, 0), (0.01, 1)
    ]  # fmt: skip
    assert [(f.variation, str(f.policy), f.seed) for f in result.failed] == [
        ({"learn.step_size": 50.0}, "max-pack", seed) for seed in (0, 1)
    ]
    assert all("the model diverged in round" in each.reason for each in result.failed)
    assert result.damaged == []
    log = (out / "log.txt").read_text()
    assert f"failed: {MaxPack()}, seed 1, learn.step_size=50.0: the model diverged" in log
    assert "Traceback" not in log
    assert log.endswith("2 of 4 runs failed, the others are there\n")
    said = missing(result)
    assert said[0] == "2 of 4 runs failed; the same command tries them again:"
    assert len(said) == 3
    agewise.write_page(result)
    assert said[0] in (out / "report.html").read_text()
    assert leftovers(out) == []


def test_failed_runs_are_tried_again_and_then_forgotten(tmp_path):
    out, computed = tmp_path / "out", Counting()
    policies = [Buggy(1), "max-pack"]

    def compare(policies, engine="inline"):
        return agewise.compare(SCENARIO, policies, 3, out, engine=engine, quiet=True)

    result = compare(policies)
    assert [(each.policy.name, each.seed) for each in result.failed] == [("buggy", 1)]
    assert result.failed[0].reason == "Odd: one and two"
    assert result.table().to_polars()["failed"].to_list() == [1, 0]
    assert compare(policies, computed).failed[0].seed == 1
    assert computed == [("buggy", 1)]
    schedule = Buggy.schedule
    try:
        Buggy.schedule = lambda _, view, rng: MaxPack().schedule(view, rng)
        assert compare(policies).failed == []
    finally:
        Buggy.schedule = schedule
    assert len(files(out)) == 8
    name = min(runs(out))
    left = out / "runs" / name.replace(".parquet", ".failed.json")
    left.write_text("of a process that was killed before it deleted this")
    assert Result.open(out).damaged == []
    compare(policies)
    assert not left.exists()


def test_runs_that_failed_lock_no_folder(tmp_path):
    """Without a finished run a named folder takes the corrected command."""
    out = tmp_path / "out"
    wrong, right = (UNSTABLE.with_(**{"learn.step_size": size}) for size in (50.0, 0.01))

    def compare(scenario):
        return agewise.compare(scenario, "max-pack", 2, out, engine="inline", quiet=True)

    with pytest.raises(ValueError, match="diverged"):
        compare(wrong)
    assert len(Result.open(out).failed) == 2
    result = compare(right)
    assert (len(result.entries), result.failed, result.damaged) == (2, [], [])
    assert not list((out / "runs").glob("*.failed.json"))
    assert result.scenario == right
    with pytest.raises(FolderError, match="results of another scenario"):
        compare(wrong)
    assert len(Result.open(out).entries) == 2


@pytest.mark.parametrize("engine", ["inline", Local(1)], ids=str)
def test_a_bug_in_a_policy_is_a_failed_run_with_a_traceback_in_the_log(engine, tmp_path):
    out = tmp_path / "out"
    result = agewise.compare(SCENARIO, [Buggy(1)], 3, out, engine=engine, quiet=True)
    assert [entry.seed for entry in result.entries] == [0, 2]
    assert str(result.failed[0]) == "buggy:seed=1, seed 1: Odd: one and two"
    log = (out / "log.txt").read_text()
    assert "    Traceback (most recent call last):" in log
    assert 'raise Odd("one", "two")' in log


def test_fail_fast_stops_at_the_first(tmp_path):
    for name, start in {
        "sweep": lambda out: sweep(out, fail_fast=True),
        "compare": lambda out: agewise.compare(
            SCENARIO, [InfeasibleFor(1)], 3, out, engine="inline", quiet=True, fail_fast=True
        ),
        "run": lambda out: agewise.run(
            SCENARIO, InfeasibleFor(1), 3, out, engine="inline", quiet=True, fail_fast=True
        ),
    }.items():
        with pytest.raises(ValueError, match="diverged in round|power constraint"):
            start(tmp_path / name)
        assert len(Result.open(tmp_path / name).failed) == 1
        assert len(runs(tmp_path / name)) == (0 if name == "sweep" else 1)


def test_where_all_fail_there_is_no_result(tmp_path):
    wild = UNSTABLE.with_(**{"learn.step_size": 50.0})
    with pytest.raises(Diverged, match="^the model diverged in round"):
        agewise.run(wild, "max-pack", 1, tmp_path / "one", engine="inline", quiet=True)
    with pytest.raises(AllFailed, match="^all 2 runs failed, the first with: infeasible-for"):
        agewise.compare(
            SCENARIO, [InfeasibleFor(0), Buggy(0)], 1, tmp_path / "two", engine="inline", quiet=True
        )
    assert len(Result.open(tmp_path / "two").failed) == 2


def test_a_damaged_or_foreign_failure_is_named(tmp_path):
    out = tmp_path / "out"
    sweep(out)
    first, second = sorted(out.glob("runs/*.failed.json"))
    whole = first.read_bytes()
    assert json.loads(whole)["variation"] == {"learn.step_size": 50.0}
    for content, problem in (
        (whole.replace(b"diverged", b"improved"), "does not match its checksum"),
        (second.read_bytes(), "tells of another run than its name says"),
        (b"[" * 10**6, "nested more than"),
        (b"", "damaged: "),
    ):
        first.write_bytes(content)
        result = Result.open(out)
        assert [each.seed for each in result.failed] == [1]
        assert [problem in each for each in result.damaged] == [True]
    first.rename(out / "runs" / "x.failed.json")
    assert "no run of this experiment has this name" in Result.open(out).damaged[0]


def test_the_command_says_so_by_its_exit_code(tmp_path, monkeypatch, capsys):
    (tmp_path / "unstable.toml").write_text(UNSTABLE.to_toml())
    monkeypatch.chdir(tmp_path)

    def command(*words):
        monkeypatch.setattr(sys, "argv", ["agewise", *words])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        return code, *capsys.readouterr()

    words = ("unstable.toml", "--policy", "max-pack", "--seeds", "1", "--out", "out")
    engine = ("--engine", "inline")
    vary = ("--vary", "learn.step_size=50,0.01")
    code, shown, _ = command("sweep", *words, *engine, *vary)
    assert code == 1
    assert "1 of 2 runs failed; the same command tries them again:" in shown
    assert "failed: max-pack, seed 0, learn.step_size=50" in shown
    assert "Page: out/report.html" in shown
    code, shown, _ = command("sweep", *words, *engine, *vary, "--json")
    assert code == 1
    assert len(json.loads(shown)["failed"]) == 1
    code, shown, said = command("sweep", *words, *engine, *vary, "--fail-fast")
    assert (code, shown) == (2, "")
    assert said.startswith("agewise: the model diverged")
    for name in ("run", "compare"):
        options = (*words[:-1], name, *engine, "--set", "learn.step_size=50", "--fail-fast")
        assert command(name, *options)[0] == 2
    assert command("show", "out")[0] == 0
    code, shown, said = command("compare", "--out", "")
    assert code == 2
    assert "--out is empty: give a name" in " ".join(said.split())
