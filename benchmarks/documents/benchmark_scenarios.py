"""The scenarios of the benchmark, fixed so that results of one version can be compared.

Whoever changes one raises `VERSION`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from agewise.policies import names
from agewise.scenario import Scenario
from agewise.studies.racing import LATE

VERSION: Final = 4
ROUNDS: Final = 60
#: After how many rounds models are evaluated each time.
EVALUATE_EVERY: Final = 5
#: The best forms found on other seeds than the benchmark's: `make study NAME=tune` writes them.
TUNED_FILE: Final = Path(__file__).with_name("tuned.json")
#: Rivals that are told what no access point knows: bounds, not rivals.
FRESH: Final = {"best-channel-norm": "norms", "best-norm": "norms", "power-of-choice": "losses"}
#: Bounds have fewer seeds: all UEs learn for them in every round.
FRESH_SEEDS: Final = 10
BASELINE, AGE_BASED = "max-pack", "age-based"


def tuned(kind: str) -> dict[str, Any]:
    """The best forms found: of ``policies`` as written, or of ``aggregations`` by scenario."""
    found: dict[str, Any] = json.loads(TUNED_FILE.read_text(encoding="utf-8"))[kind]
    return found


def benchmark_policies(scenario: str) -> dict[str, str]:
    """The forms of policies that run in a scenario, by what they are called there.

    All run in their best form; max-pack and age-based also as in the paper, and what a policy asks
    UEs for also with fresh answers.
    """
    forms: dict[str, str] = tuned("policies")
    late = SCENARIOS[scenario].scenario.pace.kind != "rounds"
    found = {BASELINE: BASELINE}
    for name in names():
        if late or name not in LATE:
            written = forms.get(name, name)
            found[f"{name}, tuned" if name == BASELINE else name] = written
            if name in FRESH:
                join = "," if ":" in written else ":"
                found[f"{name}, fresh {FRESH[name]}"] = f"{written}{join}{FRESH[name]}=fresh"
    if found[AGE_BASED] != AGE_BASED:
        found[f"{AGE_BASED}, the paper's"] = AGE_BASED
    if found[f"{BASELINE}, tuned"] == BASELINE:
        del found[f"{BASELINE}, tuned"]
    return found


def is_bound(policy: str) -> bool:
    """Tell whether a policy of the benchmark is told what no access point knows."""
    return ", fresh " in policy


@dataclass(frozen=True)
class BenchmarkScenario:
    """A preset, the paper's unless said, with changes; ``seeds`` are fewer where runs take long."""

    summary: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    preset: str = "paper"
    seeds: int = 100

    @property
    def scenario(self) -> Scenario:
        """The scenario with its changes."""
        run = {"run.rounds": ROUNDS, "run.evaluate_every": EVALUATE_EVERY}
        return Scenario.preset(self.preset).with_(**run, **self.changes)


def _deadline(eligible: str) -> dict[str, Any]:
    return {
        "timing": {"kind": "slots", "deadline_slots": 2.0, "eligible": eligible},
        "devices.computing": {"kind": "slots", "median_slots": 1.0, "sigma": 0.5},
    }


SCENARIOS: Final = {
    "paper": BenchmarkScenario("the paper's: 10 dB at the edge, 4 bit, two digits per UE"),
    "low-rate": BenchmarkScenario(
        "1 bit: one subchannel is enough for most; Dirichlet(0.5) data",
        {
            "threshold.rate": 1.0,
            "data.partition": {"kind": "dirichlet", "concentration": 0.5},
        },
    ),
    "one-digit": BenchmarkScenario(
        "6 bit and one digit per UE: the hardest data and a high rate",
        {"threshold.rate": 6.0, "data.partition.classes_per_ue": 1},
    ),
    "weak-uneven": BenchmarkScenario(
        "0 dB at the edge; Dirichlet(0.3) data of very different amounts",
        {
            "channel.link.edge_snr_db": 0.0,
            "data.partition": {"kind": "dirichlet", "concentration": 0.3},
            "devices.samples_sigma": 1.0,
        },
    ),
    "large": BenchmarkScenario(
        "400 UEs on 40 subchannels, two digits per UE",
        {"cell.ues": 400, "cell.subchannels": 40},
        seeds=50,
    ),
    "deadline": BenchmarkScenario(
        "UEs compute at different speeds, and updates after the deadline are lost; the access "
        "point offers every policy only UEs whose upload would be in time, so that none is lost "
        "and retry changes nothing",
        _deadline("in-time"),
    ),
    "deadline-unfiltered": BenchmarkScenario(
        "the same, and every UE is offered: who is scheduled may be too late, every time",
        _deadline("everyone"),
    ),
    "deadline-retry": BenchmarkScenario(
        "the same unfiltered, and a UE that failed is left out for 1, 3, 7, at most 16 rounds",
        _deadline("everyone") | {"retry": {"kind": "back-off"}},
    ),
    "urban-micro": BenchmarkScenario(
        "a street cell at 3.5 GHz: walkers, most UEs indoors, knowledge that is 5 ms old",
        preset="urban-micro",
        seeds=50,
    ),
    "urban-macro": BenchmarkScenario(
        "a mast above the roofs at 2 GHz among loaded cells: a third of the UEs is out of reach",
        preset="urban-macro",
        seeds=50,
    ),
    "indoor-factory": BenchmarkScenario(
        "a dense hall at 3.5 GHz: devices of 0 dBm on the move, most need several subchannels",
        preset="indoor-factory",
        seeds=50,
    ),
    "office": BenchmarkScenario(
        "rooms and corridors at 3.5 GHz: UEs in clusters, gains known in 4 bits",
        preset="office",
        seeds=50,
    ),
    "vehicular": BenchmarkScenario(
        "cars around a roadside unit at 5.9 GHz: the channel moves on before they upload",
        preset="vehicular",
        seeds=50,
    ),
    "mixed-devices": BenchmarkScenario(
        "phones, tablets and sensors that differ in power, speed, data and presence",
        preset="mixed-devices",
        seeds=50,
    ),
    "periodic": BenchmarkScenario(
        "the paper's in periods: UEs learn in the background and restart, FedBuff's weights",
        preset="periodic",
        seeds=50,
    ),
}
