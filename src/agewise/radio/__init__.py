"""The channel: where the UEs are, path loss, fading, traces."""

from agewise.radio.channel import Block, Channel, ModelledChannel, RecordedChannel, make_channel
from agewise.radio.fading import MultipathFading, NakagamiFading, RayleighFading, Unfaded
from agewise.radio.files import read_ages, read_gains
from agewise.radio.knowledge import PerfectKnowledge
from agewise.radio.large_scale import LargeScale, MovingPlaces, Places, Surroundings
from agewise.radio.path_loss import (
    EdgeScale,
    NoiseScale,
    PowerLawLoss,
    StandardLoss,
    make_path_loss,
)
from agewise.radio.placement import UniformDisc
from agewise.radio.record import record_trace
from agewise.radio.traces import Trace, open_gains

__all__ = [
    "Block",
    "Channel",
    "EdgeScale",
    "LargeScale",
    "ModelledChannel",
    "MovingPlaces",
    "MultipathFading",
    "NakagamiFading",
    "NoiseScale",
    "PerfectKnowledge",
    "Places",
    "PowerLawLoss",
    "RayleighFading",
    "RecordedChannel",
    "StandardLoss",
    "Surroundings",
    "Trace",
    "Unfaded",
    "UniformDisc",
    "make_channel",
    "make_path_loss",
    "open_gains",
    "read_ages",
    "read_gains",
    "record_trace",
]
