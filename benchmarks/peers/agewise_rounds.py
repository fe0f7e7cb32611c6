"""Agewise: `agewise.simulation.rounds` with the policy ``random``.

There are as many subchannels as clients in a cohort and the rate threshold is zero, so that each
scheduled client needs one subchannel and exactly ten clients upload in every round. The time holds
all that a round of Agewise does: drawing the channel, scheduling with its check, training,
averaging, the record of the round, and the evaluation.
"""

import agewise
from agewise.scenario import Scenario
from agewise.simulation import rounds
from benchmarks import learning
from benchmarks.peers import common

MODELS = {
    "linear": {"kind": "linear", "loss": "hinge", "initial_deviation": 0.0},
    "mlp": {"kind": "mlp", "hidden_widths": [200, 200]},
    "lenet5": {
        "kind": "torch", "name": "lenet5", "loss": "cross-entropy", "optimiser": "SGD",
    },
}  # fmt: skip


def scenario(workload: common.Workload) -> Scenario:
    """The workload as a scenario of Agewise; the meter ends it."""
    penalty = {"kind": "l2", "weight": workload.penalty} if workload.penalty else "none"
    return learning.scenario(workload.steps, workload.batch, 10**6).with_(
        **{
            "learn.model": MODELS[workload.model],
            "learn.penalty": penalty,
            "learn.step_size": workload.step_size,
        }
    )


def main() -> None:
    """Measure."""
    meter = common.Meter()
    for record in rounds(scenario(common.chosen_workload()), "random", seed=1):
        if record.delivery.received.size != common.COHORT:
            raise RuntimeError(
                f"{record.delivery.received.size} clients uploaded in round {record.t}"
            )
        if not meter.after_round(record.evaluation and record.evaluation.accuracy):
            break
    meter.finish(agewise.__version__)


if __name__ == "__main__":
    main()
