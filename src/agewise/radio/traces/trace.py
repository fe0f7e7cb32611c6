"""What a trace is, whatever file it is from."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from agewise.random import Streams

#: Numbers that are looked at together where a whole file is checked.
_CHUNK = 2**18


class Blocks(Protocol):
    """Rounds of numbers, in memory, on the disk or made when they are asked for."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rounds first."""
        ...

    def __getitem__(self, t: Any) -> Any:
        """Round ``t``."""
        ...


@dataclass(frozen=True, eq=False)
class Trace:
    """``gains[round, ue, subchannel]`` that uploads meet, SNR per unit of ``power_budget``.

    ``seen`` is what the access point knows of them, where that differs. ``positions_m`` is
    ``[ue, (x, y)]``, or ``[round, ue, (x, y)]`` of UEs that move.
    """

    gains: Blocks
    seen: Blocks | None = None
    positions_m: Blocks | None = None
    power_budget: float | None = None

    @property
    def moves(self) -> bool:
        """Whether UEs are known to be elsewhere in other rounds."""
        return self.positions_m is not None and len(self.positions_m.shape) == 3

    def positions_at(self, t: int) -> NDArray[np.float64] | None:
        """``[ue, (x, y)]`` of round ``t``, where it is known."""
        if self.positions_m is None:
            return None
        return as_block(self.positions_m[t] if self.moves else self.positions_m[:])

    def drawn(self, size: "Size", streams: Streams) -> "Trace":
        """Itself: nothing about it is random."""
        return self


class Size(NamedTuple):
    """What a run asks of a trace."""

    rounds: int
    ues: int
    subchannels: int
    bandwidth_hz: float | None


class Content(Protocol):
    """What was read from a file; a seed makes a trace of it."""

    def drawn(self, size: Size, streams: Streams) -> Trace:
        """The trace of one run."""
        ...


def as_block(values: Any) -> NDArray[np.float64]:
    """A copy in memory, as kernels take it, of one round on the disk."""
    with np.errstate(over="ignore"):  # a longer float: what is infinite then is found by checks
        return np.array(values, dtype=np.float64, order="C")


def require_gains(path: Path, name: str, gains: Blocks) -> None:
    """Raise ``ValueError`` naming the first gain that is none, in one pass, a part at a time."""
    step = max(1, _CHUNK // max(1, math.prod(gains.shape[1:])))
    for first in range(0, gains.shape[0], step):
        part = as_block(gains[first : first + step])
        bad = ~(np.isfinite(part) & (part >= 0))
        if bad.any():
            t, ue, subchannel = np.unravel_index(int(bad.argmax()), part.shape)
            raise ValueError(
                f"{path}: {name} must be non-negative and finite: in round {first + t} that of UE "
                f"{ue} on subchannel {subchannel} is {part[t, ue, subchannel]}"
            )


def require_size(path: Path, trace: Trace, size: Size) -> None:
    """Raise ``ValueError`` with what to set unless the trace is one for this run."""
    rounds, *others = trace.gains.shape
    if rounds < size.rounds or tuple(others) != (size.ues, size.subchannels):
        raise ValueError(
            f"{path}: the trace has (rounds, UEs, subchannels) = {tuple(trace.gains.shape)}, the "
            f"scenario {tuple(size[:3])}: set run.rounds to at most {rounds}, "
            f"cell.ues={others[0]} and cell.subchannels={others[1]}"
        )
