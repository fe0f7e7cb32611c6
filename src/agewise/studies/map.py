"""Where age-based scheduling wins or loses: over threshold, likeness of data and alpha."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from agewise import statistics
from agewise.experiment import Plan, Result, StudyOptions, execute_study
from agewise.policies import AgeBased, MaxPack
from agewise.report import PAGE_IN, gain_map, new_figure, paper_style, save
from agewise.report.numbers import count_squares
from agewise.report.text import STARS_NOTE, family_text, points_text, squares_text, stars
from agewise.scenario import Scenario
from agewise.scheduling import Policy
from agewise.studies.documents import markdown_table, write_part
from agewise.studies.paper import POLICIES

THRESHOLDS = (1.0, 2.0, 4.0, 6.0)
LIKENESS: dict[str, dict[str, Any]] = {
    "all alike": {"data.partition": "iid"},
    "Dirichlet 0.5": {"data.partition": "dirichlet", "data.partition.concentration": 0.5},
    "2 classes": {"data.partition": "shards", "data.partition.classes_per_ue": 2},
    "1 class": {"data.partition": "shards", "data.partition.classes_per_ue": 1},
}
ALPHAS = (0.0, 0.5, 1.0)
ROUNDS = 40
MAX_PACK = MaxPack()


@dataclass(frozen=True, eq=False)
class MapResult:
    """``gains[alpha, likeness, threshold]`` in accuracy over max-pack, with their p-values.

    The gain is the mean over the rounds of a run; ``p_values``, of the same shape, are corrected
    (Holm) over all squares of the map; ``pairs`` is the number of seeds.
    """

    result: Result
    gains: NDArray[np.float64]
    p_values: NDArray[np.float64]
    alphas: tuple[float, ...]
    likeness: list[str]
    thresholds: tuple[float, ...]
    figures: list[Path]
    pairs: int

    @property
    def family(self) -> str:
        """The sentence on the tests behind the p-values."""
        tests = int(np.sum(~np.isnan(self.p_values)))
        return family_text(tests, "max-pack", "squares of all maps")

    def counts(self) -> tuple[int, int, int]:
        """In how many squares age-based is shown to win, neither, and to lose, at the 5% level."""
        return count_squares(self.gains, self.p_values, self.pairs)


def map_scenario() -> Scenario:
    """What the map is made of by default: the preset ``paper`` with 40 rounds."""
    return Scenario.preset("paper").with_(**{"run.rounds": ROUNDS})


def map_plan(scenario: Scenario, seeds: int | Iterable[int]) -> Plan:
    """The runs behind the map: max-pack and every alpha in every square."""
    variations = [
        {"threshold.rate": threshold, **likeness}
        for likeness in LIKENESS.values()
        for threshold in THRESHOLDS
    ]
    age_based = [AgeBased(alpha=alpha) for alpha in ALPHAS]
    return Plan.of(scenario, [MAX_PACK, *age_based], seeds, variations, baseline=MAX_PACK)


def reproduction_plan(
    scenario: Scenario, seeds: int | Iterable[int], *, whole_map: bool = False
) -> Plan:
    """The runs behind `reproduce`, or behind `reproduce_map`."""
    if whole_map:
        return map_plan(scenario, seeds)
    return Plan.of(scenario, POLICIES, seeds, baseline=MAX_PACK)


def reproduce_map(
    scenario: Scenario | None = None,
    seeds: int | Iterable[int] = 20,
    out: Path | str = "runs/map-paper",
    **options: Unpack[StudyOptions],
) -> MapResult:
    """Sweep threshold, likeness and alpha, and draw the gain of age-based over max-pack.

    The scenario is that of `map_scenario` by default; the other options are those of
    `agewise.compare`, but the first run that fails always ends it.
    """
    plan = map_plan(map_scenario() if scenario is None else scenario, seeds)
    variations, age_based = plan.variations, plan.policies[1:]
    result = execute_study(plan, out, options)
    shape = (len(ALPHAS), len(LIKENESS), len(THRESHOLDS))
    paired = [
        statistics.paired_difference(
            _mean_accuracy(result, plan, policy, variation),
            _mean_accuracy(result, plan, MAX_PACK, variation),
        )
        for policy in age_based
        for variation in variations
    ]
    gains = np.array([one.difference for one in paired]).reshape(shape)
    p_values = statistics.holm([one.p_value for one in paired]).reshape(shape)
    figures = _draw(result.path, gains, p_values)
    made = MapResult(
        result, gains, p_values, ALPHAS, list(LIKENESS), THRESHOLDS, figures, len(plan.seeds)
    )
    write_part(result.path, "map.md", map_markdown(made))
    return made


def map_markdown(study: MapResult) -> str:
    """The map as a part of docs/results.md."""
    counted = squares_text("age-based", study.counts(), "squares", study.pairs)
    text = (
        "What age-based scheduling gains over max-pack in accuracy (mean over the rounds, "
        f"percentage points, {study.pairs} seeds), by rate threshold, data of a UE and alpha: "
        f"{counted}. {study.family} {STARS_NOTE}.\n"
    )
    parts = ["## The map\n", text]
    for layer, alpha in enumerate(study.alphas):
        heads = [f"alpha = {alpha:g}", *(f"{rate:g} bit" for rate in study.thresholds)]
        rows = []
        for row, likeness in enumerate(study.likeness):
            squares = zip(study.gains[layer, row], study.p_values[layer, row], strict=True)
            rows.append([likeness, *(points_text(gain) + stars(p) for gain, p in squares)])
        parts.append(markdown_table(heads, rows))
    return "\n".join(parts)


def _mean_accuracy(
    result: Result, plan: Plan, policy: Policy, variation: Mapping[str, Any]
) -> NDArray[np.float64]:
    """``[seed]`` of the plan: the mean over the rounds in which the accuracy was measured."""
    histories = result.histories(policy, variation)
    return np.array([np.nanmean(histories[seed].accuracy) for seed in plan.seeds])


def _draw(path: Path, gains: NDArray[np.float64], p_values: NDArray[np.float64]) -> list[Path]:
    columns, rows = [f"{threshold:g}" for threshold in THRESHOLDS], list(LIKENESS)
    limit = max(0.01, float(np.nanmax(np.abs(gains))))
    files = [path / f"map.{kind}" for kind in ("png", "pdf")]
    with paper_style():
        figure = new_figure(PAGE_IN, 2.3)
        axes = figure.subplots(1, len(ALPHAS), sharey=True)
        for layer, axis in enumerate(axes):
            gain_map(gains[layer], p_values[layer], columns, rows, limit, axis)
            axis.set_title(rf"$\alpha$ = {ALPHAS[layer]:g}", fontsize=8)
            axis.set_xlabel(r"rate threshold $R_s$ (bit)")
        axes[0].set_ylabel("data of a UE")
        title = "accuracy of age-based over max-pack, points (mean over rounds)"
        figure.suptitle(title, fontsize=8)
        for file in files:
            save(figure, file)
    return files
