"""The example of docs/accounting.md: who wins by round, and who by joule.

``python -m tests.costs`` prints its table.
"""

import functools

import numpy as np

from agewise import statistics
from agewise.simulation import simulate
from tests.scenarios import tiny

SEEDS = 16
POLICIES = ("max-pack", "age-based", "round-robin")
POINTS = {"rounds": 5, "joules": 1.5}
SCENARIO = tiny(
    timing={
        "kind": "seconds", "slot_s": 0.1, "downlink": {"kind": "constant", "seconds": 0.0},
        "transmit_power_w": 0.1,
    },
    **{
        "cell.ues": 30, "data.partition": "iid", "run.rounds": 10,
        "devices.computing": {
            "kind": "cycles", "cycles_per_sample": 1e8, "frequency_hz": 1e9,
            "frequency_sigma": 0.0, "kappa": 1e-28,
        },
    },
)  # fmt: skip


@functools.cache
def accuracies(policy):
    """``[seed]`` at the point of each axis, and joules a round."""
    histories = [simulate(SCENARIO, policy, seed) for seed in range(SEEDS)]
    runs = np.array([history.accuracy for history in histories])
    found = {
        name: statistics.accuracy_at(
            runs, [statistics.AXES[name].cost(history) for history in histories], [point]
        )[:, 0]
        for name, point in POINTS.items()
    }
    return found, float(np.mean([history.numbers("joules") for history in histories]))


def gains():
    """The paired difference of max-pack over round-robin at the point of each axis."""
    (first, _), (second, _) = accuracies("max-pack"), accuracies("round-robin")
    return {name: statistics.contrast(first[name], second[name]) for name in POINTS}


def table():
    """The rows of the document."""
    heads = [
        "policy",
        "J a round",
        f"after {POINTS['rounds']} rounds",
        f"after {POINTS['joules']} J",
    ]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for policy in POLICIES:
        found, joules = accuracies(policy)
        means = (f"{100 * found[name].mean():.1f}%" for name in POINTS)
        lines.append(f"| `{policy}` | {joules:.2f} | {' | '.join(means)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
    print(gains())
