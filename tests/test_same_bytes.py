"""A run is the same to the byte whatever the processor can do."""

import json
import os
import subprocess
import sys

import pytest

from tests.experiment.watch import ROOT

#: Covers every place where a result follows from an exponential, a logarithm, a power or an angle.
RUNS = """
import hashlib, json, sys
from agewise import Streams, simulate
from agewise.scenario import Scenario
from tests.scenarios import tiny

PAYLOAD = {
    "cell.subchannel_bandwidth_hz": 15000.0,
    "channel.path_loss": {"kind": "log-distance", "exponent": 3.7, "reference_distance_m": 1.0,
                          "reference_loss_db": 31.7},
    "channel.link": {"kind": "budget", "transmit_power_dbm": 17.3, "noise_density_dbm_hz": -174.0,
                     "noise_figure_db": 6.1},
}
SLOTS = {"timing": {"kind": "slots", "deadline_slots": 2.5},
         "devices.computing": {"kind": "slots", "median_slots": 0.7, "sigma": 0.6}}
CASES = [
    ("age-based:alpha=0.3", {}),
    ("age-based:alpha=1", {"learn.model.loss": "logistic", "run.objective_every": 1,
                           "learn.penalty": {"kind": "l2", "weight": 0.01}}),
    ("age-based:alpha=2,form=continuous", {"learn.model.loss": "multinomial", **PAYLOAD}),
    ("age-based:packing=auction,alpha=0.7", SLOTS),
    ("oort:penalty=1.3", SLOTS),
    ("power-of-choice", {"devices.samples_sigma": 0.8}),
    ("importance-channel", {"data.partition": {"kind": "dirichlet", "concentration": 0.3}}),
    ("age-based:packing=exact", {"learn.model": {"kind": "k-means", "clusters": 10,
                                                 "initial_deviation": 0.01}}),
    ("markov", {"channel.fading": {"kind": "none"}, "run.age_alpha": 0.4}),
]
UES = {"age-based:packing=exact": 12}
digests = {}
for policy, changes in CASES:
    scenario = tiny(**{"run.rounds": 6, "cell.ues": UES.get(policy, 300)}, **changes)
    digests[policy] = hashlib.sha256(simulate(scenario, policy, 5).to_bytes()).hexdigest()
JAKES = {"channel.fading": {"kind": "rician", "k_factor": {"kind": "fixed", "k_db": 3.0},
                            "frequency": {"kind": "taps", "profile": "etu"},
                            "time": {"kind": "jakes", "carrier_hz": 3.5e9, "speed_m_s": 1.1}},
         "channel.round_s": 0.01, "cell.subchannel_bandwidth_hz": 180e3}
CELLS = [("paper", JAKES), ("urban-micro", {}), ("vehicular", {}), ("indoor-factory", {})]
for preset, changes in CELLS:
    scenario = Scenario.preset(preset).with_(**{"cell.subchannels": 21}, **changes)
    channel, digest = scenario.make_channel(Streams(5)), hashlib.sha256()
    for t in (7, 0, 1):
        block = channel.block(t)
        digest.update(block.true.tobytes() + block.seen.tobytes())
    digests[f"blocks of {preset}"] = digest.hexdigest()
json.dump(digests, sys.stdout)
"""


def digests(**environment):
    done = subprocess.run(
        [sys.executable, "-c", RUNS], cwd=ROOT, capture_output=True, text=True, check=False,
        env=os.environ | environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def here():
    return digests()


PLAIN = {
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-AVX2_Usable,-FMA,-FMA_Usable,-FMA4,-AVX512F",
    "OPENBLAS_CORETYPE": "Nehalem",
}


def test_libraries_for_plain_processors_give_the_same_bytes(here):
    assert digests(**PLAIN) == here


@pytest.mark.slow
def test_kernels_for_an_old_processor_give_the_same_bytes(here):
    """Compiling them takes most of a minute, the first time."""
    old = {"NUMBA_CPU_NAME": "nehalem", "NUMBA_CPU_FEATURES": "-avx,-avx2,-fma,-avx512f"}
    assert digests(**old) == here
