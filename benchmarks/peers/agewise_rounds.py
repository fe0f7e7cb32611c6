"""Agewise: `agewise.simulation.rounds` with the policy ``random``.

There are as many subchannels as clients in a cohort and the rate threshold is zero, so that each
scheduled client needs one subchannel and exactly ten clients upload in every round. The time holds
all that a round of Agewise does: drawing the channel, scheduling with its check, training,
averaging, the record of the round, and the evaluation.
"""

import agewise
from agewise.scenario import Scenario
from agewise.simulation import rounds
from benchmarks.peers import common


def scenario(workload: common.Workload) -> Scenario:
    """The workload as a scenario of Agewise."""
    return Scenario.model_validate(
        {
            "cell": {"ues": common.CLIENTS, "subchannels": common.COHORT, "radius_m": 100.0},
            "channel": {
                "path_loss_exponent": 3.5,
                "reference_distance_m": 1.0,
                "edge_snr_db": 10.0,
                "rate_threshold": 0.0,
            },
            "data": {"dataset": "mnist", "task": "all", "partition": "iid", "sizes": "equal"},
            "learn": {
                "loss": "hinge",
                "penalty": "l2",
                "penalty_weight": common.PENALTY,
                "local_steps": workload.steps,
                "batch_size": workload.batch,
                "step_size": common.STEP_SIZE,
                "step_decay": 0.0,
                "initial_deviation": 0.0,
            },
            "run": {
                "rounds": 10**9,  # the meter ends it
                "evaluate_every": common.EVALUATE_EVERY,
                "age_alpha": 0.5,
            },
        }
    )


def main() -> None:
    """Measure."""
    meter = common.Meter()
    for record in rounds(scenario(common.chosen_workload()), "random", seed=1):
        if record.received.size != common.COHORT:
            raise RuntimeError(f"{record.received.size} clients uploaded in round {record.t}")
        if not meter.after_round(record.accuracy):
            break
    meter.finish(agewise.__version__)


if __name__ == "__main__":
    main()
