"""The paper's comparison with neural networks: ``make study NAME=neural``.

``python -m benchmarks.documents.neural PRESET SEEDS`` for another preset or number of seeds; the
folder ``runs/neural-PRESET`` resumes. A run of LeNet-5 takes minutes, so it is run with the paper's
two policies alone.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from agewise import statistics
from agewise.engines import Engine, make_engine
from agewise.experiment import Measured, Plan, Result, execute
from agewise.experiment.summary import corrected_together
from agewise.policies import make_policy
from agewise.report.text import p_text, points_text, with_interval
from agewise.scenario import Scenario
from benchmarks.documents.results import markdown_table, write_document

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

    def table(self) -> pl.DataFrame:
        """A row per aggregation and policy.

        ``gain@t`` is the paired difference from max-pack with the same aggregation; p-values are
        corrected (Holm) over the whole table.
        """
        rows = []
        for (aggregation, policy), own in self.accuracy.items():
            row: dict[str, Any] = {"aggregation": aggregation, "policy": policy}
            for point, values, base in zip(
                self.points, own, self.accuracy[aggregation, BASELINE], strict=True
            ):
                interval = statistics.mean_interval(values)
                row |= {f"at@{point}": interval.mean, f"at@{point}_low": interval.low}
                row |= {
                    f"at@{point}_high": interval.high,
                    f"gain@{point}": None,
                    f"p@{point}": None,
                }
                if policy != BASELINE:
                    paired = statistics.paired_difference(values, base)
                    row |= {f"gain@{point}": paired.difference, f"p@{point}": paired.p_value}
            rows.append(row)
        frame = pl.DataFrame(rows, infer_schema_length=None)
        return corrected_together(frame, [f"p@{point}" for point in self.points])


def compare_neural(
    preset: str = "mlp-mnist",
    seeds: int | Iterable[int] = 20,
    out: Path | str | None = None,
    *,
    policies: Sequence[str] = POLICIES,
    scenario: Scenario | None = None,
    engine: str | Engine = "local",
    quiet: bool = False,
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
    result = execute(plan, folder, make_engine(engine), quiet=quiet, fail_fast=True)
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
    measured = Measured.of({seed: histories[seed] for seed in seeds})
    return np.array([measured.at(point) for point in points])


def neural_markdown(study: NeuralComparison) -> str:
    """The comparison as a part of docs/results.md."""
    rows = study.table().to_dicts()
    lines = [
        [row["aggregation"], row["policy"], *(_cell(row, point) for point in study.points)]
        for row in rows
    ]
    heads = ["aggregation", "policy", *(f"round {point}" for point in study.points)]
    tests = sum(row[f"p@{point}"] is not None for row in rows for point in study.points)
    text = (
        f"Preset `{study.preset}`, {_MODELS.get(study.preset, study.preset)}: {study.seeds} seeds; "
        "accuracies in percent with 95% intervals, below them the paired gains in points over "
        f"max-pack with the same aggregation, corrected for {tests} tests (Holm).\n"
    )
    parts = [f"## Beyond linear models: {study.preset}\n", text]
    return "\n".join([*parts, markdown_table(heads, lines, words=2), _verdict(study, rows)])


def _cell(row: dict[str, Any], point: int) -> str:
    said, gain = with_interval(row, f"at@{point}"), row[f"gain@{point}"]
    if gain is None:
        return said
    return f"{said}<br>{', '.join(filter(None, (points_text(gain), p_text(row[f'p@{point}']))))}"


def _verdict(study: NeuralComparison, rows: list[dict[str, Any]]) -> str:
    """One sentence an aggregation: where age-based scheduling is above or below max-pack."""
    sentences = []
    for row in rows:
        if row["policy"] != "age-based":
            continue
        shown = [point for point in study.points if (row[f"p@{point}"] or 1.0) < 0.05]
        said = ", ".join(f"{points_text(row[f'gain@{point}'])} at {point}" for point in shown)
        found = (
            f"differs from max-pack ({said})" if shown else "is not shown to differ from max-pack"
        )
        sentences.append(f"With {row['aggregation']} aggregation, age-based scheduling {found}.")
    return " ".join(sentences) + "\n"


if __name__ == "__main__":
    preset, seeds = [*sys.argv[1:], *("mlp-mnist", "20")[len(sys.argv) - 1 :]]
    try:
        chosen = POLICIES[:2] if preset == "lenet-fashion" else POLICIES
        print(neural_markdown(compare_neural(preset, int(seeds), policies=chosen)))
    except ValueError as error:
        raise SystemExit(str(error)) from None
