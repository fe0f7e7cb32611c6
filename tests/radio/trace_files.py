"""Small files in the formats of others, each as its authors publish it."""

import numpy as np
import polars as pl
import scipy.io

#: Rounds, UEs and subchannels, those of `tests.scenarios.tiny`.
SHAPE = (8, 12, 5)


def exponential(shape=SHAPE, seed=0):
    return np.random.default_rng(seed).exponential(size=shape)


def npz(path, gains=None):
    np.savez(path, gains=exponential() if gains is None else gains)


def npy(path):
    np.save(path, exponential())


def mat(path):
    scipy.io.savemat(
        path, {"gains": exponential(), "note": "struct, text and cells are left alone"}
    )


def hdf5(path):
    import h5py

    with h5py.File(path, "w") as file:
        file["gains"] = exponential()


def parquet(path):
    t, ue, subchannel = (axis.ravel() for axis in np.indices(SHAPE))
    columns = {"round": t, "ue": ue, "subchannel": subchannel, "gain": exponential().ravel()}
    pl.DataFrame(columns).sample(fraction=1.0, shuffle=True, seed=1).write_parquet(path)


def long_csv(path):
    parquet(path)
    pl.read_parquet(path).write_csv(path)


def complex_normal(shape, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)


def sionna(path, paths=3, antennas=2):
    """`Paths.cir(out_type="numpy")`: a [rx, rx_ant, tx, tx_ant, path, time], tau [rx, tx, path]."""
    a = complex_normal((SHAPE[1], 1, 1, antennas, paths, SHAPE[0]))
    tau = np.random.default_rng(1).uniform(0, 1e-6, (SHAPE[1], 1, paths)).astype(np.float32)
    np.savez(path, a=a, tau=tau)
    return a, tau


def deepmimo(path, users=12, carriers=10):
    """`dataset.channels` [user, rx antenna, tx antenna, subcarrier] and `dataset.rx_pos`."""
    channels = complex_normal((users, 1, 4, carriers))
    places = np.random.default_rng(2).uniform(0, 100, (users, 3))
    np.savez(path, channels=channels, rx_pos=places, tx_pos=np.array([[50.0, 50.0, 10.0]]))
    return channels, places


def ns3_sinr(path, times=9):
    """PhyStatsCalculator::ReportUeSinr: a line per UE and millisecond, tabs between."""
    lines = ["% time\tcellId\tIMSI\tRNTI\tsinrLinear\tcomponentCarrierId"]
    sinr = np.random.default_rng(4).exponential(50.0, (times, SHAPE[1])).round(4)
    for t in range(times):
        for ue in range(SHAPE[1]):
            lines.append(f"{0.001 * (t + 1):g}\t1\t{ue + 1}\t{ue + 5}\t{sinr[t, ue]}\t0")
            lines.append(f"{0.001 * (t + 1):g}\t1\t{ue + 1}\t{ue + 5}\t1.0\t1")
    path.write_text("\n".join(lines) + "\n")
    return sinr


def drive_test(path, times=20):
    """One SNR a row, measured every half second, in no particular order of UEs."""
    lines = ["time_s,ue,snr_db,x_m,y_m"]
    snr = np.random.default_rng(5).normal(15.0, 6.0, (times, SHAPE[1])).round(2)
    lines += [
        f"{100 + 0.5 * t},ue{ue:02d},{snr[t, ue]},{10 * ue + t},{-t}"
        for t in range(times)
        for ue in reversed(range(SHAPE[1]))
    ]
    path.write_text("\n".join(lines) + "\n")
    return snr


SINR = {"kind": "ns3-sinr", "round_s": 0.001, "fading": "rayleigh"}
DRIVE = {"kind": "drive-test", "round_s": 1.0, "fading": "rayleigh"}
#: The file, how it is made, and the format as a scenario names it.
FILES = {
    "npz": ("trace.npz", npz, "auto"),
    "npy": ("trace.npy", npy, "auto"),
    "mat": ("trace.mat", mat, "auto"),
    "hdf5": ("trace.h5", hdf5, "auto"),
    "parquet": ("trace.parquet", parquet, "auto"),
    "csv": ("trace.csv", long_csv, "auto"),
    "sionna": ("cir.npz", sionna, "auto"),
    "deepmimo": ("deepmimo.npz", deepmimo, "auto"),
    "ns3-sinr": ("UlSinrStats.txt", ns3_sinr, SINR),
    "drive-test": ("drive.csv", drive_test, DRIVE),
}
#: Formats of which the seed decides a part.
SEEDED = {"ns3-sinr", "drive-test"}


def trace_channel(folder, kind, **fields):
    """The channel section for a file of this kind, which is made."""
    name, write, form = FILES[kind]
    write(folder / name)
    return {"kind": "trace", "path": str(folder / name), "format": form} | fields
