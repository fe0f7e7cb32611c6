"""Age-based scheduling of federated learning over wireless channels."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agewise import age, data, learn, policies, radio, scenario, spectrum, units
    from agewise.policies import Policy, RoundView, schedule
    from agewise.random import Streams
    from agewise.records import History
    from agewise.scenario import Scenario
    from agewise.simulate import simulate
    from agewise.spectrum import Allocation, InfeasibleAllocation, Uplink

__version__ = "0.1.0"

__all__ = [
    "Allocation",
    "History",
    "InfeasibleAllocation",
    "Policy",
    "RoundView",
    "Scenario",
    "Streams",
    "Uplink",
    "__version__",
    "age",
    "data",
    "learn",
    "policies",
    "radio",
    "scenario",
    "schedule",
    "simulate",
    "spectrum",
    "units",
]

# Names are imported when first used, so that `agewise --help` need not wait for NumPy.
_HOMES = {
    "Allocation": "spectrum",
    "History": "records",
    "InfeasibleAllocation": "spectrum",
    "Policy": "policies",
    "RoundView": "policies",
    "Scenario": "scenario",
    "Streams": "random",
    "Uplink": "spectrum",
    "schedule": "policies",
    "simulate": "simulate",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"agewise.{_HOMES[name]}"), name)
    if name in __all__:
        return import_module(f"agewise.{name}")
    raise AttributeError(f"module 'agewise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
