"""How fast a round is scheduled, as ratios measured in one run: ``make bench``."""

import functools
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from agewise import Uplink, schedule
from agewise.core.pack import pack_lazily
from agewise.core.proof import best_gains
from benchmarks.clock import best_seconds
from benchmarks.eager import pack_eagerly
from tests import reference
from tests.cells import draw_gains

Array = NDArray[Any]

ALPHA = 0.5
REGIMES = ((10, 6.0), (10, 4.0), (0, 4.0), (10, 1.0), (-10, 2.0))


@dataclass(frozen=True)
class Round:
    """One round to schedule, in the middle of a run."""

    gains: Array
    ages: Array
    weights: Array
    rank: Array
    power: Array
    threshold: Array

    @classmethod
    def draw(
        cls, ues: int, subchannels: int, edge_snr_db: float, threshold: float, seed: int = 0
    ) -> "Round":
        """A paper-like cell with the ages that a long run would have."""
        rng = np.random.default_rng([seed, ues, subchannels])
        gains = draw_gains(rng, ues, subchannels, edge_snr_db)
        ages = rng.integers(0, 2 * ues // subchannels + 2, ues)
        rank, alike = rng.permutation(ues), np.ones(ues)
        return cls(gains, ages, 2.0 * np.sqrt(ages), rank, alike, threshold * alike)

    def lazily(self) -> Any:
        """At kernel level, check of the gains included."""
        best, *_ = best_gains(self.gains, self.power, self.threshold)
        return pack_lazily(self.gains, best, self.weights, self.rank, self.power, self.threshold)[0]

    def eagerly(self) -> Any:
        """At kernel level, without any check."""
        return pack_eagerly(self.gains, self.weights, self.rank, self.power, self.threshold)[0]

    def in_one_call(self) -> Any:
        """As a user would, with every check and a policy by name."""
        return schedule(
            self.gains, self.ages, power=self.power, rate_threshold=self.threshold, alpha=ALPHA
        ).owner

    def in_plain_python(self) -> list[int]:
        """The slow twin, without any check."""
        plain = reference.pack(
            self.gains.tolist(),
            self.weights.tolist(),
            self.rank.tolist(),
            self.power.tolist(),
            self.threshold.tolist(),
        )
        return list(plain[0])


def each(schedule_it: Callable[[Round], Any], rounds: list[Round]) -> list[Any]:
    """All the rounds, one after the other."""
    return [schedule_it(one) for one in rounds]


def against_eager_and_twin(ues: int, subchannels: int, rounds: int, *, twin: bool) -> Table:
    """Times per round of the lazy kernel, the eager kernel and the plain Python twin.

    Over many different rounds in turn: on one and the same round the processor would learn
    every branch by heart.
    """
    table = Table(title=f"K={ues}, N={subchannels}: time of one round, mean of {rounds} rounds")
    for heading in (
        "edge SNR", "R_s", "UEs", "lazy", "one call", "eager", "eager/lazy", "twin", "twin/lazy",
    ):  # fmt: skip
        table.add_column(heading, justify="right")
    for snr, threshold in REGIMES:
        drawn = [Round.draw(ues, subchannels, snr, threshold, seed) for seed in range(rounds)]
        took = best_seconds(
            {
                "lazy": functools.partial(each, Round.lazily, drawn),
                "eager": functools.partial(each, Round.eagerly, drawn),
                "call": functools.partial(each, Round.in_one_call, drawn),
            }
        )
        owners = [one.lazily() for one in drawn]
        for owner, one in zip(owners, drawn, strict=True):
            assert np.array_equal(owner, one.eagerly())
        served = np.mean([np.unique(owner[owner >= 0]).size for owner in owners])
        row = [
            f"{snr} dB", f"{threshold:g} bit", f"{served:.1f}",
            *(micro(took[name] / rounds) for name in ("lazy", "call", "eager")),
            f"{took['eager'] / took['lazy']:.0f}x",
        ]  # fmt: skip
        if twin:
            few = drawn[:5]
            seconds = best_seconds({"twin": functools.partial(each, Round.in_plain_python, few)})
            for owner, one in zip(owners, few, strict=False):
                assert owner.tolist() == one.in_plain_python()
            ratio = seconds["twin"] / len(few) / (took["lazy"] / rounds)
            row += [micro(seconds["twin"] / len(few)), f"{ratio:,.0f}x"]
        table.add_row(*row)
    return table


def against_one_pass() -> Table:
    """Growth with K and with N: one call, input check included, over ``gains.sum()``."""
    table = Table(title="One call over one pass of the gains (edge SNR 10 dB, R_s 4 bit)")
    for heading in (
        "K", "N", "gains", "gains.sum()", "one call", "call/sum", "of it the check", "UEs differ",
    ):  # fmt: skip
        table.add_column(heading, justify="right")
    sizes = ((1_000, 273), (10_000, 273), (100_000, 34), (100_000, 68), (100_000, 136),
             (100_000, 273))  # fmt: skip
    for ues, subchannels in sizes:
        one, rng = Round.draw(ues, subchannels, 10, 4.0), np.random.default_rng(0)
        power, threshold = rng.uniform(0.5, 2.0, ues), rng.uniform(3.0, 5.0, ues)
        took = best_seconds(
            {
                "sum": one.gains.sum,
                "check": functools.partial(Uplink, one.gains, 1.0, 4.0),
                "call": one.in_one_call,
                "differ": replace(one, power=power, threshold=threshold).in_one_call,
            }
        )
        table.add_row(
            f"{ues:,}", str(subchannels), f"{one.gains.nbytes / 1e6:.0f} MB",
            *(micro(took[name]) for name in ("sum", "call")),
            f"{took['call'] / took['sum']:.2f}x", f"{took['check'] / took['call']:.0%}",
            f"{took['differ'] / took['call']:.2f}x",
        )  # fmt: skip
    return table


def start_up() -> Table:
    """Wall time of a fresh process, the best of five."""
    table = Table(title="Start-up of a fresh process")
    for heading in ("what", "seconds"):
        table.add_column(heading, justify="right")
    help_text = "import sys; sys.argv[1:] = ['--help']; from agewise.cli import main; main()"
    first = "import agewise; agewise.schedule([[1.0]], [0], power=3.0, rate_threshold=1.0)"
    for name, code in (
        ("python", "pass"),
        ("import agewise", "import agewise"),
        ("... and its scheduler", "import agewise; agewise.schedule"),
        ("agewise --help", help_text),
        ("first schedule, kernels cached", first),
    ):  # fmt: skip
        times = []
        for _ in range(5):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)  # noqa: S603
            times.append(time.perf_counter() - start)
        table.add_row(name, f"{min(times):.2f}")
    return table


def micro(seconds: float) -> str:
    """Seconds as a readable number of microseconds or milliseconds."""
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def main() -> None:
    """Print the tables."""
    console = Console(width=110)
    console.print(against_eager_and_twin(100, 20, 100, twin=True))
    console.print(against_eager_and_twin(1_000, 100, 5, twin=False))
    console.print(against_one_pass())
    console.print(start_up())


if __name__ == "__main__":
    main()
