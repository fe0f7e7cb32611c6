"""Devices of a cell: power, computing, payload, data, battery and availability of its UEs.

A scenario says it once for all of them, for classes, or in a file for each; `DeviceTable` has it
for the UEs of one run.
"""

from agewise.devices.availability import (
    AlwaysAvailable,
    Availability,
    AvailabilityFile,
    MarkovAvailability,
)
from agewise.devices.computing import (
    ComputeCost,
    Computing,
    CycleComputing,
    LogNormalComputing,
    SlotComputing,
    Workload,
)
from agewise.devices.section import (
    AlikeDevices,
    ClassDevices,
    DeviceClass,
    DeviceFile,
    Devices,
)
from agewise.devices.table import Device, DeviceTable

__all__ = [
    "AlikeDevices",
    "AlwaysAvailable",
    "Availability",
    "AvailabilityFile",
    "ClassDevices",
    "ComputeCost",
    "Computing",
    "CycleComputing",
    "Device",
    "DeviceClass",
    "DeviceFile",
    "DeviceTable",
    "Devices",
    "LogNormalComputing",
    "MarkovAvailability",
    "SlotComputing",
    "Workload",
]
