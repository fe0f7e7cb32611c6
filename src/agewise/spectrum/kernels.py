"""Compiled kernels of Algorithms 1 and 2: arrays and scalars in, arrays and scalars out.

All of them live in this one file because Numba's disk cache follows changes of a function's own
file only. Rates are in nats of the complex channel, so that reaching the threshold reads
``nats >= 2 ln 2 * rate_threshold`` (less a rounding allowance).

Water-filling over the best n subchannels, gain_1 >= ... >= gain_n, is written in the excesses
``d_i = (gain_1 - gain_i) / gain_i``, which keep every digit from the smallest gains to the
largest; ``snr_1 = gain_1 * power_budget`` is what the best gives with all the power on it:

    level  u_n = (snr_1 + sum d) / n           power_i = (u_n - d_i) / gain_1
    active     d_n < u_n                       nats_n  = n log(1 + u_n) - sum log(1 + d_i)
"""

import numpy as np

from agewise.compiled import compiled

#: A subchannel set reaches the threshold if it does so up to this relative rounding allowance:
#: without it a set that meets the threshold exactly would be taken or refused by the last bit.
RATE_ROUNDING = 1e-12
#: The bound on the need is loosened by this, so that its own rounding can never exclude a set.
BOUND_SLACK = 1e-9
#: A subchannel whose SNR is below every normal number has too few digits left to be used.
LEAST_SNR = np.finfo(np.float64).tiny
#: The score of a UE that is out of the round; others have none below 0.
OUT = -1.0


@compiled()
def best_bits(bits, best):
    """Largest bit pattern of each row of ``bits`` (gains seen as uint64), and of all rows.

    Non-negative doubles order like their bit patterns, and everything else (negative, infinite,
    not a number) has a larger one than the largest double. One integer maximum thus gives both
    the best gain of every UE and the proof that all gains are valid, in one pass over memory.
    """
    overall = np.uint64(0)
    for ue in range(bits.shape[0]):
        row_best = np.uint64(0)
        for subchannel in range(bits.shape[1]):
            row_best = max(row_best, bits[ue, subchannel])
        best[ue] = row_best
        overall = max(overall, row_best)
    return overall


@compiled()
def target_nats(rate_threshold):
    """The nats that a set must carry to count as reaching ``rate_threshold`` bits."""
    if rate_threshold < 1e-300:
        return 0.0  # out of the range in which the bound below is rounded safely
    return 2.0 * np.log(2.0) * rate_threshold * (1.0 - RATE_ROUNDING)


@compiled()
def least_snrs(target, counts):
    """For n = 1..counts, a best SNR below which n subchannels cannot reach ``target``.

    n equal subchannels with the best SNR carry n log(1 + snr/n), the most any n can.
    """
    least = np.empty(counts)
    for n in range(1, counts + 1):
        least[n - 1] = n * np.expm1(target / n) * (1.0 - BOUND_SLACK)
    return least


@compiled()
def least_need(best_snr, least):
    """A lower bound on the subchannels that a UE needs, or 0 if it cannot reach the target."""
    if best_snr < LEAST_SNR or best_snr < least[-1]:
        return 0
    if best_snr >= least[0]:
        return 1
    low, high = 1, least.size - 1  # ``least`` falls with n: find the first that best_snr meets
    while low < high:
        middle = (low + high) // 2
        if best_snr >= least[middle]:
            high = middle
        else:
            low = middle + 1
    return low + 1


@compiled()
def scratch(subchannels):
    """Working arrays of `fewest_best`: gains and where they are; the chosen and their excesses."""
    return (
        np.empty(subchannels),
        np.empty(subchannels, np.int64),
        np.empty(subchannels, np.int64),
        np.empty(subchannels),
    )


@compiled()
def fewest_best(gains, power_budget, target, least, free, work):
    """Algorithm 1 for one UE: how many of the best free subchannels carry ``target`` nats.

    ``free`` is in rising order. Returns 0 if even all that water-filling would use do not
    suffice. The chosen subchannels, best first, and their excesses are left in the last two
    arrays of ``work``.
    """
    found, channels, chosen, excess = work
    count = at = 0
    best_gain = 0.0
    for channel in free:
        gain = gains[channel]
        found[count], channels[count] = gain, channel
        better = gain > best_gain
        at = count if better else at
        best_gain = gain if better else best_gain
        count += gain * power_budget >= LEAST_SNR
    best = best_gain * power_budget
    bound = least_need(best, least)
    if bound == 0 or bound > count:
        return 0
    chosen[0], excess[0] = channels[at], 0.0
    if bound == 1 and np.log1p(best) >= target:
        return 1
    excess_sum = log_sum = 0.0
    for n in range(2, count + 1):
        found[at] = -1.0
        # Few are needed as a rule, so the next best is sought by a scan that the processor can
        # run without guessing; a heap costs more in mispredicted branches.
        at, gain = 0, -1.0
        for i in range(count):
            better = found[i] > gain
            at = i if better else at
            gain = found[i] if better else gain
        d = (best_gain - gain) / gain
        if not (n - 1) * d < best + excess_sum:
            return 0  # this subchannel would get no power: the rate cannot grow any more
        chosen[n - 1], excess[n - 1] = channels[at], d
        excess_sum += d
        log_sum += np.log1p(d)
        if n >= bound and n * np.log1p((best + excess_sum) / n) - log_sum >= target:
            return n
    return 0


@compiled()
def grant(ue, need, gains, power_budget, work, free, owner, power, gain):
    """Give ``ue`` the ``need`` subchannels that `fewest_best` chose, water-filled.

    Returns the subchannels that stay free.
    """
    _, _, chosen, excess = work
    best_gain = gains[chosen[0]]
    level = best_gain * power_budget
    for i in range(need):
        level += excess[i]
    level /= need
    for i in range(need):
        owner[chosen[i]] = ue
        power[chosen[i]] = (level - excess[i]) / best_gain
        gain[chosen[i]] = gains[chosen[i]]
    left = 0
    for channel in free:
        free[left] = channel
        left += owner[channel] < 0
    return free[:left]


@compiled()
def _winner(a, b, score, need, rank):
    """Which of two UEs goes first: higher score, then fewer subchannels, then tie rank, index.

    Without a branch: who wins is a toss-up to the processor, and a wrong guess of it takes
    longer than all the comparisons.
    """
    more, equal = score[a] > score[b], score[a] == score[b]
    fewer, same = need[a] < need[b], need[a] == need[b]
    earlier, tied = rank[a] < rank[b], rank[a] == rank[b]
    first = more | (equal & (fewer | (same & (earlier | (tied & (a < b))))))
    return a if first else b


@compiled()
def play_all(tree, score, need, rank):
    """A knock-out among the UEs: ``tree[match]`` won over those below, ``tree[1]`` over all.

    The UEs themselves stand in the second half of the tree.
    """
    ues = score.size
    for ue in range(ues):
        tree[ues + ue] = ue
    for match in range(ues - 1, 0, -1):
        tree[match] = _winner(tree[2 * match], tree[2 * match + 1], score, need, rank)


@compiled()
def play_again(ue, tree, score, need, rank):
    """Play the matches of ``ue`` again, after its score has changed."""
    match = (score.size + ue) >> 1
    while match > 0:
        tree[match] = _winner(tree[2 * match], tree[2 * match + 1], score, need, rank)
        match >>= 1


@compiled()
def packing_room(ues, subchannels):
    """Working arrays of `pack_into`: need, score and tree of the UEs; the free subchannels."""
    return (
        np.empty(ues, np.int64),
        np.empty(ues),
        np.empty(2 * ues, np.int64),
        np.empty(subchannels, np.int64),
        scratch(subchannels),
    )


@compiled()
def pack_into(
    gains, best_gains, weights, rank, power_budget, target, least, room, owner, power, gain
):
    """Algorithm 2 without the recomputation, into arrays that the caller keeps.

    As subchannels go, needs only grow and scores only fall. A UE's last known need (at first a
    bound from its best gain) therefore never understates its place, and only the UE that comes
    to the top has to be worked out anew. There must be a UE and a subchannel.
    """
    need, score, tree, free, work = room
    for channel in range(owner.size):
        owner[channel], power[channel], gain[channel] = -1, 0.0, 0.0
        free[channel] = channel
    for ue in range(best_gains.size):
        need[ue] = least_need(best_gains[ue] * power_budget, least)
        score[ue] = weights[ue] / need[ue] if need[ue] > 0 else OUT
    play_all(tree, score, need, rank)
    while free.size > 0 and score[tree[1]] != OUT:
        ue = tree[1]
        now = 0
        if need[ue] <= free.size:
            now = fewest_best(gains[ue], power_budget, target, least, free, work)
        if now > 0:
            if now != need[ue]:
                need[ue] = now
                score[ue] = weights[ue] / now
                play_again(ue, tree, score, need, rank)
                if tree[1] != ue:
                    continue
            free = grant(ue, now, gains[ue], power_budget, work, free, owner, power, gain)
        score[ue] = OUT  # served, or out of reach for the rest of the round
        play_again(ue, tree, score, need, rank)


@compiled()
def pack_lazily(gains, best_gains, weights, rank, power_budget, rate_threshold):
    """Algorithm 2: owner, power and gain of every subchannel."""
    ues, subchannels = gains.shape
    owner = np.full(subchannels, -1, np.int64)
    power, gain = np.zeros(subchannels), np.zeros(subchannels)
    if ues > 0 and subchannels > 0:
        target = target_nats(rate_threshold)
        least = least_snrs(target, subchannels)
        room = packing_room(ues, subchannels)
        pack_into(
            gains, best_gains, weights, rank, power_budget, target, least, room, owner, power, gain
        )
    return owner, power, gain


@compiled()
def fill_in_order(gains, best_gains, order, power_budget, rate_threshold):
    """Serve the UEs in ``order``, each with its fewest best free subchannels, as far as they go."""
    subchannels = gains.shape[1]
    owner = np.full(subchannels, -1, np.int64)
    power, gain = np.zeros(subchannels), np.zeros(subchannels)
    if subchannels == 0:
        return owner, power, gain
    target = target_nats(rate_threshold)
    least = least_snrs(target, subchannels)
    work = scratch(subchannels)
    free = np.arange(subchannels)
    for ue in order:
        bound = least_need(best_gains[ue] * power_budget, least)
        if bound == 0 or bound > free.size:
            continue  # without a look at its gains
        need = fewest_best(gains[ue], power_budget, target, least, free, work)
        if need > 0:
            free = grant(ue, need, gains[ue], power_budget, work, free, owner, power, gain)
        if free.size == 0:
            break
    return owner, power, gain


@compiled()
def first_repeated(order, count):
    """The first entry of ``order`` that is out of 0..count-1 or was there before, or -1."""
    seen = np.zeros(count, np.bool_)
    for place in range(order.size):
        ue = order[place]
        if ue < 0 or ue >= count or seen[ue]:
            return place
        seen[ue] = True
    return -1


@compiled()
def are_gains_of(gains, owner, gain):
    """Whether ``gain`` has the owners' gains on their subchannels."""
    for n in range(owner.size):
        if owner[n] >= gains.shape[0] or (owner[n] >= 0 and gain[n] != gains[owner[n], n]):
            return False
    return True


#: What `first_violation` found.
SOUND, UNKNOWN_OWNER, BAD_POWER, NO_OWNER, OVER_BUDGET, BELOW_THRESHOLD = range(6)


@compiled()
def first_violation(owner, power, gain, ues, power_budget, rate_threshold, rounding):
    """The first constraint of problem (3) that is violated, at which subchannel or UE, by what."""
    for n in range(owner.size):
        if owner[n] < -1 or owner[n] >= ues:
            return UNKNOWN_OWNER, n, np.float64(owner[n])
        if not (power[n] >= 0.0 and power[n] < np.inf and gain[n] >= 0.0 and gain[n] < np.inf):
            return BAD_POWER, n, power[n]
        if owner[n] < 0 and power[n] > 0.0:
            return NO_OWNER, n, power[n]
    spent, nats = np.zeros(ues), np.zeros(ues)
    for n in range(owner.size):
        if owner[n] >= 0:
            spent[owner[n]] += power[n]
            nats[owner[n]] += np.log1p(gain[n] * power[n])
    for n in range(owner.size):
        ue = owner[n]
        if ue >= 0 and not spent[ue] <= power_budget * (1.0 + rounding):
            return OVER_BUDGET, ue, spent[ue]
    for n in range(owner.size):
        ue = owner[n]
        if ue >= 0:
            rate = nats[ue] / (2.0 * np.log(2.0))
            if not rate >= rate_threshold * (1.0 - rounding):
                return BELOW_THRESHOLD, ue, rate
    return SOUND, -1, 0.0
