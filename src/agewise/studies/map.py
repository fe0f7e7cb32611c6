"""Where age-based scheduling wins or loses: over threshold, likeness of data and alpha."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agewise import learn
from agewise.experiment import Plan, Result, RunOptions, execute
from agewise.policies import AgeBased, MaxPack
from agewise.report import PAGE_IN, gain_map, new_figure, paper_style, save
from agewise.scenario import RateThreshold, Scenario, require_scenario
from agewise.statistics import Axis, axis_of
from agewise.studies.paper import POLICIES, usual_scenario
from agewise.tables import GainMap

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
class MapReproduction:
    """The results, and the gains of age-based over max-pack by alpha, likeness and threshold."""

    result: Result
    map: GainMap
    figures: list[Path]


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
    threshold = scenario.threshold
    if isinstance(threshold, RateThreshold):
        return {"threshold.rate": rate}
    longer = learn.rate_threshold(scenario) / rate
    return {"threshold.deadline_s": threshold.deadline_s * longer}


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
    **options: Any,
) -> MapReproduction:
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
    result = execute(plan, out, replace(RunOptions.of(options), fail_fast=True))
    squares = replace(
        result.only(plan).map(axis),
        row_name="data of a UE",
        rows=list(LIKENESS),
        column_name="R_s",
        columns=[f"{rate:g}" for rate in THRESHOLDS],
    )
    return MapReproduction(result, squares, _draw(result.path, squares))


def _draw(path: Path, squares: GainMap) -> list[Path]:
    files = [path / f"map.{kind}" for kind in ("png", "pdf")]
    with paper_style():
        figure = new_figure(PAGE_IN, 2.3)
        axes = figure.subplots(1, len(ALPHAS), sharey=True)
        for layer, axis in enumerate(axes):
            gain_map(squares, layer, axis)
            axis.set_title(rf"$\alpha$ = {ALPHAS[layer]:g}", fontsize=8)
            axis.set_xlabel(r"rate threshold $R_s$ (bit)")
        axes[0].set_ylabel("data of a UE")
        title = f"accuracy, age-based minus max-pack, points ({squares.measured})"
        figure.suptitle(title, fontsize=8)
        for file in files:
            save(figure, file)
    return files
