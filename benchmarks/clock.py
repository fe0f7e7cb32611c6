"""Timing on a shared machine: alternate the contestants and keep each one's best."""

import time
from collections.abc import Callable, Mapping


def best_seconds(
    contestants: Mapping[str, Callable[[], object]], budget_s: float = 1.0, repeats: int = 7
) -> dict[str, float]:
    """Seconds of one call of each, the best of ``repeats`` turns taken alternately.

    The minimum is what the code needs; everything above it is what the machine did meanwhile.
    Each turn repeats a short call until it is long enough to time.
    """
    calls, best = {}, {}
    for name, call in contestants.items():
        call()  # warm up: load kernels, touch memory
        start = time.perf_counter()
        call()
        once = time.perf_counter() - start
        calls[name] = max(1, int(budget_s / repeats / max(once, 1e-9)))
        best[name] = once
    for _ in range(repeats):
        for name, call in contestants.items():
            start = time.perf_counter()
            for _ in range(calls[name]):
                call()
            best[name] = min(best[name], (time.perf_counter() - start) / calls[name])
    return best
