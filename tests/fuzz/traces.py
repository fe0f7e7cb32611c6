"""Recorded channels in every format, ours and those of others."""

import io
import zlib

import h5py
import numpy as np
import polars as pl
import scipy.io

from agewise.radio import TraceChannel
from agewise.radio.cell import Cell
from agewise.random import Streams
from tests.fuzz.mutate import mutate_array, mutate_bytes, npz_bytes
from tests.fuzz.oracle import Case, Target, require
from tests.fuzz.targets import mutate_cells, mutate_inside, mutate_table, parquet_bytes
from tests.radio.trace_files import FILES, SHAPE

ROUNDS, UES, SUBCHANNELS = SHAPE
CELL = Cell(ues=UES, subchannels=SUBCHANNELS, subchannel_bandwidth_hz=180e3)


class Traces(Target):
    """Recorded channels: NPZ, NPY, MAT, HDF5, Parquet, Sionna, DeepMIMO, ns-3, drive tests."""

    name = "trace"

    def __init__(self, room):
        super().__init__(room)
        self.texts, self.arrays, self.forms = {}, {}, {}
        for kind in ("ns3-sinr", "drive-test"):
            name, write, form = FILES[kind]
            write(room / name)
            self.texts[name], self.forms[name] = (room / name).read_bytes(), form
        for kind in ("npz", "sionna", "deepmimo"):
            FILES[kind][1](room / "arrays.npz")
            with np.load(room / "arrays.npz") as archive:
                self.arrays[kind] = dict(archive)
        self.arrays["npz"] |= {"positions_m": np.ones((UES, 2)), "power_budget": np.array(2.0)}

    def make(self, chance):
        kind = chance.rng.choice(("npz", "npy", "mat", "h5", "parquet", "others"))
        name, content = getattr(self, f"_{kind}")(chance)
        if chance.rng.random() < 0.5:
            for rng in chance.changes():
                content = mutate_inside(content, rng)
        return Case(self._attempt(name), (name, *self._fields), {name: content})

    #: Fields of the scenario that an error may name in the place of the file.
    _fields = ("channel.format", "the gains of the trace", "fading")

    def _attempt(self, name):
        def attempt(folder):
            channel = TraceChannel(path=str(folder / name), format=self.forms.get(name, "auto"))
            trace = channel.start(CELL, 2, Streams(0))
            for t in range(2):
                gains = trace.block(t).true
                require(gains.shape == (UES, SUBCHANNELS), "odd shape")
                require((np.isfinite(gains) & (gains >= 0)).all(), "gains are not valid")

        return attempt

    def _changed(self, chance, kind):
        """Arrays of this kind, perhaps with a change of one."""
        arrays = dict(self.arrays[kind])
        if chance.rng.random() < 0.5:
            for rng in chance.changes():
                name = rng.choice(sorted(arrays))
                if rng.random() < 0.1:
                    del arrays[name]
                    break
                arrays[name] = mutate_array(arrays[name], rng, self.trap)
        return arrays

    def _npz(self, chance):
        return "trace.npz", npz_bytes(self._changed(chance, chance.rng.choice(sorted(self.arrays))))

    def _npy(self, chance):
        buffer = io.BytesIO()
        gains = self._changed(chance, "npz").get("gains", np.ones(3))
        np.lib.format.write_array(buffer, gains)  # the bytes of a pickle where it holds objects
        return "trace.npy", buffer.getvalue()

    def _mat(self, chance):
        arrays = self._changed(chance, chance.rng.choice(sorted(self.arrays)))
        held, buffer = {"note": "x", "struct": {"x": 1}}, io.BytesIO()
        compressed = chance.rng.random() < 0.5
        for name, array in arrays.items():
            if array.dtype.kind in "iufcb" and array.dtype.itemsize <= 16:
                held[name] = array.astype("f8") if array.dtype == np.float16 else array
        scipy.io.savemat(buffer, held, do_compression=compressed)
        content = buffer.getvalue()
        if compressed and chance.rng.random() < 0.5:  # damage inside of sound compression
            for rng in chance.changes():
                content = _mutate_packed(content, rng)
        return "trace.mat", content

    def _h5(self, chance):
        buffer = io.BytesIO()
        packed = chance.rng.choice(({}, {"compression": "gzip", "shuffle": True},
                                    {"fletcher32": True}, {"compression": "lzf"}))  # fmt: skip
        libver = chance.rng.choice(("earliest", "latest"))
        with h5py.File(buffer, "w", libver=libver) as file:
            for name, array in self._changed(chance, "npz").items():
                try:
                    file.create_dataset(name, data=array, **(packed if array.ndim == 3 else {}))
                except (TypeError, ValueError):  # what HDF5 cannot hold
                    file.attrs[name] = str(array.dtype)
            if chance.rng.random() < 0.1:
                file.pop("gains", None)
                _place(file, chance.rng)
        return "trace.h5", buffer.getvalue()

    def _parquet(self, chance):
        t, ue, subchannel = (axis.ravel() for axis in np.indices(SHAPE))
        gains = self.arrays["npz"]["gains"].ravel()
        table = pl.DataFrame({"round": t, "ue": ue, "subchannel": subchannel, "gain": gains})
        if chance.rng.random() < 0.5:
            for rng in chance.changes():
                table = mutate_table(table, rng)
        return "trace.parquet", parquet_bytes(table)

    def _others(self, chance):
        name = chance.rng.choice(sorted(self.texts))
        content = self.texts[name]
        if chance.rng.random() < 0.7:
            between = "\t" if name.endswith(".txt") else ","
            for rng in chance.changes():
                content = mutate_cells(content, rng, between)
        return name, content


def _mutate_packed(content, rng):
    """One change of the first variable of a compressed MAT file, packed again."""
    size = int.from_bytes(content[132:136], "little")
    try:
        inside = zlib.decompress(content[136 : 136 + size])
    except zlib.error:  # damaged before
        return content
    packed = zlib.compress(mutate_bytes(inside, rng))
    return content[:132] + len(packed).to_bytes(4, "little") + packed + content[136 + size :]


def _place(file, rng):
    """Gains that are elsewhere, or of which there are far too many."""
    match rng.randrange(6):
        case 0:
            file["gains"] = h5py.ExternalLink(rng.choice(("x.h5", "/dev/zero", "..")), "/gains")
        case 1:
            file["gains"] = h5py.SoftLink(rng.choice(("/gains", "/x", "/")))
        case 2:
            file.create_dataset("gains", SHAPE, "f8", external=[("/dev/zero", 0, 10**6)])
        case 3:
            layout = h5py.VirtualLayout(SHAPE, "f8")
            layout[:] = h5py.VirtualSource("x.h5", "gains", shape=SHAPE)
            file.create_virtual_dataset("gains", layout)
        case 4:
            file.create_group("gains")
        case _:
            shape = rng.choice(((2**40, UES, SUBCHANNELS), (2**50, 5, 0), (2**57, 1, 1), SHAPE))
            kind = rng.choice(("f8", "f4", "i8", h5py.special_dtype(vlen=str), "S9", "?"))
            chunks = (1, *shape[1:]) if 0 not in shape and rng.random() < 0.5 else None
            file.create_dataset("gains", shape, kind, chunks=chunks)
