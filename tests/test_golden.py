"""What runs of the presets gave when they were frozen: the same accuracies, owners and ages.

Whoever means to change a result writes the file anew and says so in CHANGELOG.md:
``python -m tests.test_golden``.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from agewise import Scenario, simulate

FILE = Path(__file__).parent / "golden.json"
GOLDEN = json.loads(FILE.read_text(encoding="utf-8"))


def digest(values, kind):
    return hashlib.sha256(np.ascontiguousarray(values, dtype=kind).tobytes()).hexdigest()[:16]


def measured(case):
    """The digests of a run, and a number that people can read."""
    preset, policy = case.split()
    rounds = GOLDEN[case]["rounds"]
    history = simulate(Scenario.preset(preset).with_(**{"run.rounds": rounds}), policy, 3)
    return {
        "rounds": rounds,
        "accuracy": digest(history.accuracy, "<f8"),
        "owner": digest(history.owner, "<i8"),
        "ages": digest(history.ages, "<i8"),
        "last_accuracy": float(history.accuracy[-1]),
    }


@pytest.mark.parametrize("case", GOLDEN)
def test_runs_are_what_they_were(case):
    assert measured(case) == GOLDEN[case]


if __name__ == "__main__":
    made = {case: measured(case) for case in GOLDEN}
    FILE.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
