"""Files of simulators, ray tracers and drive tests: the gains that they mean."""

import os
import zipfile

import numpy as np
import pytest
import scipy.io

from agewise import Streams, simulate
from agewise.radio import open_gains
from agewise.readers import array_names, read_arrays
from tests.radio import trace_files
from tests.radio.trace_files import FILES, SHAPE, trace_channel
from tests.scenarios import tiny

BANDWIDTH_HZ = 180e3


def scenario_of(path, form="auto", **changes):
    changes = {"cell.subchannel_bandwidth_hz": BANDWIDTH_HZ} | changes
    return tiny(channel={"kind": "trace", "path": str(path), "format": form}, **changes)


def gains_of(path, form="auto", seed=0, **changes):
    scenario = scenario_of(path, form, **changes)
    channel = scenario.make_channel(Streams(seed))
    return np.stack([channel.block(t).true for t in range(scenario.run.rounds)])


def test_impulse_responses_become_gains_by_their_frequency_response(tmp_path):
    a, tau = trace_files.sionna(tmp_path / "cir.npz")
    frequencies = (np.arange(5) - 2) * BANDWIDTH_HZ
    turned = np.exp(-2j * np.pi * frequencies * tau[:, 0, :, np.newaxis].astype(float))
    response = np.einsum("uapt,upn->tuan", a[:, 0, 0], turned)
    expected = (np.abs(response) ** 2).sum(axis=2)
    np.testing.assert_allclose(gains_of(tmp_path / "cir.npz"), expected, rtol=1e-12)


def test_impulse_responses_the_other_way_round(tmp_path):
    """Reciprocity: UEs that transmit, delays for each antenna, and a batch of one in front."""
    a, tau = trace_files.sionna(tmp_path / "cir.npz")
    straight = gains_of(tmp_path / "cir.npz")
    turned = a.transpose(2, 3, 0, 1, 4, 5)
    delays = np.broadcast_to(tau.transpose(1, 0, 2)[:, None, :, None, :], turned.shape[:5])
    np.savez(tmp_path / "up.npz", a=turned[np.newaxis], tau=delays[np.newaxis])
    form = {"kind": "sionna", "ues": "transmitters"}
    np.testing.assert_array_equal(gains_of(tmp_path / "up.npz", form), straight)


def test_path_gains_with_a_link_budget(tmp_path):
    trace_files.sionna(tmp_path / "cir.npz")
    link = {"kind": "budget", "transmit_power_dbm": 20.0, "noise_density_dbm_hz": -174.0,
            "noise_figure_db": 5.0}  # fmt: skip
    scenario = scenario_of(tmp_path / "cir.npz", {"kind": "sionna", "link": link})
    channel = scenario.make_channel(Streams(0))
    noise_w = 10 ** ((-174 + 5 - 30) / 10) * BANDWIDTH_HZ
    assert channel.power_budget == pytest.approx(0.1, rel=1e-12)
    for nothing in (None, "none"):
        assert scenario.with_(**{"channel.format.link": nothing}).channel.format.link is None
    ratio = channel.block(3).true * noise_w / gains_of(tmp_path / "cir.npz")[3]
    np.testing.assert_allclose(ratio, 1.0, rtol=1e-12)


def test_deepmimo_averages_neighbouring_subcarriers_and_combines_antennas(tmp_path):
    channels, places = trace_files.deepmimo(tmp_path / "d.npz")
    expected = (np.abs(channels.astype(complex)) ** 2).sum(axis=(1, 2))
    expected = expected.reshape(12, 5, 2).mean(axis=2)
    gains = gains_of(tmp_path / "d.npz")
    np.testing.assert_allclose(gains[0], expected, rtol=1e-12)
    np.testing.assert_array_equal(gains[0], gains[7])
    block = scenario_of(tmp_path / "d.npz").make_channel(Streams(0)).block(0)
    np.testing.assert_allclose(block.positions_m, places[:, :2] - 50.0)


def test_the_seed_draws_ues_among_more_users(tmp_path):
    trace_files.deepmimo(tmp_path / "d.npz", users=30)
    whole = gains_of(tmp_path / "d.npz", **{"cell.ues": 30})[0]
    chosen = [gains_of(tmp_path / "d.npz", seed=seed)[0] for seed in (0, 1)]
    assert not np.array_equal(*chosen)
    for gains in chosen:
        places = [int(np.flatnonzero((whole == row).all(axis=1))[0]) for row in gains]
        assert places == sorted(set(places))


def test_scenes_are_rounds(tmp_path):
    channels = trace_files.complex_normal((8, 12, 1, 1, 5))
    np.savez(tmp_path / "d.npz", channels=channels)
    power = np.abs(channels[:, :, 0, 0].astype(complex)) ** 2
    np.testing.assert_allclose(gains_of(tmp_path / "d.npz"), power, rtol=1e-12)


def test_sinr_statistics_are_the_means_of_the_fading(tmp_path):
    sinr = trace_files.ns3_sinr(tmp_path / "s.txt")
    flat = trace_files.SINR | {"fading": "none"}
    np.testing.assert_array_equal(gains_of(tmp_path / "s.txt", flat)[:, :, 3], sinr[:8])
    faded = gains_of(tmp_path / "s.txt", trace_files.SINR)
    ratio = (faded / sinr[:8, :, np.newaxis]).mean()  # of 480 exponentials of mean 1
    assert abs(ratio - 1.0) < 4 / np.sqrt(faded.size)


def test_drive_tests_hold_the_last_measurement(tmp_path):
    snr = trace_files.drive_test(tmp_path / "d.csv")
    flat = trace_files.DRIVE | {"fading": "none"}
    gains = gains_of(tmp_path / "d.csv", flat)
    np.testing.assert_allclose(10 * np.log10(gains[:, :, 0]), snr[:16:2], atol=1e-9)
    channel = scenario_of(tmp_path / "d.csv", flat).make_channel(Streams(0))
    np.testing.assert_array_equal(channel.block(3).positions_m[2], [26.0, -6.0])
    slower = gains_of(tmp_path / "d.csv", flat | {"round_s": 0.75}, **{"run.rounds": 3})
    np.testing.assert_allclose(10 * np.log10(slower[:, :, 0]), snr[[0, 1, 3]], atol=1e-9)


@pytest.mark.parametrize("kind", FILES)
def test_every_format_runs(tmp_path, kind):
    channel = trace_channel(tmp_path, kind)
    scenario = tiny(channel=channel, **{"cell.subchannel_bandwidth_hz": BANDWIDTH_HZ})
    assert len(simulate(scenario, "max-pack", 1)) == SHAPE[0]


NUMBERS = {
    "d": np.random.default_rng(0).normal(size=(3, 4, 5)), "s": np.arange(6, dtype="f4"),
    "c": trace_files.complex_normal((2, 3, 1, 4)), "z": np.array([[1.5 - 2j]]), "small": 7.0,
    "u1": np.arange(3, dtype="u1"), "i2": np.arange(-3, 3, dtype="i2"), "i8": np.array([-(2**40)]),
    "logical": np.array([True, False]), "a_name_of_31_letters_as_MATLAB_s": np.ones((2, 2)),
}  # fmt: skip


@pytest.mark.parametrize("compressed", [False, True])
def test_arrays_of_mat_files_are_those_that_scipy_reads(tmp_path, compressed):
    path, others = (
        tmp_path / "x.mat",
        {"struct": {"x": 1}, "text": "hello", "none": np.ones((0, 3))},
    )
    scipy.io.savemat(path, NUMBERS | others, do_compression=compressed, long_field_names=True)
    expected = scipy.io.loadmat(path)
    assert array_names(path) == [*NUMBERS, *others]
    for name, array in zip(NUMBERS, read_arrays(path, list(NUMBERS)), strict=True):
        np.testing.assert_array_equal(array, expected[name], name)
        assert array.dtype in (expected[name].dtype, np.uint8)
    for name in ("struct", "text"):
        with pytest.raises(ValueError, match=r"x\.mat: .* is no array of numbers"):
            read_arrays(path, [name])


def test_no_flipped_bit_of_a_compressed_mat_file_changes_a_number(tmp_path):
    path = tmp_path / "x.mat"
    scipy.io.savemat(path, {"gains": NUMBERS["d"]}, do_compression=True)
    whole, refused = path.read_bytes(), 0
    for at in range(124, len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        try:
            (array,) = read_arrays(path, ["gains"])
        except ValueError:
            refused += 1
        else:  # in bits without a meaning, as those behind the last code
            np.testing.assert_array_equal(array, NUMBERS["d"])
    assert refused > 0.98 * (len(whole) - 124)


def test_deepmimo_in_a_mat_file(tmp_path):
    channels, places = trace_files.deepmimo(tmp_path / "d.npz")
    held = {"channels": channels, "rx_pos": places, "tx_pos": np.array([50.0, 50.0, 10.0])}
    scipy.io.savemat(tmp_path / "d.mat", held)
    np.testing.assert_array_equal(gains_of(tmp_path / "d.mat"), gains_of(tmp_path / "d.npz"))


def in_hdf5(path, write):
    import h5py

    np.save(path.with_name("secret.npy"), np.ones((8, 12, 5)))
    with h5py.File(path.with_name("other.h5"), "w") as other:
        other["gains"] = np.ones((8, 12, 5))
    with h5py.File(path, "w") as file:
        write(h5py, file)


def _virtual(h5py, file):
    layout = h5py.VirtualLayout((8, 12, 5), "f8")
    layout[:] = h5py.VirtualSource("other.h5", "gains", shape=(8, 12, 5))
    file.create_virtual_dataset("gains", layout)


@pytest.mark.parametrize(
    ("write", "sentence"),
    [
        (lambda _, file: file.create_dataset(
            "gains", (8, 12, 5), "f8", external=[("secret.npy", 128, 3840)]), "in other files"),
        (_virtual, "in other files"),
        (lambda h5py, file: file.update(gains=h5py.ExternalLink("other.h5", "/gains")), "a link"),
        (lambda h5py, file: file.update(gains=h5py.ExternalLink("pipe", "/gains")), "a link"),
        (lambda h5py, file: file.update(gains=h5py.SoftLink("/gains")), "a link"),
        (lambda _, file: file.create_group("gains"), "not an array"),
        (lambda _, file: file.create_dataset("gains", (2**40, 5, 4), "f8", chunks=(9, 5, 4)),
         "more than such a file can hold"),
        (lambda _, file: file.create_dataset("gains", (2**50, 5, 0), "f8"), "must be numbers"),
    ],
)  # fmt: skip
def test_hdf5_files_stand_for_themselves(tmp_path, monkeypatch, write, sentence):
    """They read no other file, of which links would hang on a pipe, and hold what they say."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    in_hdf5(tmp_path / "t.h5", write)
    with pytest.raises(ValueError, match=sentence):
        open_gains(tmp_path / "t.h5")


def test_gains_in_hdf5_may_be_packed(tmp_path):
    ones = np.ones((4000, 12, 5))
    packed = {"data": ones, "chunks": ones.shape, "compression": "gzip", "compression_opts": 9}
    in_hdf5(tmp_path / "t.h5", lambda _, file: file.create_dataset("gains", **packed))
    assert open_gains(tmp_path / "t.h5").gains.shape == ones.shape


def declared(path, **arrays):
    """Arrays of which there is nothing but what the header declares."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, (kind, shape) in arrays.items():
            with archive.open(f"{name}.npy", "w") as file:
                head = {"descr": kind, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(file, head)


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"gains": ("<f8", (2**50, 5, 0))}, r"not float64 of shape \(1125899906842624, 5, 0\)"),
        ({"a": ("<c8", (5, 2**50, 1, 1, 0, 3)), "tau": ("<f8", (5, 1, 0))}, "'a' is empty"),
        ({"channels": ("<c8", (0, 2**50, 1, 5))}, "'channels' is empty"),
    ],
)
def test_sizes_are_judged_before_any_loop(tmp_path, arrays, sentence):
    declared(tmp_path / "t.npz", **arrays)
    assert (tmp_path / "t.npz").stat().st_size < 500
    with pytest.raises(ValueError, match=sentence):
        scenario_of(tmp_path / "t.npz").make_channel(Streams(0))


def text(content):
    return lambda path: path.write_text(content)


ROWS = "time_s,ue,snr_db\n0,a,10\n1,a,11\n"
LONG = "time_s,ue,snr_db\n" + "".join(f"0,{ue},1\n1e300,{ue},1\n" for ue in range(12))
A, TAU = np.zeros((12, 1, 1, 1, 3, 8), complex), np.zeros((12, 1, 3))


@pytest.mark.parametrize(
    ("name", "form", "write", "sentence"),
    [
        ("x.csv", trace_files.DRIVE, text(""), "x.csv: not a readable table"),
        ("x.csv", trace_files.DRIVE, text("time_s,ue\n0,a\n"),
         "no column 'snr_db'; expected time_s, ue, snr_db, it has time_s, ue"),
        ("x.csv", trace_files.DRIVE, text(ROWS + "2,a,\n"), "'snr_db' must hold finite numbers"),
        ("x.csv", trace_files.DRIVE, text(ROWS + "2,a,nan\n"), "'snr_db' must hold finite numbers"),
        ("x.csv", trace_files.DRIVE, text(ROWS), "has 1 UEs and the scenario 12: set cell.ues=1"),
        ("x.csv", trace_files.DRIVE,
         text(ROWS + "".join(f"5,{ue},1\n" for ue in "bcdefghijkl")), "all 12 UEs have values"),
        ("x.csv", trace_files.DRIVE, text(LONG), "x.csv: its rounds would need .* of memory"),
        ("x.mat", "auto", text("no"), "x.mat: not a readable MAT file"),
        ("x.mat", "auto", text("MATLAB 7.3 MAT-file"), "version 7.3: save it with '-v7'"),
        ("x.mat", "deepmimo", lambda path: scipy.io.savemat(path, {"h": 1}),
         "it has no array 'channels'; it holds h"),
        ("x.txt", trace_files.SINR, text("time\tIMSI\n0\t1\n"), "there is no column 'sinrLinear'"),
        ("x.txt", trace_files.SINR, text("% time\tIMSI\tsinrLinear\n0\t1\t-3\n"),
         "must be linear, not negative"),
        ("x.txt", trace_files.SINR, text("% time\tIMSI\tsinrLinear\n0\t1\t1e300\n"), "to 300 dB"),
        ("x.txt", trace_files.SINR,
         text("% time\tIMSI\tsinrLinear\tcomponentCarrierId\n0\t1\t1\tx\n"),
         "column 'componentCarrierId' must hold finite numbers"),
        ("x.npz", "sionna", lambda path: np.savez(path, gains=1), "it has no array 'a'"),
        ("x.npz", "auto", lambda path: np.savez(path, a=A.real, tau=TAU),
         r"a must be complex numbers\[rx, rx_ant, tx, tx_ant, path, time\], not float64"),
        ("x.npz", "auto", lambda path: np.savez(path, a=A, tau=TAU[0]),
         r"tau must be finite seconds of shape \(12, 1, 3\) or \(12, 1, 1, 1, 3\)"),
        ("x.npz", "auto", lambda path: np.savez(path, a=A + np.nan, tau=TAU), "UE 0 .* is nan"),
        ("x.npz", {"kind": "sionna", "access_point": 1},
         lambda path: np.savez(path, a=A, tau=TAU), "access_point = 1: the file has 1 there"),
        ("x.npz", "auto", lambda path: np.savez(path, channels=np.ones((12, 1, 1, 7), complex)),
         "7 subcarriers do not make 5 equal subchannels: set cell.subchannels to a divisor of 7"),
        ("x.npz", "deepmimo", lambda path: np.savez(path, h=1), "it has no array 'channels'"),
        ("x.npy", "auto", text("no"), "x.npy: not a readable NPY file"),
        ("x.npy", "auto", lambda path: np.save(path, np.array([{}])), "objects"),
        ("x.dat", "auto", text("no"), "of another ending set channel.format"),
        ("x.dat", "gains", text("no"), "a trace of gains is a file that ends in .npz"),
    ],
)  # fmt: skip
def test_files_that_are_not_what_they_should_be(tmp_path, name, form, write, sentence):
    write(tmp_path / name)
    with pytest.raises(ValueError, match=sentence) as error:
        scenario_of(tmp_path / name, form).make_channel(Streams(0))
    assert str(error.value).startswith(str(tmp_path / name))
    assert "\n" not in str(error.value)


def test_impulse_responses_need_a_bandwidth(tmp_path):
    trace_files.sionna(tmp_path / "cir.npz")
    with pytest.raises(ValueError, match="set cell.subchannel_bandwidth_hz"):
        tiny(channel=trace_channel(tmp_path, "sionna")).make_channel(Streams(0))


@pytest.mark.parametrize(
    ("fading", "sentence"),
    [
        ({"kind": "rayleigh", "frequency": {"kind": "taps", "profile": "eva"}},
         "channel.format.fading.frequency = taps needs cell.subchannel_bandwidth_hz"),
        ({"kind": "rayleigh", "time": {"kind": "jakes", "carrier_hz": 3e9, "speed_m_s": 1.0}},
         "channel.format.round_s = .*: must be from 1e-06 to 0.04.*, or fading aliases"),
    ],
)  # fmt: skip
def test_overlays_that_cannot_be_are_named_by_their_own_fields(tmp_path, fading, sentence):
    channel = trace_channel(tmp_path, "drive-test", format=trace_files.DRIVE | {"fading": fading})
    with pytest.raises(ValueError, match=sentence):
        tiny(channel=channel).make_channel(Streams(0))


def test_an_overlay_may_be_a_delay_line(tmp_path):
    snr = trace_files.drive_test(tmp_path / "d.csv")
    taps = trace_files.DRIVE | {
        "fading": {"kind": "rayleigh", "frequency": {"kind": "taps", "profile": "epa"}}
    }
    gains = gains_of(tmp_path / "d.csv", taps) / 10 ** (snr[:16:2, :, np.newaxis] / 10)
    assert abs(gains.mean() - 1.0) < 4 / np.sqrt(8 * 12)  # one draw for each UE and round
    assert np.corrcoef(gains[..., 0].ravel(), gains[..., 1].ravel())[0, 1] > 0.95
