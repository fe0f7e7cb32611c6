"""What the local engine costs and gains: ``make bench``."""

import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

import agewise
from agewise.engines import Local
from agewise.scenario import Scenario


def nothing(item: int) -> int:
    """Work that takes no time, so that what remains is the engine."""
    return item


def overhead_per_item(few: int = 20, many: int = 420) -> float:
    """Seconds that one more item costs, beyond starting the workers."""
    took = []
    for count in (few, many):
        start = time.perf_counter()
        list(Local(2).run(nothing, range(count)))
        took.append(time.perf_counter() - start)
    return (took[1] - took[0]) / (many - few)


def seconds_with(workers: int, seeds: int) -> float:
    """Seconds for the same runs of the paper scenario, start of the workers included."""
    scenario = Scenario.preset("paper")
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        agewise.compare(
            scenario, ["age-based", "max-pack"], seeds, Path(folder) / "run", workers=workers,
            quiet=True,
        )  # fmt: skip
        return time.perf_counter() - start


def main() -> None:
    """Print the table."""
    seconds_with(2, 1)  # compiles and caches the kernels
    table = Table(title="Local engine")
    for heading in ("what", "measured"):
        table.add_column(heading, justify="right")
    table.add_row("engine overhead of a run", f"{1e3 * overhead_per_item():.2f} ms")
    one, two = (min(seconds_with(workers, 20) for _ in range(2)) for workers in (1, 2))
    table.add_row("40 runs of 100 rounds, one process", f"{one:.1f} s")
    table.add_row("the same, two processes", f"{two:.1f} s")
    table.add_row("ratio", f"{one / two:.2f}x")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
