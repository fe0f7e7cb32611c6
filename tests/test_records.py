"""History files: whole, faithful, and refused when they are not what they should be."""

import io
import json

import numpy as np
import polars as pl
import pytest

import agewise
from agewise.files import NO_CHECKSUM, add_checksum, atomic_write
from agewise.policies import AgeBased, MaxPack
from agewise.records import (
    Delivery,
    Eligible,
    Evaluation,
    History,
    Optimum,
    PolicyKey,
    RoundCost,
    RoundRecord,
    RunInfo,
    read_info,
)
from agewise.simulation import simulate
from tests.scenarios import tiny


@pytest.fixture(scope="module")
def history():
    return simulate(tiny(**{"run.rounds": 4, "run.evaluate_every": 2}), "max-pack", 1)


def test_parquet_there_and_back(history, tmp_path):
    path = tmp_path / "run.parquet"
    history.save(path)
    read = History.load(path)
    assert read.frame.equals(history.frame)
    assert read.info.scenario == history.info.scenario
    assert read.info.policy == MaxPack().key
    assert (read.info.seed, read.info.version) == (1, agewise.__version__)
    np.testing.assert_array_equal(read.info.positions_m, history.info.positions_m)
    np.testing.assert_array_equal(read.info.label_counts, history.info.label_counts)
    assert read.info.class_names == history.info.class_names == tuple("0123456789")
    read.save(tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == path.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["again.parquet", "run.parquet"]


def test_a_history_says_in_a_line_what_it_is(history):
    accuracy = f"accuracy {history.accuracy[-1]:.1%}"
    assert repr(history) == f"<History max-pack, seed 1: 4 rounds, 12 UEs, {accuracy}>"
    assert repr(history.info).startswith("<RunInfo max-pack, seed 1, Agewise ")


def test_pandas(history):
    table = history.to_pandas()
    assert table["round"].tolist() == [0, 1, 2, 3]
    assert table["owner"][0] == history.owner[0].tolist()
    np.testing.assert_array_equal(table["accuracy"].astype(float), history.accuracy)


def test_files_that_are_not_histories(history, tmp_path):
    path = tmp_path / "run.parquet"
    whole = history.to_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"run.parquet: not a readable Parquet file"):
        History.load(path)
    pl.DataFrame({"a": [1]}).write_parquet(path)
    with pytest.raises(ValueError, match="not of an Agewise run"):
        History.load(path)
    for written, message in (
        ('{"format": 1}', r"run.parquet: written by an older version \(format 1\); run it again$"),
        ('{"format": 99}', r"written by a newer version \(format 99\); this one reads up to 6$"),
        ('{"format": 6}', "damaged: there is no checksum in it"),
        ("[]", "damaged: there is no checksum in it"),
    ):
        pl.DataFrame({"a": [1]}).write_parquet(path, metadata={"agewise": written})
        with pytest.raises(ValueError, match=message):
            History.load(path)
    buffer = io.BytesIO()
    empty = json.dumps({"format": 6, "checksum": NO_CHECKSUM})
    pl.DataFrame({"a": [1]}).write_parquet(buffer, metadata={"agewise": empty})
    path.write_bytes(add_checksum(buffer.getvalue()))
    with pytest.raises(ValueError, match="run.parquet: does not describe a run: 'scenario'"):
        History.load(path)
    with pytest.raises(ValueError, match="missing.parquet: cannot be read: No such file"):
        History.load(tmp_path / "missing.parquet")


def test_every_flipped_bit_is_found(history, tmp_path):
    """All bits of the first, the last and the checksum's bytes, and a sample of the others."""
    path = tmp_path / "run.parquet"
    whole = history.to_bytes()
    checksum = whole.index(b'"checksum"')
    ends = [*range(8), *range(len(whole) - 16, len(whole)), *range(checksum, checksum + 80)]
    bits = {8 * byte + bit for byte in ends for bit in range(8)}
    rng = np.random.default_rng(6)
    bits |= set(rng.choice(8 * len(whole), 1000, replace=False).tolist())
    for bit in sorted(bits):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        for read in (History.load, read_info):
            with pytest.raises(ValueError, match=r"run.parquet: (damaged|not a readable)") as error:
                read(path)
            assert "\n" not in str(error.value)
    path.write_bytes(whole)
    assert History.load(path).frame.equals(history.frame)


def test_a_file_is_read_by_its_exact_name(history, tmp_path):
    """Polars would take the name for a pattern, and read another file or several."""
    path = tmp_path / "run[1]*?.parquet"
    history.save(path)
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "run1xx.parquet")
    assert History.load(path).frame.equals(history.frame)
    with pytest.raises(ValueError, match="cannot be read"):
        History.load(tmp_path / "run*.parquet")


def test_records_there_and_back():
    """Every field of a record, measured or not, comes back from the history."""
    rng = np.random.default_rng(3)
    gains = rng.random((3, 3), np.float32)
    measured = {"evaluation": Evaluation(0.5, 1.5, np.array([0.25, 0.75])), "objective": 2.5,
                "optimum": Optimum(3.0, 3.5, 4.0), "gradient_diversity": 0.75,
                "eligible": Eligible(1, np.array([2, 0, 1]), gains)}  # fmt: skip
    records = [
        RoundRecord(
            t=t,
            delivery=Delivery(
                np.array(scheduled),
                np.array(scheduled[:1], np.int64),
                np.array(["received", "outage"][: len(scheduled)], np.str_),
                rate=rng.random(len(scheduled)),
                owner=np.array(owner),
                power=rng.random(3),
                gain=rng.random(3),
                version=np.full(len(scheduled), t // 2),
            ),
            ages=np.array(ages),
            participation=np.array(participation),
            cost=RoundCost(
                seconds=0.5 * t,
                energy_j=np.arange(1.0, len(scheduled) + 1.0),
                channel_uses=10.0 * t,
                bits=32.0 * len(scheduled),
                emptied=np.array(scheduled[1:], np.int64),
            ),
            **(measured if t == 1 else {}),
        )
        for t, (scheduled, owner, ages, participation) in enumerate(
            [
                ([0, 2], [2, -1, 0], [0, 1, 1], [1, 0, 0]),
                ([], [-1, -1, -1], [1, 2, 2], [1, 0, 0]),
                ([1], [1, 1, 1], [2, 0, 3], [1, 1, 0]),
            ]
        )
    ]
    key = PolicyKey("mine", {"names": ["a", "b"], "count": np.int64(2)})
    scenario = {"cell": {"ues": 3}, "run": {"rounds": 3}}
    sources = {"data:x.npz": "0" * 64}
    info = RunInfo(scenario, key, 7, "1", None, None, ("odd", "even"), sources)
    history = History.collect(info, records, 0.5)
    np.testing.assert_array_equal(history.ages, [r.ages for r in records])
    for name in Delivery._fields:
        for read, record in zip(getattr(history, name), records, strict=True):
            np.testing.assert_array_equal(read, getattr(record.delivery, name))
    assert [found.tolist() for found in history.staleness] == [[0], [], [1]]
    assert [ues.tolist() for ues in history.emptied] == [[2], [], []]
    nan = np.nan
    np.testing.assert_array_equal(history.class_accuracy, [[nan, nan], [0.25, 0.75], [nan, nan]])
    numbers = {"accuracy": 0.5, "test_loss": 1.5, "objective": 2.5, "weight": 3.0, "optimum": 3.5,
               "optimum_bound": 4.0, "gradient_diversity": 0.75}  # fmt: skip
    for name, value in numbers.items():
        np.testing.assert_array_equal(history.numbers(name), [nan, value, nan])
    assert history.participation.tolist() == [1, 1, 0]
    assert (history.eligible.t, history.eligible.need.tolist()) == (1, [2, 0, 1])
    np.testing.assert_array_equal(history.eligible.gain, gains)
    assert History.collect(info, records[:1], 0.5).eligible is None
    assert history.energy_j.tolist() == [1.0, 1.0, 2.0]
    spent = {
        "seconds": [0, 0.5, 1],
        "joules": [3, 0, 1],
        "channel_uses": [0, 10, 20],
        "bits": [64, 0, 32],
    }
    assert {name: history.numbers(name).tolist() for name in spent} == spent
    assert history.to_bytes() == History.collect(info, records, 0.5).to_bytes()


def test_the_identity_of_a_policy_is_data():
    key = AgeBased(alpha=0.25).key
    given = {"form": "paper", "ties": "random", "alpha": 0.25, "packing": "greedy", "cap": None}
    assert key == PolicyKey("age-based", given)
    assert str(key) == str(AgeBased(alpha=0.25)) == "age-based:alpha=0.25"
    assert str(PolicyKey("random", {})) == "random"
    assert len({key, AgeBased(alpha=0.25).key, AgeBased(alpha=0.5).key}) == 2
    assert hash(PolicyKey("a", {"b": 1})) == hash(PolicyKey("a", {"b": 1.0}))
    odd = PolicyKey("a(b=1)", {"b": (1, [2.5, None]), "c": {"d": [1]}, "e": True})
    there = json.loads(json.dumps(odd.to_json()))
    assert PolicyKey.from_json(there) == odd
    assert hash(PolicyKey.from_json(there)) == hash(odd)
    for wrong in ("age-based", {}, {"name": "a"}, {"name": 1, "parameters": {}},
                  {"name": "a", "parameters": []}, None):  # fmt: skip
        with pytest.raises(ValueError, match="a policy is a name, parameters and usual ones"):
            PolicyKey.from_json(wrong)


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "kept.txt"
    path.write_text("old")

    def interrupted():
        with atomic_write(path) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [p.name for p in tmp_path.iterdir()] == ["kept.txt"]
    assert path.read_text() == "old"
    with atomic_write(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"
