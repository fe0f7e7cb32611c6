"""How long the optimum of problem (3) takes, and how often it is proven: ``make bench NAME=exact``.

The paper's cell over edge SNRs and rate thresholds; weights are f_0.5 of the ages that age-based
scheduling leads to, early in a run and later.
"""

import time

import numpy as np
from rich.console import Console
from rich.table import Table

from agewise.spectrum import Uplink, solve
from benchmarks.aged_cells import aged_rounds

SNRS_DB, THRESHOLDS = (-10.0, 0.0, 10.0, 20.0), (1.0, 2.0, 4.0, 6.0)
SEEDS = range(100, 105)
EARLY, LATER = (2, 4, 6, 8), (20, 40, 59)
WORK_LIMIT = 5_000_000


def solved(snr_db: float, threshold: float) -> dict[int, list[tuple[float, float, bool]]]:
    """By round: seconds, gap and whether it is proven, one entry per seed."""
    found: dict[int, list[tuple[float, float, bool]]] = {t: [] for t in (*EARLY, *LATER)}
    for t, uplink, weights, rank in aged_rounds(snr_db, threshold, SEEDS, (*EARLY, *LATER)):
        start = time.perf_counter()
        best = solve(uplink, weights, rank, work_limit=WORK_LIMIT)
        found[t].append((time.perf_counter() - start, best.gap, best.proven))
    return found


def main() -> None:
    """Print a row per regime."""
    solve(Uplink(np.ones((3, 2)), 1.0, 0.6), [1.0, 2.0, 3.0])  # compile
    table = Table(title=f"Proven within {WORK_LIMIT:,} steps; seconds, median (longest)")
    for heading in (
        "edge SNR, dB", "R_s, bit", "rounds 3-9", "seconds", "largest gap, %",
        "rounds 21-60", "seconds",
    ):  # fmt: skip
        table.add_column(heading, justify="right")
    for snr_db in SNRS_DB:
        for threshold in THRESHOLDS:
            found = solved(snr_db, threshold)
            early, later = (
                np.array([x for t in part for x in found[t]]) for part in (EARLY, LATER)
            )
            table.add_row(
                f"{snr_db:g}", f"{threshold:g}",
                f"{int(early[:, 2].sum())} of {len(early)}",
                f"{np.median(early[:, 0]):.2f} ({early[:, 0].max():.1f})",
                f"{100 * early[:, 1].max():.1f}",
                f"{int(later[:, 2].sum())} of {len(later)}",
                f"{np.median(later[:, 0]):.2f} ({later[:, 0].max():.1f})",
            )  # fmt: skip
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
