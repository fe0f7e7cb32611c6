"""The scenarios of the benchmark, fixed so that results of one version can be compared.

Whoever changes one raises `VERSION`.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from agewise.policies import names
from agewise.records import PolicyKey
from agewise.scenario import Scenario

VERSION: Final = 4
ROUNDS: Final = 60
#: After how many rounds models are evaluated each time; the checkpoints are multiples of it.
EVALUATE_EVERY: Final = 5
#: Rounds after which accuracies are compared.
CHECKPOINTS: Final = (10, 20, 40, 60)
#: Policies in other packings than their own. The exact one takes too long for many seeds.
PACKED: Final = ("age-based:packing=auction", "age-based:packing=exact", "max-pack:packing=exact")
#: From how many of the seeds policies that solve a round exactly run, and the optimum is worked
#: out beside all policies.
EXACT_SEEDS: Final = 5
#: The forms of policies that were better than their defaults on other seeds than the benchmark's:
#: what `make study NAME=tune` prints, see docs/tuning.md.
TUNED: Final = {
    "alternating": "alternating:interior_share=0.5,inclusive_every=3",
    "best-channel-norm": "best-channel-norm:candidate_share=0.25",
    "importance-channel": "importance-channel:rho=0.9,draw_share=1.0,floor=0.3",
    "oort": "oort:epsilon=0.9,least_epsilon=0.2,cutoff=0.5",
}


def benchmark_policies() -> list[str]:
    """Every registered policy in its tuned form, other packings, and age-based as in the paper."""
    chosen = [TUNED.get(name, name) for name in names()]
    return list(dict.fromkeys([*chosen, *PACKED, "age-based"]))


def is_exact(policy: PolicyKey) -> bool:
    """Tell whether a policy solves every round exactly."""
    return str(policy.parameters.get("packing", "")).startswith("exact")


@dataclass(frozen=True)
class BenchmarkScenario:
    """A preset, the paper's unless said, with changes; and an accuracy to be reached."""

    summary: str
    target: float
    changes: dict[str, Any] = field(default_factory=dict)
    preset: str = "paper"

    @property
    def scenario(self) -> Scenario:
        """The scenario with its changes."""
        run = {"run.rounds": ROUNDS, "run.evaluate_every": EVALUATE_EVERY}
        return Scenario.preset(self.preset).with_(**run | self.changes)


SCENARIOS: Final = {
    "paper": BenchmarkScenario("the paper's: 10 dB at the edge, 4 bit, two digits per UE", 0.80),
    "low-rate": BenchmarkScenario(
        "1 bit: one subchannel is enough for most; Dirichlet(0.5) data",
        0.85,
        {
            "threshold.rate": 1.0,
            "data.partition": {"kind": "dirichlet", "concentration": 0.5},
        },
    ),
    "one-digit": BenchmarkScenario(
        "6 bit and one digit per UE: the hardest data and a high rate",
        0.70,
        {"threshold.rate": 6.0, "data.partition.classes_per_ue": 1},
    ),
    "weak-uneven": BenchmarkScenario(
        "0 dB at the edge; Dirichlet(0.3) data of very different amounts",
        0.80,
        {
            "channel.link.edge_snr_db": 0.0,
            "data.partition": {"kind": "dirichlet", "concentration": 0.3},
            "devices.samples_sigma": 1.0,
        },
    ),
    "large": BenchmarkScenario(
        "400 UEs on 40 subchannels, two digits per UE",
        0.80,
        {"cell.ues": 400, "cell.subchannels": 40},
    ),
    "deadline": BenchmarkScenario(
        "UEs compute at different speeds, and updates after the deadline are lost; the access "
        "point offers every policy only UEs whose upload at the threshold would be in time",
        0.80,
        {
            "timing": {
                "kind": "slots",
                "deadline_slots": 2.0,
                "eligible": "in-time",
            },
            "devices.computing": {"kind": "slots", "median_slots": 1.0, "sigma": 0.5},
        },
    ),
    "urban-micro": BenchmarkScenario(
        "a street cell at 3.5 GHz: walkers, most UEs indoors, knowledge that is 5 ms old",
        0.80,
        preset="urban-micro",
    ),
    "urban-macro": BenchmarkScenario(
        "a mast above the roofs at 2 GHz among loaded cells: a third of the UEs is out of reach",
        0.70,
        preset="urban-macro",
    ),
    "indoor-factory": BenchmarkScenario(
        "a dense hall at 3.5 GHz: devices of 0 dBm on the move, most need several subchannels",
        0.80,
        preset="indoor-factory",
    ),
    "office": BenchmarkScenario(
        "rooms and corridors at 3.5 GHz: UEs in clusters, gains known in 4 bits",
        0.80,
        preset="office",
    ),
    "vehicular": BenchmarkScenario(
        "cars around a roadside unit at 5.9 GHz: the channel moves on before they upload",
        0.80,
        preset="vehicular",
    ),
    "mixed-devices": BenchmarkScenario(
        "phones, tablets and sensors that differ in power, speed, data and presence",
        0.80,
        preset="mixed-devices",
    ),
    "periodic": BenchmarkScenario(
        "the paper's in periods: UEs learn in the background and restart, FedBuff's weights",
        0.80,
        preset="periodic",
    ),
}
