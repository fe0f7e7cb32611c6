"""Where ABS wins, ties or loses: over rate threshold, likeness of the data and alpha."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from agewise import statistics
from agewise.engines import make_engine
from agewise.experiment import Measured, Plan, Result, execute
from agewise.policies import AgeBased, MaxPack, Policy
from agewise.report import gain_map, paper_style, save
from agewise.scenario import Scenario

if TYPE_CHECKING:
    from agewise.engines import Engine

THRESHOLDS = (1.0, 2.0, 4.0, 6.0)
LIKENESS: dict[str, dict[str, Any]] = {
    "all alike": {"data.partition": "iid"},
    "Dirichlet 0.5": {"data.partition": "dirichlet", "data.concentration": 0.5},
    "2 classes": {"data.partition": "shards", "data.classes_per_ue": 2},
    "1 class": {"data.partition": "shards", "data.classes_per_ue": 1},
}
ALPHAS = (0.0, 0.5, 1.0)
ROUNDS = 40


@dataclass(frozen=True, eq=False)
class MapResult:
    """``gains[alpha, likeness, threshold]`` of accuracy over MaxPack, with corrected p-values.

    The gain is the mean over the rounds of the run.
    """

    result: Result
    gains: NDArray[np.float64]
    p_values: NDArray[np.float64]
    alphas: tuple[float, ...]
    likeness: list[str]
    thresholds: tuple[float, ...]
    figures: list[Path]

    def counts(self) -> tuple[int, int, int]:
        """In how many squares ABS wins, ties and loses, at the 5% level."""
        sure = self.p_values < 0.05
        wins = int(np.sum(sure & (self.gains > 0)))
        losses = int(np.sum(sure & (self.gains < 0)))
        return wins, self.gains.size - wins - losses, losses


def reproduce_map(
    scenario: Scenario | None = None,
    seeds: int | Iterable[int] = 20,
    out: Path | str = "runs/map",
    *,
    engine: "str | Engine" = "local",
    workers: int | None = None,
    quiet: bool = False,
) -> MapResult:
    """Sweep threshold, likeness and alpha, and draw the gain of ABS over MaxPack."""
    base = (
        Scenario.preset("paper").with_(**{"run.rounds": ROUNDS}) if scenario is None else scenario
    )
    variations = [
        {"channel.rate_threshold": threshold, **likeness}
        for likeness in LIKENESS.values()
        for threshold in THRESHOLDS
    ]
    policies: list[Policy | str] = [MaxPack(), *(AgeBased(alpha=alpha) for alpha in ALPHAS)]
    chosen = make_engine(engine, workers)
    plan = Plan.of(base, policies, seeds, variations, baseline=MaxPack())
    result = execute(plan, out, chosen, quiet=quiet)
    shape = (len(ALPHAS), len(LIKENESS), len(THRESHOLDS))
    gains, p_values = np.empty(shape), np.empty(shape)
    for row, column in np.ndindex(shape[1:]):
        variation = variations[row * len(THRESHOLDS) + column]
        packed, *aged = (Measured.of(result.histories(p, variation)) for p in policies)
        for layer, own in enumerate(aged):
            paired = statistics.paired_difference(
                np.nanmean(own.accuracy, axis=1), np.nanmean(packed.accuracy, axis=1)
            )
            gains[layer, row, column] = paired.difference
            p_values[layer, row, column] = paired.p_value
    p_values = statistics.holm(p_values.ravel()).reshape(shape)
    figures = _draw(result.path, gains, p_values)
    return MapResult(result, gains, p_values, ALPHAS, list(LIKENESS), THRESHOLDS, figures)


def _draw(path: Path, gains: NDArray[np.float64], p_values: NDArray[np.float64]) -> list[Path]:
    columns, rows = [f"{threshold:g}" for threshold in THRESHOLDS], list(LIKENESS)
    limit = max(0.01, float(np.nanmax(np.abs(gains))))
    with paper_style() as plt:
        figure, axes = plt.subplots(
            1, len(ALPHAS), figsize=(7.16, 2.3), layout="constrained", sharey=True
        )
        for layer, axis in enumerate(axes):
            gain_map(gains[layer], p_values[layer], columns, rows, limit, axis)
            axis.set_title(rf"$\alpha$ = {ALPHAS[layer]:g}", fontsize=8)
            axis.set_xlabel(r"rate threshold $R_s$ (bit)")
        axes[0].set_ylabel("data of a UE")
        figure.suptitle("accuracy of ABS over MaxPack, points (mean over rounds)", fontsize=8)
        files = [path / f"map.{kind}" for kind in ("png", "pdf")]
        for file in files:
            save(figure, file)
        plt.close(figure)
    return files
