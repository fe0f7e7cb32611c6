"""Small results folders, and Debian's chromium driven by playwright."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import agewise
from agewise.policies import MaxPack, Policy
from tests.scenarios import tiny

POLICIES = ["age-based", "max-pack", "max-pack:ties=lowest-index", "round-robin"]

#: How long a slow machine may take for what the page does at once.
PATIENCE_MS = 300_000
#: UEs walk up to 40 m between two rounds.
WALK = {"kind": "random-waypoint", "slowest_m_s": 2.0, "fastest_m_s": 4.0, "pause_s": 0.0}
MOVING = {"channel.mobility": WALK, "channel.round_s": 10.0}


@dataclass(frozen=True)
class Evil(Policy):
    """A policy whose name would run in a careless page."""

    name: ClassVar[str] = "<script>window.hacked=1</script>"

    def schedule(self, view, rng):
        return MaxPack().schedule(view, rng)


@pytest.fixture(scope="session")
def compared(tmp_path_factory):
    """Four policies on three seeds."""
    out = tmp_path_factory.mktemp("results") / "compared"
    return agewise.compare(tiny(), POLICIES, 3, out, engine="inline", quiet=True)


@pytest.fixture(scope="session")
def swept(tmp_path_factory):
    """Two thresholds by two partitions; the last is the scenario itself."""
    out = tmp_path_factory.mktemp("results") / "swept"
    vary = {"threshold.rate": [1.0, 4.0], "data.partition": ["iid", "shards"]}
    return agewise.sweep(tiny(), POLICIES[:2], vary, 2, out, engine="inline", quiet=True)


@pytest.fixture(scope="session")
def traced(tmp_path_factory):
    """Two policies on a recorded channel, which says nothing of where the UEs are."""
    folder = tmp_path_factory.mktemp("results")
    gains = np.random.default_rng(5).exponential(30.0, (8, 12, 5))
    np.savez(folder / "gains.npz", gains=gains)
    scenario = tiny(channel={"kind": "trace", "path": str(folder / "gains.npz")})
    return agewise.compare(
        scenario, POLICIES[:2], 2, folder / "traced", engine="inline", quiet=True
    )


@pytest.fixture(scope="session")
def moving(tmp_path_factory):
    """Two policies on UEs that walk."""
    scenario = tiny(**MOVING)
    out = tmp_path_factory.mktemp("results") / "moving"
    return agewise.compare(scenario, POLICIES[:2], 2, out, engine="inline", quiet=True)


@pytest.fixture
def copied(compared, tmp_path):
    """A copy of the compared folder, to be damaged."""
    return shutil.copytree(compared.path, tmp_path / "copy")


@pytest.fixture(scope="session")
def browser():
    """The system's chromium; playwright's own browsers are not needed."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=_chromium(),
            timeout=PATIENCE_MS,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield running
        running.close()


def _chromium():
    """Where it is; root installs it with apt. Elsewhere the tests are left out, which is told."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        install = ["apt-get", "install", "-y", "--no-install-recommends", "chromium"]
        for command in (["apt-get", "update"], install):
            subprocess.run(command, check=False, capture_output=True)
        found = shutil.which("chromium")
    if found is None:
        pytest.skip("these tests need a browser: apt-get install -y chromium (as root)")
    return found
