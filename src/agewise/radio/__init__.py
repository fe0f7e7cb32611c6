"""The channel: placement, mobility, path loss, shadowing, fading, CSI, interference, traces.

Each part of a channel is one class: its fields as a scenario writes them, and what it does. Here
are the families, from which a part of your own derives; their kinds stand beside them.
"""

from agewise.radio._files import read_ages, read_gains
from agewise.radio.cell import Cell, Link, RunContext
from agewise.radio.channel import Block, Channel, ChannelModel, DrawnChannel, ModelledChannel
from agewise.radio.csi import Csi
from agewise.radio.fading import Fading, KFactor, Time
from agewise.radio.interference import Interference
from agewise.radio.large_scale import Environment, LargeScale
from agewise.radio.mobility import Mobility
from agewise.radio.path_loss import PathLoss
from agewise.radio.placement import Placement
from agewise.radio.profiles import DelayProfile, Frequency
from agewise.radio.shadowing import Shadowing
from agewise.radio.traces import Trace, TraceChannel, TraceFormat, open_gains

__all__ = [
    "Block",
    "Cell",
    "Channel",
    "ChannelModel",
    "Csi",
    "DelayProfile",
    "DrawnChannel",
    "Environment",
    "Fading",
    "Frequency",
    "Interference",
    "KFactor",
    "LargeScale",
    "Link",
    "Mobility",
    "ModelledChannel",
    "PathLoss",
    "Placement",
    "RunContext",
    "Shadowing",
    "Time",
    "Trace",
    "TraceChannel",
    "TraceFormat",
    "open_gains",
    "read_ages",
    "read_gains",
]
