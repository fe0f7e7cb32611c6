"""Mistakes are told in one sentence: inputs, sizes, options, interrupts, and JSON for machines."""

import contextlib
import gzip
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl
import pytest

import agewise
from agewise import checks
from agewise.cli import app, main
from agewise.cli._app import print_json
from agewise.cli._options import range_values, swept_scenario, variations_of
from agewise.engines import Inline
from agewise.experiment.execute import _announce
from agewise.experiment.plan import Plan
from agewise.policies import MaxPack, Policy, make_policy
from agewise.radio import read_gains
from agewise.random import Streams
from agewise.readers import read_arrays
from agewise.scenario import Scenario, ScenarioError, toml
from agewise.spectrum import Uplink, solve
from agewise.statistics import AXES, Contrast
from agewise.tables import GainMap
from tests.samples import read_idx_folder, read_npz, read_table
from tests.scenarios import tiny


@pytest.fixture
def called(tmp_path, monkeypatch, capfd):
    """The command line in this process and a folder of its own: exit code, output, errors."""
    (tmp_path / "tiny.toml").write_text(tiny(**{"run.rounds": 2}).to_toml())
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["agewise", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capfd.readouterr()
        return ended.value.code, out, err

    return call


def refused(called, *arguments):
    """The sentence with which a command is refused."""
    code, out, err = called(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("agewise: ")
    assert err.count("\n") == 1
    return err


# Names are names, not patterns


def test_folders_with_brackets_and_stars_are_themselves(called, tmp_path):
    """``lr[1]`` is not ``lr1``, and ``lr*`` is not both: show, report, resume and figure."""
    for name, steps in (("lr1", 1), ("lr[1]", 40), ("lr*", 5), ("lr?", 9)):
        scenario = tiny(**{"run.rounds": 2, "learn.local_steps": steps})
        agewise.compare(scenario, ["max-pack", "random"], 1, name, engine="inline", quiet=True)
    words = "compare tiny.toml -p max-pack -p random -s 2 -q --engine inline --json -o lr[1] --set"
    again = called(*words.split(), "learn.local_steps=40")
    assert json.loads(again[1])["finished"] == 4
    assert len(list((tmp_path / "lr1" / "runs").iterdir())) == 2
    for name, steps in (("lr1", 1), ("lr[1]", 40), ("lr*", 5)):
        scenario = tiny(**{"run.rounds": 2, "learn.local_steps": steps})
        expected = agewise.simulate(scenario, "max-pack", 0).accuracy
        result = agewise.Result.open(name)
        np.testing.assert_array_equal(result.history("max-pack").accuracy, expected)
        shown = json.loads(called("show", name, "--json")[1])
        assert shown["path"] == name
        seeds = len(result.seeds)
        assert [row["seeds"] for row in shown["rows"]] == [seeds, seeds]
        assert called("report", name, "-o", f"{name}.html")[0] == 0
        page = (tmp_path / f"{name}.html").read_text(encoding="utf-8")
        assert f"local_steps = {steps}\n" in page
        assert called("figure", name, "accuracy", "-o", f"{name}.svg")[0] == 0
    svgs = {(tmp_path / f"{name}.svg").read_bytes() for name in ("lr1", "lr[1]", "lr*")}
    assert len(svgs) == 3


@pytest.mark.parametrize("ending", ["npz", "parquet"])
def test_traces_and_gains_with_brackets_are_themselves(tmp_path, ending):
    for name, level in (("g1", 1.0), ("g[1]", 2.0), ("g*", 3.0)):
        gains = np.full((8, 12, 5), level)
        if ending == "npz":
            np.savez(tmp_path / f"{name}.npz", gains=gains[0] * 1.0)
            np.savez(tmp_path / f"{name}-trace.npz", gains=gains)
        else:
            t, ue, n = (axis.ravel() for axis in np.indices(gains.shape))
            pl.DataFrame(
                {"round": t, "ue": ue, "subchannel": n, "gain": gains.ravel()}
            ).write_parquet(tmp_path / f"{name}-trace.parquet")
    for name, level in (("g[1]", 2.0), ("g*", 3.0)):
        trace = {"kind": "trace", "path": str(tmp_path / f"{name}-trace.{ending}")}
        history = agewise.simulate(tiny(channel=trace, **{"threshold.rate": 0.1}), "max-pack")
        assert set(history.gain.ravel()) <= {0.0, level}
        if ending == "npz":
            assert (read_gains(tmp_path / f"{name}.npz") == level).all()


# Data that cannot be


@pytest.fixture
def arrays():
    x = np.arange(12.0).reshape(4, 3)
    y = np.array([5, 7, 5, 7])
    return {"x_train": x, "y_train": y, "x_test": x[:2], "y_test": y[:2]}


def message(read, *arguments):
    with pytest.raises(ValueError, match=".") as caught:
        read(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,c\n1,x\n2,\n3,y\n4,x\n", "column 'c' has empty cells, the first in row 1"),
        ("a,c\n1,0\n2,1\n3,\n4,1\n", "column 'c' has empty cells, the first in row 2"),
        ("a,c\n1,0\n,1\n3,0\n4,1\n", "column 'a' has empty cells, the first in row 1"),
        ("c\n1\n2\n1\n2\n", "they have no features"),
        ("a,c\n", "the table has no rows"),
        ("", "empty"),
    ],
)
def test_tables_with_gaps(tmp_path, text, sentence):
    (tmp_path / "t.csv").write_text(text)
    said = message(read_table, tmp_path / "t.csv", "c", 0.5)
    assert sentence in said
    assert "t.csv" in said


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"y_train": np.int64(5)}, r"labels of shape \(\)"),
        ({"y_train": np.eye(4, dtype=int)}, r"labels of shape \(4, 4\)"),
        (
            {"y_test": np.array([5, 7, 5])},
            r"test samples: .* \(3,\) for features of shape \(2, 3\)",
        ),
        ({"y_train": np.array([5.0, np.nan, 5.0, 7.0])}, "the label of sample 1 is nan"),
        ({"y_train": np.array([5j, 7j, 5j, 7j])}, "labels must be numbers or words"),
        ({"x_train": np.float64(1.0)}, r"features of shape \(\)"),
        ({"x_train": np.array(list("abcd"))}, "features must be numbers, not <U1"),
        ({"x_train": np.zeros((4, 0)), "x_test": np.zeros((2, 0))}, "'x_train' is empty"),
        ({"y_train": np.array([{}, {}, {}, {}])}, "not a readable NPZ file: Object arrays"),
    ],
)
def test_arrays_of_the_wrong_kind(tmp_path, arrays, change, sentence):
    np.savez(tmp_path / "d.npz", **(arrays | change))
    assert re.search(rf"d\.npz.*{sentence}", message(read_npz, tmp_path / "d.npz"))


def test_a_member_that_is_no_array(tmp_path, arrays):
    np.savez(tmp_path / "d.npz", **{k: v for k, v in arrays.items() if k != "y_test"})
    with zipfile.ZipFile(tmp_path / "d.npz", "a") as archive:
        archive.writestr("y_test", "hello")
    assert "its member 'y_test' is not an array" in message(read_npz, tmp_path / "d.npz")


@pytest.mark.parametrize("compressed", [False, True])
def test_damaged_archives(tmp_path, arrays, compressed):
    """Any byte of any part may be wrong, and the end may be missing."""
    path, rng = tmp_path / "d.npz", np.random.default_rng(0)
    (np.savez_compressed if compressed else np.savez)(path, **arrays)
    whole = path.read_bytes()
    said = []
    for _ in range(60):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        path.write_bytes(damaged if rng.random() < 0.7 else damaged[: rng.integers(len(whole))])
        try:
            read_npz(path)
        except ValueError as error:
            said.append(str(error))
    assert len(said) > 20
    assert all(str(path) in sentence and "\n" not in sentence for sentence in said)


def test_damaged_gzip(tmp_path):
    images = b"\0\0\x08\x03" + b"\0\0\0\x02" * 3 + bytes(range(8))
    labels = b"\0\0\x08\x01" + b"\0\0\0\x02" + b"\0\1"
    names = ("train-images-idx3-ubyte", "t10k-images-idx3-ubyte", "train-labels-idx1-ubyte",
             "t10k-labels-idx1-ubyte")  # fmt: skip
    for name in names:
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(images if "images" in name else labels))
    assert len(read_idx_folder(tmp_path).train) == 2
    file = tmp_path / "train-images-idx3-ubyte.gz"
    whole = file.read_bytes()
    for damaged in (
        whole[:-9],
        whole[:15] + b"\xff\xff\xff" + whole[18:],
        whole[:5],
        whole[:-4] + b"abcd",
    ):
        file.write_bytes(damaged)
        assert str(file) in message(read_idx_folder, tmp_path)
    file.write_bytes(gzip.compress(b"\0\0\x0e\x03" + b"\xff\xff\xff\xff" * 3))
    assert "of memory" in message(read_idx_folder, tmp_path)
    file.write_bytes(gzip.compress(images + b"more"))
    assert "more than 8 bytes of data" in message(read_idx_folder, tmp_path)
    file.write_bytes(gzip.compress(b"\0\0\x08\0\1"))
    assert "features of shape ()" in message(read_idx_folder, tmp_path)


def test_only_files_are_opened(tmp_path):
    """A FIFO would be waited for until somebody writes to it."""
    os.mkfifo(tmp_path / "f.npz")
    os.mkfifo(tmp_path / "f.csv")
    for read, arguments in (
        (read_npz, (tmp_path / "f.npz",)),
        (read_table, (tmp_path / "f.csv", "c", 0.5)),
        (read_gains, (tmp_path / "f.csv",)),
        (read_arrays, (tmp_path / "f.npz", ["gains"])),
    ):
        assert "not a regular file" in message(read, *arguments)
    trace = {"kind": "trace", "path": str(tmp_path / "f.npz")}
    assert "not a regular file" in message(agewise.simulate, tiny(channel=trace), "max-pack")


@pytest.mark.parametrize(
    ("column", "values", "sentence"),
    [
        ("ue", list("abcd"), "column 'ue' must hold finite numbers without gaps, and has String"),
        (
            "round",
            [0, 0, None, 1],
            "column 'round' must hold finite numbers without gaps, and has gaps (1 of 4)",
        ),
        (
            "gain",
            [True] * 4,
            "column 'gain' must hold finite numbers without gaps, and has Boolean",
        ),
        ("ue", [0, 1, 0, 10**12], "every combination must be there once"),
    ],
)
def test_traces_in_tables_of_the_wrong_kind(tmp_path, column, values, sentence):
    table = {"round": [0, 0, 1, 1], "ue": [0, 1, 0, 1], "subchannel": [0] * 4, "gain": [1.0] * 4}
    pl.DataFrame(table | {column: values}).write_parquet(tmp_path / "g.parquet")
    trace = {"kind": "trace", "path": str(tmp_path / "g.parquet")}
    said = message(agewise.simulate, tiny(channel=trace), "max-pack")
    assert sentence in said
    assert "g.parquet" in said


# Values that cannot be


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("channel.link.edge_snr_db", 4000, "must be from -300 to 300; the nearest is 300"),
        ("channel.path_loss.exponent", 1e6, "must be above 0 to 10; the nearest is 10"),
        ("cell.subchannel_bandwidth_hz", 0, "must be from 0.001 to 1e+15; the nearest is 0.001"),
        ("channel.placement.radius_m", 1e300, "must be from 0.001 to"),
        ("cell.ues", 10**30, "must be from 1 to 2147483647"),
        ("threshold.rate", 1e9, "must be from 0 to 1000"),
        ("learn.step_size", 1e300, "must be above 0 to"),
        ("run.age_alpha", -1e300, "must be from -10 to 1"),
        ("devices.samples_sigma", 1e6, "must be from 0 to 20"),
        ("run.optimum", {"kind": "sampled", "every": 1, "work_limit": 10**30}, "must be from 0 to"),
    ],
)
def test_values_out_of_range_are_told_with_the_range(field, value, words):
    with pytest.raises(ScenarioError) as caught:
        tiny(**{field: value})
    assert field in str(caught.value)
    assert words in str(caught.value)


def test_no_limit_is_offered_that_is_not_allowed_itself():
    with pytest.raises(ScenarioError, match=r"share = 0: must be above 0 to 1$"):
        tiny(**{"learn.compression": {"kind": "top-k", "share": 0}})


def test_a_field_of_another_kind_is_told_with_that_kind():
    with pytest.raises(ScenarioError, match=r"with kind = perfect; it is a field of kind = estim"):
        tiny(**{"channel.csi.pilot_snr_db": 3})
    both = r"with kind = none; it is a field of kind = rayleigh or rician$"
    with pytest.raises(ScenarioError, match=both):
        tiny(**{"channel.fading": {"kind": "none", "time": "independent"}})


def test_a_kind_that_several_sections_have_is_told_once():
    with pytest.raises(ScenarioError, match=r"frequency.kind = 'tap': did you mean taps\?$"):
        tiny(**{"channel.fading.frequency": "tap"})


def test_the_ends_of_the_ranges_do_not_overflow():
    link = "channel.link.edge_snr_db"
    extremes = {
        "channel.path_loss.exponent": 10, "channel.placement.radius_m": 1e7,
        "channel.path_loss.reference_distance_m": 1e-3, "run.rounds": 1,
    }  # fmt: skip
    for snr_db in (-300, 300):
        history = agewise.simulate(tiny(**extremes, **{link: snr_db}), "age-based")
        assert np.isfinite(history.rate[0]).all()
    rare = {"threshold": {"kind": "payload", "payload_bits": 1e18, "deadline_s": 1e-12}}
    with pytest.raises(ScenarioError, match="at most 1000 are taken"):
        tiny(**rare, **{"cell.subchannel_bandwidth_hz": 1.0})


def test_deep_nesting_and_endless_numbers(tmp_path):
    path = tmp_path / "deep.toml"
    for text in (
        "x = " + "[" * 5_000, "x = " + "{a=" * 5_000,
        ".".join("a" * 2_000) + " = 1", "x = " + "9" * 10_000,
    ):  # fmt: skip
        path.write_text(text)
        with pytest.raises(ScenarioError, match="deep.toml: ") as caught:
            Scenario.load(path)
        assert len(str(caught.value)) < 2000
    deep: dict = {}
    for _ in range(5_000):
        deep = {"a": deep}
    with pytest.raises(ScenarioError, match="nested too deeply|there is no"):
        Scenario.read(deep)
    while deep:  # a chain as long as this is taken down link by link
        deep = deep["a"]
    assert toml.value("[" * 100_000) == "[" * 100_000
    assert toml.value("1\nother = 2") == "1\nother = 2"


def test_long_values_are_shortened():
    with pytest.raises(ScenarioError) as caught:
        tiny(**{"learn.step_size": "x" * 100_000})
    assert len(str(caught.value)) < 300


def test_a_key_with_dots_is_told_with_its_file(tmp_path):
    file = tmp_path / "my.toml"
    file.write_text(tiny().to_toml().replace("[cell]", '[cell]\n"gains[1].csv" = 1', 1))
    with pytest.raises(ScenarioError, match=r"my\.toml: there is no cell\.gains\[1\]\.csv"):
        Scenario.load(file)


def test_long_names_are_shortened():
    with pytest.raises(ScenarioError, match=r"^there is no c+\.\.\.; ") as caught:
        tiny(**{2000 * "c": 1})
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("rounds", "there is no rounds; did you mean run.rounds?"),
        ("path", "channel.path or devices.availability.path or devices.path or data.dataset.path?"),
        ("learn.classes_per_ue", "did you mean data.partition.classes_per_ue?"),
        ("learn.local_step", "did you mean learn.local_steps?"),
        ("self", "there is no self; there are cell, channel"),
        ("kind", "there is no kind; there are cell, channel"),
        ("", "there is no ; there are cell"),
    ],
)
def test_names_that_are_not_fields(name, hint):
    with pytest.raises(ScenarioError) as caught:
        tiny(**{name: 1})
    assert hint in str(caught.value)


@pytest.mark.parametrize(
    "policy",
    ["age-based:packing=exact:work_limit=1e308", "max-pack:packing=exact:work_limit=1e308",
     "proportional-fair:memory_rounds=1e300", "alternating:inclusive_every=1e300"],
)  # fmt: skip
def test_parameters_that_are_too_large(policy):
    assert "must be a whole number from" in message(make_policy, policy)


def test_a_search_with_an_endless_limit_is_a_search_without_one():
    uplink = Uplink(np.random.default_rng(0).exponential(size=(6, 4)), 5.0, 1.0)
    limited = solve(uplink, np.ones(6), work_limit=10**300)
    assert limited.value == solve(uplink, np.ones(6)).value


def test_a_name_in_the_place_of_a_scenario():
    for call in (
        lambda: agewise.simulate("paper", "max-pack"),
        lambda: agewise.compare("paper"),
        lambda: agewise.schedule_traffic("paper"),
        lambda: agewise.gap("paper"),
        lambda: agewise.reproduce_map("paper"),
    ):
        assert 'give Scenario.preset("paper")' in message(call)
    assert 'give Scenario.load("my.toml")' in message(agewise.simulate, "my.toml", "max-pack")
    assert "must be a Scenario, not 7" in message(agewise.simulate, 7, "max-pack")


class Plain(Policy):
    """Not a dataclass."""

    name: ClassVar[str] = "plain"

    def __init__(self, alpha):
        self.alpha = alpha

    def schedule(self, view, rng):
        return MaxPack().schedule(view, rng)


@dataclass(frozen=True)
class Decorated(MaxPack):
    name: ClassVar[str] = "decorated"


def test_a_policy_that_is_no_dataclass():
    for call in (
        lambda: agewise.simulate(tiny(), Plain(0.5)),
        lambda: agewise.compare(tiny(), [Plain(0.5)], 1, engine="inline"),
        lambda: str(Plain(0.5)),
    ):
        assert "the policy Plain is not a dataclass: put @dataclass(frozen=True)" in message(call)
    assert str(Decorated()) == "decorated"


# What is too large


@pytest.mark.parametrize(
    "changes",
    [{"cell.ues": 10**9}, {"cell.subchannels": 2 * 10**9}, {"learn.batch_size": 2 * 10**9},
     {"learn.local_steps": 10**9, "learn.batch_size": 1000}, {"run.rounds": 2 * 10**9}],
)  # fmt: skip
def test_what_needs_too_much_memory_is_refused_with_the_amount(tmp_path, monkeypatch, changes):
    monkeypatch.setattr(checks, "available_bytes", lambda: 10**10)
    field = next(iter(changes)).replace("local_steps", "batch_size")
    for call in (
        lambda: agewise.simulate(tiny(**changes), "max-pack"),
        lambda: agewise.compare(tiny(**changes), ["max-pack"], 1, tmp_path / "out"),
        lambda: agewise.sweep(
            tiny(), ["max-pack"], {name: [value] for name, value in changes.items()}, 1,
            tmp_path / "out",
        ),
    ):  # fmt: skip
        said = message(call)
        assert field in said
        assert re.search(r"would need [\d.]+ (GB|TB) of memory, and 10 GB are available", said)
    assert not (tmp_path / "out").exists()


def test_too_many_seeds_and_slots_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "available_bytes", lambda: 10**10)
    many = {"engine": "inline", "out": tmp_path / "out"}
    assert "1,000,000,000 seeds would need 40 GB" in message(
        lambda: agewise.compare(tiny(), ["max-pack"], 10**9, **many)
    )
    monkeypatch.setattr(checks, "available_bytes", lambda: 10**6)
    assert "the list of 20,000 runs would need 8 MB" in message(
        lambda: agewise.compare(tiny(), ["max-pack", "random"], 10_000, **many)
    )
    large = tiny(**{"cell.ues": 10**6})
    assert "of memory" in message(lambda: agewise.schedule_traffic(large, "max-pack", 5))
    assert not (tmp_path / "out").exists()


def test_available_memory_is_the_smallest_limit(tmp_path, monkeypatch):
    files = tmp_path / "memory.max", tmp_path / "memory.limit_in_bytes"
    monkeypatch.setattr(checks, "_CONTAINER_LIMITS", files)
    whole = checks.available_bytes()
    assert whole > 10**8
    files[0].write_text("max\n")
    assert checks.available_bytes() == whole
    files[1].write_text("4000000\n")
    assert checks.available_bytes() == 4_000_000
    files[0].write_text("3000000\n")
    with pytest.raises(ValueError, match="this would need 5 MB of memory, and 3 MB are available"):
        checks.require_memory(5e6, "this")


def test_years_of_computing_are_announced(capsys):
    _announce(Plan.of(tiny(), ["max-pack"], 3).runs(), Inline(), quiet=False)
    assert capsys.readouterr().err == ""
    long = Plan.of(tiny(**{"learn.local_steps": 2 * 10**8}), ["max-pack"], 200)
    _announce(long.runs(), Inline(), quiet=False)
    assert re.search(r"200 runs will take about [\d,]+ (days|years)", capsys.readouterr().err)


# Options and arguments


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("rum",), "no such command 'rum'; did you mean 'run'?"),
        (("zzz",), "no such command 'zzz'; see agewise --help"),
        (("run", "--polici", "x"), "run: there is no option --polici; did you mean --policy?"),
        (("run", "--zzz"), "run: there is no option --zzz; agewise run --help lists them"),
        (("--zzz",), "there is no option --zzz; agewise --help lists them"),
        (("schedule",), "schedule: missing argument 'gains'"),
        (("schedule", "g.csv"), "schedule: missing option '--ages'"),
        (("run", "--seeds", "x"), "run: invalid value for '--seeds'"),
        (("run", "--seeds"), "option '--seeds' requires an argument"),
        (("run", "--quiet=3"), "option '--quiet' does not take a value"),
        (("run", "a", "b"), "run: got unexpected extra argument"),
        (("traffic", "--rounds", "0"), "traffic: invalid value for '--rounds'"),
        (("run", "--policy", "random", "--policy", "max-pack"),
         "run takes one --policy, and it is given 2 times; compare takes several policies"),
        (("traffic", "--policy", "random", "--policy", "max-pack"), "compare takes several"),
        (("run", "--seeds", "1", "--seeds", "2"), "run takes one --seeds, and it is given 2"),
        (("compare", "-q", "--out", "a", "--out", "b"), "compare takes one --out"),
        (("run", "tiny.toml", "--set", "run.rounds=1", "--set", "run.rounds=2"),
         "--set run.rounds is given twice"),
        (("sweep", "tiny.toml", "--vary", "run.rounds=1", "--vary", "run.rounds=2"),
         "--vary run.rounds is given twice"),
        (("sweep", "tiny.toml", "--vary", "run.rounds=1,2", "--set", "run.rounds=2"),
         "--set and --vary both change run.rounds"),
        (("run", "tiny.toml", "--live", "--engine", "local"), "--engine local cannot go with it"),
        (("run", "tiny.toml", "--live", "--engine", "ray"), "--engine ray cannot go with it"),
        (("run", "tiny.toml", "--live", "--workers", "2"), "--workers cannot go with it"),
        (("run", "tiny.toml", "--live", "--json"), "--json cannot go with it"),
        (("run", "tiny.toml", "--engine", "inline", "--workers", "2"), "go with the engine local"),
        (("run", "tiny.toml", "--address", "auto"), "goes with the engine ray"),
        (("run", "tiny.toml", "--policy", "age-based:alpha=1,alpha=0"), "'alpha' is given twice"),
        (("run", "tiny.toml", "--set", "rounds=3"), "did you mean run.rounds?"),
        (("run", "tiny.toml", "--set", "self=1"), "there is no self"),
        (("sweep", "tiny.toml", "--vary", "cell.ues=50:200"), "a range is first:last:step"),
        (("sweep", "tiny.toml", "--vary", "cell.ues=200:50:10"), "the range is empty"),
        (("sweep", "tiny.toml", "--vary", "cell.ues=1:9:0"), "step of a range must not be 0"),
        (("sweep", "tiny.toml", "--vary", "cell.ues=0:1e999:1"), "about 1.00e+999 values"),
        (("run", "tiny.toml", "--policy", "importance-channel:draw_share=1e9"), "in (0, 1000]"),
        (("compare", ""), "compare: source is empty"),
        (("reproduce", " "), "reproduce: source is empty"),
        (("gap", ""), "gap: source is empty"),
        (("compare", "tiny.toml", "-p", "random", "-p", ""), "--policy is empty"),
        (("show", ""), "show: folder is empty: give a name\n"),
        (("show", "x", "--baseline", ""), "--baseline is empty: give a name, or leave it out"),
        (("policies", ""), "policies: name is empty"),
    ],
)  # fmt: skip
def test_mistakes_of_the_command_line_are_one_sentence(called, tmp_path, arguments, sentence):
    assert sentence in refused(called, *arguments)
    assert not (tmp_path / "runs").exists()


EXITS = """
import sys
from dataclasses import dataclass
from typing import ClassVar

import agewise


@dataclass(frozen=True)
class Exits(agewise.Policy):
    name: ClassVar[str] = "exits"

    def utility(self, view, rng):
        return view.ages

    def __post_init__(self):
        super().__post_init__()
"""
QUICK = ("tiny.toml", "-p", "exits.py", "-q", "-s", "1", "--engine", "inline")


@pytest.mark.parametrize("place", ["import sys", "return view.ages", "super().__post_init__()"])
@pytest.mark.parametrize(
    "command",
    [("run", *QUICK), ("compare", *QUICK[:-1], "local"), ("traffic", *QUICK[:4]),
     ("sweep", *QUICK, "--vary", "threshold.rate=1,2")],
)  # fmt: skip
def test_a_policy_that_ends_the_program_is_a_failure(called, tmp_path, command, place):
    """At its import, in a method and when it is made, whichever engine runs it."""
    leading, _, rest = EXITS.partition(place)
    imported = "import sys; " if place == "import sys" else ""
    (tmp_path / "exits.py").write_text(f"{leading}{imported}sys.exit(0){rest}")
    said = refused(called, *command)
    assert re.search(r"exits\.py:\d+: SystemExit: 0$", said.rstrip())


@pytest.mark.parametrize("place", ["@dataclass", "return view.ages", "super()"])
@pytest.mark.parametrize("engine", ["inline", "local"])
def test_what_is_no_exception_is_a_failure_too(called, tmp_path, place, engine):
    leading, _, rest = EXITS.partition(place)
    (tmp_path / "exits.py").write_text(f"{leading}raise GeneratorExit  # {rest}")
    said = refused(called, "run", *QUICK[:-1], engine)
    assert re.search(r"exits\.py:\d+: GeneratorExit$", said.rstrip())


def test_what_is_no_exception_ends_no_other_run(called, tmp_path):
    (tmp_path / "exits.py").write_text(EXITS.replace("return view.ages", "raise GeneratorExit"))
    code, out, _ = called("compare", *QUICK, "-p", "random", "-o", "out")
    assert (code, out.count("GeneratorExit")) == (1, 1)
    assert len(list((tmp_path / "out/runs").glob("random*.parquet"))) == 1
    code, out, _ = called("run", *QUICK[:-2], "--live")
    assert (code, out) == (2, "exits\n"), "nothing is said to be finished"


@pytest.mark.parametrize("ends", ["sys.exit(0)", "raise GeneratorExit(0)"])
def test_a_part_that_ends_the_program_when_it_is_made_is_a_failure(called, tmp_path, ends):
    (tmp_path / "fade.py").write_text(
        "import sys\nfrom agewise.radio import Fading\n\n\nclass Mine(Fading):\n"
        f"    def model_post_init(self, context):\n        {ends}\n"
    )
    words = ("run", "tiny.toml", "--rounds", "1", "--set", "channel.fading=fade.py:Mine")
    said = refused(called, *words)
    assert re.search(r"code of your own ended the program: fade.py:7: \w+Exit: 0", said)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda s: agewise.compare(s, "random", iter([])), "give at least one seed"),
        (lambda s: agewise.compare(s, "random", None), "seeds must be a whole number of at least"),
        (lambda s: agewise.compare(s, "random", True), "seeds must be a whole number of at least"),
        (lambda s: agewise.simulate(s, "random", True), "seed must be a whole number of at least"),
        (lambda s: agewise.compare(s, None), "must be a name or a Policy object, not None"),
        (lambda s: agewise.sweep(s, "random", None), "vary must be lists of values by names"),
        (lambda s: agewise.sweep(s, "random", {"threshold.rate": "24"}), "not '24'"),
        (lambda s: agewise.sweep(s, "random", {"threshold.rate": 24}), "threshold.rate needs a li"),
        (lambda s: agewise.compare(s, "random", engine=object()), "engine must be a name or an"),
        (lambda s: agewise.compare(s, "random", workers="2"), "workers must be a whole number"),
        (lambda s: agewise.compare(s, "random", force="no"), "force must be true or false"),
        (lambda s: agewise.draw_channel(s, "x.png"), "what view_channel returns, not a Scenario"),
        (lambda s: agewise.compare(s, "random", itertools.count()), "seeds has no end, or more t"),
        (lambda s: agewise.run(s, out=5), "out must be the name of a file or folder, not 5"),
        (lambda s: agewise.run(s, out=b"x"), "out must be the name of a file or folder, not b'x'"),
        (lambda s: agewise.run(s, out="a\0b"), r"name of a file or folder, not 'a\x00b'"),
        (lambda s: agewise.race(s, aggregations=5), "aggregations must be a list, not 5"),
        (lambda s: agewise.race(s, "random"), "policies must be a list, not 'random'"),
        (lambda _: agewise.explain(5), "the results folder must be the name of a file or folder"),
        (lambda _: agewise.keep_channel_of(5), "the results folder must be the name of a file or"),
        (lambda _: agewise.view_trace(None), "path must be the name of a file or folder, not None"),
        (lambda _: agewise.draw_figure("x", "ages", 3), "output must be the name of a file or f"),
        (lambda _: agewise.draw_figure("x", "ages", labels=["a"]), "labels must be texts by names"),
        (lambda _: agewise.draw_figure("x", "ages", ylim="ab"), "ylim must be two numbers that"),
        (lambda _: agewise.PolicyKey(5, 6), "a policy is a name and its parameters by name, not"),
        (lambda _: agewise.AccessPoint(MaxPack(), -1, Streams(0)), "ues must be a whole number of"),
        (lambda _: agewise.AccessPoint(MaxPack(), True, Streams(0)), "ues must be a whole number"),
        (lambda _: agewise.AccessPoint(MaxPack(), 3, 0), "streams must be Streams(seed), not 0"),
        (lambda _: make_policy("age-based", alpha=True), "alpha must be a finite number, not True"),
        (lambda s: s.with_(**{"cell.ues": True}), "cell.ues = True: must be a number"),
        (lambda s: s.with_(**{"cell.ues": "7"}), "cell.ues = '7': must be a number"),
        (lambda s: s.with_(**{"learn.step_size": "x" * 10**5}), "xxx': must be a number"),
        (lambda s: s.with_(**{"learn.compression": {"kind": "sign", "error_feedback": 1}}),
         "learn.compression.error_feedback = 1: must be true or false"),
    ],
)  # fmt: skip
def test_wrong_types_in_python_are_one_sentence(wrong, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)) as caught:
        wrong(tiny(**{"run.rounds": 1}))
    assert len(str(caught.value)) < 200


def test_numbers_of_other_libraries_are_numbers():
    changed = tiny(**{"cell.ues": np.int64(9), "learn.step_size": np.float64(0.5)})
    assert (changed.cell.ues, changed.learn.step_size) == (9, 0.5)
    assert tiny(**{"cell.ues": 9.0}).cell.ues == 9
    assert len(Plan.of(changed, ("random",), np.int64(2)).seeds) == 2


def test_long_names_are_shortened_and_deep_folders_refused(called):
    quick = ("-q", "-s", "1", "--engine", "inline")
    long = "d" * 10**5
    for words in (("-p", long), ("-p", f"age-based:alpha={long}"), ("-o", long),
                  ("-o", "/".join(["d"] * 2000)), ("--set", f"{'d ' * 10**5}=1")):  # fmt: skip
        assert 20 < len(refused(called, "run", "tiny.toml", *quick, *words)) < 3100


def test_parameters_are_given_once():
    with pytest.raises(ValueError, match="the parameter 'alpha' is given twice"):
        agewise.policies.make_policy("age-based:alpha=1", alpha=0.0)


def test_no_arguments_show_the_help(called):
    code, out, err = called()
    assert (code, err) == (2, "")
    assert "reproduce" in out


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("50:200:50", [50, 100, 150, 200]),
        ("50:199:50", [50, 100, 150]),
        ("1:4:0.5", [1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0]),
        ("0:1:0.1", [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]),
        ("10:-10:-10", [10, 0, -10]),
        ("3:3:1", [3]),
        ("1e-3:3e-3:1e-3", [0.001, 0.002, 0.003]),
    ],
)
def test_ranges(text, values):
    made = range_values(text, "")
    assert made == values
    assert [type(value) for value in made] == [type(value) for value in values]
    assert variations_of([f"x=7,{text}"]) == {"x": [7, *values]}


def test_what_only_looks_like_a_range_is_text():
    assert variations_of(["x=a:b:c,10:30,{k=[1:2]}".replace("10:30,{k=[1:2]}", "1:b:2")]) == {
        "x": ["a:b:c", "1:b:2"]
    }


@pytest.mark.parametrize("order", [1, -1])
def test_changes_and_variations_are_validated_together(tmp_path, order):
    """A kind may be set before or after its fields, and the fields may be those that vary."""
    paths = [str(tmp_path / name) for name in ("a.npz", "b.npz")]
    kind, path = "data.dataset=npz", f"data.dataset.path={paths[0]}"
    for changes in ([kind, path][::order], [path, kind][::order]):
        scenario = swept_scenario(tiny(), {}, changes)
        assert scenario.data.dataset.path == paths[0]
    varied = variations_of([f"data.dataset.path={','.join(paths)}"], [kind])
    base = swept_scenario(tiny(), varied, [kind])
    assert [base.with_(**{name: value}).data.dataset.path
            for name, values in varied.items() for value in values] == paths  # fmt: skip
    with pytest.raises(ScenarioError, match=r"data.dataset.path is missing"):
        swept_scenario(tiny(), {}, [kind])
    with pytest.raises(ScenarioError, match="there is no run.round"):
        swept_scenario(tiny(), varied, ["run.round=1"])


# Figures


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    vary = {
        "threshold.rate": [1.0, 6.0],
        "data.partition": ["iid", {"kind": "shards", "classes_per_ue": 1}],
    }
    return agewise.sweep(
        tiny(**{"run.rounds": 2}), ["age-based", "max-pack"], vary, 1,
        tmp_path_factory.mktemp("swept") / "s", engine="inline", quiet=True,
    )  # fmt: skip


def test_a_setting_is_found_by_the_names_that_are_listed(called, swept):
    folder = str(swept.path)
    drawn = {}
    for name, at in (
        ("whole", ["threshold.rate=6"]), ("short", ["rate=6"]), ("other", ["rate=1"]),
        ("section", ["rate=6", "partition=shards(classes_per_ue=1)"]),
    ):  # fmt: skip
        options = [part for text in at for part in ("--setting", text)]
        assert called("figure", folder, "accuracy", "-o", f"{name}.svg", *options)[0] == 0
        drawn[name] = Path(f"{name}.svg").read_bytes()
    assert drawn["whole"] == drawn["short"]
    assert len({drawn["short"], drawn["other"], drawn["section"]}) == 3
    said = refused(called, "figure", folder, "accuracy", "-o", "x.svg", "--setting", "rate=7")
    assert "no finished setting has rate=7; there are rate=1, partition=iid; " in said
    command = ("figure", folder, "map", "-o", "x.svg", "--setting", "rate=6")
    assert "leave out" in refused(called, *command)


def test_a_folder_that_is_not_there_is_named(called, swept):
    folder = str(swept.path)
    for arguments in (("figure", folder, "accuracy", "-o", "nodir/x.pdf"),
                      ("report", folder, "-o", "nodir/x.html")):  # fmt: skip
        said = refused(called, *arguments)
        assert said == "agewise: nodir: No such file or directory\n"


# Verdicts


def test_no_square_of_a_map_is_won_or_lost_with_few_seeds():
    def counts(*pairs):
        found = zip((0.1, -0.1, 0.1, np.nan), (0.001, 0.001, 0.5, np.nan), pairs, strict=True)
        squares = {
            (0, 0, x): Contrast(gain, gain, gain, p, n) for x, (gain, p, n) in enumerate(found)
        }
        drawn = GainMap(["a"], "b", "", [""], "", list("1234"), {}, squares, "", AXES["rounds"])
        return drawn.counts()

    assert counts(20, 20, 20, 20) == (1, 1, 1)
    assert counts(4, 4, 4, 4) == (0, 3, 0)
    assert counts(4, 5, 5, 0) == (0, 2, 1)


# Interrupts


@contextlib.contextmanager
def started(*command, cwd, **environment):
    """A process that does not outlive the test, whatever becomes of this."""
    with subprocess.Popen(
        [sys.executable, *command], cwd=cwd, env=os.environ | environment,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as running:  # fmt: skip
        try:
            yield running
        finally:
            running.kill()


def test_an_interrupt_says_that_nothing_is_finished_yet(tmp_path):
    def interrupt(_record):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="^nothing was finished yet$"):
        agewise.run(tiny(), "random", 1, tmp_path / "out", on_round=interrupt, quiet=True)


def test_an_interrupt_says_what_is_kept(tmp_path):
    (tmp_path / "tiny.toml").write_text(tiny(**{"run.rounds": 300}).to_toml())
    options = ["--seeds", "10000", "--engine", "inline", "--out", "mine", "--quiet"]
    with started("-m", "agewise", "compare", "tiny.toml", *options, cwd=tmp_path) as running:
        while running.poll() is None and len(list(tmp_path.glob("mine/runs/*.parquet"))) < 2:
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=300)
    kept = len(list(tmp_path.glob("mine/runs/*.parquet")))
    assert (running.returncode, out) == (130, "")
    assert err == (
        f"agewise: interrupted: {kept} finished runs are kept in mine; the same command goes on "
        "from there\n"
    )


def press_ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(30)


def swallow():
    with contextlib.suppress(BaseException):
        press_ctrl_c()


def make_another_error():
    """As the dispatchers of Numba do."""
    try:
        press_ctrl_c()
    except KeyboardInterrupt as error:
        raise SystemError("returned a result with an exception set") from error


def lose_in_a_finalizer():
    """Where Python prints it and goes on."""

    class Cleaned:
        def __del__(self):
            press_ctrl_c()

    Cleaned()


@pytest.mark.parametrize("lost", [press_ctrl_c, swallow, make_another_error, lose_in_a_finalizer])
def test_an_interrupt_ends_the_round_whatever_becomes_of_it(tmp_path, monkeypatch, lost):
    rounds = []

    @dataclass(frozen=True)
    class Interrupted(MaxPack):
        def utility(self, view, rng):
            rounds.append(view)
            if len(rounds) == 3:
                lost()
            return super().utility(view, rng)

    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt, match=r"^1 finished run is kept"):
            agewise.compare(
                tiny(**{"run.rounds": 2}), [Interrupted()], 3, tmp_path / "mine", engine="inline",
                quiet=True,
            )  # fmt: skip
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(rounds) == 3


def test_an_interrupt_behind_the_runs_denies_none_of_them(called, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("agewise.studies.paper.explain_gain", interrupted)
    options = ("--seeds", "2", "--explain", "--engine", "inline", "--out", "mine", "--quiet")
    code, out, err = called("reproduce", "tiny.toml", *options)
    assert (code, out) == (130, "")
    assert len(list(Path("mine/runs").glob("*.parquet"))) == 12
    assert err == "agewise: interrupted: the same command goes on from what was finished\n"


def test_an_interrupt_while_modules_are_imported(tmp_path):
    """Whenever it comes: before, while or after the arguments are read."""
    program = "from agewise.__main__ import main; print('here', flush=True); main()"
    command = ["-c", program, "traffic", "--rounds", "100000000", "--quiet"]
    for delay_s in (0.02, 0.2, 0.7):
        with started(*command, cwd=tmp_path) as running:
            assert running.stdout.readline() == "here\n"
            time.sleep(delay_s)
            running.send_signal(signal.SIGINT)
            out, err = running.communicate(timeout=300)
        # Python ends by the signal itself if it came amid generated code; a shell shows 130 too.
        assert running.returncode in (130, -signal.SIGINT)
        assert out == ""
        assert err == "agewise: interrupted: the same command goes on from what was finished\n"


IN_A_CALLBACK = """
class Cleaned:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)

Cleaned()
"""
IN_A_C_MODULE = """
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(30)
except KeyboardInterrupt:
    raise ImportError("initialization failed")
"""


@pytest.mark.parametrize("place", [IN_A_CALLBACK, IN_A_C_MODULE])
def test_an_interrupt_where_python_loses_it(place):
    """Python prints exceptions of finalizers and callbacks and goes on; C modules make others."""
    program = (
        "import os, signal, time\nfrom agewise import __main__\n"
        f"class Command:\n  def main():\n    exec({place!r}); time.sleep(30)\n"
        "__main__.import_module = lambda name: Command\n__main__.main()"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    said = "agewise: interrupted: the same command goes on from what was finished\n"
    assert (ended.returncode, ended.stderr) == (130, said)


# Languages


def test_names_that_the_locale_cannot_write(tmp_path):
    (tmp_path / "tiny.toml").write_text(tiny(**{"run.rounds": 2}).to_toml())
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    run = ("-m", "agewise", "run", "--engine", "inline")
    with started(*run, "tiny.toml", "--out", "größe", cwd=tmp_path, **plain) as made:
        out, err = made.communicate(timeout=300)
    assert made.returncode == 0, err
    assert "Results: gr" in out
    assert (tmp_path / "größe" / "experiment.json").exists()
    (tmp_path / "data.toml").write_text(
        tiny(**{"data.dataset": {"kind": "npz", "path": "größe.npz"}}).to_toml(), encoding="utf-8"
    )
    with started(*run, "data.toml", cwd=tmp_path, **plain) as made:
        _, err = made.communicate(timeout=300)
    assert made.returncode == 2
    assert err.count("\n") == 1


# JSON


JSON_COMMANDS = {
    "policies": (),
    "channel": ("tiny.toml", "--set", "channel.fading=none"),
    "run": ("tiny.toml", "--engine", "inline"),
    "compare": ("tiny.toml", "--seeds", "2", "--engine", "inline", "--out", "runs/compare-tiny"),
    "sweep": ("tiny.toml", "--seeds", "1", "--engine", "inline", "--vary", "threshold.rate=1,4"),
    "show": ("runs/compare-tiny",),
    "traffic": ("tiny.toml", "--rounds", "50", "--set", "threshold.rate=900"),
    "schedule": ("g.csv", "--ages", "a.csv", "--power", "1", "--rate-threshold", "1"),
    "reproduce": ("tiny.toml", "--seeds", "1", "--engine", "inline"),
    "gap": ("tiny.toml", "--seeds", "1", "--engine", "inline", "--every", "1", "--policy", "random",
            "--vary", "threshold.rate=900"),
    "explain": ("runs/compare-tiny", "--engine", "inline"),
    "race": ("tiny.toml", "--engine", "inline", "--budget", "60", "--aggregation", "average",
             "-p", "age-based", "-p", "max-pack", "--rounds", "2"),
}  # fmt: skip


def strictly(text):
    def no(word):
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=no)


def test_json_is_valid_and_alone_on_standard_output(called, tmp_path):
    """Also with pages, and numbers that are not there."""
    np.savetxt(tmp_path / "g.csv", np.ones((3, 2)), delimiter=",")
    np.savetxt(tmp_path / "a.csv", np.ones(3))
    commands = {
        command.name for command in app.registered_commands
        if "as_json" in command.callback.__annotations__
    }  # fmt: skip
    assert commands == set(JSON_COMMANDS)
    for command, arguments in JSON_COMMANDS.items():
        code, out, err = called(command, *arguments, "--json")
        assert code == 0, err
        assert strictly(out), command
        assert "Page:" not in out
    shutil.rmtree(tmp_path / "runs")


def test_numbers_that_are_not_finite_are_null(capfd):
    print_json({"a": [float("nan"), (1.0, float("inf"))], "b": {"c": None}})
    assert strictly(capfd.readouterr().out) == {"a": [None, [1.0, None]], "b": {"c": None}}
