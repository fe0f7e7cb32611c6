"""Channels recorded as traces, and replayed."""

import os
import subprocess
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest

from agewise import History, Scenario, Streams, record_trace, simulate
from agewise.radio import open_gains
from tests.radio import trace_files
from tests.radio.cells import DRIFT, street
from tests.scenarios import tiny

PHYSICAL = Scenario.preset("physical").with_(
    **{"cell.ues": 12, "cell.subchannels": 5, "run.rounds": 8, "data.dataset": "synthetic"}
)


#: UEs that move, over a tapped delay line, seen by the access point with an error.
DRIFTING = {
    "channel.mobility": DRIFT, "channel.round_s": 5.0,
    "channel.fading": {"kind": "rayleigh", "frequency": {"kind": "taps", "profile": "eva"}},
    "channel.csi": {"kind": "estimated", "pilot_snr_db": 5.0}, "threshold.rate": 6.0,
}  # fmt: skip


def moving(folder):
    """A channel that the access point does not see as it is, and whose UEs move."""
    rng = np.random.default_rng(7)
    np.savez(
        folder / "moving.npz",
        gains=rng.exponential(40.0, (8, 12, 5)),
        seen=rng.exponential(40.0, (8, 12, 5)).astype(np.float32),
        positions_m=rng.normal(size=(8, 12, 2)),
        power_budget=np.float32(0.5),
    )
    return {"kind": "trace", "path": str(folder / "moving.npz")}


@pytest.fixture(params=["model", "physical", "drifting", "moving", "drive-test", "deepmimo"])
def scenario(request, tmp_path):
    match request.param:
        case "model":
            return tiny()
        case "drifting":
            return street(**DRIFTING)
        case "physical":
            return PHYSICAL
        case "moving":
            return tiny(channel=moving(tmp_path))
        case kind:
            return tiny(channel=trace_files.trace_channel(tmp_path, kind))


@pytest.mark.parametrize("ending", ["npz", "h5"])
def test_a_replay_is_the_run_itself_to_the_byte(scenario, ending, tmp_path):
    file = record_trace(scenario, tmp_path / f"recorded.{ending}", seed=4)
    replayed = scenario.with_(channel={"kind": "trace", "path": str(file)})
    channel, replay = (each.make_channel(Streams(4)) for each in (scenario, replayed))
    assert replay.power_budget == channel.power_budget
    for t in range(8):
        block, again = channel.block(t), replay.block(t)
        np.testing.assert_array_equal(block.true, again.true)
        np.testing.assert_array_equal(block.seen, again.seen)
        assert (block.seen is block.true) == (again.seen is again.true)
        np.testing.assert_array_equal(block.positions_m, again.positions_m)
    first, again = (simulate(each, "age-based", 4) for each in (scenario, replayed))
    assert History(first.info, again.frame).to_bytes() == first.to_bytes()
    np.testing.assert_array_equal(first.info.positions_m, again.info.positions_m)


def test_the_same_channel_is_the_same_file(tmp_path):
    files = [record_trace(tiny(), tmp_path / f"{name}.npz", 3).read_bytes() for name in "ab"]
    assert files[0] == files[1]
    assert files[0] != record_trace(tiny(), tmp_path / "c.npz", 4).read_bytes()


def test_numpy_reads_what_is_recorded(tmp_path):
    file = record_trace(PHYSICAL, tmp_path / "t.npz", 3, rounds=5)
    with np.load(file) as archive:
        assert archive["gains"].shape == (5, 12, 5)
        assert archive["positions_m"].shape == (12, 2)
        assert archive["power_budget"] == pytest.approx(0.01)
        assert int(archive["seed"]) == 3
        (tmp_path / "s.toml").write_text(str(archive["scenario"]))
        assert "seen" not in archive
    assert Scenario.load(tmp_path / "s.toml") == PHYSICAL.with_(**{"run.rounds": 5})


def test_a_large_trace_is_written_and_read_a_block_at_a_time(tmp_path):
    """32 MB in blocks of 0.8 MB: at no time are 8 MB held."""
    scenario = tiny(**{"cell.ues": 2000, "cell.subchannels": 50, "run.rounds": 40})
    scenario.make_channel(Streams(0)).block(0)  # compiled before memory is counted
    tracemalloc.start()
    try:
        file = record_trace(scenario, tmp_path / "t.npz")
        trace = open_gains(file)
        assert isinstance(trace.gains, np.memmap)
        replay = scenario.with_(channel={"kind": "trace", "path": str(file)}).make_channel(
            Streams(0)
        )
        for t in range(40):
            replay.block(t)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert file.stat().st_size > 32e6
    assert peak < 8e6


def test_compressed_members_are_read_too(tmp_path):
    gains = trace_files.exponential()
    np.savez_compressed(tmp_path / "t.npz", gains=gains)
    np.testing.assert_array_equal(np.asarray(open_gains(tmp_path / "t.npz").gains), gains)
    np.savez(tmp_path / "f.npz", gains=np.asfortranarray(gains))
    np.testing.assert_array_equal(np.asarray(open_gains(tmp_path / "f.npz").gains), gains)


def test_a_flipped_bit_is_found(tmp_path):
    file = record_trace(tiny(), tmp_path / "t.npz", rounds=40)
    content = bytearray(file.read_bytes())
    content[15000] ^= 1
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"t\.npz: .* Bad CRC-32 for file 'gains.npy'"):
        open_gains(file)


def test_a_trace_that_ends_too_early(tmp_path):
    """An archive whose directory is whole and whose array says more than it holds."""
    head = {"descr": "<f8", "fortran_order": False, "shape": (8, 12, 5)}
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive, archive.open("gains.npy", "w") as npy:
        np.lib.format.write_array_header_1_0(npy, head)
        npy.write(bytes(100))
    with pytest.raises(ValueError, match=r"it ends before its float64 of shape \(8, 12, 5\)"):
        open_gains(tmp_path / "t.npz")


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"seen": np.ones((8, 12, 4))}, r"seen must be numbers of shape \(8, 12, 5\) beside the"),
        ({"seen": -np.ones((8, 12, 5))}, "seen must be non-negative and finite: in round 0"),
        ({"positions_m": np.ones((12, 3))}, r"of shape \(12, 2\) or \(8, 12, 2\) beside"),
        ({"positions_m": np.full((12, 2), np.nan)}, "positions_m must be finite"),
        ({"power_budget": 0.0}, "power_budget must be one positive number, not 0.0"),
        ({"power_budget": np.ones(2)}, "power_budget must be one positive number"),
    ],
)
def test_what_stands_beside_the_gains_must_fit_them(arrays, sentence, tmp_path):
    np.savez(tmp_path / "t.npz", gains=np.ones((8, 12, 5)), **arrays)
    with pytest.raises(ValueError, match=sentence):
        open_gains(tmp_path / "t.npz")


def test_a_gain_that_is_none_is_named_wherever_it_is(tmp_path):
    gains = np.ones((300, 100, 20))
    gains[271, 3, 19] = -1.0
    np.save(tmp_path / "t.npy", gains)
    with pytest.raises(ValueError, match="round 271 that of UE 3 on subchannel 19 is -1.0"):
        open_gains(tmp_path / "t.npy")


FULL = """
import resource
from agewise import record_trace
from tests.scenarios import tiny

for limit in (0, 1000, 2500, 19000, 50000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        record_trace(tiny(), "t.h5", rounds=40)
    except OSError as error:
        print(error.filename, error.strerror)
"""


def test_a_file_that_cannot_grow_is_an_error(tmp_path):
    """In a process of its own: HDF5 crashes where a write fails."""
    here = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", FULL], cwd=tmp_path, env=here, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode().splitlines() == ["t.h5 File too large"] * 4
    assert [file.name for file in tmp_path.iterdir()] == ["t.h5"]
    assert open_gains(tmp_path / "t.h5").gains.shape == (40, 12, 5)


def test_recording_says_what_it_cannot_do(tmp_path):
    with pytest.raises(ValueError, match=r"t.parquet: a trace is recorded as .npz, .h5 or .hdf5"):
        record_trace(tiny(), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="rounds must be a whole number of at least 1"):
        record_trace(tiny(), tmp_path / "t.npz", rounds=0)
    assert not list(tmp_path.iterdir())
