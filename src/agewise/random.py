"""Named random streams: every draw of a run follows from (seed, what it is for, round).

No stream depends on what another one drew, so two policies meet the same placement, channels and
data whatever they did before, and a round can be drawn without the rounds before it.
"""

import functools
from dataclasses import dataclass
from typing import Final

import numpy as np

from agewise.checks import whole_number

# Numbers, not positions in a list: a stream keeps its draws when another one is added.
_PLACEMENT: Final = 1
_CHANNEL: Final = 2
_POLICY: Final = 3
_PARTITION: Final = 4
_MODEL: Final = 5
_SGD: Final = 6
_ARRIVALS: Final = 7
_SPEED: Final = 8
_TIES: Final = 9


@dataclass(frozen=True)
class Streams:
    """The random streams of one run.

    Streams are generators; those of hot loops are keys, from which the kernels draw
    (:mod:`agewise.core.random`).

    >>> Streams(7).policy(3).random() == Streams(7).policy(3).random()
    True
    >>> Streams(7).policy(3).random() == Streams(7).policy(4).random()
    False
    """

    seed: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", whole_number("seed", self.seed))

    def placement(self) -> np.random.Generator:
        """Where the UEs stand."""
        return self._stream(_PLACEMENT, 0)

    @functools.cached_property
    def channel(self) -> np.uint64:
        """The key of the fading; the kernel mixes it with the round."""
        return self._key(_CHANNEL)

    def policy(self, t: int) -> np.random.Generator:
        """The scheduler's own choices in round ``t``: ties, random orders."""
        return self._stream(_POLICY, t)

    def partition(self) -> np.random.Generator:
        """Which samples lie on which UE."""
        return self._stream(_PARTITION, 0)

    def model(self) -> np.random.Generator:
        """The initial model."""
        return self._stream(_MODEL, 0)

    def speed(self) -> np.random.Generator:
        """How fast the UEs compute."""
        return self._stream(_SPEED, 0)

    @functools.cached_property
    def sgd(self) -> np.uint64:
        """The key of the samples that local learning draws.

        A generator for each UE would cost more than its training. The kernels mix this key
        with the round, the UE and the count of the draw instead, so what UE k draws in round t
        depends on (seed, t, k) alone.
        """
        return self._key(_SGD)

    @functools.cached_property
    def arrivals(self) -> np.uint64:
        """The key of when UEs have something new to send; mixed with the slot and the UE."""
        return self._key(_ARRIVALS)

    @functools.cached_property
    def ties(self) -> np.uint64:
        """The key of who goes first among equals where millions of slots are scheduled.

        It takes the place of `policy` there: a generator for each slot would cost more than
        its schedule.
        """
        return self._key(_TIES)

    def _key(self, name: int) -> np.uint64:
        sequence = np.random.SeedSequence(self.seed, spawn_key=(name, 0))
        return np.uint64(sequence.generate_state(1, np.uint64)[0])

    def _stream(self, name: int, t: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(name, t)))
