from . import (
    age,
    data,
    engines,
    experiment,
    learn,
    policies,
    radio,
    report,
    scenario,
    scheduling,
    simulation,
    spectrum,
    statistics,
    studies,
    tables,
    traffic,
    units,
)
from .experiment import Result, RunOptions, compare, run, sweep
from .policies import schedule
from .random import Streams
from .records import History, PolicyKey
from .report import draw_figure, write_page
from .scenario import Scenario
from .scheduling import AccessPoint, Policy, RoundView
from .simulation import simulate
from .spectrum import Allocation, InfeasibleAllocation, Uplink
from .studies import (
    draw_channel,
    explain,
    gap,
    keep_channel_of,
    race,
    record_trace,
    reproduce,
    reproduce_map,
    view_channel,
    view_trace,
)
from .traffic import schedule_traffic
from .version import __version__

__all__ = [
    "AccessPoint",
    "Allocation",
    "History",
    "InfeasibleAllocation",
    "Policy",
    "PolicyKey",
    "Result",
    "RoundView",
    "RunOptions",
    "Scenario",
    "Streams",
    "Uplink",
    "__version__",
    "age",
    "compare",
    "data",
    "draw_channel",
    "draw_figure",
    "engines",
    "experiment",
    "explain",
    "gap",
    "keep_channel_of",
    "learn",
    "policies",
    "race",
    "radio",
    "record_trace",
    "report",
    "reproduce",
    "reproduce_map",
    "run",
    "scenario",
    "schedule",
    "schedule_traffic",
    "scheduling",
    "simulate",
    "simulation",
    "spectrum",
    "statistics",
    "studies",
    "sweep",
    "tables",
    "traffic",
    "units",
    "view_channel",
    "view_trace",
    "write_page",
]
