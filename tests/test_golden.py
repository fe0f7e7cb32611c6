"""What runs gave when they were frozen: the same arrays, blocks of gains and numbers shown.

Whoever means to change a result writes the file anew and says so in CHANGELOG.md:
``python -m tests.test_golden``. Cases are keyed by preset, policy, rounds and a change of
`CHANGES`; a case that is not in the file is frozen then. Digests hold on x86-64;
elsewhere accuracies agree to 1e-6.
"""

import hashlib
import json
import math
import platform
import tempfile
from pathlib import Path

import numpy as np
import pytest

from agewise import Scenario, compare, simulate, sweep
from agewise.scenario import presets

FILE = Path(__file__).parent / "golden.json"
GOLDEN = json.loads(FILE.read_text(encoding="utf-8"))

_MLP = {"kind": "mlp", "hidden_widths": [24]}
_MEANS = {"kind": "k-means", "clusters": 10, "initial_deviation": 0.01}
_SECONDS = {
    "kind": "seconds",
    "slot_s": 0.1,
    "downlink": {"kind": "constant", "seconds": 0.01},
    "deadline_s": 0.4,
    "transmit_power_w": 0.2,
}
_DEVICES = {
    "kind": "alike", "battery_j": 0.1, "battery_sigma": 0.3,
    "computing": {"kind": "log-normal", "median_s": 0.1, "sigma": 0.8, "power_w": 0.5},
}  # fmt: skip
#: Changes of a preset, by a word each.
CHANGES = {
    "memory": {"learn.aggregation": {"kind": "memory", "discount": "none"}},
    "memory-fixed": {"learn.aggregation.kind": "memory", "learn.aggregation.discount":
                     {"kind": "fixed", "rate": 0.1}},
    "memory-agreement": {"learn.aggregation": {"kind": "memory", "discount": "agreement"}},
    "variance-reduced": {"learn.aggregation": "variance-reduced"},
    "momentum": {"learn.aggregation": {"kind": "momentum", "beta": 0.9, "server_step": 0.5}},
    "adam": {"learn.aggregation": {"kind": "adam", "beta_1": 0.9, "beta_2": 0.99,
                                   "server_step": 0.01, "tau": 1e-3}},
    "qsgd": {"learn.compression": {"kind": "qsgd", "bits": 4}},
    "top-k": {"learn.compression": {"kind": "top-k", "share": 0.1}},
    "sign": {"learn.compression": {"kind": "sign", "error_feedback": True}},
    "proximal": {"learn.local": {"kind": "proximal", "mu": 0.1}},
    "control-variates": {"learn.local": "control-variates"},
    "k-means": {"learn.model": _MEANS},
    "mlp": {"learn.model": _MLP, "learn.step_size": 0.1, "learn.batch_size": 10},
    "logistic": {"learn.model.loss": "logistic", "run.objective_every": 1},
    "multinomial": {"learn.model.loss": "multinomial", "learn.penalty": {"kind": "l1",
                                                                          "weight": 1e-4}},
    "squared-error": {"learn.model.loss": "squared-error", "learn.step_decay": 0.5},
    "squared-hinge": {"learn.model.loss": "squared-hinge", "data.task": "parity"},
    "dirichlet": {"data.partition": {"kind": "dirichlet", "concentration": 0.3},
                  "devices.samples_sigma": 0.8},
    "slots": {"timing": {"kind": "slots", "deadline_slots": 2.5},
              "devices.computing": {"kind": "slots", "median_slots": 0.7, "sigma": 0.6}},
    "seconds": {"timing": _SECONDS, "devices": _DEVICES},
    "optimum": {"run.optimum": {"kind": "sampled", "every": 2, "work_limit": 20_000},
                "run.age_alpha": 1.0},
}  # fmt: skip
RUNS_OF_CHANGES = ("age-based", "max-pack")
_ROUNDS = 5


def names():
    """All cases: ``preset policy rounds [change]``."""
    able = [name for name in presets() if not name.startswith("lenet")]  # needs PyTorch
    plain = [f"{one} {policy} {_ROUNDS}" for one in able for policy in RUNS_OF_CHANGES]
    on = dict.fromkeys(CHANGES, ("paper", "urban-micro"))
    on |= {"seconds": ("paper",), "optimum": ("paper",), "k-means": ("paper",)}
    changed = [
        f"{one} {policy} {_ROUNDS} {change}"
        for change, ones in on.items()
        for one in ones
        for policy in RUNS_OF_CHANGES
    ]
    return [*plain, *changed]


def digest(values, kind):
    return hashlib.sha256(np.ascontiguousarray(values, dtype=kind).tobytes()).hexdigest()[:16]


def digest_lists(lists, kind):
    lengths = [len(one) for one in lists]
    return digest(lengths, "<i8") + digest(np.concatenate(lists), kind)


def measured(case):
    """The digests of the arrays of a run, and a number that people can read."""
    preset, policy, rounds, *change = case.split()
    changes = {"run.rounds": int(rounds)} | (CHANGES[change[0]] if change else {})
    history = simulate(Scenario.preset(preset).with_(**changes), policy, 3)
    return {
        "accuracy": digest(history.accuracy, "<f8"),
        "losses": digest([history.numbers("test_loss"), history.numbers("objective")], "<f8"),
        "owner": digest(history.owner, "<i8"),
        "power": digest(history.power, "<f8"),
        "gain": digest(history.gain, "<f8"),
        "received": digest_lists(history.received, "<i8"),
        "outcome": digest_lists(history.outcome, "<U9"),
        "ages": digest(history.ages, "<i8"),
        "costs": digest([history.numbers(name) for name in COSTS], "<f8"),
        "energy": digest(history.energy_j, "<f8"),
        "last_accuracy": float(history.accuracy[-1]),
    }


COSTS = ("seconds", "joules", "channel_uses", "bits")


@pytest.mark.parametrize("case", GOLDEN["runs"])
def test_runs_are_what_they_were(case):
    now, frozen = measured(case), GOLDEN["runs"][case]
    if platform.machine() in ("x86_64", "AMD64"):
        assert now == frozen
    else:  # another compiler may round the last bit otherwise
        assert now["last_accuracy"] == pytest.approx(frozen["last_accuracy"], abs=1e-6)


def folders(root):
    """Three small results folders: a comparison, a comparison over seconds, a sweep."""
    short = Scenario.preset("paper").with_(**{"run.rounds": 4, "cell.ues": 30})
    timed = Scenario.preset("physical-timed").with_(**{"run.rounds": 4, "cell.ues": 30})
    both = ("age-based", "max-pack")
    options = {"seeds": 6, "engine": "inline"}
    yield "compare", compare(short, both, out=root / "compare", **options), "rounds"
    yield "seconds", compare(timed, both, out=root / "seconds", **options), "seconds"
    vary = {"threshold.rate": [2.0, 4.0]}
    yield "sweep", sweep(short, both, vary=vary, out=root / "sweep", **options), "rounds"


def shown(result, over):
    """All numbers of the table of a result, rounded to nine digits and sorted."""
    table = result.table(over=over)
    rows = (table.to_polars() if hasattr(table, "to_polars") else table).to_dicts()
    numbers = [x for row in rows for x in row.values() if isinstance(x, float) and math.isfinite(x)]
    return sorted(float(f"{x:.9g}") for x in numbers)


def test_tables_show_the_numbers_that_they_did(tmp_path):
    """Columns may be renamed, and more may be shown: none of these numbers may be another."""
    found = {name: shown(result, over) for name, result, over in folders(tmp_path)}
    assert found.keys() == GOLDEN["shown"].keys()
    for name, numbers in GOLDEN["shown"].items():
        missing = set(numbers) - set(found[name])
        assert not missing, name


def main():
    """Freeze what the package computes now."""
    cases = dict.fromkeys([*GOLDEN["runs"], *names()])
    runs = {case: measured(case) for case in cases}
    with tempfile.TemporaryDirectory() as root:
        tables = {name: shown(result, over) for name, result, over in folders(Path(root))}
    parts = [
        f'"{part}": {{\n' + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in of.items())
        for part, of in (("runs", runs), ("shown", tables))
    ]
    FILE.write_text("{" + "\n},\n".join(parts) + "\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
