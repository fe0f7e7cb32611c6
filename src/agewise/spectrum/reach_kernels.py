# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, no-check-untyped-defs
"""Compiled kernel of what each UE would reach if it were served alone on the free subchannels.

It calls no kernel of another file, whose changes Numba's disk cache would not see; sums run in the
order of `kernels.fewest_best`, so that both find the same needs to the last bit.
"""

import numpy as np

from agewise.compiled import compiled


@compiled()
def reach(gains, free, power_budget, target, least_snr):
    """Fewest best of the ``free`` subchannels that carry ``target`` nats, and the nats they carry.

    The need of a UE that cannot reach the target is 0, and its nats are the most that it can.
    """
    ues = gains.shape[0]
    need, nats = np.zeros(ues, np.int64), np.zeros(ues)
    left = np.empty(free.size)
    for ue in range(ues):
        for i in range(free.size):
            left[i] = gains[ue, free[i]]
        best_gain = best = excess_sum = log_sum = 0.0
        for n in range(1, free.size + 1):
            # Few are needed as a rule: seeking the next best each time costs less than sorting.
            at, gain = 0, -1.0
            for i in range(free.size):
                better = left[i] > gain
                at = i if better else at
                gain = left[i] if better else gain
            left[at] = -1.0
            if gain * power_budget < least_snr:
                break
            if n == 1:
                best_gain, best = gain, gain * power_budget
            d = (best_gain - gain) / gain
            if not (n - 1) * d < best + excess_sum:
                break  # this subchannel would get no power: the rate cannot grow any more
            excess_sum += d
            log_sum += np.log1p(d)
            nats[ue] = n * np.log1p((best + excess_sum) / n) - log_sum
            if nats[ue] >= target:
                need[ue] = n
                break
    return need, nats
