"""How long a block of the channel takes to draw, and what the time is spent on."""

import resource
import time
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table

from agewise.radio import Channel, DrawnChannel
from agewise.random import Streams
from agewise.scenario import Scenario

#: Blocks of one measurement, a fraction of a millisecond to some milliseconds.
BLOCKS = 20
REPEATS = 300
BAND = {"cell.subchannel_bandwidth_hz": 180e3}
TDL_A = {"kind": "taps", "profile": "tdl-a", "delay_spread_s": 300e-9}
MOTION = {"kind": "jakes", "carrier_hz": 3.5e9, "speed_m_s": 0.83}
DELAYED = {"kind": "delayed", "delay_s": 0.004, "carrier_hz": 3.5e9, "speed_m_s": 0.83}
CHANNELS: dict[str, dict[str, Any]] = {
    "the paper's": {},
    "nakagami": {"channel.fading": {"kind": "nakagami", "m": 2.0}},
    "rician": {
        "channel.fading": {"kind": "rician", "k_factor": {"kind": "fixed", "k_db": 9.0}},
    },
    "eva, 9 taps": {
        "channel.fading": {"kind": "rayleigh", "frequency": {"kind": "taps", "profile": "eva"}}
    }
    | BAND,
    "tdl-a, 23 taps": {"channel.fading": {"kind": "rayleigh", "frequency": TDL_A}} | BAND,
    "eva with doppler": {
        "channel.fading": {
            "kind": "rayleigh",
            "frequency": {"kind": "taps", "profile": "eva"},
            "time": MOTION,
        },
        "channel.round_s": 0.01,
    }
    | BAND,
    "tdl-a, seen with a delay": {
        "channel.fading": {"kind": "rayleigh", "frequency": TDL_A},
        "channel.csi": DELAYED,
    }
    | BAND,
    "the paper's, seen with a delay": {"channel.csi": DELAYED},
}
#: Cells of TR 38.901 with a tapped delay line: presets, and what changes in them.
CELLS: dict[str, tuple[str, dict[str, Any]]] = {
    "urban-micro, known": ("urban-micro", {"channel.csi": "perfect"}),
    "urban-micro, seen with a delay": ("urban-micro", {}),
    "vehicular, known": ("vehicular", {"channel.csi": "perfect"}),
    "vehicular, seen with a delay": ("vehicular", {}),
    "indoor-factory": ("indoor-factory", {}),
    "urban-macro, staying, with neighbours": ("urban-macro", {}),
    "office, staying, seen in 4 bits": ("office", {}),
}


def fastest_us(work: Callable[[int], object]) -> float:
    """Microseconds of one call, the least of many measurements."""
    work(0)
    best = float("inf")
    for repeat in range(REPEATS):
        start = time.perf_counter()
        for t in range(repeat * BLOCKS, (repeat + 1) * BLOCKS):
            work(t)
        best = min(best, time.perf_counter() - start)
    return best / BLOCKS * 1e6


def split(channel: Channel) -> tuple[float, float, float]:
    """Microseconds of a block, of its large scale, and of its fading alone."""
    assert isinstance(channel, DrawnChannel)
    fading, large = channel.model.fading, channel.large_scale(0)
    return (
        fastest_us(channel.block),
        fastest_us(channel.large_scale),
        fastest_us(lambda t: fading.gains(channel.fading, t, large)),
    )


def large() -> str:
    """A cell of 100,000 UEs and 273 subchannels, of which one block is held at a time."""
    changes = {"cell.ues": 100_000, "cell.subchannels": 273}
    scenario = Scenario.preset("paper").with_(**changes, **CHANNELS["eva, 9 taps"])
    channel = scenario.make_channel(Streams(0))
    channel.block(0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    for t in range(1, 4):
        channel.block(t)
    seconds = (time.perf_counter() - start) / 3
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    block_mb = 8 * 100_000 * 273 / 2**20
    return (
        f"100,000 UEs x 273 subchannels, eva: {seconds:.2f} s a block of {block_mb:.0f} MB; memory "
        f"grew by {grown:.0f} MB over the first block"
    )


def main() -> None:
    """Print a table for 20 and 50 subchannels, and one line for a large cell.

    A block, its large scale alone, and its fading alone (once, whatever the CSI).
    """
    table = Table(title="Drawing a block of 100 UEs, in microseconds")
    table.add_column("channel")
    for count in (20, 50):
        for part in ("block", "large", "fading"):
            table.add_column(f"{part} N={count}", justify="right")
    paper = {name: ("paper", changes) for name, changes in CHANNELS.items()}
    for name, (preset, changes) in (paper | CELLS).items():
        cells = [name]
        for count in (20, 50):
            scenario = Scenario.preset(preset).with_(**{"cell.subchannels": count}, **changes)
            parts = split(scenario.make_channel(Streams(0)))
            cells += [f"{part:.1f}" for part in parts]
        table.add_row(*cells)
    console = Console(width=110)
    console.print(table)
    console.print(large())


if __name__ == "__main__":
    main()
