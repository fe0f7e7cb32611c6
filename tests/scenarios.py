"""Small scenarios to test on."""

from agewise.scenario import Scenario

TINY = {
    "cell": {"ues": 12, "subchannels": 5, "radius_m": 100.0},
    "channel": {
        "path_loss_exponent": 3.5,
        "reference_distance_m": 1.0,
        "edge_snr_db": 10.0,
        "rate_threshold": 4.0,
    },
    "data": {
        "dataset": "synthetic",
        "task": "all",
        "partition": "shards",
        "classes_per_ue": 2,
        "concentration": 0.5,
        "sizes": "equal",
        "size_sigma": 0.5,
    },
    "learn": {
        "loss": "hinge",
        "clusters": 10,
        "penalty": "l2",
        "penalty_weight": 1e-3,
        "local_steps": 10,
        "batch_size": 1,
        "step_size": 0.05,
        "step_decay": 0.0,
        "initial_deviation": 0.01,
    },
    "run": {"rounds": 8, "evaluate_every": 1, "age_alpha": 0.5},
}


def tiny(**changes):
    """The tiny scenario with changes by section, such as ``learn={"loss": "logistic"}``."""
    return Scenario(**{name: {**TINY[name], **changes.get(name, {})} for name in TINY})
