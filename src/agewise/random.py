"""Named random streams: every draw of a run follows from (seed, what it is for, round).

No stream depends on what another one drew, so two policies meet the same placement, channels and
data whatever they did before, and a round can be drawn without the rounds before it.
"""

import functools
import zlib
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

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
_CSI: Final = 20
_RICIAN: Final = 21
_COMPRESSION: Final = 30
_BATTERY: Final = 31
_DEVICES: Final = 32
_AVAILABILITY: Final = 33
_MOVEMENT: Final = 40
_LOS: Final = 41
_SHADOWING: Final = 42
_INTERFERENCE: Final = 43
_INDOOR: Final = 44
_REPLAY: Final = 50
_OWN: Final = 2**31  # and on, by a checksum of the name


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
        """Generator of where the UEs stand."""
        return self._stream(_PLACEMENT, 0)

    def indoor(self) -> np.random.Generator:
        """Generator of which UEs are inside buildings, and how far."""
        return self._stream(_INDOOR, 0)

    @functools.cached_property
    def movement(self) -> np.uint64:
        """The key of how the UEs move; mixed with the UE."""
        return self._key(_MOVEMENT)

    @functools.cached_property
    def los(self) -> np.uint64:
        """The key of where UEs are in line of sight."""
        return self._key(_LOS)

    @functools.cached_property
    def shadowing(self) -> np.uint64:
        """The key of the fields of shadowing."""
        return self._key(_SHADOWING)

    @functools.cached_property
    def interference(self) -> np.uint64:
        """The key of who transmits in neighbouring cells; mixed with the round."""
        return self._key(_INTERFERENCE)

    @functools.cached_property
    def channel(self) -> np.uint64:
        """The key of the fading; the kernel mixes it with the round."""
        return self._key(_CHANNEL)

    @functools.cached_property
    def csi(self) -> np.uint64:
        """The key of errors of CSI; the kernel mixes it with the round."""
        return self._key(_CSI)

    def rician(self) -> np.random.Generator:
        """Generator of how strong the UEs' direct paths are."""
        return self._stream(_RICIAN, 0)

    def policy(self, t: int) -> np.random.Generator:
        """Generator of the scheduler's own choices in round ``t``: ties, random orders."""
        return self._stream(_POLICY, t)

    def replay(self, t: int) -> np.random.Generator:
        """Generator of who is heard in round ``t`` of a replay."""
        return self._stream(_REPLAY, t)

    def partition(self) -> np.random.Generator:
        """Generator of which samples lie on which UE."""
        return self._stream(_PARTITION, 0)

    def model(self) -> np.random.Generator:
        """Generator of the initial model."""
        return self._stream(_MODEL, 0)

    def speed(self) -> np.random.Generator:
        """Generator of how fast the UEs compute."""
        return self._stream(_SPEED, 0)

    def battery(self) -> np.random.Generator:
        """Generator of how much energy the UEs have."""
        return self._stream(_BATTERY, 0)

    def devices(self) -> np.random.Generator:
        """Generator of which UE is of which class."""
        return self._stream(_DEVICES, 0)

    @functools.cached_property
    def availability(self) -> np.uint64:
        """The key of when UEs come and go; mixed with the round and the UE."""
        return self._key(_AVAILABILITY)

    @functools.cached_property
    def compression(self) -> np.uint64:
        """The key of what compression leaves to chance; mixed with the round and the UE."""
        return self._key(_COMPRESSION)

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

    def own(self, name: str, t: int = 0) -> np.random.Generator:
        """Return the generator of a part of the user's own in round ``t``, by a name of its own."""
        return self._stream(_OWN + zlib.crc32(name.encode()) // 2, t)

    def _key(self, name: int) -> np.uint64:
        return np.uint64(self._seed_sequence(name, 0).generate_state(1, np.uint64)[0])

    def _stream(self, name: int, t: int) -> np.random.Generator:
        return np.random.Generator(np.random.PCG64(self._seed_sequence(name, t)))

    def _seed_sequence(self, name: int, t: int) -> np.random.SeedSequence:
        """``SeedSequence(seed, spawn_key=(name, t))``; with its words at hand it takes a third."""
        words = self._words.copy()
        words[-2], words[-1] = name, t
        return np.random.SeedSequence(words)

    @functools.cached_property
    def _words(self) -> NDArray[np.uint32]:
        """The seed in words of 32 bits, at least four, and places for the name and the round."""
        count = max(4, -(-self.seed.bit_length() // 32))
        return np.frombuffer(self.seed.to_bytes(4 * count + 8, "little"), "<u4").astype(np.uint32)


#: Beyond this NumPy draws normal numbers by a logarithm of the C library.
_NORMAL_TAIL: Final = 3.65


def normal(
    rng: np.random.Generator,
    shape: int | tuple[int, ...],
    kind: type[np.float64] | type[np.float32] = np.float64,
) -> NDArray[Any]:
    """Standard normal numbers of float64 or float32, the same to the bit on every machine.

    NumPy's, but those of the tail (3 of 10,000), whose last bits differ between C libraries, are
    rounded to the next smaller kind of number.
    """
    drawn = rng.standard_normal(shape, kind)
    tail = np.abs(drawn) > _NORMAL_TAIL
    drawn[tail] = drawn[tail].astype(np.float32 if kind is np.float64 else np.float16)
    return drawn
