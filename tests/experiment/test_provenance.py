"""What runs are computed from: known by its content, noticed when it changes, never mixed."""

import gzip
import hashlib
import importlib
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import agewise
from agewise.experiment import Result, _description
from agewise.policies import age_based
from agewise.provenance import _UNKNOWN, code_text, sources_of
from tests.experiment.watch import ROOT, Counting, files, runs, times
from tests.scenarios import tiny

#: A policy in a file of its own, which tests write and change.
MINE = """
from dataclasses import dataclass
from agewise.policies import MaxPack, Policy

@dataclass(frozen=True)
class Mine(Policy):
    name = "mine"

    def schedule(self, view, rng):
        return MaxPack(ties={ties!r}).schedule(view, rng)
"""


def write_npz(path, seed):
    """A small data set; files of all seeds are equally long."""
    rng, labels = np.random.default_rng(seed), np.arange(400) % 4
    x = rng.standard_normal((480, 6)).astype(np.float32)
    np.savez(path, x_train=x[:400], y_train=labels, x_test=x[400:], y_test=labels[:80])


def write_trace(path, seed):
    np.savez(path, gains=np.random.default_rng(seed).exponential(30.0, (3, 12, 5)))


def write_idx(folder, seed):
    """Four IDX files, of which the test images change with the seed."""
    folder.mkdir(exist_ok=True)
    labels = bytes(range(4)) * 30
    for part, first, last in (("train", 0, 100), ("t10k", 100, 120)):
        pixels = np.random.default_rng([seed, first]).integers(0, 256, (last - first, 3, 3))
        if part == "train":
            pixels = np.arange(900).reshape(100, 3, 3) % 256
        head = np.array([last - first, 3, 3], ">u4").tobytes()
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(
            gzip.compress(b"\0\0\x08\x03" + head + pixels.astype(np.uint8).tobytes(), mtime=0)
        )
        count = np.array([last - first], ">u4").tobytes()
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(
            b"\0\0\x08\x01" + count + labels[first:last]
        )


def write_table(path, seed):
    rng = np.random.default_rng(seed)
    rows = [f"{a:.6f},{b:.6f},{n % 3}" for n, (a, b) in enumerate(rng.random((150, 2)))]
    path.write_text("\n".join(["a,b,label", *rows]) + "\n")


#: What is written, under which name, and where the scenario names it.
KINDS = {
    "npz": (write_npz, "d[1].npz", lambda p: {"data.dataset": {"kind": "npz", "path": p}}),
    "idx": (write_idx, "digits", lambda p: {"data.dataset": {"kind": "idx", "path": p}}),
    "table": (
        write_table,
        "d.csv",
        lambda p: {
            "data.dataset": {
                "kind": "table", "path": p, "label_column": "label", "test_fraction": 0.2
            },
        },
    ),
    "trace": (write_trace, "gains.npz", lambda p: {"channel": {"kind": "trace", "path": p}}),
}  # fmt: skip


@pytest.fixture(params=KINDS)
def source(request, tmp_path):
    """(scenario, a function that writes what it names anew)."""
    write, name, changes = KINDS[request.param]
    write(tmp_path / name, 0)
    scenario = tiny(**{"run.rounds": 3, **changes(str(tmp_path / name))})
    return scenario, lambda seed: write(tmp_path / name, seed)


def compare(scenario, out, policies=("max-pack",), seeds=2, **options):
    options = {"engine": "inline", "quiet": True} | options
    return agewise.compare(scenario, list(policies), seeds, out, **options)


def test_in_one_process_no_cache_serves_the_old_file(source):
    scenario, write = source
    first = agewise.simulate(scenario, "max-pack", 0)
    write(1)
    second = agewise.simulate(scenario, "max-pack", 0)
    assert not second.frame.equals(first.frame)
    assert agewise.simulate(scenario, "max-pack", 0).to_bytes() == second.to_bytes()
    write(0)
    assert agewise.simulate(scenario, "max-pack", 0).to_bytes() == first.to_bytes()


def test_a_changed_file_means_computed_again_and_never_mixed(source, tmp_path, capsys):
    scenario, write = source
    out, computed = tmp_path / "out", Counting()
    compare(scenario, out)
    assert compare(scenario, out, engine=computed, quiet=False).damaged == []
    assert computed == []
    assert capsys.readouterr().err == ""
    write(1)
    result = compare(scenario, out, seeds=4, engine=computed, quiet=False)
    assert computed == [("max-pack", seed) for seed in range(4)]
    said = capsys.readouterr().err
    assert said.endswith(" has changed since: 2 runs are computed again\n")
    assert said.count("\n") == 1
    assert said in (out / "log.txt").read_text().replace("Z ", "")
    assert len(result.entries) == 4
    compare(scenario, tmp_path / "anew", seeds=4)
    assert files(out) == files(tmp_path / "anew")


def test_a_folder_that_was_left_half_way_is_not_mixed(tmp_path):
    """Seeds 0 and 1 are of the old file, 2 of the new one."""
    write, name, changes = KINDS["npz"]
    write(tmp_path / name, 0)
    scenario = tiny(**{"run.rounds": 3, **changes(str(tmp_path / name))})
    out = tmp_path / "out"
    compare(scenario, out)
    write(tmp_path / name, 1)
    result = compare(scenario, out, seeds=[2])
    assert [entry.seed for entry in result.entries] == [2]
    assert [name in sentence for sentence in result.damaged] == [True, True]
    assert all("has changed since it was computed" in sentence for sentence in result.damaged)
    assert compare(scenario, out, seeds=3).damaged == []


def test_a_file_that_is_gone_or_changed_does_not_stop_anybody_from_looking(tmp_path):
    write, name, changes = KINDS["npz"]
    file, out = tmp_path / name, tmp_path / "out"
    write(file, 0)
    scenario = tiny(**{"run.rounds": 3, **changes(str(file))})
    result = compare(scenario, out)
    assert result.changed_sources() == []
    write(file, 1)
    said = [f"{name} has changed since: the results are of the file as it was"]
    assert Result.open(out).changed_sources() == said
    assert len(Result.open(out).entries) == 2
    file.unlink()
    computed = Counting()
    assert len(compare(scenario, out, engine=computed).entries) == 2  # nothing says it changed
    assert computed == []
    assert Result.open(out).changed_sources() == []
    os.mkfifo(file)
    assert Result.open(out).changed_sources() == []


def test_a_file_that_changes_while_runs_go_on(tmp_path):
    write, name, changes = KINDS["npz"]
    write(tmp_path / name, 0)
    scenario = tiny(**{"run.rounds": 3, **changes(str(tmp_path / name))})

    class Meddling(Counting):
        def run(self, work, items):
            yield items[0], work(items[0])
            write(tmp_path / name, 1)
            yield items[1], work(items[1])

    result = compare(scenario, tmp_path / "out", engine=Meddling())
    assert [entry.seed for entry in result.entries] == [0]
    assert [each.seed for each in result.failed] == [1]
    assert "is not what it was when the experiment began" in result.failed[0].reason


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A function that writes the policy's file and imports it anew."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("sys.dont_write_bytecode", True)

    def make(ties="random", comment=""):
        (tmp_path / "mine_policy.py").write_text(MINE.format(ties=ties) + comment)
        sys.modules.pop("mine_policy", None)
        importlib.invalidate_caches()
        return importlib.import_module("mine_policy").Mine()

    yield make
    sys.modules.pop("mine_policy", None)


def test_an_edited_policy_is_computed_again(mine, tmp_path, capsys):
    out, scenario = tmp_path / "out", tiny(**{"run.rounds": 3})
    compare(scenario, out, [mine(), "max-pack"])
    before = times(out)
    result = compare(scenario, out, [mine("lowest-index"), "max-pack"], quiet=False)
    assert (
        capsys.readouterr().err == "the policy mine has changed since: 2 runs are computed again\n"
    )
    assert len(result.entries) == 4
    indexed = agewise.simulate(scenario, "max-pack:ties=lowest-index", 1)
    assert result.history("mine", 1).frame.equals(indexed.frame)
    kept = {name for name in before if "max-pack" in name}
    assert len(kept) == 2
    assert {name: times(out)[name] for name in kept} == {name: before[name] for name in kept}


def test_what_is_edited_later_is_not_what_runs(mine, tmp_path):
    """The class was imported before: its digest stays that of the code that runs."""
    policy = mine()
    first = sources_of(tiny(), policy)
    (tmp_path / "mine_policy.py").write_text("nothing")
    assert sources_of(tiny(), policy) == first
    assert sources_of(tiny(), mine(comment="# more\n")) != first
    assert sources_of(tiny(), mine()) == first


def test_policies_of_the_package_have_no_source():
    assert sources_of(tiny(), agewise.policies.MaxPack()) == {}


def test_a_policy_of_a_script_is_known_by_its_text_in_every_worker(tmp_path):
    script, out = tmp_path / "script.py", tmp_path / "out"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(ROOT)])}

    def run(ties, *options, text="", engine="inline"):
        end = textwrap.dedent(f"""
            import agewise
            from tests.scenarios import tiny
            scenario = tiny(**{{"run.rounds": 3}})
            agewise.compare(scenario, [Mine()], 2, {str(out)!r}, engine={engine!r}, quiet=True)
            """)
        script.write_text(MINE.format(ties=ties) + text + end)
        done = subprocess.run(
            [sys.executable, *(options or [script])], env=environment, input=script.read_text(),
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return runs(out)

    first = run("random", engine="local")
    assert len(first) == 2
    written = times(out)
    assert run("random", text="\nprint('elsewhere in the script')\n") == first
    assert times(out) == written
    second = run("lowest-index", engine="local")
    assert all(first[name] != second[name] for name in first)
    run("lowest-index", "-")  # typed in: nothing keeps its text
    sources = Result.open(out).history("mine").info.sources
    assert sources == {"policy:mine": _UNKNOWN}


def test_other_code_of_the_package_is_told_and_forced_anew(tmp_path, capsys, monkeypatch):
    """In a source tree code changes while the version does not."""
    scenario, out = tiny(**{"run.rounds": 1}), tmp_path / "out"

    def compare(seeds, **options):
        agewise.compare(scenario, ["random"], seeds, out, engine="inline", **options)
        described = json.loads((out / "experiment.json").read_text())
        return described["code"], times(out), capsys.readouterr().err

    code, _, said = compare(1)
    assert "has changed" not in said
    digest = hashlib.sha256(Path(age_based.__file__).read_bytes()).hexdigest()
    assert code["policies/age_based.py"] == digest[:16]
    assert not any(name.startswith(("cli", "report", "tables")) for name in code)
    changed = ["core/new.py", "policies/age_based.py"]
    edited = code | dict.fromkeys(changed, "0123")
    monkeypatch.setattr(_description, "code_digests", lambda: edited)
    kept, before, said = compare(1, quiet=True)  # which hides progress, not warnings
    assert kept == code, "nothing was computed by the other code"
    told = "the package has changed since these results were begun (core/new.py, policies/age_b"
    assert said.count(told) == 1
    mixed, after, said = compare(2)
    assert mixed == code | dict.fromkeys(changed, "several")
    assert before.items() < after.items(), "what was finished stays"
    assert said.count(told) == 1
    assert "and --force computes it anew" in said
    version = f"agewise {agewise.__version__}"
    page = agewise.write_page(Result.open(out)).read_text(encoding="utf-8")
    assert f"{version} (code several)" in page
    anew, forced, said = compare(2, force=True)
    assert anew == edited
    assert forced.keys() == after.keys()
    assert not forced.items() & after.items(), "all are computed anew"
    assert "has changed" not in said
    page = agewise.write_page(Result.open(out)).read_text(encoding="utf-8")
    assert f"{version} (code {code_text(edited)})" in page
