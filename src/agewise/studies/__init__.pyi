from .channel_picture import draw_channel, keep_channel_of
from .channel_view import ChannelView, record_trace, view_channel, view_trace
from .explanation import explain
from .optimality import GAP_POLICIES, Gap, GapTable, Losses, gap, gap_scenario, with_optimum
from .paper import (
    MapReproduction,
    Reproduction,
    map_scenario,
    reproduce,
    reproduce_map,
    usual_scenario,
)
from .racing import Race, race

__all__ = [
    "GAP_POLICIES",
    "ChannelView",
    "Gap",
    "GapTable",
    "Losses",
    "MapReproduction",
    "Race",
    "Reproduction",
    "draw_channel",
    "explain",
    "gap",
    "gap_scenario",
    "keep_channel_of",
    "map_scenario",
    "race",
    "record_trace",
    "reproduce",
    "reproduce_map",
    "usual_scenario",
    "view_channel",
    "view_trace",
    "with_optimum",
]
