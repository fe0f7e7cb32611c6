"""Gains that a user measured, as the channel of a run."""

import numpy as np
import polars as pl
import pytest

import agewise
from agewise import Streams, simulate
from tests.scenarios import tiny


def recorded(path, scenario, seed, rounds):
    channel = scenario.make_channel(Streams(seed))
    np.savez(path, gains=np.stack([channel.block(t).true for t in range(rounds)]))
    return {"kind": "trace", "path": str(path)}


def test_a_recorded_channel_gives_the_same_run(tmp_path):
    trace = recorded(tmp_path / "gains.npz", tiny(), 4, rounds=10)
    first, again = simulate(tiny(), "age-based", 4), simulate(tiny(channel=trace), "age-based", 4)
    np.testing.assert_array_equal(first.owner, again.owner)
    np.testing.assert_array_equal(first.accuracy, again.accuracy)
    assert first.info.positions_m is not None
    assert again.info.positions_m is None


def test_a_trace_in_experiments(tmp_path):
    trace = recorded(tmp_path / "gains.npz", tiny(), 0, rounds=8)
    other = recorded(tmp_path / "other.npz", tiny(), 1, rounds=8)
    compared = agewise.compare(tiny(channel=trace), ["age-based", "max-pack"], 2, engine="inline")
    assert len(compared.entries) == 4
    swept = agewise.sweep(
        tiny(channel=trace), ["max-pack"], {"channel.path": [trace["path"], other["path"]]}, 1,
        engine="inline",
    )  # fmt: skip
    owners = [swept.history("max-pack", 0, varied).owner for varied in swept.variations]
    assert not np.array_equal(*owners)


def test_a_trace_that_was_replaced_is_read_again(tmp_path):
    trace = recorded(tmp_path / "gains.npz", tiny(), 0, rounds=8)
    first = simulate(tiny(channel=trace), "max-pack")
    recorded(tmp_path / "gains.npz", tiny(), 1, rounds=8)
    assert not np.array_equal(first.owner, simulate(tiny(channel=trace), "max-pack").owner)


def table(**changes):
    t, ue, subchannel = (axis.ravel() for axis in np.indices((8, 12, 5)))
    columns = {"round": t, "ue": ue, "subchannel": subchannel, "gain": np.ones(t.size)}
    return pl.DataFrame(columns | changes)


@pytest.mark.parametrize(
    ("name", "write", "message"),
    [
        ("x.npz", None, "x.npz: the trace cannot be read: No such file"),
        ("x.txt", lambda path: path.write_text("1"),
         "x.txt: a .txt file does not say all that is needed: set channel.format to kind"),
        ("x.npz", lambda path: path.write_bytes(b"PK nonsense"), "x.npz: not a readable NPZ file"),
        ("x.npz", lambda path: np.savez(path, power=np.ones(3)),
         "x.npz: it has no array 'gains'; it holds power"),
        ("x.npz", lambda path: np.savez(path, gains=np.ones((3, 4))),
         r"gains must be numbers\[round, ue, subchannel\], .*not float64 of shape \(3, 4\)"),
        ("x.npz", lambda path: np.savez(path, gains=np.ones((5, 12, 5))),
         r"= \(5, 12, 5\), the scenario \(8, 12, 5\): set run.rounds to at most 5"),
        ("x.npz", lambda path: np.savez(path, gains=np.ones((9, 10, 5))),
         "cell.ues=10 and cell.subchannels=5"),
        ("x.npz", lambda path: np.savez(path, gains=np.where(np.arange(480) == 7, np.nan, 1.0)
                                        .reshape(8, 12, 5)),
         "in round 0 that of UE 1 on subchannel 2 is nan"),
        ("x.parquet", lambda path: path.write_bytes(b"PAR1"), "x.parquet: not a readable table"),
        ("x.parquet", lambda path: table().drop("ue").write_parquet(path),
         "x.parquet: there is no column 'ue'; expected round, ue, subchannel, gain"),
        ("x.parquet", lambda path: table().head(479).write_parquet(path),
         "479 rows for rounds, UEs and subchannels up to .*: every combination must be there once"),
    ],
)  # fmt: skip
def test_traces_that_cannot_be(tmp_path, name, write, message):
    if write is not None:
        write(tmp_path / name)
    scenario = tiny(channel={"kind": "trace", "path": str(tmp_path / name)})
    with pytest.raises(ValueError, match=message):
        simulate(scenario, "max-pack")
