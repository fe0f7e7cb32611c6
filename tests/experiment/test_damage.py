"""Folders that somebody or something changed: found, named, left out, and computed again."""

import json
import shutil

import numpy as np
import pytest

import agewise
from agewise.experiment import FolderError, Result
from agewise.policies import AgeBased, MaxPack
from tests.experiment.watch import Counting, everything, files, leftovers, rewrite, runs
from tests.scenarios import tiny

SCENARIO = tiny(**{"run.rounds": 3})
POLICIES = ["age-based", "max-pack"]


def compare(out, scenario=SCENARIO, engine="inline", seeds=3):
    return agewise.compare(scenario, POLICIES, seeds, out, engine=engine, quiet=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished folder of six runs, which nobody changes."""
    folder = tmp_path_factory.mktemp("damage") / "whole"
    compare(folder)
    return folder


@pytest.fixture
def out(whole, tmp_path):
    """A copy of it."""
    return shutil.copytree(whole, tmp_path / "out")


def found_and_repaired(out, whole, damaged, lost):
    """``damaged`` are the sentences to be found, ``lost`` the (policy, seed) to be computed."""
    result = Result.open(out)
    assert len(result.damaged) == len(damaged)
    for sentence, expected in zip(result.damaged, damaged, strict=True):
        assert expected in sentence
        assert "\n" not in sentence
    assert len(result.entries) == 6 - len(lost)
    seeds = {row["policy"]: row["seeds"] for row in result.table().to_dicts()}
    assert sum(seeds.values()) == 6 - len(lost)
    assert result.to_polars().height == 3 * (6 - len(lost))
    computed = Counting()
    again = compare(out, engine=computed)
    assert sorted(computed) == sorted(lost)
    assert len(again.entries) == 6
    assert files(whole).items() <= files(out).items()
    assert leftovers(out) == []


def test_a_truncated_run_is_named_and_run_again(out, whole):
    short, empty = sorted(runs(out))[:2]
    content = runs(out)[short]
    (out / "runs" / short).write_bytes(content[: len(content) // 2])
    (out / "runs" / empty).write_bytes(b"")
    found_and_repaired(out, whole, [short, empty], [("age-based", 0), ("age-based", 1)])
    assert (out / "log.txt").read_text().count("run again: ") == 2


def test_a_flipped_bit_is_named_and_the_run_computed_again(out, whole):
    rng = np.random.default_rng(8)
    name = sorted(runs(out))[4]
    content = bytearray(runs(out)[name])
    content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
    (out / "runs" / name).write_bytes(content)
    found_and_repaired(out, whole, [f"{name}: "], [("max-pack", 1)])
    assert f"{name}: damaged" in (out / "log.txt").read_text()


def test_500_flipped_bits_are_all_found(tmp_path):
    """Of 500, 308 went unnoticed and 21 changed a table."""
    out = tmp_path / "out"
    agewise.compare(SCENARIO, POLICIES, 1, out, engine="inline", quiet=True)
    contents = files(out)
    chance = np.random.default_rng(11)
    table = Result.open(out).table().to_polars()
    for _ in range(500):
        name = chance.choice(sorted(contents))
        flipped = bytearray(contents[name])
        flipped[chance.integers(len(flipped))] ^= 1 << int(chance.integers(8))
        (out / name).write_bytes(flipped)
        if name.startswith("runs/"):
            result = Result.open(out)
            assert [name in sentence for sentence in result.damaged] == [True]
            assert len(result.entries) == 1
            policy = result.entries[0].policy
            kept = table.filter(table["policy"] == str(policy))
            assert (
                result.table().to_polars()["accuracy@3"].to_list() == kept["accuracy@3"].to_list()
            )
        else:
            with pytest.raises(FolderError, match=f"{name}: "):
                Result.open(out)
        (out / name).write_bytes(contents[name])
    assert Result.open(out).damaged == []


def test_swapped_runs(out, whole):
    first, second = sorted(runs(out))[1:3]
    (out / "runs" / first).rename(out / "runs" / "x")
    (out / "runs" / second).rename(out / "runs" / first)
    (out / "runs" / "x").rename(out / "runs" / second)
    said = [
        f"{first}: holds a run of the seed 2, not 1, as its name says",
        f"{second}: holds a run of the seed 1, not 2, as its name says",
    ]
    found_and_repaired(out, whole, said, [("age-based", 1), ("age-based", 2)])


def test_a_run_copied_over_another(out, whole):
    first, *_, last = sorted(runs(out))
    shutil.copy(out / "runs" / first, out / "runs" / last)
    said = f"{last}: holds a run of the policy {AgeBased()}, not "
    found_and_repaired(out, whole, [said], [("max-pack", 2)])


def test_a_run_of_the_same_policy_with_other_parameters(out, whole, tmp_path):
    other = tmp_path / "other"
    agewise.run(SCENARIO, "max-pack:ties=lowest-index", 1, other, engine="inline", quiet=True)
    name = sorted(runs(out))[3]
    (out / "runs" / name).write_bytes(*runs(other).values())
    said = f"holds a run of the policy {MaxPack(ties='lowest-index')}, not {MaxPack()}"
    found_and_repaired(out, whole, [said], [("max-pack", 0)])


def test_a_run_of_another_scenario_or_version(out, whole, tmp_path, monkeypatch):
    compare(tmp_path / "other", scenario=tiny(**{"run.rounds": 4}))
    name = min(runs(out))
    shutil.copy(tmp_path / "other" / "runs" / name, out / "runs")
    said = f"{name}: holds a run of another scenario (run.rounds is 4 there and 3 here)"
    found_and_repaired(out, whole, [said], [("age-based", 0)])
    monkeypatch.setattr("agewise.simulation.__version__", "0.0.1")
    agewise.simulate(SCENARIO, "age-based", 0).save(out / "runs" / name)
    said = f"{name}: holds a run of the version 0.0.1, not {agewise.__version__}"
    monkeypatch.undo()
    found_and_repaired(out, whole, [said], [("age-based", 0)])


def test_a_renamed_run_is_missed_and_named(out, whole):
    name = sorted(runs(out))[5]
    (out / "runs" / name).rename(out / "runs" / "mine.parquet")
    said = "mine.parquet: no run of this experiment has this name: renamed or copied here"
    found_and_repaired(out, whole, [said], [("max-pack", 2)])
    assert (out / "runs" / "mine.parquet").exists()  # nothing of anybody's is deleted


EDITS = {
    "agewise": 3, "scenario": [], "scenario_toml": None, "variations": {}, "policies": ["random"],
    "seeds": "0, 1", "baseline": "max-pack", "sources": {"data:x": 1}, "command": 1,
    "python": [], "packages": [1],
}  # fmt: skip


@pytest.mark.parametrize("resealed", [False, True])
@pytest.mark.parametrize(
    "changes",
    [
        *({name: value} for name, value in EDITS.items()),
        *({name: ...} for name in EDITS),
        {"seeds": [0, 1.5]},
        {"seeds": [True]},
        {"variations": [{"threshold.rate": "much"}]},
        {"variations": [{"threshold.rat": 1.0}]},
        {"variations": [{"self": 1.0}]},
        {"variations": [1]},
        {"policies": [{"name": "max-pack"}]},
        {"policies": [{"name": "max-pack", "parameters": [1]}]},
        {
            "policies": [{"name": "random", "parameters": {}, "usual": []}],
            "baseline": {"name": "x"},
        },
        {"baseline": {"name": "random", "parameters": {}, "usual": []}},
        {"scenario": {"cell": 3}},
        {"more": 1},
    ],
    ids=str,
)
def test_an_edited_description_is_refused_in_one_sentence(changes, resealed, out):
    """By its checksum; where an editor knew of that, by the types and values themselves."""
    description = out / "experiment.json"
    if resealed:
        rewrite(description, **changes)
    else:
        values = json.loads(description.read_text()) | changes
        kept = {name: value for name, value in values.items() if value is not ...}
        description.write_text(json.dumps(kept, indent=2) + "\n")
    before = everything(out)
    for attempt in (compare, Result.open):
        with pytest.raises(FolderError) as error:
            attempt(out)
        said = str(error.value)
        assert said.startswith(f"{description}: ")
        assert "damaged: " in said if resealed else "its checksum does not match" in said
        assert said.endswith("put back the file as it was written, or give another folder")
        assert "\n" not in said
    assert everything(out) == before


@pytest.mark.parametrize("change", [("0.5", "0.6"), ('"seeds": [', '"seeds":  ['), ("0,", "1,")])
def test_every_edit_of_the_description_is_noticed(change, out):
    description = out / "experiment.json"
    text = description.read_text()
    assert change[0] in text
    description.write_text(text.replace(*change, 1))
    with pytest.raises(FolderError, match=r"changed since it was written \(its checksum does not"):
        Result.open(out)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "experiment.json: damaged: Expecting value"),
        (b'{"format": 3, "age', "experiment.json: damaged: Unterminated string"),
        (b"\xff\xfe", "experiment.json: damaged: 'utf-8' codec can't decode"),
        (b"[]", "experiment.json: damaged: it does not describe an experiment"),
        (b"{}", "experiment.json: damaged: it does not describe an experiment"),
        (b'{"format": "3"}', "experiment.json: damaged: it does not describe an experiment"),
        (b"[" * 100_000, "experiment.json: damaged: "),
        (b'{"format": 3}', "experiment.json: changed since it was written"),
        (b'{"format": 1}', "experiment.json: written by an older version (format 1); run it again"),
        (b'{"format": 4}', "experiment.json: written by a newer version (format 4); this one"),
    ],
)
def test_a_damaged_description_is_one_sentence_and_costs_no_run(content, message, out):
    (out / "experiment.json").write_bytes(content)
    before = everything(out)
    for attempt in (compare, Result.open):
        with pytest.raises(FolderError) as error:
            attempt(out)
        assert message in str(error.value)
        assert "\n" not in str(error.value)
    assert everything(out) == before


def test_an_edited_scenario_is_refused_and_a_deleted_one_written_again(out, whole):
    toml = out / "scenario.toml"
    toml.write_text(toml.read_text().replace("rounds = 3", "rounds = 4"))
    before = everything(out)
    for attempt in (compare, Result.open):
        with pytest.raises(FolderError, match=r"scenario.toml: changed since .* delete it, or"):
            attempt(out)
    assert everything(out) == before
    toml.unlink()
    result = Result.open(out)
    assert len(result.entries) == 6
    assert result.damaged == [f"{toml}: deleted; going on with the experiment writes it again"]
    computed = Counting()
    compare(out, engine=computed)
    assert computed == []
    assert files(out) == files(whole)
    assert Result.open(out).damaged == []
