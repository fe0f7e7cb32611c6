"""The benchmark: every policy on a fixed suite of scenarios."""

from agewise.suite.run import Benchmark, benchmark
from agewise.suite.scenarios import SCENARIOS, VERSION

__all__ = ["SCENARIOS", "VERSION", "Benchmark", "benchmark"]
