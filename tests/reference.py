"""The slow twin: the paper's algorithms in plain Python, sharing nothing with the package.

Written to be read against the paper. Lists and floats only; ages and gains come in as lists,
budgets and thresholds as a number for all UEs or a list with one of each.
"""

import itertools
import math

ROUNDING = 1e-12  # rates count as reached, and scores as equal, up to this relative allowance


def rate_of(gains, powers):
    """Bits per real channel use: the sum of ½ log2(1 + G P)."""
    return sum(math.log1p(g * p) for g, p in zip(gains, powers, strict=True)) / (2 * math.log(2))


def each(value, ues):
    """The budget or threshold of each UE."""
    return value if isinstance(value, list) else [value] * ues


def waterfilled_powers(gains, budget):
    """Powers on the ``gains`` (falling order), or None if the last one would get none.

    The update in Algorithm 1, with G_{k,n*} read as G_{k,tau(n*)}: P(n*)/n* + 1/G_last - 1/G_n.
    """
    last = gains[-1]
    remaining = budget - sum(1 / last - 1 / g for g in gains[:-1])
    if remaining <= 0:
        return None
    return [remaining / len(gains) + (1 / last - 1 / g) for g in gains]


def candidate(gains, free, budget, threshold):
    """Algorithm 1 for one UE, corrected: its fewest best free subchannels and their powers.

    None if no set of free subchannels reaches the threshold.
    """
    order = sorted((n for n in free if gains[n] > 0), key=lambda n: (-gains[n], n))
    for count in range(1, len(order) + 1):
        best = [gains[n] for n in order[:count]]
        powers = waterfilled_powers(best, budget)
        if powers is None:
            return None
        if rate_of(best, powers) >= threshold * (1 - ROUNDING):
            return order[:count], powers
    return None


def pack(gains, weights, rank, budget, threshold):
    """Algorithm 2: owner and power of each subchannel."""
    subchannels = len(gains[0]) if gains else 0
    budgets, thresholds = each(budget, len(gains)), each(threshold, len(gains))
    owner, power = [-1] * subchannels, [0.0] * subchannels
    free = list(range(subchannels))
    waiting = set(range(len(gains)))
    while True:
        candidates = {}
        for ue in waiting:
            found = candidate(gains[ue], free, budgets[ue], thresholds[ue])
            if found is not None:
                candidates[ue] = found
        if not candidates:
            return owner, power
        score = {ue: weights[ue] / len(candidates[ue][0]) for ue in candidates}
        highest = max(score.values())
        tied = [ue for ue in candidates if score[ue] >= highest * (1 - ROUNDING)]
        winner = min(tied, key=lambda ue: (len(candidates[ue][0]), rank[ue], ue))
        for n, p in zip(*candidates[winner], strict=True):
            owner[n], power[n] = winner, p
            free.remove(n)
        waiting.remove(winner)


def fill(gains, order, budget, threshold):
    """Serve the UEs in order, each with its fewest best free subchannels."""
    subchannels = len(gains[0]) if gains else 0
    budgets, thresholds = each(budget, len(gains)), each(threshold, len(gains))
    owner, power = [-1] * subchannels, [0.0] * subchannels
    free = list(range(subchannels))
    for ue in order:
        found = candidate(gains[ue], free, budgets[ue], thresholds[ue])
        if found is not None:
            for n, p in zip(*found, strict=True):
                owner[n], power[n] = ue, p
                free.remove(n)
    return owner, power


def f_alpha(age, alpha):
    """The paper's sensitivity to staleness."""
    return math.log(1 + age) if alpha == 1 else age ** (1 - alpha) / (1 - alpha)


def candidate_as_printed(gains, free, budget, threshold, *, half=False):
    """Algorithm 1 as it is printed: P(n*) clipped at 0 and on it goes; no ½ in the test.

    With ``half`` the test has the ½ of problem (3), which isolates the effect of the clipping.
    Returns the set and the printed powers, which may spend more than the budget.
    """
    order = sorted((n for n in free if gains[n] > 0), key=lambda n: (-gains[n], n))
    for count in range(1, len(order) + 1):
        best = [gains[n] for n in order[:count]]
        last = best[-1]
        remaining = max(budget - sum(1 / last - 1 / g for g in best[:-1]), 0.0)
        powers = [remaining / count + (1 / last - 1 / g) for g in best]
        carried = rate_of(best, powers) * (1 if half else 2)
        if carried >= threshold * (1 - ROUNDING):
            return order[:count], powers
    return None


def minimal_sets(gains, budget, threshold):
    """Sets of subchannels that reach the threshold and would not without any one of them."""
    reaching = {
        chosen
        for size in range(1, len(gains) + 1)
        for chosen in itertools.combinations(range(len(gains)), size)
        if candidate(gains, chosen, budget, threshold) is not None
    }
    return [
        chosen
        for chosen in reaching
        if not any(chosen[:at] + chosen[at + 1 :] in reaching for at in range(len(chosen)))
    ]


def best_value(gains, weights, budget, threshold):
    """The optimum of problem (3): every way to give each subchannel to a UE or to nobody."""
    subchannels = len(gains[0]) if gains else 0
    sets = [
        frozenset(n for n in range(subchannels) if bits >> n & 1) for bits in range(2**subchannels)
    ]
    budgets, thresholds = each(budget, len(gains)), each(threshold, len(gains))
    best = dict.fromkeys(sets, 0)  # the highest weight that these subchannels can serve
    for ue, weight in enumerate(weights):
        limits = budgets[ue], thresholds[ue]
        enough = [c for c in sets if candidate(gains[ue], c, *limits) is not None]
        best = {
            free: max([best[free]] + [weight + best[free - c] for c in enough if c <= free])
            for free in sets
        }
    return best[frozenset(range(subchannels))]


class Background:
    """UEs that learn in the background, on one clock that goes on through all periods."""

    def __init__(self, period, downlink, compute, least_upload, restarts):
        self.period, self.downlink, self.compute = period, downlink, compute
        self.least_upload, self.restarts = least_upload, restarts
        self.hands, self.jobs = [None] * len(compute), [None] * len(compute)  # (version, when)

    def begin(self, t, able, downlink):
        """For each UE its version and when it was done, and how often it began since before."""
        self.heard_at = t * self.period + self.downlink + downlink
        self.starts = getattr(self, "starts_at_end", [0] * len(self.compute))
        for ue, hears in enumerate(able):
            if hears and not self.jobs[ue] and (self.restarts or not self.hands[ue]):
                self.learn(ue, t, self.heard_at)
        last = [(t + 1) * self.period - least for least in self.least_upload]
        self.go_on(t, last, able)
        return list(self.hands), self.starts

    def end(self, t, heard, able):
        self.starts = self.starts_at_end = [0] * len(self.compute)
        for ue in heard:
            self.hands[ue] = self.jobs[ue] = None
        self.go_on(t, [(t + 1) * self.period] * len(able), able)

    def learn(self, ue, t, when):
        self.jobs[ue] = (t, max(when, self.heard_at) + self.compute[ue])
        self.starts[ue] += 1

    def go_on(self, t, until, able):
        for ue, hears in enumerate(able):
            while self.jobs[ue] and self.jobs[ue][1] <= until[ue]:
                self.hands[ue], self.jobs[ue] = self.jobs[ue], None
                if self.restarts and self.hands[ue][0] < t and hears:
                    self.learn(ue, t, self.hands[ue][1])
