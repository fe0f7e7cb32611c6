"""Which sets of subchannels go together: kernels of the exact optimum.

In the linear program a column is a UE with a set of subchannels, and it uses a row for each of
these and one for the UE. Columns that share no row can go together in a packing.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agewise.core.jit import kernel, njit
from agewise.core.waterfill import reaches_alone


class _ColumnRows(NamedTuple):
    """Column c uses ``rows[start[c]:start[c + 1]]``; ``cost[c]`` is its reduced cost."""

    cost: NDArray[np.float64]
    start: NDArray[np.int64]
    rows: NDArray[np.int64]


@njit
def _rows_of(columns, c):
    """The rows that column ``c`` uses."""
    return columns.rows[columns.start[c] : columns.start[c + 1]]


@njit
def _augmenting_path(at, gains, link, ues, owner, closed, path):
    """A breadth-first search from UE ``at`` for a free subchannel over alternating edges.

    ``path`` is (seen, reached_by, queue). Returns the free subchannel, or -1, and how many
    owned ones stand in the queue.
    """
    seen, reached_by, queue = path
    seen[:] = closed
    head = tail = 0
    place, came_from = at, -1
    while True:
        for n in range(owner.size):
            if seen[n] or not reaches_alone(gains[ues[place], n], link):
                continue
            seen[n] = True
            reached_by[n] = came_from
            if owner[n] < 0:
                return n, tail
            queue[tail] = n
            tail += 1
        if head == tail:
            return -1, tail
        came_from = queue[head]
        place = owner[came_from]
        head += 1


@kernel
def match(gains, link, ues, weights):
    """The heaviest UEs that one subchannel each suffices for; ``ues`` come in falling weight.

    The sets of UEs that can be matched form a matroid, so taking the heaviest that still finds
    an augmenting path is optimal. A search that fails has seen only subchannels from which no
    free one can be reached, now or later; they are never entered again, and the weight that
    failed is their dual. The duals of the others are 0. Returns the owner of each subchannel (a
    place in ``ues`` or -1) and the duals, which prove the optimum among single subchannels.
    """
    subchannels = gains.shape[1]
    owner, dual = np.full(subchannels, -1, np.int64), np.zeros(subchannels)
    closed = np.zeros(subchannels, np.bool_)
    path = np.zeros(subchannels, np.bool_), np.empty_like(owner), np.empty_like(owner)
    left = subchannels
    for at in range(ues.size):
        if left == 0:
            break
        end, queued = _augmenting_path(at, gains, link, ues, owner, closed, path)
        if end < 0:
            for n in path[2][:queued]:
                closed[n] = True
                dual[n] = weights[at]
                left -= 1
        while end >= 0:  # everyone on the path moves to the subchannel that it reached
            before = path[1][end]
            owner[end] = at if before < 0 else owner[before]
            end = before
    return owner, dual


@njit
def _keep_open(active, room, columns, closed_at, kept):
    """Copy to ``kept`` the active columns that cost less than ``room`` and whose rows are open."""
    count = 0
    for c in active:
        if columns.cost[c] >= room:
            break
        fits = True
        for r in _rows_of(columns, c):
            if closed_at[r] >= 0:
                fits = False
                break
        if fits:
            kept[count] = c
            count += 1
    return count


@njit
def _count_uses(active, columns, dual, uses, least_share):
    """How many active columns use each row, and the least share of a cost that falls on it."""
    uses[:] = 0
    least_share[:] = dual
    for c in active:
        paying = 0
        for r in _rows_of(columns, c):
            uses[r] += 1
            paying += dual[r] > 0.0
        share = columns.cost[c] / max(paying, 1)
        for r in _rows_of(columns, c):
            least_share[r] = min(least_share[r], share)


@njit
def _branching_row(uses, dual, closed_at):
    """The open row that the fewest columns use, of those with a positive dual; or -1."""
    best = -1
    for r in range(dual.size):
        if closed_at[r] < 0 and uses[r] > 0 and dual[r] > 0.0:
            fewer = best < 0 or uses[r] < uses[best]
            if fewer or (uses[r] == uses[best] and dual[r] > dual[best]):
                best = r
    return best


@njit
def _close_unusable(depth, uses, least_share, dual, closed_at):
    """Close the rows that no column can use: the gap from that, and a lower bound on the rest."""
    gap = ahead = 0.0
    for r in range(dual.size):
        if closed_at[r] < 0:
            if uses[r] == 0:
                closed_at[r] = depth
                gap += dual[r]
            else:
                ahead += least_share[r]
    return gap, ahead


@njit
def _next_use(row, cursor, active, room, columns):
    """The place of the next active column from ``cursor`` on that uses the row, or the end."""
    for place in range(cursor, active.size):
        if columns.cost[active[place]] >= room:
            break
        for r in _rows_of(columns, active[place]):
            if r == row:
                return place
    return active.size


@kernel
def smallest_gap(reduced_cost, start, rows, dual, limit, most_nodes):
    """The packing with the smallest gap to the dual bound, if that is less than ``limit``.

    The gap of a packing is the sum of the ``reduced_cost`` (duals less weight, not negative) of
    its columns and of the duals of the rows that none of them uses. Column c uses
    ``rows[start[c]:start[c + 1]]``, and columns come in rising order of reduced cost. Branches on
    the row that the fewest columns can still use: one of these columns, or none.

    Returns the gap (``limit`` if there is no such packing), the columns chosen and the nodes
    used, more than ``most_nodes`` if they ran out.
    """
    columns = _ColumnRows(reduced_cost, start, rows)
    deepest = dual.size + 2
    closed_at = np.full(dual.size, -1, np.int64)  # the depth at which a row was used or given up
    uses, least_share = np.empty(dual.size, np.int64), np.empty(dual.size)
    lists = np.empty((deepest, reduced_cost.size), np.int32)
    size = np.zeros(deepest, np.int64)
    row, cursor = np.empty(deepest, np.int64), np.empty(deepest, np.int64)
    picked, gap = np.full(deepest, -1, np.int64), np.zeros(deepest)
    best = np.empty(0, np.int64)
    lists[0], size[0] = np.arange(reduced_cost.size), reduced_cost.size
    nodes, depth, fresh = 0, 0, True
    while depth >= 0:
        active = lists[depth, : size[depth]]
        done = False
        if fresh:
            nodes += 1
            _count_uses(active, columns, dual, uses, least_share)
            unusable, ahead = _close_unusable(depth, uses, least_share, dual, closed_at)
            gap[depth] += unusable
            row[depth], cursor[depth] = _branching_row(uses, dual, closed_at), 0
            done = gap[depth] + ahead >= limit or nodes > most_nodes
            if not done and row[depth] < 0:
                limit, best, done = gap[depth], picked[:depth].copy(), True
        fresh = False
        if not done and cursor[depth] <= active.size:
            room = limit - gap[depth]
            place = _next_use(row[depth], cursor[depth], active, room, columns)
            cursor[depth] = place + 1
            picked[depth] = active[place] if place < active.size else -1
            if picked[depth] >= 0:
                fresh = True
                gap[depth + 1] = gap[depth] + reduced_cost[picked[depth]]
                for r in _rows_of(columns, picked[depth]):
                    closed_at[r] = depth + 1
            elif dual[row[depth]] < room:  # every column was tried: now none of them
                fresh = True
                gap[depth + 1] = gap[depth] + dual[row[depth]]
                closed_at[row[depth]] = depth + 1
        if fresh:
            depth += 1
            size[depth] = _keep_open(active, limit - gap[depth], columns, closed_at, lists[depth])
            continue
        closed_at[closed_at == depth] = -1
        depth -= 1
    return limit, best[best >= 0], nodes
