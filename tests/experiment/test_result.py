"""Results: histories by name, tables that say what the runs did, variations."""

import gc
import shutil

import numpy as np
import pytest

import agewise
from agewise import statistics
from agewise.experiment import (
    FolderError,
    LearningCurve,
    Plan,
    Result,
    checkpoints,
    default_baseline,
)
from agewise.experiment.plan import file_name, find_policy
from agewise.experiment.result import _HistoryCache
from agewise.policies import AgeBased, MaxPack, Random, make_policy
from agewise.records import PolicyKey
from agewise.spectrum import Exact
from tests.scenarios import DIVERGING, tiny

POLICIES = ["age-based", "max-pack", "max-pack:ties=lowest-index"]

SHARDS = {"kind": "shards", "classes_per_ue": 1}


@pytest.fixture(scope="module")
def result():
    scenario = tiny(**{"run.rounds": 25, "run.evaluate_every": 2})
    return agewise.compare(scenario, POLICIES, seeds=4, engine="inline", quiet=True)


def test_histories_are_those_of_simulate(result):
    kept = result.history("age-based", seed=3)
    again = agewise.simulate(result.scenario, "age-based", 3)
    assert kept.frame.equals(again.frame)
    indexed = MaxPack(ties="lowest-index")
    for policy in (indexed, indexed.key, str(indexed), "max-pack:ties=lowest-index"):
        assert result.key(policy) == indexed.key
        assert result.history(policy, 1).info.policy == indexed.key
        assert list(result.histories(policy)) == [0, 1, 2, 3]
        assert result.accuracy(policy).shape == (4, 25)
    assert result.key("max-pack") == MaxPack().key
    with pytest.raises(ValueError, match="'max-pack:packing=greedy' means several"):
        result.history("max-pack:packing=greedy")
    with pytest.raises(ValueError, match="'fedcs' is not one of the policies"):
        result.history("fedcs")
    with pytest.raises(ValueError, match="no finished run of .* with seed 9"):
        result.history("age-based", 9)


def test_table_is_the_statistics_of_the_histories(result):
    rows = {row["policy"]: row for row in result.table().to_dicts()}
    assert len(rows) == 3
    base = "max-pack"
    assert rows[base]["gain@25"] is None
    raw = []
    for policy, row in rows.items():
        runs = [result.history(policy, seed) for seed in range(4)]
        assert row["seeds"] == 4
        served = [r.frame["received"].list.len().mean() for r in runs]
        assert row["ues_per_round"] == pytest.approx(np.mean(served))
        assert row["distinct_ues"] == np.mean([np.count_nonzero(r.participation) for r in runs])
        assert row["age_mean"] == pytest.approx(np.mean([r.ages.mean() for r in runs]))
        assert row["age_largest"] == np.mean([r.ages.max() for r in runs])
        assert row["age_mean_peak"] == pytest.approx(np.mean([mean_peak(r.ages) for r in runs]))
        diversity = [r.frame["gradient_diversity"].mean() for r in runs]
        assert row["diversity"] == pytest.approx(np.mean(diversity))
        # Round 10 was measured (every second is), round 25 as the last one.
        last = statistics.estimate([r.accuracy[24] for r in runs])
        assert (row["accuracy@25"], row["low@25"]) == pytest.approx((last.mean, last.low))
        tenth = statistics.mean_interval([r.accuracy[9] for r in runs])
        assert row["accuracy@10"] == pytest.approx(tenth.mean)
        for point in (10, 20, 25) if policy != base else ():
            paired = statistics.contrast(
                [r.accuracy[point - 1] for r in runs],
                [result.history(base, seed).accuracy[point - 1] for seed in range(4)],
            )
            assert row[f"gain@{point}"] == pytest.approx(paired.mean)
            raw.append((policy, point, paired.p))
    assert len(raw) == 6
    for policy, point, p in raw:
        # All but the primary comparison are one family of five.
        primary = (policy, point) == (str(result.compared[0]), 25)
        expected = p if primary else min(1.0, 5 * p)
        assert rows[policy][f"p@{point}"] == pytest.approx(expected)


def mean_peak(ages):
    """The mean of the ages just before an update arrived, one UE and round after the other."""
    peaks = []
    for ue in range(ages.shape[1]):
        age = 0
        for after in ages[:, ue].tolist():
            if after == 0:
                peaks.append(age)
            age = after
    return np.mean(peaks)


def test_all_rounds_as_one_frame(result):
    table = result.to_pandas()
    assert len(table) == 3 * 4 * 25
    one = table[(table["policy"] == "max-pack") & (table["seed"] == 2)]
    np.testing.assert_array_equal(
        one["accuracy"].astype(float),
        result.history("max-pack", 2).accuracy,
    )


def test_sweep_varies_what_it_says(tmp_path):
    vary = {"threshold.rate": [1.0, 4.0], "data.partition": ["iid", SHARDS]}
    result = agewise.sweep(
        tiny(**{"run.rounds": 3}), ["random", "max-pack"], vary, seeds=2, out=tmp_path / "sweep",
        engine="inline", quiet=True,
    )  # fmt: skip
    assert len(result.entries) == result.expected == 16
    for variation in result.variations:
        for history in result.histories("random", variation).values():
            assert history.info.scenario["threshold"]["rate"] == variation["threshold.rate"]
            partition = history.info.scenario["data"]["partition"]
            assert partition == (
                SHARDS if variation["data.partition"] == SHARDS else {"kind": "iid"}
            )
    rows = result.table().to_dicts()
    assert len(rows) == 8
    assert len({(r["threshold.rate"], str(r["data.partition"])) for r in rows}) == 4
    again = Result.open(tmp_path / "sweep")
    assert again.table().to_csv() == result.table().to_csv()


def test_run_is_compare_with_one_policy(tmp_path):
    result = agewise.run(tiny(**{"run.rounds": 2}), "random", out=tmp_path / "one", engine="inline")
    assert [entry.policy for entry in result.entries] == [Random().key]
    assert "gain@2" in result.table().to_polars().columns


def test_accuracy_as_last_measured():
    nan = np.nan
    accuracy = np.array([[nan, 0.2, nan, 0.4], [nan, 0.3, nan, 0.5]])
    curve = LearningCurve([0, 1], accuracy, np.tile(np.arange(1.0, 5.0), (2, 1)))
    assert curve.at(3).tolist() == [0.2, 0.3]
    assert curve.at(4).tolist() == [0.4, 0.5]
    assert np.isnan(curve.at(1)).all()


def test_checkpoints():
    assert checkpoints(100) == [10, 20, 40, 100]
    assert checkpoints(20) == [10, 20]
    assert checkpoints(5) == [5]


def test_the_default_baseline_is_max_pack_itself():
    pack, indexed = MaxPack().key, MaxPack(ties="lowest-index").key
    exact = MaxPack(packing=Exact()).key
    aged, drawn = AgeBased().key, Random().key
    assert default_baseline([aged, exact, indexed, pack]) == pack
    assert default_baseline([aged, indexed, exact]) == indexed
    assert default_baseline([exact, aged, drawn]) == exact
    assert default_baseline([aged, drawn]) == aged
    assert default_baseline([aged]) is None


@pytest.fixture(scope="module")
def four(tmp_path_factory):
    out = tmp_path_factory.mktemp("baseline") / "four"
    policies = ["max-pack:packing=exact", "age-based", "max-pack", "max-pack:ties=lowest-index"]
    agewise.compare(tiny(**{"run.rounds": 2}), policies, 2, out, engine="inline", quiet=True)
    return out


def without_gain(result):
    return [row["policy"] for row in result.table().to_dicts() if row["gain@2"] is None]


def test_what_a_plan_asked_for_of_a_folder_that_holds_more(four):
    scenario, both = tiny(**{"run.rounds": 2}), ["age-based", "max-pack:packing=exact"]
    part = Result.open(four).only(Plan.of(scenario, both, [1]))
    assert [policy.name for policy in part.policies] == ["age-based", "max-pack"]
    assert [(entry.policy, entry.seed) for entry in part.entries] == [
        (part.policies[1], 1), (part.policies[0], 1),
    ]  # fmt: skip
    assert part.baseline == part.policies[1], "that of the folder was not asked for"
    aged = Result.open(four).only(Plan.of(scenario, both, [1], baseline="age-based"))
    assert aged.baseline == part.policies[0]


def test_the_baseline_of_a_result(four):
    """The exact packer is listed first, and is not taken for max-pack."""
    result = Result.open(four)
    assert result.baseline == MaxPack().key
    assert without_gain(result) == ["max-pack"]
    for given in ("max-pack:packing=exact", MaxPack(packing=Exact()), MaxPack(packing=Exact()).key):
        other = Result.open(four, baseline=given)
        assert other.baseline == MaxPack(packing=Exact()).key
        assert without_gain(other) == [str(MaxPack(packing=Exact()))]
    assert Result.open(four, baseline="max-pack").baseline == MaxPack().key
    with pytest.raises(ValueError, match="'max-pack:ties=random' means several of the policies"):
        Result.open(four, baseline="max-pack:ties=random")
    with pytest.raises(ValueError, match=r"random is not one of the policies"):
        Result.open(four, baseline=Random())


def test_the_baseline_is_kept_in_the_folder(tmp_path):
    out, scenario = tmp_path / "out", tiny(**{"run.rounds": 2})
    indexed = MaxPack(ties="lowest-index")

    def compare(policies, **options):
        return agewise.compare(scenario, policies, 2, out, engine="inline", quiet=True, **options)

    with pytest.raises(ValueError, match="'oort' is not one of the policies: age-based"):
        compare(["age-based", "random"], baseline="oort")
    assert not out.exists()
    assert compare(["age-based", "random"], baseline="random").baseline == Random().key
    assert Result.open(out).baseline == Random().key
    assert compare(["max-pack", indexed]).baseline == Random().key
    assert without_gain(Result.open(out)) == [str(Random())]
    with pytest.raises(ValueError, match="'max-pack:packing=greedy' means several"):
        compare(["age-based"], baseline="max-pack:packing=greedy")
    assert compare(["age-based"], baseline="max-pack:ties=lowest-index").baseline == indexed.key
    assert Result.open(out).baseline == indexed.key
    swept = agewise.sweep(
        scenario, ["random", "age-based"], {"threshold.rate": [1.0]}, 1,
        engine="inline", quiet=True, baseline=AgeBased(),
    )  # fmt: skip
    assert swept.baseline == AgeBased().key
    one = agewise.run(scenario, "random", out=out, engine="inline", quiet=True, baseline="random")
    assert one.baseline == Random().key


def test_the_name_in_a_table_is_what_makes_the_policy(tmp_path):
    """`history`, a baseline, a figure and a new command take what tables print."""
    given = [
        "age-based:alpha=0.3333333333333333", "age-based", "max-pack:packing=exact:work_limit=9",
        "oort:cutoff=0.5,epsilon=0.7", "fed-cs",
    ]  # fmt: skip
    result = agewise.compare(
        tiny(**{"run.rounds": 1}), given, 1, tmp_path / "out", engine="inline", quiet=True
    )
    named = [row["policy"] for row in result.table().to_dicts()]
    assert named == list(map(str, result.policies)) == [str(make_policy(each)) for each in given]
    assert len(set(named)) == 5
    assert max(map(len, named)) == len("max-pack:packing=exact:work_limit=9")
    text = result.table().service().to_text(120)
    for name, key in zip(named, result.policies, strict=True):
        assert name in text
        assert make_policy(name).key == key == PolicyKey.from_json(key.to_json())
        assert result.history(name).info.policy == key
        assert Result.open(result.path, baseline=name).baseline == key
        drawn = agewise.draw_figure(result, "ages", tmp_path / "ages.csv", policies=[name]).path
        assert name in drawn.read_text()
    assert result.key("max-pack").parameters["packing"] == "exact:work_limit=9"
    assert result.key("age-based:alpha=0.5") == AgeBased().key
    assert result.key("oort:epsilon=0.7") == result.policies[3]
    with pytest.raises(ValueError, match="'age-based:form=paper' means several of the policies: "):
        result.key("age-based:form=paper")
    with pytest.raises(ValueError, match="policy 'oort' has no parameter 'epsilom'"):
        result.key("oort:epsilom=1")


def test_a_policy_by_its_parts_whatever_its_texts_hold():
    odd = [PolicyKey("a(b=1)", {}), PolicyKey("a", {"b": 2}), PolicyKey("c", {"d": "x, e=y"})]
    assert [find_policy(str(key), odd) for key in odd] == odd
    assert find_policy("a", odd) == odd[1]
    with pytest.raises(ValueError, match="unknown policy 'z'"):
        find_policy("z:b=1", odd)


def test_names_of_files_tell_runs_apart():
    scenario, key = {"threshold.rate": 2.0}, AgeBased().key
    assert file_name(scenario, key, 3).startswith("rate=2--age-based--seed-0003--")
    assert "max-pack-ties=lowest-index--" in file_name({}, MaxPack(ties="lowest-index").key, 3)
    runs = [
        ({}, key, 3), (scenario, key, 3), (scenario, key, 4),
        (scenario, AgeBased(alpha=0.6).key, 3),
        ({"threshold.rate": 3.0}, key, 3), ({"data.rate": 2.0}, key, 3),
        ({}, PolicyKey("a/b", {}), 3), ({}, PolicyKey("a-b", {}), 3), ({}, PolicyKey("A-b", {}), 3),
        ({}, PolicyKey("a", {"b": "1,c=2"}), 3), ({}, PolicyKey("a", {"b": 1, "c": 2}), 3),
        ({}, PolicyKey("x" * 300, {}), 10**40), ({}, PolicyKey("x" * 300, {}), 10**40 + 1),
    ]  # fmt: skip
    names = [file_name(*run) for run in runs]
    assert len({name.lower() for name in names}) == len(runs)
    assert all(len(name) < 220 and "/" not in name for name in names)
    one = {"a.x": 2, "a.y": 1.0}, PolicyKey("p", {"b": True, "c": (1, 2.0)}), 0
    same = {"a.y": 1, "a.x": 2.0}, PolicyKey("p", {"c": [1.0, 2], "b": 1}), 0
    assert file_name(*one) == file_name(*same)


def test_every_round_is_shown_as_it_happens(tmp_path):
    scenario, seen = tiny(**{"run.rounds": 2}), []
    result = agewise.run(scenario, "random", 2, tmp_path / "out", on_round=seen.append, quiet=True)
    assert [record.t for record in seen] == [0, 1, 0, 1]
    shown = [record.evaluation.accuracy for record in seen]
    assert shown == np.concatenate(result.accuracy("random")).tolist()
    plain = agewise.run(scenario, "random", 2, tmp_path / "plain", engine="inline", quiet=True)
    assert [e.file.read_bytes() for e in plain.entries] == [
        e.file.read_bytes() for e in result.entries
    ]
    agewise.run(scenario, "random", 3, tmp_path / "out", on_round=seen.append, engine="inline")
    assert len(seen) == 6
    for options in ({"engine": "local"}, {"engine": "ray"}, {"workers": 2}):
        with pytest.raises(ValueError, match=r"needs the runs in this process|workers go with"):
            agewise.run(scenario, "random", 1, tmp_path / "x", on_round=print, **options)
    assert not (tmp_path / "x").exists()


def test_histories_in_memory_are_bounded_by_their_bytes(result):
    files = [entry.file for entry in result.entries]
    one = _HistoryCache(2**30)
    one.load(files[0])
    cache = _HistoryCache(int(3.5 * one.bytes))
    first = cache.load(files[0])
    for file in files:
        assert cache.load(files[0]) is first  # used again and again, so it stays
        cache.load(file)
        assert cache.bytes <= cache.limit
    assert cache.load(files[-1]) is cache.load(files[-1])
    assert cache.load(files[0]) is first
    small = _HistoryCache(1)
    assert small.load(files[0]).frame.equals(first.frame)


def test_rounds_of_a_sweep_in_one_frame(tmp_path):
    out, scenario = tmp_path / "out", tiny(**{"run.rounds": 2})
    vary = {"threshold.rate": np.linspace(2, 3, 2), "data.partition.classes_per_ue": [np.int64(1)]}
    result = agewise.sweep(scenario, ["random"], vary, 1, out, engine="inline", quiet=True)
    frame = result.to_polars()
    assert frame["threshold.rate"].to_list() == [2.0, 2.0, 3.0, 3.0]
    for classes in (1, 1.0):
        variation = {"data.partition.classes_per_ue": classes, "threshold.rate": 2}
        assert len(result.histories("random", variation)) == 1


def test_mistakes(tmp_path):
    scenario = tiny(**{"run.rounds": 2})
    with pytest.raises(ValueError, match="given twice"):
        agewise.compare(scenario, ["random", "random"], out=tmp_path / "x")
    with pytest.raises(ValueError, match="at least one policy"):
        agewise.compare(scenario, [], out=tmp_path / "x")
    with pytest.raises(ValueError, match="seeds must be a whole number of at least 1"):
        agewise.compare(scenario, ["random"], seeds=0, out=tmp_path / "x")
    with pytest.raises(ValueError, match="needs a list of at least one value"):
        agewise.sweep(scenario, ["random"], {"threshold.rate": []}, out=tmp_path / "x")
    with pytest.raises(ValueError, match="did you mean threshold.rate"):
        agewise.sweep(scenario, ["random"], {"threshold.rat": [1]}, out=tmp_path / "x")
    assert not (tmp_path / "x").exists()
    with pytest.raises(FolderError, match="not a results folder"):
        Result.open(tmp_path)


def test_a_refilled_folder_is_read_anew(tmp_path):
    out = tmp_path / "again"
    first = agewise.run(tiny(**{"run.rounds": 2}), "random", out=out, engine="inline")
    before = first.history("random").accuracy
    shutil.rmtree(out)
    second = agewise.run(
        tiny(**{"run.rounds": 2, "learn.step_size": 0.5}), "random", out=out, engine="inline"
    )
    assert not np.array_equal(second.history("random").accuracy, before)


def test_results_without_a_folder_leave_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = agewise.run(tiny(**{"run.rounds": 2}), "random", engine="inline")
    assert result.history("random").accuracy.size == 2
    del result
    gc.collect()
    diverging = tiny(**DIVERGING)
    with pytest.raises(ValueError, match="diverged"):
        agewise.run(diverging, "random", engine="inline")
    assert list(tmp_path.iterdir()) == []


def test_a_table_of_runs_in_which_nobody_was_served():
    result = agewise.run(
        tiny(**{"run.rounds": 2, "threshold.rate": 1000.0}), "random", engine="inline"
    )
    row = result.table().to_dicts()[0]
    assert row["ues_per_round"] == 0
    assert row["diversity"] is None
