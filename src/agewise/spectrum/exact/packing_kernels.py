"""Compiled kernels of the exact optimum: which sets go together.

A set uses rows: one for each of its subchannels, and one for its UE. Sets that share no row can
go together in a packing.
"""

import numpy as np

from agewise.compiled import compiled


@compiled()
def match(gains, power_budget, least_snr, target, ues, weights):
    """The heaviest UEs that one subchannel each suffices for; ``ues`` come in falling weight.

    The sets of UEs that can be matched form a matroid, so taking the heaviest that still finds
    an augmenting path is optimal. A search that fails has seen only subchannels from which no
    free one can be reached, now or later; they are never entered again, and the weight that
    failed is their price. The others are free of charge. Returns the owner of each subchannel
    (a place in ``ues`` or -1) and the prices, which prove the optimum among single subchannels.
    """
    subchannels = gains.shape[1]
    owner = np.full(subchannels, -1, np.int64)
    price = np.zeros(subchannels)
    closed = np.zeros(subchannels, np.bool_)
    seen = np.zeros(subchannels, np.bool_)
    reached_by = np.empty(subchannels, np.int64)
    queue = np.empty(subchannels, np.int64)
    left = subchannels
    for at in range(ues.size):
        if left == 0:
            break
        seen[:] = closed
        head, tail, end = 0, 0, -1
        place, came_from = at, -1
        while end < 0:
            for n in range(subchannels):
                snr = gains[ues[place], n] * power_budget
                if seen[n] or snr < least_snr or np.log1p(snr) < target:
                    continue
                seen[n] = True
                reached_by[n] = came_from
                if owner[n] < 0:
                    end = n
                    break
                queue[tail] = n
                tail += 1
            if end >= 0 or head == tail:
                break
            came_from = queue[head]
            place = owner[came_from]
            head += 1
        if end < 0:
            for n in queue[:tail]:
                closed[n] = True
                price[n] = weights[at]
                left -= 1
            continue
        while end >= 0:  # everyone on the path moves to the subchannel that it reached
            before = reached_by[end]
            owner[end] = at if before < 0 else owner[before]
            end = before
    return owner, price


@compiled()
def keep_open(active, room, loss, row_start, rows, closed_at, kept):
    """Copy to ``kept`` the active sets that lose less than ``room`` and whose rows are open."""
    count = 0
    for s in active:
        if loss[s] >= room:
            break
        fits = True
        for r in rows[row_start[s] : row_start[s + 1]]:
            if closed_at[r] >= 0:
                fits = False
                break
        if fits:
            kept[count] = s
            count += 1
    return count


@compiled()
def count_uses(active, loss, row_start, rows, dual, uses, least_share):
    """How many active sets use each row, and the least that the row's share of a loss can be."""
    uses[:] = 0
    least_share[:] = dual
    for s in active:
        paying = 0
        for r in rows[row_start[s] : row_start[s + 1]]:
            uses[r] += 1
            paying += dual[r] > 0.0
        share = loss[s] / max(paying, 1)
        for r in rows[row_start[s] : row_start[s + 1]]:
            least_share[r] = min(least_share[r], share)


@compiled()
def choose_row(uses, dual, closed_at):
    """The open row that the fewest sets use, of those that it costs to leave unused; or -1."""
    best = -1
    for r in range(dual.size):
        if closed_at[r] < 0 and uses[r] > 0 and dual[r] > 0.0:
            fewer = best < 0 or uses[r] < uses[best]
            if fewer or (uses[r] == uses[best] and dual[r] > dual[best]):
                best = r
    return best


@compiled()
def lose_unusable(depth, uses, least_share, dual, closed_at):
    """Close the rows that no set can use: what that loses, and what others will lose at least."""
    lost = ahead = 0.0
    for r in range(dual.size):
        if closed_at[r] < 0:
            if uses[r] == 0:
                closed_at[r] = depth
                lost += dual[r]
            else:
                ahead += least_share[r]
    return lost, ahead


@compiled()
def next_use(row, cursor, active, loss, room, row_start, rows):
    """The place of the next active set from ``cursor`` on that uses the row, or the end."""
    for place in range(cursor, active.size):
        s = active[place]
        if loss[s] >= room:
            break
        for r in rows[row_start[s] : row_start[s + 1]]:
            if r == row:
                return place
    return active.size


@compiled()
def least_loss(loss, row_start, rows, dual, limit, most_nodes):
    """The packing that loses least against the bound, if it loses less than ``limit``.

    A packing loses ``loss[set]`` for each of its sets and ``dual[row]`` for each row (subchannel
    or UE) that none of them uses; set s uses ``rows[row_start[s]:row_start[s + 1]]``, and sets
    come in rising order of loss. Branches on the row that the fewest sets can still use: one of
    these sets, or none. Rows that no set can use any more are lost at once.

    Returns the loss (``limit`` if there is no such packing), the sets chosen and the nodes used,
    more than ``most_nodes`` if they ran out.
    """
    deepest = dual.size + 2
    closed_at = np.full(dual.size, -1, np.int64)  # the depth at which a row was used or lost
    uses, least_share = np.empty(dual.size, np.int64), np.empty(dual.size)
    lists, size = np.empty((deepest, loss.size), np.int32), np.zeros(deepest, np.int64)
    row, cursor = np.empty(deepest, np.int64), np.empty(deepest, np.int64)
    picked, lost = np.full(deepest, -1, np.int64), np.zeros(deepest)
    best = np.empty(0, np.int64)
    lists[0], size[0] = np.arange(loss.size), loss.size
    nodes, depth, fresh = 0, 0, True
    while depth >= 0:
        active = lists[depth, : size[depth]]
        done = False
        if fresh:
            nodes += 1
            count_uses(active, loss, row_start, rows, dual, uses, least_share)
            unusable, ahead = lose_unusable(depth, uses, least_share, dual, closed_at)
            lost[depth] += unusable
            row[depth], cursor[depth] = choose_row(uses, dual, closed_at), 0
            done = lost[depth] + ahead >= limit or nodes > most_nodes
            if not done and row[depth] < 0:
                limit, best, done = lost[depth], picked[:depth].copy(), True
        fresh = False
        if not done and cursor[depth] <= active.size:
            room = limit - lost[depth]
            place = next_use(row[depth], cursor[depth], active, loss, room, row_start, rows)
            cursor[depth] = place + 1
            picked[depth] = active[place] if place < active.size else -1
            if picked[depth] >= 0:
                fresh = True
                lost[depth + 1] = lost[depth] + loss[picked[depth]]
                for r in rows[row_start[picked[depth]] : row_start[picked[depth] + 1]]:
                    closed_at[r] = depth + 1
            elif dual[row[depth]] < room:  # every set was tried: now none of them
                fresh = True
                lost[depth + 1] = lost[depth] + dual[row[depth]]
                closed_at[row[depth]] = depth + 1
        if fresh:
            depth += 1
            size[depth] = keep_open(
                active, limit - lost[depth], loss, row_start, rows, closed_at, lists[depth]
            )
            continue
        closed_at[closed_at == depth] = -1
        depth -= 1
    return limit, best[best >= 0], nodes
