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
        optimality,
        policies,
        radio,
        report,
        reproduction,
        scenario,
        spectrum,
        statistics,
        suite,
        traffic,
        units,
    )
    from agewise.experiment import Result, compare, run, sweep
    from agewise.optimality import gap
    from agewise.policies import Policy, RoundView, schedule
    from agewise.random import Streams
    from agewise.records import History
    from agewise.reproduction import reproduce, reproduce_map
    from agewise.scenario import Scenario
    from agewise.simulate import simulate
    from agewise.spectrum import Allocation, InfeasibleAllocation, Uplink
    from agewise.suite import benchmark
    from agewise.traffic import schedule_traffic

__all__ = [
    "Allocation",
    "History",
    "InfeasibleAllocation",
    "Policy",
    "Result",
    "RoundView",
    "Scenario",
    "Streams",
    "Uplink",
    "__version__",
    "age",
    "benchmark",
    "compare",
    "data",
    "engines",
    "experiment",
    "gap",
    "learn",
    "optimality",
    "policies",
    "radio",
    "report",
    "reproduce",
    "reproduce_map",
    "reproduction",
    "run",
    "scenario",
    "schedule",
    "schedule_traffic",
    "simulate",
    "spectrum",
    "statistics",
    "suite",
    "sweep",
    "traffic",
    "units",
]

# Names are imported when first used, so that `agewise --help` need not wait for NumPy.
_HOMES = {
    "Allocation": "spectrum",
    "History": "records",
    "InfeasibleAllocation": "spectrum",
    "Policy": "policies",
    "Result": "experiment",
    "RoundView": "policies",
    "Scenario": "scenario",
    "Streams": "random",
    "Uplink": "spectrum",
    "benchmark": "suite",
    "compare": "experiment",
    "gap": "optimality",
    "reproduce": "reproduction",
    "reproduce_map": "reproduction",
    "run": "experiment",
    "schedule": "policies",
    "schedule_traffic": "traffic",
    "simulate": "simulate",
    "sweep": "experiment",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"agewise.{_HOMES[name]}"), name)
    if name in __all__:
        return import_module(f"agewise.{name}")
    raise AttributeError(f"module 'agewise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
