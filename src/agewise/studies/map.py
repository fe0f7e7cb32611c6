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
from agewise.report.numbers import accuracies, count_squares, grid, mean_gain
from agewise.report.text import family_text
from agewise.scenario import Scenario, require_scenario
from agewise.statistics import Axis, Paired, axis_of
from agewise.studies.paper import POLICIES, usual_scenario

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

    The gain is the mean over the rounds of a run, or ``over`` another axis up to what the cheapest
    run of the square spent; ``p_values``, of the same shape, are corrected (Holm) over all squares
    of the map; ``pairs`` is the number of seeds.
    """

    result: Result
    gains: NDArray[np.float64]
    p_values: NDArray[np.float64]
    alphas: tuple[float, ...]
    likeness: list[str]
    thresholds: tuple[float, ...]
    figures: list[Path]
    pairs: int
    over: str | Axis = "rounds"

    @property
    def measured(self) -> str:
        """What a gain is the mean over."""
        return _measured(axis_of(self.over))

    @property
    def family(self) -> str:
        """The sentence on the tests behind the p-values."""
        tests = int(np.sum(~np.isnan(self.p_values)))
        return family_text(tests, "max-pack", "squares of all maps")

    def counts(self) -> tuple[int, int, int]:
        """In how many squares age-based is shown to win, neither, and to lose, at the 5% level."""
        return count_squares(self.gains, self.p_values, self.pairs)


def map_scenario(over: str | Axis = "rounds") -> Scenario:
    """What the map is made of by default: the preset of `usual_scenario` with 40 rounds."""
    return Scenario.preset(usual_scenario(over)).with_(**{"run.rounds": ROUNDS})


def map_plan(scenario: Scenario, seeds: int | Iterable[int]) -> Plan:
    """The runs behind the map: max-pack and every alpha in every square."""
    variations = [
        {**_threshold(scenario, rate), **likeness}
        for likeness in LIKENESS.values()
        for rate in THRESHOLDS
    ]
    age_based = [AgeBased(alpha=alpha) for alpha in ALPHAS]
    return Plan.of(scenario, [MAX_PACK, *age_based], seeds, variations, baseline=MAX_PACK)


def _threshold(scenario: Scenario, rate: float) -> dict[str, float]:
    """What gives this rate threshold: the rate itself, or the deadline that it follows from."""
    upload_s = scenario.threshold.upload_s
    if upload_s is None:
        return {"threshold.rate": rate}
    longer = scenario.rate_threshold / rate
    return {"threshold.deadline_s": upload_s * longer}


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
    *,
    over: str | Axis = "rounds",
    **options: Unpack[StudyOptions],
) -> MapResult:
    """Sweep threshold, likeness and alpha, and draw the gain of age-based over max-pack.

    The scenario is that of `map_scenario` by default. ``over`` seconds, joules, uses or bits the
    gains are at equal costs, where the scenario has them. The other options are those of
    `agewise.compare`, but the first run that fails always ends it.
    """
    axis = axis_of(over)
    scenario = map_scenario(axis) if scenario is None else scenario
    require_scenario(scenario)
    axis.require(scenario.resolved())
    plan = map_plan(scenario, seeds)
    result = execute_study(plan, out, options)
    shape = (len(ALPHAS), len(LIKENESS), len(THRESHOLDS))
    squares = [_square(result, plan, variation, axis) for variation in plan.variations]
    paired = [square[layer] for layer in range(len(ALPHAS)) for square in squares]
    gains = np.array([one.difference for one in paired]).reshape(shape)
    p_values = statistics.holm([one.p_value for one in paired]).reshape(shape)
    figures = _draw(result.path, gains, p_values, axis)
    return MapResult(
        result, gains, p_values, ALPHAS, list(LIKENESS), THRESHOLDS, figures, len(plan.seeds), over
    )


def _square(result: Result, plan: Plan, variation: Mapping[str, Any], axis: Axis) -> list[Paired]:
    """The gain of every alpha over max-pack on the seeds of the plan."""
    runs = []
    for policy in (MAX_PACK, *plan.policies[1:]):
        histories = result.histories(policy, variation)
        runs.append({seed: histories[seed] for seed in plan.seeds})
    if axis.column is None:  # over the rounds in which the accuracy was measured
        packed, *aged = (
            np.array([np.nanmean(run.accuracy) for run in each.values()]) for each in runs
        )
        return [statistics.paired_difference(each, packed) for each in aged]
    points = grid([run for each in runs for run in each.values()], axis)
    packed, *aged = (accuracies(each, axis, points) for each in runs)
    return [mean_gain(each, packed) for each in aged]


def _measured(axis: Axis) -> str:
    if axis.column is None:
        return "mean over the rounds"
    return f"mean over {axis.what} up to what the cheapest run of the square spent"


def _draw(
    path: Path, gains: NDArray[np.float64], p_values: NDArray[np.float64], over: Axis
) -> list[Path]:
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
        title = f"accuracy of age-based over max-pack, points ({_measured(over)})"
        figure.suptitle(title, fontsize=8)
        for file in files:
            save(figure, file)
    return files
