"""The section ``devices`` of a scenario: all UEs alike, of classes, or of a file."""

import difflib
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, model_validator

from agewise.dependencies import pl
from agewise.devices.availability import AlwaysAvailable, Availability, Chains
from agewise.devices.computing import Computing, Workload
from agewise.devices.table import COLUMNS, Device, DeviceTable, require_once, tabulate
from agewise.part import Kinds, Part, RelativeTo, Unloaded, kinds
from agewise.random import Streams
from agewise.readers import read_table

_Numbers = NDArray[np.float64]
#: Shares of classes may miss 1 by this, for they are written in decimals.
_ROUNDING: Final = 1e-9
#: Columns of a file that are looked at where time and energy count.
_TIMED: Final = ("battery_j", "samples_per_s", "compute_w")


class Devices(Part):
    """What the UEs of a cell are."""

    kind: str = ""
    #: Whether a file may say how long local learning takes them.
    may_measure: ClassVar[bool] = False

    def described(self) -> Iterator[tuple[str, Device]]:
        """Yield what is said of UEs, each with its dotted name."""
        yield from ()

    def counts(self, ues: int) -> list[int]:
        """Count the UEs of each that is described, of so many."""
        return [ues for _ in self.described()]

    def members(self, ues: int, streams: Streams) -> NDArray[np.int64]:
        """Say which of those described each UE of a run is."""
        return np.zeros(ues, np.int64)

    def table(self, work: Workload) -> DeviceTable:
        """Work out what each UE of a run is."""
        raise self.lacks("table")

    def require_fitting(self, unit: str, *, in_watts: bool, by_writer: bool) -> None:
        """Raise ``ValueError`` where something said of UEs has no meaning in the scenario.

        Times have this ``unit``; ``in_watts`` tells whether watts of the power budget are known,
        and ``by_writer`` whether samples stay with their writers.
        """
        for name, device in self.described():
            computing = device.computing
            if computing is None:
                if unit and not self.may_measure:
                    fit = [kind for kind, each in kinds(Computing).items() if each.unit == unit]
                    raise ValueError(
                        f"{name}.computing is missing, which timing.kind = {unit} counts: there "
                        f"are {', '.join(fit)}"
                    )
            elif computing.unit != unit and not isinstance(computing, Unloaded):
                raise ValueError(
                    f"{name}.computing = {computing.kind} is in {computing.unit}, and timing.kind "
                    f"is {unit or 'none'}: set timing.kind to {computing.unit}"
                    f"{'' if unit else f', or leave {name}.computing out'}"
                )
            if device.battery_j is not None and unit != "seconds":
                raise ValueError(
                    f"{name}.battery_j needs joules, which timing.kind = seconds counts: set "
                    "timing.kind to seconds, or leave it out"
                )
            if device.transmit_power_w is not None and not in_watts:
                raise ValueError(
                    f"{name}.transmit_power_w needs the power budget of the cell in watts: set "
                    f"{name}.power_db instead, or channel.link to kind budget"
                )
            if by_writer and (device.samples, device.samples_sigma) != (1.0, 0.0):
                raise ValueError(
                    f"{name}.samples does not go with data.partition = by-writer, where a UE has "
                    "what its writers wrote: leave it and samples_sigma out"
                )


class AlikeDevices(Device, Devices):
    """All UEs are alike, but for what is drawn for each."""

    kind: Literal["alike"] = "alike"

    def described(self) -> Iterator[tuple[str, Device]]:
        """Yield what is said of all."""
        yield "devices", self

    def table(self, work: Workload) -> DeviceTable:
        """Make all of one class."""
        return tabulate({"all": self}, np.zeros(work.ues, np.int64), work)


class DeviceClass(Device):
    """A class of UEs that are alike."""

    share: float = Field(gt=0, le=1, description="part of the UEs that are of this class")


class _DeviceClasses(Part):
    """The classes, each in a table of its name."""

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)
    named: ClassVar[type[Part]] = DeviceClass
    __pydantic_extra__: dict[str, DeviceClass]

    @model_validator(mode="after")
    def _require_whole(self) -> Self:
        shares = {name: each.share for name, each in self}
        for name in shares:
            if not re.fullmatch(r"[\w-]+", name, re.ASCII):
                raise ValueError(f"a class is called {name!r}: take letters, digits, - and _")
        if not shares:
            raise ValueError("there is no class: give one, such as [devices.classes.phones]")
        total = sum(shares.values())
        if abs(total - 1.0) > _ROUNDING:
            last, share = list(shares.items())[-1]
            by = f"{abs(total - 1.0):.6g} {'more' if total > 1.0 else 'less'} than 1"
            nearest = share + 1.0 - total
            hint = f"set {last}.share to {nearest:.6g}" if nearest > 0 else "lower them"
            raise ValueError(f"the shares add up to {total:.6g}, {by}: {hint}")
        return self


class ClassDevices(Devices):
    """UEs are of classes, as many of each as its share says, and in a random order."""

    kind: Literal["classes"] = "classes"
    classes: _DeviceClasses = Field(description="a table for each class, by its name")

    def described(self) -> Iterator[tuple[str, Device]]:
        """Yield what is said of each class."""
        for name, each in self.classes:
            yield f"devices.classes.{name}", each

    def counts(self, ues: int) -> list[int]:
        """Count by the largest remainder."""
        wanted = ues * np.array([each.share for _, each in self.classes])
        counts = np.floor(wanted).astype(np.int64)
        counts[np.argsort(counts - wanted, kind="stable")[: ues - counts.sum()]] += 1
        return list(map(int, counts))

    def members(self, ues: int, streams: Streams) -> NDArray[np.int64]:
        """Shuffle the UEs of all classes."""
        counts = self.counts(ues)
        return streams.devices().permutation(np.repeat(np.arange(len(counts)), counts))

    def table(self, work: Workload) -> DeviceTable:
        """Make each UE one of its class."""
        return tabulate(dict(self.classes), self.members(work.ues, work.streams), work)


class DeviceFile(Devices):
    """UEs of a CSV or Parquet file: each row is a device, and columns say what it is.

    Columns are power_db or transmit_power_w, payload_share or payload_bits, samples, mean_on_rounds
    and mean_off_rounds (its availability by kind markov) and, where timing counts seconds,
    battery_j, samples_per_s and compute_w: how many samples of local learning it handles in a
    second, and the watts that it takes meanwhile. Others are not looked at, but one that begins as
    they do is refused.
    """

    kind: Literal["file"] = "file"
    may_measure: ClassVar[bool] = True
    path: str = Field(description="the file")
    relative_to: RelativeTo = "working-folder"
    assignment: Literal["one-to-one", "in-order", "random"] = Field(
        description="which UE has which row: a row for each; UE k row k, again from the first "
        "where there are more UEs than rows; or any, by the seed"
    )
    computing: Annotated[Computing, Kinds] | None = Field(
        default=None, description="how long local learning takes, where no column says it"
    )
    availability: Annotated[Availability, Kinds] = Field(
        default=AlwaysAvailable(), description="in which rounds it is there, likewise"
    )

    def described(self) -> Iterator[tuple[str, Device]]:
        """Yield what is said of all."""
        yield "devices", Device(computing=self.computing, availability=self.availability)

    def files(self) -> dict[str, Path]:
        """Name the file."""
        return {f"devices:{self.path}": Path(self.path)}

    def table(self, work: Workload) -> DeviceTable:
        """Read the file and assign its rows."""
        columns = self._columns(work.unit)
        count = next(iter(columns.values())).size
        if self.assignment == "one-to-one" and count != work.ues:
            raise ValueError(
                f"{self.path}: {count} rows for cell.ues = {work.ues}: set cell.ues to {count}, or "
                "devices.assignment to in-order or random"
            )
        rows: NDArray[np.int64] = np.arange(work.ues) % count
        if self.assignment == "random":
            rows = work.streams.speed().integers(count, size=work.ues)
        found = {name: values[rows] for name, values in columns.items()}
        table = tabulate(dict(self.described()), np.zeros(work.ues, np.int64), work)
        presence = table.presence
        if "samples_per_s" in found:
            time = work.samples / found.pop("samples_per_s")
            found |= {"compute_time": time, "compute_j": time * found.pop("compute_w")}
        if "mean_on_rounds" in found:
            sojourns = found.pop("mean_on_rounds"), found.pop("mean_off_rounds")
            presence = [Chains(*sojourns, work.streams).present]
        names = tuple(f"{self.path}, {_place(Path(self.path), row)}" for row in range(count))
        return replace(table, class_names=names, class_of=rows, presence=presence, **found)

    def _columns(self, unit: str) -> dict[str, _Numbers]:
        """Read the columns that say what a device is; time and energy only where they count."""
        path, table = Path(self.path), read_table(Path(self.path))
        _require_meant(path, table.columns)
        said = [name for name in COLUMNS if name in table.columns]
        if unit != "seconds":
            said = [name for name in said if name not in _TIMED]
        fixed = AlwaysAvailable()
        for one, other, field, given_too in (
            ("samples_per_s", "compute_w", "computing", self.computing is not None),
            ("mean_on_rounds", "mean_off_rounds", "availability", self.availability != fixed),
        ):
            if field in table.columns:
                raise ValueError(f"{path}: there is no column {field}: give {one} and {other}")
            if (one in said) != (other in said):
                missing = other if one in said else one
                raise ValueError(f"{path}: there is no column {missing} in its first line")
            if one in said and given_too:
                raise ValueError(f"{path}: its column {one} and devices.{field} say the same")
        if unit and self.computing is None and "samples_per_s" not in said:
            hint = "give it and compute_w, or set" if unit == "seconds" else "set"
            raise ValueError(f"{path}: there is no column samples_per_s: {hint} devices.computing")
        if not said:
            raise ValueError(f"{path}: there is no column of {', '.join(COLUMNS)} in it")
        require_once(said, f"{path}: ")
        if table.is_empty():
            raise ValueError(f"{path}: there is no device in it")
        return {name: _column(path, table[name]) for name in said}


def _require_meant(path: Path, names: list[str]) -> None:
    """Raise ``ValueError`` for a column given twice, and for one that looks like another."""
    for name in names:
        if name in COLUMNS:
            continue
        once, marked, _ = name.rpartition("_duplicated_")  # by Polars
        if marked and once in COLUMNS:
            raise ValueError(f"{path}: the column {once} is given twice: leave one of them out")
        begins = [each for each in COLUMNS if _first_word(each) == _first_word(name)]
        near = difflib.get_close_matches(name.lower(), COLUMNS, n=1, cutoff=0.85) or begins
        if near:
            meant = " or ".join(near)
            raise ValueError(f"{path}: there is no column {name}; did you mean {meant}?")


def _first_word(name: str) -> str:
    return name.lower().partition("_")[0]


def _place(path: Path, row: int) -> str:
    return f"row {row}" if path.suffix == ".parquet" else f"line {row + 2}"


def _column(path: Path, column: "pl.Series") -> _Numbers:
    """Read the numbers of a column; ``ValueError`` names the first row without a fitting one."""
    least, most = COLUMNS[column.name]
    texts = column.cast(pl.String).str.strip_chars()
    values = texts.cast(pl.Float64, strict=False)
    wrong = ~values.is_between(least, most).fill_null(value=False)
    if wrong.any():
        row = int(wrong.arg_max() or 0)
        number = values[row]
        text, hint = texts[row] or "nothing", ""
        if number is not None and math.isfinite(number):
            hint = f"; the nearest is {min(max(number, least), most):g}"
        raise ValueError(
            f"{path}, {_place(path, row)}: {column.name} = {text}: must be a number from "
            f"{least:g} to {most:g}{hint}"
        )
    return values.to_numpy()
