"""What cheap changes to greedy packing gain: ``make bench NAME=greedy``.

Instances are the paper's cell over edge SNRs and rate thresholds, with the ages that age-based
scheduling leads to. The loss is the share of the optimal weight that a packing leaves.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from agewise.spectrum import Allocation, Auction, Greedy, Uplink, solve
from benchmarks.aged_cells import aged_rounds
from benchmarks.swaps import pack_with_swaps

SNRS_DB, THRESHOLDS = (-10.0, 0.0, 10.0, 20.0), (1.0, 2.0, 4.0, 6.0)
SEEDS, ROUNDS = 5, (30, 45, 59)
#: Steps of the exact search; the few instances that need more are left out.
WORK_LIMIT = 20_000_000

Instance = tuple[Uplink, NDArray[np.float64], NDArray[np.int64], float]
Pack = Callable[[Uplink, NDArray[np.float64], NDArray[np.int64]], Allocation]


@dataclass(frozen=True)
class OneExponent(Auction):
    """An auction that packs only by utility per subchannel needed."""

    exponents: ClassVar[tuple[float, ...]] = (1.0,)


def instances(snr_db: float, threshold: float) -> list[Instance]:
    """Uplinks with weights, ranks and the proven optimum."""
    found = []
    for _, uplink, weights, rank in aged_rounds(snr_db, threshold, range(SEEDS), ROUNDS):
        best = solve(uplink, weights, rank, work_limit=WORK_LIMIT)
        if best.proven and best.value > 0:
            found.append((uplink, weights, rank, best.value))
    return found


def main() -> None:
    """Print the loss of each packing, mean over the regimes, worst regime, and its time."""
    regimes = {(s, r): instances(s, r) for s in SNRS_DB for r in THRESHOLDS}
    packings: dict[str, Pack] = {
        "Algorithm 2": Greedy().pack,
        **{
            f"score f/|C|^{p:g}": partial(pack_with_swaps, exponent=p)
            for p in (0.5, 0.75, 1.25, 1.5)
        },
        "swaps: one UE out, others in": partial(pack_with_swaps, out=1),
        "swaps: two UEs out, others in": partial(pack_with_swaps, out=2),
        "least wanted set": OneExponent(price_rounds=0).pack,
        "least wanted set, p = 0.75 and 1": Auction(price_rounds=0).pack,
        "and 3 rounds of prices": Auction(price_rounds=3).pack,
        "and 5 rounds of prices (shipped)": Auction().pack,
        "and 20 rounds of prices": Auction(price_rounds=20).pack,
    }
    count = sum(map(len, regimes.values()))
    table = Table(title=f"Weight lost against the optimum, % ({count} instances, all proven)")
    for heading in ("packing", "mean", "worst regime", "time, us"):
        table.add_column(heading, justify="left" if heading == "packing" else "right")
    for name, packing in packings.items():
        losses, took = [], []
        for members in regimes.values():
            own = []
            for uplink, weights, rank, best in members:
                packing(uplink, weights, rank)  # compile, warm the caches
                start = time.perf_counter()
                allocation = packing(uplink, weights, rank)
                took.append(time.perf_counter() - start)
                own.append(1.0 - weights[allocation.scheduled].sum() / best)
            losses.append(np.mean(own))
        table.add_row(
            name, f"{100 * np.mean(losses):.2f}", f"{100 * max(losses):.1f}",
            f"{1e6 * np.median(took):.0f}",
        )  # fmt: skip
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
