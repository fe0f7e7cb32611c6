"""Kernels of lossy compression: what the access point gets instead of a UE's model.

All change ``models[i]``, what UE ``ues[i]`` made of ``start``, into ``start`` plus what is sent of
the update. What happens to a UE follows from its own numbers, the key, the round and its index
alone. ``unsent[ue]`` has what earlier updates did not send; it has no rows without error feedback.
"""

import math

import numpy as np

from agewise.core.jit import kernel, njit
from agewise.core.random import fold_in, random_bits, uniform


@kernel
def round_at_random(models, start, ues, levels, key, t):
    """QSGD: magnitudes over the update's length, rounded up or down to multiples of 1 / levels.

    Up with the probability that makes the mean right; the length is sent in single precision.
    """
    of_round = fold_in(key, t)
    for i in range(ues.size):
        own, model = fold_in(of_round, ues[i]), models[i]
        squares = 0.0
        for j in range(start.size):
            move = np.float64(model[j]) - np.float64(start[j])
            squares += move * move
        length = np.float64(np.float32(math.sqrt(squares)))
        if length == 0.0:
            model[:] = start
            continue
        for j in range(start.size):
            move = np.float64(model[j]) - np.float64(start[j])
            scaled = abs(move) / length * levels
            level = math.floor(scaled)
            if uniform(random_bits(own, j)) < scaled - level:
                level += 1.0
            # The length was rounded, so that a lone weight may be above the last level.
            sent = length * min(level, levels) / levels
            model[j] = np.float32(start[j] + (sent if move >= 0.0 else -sent))


@njit
def _moves(model, start, unsent, ue):
    """The update with what is left of earlier ones."""
    moves = model - start
    if unsent.shape[0] > 0:
        moves += unsent[ue]
    return moves


@kernel
def keep_signs(models, start, ues, unsent):
    """Every weight becomes its sign times the mean magnitude of all."""
    for i in range(ues.size):
        model, ue = models[i], ues[i]
        moves = _moves(model, start, unsent, ue)
        total = 0.0
        for j in range(start.size):
            total += abs(np.float64(moves[j]))
        size = np.float32(total / start.size)
        for j in range(start.size):
            sent = size if moves[j] >= np.float32(0.0) else -size
            model[j] = start[j] + sent
            if unsent.shape[0] > 0:
                unsent[ue, j] = moves[j] - sent


@njit
def _at_least(magnitudes, least):
    count = 0
    for j in range(magnitudes.size):
        count += np.int64(magnitudes[j] >= least)
    return count


@kernel
def keep_largest(models, start, ues, unsent, count):
    """The ``count`` largest weights stay, the first among equals; the others become 0."""
    for i in range(ues.size):
        model, ue = models[i], ues[i]
        moves = _moves(model, start, unsent, ue)
        # Without their sign, floats are in the order of their bits: the count-th largest is found
        # bit by bit.
        magnitudes = np.abs(moves).view(np.uint32)
        least = np.uint32(0)
        for place in range(30, -1, -1):
            higher = least | np.uint32(1 << place)
            if _at_least(magnitudes, higher) >= count:
                least = higher
        equals = count - _at_least(magnitudes, least + np.uint32(1))
        for j in range(start.size):
            stays = magnitudes[j] > least
            if magnitudes[j] == least and equals > 0:
                stays = True
                equals -= 1
            sent = moves[j] if stays else np.float32(0.0)
            model[j] = start[j] + sent
            if unsent.shape[0] > 0:
                unsent[ue, j] = moves[j] - sent
