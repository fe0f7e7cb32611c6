"""Counter-based random numbers for the kernels: each follows from a key and a count alone.

A key of a run is mixed with the round and, where each has its own, the UE; the n-th number of
that key is a hash of key and n. Any of them can be had without the ones before it, in any order
and on any thread.
"""

import math

import numpy as np

from agewise.core.elementary import cos_sin, log_unit
from agewise.core.jit import inlined, kernel, njit

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@njit
def _mix(x):
    """A bijection of 64 bits in which every bit of the result depends on all.

    The finaliser of splitmix64 (Steele, Lea, Flood 2014).
    """
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit
def fold_in(key, index):
    """The key of one round, or of one UE in a round, under ``key``."""
    return _mix(key ^ _mix(np.uint64(index) + _GOLDEN))


@njit
def random_bits(key, count):
    """The 64 random bits number ``count`` of this key."""
    return _mix(key + np.uint64(count) * _GOLDEN)


@njit
def randint(key, count, size):
    """Number ``count``, uniform on 0..size-1 (its bias is below size / 2^32)."""
    return np.int64(((random_bits(key, count) >> np.uint64(32)) * np.uint64(size)) >> np.uint64(32))


@njit
def uniform(word):
    """The upper 53 bits of a word as a number in [0, 1)."""
    return np.float64(word >> np.uint64(11)) * 2.0**-53


@kernel
def uniforms(key, index, count):
    """``count`` numbers in [0, 1) of ``key`` mixed with ``index``."""
    own_key, numbers = fold_in(key, index), np.empty(count)
    for i in range(count):
        numbers[i] = uniform(random_bits(own_key, i))
    return numbers


@inlined
def exponential(word):
    """An exponential number of mean 1 from 64 random bits, by the inverse transform."""
    return -log_unit(1.0 - uniform(word))


@inlined
def complex_normal(key, count):
    """Number ``count``, complex normal of mean power 1: real and imaginary part (Box, Muller 1958).

    Without branches: loops over it become vector instructions.
    """
    count = np.uint64(2) * np.uint64(count)
    radius = math.sqrt(exponential(random_bits(key, count)))
    cosine, sine = cos_sin(uniform(random_bits(key, count + np.uint64(1))))
    return radius * cosine, radius * sine
