"""The paper's figure and its claims, and the map of where age-based scheduling (ABS) wins or loses.

The figure has ABS and max-pack with either rule for ties, beside two policies that know neither
ages nor channels; the map varies threshold, heterogeneity of the data and alpha.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from agewise.checks import first_line
from agewise.experiment import Plan, Result, RunOptions, execute
from agewise.experiment._progress import say
from agewise.policies import AgeBased, MaxPack, Random, RoundRobin
from agewise.report import PICTURES, gain_map
from agewise.report._claims import Claim, claims_of
from agewise.report._setting import Setting
from agewise.report._style import draw_on_page
from agewise.scenario import Scenario, require_scenario
from agewise.scheduling import Policy
from agewise.statistics import Axis, axis_of
from agewise.studies.explanation import FIGURES
from agewise.studies.explanation import explain as explain_gain
from agewise.tables import Explanation, GainMap, ResultTable, Variation

_MAX_PACK = MaxPack()
_POLICIES: tuple[Policy, ...] = (
    AgeBased(),
    _MAX_PACK,
    AgeBased(ties="lowest-index"),
    MaxPack(ties="lowest-index"),
    RoundRobin(),
    Random(),
)
#: The squares of the map: rate thresholds, and partitions by how heterogeneous they make UEs.
_THRESHOLDS = (1.0, 2.0, 4.0, 6.0)
_PARTITIONS: Mapping[str, Variation] = {
    "all alike": {"data.partition": "iid"},
    "Dirichlet 0.5": {"data.partition": "dirichlet", "data.partition.concentration": 0.5},
    "2 classes": {"data.partition": "shards", "data.partition.classes_per_ue": 2},
    "1 class": {"data.partition": "shards", "data.partition.classes_per_ue": 1},
}
_ALPHAS = (0.0, 0.5, 1.0)


@dataclass(frozen=True, eq=False)
class Reproduction:
    """Results, what they say of the paper's claims, and the figures made of them.

    ``explanation`` says what the gain is made of, if that was asked for.
    """

    result: Result
    claims: list[Claim]
    figures: list[Path]
    explanation: Explanation | None = None
    over: str | Axis = "rounds"

    @property
    def axis(self) -> Axis:
        """Axis that the numbers are over."""
        return axis_of(self.over)

    def table(self) -> ResultTable:
        """Return the numbers behind the verdict, over the axis that was asked for."""
        return self.result.table(self.over)


def reproduce(
    scenario: Scenario | None = None,
    seeds: int | Iterable[int] = 20,
    out: Path | str = "runs/reproduce-paper",
    *,
    explain: bool = False,
    over: str | Axis = "rounds",
    **options: Any,
) -> Reproduction:
    """Run the paper's comparison, judge its claims and draw its figure into the folder ``out``.

    The scenario is the preset `usual_scenario` by default. ``explain`` also replays
    what the gain is made of (`agewise.explain`). ``over`` seconds, joules, channel-uses or bits the
    table, the figure and the claim of a higher accuracy are at equal costs, where there are any;
    the other claims are about rounds. The other options are those of `agewise.compare`, but
    the first run that fails always ends it.
    """
    axis = axis_of(over)
    scenario = Scenario.preset(usual_scenario(axis)) if scenario is None else scenario
    require_scenario(scenario)
    axis.require(scenario.resolved())
    plan = Plan.of(scenario, _POLICIES, seeds, baseline=_MAX_PACK)
    chosen = replace(RunOptions.of(options), fail_fast=True)
    result = execute(plan, out, chosen)
    explanation = None
    if explain:
        explanation = explain_gain(
            result, *_POLICIES[:2], engine=chosen.engine, workers=chosen.workers,
            address=chosen.address, quiet=chosen.quiet,
        )  # fmt: skip
    figures = [result.path / name for name in FIGURES] if explain else []
    try:
        figures[:0] = draw_on_page(
            result.path / "accuracy", 2.7, lambda f: _draw_accuracy(f, result, axis)
        )
    except Exception as error:  # fonts and disks fail in many ways: claims are told still
        say(f"agewise: the figure could not be drawn: {first_line(error)}", quiet=False)
    return Reproduction(result, claims_of(result, axis), figures, explanation, over)


def usual_scenario(over: str | Axis = "rounds") -> str:
    """Name the preset of a reproduction: the paper's, or one with times and energy.

    >>> usual_scenario(), usual_scenario("joules")
    ('paper', 'physical-timed')
    """
    return "physical-timed" if axis_of(over).needs_seconds else "paper"


def _draw_accuracy(figure: Figure, result: Result, axis: Axis) -> None:
    """Draw accuracies as in the paper, and the paired gain of age-based over max-pack."""
    setting = Setting(result, {}, axis=axis)
    left, right = figure.subfigures(1, 2)  # type: ignore[misc]
    PICTURES["accuracy"].draw(setting, list(setting.runs), left)
    if setting.gains is not None:
        PICTURES["gain"].draw(setting, setting.pair, right)
        right.axes[0].set_title("age-based minus max-pack, same seeds", fontsize=8)


@dataclass(frozen=True, eq=False)
class MapReproduction:
    """Results, and the gains of age-based over max-pack by alpha, partition and threshold."""

    result: Result
    map: GainMap
    figures: list[Path]


def map_scenario(over: str | Axis = "rounds") -> Scenario:
    """Return the scenario of the map by default: the preset of `usual_scenario` with 40 rounds."""
    return Scenario.preset(usual_scenario(over)).with_(**{"run.rounds": 40})


def _map_plan(scenario: Scenario, seeds: int | Iterable[int]) -> Plan:
    """Plan the runs behind the map: max-pack and every alpha in every square.

    A rate threshold is given as such, or by the deadline that it follows from.
    """
    upload_s = scenario.threshold.upload_s

    def threshold(rate: float) -> dict[str, float]:
        if upload_s is None:
            return {"threshold.rate": rate}
        return {"threshold.deadline_s": upload_s * (scenario.rate_threshold / rate)}

    variations = [
        {**threshold(rate), **partition}
        for partition in _PARTITIONS.values()
        for rate in _THRESHOLDS
    ]
    age_based = [AgeBased(alpha=alpha) for alpha in _ALPHAS]
    return Plan.of(scenario, [_MAX_PACK, *age_based], seeds, variations, baseline=_MAX_PACK)


def reproduce_map(
    scenario: Scenario | None = None,
    seeds: int | Iterable[int] = 20,
    out: Path | str = "runs/map-paper",
    *,
    over: str | Axis = "rounds",
    **options: Any,
) -> MapReproduction:
    """Sweep threshold, partition and alpha, and draw the gain of age-based over max-pack.

    The scenario is that of `map_scenario` by default. ``over`` another axis
    the gains are at equal costs, where the scenario has them. The other options are those of
    `agewise.compare`, but the first run that fails always ends it.
    """
    axis = axis_of(over)
    scenario = map_scenario(axis) if scenario is None else scenario
    require_scenario(scenario)
    axis.require(scenario.resolved())
    plan = _map_plan(scenario, seeds)
    result = execute(plan, out, replace(RunOptions.of(options), fail_fast=True))
    squares = replace(
        result.only(plan).map(axis),
        row_name="data of a UE",
        rows=list(_PARTITIONS),
        column_name="R_s",
        columns=[f"{rate:g}" for rate in _THRESHOLDS],
    )
    figures = draw_on_page(result.path / "map", 2.3, lambda figure: _draw_map(figure, squares))
    return MapReproduction(result, squares, figures)


def _draw_map(figure: Figure, squares: GainMap) -> None:
    axes = figure.subplots(1, len(_ALPHAS), sharey=True)
    for layer, axis in enumerate(axes):
        gain_map(squares, layer, axis)
        axis.set_title(rf"$\alpha$ = {_ALPHAS[layer]:g}", fontsize=8)
        axis.set_xlabel(r"rate threshold $R_s$ (bit)")
    axes[0].set_ylabel("data of a UE")
    title = f"accuracy {squares.where}, age-based minus max-pack, points"
    figure.suptitle(title, fontsize=8)
