"""What a scenario says of its devices, as a table."""

from agewise.devices import Device
from agewise.part import Part
from agewise.scenario import Scenario
from agewise.tables._words import NOTHING, value_text
from agewise.tables.table import Cell, Column, Line, Table

_HEADS = ("power budget", "computing", "upload", "samples", "battery", "availability")


def device_table(scenario: Scenario) -> Table | None:
    """A row for each class of devices, with what is said of it; ``None`` where nothing is.

    Files that the scenario names are not read.
    """
    devices = scenario.devices
    described, counts = list(devices.described()), devices.counts(scenario.cell.ues)
    file = next((path.name for path in devices.files().values()), "all UEs")
    cells = [_cells(device) for _, device in described]
    said = [i for i in range(len(_HEADS)) if any(row[i] != NOTHING for row in cells)]
    if not said:
        return None
    rows: list[list[Cell]] = []
    for (name, _), count, row in zip(described, counts, cells, strict=True):
        label = file if name == "devices" else name.rpartition(".")[2]
        rows.append([label, float(count), *(row[i] for i in said)])
    heads = [Column("devices", kind="words"), Column("UEs", ",.0f")]
    return Table("", [*heads, *(Column(_HEADS[i]) for i in said)], rows)


def _cells(device: Device) -> list[Cell]:
    """What is said of power, computing, payload, data, battery and availability."""
    varied = f" (sigma {device.samples_sigma:g})" if device.samples_sigma else ""
    usual = (device.samples, varied) == (1.0, "")
    return [
        _either(device.power_db, "{:+g} dB", device.transmit_power_w, "{:g} W"),
        _lines(device.computing),
        _either(device.payload_share, "x {:g}", device.payload_bits, "{:g} bit"),
        NOTHING if usual else f"x {device.samples:g}{varied}",
        _either(device.battery_j, "{:g} J", None, ""),
        NOTHING if device.availability.kind == "always" else _lines(device.availability),
    ]


def _lines(part: Part | None) -> Cell:
    """The kind of a part and its fields, below each other."""
    if part is None:
        return NOTHING
    text = value_text(part.model_dump(exclude_none=True))
    return [Line(each) for each in text.replace("(", ", ").removesuffix(")").split(", ")]


def _either(one: float | None, form: str, other: float | None, other_form: str) -> str:
    if one is not None:
        return form.format(one)
    return NOTHING if other is None else other_form.format(other)
