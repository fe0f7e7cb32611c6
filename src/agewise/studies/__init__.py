"""The paper's figure and claims, where they hold, the optimum, the channel."""

from agewise.studies.channel_picture import draw_channel, draw_channel_of
from agewise.studies.channel_view import ChannelView, record_trace, view_channel, view_trace
from agewise.studies.explanation import Explanation, explain
from agewise.studies.map import MapResult, map_scenario, reproduce_map, reproduction_plan
from agewise.studies.optimality import POLICIES as GAP_POLICIES
from agewise.studies.optimality import (
    Gap,
    Losses,
    gap,
    gap_plan,
    gap_scenario,
    losses_of,
    with_optimum,
)
from agewise.studies.paper import Reproduction, reproduce, usual_scenario

__all__ = [
    "GAP_POLICIES",
    "ChannelView",
    "Explanation",
    "Gap",
    "Losses",
    "MapResult",
    "Reproduction",
    "draw_channel",
    "draw_channel_of",
    "explain",
    "gap",
    "gap_plan",
    "gap_scenario",
    "losses_of",
    "map_scenario",
    "record_trace",
    "reproduce",
    "reproduce_map",
    "reproduction_plan",
    "usual_scenario",
    "view_channel",
    "view_trace",
    "with_optimum",
]
