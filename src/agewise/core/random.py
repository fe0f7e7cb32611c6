"""Counter-based random numbers for the kernels: each follows from a key and a count alone.

A key of a run is mixed with the round and, where each has its own, the UE; the n-th number of
that key is a hash of key and n. Any of them can be had without the ones before it, in any order
and on any thread.
"""

import numpy as np
from numba import njit

from agewise.core.jit import kernel

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@njit
def mix(x):
    """A bijection of 64 bits in which every bit of the result depends on all.

    The finaliser of splitmix64 (Steele, Lea, Flood 2014).
    """
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit
def subkey(key, index):
    """The key of one round, or of one UE in a round, under ``key``."""
    return mix(key ^ mix(np.uint64(index) + _GOLDEN))


@njit
def bits(key, count):
    """The 64 random bits number ``count`` of this key."""
    return mix(key + np.uint64(count) * _GOLDEN)


@njit
def fill_bits(key, first, words):
    """Fill ``words`` with the random bits number ``first`` and on: a loop that vectorises."""
    for i in range(words.size):
        words[i] = bits(key, first + np.uint64(i))


@njit
def below(key, count, size):
    """Number ``count``, uniform on 0..size-1 (its bias is below size / 2^32)."""
    return np.int64(((bits(key, count) >> np.uint64(32)) * np.uint64(size)) >> np.uint64(32))


@njit
def unit(word):
    """The upper 53 bits of a word as a number in [0, 1)."""
    return np.float64(word >> np.uint64(11)) * 2.0**-53


@kernel
def uniforms(key, index, count):
    """``count`` numbers in [0, 1) of ``key`` mixed with ``index``."""
    own_key, numbers = subkey(key, index), np.empty(count)
    for i in range(count):
        numbers[i] = unit(bits(own_key, i))
    return numbers


# ------------------------------------------------------- NumPy's SeedSequence, for one stream each
_INIT_A, _MULT_A = np.uint32(0x43B0D7E5), np.uint32(0x931E8875)
_INIT_B, _MULT_B = np.uint32(0x8B51F9DD), np.uint32(0x58F38DED)
_MIX_LEFT, _MIX_RIGHT = np.uint32(0xCA01F9DD), np.uint32(0x4973F715)
_SHIFT = np.uint32(16)
_POOL = 4


@njit
def _hashed(value, constant):
    """A word mixed with a constant, and the next constant."""
    following = np.uint32(constant * _MULT_A)
    value = np.uint32((value ^ constant) * following)
    return np.uint32(value ^ (value >> _SHIFT)), following


@njit
def _mixed(x, y):
    mixed = np.uint32(_MIX_LEFT * x - _MIX_RIGHT * y)
    return np.uint32(mixed ^ (mixed >> _SHIFT))


@kernel
def seed_words(seed, purpose, t):
    """The state of NumPy's ``SeedSequence(seed, spawn_key=(purpose, t))``: 4 words of 64 bits.

    ``seed`` has at least 4 words of 32 bits. O'Neill's seed_seq_fe; NumPy's own takes longer than
    scheduling a round.
    """
    pool = np.empty(_POOL, np.uint32)
    constant = _INIT_A
    for i in range(_POOL):
        pool[i], constant = _hashed(seed[i], constant)
    for source in range(_POOL):
        for target in range(_POOL):
            if source != target:
                word, constant = _hashed(pool[source], constant)
                pool[target] = _mixed(pool[target], word)
    for source in range(_POOL, seed.size + 2):
        extra = np.uint32(purpose if source == seed.size else t)
        if source < seed.size:
            extra = seed[source]
        for target in range(_POOL):
            word, constant = _hashed(extra, constant)
            pool[target] = _mixed(pool[target], word)
    words = np.empty(2 * _POOL, np.uint32)
    constant = _INIT_B
    for i in range(2 * _POOL):
        word = pool[i % _POOL] ^ constant
        constant = np.uint32(constant * _MULT_B)
        word = np.uint32(word * constant)
        words[i] = word ^ (word >> _SHIFT)
    return words.view(np.uint64)
