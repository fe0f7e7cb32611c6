"""Devices: what a UE is, and a table of the UEs of a run."""

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from agewise.devices.availability import AlwaysAvailable, Availability
from agewise.devices.computing import ComputeCost, Computing, Workload, log_normal
from agewise.part import LARGE, Kinds, Part, State, given
from agewise.units import db_to_linear

_Numbers = NDArray[np.float64]
_Mask = NDArray[np.bool_]
#: Columns of a file of devices, with their lowest and highest value.
COLUMNS: Final = {
    "power_db": (-300.0, 300.0),
    "transmit_power_w": (1e-12, LARGE),
    "payload_share": (1e-9, LARGE),
    "payload_bits": (1e-9, 1e18),
    "samples": (1e-9, LARGE),
    "battery_j": (1e-12, 1e15),
    "samples_per_s": (1e-9, 1e15),
    "compute_w": (0.0, 1e15),
    "mean_on_rounds": (1.0, LARGE),
    "mean_off_rounds": (1.0, LARGE),
}


def _number(name: str, description: str, default: float | None = None) -> Any:
    least, most = COLUMNS[name]
    return Field(default=default, ge=least, le=most, description=description)


class Device(Part):
    """What a UE is. What is not said is as the cell, the threshold and the data have it."""

    power_db: float | None = _number("power_db", "power budget over that of the cell, in dB")
    transmit_power_w: float | None = _number(
        "transmit_power_w", "power budget in watts instead, where that of the cell is in watts"
    )
    payload_share: float | None = _number(
        "payload_share", "bits of an upload over what the threshold and the model make of it"
    )
    payload_bits: float | None = _number("payload_bits", "bits of an upload instead")
    computing: Annotated[Computing, Kinds] | None = Field(
        default=None,
        description="how long local learning takes, and what it costs: to be given if and only if "
        "timing counts time",
    )
    samples: float = _number(
        "samples", "how many samples it has, over those of others; all are shared out", 1.0
    )
    samples_sigma: float = Field(
        default=0.0, ge=0, le=20, description="deviation of the logarithm of that across UEs"
    )
    battery_j: float | None = _number(
        "battery_j",
        "energy for the whole run in joules, median over the UEs; a UE without any left has gone; "
        "left out, it does not end",
    )
    battery_sigma: float = Field(
        default=0.0, ge=0, le=20, description="deviation of its logarithm across UEs"
    )
    availability: Annotated[Availability, Kinds] = Field(
        default=AlwaysAvailable(), description="in which rounds it is there"
    )

    @model_validator(mode="after")
    def _say_once(self) -> Self:
        require_once([name for name, value in self if value is not None])
        if self.battery_sigma and self.battery_j is None:
            raise ValueError("battery_sigma goes with battery_j, which is missing")
        return self


def require_once(said: Collection[str], where: str = "") -> None:
    """Raise ``ValueError`` where names of fields or columns say the same."""
    for one, other in (("power_db", "transmit_power_w"), ("payload_share", "payload_bits")):
        if one in said and other in said:
            raise ValueError(f"{where}{one} and {other} say the same: leave one of them out")


@dataclass(frozen=True, eq=False)
class DeviceTable:
    """Table of the UEs of one run, ``[ue]`` each.

    ``class_of`` has the index of the class in ``class_names``. Local learning takes
    ``compute_time`` in the unit of the timing and ``compute_j``; what a battery holds is infinite
    where energy does not end. ``presence`` tells for each class who would be there in a round.
    Other names are those of `Device`, NaN where one of two ways to say it was not taken.
    """

    class_names: tuple[str, ...]
    class_of: NDArray[np.int64]
    power_db: _Numbers
    transmit_power_w: _Numbers
    payload_share: _Numbers
    payload_bits: _Numbers
    samples: _Numbers
    samples_sigma: _Numbers
    battery_j: _Numbers
    compute_time: _Numbers
    compute_j: _Numbers
    presence: Sequence[Callable[[int], _Mask]]

    def power_budgets(self, power_budget: float, unit_w: float) -> _Numbers:
        """Work out the power budget of each UE, in units of ``unit_w`` watts as the cell's is."""
        levels_db, which = np.unique(self.power_db, return_inverse=True)
        factors = np.array([db_to_linear(each) for each in levels_db.tolist()])
        own_w = self.transmit_power_w
        if np.isnan(unit_w) and not np.isnan(own_w).all():
            raise ValueError(
                "transmit_power_w of devices needs the power budget of the cell in watts: give "
                "power_db instead, or set channel.link to kind budget"
            )
        return np.where(np.isnan(own_w), power_budget * factors[which], own_w / unit_w)

    def payloads(self, bits: float) -> _Numbers:
        """Work out the bits of an upload of each UE, where nothing said makes so many."""
        return np.where(np.isnan(self.payload_bits), bits * self.payload_share, self.payload_bits)

    def sample_shares(self, rng: np.random.Generator) -> _Numbers:
        """Draw the shares of all samples: ``float64[ue]`` with a sum of 1."""
        weights = self.samples
        if self.samples_sigma.any():
            weights = log_normal(weights, self.samples_sigma, rng, weights.size)
        return np.asarray(weights / weights.sum())

    def available(self, t: int) -> _Mask:
        """Tell who is there in round ``t``."""
        masks = [present(t) for present in self.presence]
        if len(masks) == 1:
            return masks[0]
        return np.stack(masks)[self.class_of, np.arange(self.class_of.size)]


def tabulate(
    classes: Mapping[str, Device], class_of: NDArray[np.int64], work: Workload
) -> DeviceTable:
    """Put together what each UE is as one of its class.

    Every class is drawn for all UEs from the same streams, so that classes which do not differ in
    something have in it what UEs that are alike have.
    """

    def column(name: str, default: float = np.nan) -> _Numbers:
        said = [getattr(each, name) for each in classes.values()]
        return np.array([default if x is None else x for x in said], np.float64)[class_of]

    idle = ComputeCost(np.zeros(work.ues), np.zeros(work.ues))
    costs = np.array([
        idle if (part := each.computing) is None
        else given(part, "costs", np.array(part.costs(work)), (2, work.ues))
        for each in classes.values()
    ])  # fmt: skip
    time, joules = costs[class_of, :, np.arange(work.ues)].T
    battery_j = column("battery_j", np.inf)
    if np.isfinite(battery_j).any():
        sigma = column("battery_sigma")
        battery_j = log_normal(battery_j, sigma, work.streams.battery(), work.ues)
    return DeviceTable(
        class_names=tuple(classes),
        class_of=class_of,
        power_db=column("power_db", 0.0),
        transmit_power_w=column("transmit_power_w"),
        payload_share=column("payload_share", 1.0),
        payload_bits=column("payload_bits"),
        samples=column("samples"),
        samples_sigma=column("samples_sigma"),
        battery_j=battery_j,
        compute_time=time,
        compute_j=joules,
        presence=[
            functools.partial(_present, part, part.prepare(work), work.ues)
            for part in (each.availability for each in classes.values())
        ],
    )


def _present(part: Availability, state: State, ues: int, t: int) -> _Mask:
    """Tell who would be there in round ``t``, were all UEs of one class."""
    mask = part.present(state, t)
    if type(part).__module__ == Availability.__module__:
        return mask
    return np.asarray(given(part, "present", np.asarray(mask, np.float64), (ues,)) != 0.0)
