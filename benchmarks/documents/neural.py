"""The paper's comparison with neural networks: ``make study NAME=neural``.

``python -m benchmarks.documents.neural PRESET SEEDS`` for another preset or number of seeds; the
folder ``runs/neural-PRESET`` resumes. A run of LeNet-5 takes minutes, so it is run with the paper's
two policies alone.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agewise import statistics
from agewise.experiment import LearningCurve, Plan, Result, RunOptions, execute
from agewise.policies import make_policy
from agewise.scenario import Scenario
from agewise.statistics import Estimate
from agewise.tables import Cell, Column, Table
from agewise.tables._words import family_text, points_text
from benchmarks.documents.pages import write_document

POLICIES: Final = ("age-based", "max-pack", "round-robin", "random")
BASELINE: Final = "max-pack"
#: By what they are called in the table.
AGGREGATIONS: Final[dict[str, dict[str, Any]]] = {
    "average": {"kind": "average"},
    "memory": {"kind": "memory", "discount": {"kind": "none"}},
}
#: Rounds after which accuracies are compared.
CHECKPOINTS: Final = (10, 20, 40, 100)
#: What a preset is called in a sentence.
_MODELS: Final = {
    "mlp-mnist": "an MLP of 784-200-200-10 on MNIST",
    "lenet-fashion": "LeNet-5 on Fashion-MNIST",
}


@dataclass(frozen=True, eq=False)
class NeuralComparison:
    """``accuracy[aggregation, policy]`` is ``[checkpoint, seed]``."""

    preset: str
    points: tuple[int, ...]
    accuracy: Mapping[tuple[str, str], NDArray[np.float64]]
    seeds: int

    def estimates(self) -> dict[tuple[str, str], dict[int, Estimate]]:
        """By aggregation and policy the accuracies at each checkpoint.

        Gains are over max-pack with the same aggregation, all of them one family of tests.
        """
        found = {}
        for (aggregation, policy), own in self.accuracy.items():
            base = self.accuracy[aggregation, BASELINE]
            for point, values, other in zip(self.points, own, base, strict=True):
                gain = None if policy == BASELINE else statistics.contrast(values, other)
                found[aggregation, policy, point] = statistics.estimate(values, gain)
        gains = [each.gain for each in found.values() if each.gain is not None]
        corrected = iter(statistics.correct(gains))
        rows: dict[tuple[str, str], dict[int, Estimate]] = {key: {} for key in self.accuracy}
        for (aggregation, policy, point), each in found.items():
            judged = each if each.gain is None else replace(each, gain=next(corrected))
            rows[aggregation, policy][point] = judged
        return rows


def compare_neural(
    preset: str = "mlp-mnist",
    seeds: int | Iterable[int] = 20,
    out: Path | str | None = None,
    *,
    policies: Sequence[str] = POLICIES,
    scenario: Scenario | None = None,
    **options: Any,
) -> NeuralComparison:
    """Run the policies with both aggregations; ``runs/neural-PRESET`` by default resumes.

    ``max-pack`` must be one of the policies: it is what the others are compared with.

    The part of docs/results.md is written into the folder. ``scenario`` takes the preset's place.
    """
    chosen = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    variations = {name: {"learn.aggregation": rule} for name, rule in AGGREGATIONS.items()}
    base = Scenario.preset(preset) if scenario is None else scenario
    plan = Plan.of(base, policies, chosen, variations.values())
    folder = Path(f"runs/neural-{preset}" if out is None else out)
    result = execute(plan, folder, replace(RunOptions.of(options), fail_fast=True))
    points = tuple(point for point in CHECKPOINTS if point <= base.run.rounds)
    accuracy = {
        (name, policy): _at(result, policy, variation, chosen, points)
        for name, variation in variations.items()
        for policy in policies
    }
    made = NeuralComparison(preset, points, accuracy, len(chosen))
    write_document(folder / "neural.md", neural_markdown(made))
    return made


def _at(
    result: Result,
    policy: str,
    variation: Mapping[str, Any],
    seeds: list[int],
    points: tuple[int, ...],
) -> NDArray[np.float64]:
    """``[checkpoint, seed]``: accuracies of these seeds."""
    histories = result.histories(make_policy(policy), variation)
    curve = LearningCurve.of({seed: histories[seed] for seed in seeds})
    return np.array([curve.at(point) for point in points])


def neural_markdown(study: NeuralComparison) -> str:
    """The comparison as a part of docs/results.md."""
    found = study.estimates()
    lines: list[list[Cell]] = [[*key, *by_point.values()] for key, by_point in found.items()]
    columns = [
        *(Column(head, kind="words") for head in ("aggregation", "policy")),
        *(Column(f"round {point}", ".1f", 100.0) for point in study.points),
    ]
    every = [each.gain for by_point in found.values() for each in by_point.values()]
    family = family_text(
        [gain for gain in every if gain is not None],
        f"{BASELINE} with the same aggregation",
        "policies, aggregations and rounds",
    )
    text = (
        f"Preset `{study.preset}`, {_MODELS.get(study.preset, study.preset)}: {study.seeds} seeds; "
        "accuracies in percent with 95% intervals, below them the paired gains in points. "
        f"{family}\n"
    )
    parts = [f"## Beyond linear models: {study.preset}\n", text]
    return "\n".join([*parts, Table("", columns, lines).to_markdown(), _verdict(found)])


def _verdict(found: Mapping[tuple[str, str], Mapping[int, Estimate]]) -> str:
    """One sentence an aggregation: where age-based scheduling is above or below max-pack."""
    sentences = []
    for (aggregation, policy), by_point in found.items():
        if policy != "age-based":
            continue
        gains = {point: each.gain for point, each in by_point.items() if each.gain is not None}
        said = ", ".join(
            f"{points_text(gain.mean)} at {point}" for point, gain in gains.items() if gain.shown
        )
        told = f"differs from max-pack ({said})" if said else "is not shown to differ from max-pack"
        sentences.append(f"With {aggregation} aggregation, age-based scheduling {told}.")
    return " ".join(sentences) + "\n"


if __name__ == "__main__":
    preset, seeds = [*sys.argv[1:], *("mlp-mnist", "20")[len(sys.argv) - 1 :]]
    try:
        chosen = POLICIES[:2] if preset == "lenet-fashion" else POLICIES
        print(neural_markdown(compare_neural(preset, int(seeds), policies=chosen)))
    except ValueError as error:
        raise SystemExit(str(error)) from None
