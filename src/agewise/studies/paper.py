"""The paper's figure: age-based scheduling (ABS) against max-pack, and what its claims are worth.

Both run with either rule for ties, beside two policies that know neither ages nor channels.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from agewise import statistics
from agewise.engines import Engine, make_engine
from agewise.experiment import Result, compare
from agewise.policies import AgeBased, MaxPack, Random, RoundRobin
from agewise.report import accuracy_curves, gain_curve, paper_style, save
from agewise.report.claims import EARLY, Claim, claims_of
from agewise.report.figures import PAGE_IN
from agewise.report.text import short_names
from agewise.scenario import Scenario
from agewise.scheduling import Policy
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

    def table(self) -> pl.DataFrame:
        """The numbers behind the verdict."""
        return self.result.table()


def reproduce(
    scenario: Scenario | None = None,
    seeds: int | Iterable[int] = 20,
    out: Path | str = "runs/reproduce-paper",
    *,
    explain: bool = False,
    engine: str | Engine = "local",
    workers: int | None = None,
    address: str | None = None,
    quiet: bool = False,
) -> Reproduction:
    """Run the paper's comparison, judge its claims and draw its figure into the folder ``out``.

    The scenario is the preset ``paper`` by default. ``explain`` also measures what explains the
    gain: both policies on the same models. The other options are those of `agewise.compare`.
    """
    result = compare(
        Scenario.preset("paper") if scenario is None else scenario,
        POLICIES,
        seeds,
        out,
        baseline=MAX_PACK,
        engine=engine,
        workers=workers,
        address=address,
        quiet=quiet,
    )
    explanation = None
    if explain:
        runner = make_engine(engine, workers, address)
        explanation = explain_gain(result, runner, quiet=quiet)
    return Reproduction(result, claims_of(result), draw(result), explanation)


def draw(result: Result) -> list[Path]:
    """The figure, as PNG and PDF in the results folder.

    On the left the accuracies as in the paper, on the right the paired gain of age-based
    scheduling over max-pack.
    """
    names = short_names([policy.key for policy in POLICIES])
    curves = {name: statistics.mean_interval(result.accuracy(key)) for key, name in names.items()}
    age_based, max_pack = result.histories(AGE_BASED), result.histories(MAX_PACK)
    common = sorted(age_based.keys() & max_pack.keys())
    gain = statistics.mean_interval(
        np.array([age_based[seed].accuracy - max_pack[seed].accuracy for seed in common])
    )
    files = [result.path / f"accuracy.{kind}" for kind in ("png", "pdf")]
    with paper_style() as plt:
        figure, (left, right) = plt.subplots(1, 2, figsize=(PAGE_IN, 2.7), layout="constrained")
        accuracy_curves(curves, left)
        gain_curve(gain, EARLY, right).set_title("age-based over max-pack, same seeds", fontsize=8)
        for file in files:
            save(figure, file)
        plt.close(figure)
    return files
