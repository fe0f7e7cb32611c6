"""What a user waits for, in times of importing NumPy, Numba, Polars, SciPy and Matplotlib.

``make bench`` prints it. Each command runs in a process of its own, the best of three; the last one
compiles all kernels that it needs.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

LIBRARIES = "import numpy, numba, polars, scipy.stats, scipy.optimize, matplotlib.figure"
COMPARE = ("compare", "paper", "--seeds", "5", "--quiet")
#: Goals in seconds, on the machine on which importing the libraries takes 2.0 s.
GOALS = {
    "compare paper --seeds 5": 5.0,
    "its first line": 3.0,
    "show": 1.0,
    "policies": 0.4,
    "scenario": 0.4,
    "compare, no kernel compiled": 20.0,
}


class Waited(NamedTuple):
    """Seconds until the first line of output, and until the end."""

    first_s: float
    all_s: float


def wait_for(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
) -> Waited:
    """Run Python with these arguments in this folder."""
    start = time.perf_counter()
    with subprocess.Popen(  # noqa: S603 (this very Python)
        [sys.executable, *arguments], cwd=folder, stdout=subprocess.PIPE,
        env={**os.environ, **(environment or {})},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        process.stdout.readline()
        first_s = time.perf_counter() - start
        process.stdout.read()
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)} ended with {process.returncode}")
    return Waited(first_s, time.perf_counter() - start)


def best_of(arguments: Sequence[str], folder: Path, repeats: int = 3) -> Waited:
    """The shortest waits of some runs."""
    waits = [wait_for(arguments, folder) for _ in range(repeats)]
    return Waited(*(min(each) for each in zip(*waits, strict=True)))


def measure(folder: Path) -> tuple[float, dict[str, float]]:
    """Seconds for importing the libraries, and those of each wait."""
    libraries_s = best_of(("-c", LIBRARIES), folder).all_s
    agewise = ("-m", "agewise")
    wait_for((*agewise, *COMPARE, "--out", "warm"), folder)  # compiles what is not compiled yet
    compared = [
        wait_for((*agewise, *COMPARE, "--out", f"compared-{turn}"), folder) for turn in range(3)
    ]
    waits = {
        "compare paper --seeds 5": min(each.all_s for each in compared),
        "its first line": min(each.first_s for each in compared),
        "show": best_of((*agewise, "show", "warm"), folder).all_s,
        "policies": best_of((*agewise, "policies"), folder).all_s,
        "scenario": best_of((*agewise, "scenario"), folder).all_s,
    }
    empty = {"NUMBA_CACHE_DIR": str(folder / "kernels")}
    cold = wait_for((*agewise, *COMPARE, "--out", "cold"), folder, empty)
    return libraries_s, waits | {"compare, no kernel compiled": cold.all_s}


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        libraries_s, waits = measure(Path(folder))
    table = Table(title=f"Waits; importing the libraries takes {libraries_s:.2f} s")
    for heading in ("agewise", "seconds", "times the import", "goal"):
        table.add_column(heading, justify="right")
    for name, seconds in waits.items():
        goal = f"{GOALS[name]:g} s, {GOALS[name] / 2.0:.2f}x"
        table.add_row(name, f"{seconds:.2f}", f"{seconds / libraries_s:.2f}x", goal)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
