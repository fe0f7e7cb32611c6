"""Results: histories by name, tables that say what the runs did, variations."""

import gc
import shutil

import numpy as np
import pytest

import agewise
from agewise import statistics
from agewise.experiment import FolderError, Result, baseline_of, checkpoints
from agewise.experiment.summary import Measured
from tests.scenarios import tiny

POLICIES = ["age-based", "max-pack", "max-pack:ties=lowest-index"]


@pytest.fixture(scope="module")
def result():
    scenario = tiny(run={"rounds": 25, "evaluate_every": 2})
    return agewise.compare(scenario, POLICIES, seeds=4, engine="inline", quiet=True)


def test_histories_are_those_of_simulate(result):
    own = result.history("age-based", seed=3)
    again = agewise.simulate(result.scenario, "age-based", 3)
    assert own.frame.equals(again.frame)
    assert result.history("max-pack(ties=lowest-index)", 1).info.parameters == {
        "ties": "lowest-index"
    }
    with pytest.raises(ValueError, match="'max-pack' means several"):
        result.history("max-pack")
    with pytest.raises(ValueError, match="'fedcs' is not one of the policies"):
        result.history("fedcs")
    with pytest.raises(ValueError, match="no finished cell of .* with seed 9"):
        result.history("age-based", 9)


def test_table_is_the_statistics_of_the_histories(result):
    rows = {row["policy"]: row for row in result.table().to_dicts()}
    assert len(rows) == 3
    base = "max-pack(ties=random)"
    assert rows[base]["gain@25"] is None
    raw = []
    for policy, row in rows.items():
        runs = [result.history(policy, seed) for seed in range(4)]
        assert row["seeds"] == 4
        served = [r.frame["received"].list.len().mean() for r in runs]
        assert row["ues_per_round"] == pytest.approx(np.mean(served))
        assert row["distinct_ues"] == np.mean([np.count_nonzero(r.participation) for r in runs])
        assert row["age_mean"] == pytest.approx(np.mean([r.ages.mean() for r in runs]))
        assert row["age_peak"] == np.mean([r.ages.max() for r in runs])
        diversity = [r.frame["gradient_diversity"].mean() for r in runs]
        assert row["diversity"] == pytest.approx(np.mean(diversity))
        # Round 10 was measured (every second is), round 25 as the last one.
        last = statistics.mean_interval([r.accuracy[24] for r in runs])
        assert (row["accuracy@25"], row["low@25"]) == pytest.approx((last.mean, last.low))
        tenth = statistics.mean_interval([r.accuracy[9] for r in runs])
        assert row["accuracy@10"] == pytest.approx(tenth.mean)
        if policy != base:
            paired = statistics.paired_difference(
                [r.accuracy[24] for r in runs],
                [result.history(base, seed).accuracy[24] for seed in range(4)],
            )
            assert row["gain@25"] == pytest.approx(paired.difference)
            raw.append((policy, paired.p_value))
    corrected = statistics.holm([p for _, p in raw])
    assert [rows[policy]["p@25"] for policy, _ in raw] == pytest.approx(corrected.tolist())


def test_all_rounds_as_one_frame(result):
    table = result.to_pandas()
    assert len(table) == 3 * 4 * 25
    one = table[(table["policy"] == "max-pack(ties=random)") & (table["seed"] == 2)]
    np.testing.assert_array_equal(
        one["accuracy"].astype(float), result.history("max-pack(ties=random)", 2).accuracy
    )


def test_sweep_varies_what_it_says(tmp_path):
    vary = {"channel.rate_threshold": [1.0, 4.0], "data.partition": ["iid", "shards"]}
    result = agewise.sweep(
        tiny(run={"rounds": 3}), ["random", "max-pack"], vary, seeds=2, out=tmp_path / "sweep",
        engine="inline", quiet=True,
    )  # fmt: skip
    assert len(result.entries) == result.expected == 16
    for variation in result.variations:
        for history in result.histories("random", variation).values():
            assert (
                history.info.scenario["channel"]["rate_threshold"]
                == (variation["channel.rate_threshold"])
            )
            assert history.info.scenario["data"]["partition"] == variation["data.partition"]
    rows = result.table().to_dicts()
    assert len(rows) == 8
    assert {(r["channel.rate_threshold"], r["data.partition"]) for r in rows} == {
        (t, p) for t in (1.0, 4.0) for p in ("iid", "shards")
    }
    again = Result.open(tmp_path / "sweep")
    assert again.table().equals(result.table())


def test_run_is_compare_with_one_policy(tmp_path):
    result = agewise.run(tiny(run={"rounds": 2}), "random", out=tmp_path / "one", engine="inline")
    assert [entry.policy for entry in result.entries] == ["random"]
    assert "gain@2" in result.table().columns


def test_accuracy_as_last_measured():
    nan = np.nan
    accuracy = np.array([[nan, 0.2, nan, 0.4], [nan, 0.3, nan, 0.5]])
    zeros = np.zeros(2)
    measured = Measured([0, 1], zeros, zeros, zeros, zeros, zeros, zeros, accuracy)
    assert measured.at(3).tolist() == [0.2, 0.3]
    assert measured.at(4).tolist() == [0.4, 0.5]
    assert np.isnan(measured.at(1)).all()


def test_checkpoints_and_baseline():
    assert checkpoints(100) == [10, 20, 40, 100]
    assert checkpoints(20) == [10, 20]
    assert checkpoints(5) == [5]
    assert baseline_of(["a", "max-pack(ties=lowest-index)", "max-pack(ties=random)"]) == (
        "max-pack(ties=random)"
    )
    assert baseline_of(["a", "b"]) == "a"
    assert baseline_of(["a"]) is None


def test_mistakes(tmp_path):
    scenario = tiny(run={"rounds": 2})
    with pytest.raises(ValueError, match="given twice"):
        agewise.compare(scenario, ["random", "random"], out=tmp_path / "x")
    with pytest.raises(ValueError, match="at least one policy"):
        agewise.compare(scenario, [], out=tmp_path / "x")
    with pytest.raises(ValueError, match="seeds must be a whole number of at least 1"):
        agewise.compare(scenario, ["random"], seeds=0, out=tmp_path / "x")
    with pytest.raises(ValueError, match="needs at least one value"):
        agewise.sweep(scenario, ["random"], {"channel.rate_threshold": []}, out=tmp_path / "x")
    with pytest.raises(ValueError, match="did you mean rate_threshold"):
        agewise.sweep(scenario, ["random"], {"channel.rate_treshold": [1]}, out=tmp_path / "x")
    assert not (tmp_path / "x").exists()
    with pytest.raises(FolderError, match="not a results folder"):
        Result.open(tmp_path)


def test_a_refilled_folder_is_read_anew(tmp_path):
    out = tmp_path / "again"
    first = agewise.run(tiny(run={"rounds": 2}), "random", out=out, engine="inline")
    before = first.history("random").accuracy
    shutil.rmtree(out)
    second = agewise.run(
        tiny(run={"rounds": 2}, learn={"step_size": 0.5}), "random", out=out, engine="inline"
    )
    assert not np.array_equal(second.history("random").accuracy, before)


def test_results_without_a_folder_leave_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = agewise.run(tiny(run={"rounds": 2}), "random", engine="inline")
    assert result.history("random").accuracy.size == 2
    del result
    gc.collect()
    diverging = tiny(learn={"loss": "squared-error", "step_size": 50.0, "local_steps": 200})
    with pytest.raises(ValueError, match="diverged"):
        agewise.run(diverging, "random", engine="inline")
    assert list(tmp_path.iterdir()) == []


def test_a_table_of_runs_in_which_nobody_was_served():
    result = agewise.run(
        tiny(run={"rounds": 2}, channel={"rate_threshold": 1000.0}), "random", engine="inline"
    )
    row = result.table().to_dicts()[0]
    assert row["ues_per_round"] == 0
    assert row["diversity"] is None
