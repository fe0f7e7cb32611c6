"""The paper's figure: age-based scheduling (ABS) against max-pack, and what its claims are worth.

Both run with either rule for ties, beside two policies that know neither ages nor channels.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

import polars as pl

from agewise.experiment import Plan, Result, StudyOptions, engine_of, execute_study
from agewise.experiment.progress import say
from agewise.policies import AgeBased, MaxPack, Random, RoundRobin
from agewise.report import PAGE_IN, PICTURES, new_figure, paper_style, save
from agewise.report.claims import Claim, claims_of
from agewise.report.setting import Setting
from agewise.scenario import Scenario, require_scenario
from agewise.scheduling import Policy
from agewise.statistics import Axis, axis_of
from agewise.studies.explanation import Explanation
from agewise.studies.explanation import explain as explain_gain

AGE_BASED, MAX_PACK = AgeBased(), MaxPack()
POLICIES: tuple[Policy, ...] = (
    AGE_BASED,
    MAX_PACK,
    AgeBased(ties="lowest-index"),
    MaxPack(ties="lowest-index"),
    RoundRobin(),
    Random(),
)


@dataclass(frozen=True, eq=False)
class Reproduction:
    """The results, what they say of the paper's claims, and the figures made of them.

    ``explanation`` says what explains the gain, if that was asked for.
    """

    result: Result
    claims: list[Claim]
    figures: list[Path]
    explanation: Explanation | None = None
    over: str | Axis = "rounds"

    @property
    def axis(self) -> Axis:
        """What the numbers are over."""
        return axis_of(self.over)

    def table(self) -> pl.DataFrame:
        """The numbers behind the verdict, over the axis that was asked for."""
        return self.result.table(self.over)


def reproduce(
    scenario: Scenario | None = None,
    seeds: int | Iterable[int] = 20,
    out: Path | str = "runs/reproduce-paper",
    *,
    explain: bool = False,
    over: str | Axis = "rounds",
    **options: Unpack[StudyOptions],
) -> Reproduction:
    """Run the paper's comparison, judge its claims and draw its figure into the folder ``out``.

    The scenario is the preset `usual_scenario` by default. ``explain`` also measures what explains
    the gain: both policies on the same models. ``over`` seconds, joules, uses or bits the table,
    the figure and the claim of a higher accuracy are at equal costs, where the scenario has them;
    the other claims are about rounds. The other options are those of `agewise.compare`, but
    the first run that fails always ends it.
    """
    axis = axis_of(over)
    scenario = Scenario.preset(usual_scenario(axis)) if scenario is None else scenario
    require_scenario(scenario)
    axis.require(scenario.resolved())
    plan = Plan.of(scenario, POLICIES, seeds, baseline=MAX_PACK)
    result = execute_study(plan, out, options)
    explanation = None
    if explain:
        quiet = options.get("quiet", False)
        explanation = explain_gain(result, engine_of(options), quiet=quiet)
    return Reproduction(result, claims_of(result, axis), _drawn(result, axis), explanation, over)


def usual_scenario(over: str | Axis = "rounds") -> str:
    """The preset of a reproduction: the paper's, or that in physical units with times and energy.

    >>> usual_scenario(), usual_scenario("joules")
    ('paper', 'physical-timed')
    """
    return "physical-timed" if axis_of(over).needs_seconds else "paper"


def _drawn(result: Result, axis: Axis) -> list[Path]:
    """The files of the figure; what was computed is worth saying even if none can be drawn."""
    try:
        return draw(result, axis)
    except Exception as error:  # fonts, disks and Matplotlib fail in many ways
        reason = str(error).partition("\n")[0] or type(error).__name__
        say(f"agewise: the figure could not be drawn: {reason}", quiet=False)
        return []


def draw(result: Result, over: str | Axis = "rounds") -> list[Path]:
    """The figure, as PNG and PDF in the results folder.

    On the left the accuracies as in the paper, on the right the paired gain of age-based
    scheduling over max-pack.
    """
    setting = Setting(result, {}, axis=axis_of(over))
    files = [result.path / f"accuracy.{kind}" for kind in ("png", "pdf")]
    with paper_style():
        figure = new_figure(PAGE_IN, 2.7)
        left, right = figure.subfigures(1, 2)  # type: ignore[misc]
        PICTURES["accuracy"].draw(setting, list(setting.runs), left)
        if setting.gains is not None:
            PICTURES["gain"].draw(setting, setting.pair, right)
            right.axes[0].set_title("age-based over max-pack, same seeds", fontsize=8)
        for file in files:
            save(figure, file)
    return files
