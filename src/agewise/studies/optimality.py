"""What policies lose against the optimum of problem (3), over regimes of the channel."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import polars as pl
from numpy.typing import NDArray

from agewise import statistics
from agewise.checks import whole_number
from agewise.experiment import Plan, Result, StudyOptions, as_columns, execute_study, product
from agewise.records import History
from agewise.report import PAGE_IN, new_figure, paper_style, save
from agewise.report.text import last_part, percent_text, short_names, value_text
from agewise.scenario import Scenario, require_scenario
from agewise.scheduling import Policy

POLICIES = ("age-based", "age-based-plus", "max-pack", "proportional-fair", "round-robin", "random")
REGIMES: dict[str, Sequence[Any]] = {
    "channel.link.edge_snr_db": (-10.0, 0.0, 10.0, 20.0),
    "threshold.rate": (1.0, 2.0, 4.0, 6.0),
}
ROUNDS = 50
#: Steps of the search in a round, some seconds at most: nearly every round is proven before.
WORK_LIMIT = 3_000_000


@dataclass(frozen=True, eq=False)
class Losses:
    """The rounds of a run in which the optimum was worked out, ``[round]`` each.

    ``weights`` are the sums of f_alpha(age) over the UEs that the policy scheduled, ``optima`` the
    best that were found for the same ages and gains, and ``bounds`` what no schedule can exceed;
    these two agree where the optimum is proven.
    """

    rounds: NDArray[np.int64]
    weights: NDArray[np.float64]
    optima: NDArray[np.float64]
    bounds: NDArray[np.float64]

    @property
    def per_round(self) -> float:
        """The mean share of the optimum that a round loses; NaN if no round had any to lose."""
        some = self.optima > 0
        if not some.any():
            return float("nan")
        return float(np.mean(1.0 - self.weights[some] / self.optima[some]))

    @property
    def over_run(self) -> float:
        """The share of the optima of all rounds together that was lost."""
        total = self.optima.sum()
        return float(1.0 - self.weights.sum() / total) if total > 0 else float("nan")

    @property
    def proven(self) -> int:
        """In how many rounds the optimum is proven."""
        return int(np.sum(self.bounds <= self.optima * (1 + 1e-9)))


def losses_of(history: History) -> Losses:
    """What a run lost in the rounds in which its scenario asks for the optimum (run.optimum)."""
    optima = history.numbers("optimum")
    known = ~np.isnan(optima)
    return Losses(
        rounds=np.flatnonzero(known),
        weights=history.numbers("weight")[known],
        optima=optima[known],
        bounds=history.numbers("optimum_bound")[known],
    )


def with_optimum(scenario: Scenario, every: int, work_limit: int) -> Scenario:
    """The scenario with the optimum worked out once in ``every`` rounds."""
    require_scenario(scenario)
    if not 1 <= whole_number("every", every) <= scenario.run.rounds:
        raise ValueError(
            f"every must be from 1 to the {scenario.run.rounds} rounds of a run, not {every}"
        )
    sampled = {"kind": "sampled", "every": every, "work_limit": work_limit}
    return scenario.with_(**{"run.optimum": sampled})


@dataclass(frozen=True, eq=False)
class Gap:
    """The runs, and a row per regime and policy of what they lost against the optimum.

    ``loss_per_round`` is the mean share of the optimum that a round lost, ``loss_over_run`` that
    of all rounds together, each with the ends of its 95% interval over the seeds; the optimum is
    that of the ages and gains which the policy itself met. ``age_cost`` is the mean cost of the
    ages that it led to. ``unproven`` counts rounds whose optimum is only known within a bound.
    """

    result: Result
    table: pl.DataFrame
    figures: list[Path]


def gap_scenario() -> Scenario:
    """What the gap is measured on by default: the preset ``paper`` with 50 rounds."""
    return Scenario.preset("paper").with_(**{"run.rounds": ROUNDS})


def gap(
    scenario: Scenario | None = None,
    policies: Sequence[Policy | str] = POLICIES,
    vary: Mapping[str, Sequence[Any]] | None = None,
    seeds: int | Iterable[int] = 5,
    out: Path | str = "runs/gap-paper",
    *,
    every: int = 10,
    work_limit: int = WORK_LIMIT,
    **options: Unpack[StudyOptions],
) -> Gap:
    """Run the policies over regimes, with one in ``every`` rounds also solved to optimality.

    The scenario is that of `gap_scenario` by default; its ``run.optimum`` becomes ``every`` and
    ``work_limit``. ``vary`` holds the regimes: edge SNRs of -10 to 20 dB with thresholds of 1 to
    6 bit by default. The other options are those of `agewise.sweep`, but the first run that fails
    always ends it.
    """
    base = with_optimum(gap_scenario() if scenario is None else scenario, every, work_limit)
    plan = gap_plan(base, policies, vary, seeds)
    result = execute_study(plan, out, options)
    table = _table(result, plan)
    return Gap(result, table, _draw(result, plan, table))


def gap_plan(
    scenario: Scenario,
    policies: Sequence[Policy | str] = POLICIES,
    vary: Mapping[str, Sequence[Any]] | None = None,
    seeds: int | Iterable[int] = 5,
) -> Plan:
    """The runs behind `gap`, of a scenario with the optimum worked out (`with_optimum`)."""
    return Plan.of(scenario, policies, seeds, product(REGIMES if vary is None else vary))


def _table(result: Result, plan: Plan) -> pl.DataFrame:
    """The rows of what was planned; the folder may hold more from before."""
    rows = []
    for variation in plan.variations:
        for policy in plan.keys:
            finished = result.histories(policy, variation)
            histories = [finished[seed] for seed in plan.seeds]
            losses = [losses_of(history) for history in histories]
            row: dict[str, Any] = {**as_columns(variation), "policy": str(policy)}
            row["seeds"] = len(losses)
            for name in ("per_round", "over_run"):
                interval = statistics.mean_interval([getattr(one, name) for one in losses])
                row |= {
                    f"loss_{name}": interval.mean,
                    f"loss_{name}_low": interval.low,
                    f"loss_{name}_high": interval.high,
                }
            costs = [history.numbers("age_cost").mean() for history in histories]
            row["age_cost"] = float(np.mean(costs))
            row["rounds"] = sum(one.rounds.size for one in losses)
            row["unproven"] = row["rounds"] - sum(one.proven for one in losses)
            rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


def _draw(result: Result, plan: Plan, table: pl.DataFrame) -> list[Path]:
    """Draw the mean loss of a round, policies down, regimes across; darker is worse."""
    names = list(short_names(plan.keys).values())
    losses = table["loss_per_round"].to_numpy().reshape(len(plan.variations), -1).T
    columns = ["\n".join(map(value_text, regime.values())) for regime in plan.variations]
    worst = max(0.01, float(np.nanmax(losses, initial=0.0)))
    files = [result.path / f"gap.{kind}" for kind in ("png", "pdf")]
    with paper_style():
        figure = new_figure(PAGE_IN, 0.9 + 0.22 * len(names))
        axis = figure.subplots()
        axis.imshow(100 * losses, cmap="Oranges", vmin=0, vmax=100 * worst, aspect="auto")
        for (row, column), loss in np.ndenumerate(losses):
            text = "-" if np.isnan(loss) else percent_text(loss)
            tone = "white" if loss > 0.6 * worst else "black"
            axis.text(column, row, text, ha="center", va="center", fontsize=6.5, color=tone)
        axis.set_xticks(range(len(columns)), columns)
        axis.set_yticks(range(len(names)), names)
        axis.grid(visible=False)
        axis.set_xlabel(", ".join(map(last_part, plan.variations[0])))
        axis.set_title("weight lost against the optimum, % of a round", fontsize=8)
        for file in files:
            save(figure, file)
    return files
