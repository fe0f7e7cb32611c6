"""The paper's figure: ABS against MaxPack, with both rules for ties and two plain policies."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agewise import statistics
from agewise.experiment import Measured, Result, compare
from agewise.policies import AgeBased, MaxPack, Policy, Random, RoundRobin
from agewise.report import accuracy_curves, gain_curve, paper_style, save
from agewise.report.style import PAGE_IN
from agewise.reproduction.claims import EARLY, Claim, judge
from agewise.scenario import Scenario

if TYPE_CHECKING:
    import polars

    from agewise.engines import Engine

ABS, PACK = AgeBased(), MaxPack()
POLICIES: dict[str, Policy] = {
    "ABS": ABS,
    "MaxPack": PACK,
    "ABS, index ties": AgeBased(ties="lowest-index"),
    "MaxPack, index ties": MaxPack(ties="lowest-index"),
    "round-robin": RoundRobin(),
    "random": Random(),
}


@dataclass(frozen=True, eq=False)
class Reproduction:
    """The results, what they say of the paper's claims, and the figures made of them."""

    result: Result
    claims: list[Claim]
    figures: list[Path]

    def table(self) -> "polars.DataFrame":
        """The numbers behind the verdict."""
        return self.result.table()


def reproduce(
    scenario: Scenario | None = None,
    seeds: int | Iterable[int] = 20,
    out: Path | str = "runs/paper",
    *,
    engine: "str | Engine" = "local",
    workers: int | None = None,
    quiet: bool = False,
) -> Reproduction:
    """Run the paper's comparison, judge its claims and draw its figure into the folder."""
    chosen = Scenario.preset("paper") if scenario is None else scenario
    result = compare(
        chosen, list(POLICIES.values()), seeds, out, engine=engine, workers=workers, quiet=quiet,
        baseline=PACK,
    )  # fmt: skip
    measured = [Measured.of(result.histories(policy)) for policy in (ABS, PACK)]
    claims = judge(measured[0], measured[1], chosen.run.rounds)
    return Reproduction(result, claims, draw(result))


def draw(result: Result) -> list[Path]:
    """The figure, as PNG and PDF in the results folder.

    On the left the accuracies as in the paper, on the right the paired gain of ABS over MaxPack.
    """
    accuracy = {name: result.accuracy(policy) for name, policy in POLICIES.items()}
    curves = {name: statistics.mean_interval(values) for name, values in accuracy.items()}
    gain = statistics.mean_interval(accuracy["ABS"] - accuracy["MaxPack"])
    with paper_style() as plt:
        figure, (left, right) = plt.subplots(1, 2, figsize=(PAGE_IN, 2.7), layout="constrained")
        accuracy_curves(curves, left)
        gain_curve(gain, EARLY, right).set_title("ABS over MaxPack, same seeds", fontsize=8)
        files = [result.path / f"accuracy.{kind}" for kind in ("png", "pdf")]
        for file in files:
            save(figure, file)
        plt.close(figure)
    return files
