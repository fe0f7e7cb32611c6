"""Age-based scheduling of federated learning over wireless channels."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from agewise.version import __version__

if TYPE_CHECKING:
    from agewise import (
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
        traffic,
        units,
    )
    from agewise.experiment import Result, compare, run, sweep
    from agewise.policies import schedule
    from agewise.random import Streams
    from agewise.records import History, PolicyKey
    from agewise.report import draw_figure, write_page
    from agewise.scenario import Scenario
    from agewise.scheduling import AccessPoint, Policy, RoundView
    from agewise.simulation import simulate
    from agewise.spectrum import Allocation, InfeasibleAllocation, Uplink
    from agewise.studies import (
        draw_channel,
        draw_channel_of,
        gap,
        record_trace,
        reproduce,
        reproduce_map,
        view_channel,
        view_trace,
    )
    from agewise.traffic import schedule_traffic

#: Where public names live. They are imported when first used: this is the one place where imports
#: wait, so that `import agewise` and `agewise --help` need not wait for Numba, Polars and SciPy.
_HOMES = {
    "AccessPoint": "scheduling",
    "Allocation": "spectrum",
    "History": "records",
    "InfeasibleAllocation": "spectrum",
    "Policy": "scheduling",
    "PolicyKey": "records",
    "Result": "experiment",
    "RoundView": "scheduling",
    "Scenario": "scenario",
    "Streams": "random",
    "Uplink": "spectrum",
    "compare": "experiment",
    "draw_channel": "studies",
    "draw_channel_of": "studies",
    "draw_figure": "report",
    "gap": "studies",
    "record_trace": "studies",
    "reproduce": "studies",
    "reproduce_map": "studies",
    "run": "experiment",
    "schedule": "policies",
    "schedule_traffic": "traffic",
    "simulate": "simulation",
    "sweep": "experiment",
    "view_channel": "studies",
    "view_trace": "studies",
    "write_page": "report",
}

__all__ = [
    "AccessPoint",
    "Allocation",
    "History",
    "InfeasibleAllocation",
    "Policy",
    "PolicyKey",
    "Result",
    "RoundView",
    "Scenario",
    "Streams",
    "Uplink",
    "__version__",
    "age",
    "compare",
    "data",
    "draw_channel",
    "draw_channel_of",
    "draw_figure",
    "engines",
    "experiment",
    "gap",
    "learn",
    "policies",
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
    "traffic",
    "units",
    "view_channel",
    "view_trace",
    "write_page",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(f"agewise.{_HOMES[name]}"), name)
        globals()[name] = value  # found without this function from now on
        return value
    if name in __all__:
        return import_module(f"agewise.{name}")
    raise AttributeError(f"module 'agewise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
