"""Updates on their way from the UEs to the access point, and what is kept between rounds."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agewise.core import aggregation as kernels
from agewise.part import Part
from agewise.scheduling import Report

#: A model: one flat vector, so that averaging, compression and transport need not know its meaning.
Params = NDArray[np.float32]
#: Arrays that are kept between rounds, by name.
State = dict[str, NDArray[Any]]


class ArraySpec(NamedTuple):
    """An array of a state: its shape, and the type of its numbers."""

    shape: tuple[int, ...]
    dtype: type[np.float32 | np.float64] = np.float64

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the array takes."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


class StatefulPart(Part):
    """A part of learning that keeps arrays between rounds.

    Its methods get a state and give the state after them. States may be large; they are handed
    over, so that whoever gives one away does not use it any more.
    """

    def state_spec(self, ues: int, length: int) -> Mapping[str, ArraySpec]:
        """Describe the arrays that are kept for ``ues`` models of ``length`` numbers; usually none.

        What a run takes of the memory is worked out from this.
        """
        return {}

    def init_state(self, ues: int, length: int) -> State:
        """Make the state before the first round: zeros."""
        spec = self.state_spec(ues, length)
        return {name: np.zeros(each.shape, each.dtype) for name, each in spec.items()}


class LocalModels(NamedTuple):
    """Models before they are sent: ``models[i]`` is what ``ues[i]`` made of ``start`` in ``t``."""

    start: Params
    models: Params
    ues: NDArray[np.int64]
    t: int


@dataclass(frozen=True, eq=False)
class Updates:
    """Updates that arrived in a round, in which the newest model is ``params``.

    ``models[i]`` is what UE ``ues[i]`` made of the model ``starts[version[i]]``; all started from
    ``params`` unless said otherwise. ``factors[i]`` are those of the policy, or ``None`` if it left
    the weights to the average. ``steps[i]`` is the step size of the local learning behind an update
    and ``step`` that of this round, in units of the first round's. The UEs may be given in any
    order; here they are in rising order, so that no sum depends on who came first.
    """

    params: Params
    models: Params
    ues: NDArray[np.int64]
    factors: NDArray[np.float64] | None = None
    starts: Params = field(default_factory=lambda: np.empty((0, 0), np.float32))
    version: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    step: float = 1.0
    steps: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        if self.models.shape != (self.ues.size, self.params.size):
            raise ValueError(
                f"updates of {self.ues.size} UEs to a model of {self.params.size} numbers need "
                f"models of shape {(self.ues.size, self.params.size)}, not {self.models.shape}"
            )
        if not len(self.starts):
            object.__setattr__(self, "starts", self.params[np.newaxis])
            object.__setattr__(self, "version", np.zeros(self.ues.size, np.int64))
        if not self.steps.size:
            object.__setattr__(self, "steps", np.full(self.ues.size, self.step))
        if (self.ues[1:] > self.ues[:-1]).all():
            return
        order = np.argsort(self.ues)
        ues = self.ues[order]
        repeated = ues[1:] == ues[:-1]
        if repeated.any():
            twice = int(ues[1:][repeated][0])
            raise ValueError(f"UE {twice} sent two updates in a round: give one of each UE")
        for name in ("ues", "models", "version", "steps", "factors"):
            if (array := getattr(self, name)) is not None:
                object.__setattr__(self, name, array[order])

    @property
    def moves(self) -> Params:
        """``[len(ues), length]``: the updates themselves, u_i = w_i - start_i."""
        return self.models - self.starts[self.version]


def update_reports(
    wanted: Collection[Report], start: Params, models: Params
) -> dict[Report, NDArray[np.float64]]:
    """Measure of the updates ``models[i] - start`` what is wanted: their norms."""
    if "update_norms" not in wanted:
        return {}
    return {"update_norms": np.sqrt(kernels.squared_norms(models, start))}


def is_finite(params: Params) -> bool:
    """Tell whether no weight of a model is infinite or not a number."""
    return bool(np.isfinite(params).all())
