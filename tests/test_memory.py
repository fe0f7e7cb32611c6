"""Runs of many seeds in one process need no more memory than runs of a few."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.experiment.watch import ROOT

RUNS = """
from pathlib import Path
from agewise import Scenario, simulate

def megabytes():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6

scenario = Scenario.preset("paper").with_(**{"run.rounds": 1})
for seed in range(15):
    simulate(scenario, "max-pack", seed)
    print(megabytes())
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_memory_does_not_grow_with_the_seeds():
    """The samples of one seed on their UEs take 30 MB: to keep those of ten would show."""
    done = subprocess.run(
        [sys.executable, "-c", RUNS], cwd=ROOT, capture_output=True, text=True, check=True
    )
    used = [float(line) for line in done.stdout.split()]
    assert len(used) == 15
    assert used[-1] - used[4] < 80.0, used
