"""Small scenarios to test on."""

from agewise.scenario import Scenario

TINY = Scenario.read(
    {
        "cell": {"ues": 12, "subchannels": 5},
        "channel": {
            "kind": "model",
            "placement": {"kind": "disc", "radius_m": 100.0},
            "path_loss": {"kind": "power-law", "exponent": 3.5, "reference_distance_m": 1.0},
            "fading": "rayleigh",
            "link": {"kind": "edge-snr", "edge_snr_db": 10.0},
        },
        "threshold": {"kind": "rate", "rate": 4.0},
        "timing": "none",
        "data": {
            "dataset": "synthetic",
            "task": "all",
            "partition": {"kind": "shards", "classes_per_ue": 2},
        },
        "learn": {
            "model": {"kind": "linear", "loss": "hinge", "initial_deviation": 0.01},
            "penalty": {"kind": "l2", "weight": 1e-3},
            "aggregation": "average",
            "local_steps": 10,
            "batch_size": 1,
            "step_size": 0.05,
            "step_decay": 0.0,
        },
        "run": {
            "rounds": 8,
            "evaluate_every": 1,
            "objective_every": 0,
            "optimum": "never",
            "age_alpha": 0.5,
        },
    }
)


#: Changes under which the model diverges.
DIVERGING = {
    "learn.model.loss": "squared-error", "learn.step_size": 50.0, "learn.local_steps": 200,
}  # fmt: skip


def in_seconds(slot_s=0.5, downlink_s=0.0, median_s=0.3, sigma=1.0, power_w=2.0):
    """Changes by which a round takes seconds and joules: of slots, the downlink and computing."""
    return {
        "timing": {
            "kind": "seconds",
            "slot_s": slot_s,
            "downlink": {"kind": "constant", "seconds": downlink_s},
            "transmit_power_w": 0.1,
        },
        "devices.computing": {
            "kind": "log-normal", "median_s": median_s, "sigma": sigma, "power_w": power_w
        },
    }  # fmt: skip


def tiny(**changes):
    """The tiny scenario with changes by dotted name, such as ``**{"run.rounds": 3}``."""
    return TINY.with_(**changes)
