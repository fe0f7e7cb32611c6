"""What becomes of updates before they are sent.

A `Compressor` gets a state and the models of UEs, and gives what the access point receives of
them. The state holds what error feedback keeps for the next update of each UE; it changes for UEs
whose update arrives, and no other.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from agewise import scenario
from agewise.core import compression as kernels
from agewise.cost import kept_weights
from agewise.learn.aggregation import Kept, State
from agewise.learn.base import Params


class Trained(NamedTuple):
    """``models[i]`` is what UE ``ues[i]`` made of ``start`` in round ``t``."""

    start: Params
    models: Params
    ues: NDArray[np.int64]
    t: int


class Compressor(Protocol):
    """A lossy code of updates: state in, models in, models and state out."""

    def layout(self, ues: int, length: int) -> dict[str, Kept]:
        """The arrays of a state, for this number of UEs and models of this length."""
        ...

    def send(self, state: State, trained: Trained, key: np.uint64) -> tuple[Params, State]:
        """What arrives of these models; ``key`` decides what is left to chance.

        Both the models and the state are handed over: whoever gives them does not use them again.
        """
        ...


@dataclass(frozen=True)
class Uncompressed:
    """Models arrive as they are."""

    def layout(self, ues: int, length: int) -> dict[str, Kept]:  # noqa: ARG002
        """Nothing is kept."""
        return {}

    def send(self, state: State, trained: Trained, key: np.uint64) -> tuple[Params, State]:  # noqa: ARG002
        """The same models."""
        return trained.models, state


@dataclass(frozen=True)
class RandomRounding:
    """QSGD (Alistarh, Grubic, Li, Tomioka, Vojnovic 2017) with levels 0 to 2^bits - 1.

    A weight v of an update of length r becomes r sign(v) l / s, where s is the last level and l
    one of the two whole numbers around s |v| / r, drawn so that the mean is v.
    """

    bits: int

    def layout(self, ues: int, length: int) -> dict[str, Kept]:  # noqa: ARG002
        """Nothing is kept: the mean is right without."""
        return {}

    def send(self, state: State, trained: Trained, key: np.uint64) -> tuple[Params, State]:
        """The rounded updates."""
        models, levels = np.ascontiguousarray(trained.models), 2.0**self.bits - 1.0
        kernels.round_at_random(models, trained.start, trained.ues, levels, key, trained.t)
        return models, state


@dataclass(frozen=True)
class Largest:
    """The largest weights of an update (top-k; Stich, Cordonnier, Jaggi 2018)."""

    share: float
    error_feedback: bool

    def layout(self, ues: int, length: int) -> dict[str, Kept]:
        """What was not sent, with error feedback."""
        return _unsent(ues if self.error_feedback else 0, length)

    def send(self, state: State, trained: Trained, key: np.uint64) -> tuple[Params, State]:  # noqa: ARG002
        """The largest weights, of the update and what was left of earlier ones."""
        models, start = np.ascontiguousarray(trained.models), trained.start
        count = kept_weights(self.share, start.size)
        kernels.keep_largest(models, start, trained.ues, state["unsent"], count)
        return models, state


@dataclass(frozen=True)
class Signs:
    """The signs of an update times the mean magnitude (Karimireddy, Rebjock, Stich, Jaggi 2019)."""

    error_feedback: bool

    def layout(self, ues: int, length: int) -> dict[str, Kept]:
        """What was not sent, with error feedback."""
        return _unsent(ues if self.error_feedback else 0, length)

    def send(self, state: State, trained: Trained, key: np.uint64) -> tuple[Params, State]:  # noqa: ARG002
        """The scaled signs, of the update and what was left of earlier ones."""
        models = np.ascontiguousarray(trained.models)
        kernels.keep_signs(models, trained.start, trained.ues, state["unsent"])
        return models, state


def make_compressor(settings: scenario.Learn) -> Compressor:
    """The code that a scenario describes."""
    match settings.compression:
        case scenario.Qsgd(bits=bits):
            return RandomRounding(bits)
        case scenario.TopK(share=share, error_feedback=feedback):
            return Largest(share, feedback)
        case scenario.Sign(error_feedback=feedback):
            return Signs(feedback)
        case _:
            return Uncompressed()


def compression_state(compressor: Compressor, ues: int, length: int) -> State:
    """The state before the first round: nothing is left of earlier updates."""
    layout = compressor.layout(ues, length)
    return {name: np.zeros(shape, dtype) for name, (shape, dtype) in layout.items()}


def compression_bytes(settings: scenario.Learn, ues: int, length: int) -> int:
    """What the state takes, for models of this length."""
    layout = make_compressor(settings).layout(ues, length)
    return sum(math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in layout.values())


def keeps_unsent(settings: scenario.Learn) -> bool:
    """Whether the scenario's code keeps a model's length of numbers for every UE."""
    compression = settings.compression
    return isinstance(compression, scenario.TopK | scenario.Sign) and compression.error_feedback


def _unsent(ues: int, length: int) -> dict[str, Kept]:
    return {"unsent": Kept((ues, length), np.float32)}
