"""One experiment, whatever the policy and the seed."""

import hashlib
import json
import math
import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError, model_validator

from agewise import display
from agewise.checks import nearest, path_of, short
from agewise.core.proof import IN_TIME
from agewise.cost import Broadcast, CostModel, Timing
from agewise.data import Data
from agewise.devices import AlikeDevices, Devices, DeviceTable, Workload
from agewise.learn import Learn, NoCompression
from agewise.pace import Pace, Rounds
from agewise.part import Kinds, Part, Unloaded, Values, is_code, kind_of, own_parts, values_of
from agewise.radio import Cell, Channel, ChannelModel
from agewise.random import Streams
from agewise.scenario import toml
from agewise.scenario.errors import ScenarioError, explain, require_known
from agewise.scenario.measurement import Measurement
from agewise.scheduling import NoPause, Retry
from agewise.spectrum.uplink import read_only
from agewise.threshold import Threshold, TimeLeft

_PRESETS = files("agewise.scenario").joinpath("presets")
_SomePart = TypeVar("_SomePart", bound=Part)


class Scenario(Part):
    """What is simulated: the cell and its channel, the data, the learning and the run."""

    cell: Cell
    channel: Annotated[ChannelModel, Kinds] = Field(description="what the uploads meet")
    threshold: Annotated[Threshold, Kinds] = Field(
        description="the rate that a scheduled UE must reach"
    )
    devices: Annotated[Devices, Kinds] = Field(
        default=AlikeDevices(), description="what the UEs are"
    )
    timing: Annotated[Timing, Kinds] = Field(description="how long a round takes the UEs")
    pace: Annotated[Pace, Kinds] = Field(
        default=Rounds(), description="whether rounds wait for those scheduled"
    )
    retry: Annotated[Retry, Kinds] = Field(
        default=NoPause(), description="when a UE whose uploads failed is eligible again"
    )
    data: Data
    learn: Learn
    run: Measurement

    @classmethod
    def preset(cls, name: str) -> Self:
        """A named scenario of the package; `presets` lists them."""
        if name not in presets():
            raise ScenarioError(f"there is no preset {name!r}; {nearest(str(name), presets())}")
        text = _PRESETS.joinpath(f"{name}.toml").read_text(encoding="utf-8")
        return cls.read(toml.parse(text, f"preset {name}"), f"preset {name}")

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """The scenario in a TOML file; `ScenarioError` names the file and the key at fault."""
        file = path_of("path", path)
        try:
            text = file.read_text(encoding="utf-8-sig")  # a byte-order mark is fine
        except (OSError, UnicodeDecodeError) as error:
            raise ScenarioError(f"{path}: cannot be read: {error}") from error
        return cls.read(toml.parse(text, str(path)), str(path), file.resolve().parent)

    @classmethod
    def read(
        cls,
        values: Mapping[str, object],
        source: str = "",
        folder: Path | None = None,
        *,
        load_code: bool = False,
    ) -> Self:
        """The scenario of these values; `ScenarioError` begins with the ``source``.

        Paths that are relative to the scenario's file are below ``folder``, which is that of the
        file; without one they are refused. Code that the scenario names is run only if it is to be
        loaded (`loaded`).
        """
        try:
            return _located(cls.model_validate(values, context={"load_code": load_code}), folder)
        except ValidationError as error:
            problem = explain(error, cls)
        except ScenarioError as error:
            problem = str(error)
        except RecursionError:
            problem = "tables are nested too deeply"
        raise ScenarioError(f"{source}: {problem}" if source else problem)

    def loaded(self) -> Self:
        """The scenario with the classes of the user's own, whose files are run for that."""
        if not any(issubclass(each, Unloaded) for each in own_parts(self).values()):
            return self
        return self.read(values_of(self), load_code=True)

    def with_(self, /, **changes: Any) -> Self:
        """A copy with other values, by dotted names: ``**{"learn.local_steps": 20}``.

        A section that comes in kinds takes the name of a kind, or a mapping with its fields;
        fields that both kinds have keep their values. ``None`` takes an optional value away. All
        changes are made together, in any order.
        """
        values = values_of(self)
        own = {name for name in changes if _is_in_own(name, values, changes)}
        kinds = {name: [] if name in own else require_known(name, type(self)) for name in changes}
        # Kinds first, outer ones before inner ones, for a kind decides which fields there are.
        for name in sorted(changes, key=lambda name: (not kinds[name], name.count("."))):
            if kinds[name]:
                _set_section(values, name, changes[name], kinds[name])
            elif name.endswith(".kind"):
                section = name.removesuffix(".kind")
                _set_section(values, section, changes[name], require_known(section, type(self)))
            else:
                _set_value(values, name, changes[name])
        return self.read(values)

    def make_channel(self, streams: Streams) -> Channel:
        """Return the channel of one run: what is random in it follows from the streams."""
        return self.loaded().channel.start(self.cell, self.run.rounds, streams)

    @property
    def model_length(self) -> int:
        """How many numbers the model has; the data set is read for that."""
        return self.learn.model.length(self.data.load())

    @property
    def rate_threshold(self) -> float:
        """R_s in bits per real channel use; a model's length is looked up if it follows from it."""
        if self.threshold.needs_model:
            bits = self._upload_bits(self.model_length)
        else:
            bits = self.threshold.upload_bits(0.0)  # a compression need not be loaded for that
        return self.threshold.rate_for(bits, self._bandwidth_hz)

    def _upload_bits(self, length: int) -> float:
        return self.threshold.upload_bits(self.learn.compression.payload_bits(length))

    @property
    def _bandwidth_hz(self) -> float:
        return self.cell.subchannel_bandwidth_hz or math.nan  # the validator asks for one

    def workload(self, streams: Streams) -> Workload:
        """What the UEs of a run have to do."""
        samples = self.learn.local_steps * self.learn.batch_size
        return Workload(self.cell.ues, self.run.rounds, samples, self.timing.unit, streams)

    def device_table(self, streams: Streams) -> DeviceTable:
        """What each UE of a run is."""
        return self.devices.table(self.workload(streams))

    def cost_model(
        self, devices: DeviceTable, power_budget: float, length: int | None = None
    ) -> CostModel:
        """What uploads need and rounds cost, on a channel of this power budget.

        ``length`` is that of the model; it is looked up where it matters and is not given.
        """
        if length is None:
            matters = self.threshold.needs_model or not np.isnan(devices.payload_bits).all()
            matters = matters or self.timing.varying_downlink is not None
            length = self.model_length if matters else 1
        timing, upload_s, bits = self.timing, self.threshold.upload_s, self._upload_bits(length)
        slot_s, clock = timing.slot_seconds(upload_s), timing.clock(devices, upload_s, power_budget)
        unit_w = clock.watts if clock else 1.0 if self.channel.is_in_watts else math.nan
        compute, period = timing.computing_slots(devices, upload_s), self.pace.slots_of(slot_s)
        deadline = period or timing.deadline_after(upload_s)
        begins = clock.downlink_s / slot_s if clock and period else 0.0
        left = TimeLeft(deadline - begins - compute, slot_s)
        threshold, slots = self.threshold.uploads(devices, bits, self._bandwidth_hz, left)
        if period is not None:
            self._require_ready(devices, begins + compute, slots, period)
        return CostModel(
            read_only(devices.payloads(bits)),
            read_only(devices.power_budgets(power_budget, unit_w)),
            read_only(threshold),
            slots,
            compute,
            deadline,
            clock,
            period,
            self._broadcast(power_budget, length),
        )

    def _require_ready(
        self,
        devices: DeviceTable,
        computed: NDArray[np.float64],
        upload: NDArray[np.float64],
        period: float,
    ) -> None:
        """Raise ``ValueError`` where a UE, or all of a class, can never have an update in time."""
        if (upload > period * IN_TIME).any():
            ue = int(upload.argmax())
            raise ValueError(
                f"devices ({devices.class_names[devices.class_of[ue]]}): an upload at the rate "
                f"threshold takes UE {ue} {upload[ue]:g} slots, so it is never ready in periods of "
                f"{period:g}: lower its payload, or raise the period to {upload[ue]:g} slots"
            )
        rounds, needed = self.run.rounds, (computed + upload) / period
        is_ready = needed <= rounds * IN_TIME
        for index in np.setdiff1d(devices.class_of, devices.class_of[is_ready]).tolist():
            least = float(needed[devices.class_of == index].min())
            said = (self.pace.slots_of(1.0) or period) * least / rounds  # in the unit of the pace
            raise ValueError(
                f"devices ({devices.class_names[index]}): no UE is ready within run.rounds = "
                f"{rounds}, for computing and upload take {least:,.6g} periods: raise run.rounds "
                f"to {math.ceil(least)}, or the period of the pace to {said:.6g}"
            )

    def _broadcast(self, power_budget: float, length: int) -> Broadcast | None:
        """What a downlink that depends on the channel sends, and how."""
        downlink = self.timing.varying_downlink
        if downlink is None:
            return None
        bits = NoCompression().payload_bits(length)  # the model is sent whole
        return Broadcast(downlink, power_budget, bits, self._bandwidth_hz)

    def resolved(self) -> Values:
        """Every value that is set, as plain data."""
        return self.model_dump(mode="json", exclude_none=True)

    def _repr_html_(self) -> str:
        """What the sections say, and where the UEs of seed 0 are."""
        sections = {name: _said(values) for name, values in self.resolved().items()}
        try:
            places = self.loaded().make_channel(Streams(0)).block(0).positions_m
        except (ValueError, OSError):  # a file that it names is not there
            places = None
        label = "UEs around the access point, seed 0"
        picture = "" if places is None else display.dots(places, label)
        return display.facts("Scenario", sections, picture)

    def to_toml(self) -> str:
        """A complete file with every field and kind explained, which `load` reads back."""
        return toml.write(self)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        self.channel.check(self.cell)
        threshold, upload_s = self.threshold, self.threshold.upload_s
        if threshold.is_timed and self.cell.subchannel_bandwidth_hz is None:
            raise ValueError(
                f"threshold.kind = {threshold.kind} needs cell.subchannel_bandwidth_hz"
            )
        if self.timing.varying_downlink and self.cell.subchannel_bandwidth_hz is None:
            raise ValueError("timing.downlink needs cell.subchannel_bandwidth_hz")
        in_watts, unit = self.channel.is_in_watts, self.timing.unit
        self.timing.require_fitting(upload_s, link_budget=in_watts)
        by_writer = self.data.partition.by_writer
        self.devices.require_fitting(
            unit, in_watts=in_watts or unit == "seconds", by_writer=by_writer
        )
        self._require_pace(upload_s)
        if threshold.by_time_left:
            self._require_time()
        elif not threshold.needs_model:
            _ = self.rate_threshold  # refuses a payload that no rate carries
        return self

    def _require_time(self) -> None:
        """Raise ``ValueError`` where a round has no time that could be left to an upload."""
        ends = self.pace.kind != "rounds" or self.timing.deadline_after(None) < math.inf
        if self.timing.unit != "seconds" or not ends:
            raise ValueError(
                "threshold.kind = time-left needs to know when a round ends: set timing.kind to "
                "seconds with a deadline_s, or give the pace a period"
            )
        if self.timing.varying_downlink is not None:
            raise ValueError(
                "threshold.kind = time-left needs to know how long the model takes: set "
                "timing.downlink to kind constant"
            )

    def _require_pace(self, upload_s: float | None) -> None:
        """Raise ``ValueError`` where the times or local learning do not fit the pace."""
        timing, learn = self.timing, self.learn
        period = self.pace.slots_of(timing.slot_seconds(upload_s))
        if period is None:
            return
        if timing.kind == "none":
            raise ValueError("pace.kind = periodic needs times: timing.kind = slots or seconds")
        if timing.deadline_after(upload_s) < math.inf:
            raise ValueError(
                "timing has a deadline, and with pace.kind = periodic the period is one: leave "
                "the deadline out"
            )
        if period < (least := timing.least_period(upload_s)):
            said = self.pace.slots_of(1.0) or period  # in the unit in which it is said
            raise ValueError(
                f"pace has a period of {said:g}, and the model and one upload at the rate "
                f"threshold take longer: the nearest is {least * said / period:g}"
            )
        if learn.local.needs_rounds:
            raise ValueError(
                f"learn.local = {learn.local.kind!r} needs updates that start from the newest "
                'model: pace = "rounds", or learn.local = "none"'
            )
        if learn.aggregation.remembers_all and learn.staleness.normalised_by == "weights":
            raise ValueError(
                f"learn.aggregation = {learn.aggregation.kind!r} remembers updates at their full "
                'weight: learn.staleness.normalised_by = "data"'
            )


def require_scenario(value: object) -> None:
    """Raise ``ValueError`` unless this is a scenario; a name or a file is not one yet."""
    if not isinstance(value, Scenario):
        hint = ""
        if isinstance(value, str | Path):
            make = "preset" if str(value) in presets() else "load"
            hint = f': give Scenario.{make}("{value}")'
        raise ScenarioError(f"scenario must be a Scenario, not {short(repr(value))}{hint}")


def short_hash(scenario: Scenario) -> str:
    """Six letters and digits that differ between scenarios, for the names of folders."""
    text = json.dumps(scenario.resolved(), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:6]


def _said(values: object) -> str:
    """The values of a section in a line, without what is not given."""
    if not isinstance(values, Mapping):
        return str(values)
    known = {name: _said(value) for name, value in values.items() if value is not None}
    kind, rest = known.pop("kind", ""), ", ".join(f"{name} {text}" for name, text in known.items())
    return f"{kind} ({rest})" if kind and rest else kind or rest


def presets() -> list[str]:
    """The names of the package's scenarios."""
    return sorted(file.name.removesuffix(".toml") for file in _PRESETS.iterdir())


def _located(section: _SomePart, folder: Path | None, name: str = "") -> _SomePart:
    """The section in which no path, however deep inside, is relative to the scenario's file.

    ``folder`` is that of the file, ``None`` if the scenario is from none, and ``name`` the dotted
    name of the section.
    """
    changed: Values = {}
    for key, inner in section:
        if isinstance(inner, Part):
            moved = _located(inner, folder, f"{name}.{key}".lstrip("."))
            if moved is not inner:
                changed[key] = moved
    if getattr(section, "relative_to", None) == "scenario-file":
        if folder is None:
            raise ScenarioError(
                f"{name}.relative_to = 'scenario-file': this scenario is not read from a file; "
                "give working-folder, or an absolute path"
            )
        changed |= _below(folder, section) | {"relative_to": "working-folder"}
    if folder is not None and isinstance(section, Unloaded):
        changed["kind"] = _code_below(folder, getattr(section, "kind", ""))
    return section.model_copy(update=changed) if changed else section


def _code_below(folder: Path, kind: str) -> str:
    """The kind ``file.py:Class`` of a scenario's file, whose code stands in this folder."""
    file, _, name = kind.rpartition(":")
    if not file:
        return kind
    found = os.path.relpath(folder / file)
    return f"{folder / file if found.startswith('..') else found}:{name}"


def _below(folder: Path, section: Part) -> dict[str, str]:
    """What the section names, in this folder: a path, or the source of a module behind one."""
    key = "path" if "path" in type(section).model_fields else "source"
    given = getattr(section, key)
    return {} if given is None else {key: str(folder / given)}


def _is_in_own(name: str, values: Mapping[str, object], changes: Mapping[str, object]) -> bool:
    """Whether a dotted name is of a field in a part of the user's own, before or by the changes."""
    *path, key = name.split(".")
    above = ""
    inner: object = values
    for step in path:
        above = f"{above}.{step}".lstrip(".")
        inner = inner.get(step) if isinstance(inner, Mapping) else None
        match changes.get(f"{above}.kind", changes.get(above, inner)):
            case {"kind": str(kind)} | str(kind) if key != "kind" and is_code(kind):
                return True
    return False


def _parent(values: Values, name: str) -> tuple[Values, str]:
    """The table in which a dotted name's last step stands, and that step."""
    *path, key = name.split(".")
    for step in path:
        match values.setdefault(step, {}):
            case dict() as values:
                pass
            case Part():
                raise ScenarioError(f"{name}: {step} is an object of your own: give another one")
            case other:
                raise ScenarioError(f"there is no {name}: {step} is {other!r}")
    return values, key


def _set_section(values: Values, name: str, value: object, kinds: list[type[Part]]) -> None:
    """Put a section, or switch to the kind of this name."""
    table, key = _parent(values, name)
    value = "none" if value is None else value
    if value == "none" and "none" not in map(kind_of, kinds):
        table.pop(key, None)  # a section that may be left out
        return
    if not isinstance(value, str):
        table[key] = _copied(value)  # changes below it are not the caller's
        return
    chosen = [section for section in kinds if kind_of(section) == value]
    kept = table.get(key, {}) if chosen else {}
    table[key] = {k: v for k, v in kept.items() if k in chosen[0].model_fields} | {"kind": value}


def _copied(value: object, levels: int = 40) -> object:
    if not isinstance(value, dict):
        return value
    if levels == 0:
        raise ScenarioError("tables are nested too deeply")
    return {k: _copied(v, levels - 1) for k, v in value.items()}


def _set_value(values: Values, name: str, value: object) -> None:
    table, key = _parent(values, name)
    if value is None or value == "none":
        table.pop(key, None)
    else:
        table[key] = value
