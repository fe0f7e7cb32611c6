"""History files: whole, faithful, and refused when they are not what they should be."""

import numpy as np
import polars as pl
import pytest

from agewise.files import write_whole
from agewise.records import History
from agewise.simulate import simulate
from tests.scenarios import tiny


@pytest.fixture(scope="module")
def history():
    return simulate(tiny(run={"rounds": 4, "evaluate_every": 2}), "max-pack", 1)


def test_parquet_there_and_back(history, tmp_path):
    path = tmp_path / "run.parquet"
    history.save(path)
    read = History.load(path)
    assert read.frame.equals(history.frame)
    assert read.info.scenario == history.info.scenario
    assert read.info.parameters == {"ties": "random"}
    assert (read.info.policy, read.info.seed) == ("max-pack", 1)
    read.save(tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == path.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["again.parquet", "run.parquet"]


def test_pandas(history):
    table = history.to_pandas()
    assert table["round"].tolist() == [0, 1, 2, 3]
    assert table["owner"][0] == history.owner[0].tolist()
    np.testing.assert_array_equal(table["accuracy"].astype(float), history.accuracy)


def test_files_that_are_not_histories(history, tmp_path):
    path = tmp_path / "run.parquet"
    history.save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"run.parquet: not a readable Parquet file"):
        History.load(path)
    pl.DataFrame({"a": [1]}).write_parquet(path)
    with pytest.raises(ValueError, match="not of an Agewise run"):
        History.load(path)
    pl.DataFrame({"a": [1]}).write_parquet(path, metadata={"agewise": '{"format": 99}'})
    with pytest.raises(ValueError, match="written in format 99, this version reads 1"):
        History.load(path)
    with pytest.raises(ValueError, match="missing.parquet"):
        History.load(tmp_path / "missing.parquet")


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "kept.txt"
    path.write_text("old")

    def interrupted():
        with write_whole(path) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [p.name for p in tmp_path.iterdir()] == ["kept.txt"]
    assert path.read_text() == "old"
    with write_whole(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"
