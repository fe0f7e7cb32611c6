"""Losses of policies against the optimum of problem (3), and ages against their bound."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from agewise.checks import whole_number
from agewise.experiment import Plan, Result, RunOptions, execute, product
from agewise.random import Streams
from agewise.records import History, PolicyKey
from agewise.report._style import draw_on_page
from agewise.scenario import Scenario, require_scenario
from agewise.scheduling import Policy
from agewise.spectrum import count_needs, least_mean_age, needs_to_deliver
from agewise.statistics import Estimate, estimate
from agewise.tables import Cell, Column, Flat, PolicyTable, Table, Variation, column_entries
from agewise.tables._words import NOTHING, last_part, percent_text, value_text

GAP_POLICIES = (
    "age-based",
    "age-based:packing=auction",
    "max-pack",
    "proportional-fair",
    "round-robin",
    "random",
)
_REGIMES: dict[str, Sequence[float]] = {
    "channel.link.edge_snr_db": (-10.0, 0.0, 10.0, 20.0),
    "threshold.rate": (1.0, 2.0, 4.0, 6.0),
}
#: Steps of the search in a round, some seconds at most: nearly every round is proven before.
_WORK_LIMIT = 3_000_000


@dataclass(frozen=True, eq=False)
class Losses:
    """Losses in the rounds of a run whose optimum was worked out, ``[round]`` each.

    ``weights`` are the sums of f_alpha(age) over the UEs that the policy scheduled, ``optima`` the
    best that were found for the same ages and gains, and ``bounds`` what no schedule can exceed;
    these two agree where the optimum is proven.
    """

    rounds: NDArray[np.int64]
    weights: NDArray[np.float64]
    optima: NDArray[np.float64]
    bounds: NDArray[np.float64]

    @classmethod
    def of(cls, history: History) -> "Losses":
        """Collect the rounds in which the scenario asks for the optimum (run.optimum)."""
        optima = history.numbers("optimum")
        known = ~np.isnan(optima)
        return cls(
            rounds=np.flatnonzero(known),
            weights=history.numbers("weight")[known],
            optima=optima[known],
            bounds=history.numbers("optimum_bound")[known],
        )

    @property
    def per_round(self) -> float:
        """Mean share of the optimum that a round loses; NaN if no round had any to lose."""
        some = self.optima > 0
        if not some.any():
            return float("nan")
        return float(np.mean(1.0 - self.weights[some] / self.optima[some]))

    @property
    def over_run(self) -> float:
        """Share of the optima of all rounds together that was lost."""
        total = self.optima.sum()
        return float(1.0 - self.weights.sum() / total) if total > 0 else float("nan")

    @property
    def proven(self) -> int:
        """Number of rounds whose optimum is proven."""
        return int(np.sum(self.bounds <= self.optima * (1 + 1e-9)))


def with_optimum(scenario: Scenario, every: int, work_limit: int) -> Scenario:
    """Return the scenario with the optimum worked out once in ``every`` rounds."""
    require_scenario(scenario)
    whole_number("every", every, 1, scenario.run.rounds)
    sampled = {"kind": "sampled", "every": every, "work_limit": work_limit}
    return scenario.with_(**{"run.optimum": sampled})


@dataclass(frozen=True, eq=False)
class GapRow:
    """Losses of one policy against the optimum in one regime, over the seeds.

    ``loss_per_round`` is the mean share of the optimum that a round lost, ``loss_over_run`` that
    of all rounds together; the optimum is that of the ages and gains which the policy itself met.
    ``age_cost`` is the mean cost of the ages that it led to, and ``above_bound`` how far their mean
    lies above what no policy is below in a run (`agewise.spectrum.least_mean_age`), as a share of
    that. ``unproven`` counts the ``rounds`` whose optimum is only known within a bound.
    """

    policy: PolicyKey
    variation: Variation
    seeds: int
    loss_per_round: Estimate
    loss_over_run: Estimate
    above_bound: Estimate
    age_cost: float
    rounds: int
    unproven: int


@dataclass(frozen=True, eq=False)
class GapTable(PolicyTable):
    """Table with a row per regime and policy."""

    rows: Sequence[GapRow]

    @property
    def proven(self) -> str:
        """Sentence on the rounds whose optimum is proven."""
        rounds = sum(row.rounds for row in self.rows)
        unproven = sum(row.unproven for row in self.rows)
        return f"The optimum is proven in {rounds - unproven:,} of {rounds:,} rounds."

    def table(self) -> Table:
        """Lay out the losses and how far ages are above the bound in percent, and their cost."""
        columns = [
            Column("loss of\na round", ".2f", 100.0),
            Column("loss of\nthe run", ".2f", 100.0),
            Column("age above\nthe bound", ".1f", 100.0),
            Column("age cost", ".1f"),
            Column("unproven"),
        ]
        cells = []
        for row in self.rows:
            more: list[Cell] = [row.loss_per_round, row.loss_over_run.mean]
            more += [row.above_bound.mean, row.age_cost, row.unproven or None]
            cells.append((row.policy, row.variation, more))
        title = (
            "Weight lost against the optimum, mean age above its bound, % (95% interval over seeds)"
        )
        return self.lay_out(title, columns, cells, self.proven)

    def to_dicts(self) -> list[Flat]:
        """Return the flat columns, row by row, as in JSON."""
        made = []
        for row in self.rows:
            flat = column_entries(row.variation, self.varied)
            flat |= {"policy": str(row.policy), "seeds": row.seeds}
            for name in ("loss_per_round", "loss_over_run", "above_bound"):
                share: Estimate = getattr(row, name)
                flat |= {name: share.mean, f"{name}_low": share.low, f"{name}_high": share.high}
            flat |= {"age_cost": row.age_cost, "rounds": row.rounds, "unproven": row.unproven}
            made.append(flat)
        return made


@dataclass(frozen=True, eq=False)
class Gap:
    """Runs, their losses against the optimum, and the figures of these."""

    result: Result
    table: GapTable
    figures: list[Path]


def gap_scenario() -> Scenario:
    """Return the scenario of the gap by default: the preset ``paper`` with 50 rounds."""
    return Scenario.preset("paper").with_(**{"run.rounds": 50})


def gap(
    scenario: Scenario | None = None,
    policies: Sequence[Policy | str] = GAP_POLICIES,
    vary: Mapping[str, Sequence[Any]] | None = None,
    seeds: int | Iterable[int] = 5,
    out: Path | str = "runs/gap-paper",
    *,
    every: int = 10,
    work_limit: int = _WORK_LIMIT,
    **options: Any,
) -> Gap:
    """Run the policies over regimes, with one in ``every`` rounds also solved to optimality.

    The scenario is that of `gap_scenario` by default; its ``run.optimum`` becomes ``every`` and
    ``work_limit``. ``vary`` holds the regimes: edge SNRs of -10 to 20 dB with thresholds of 1 to
    6 bit by default. The other options are those of `agewise.sweep`, but the first run that fails
    always ends it.
    """
    base = with_optimum(gap_scenario() if scenario is None else scenario, every, work_limit)
    plan = Plan.of(base, policies, seeds, product(_REGIMES if vary is None else vary))
    result = execute(plan, out, replace(RunOptions.of(options), fail_fast=True))
    asked = result.only(plan)
    rows: list[GapRow] = []
    for variation in plan.variations:
        bounds = {seed: _age_bound(base.with_(**variation), seed) for seed in plan.seeds}
        rows += [
            _row(policy, variation, asked.histories(policy, variation), bounds)
            for policy in plan.keys
        ]
    table = GapTable(plan.keys, plan.variations, rows)
    figures = draw_on_page(
        result.path / "gap", 0.9 + 0.22 * len(table.policies), lambda figure: _draw(figure, table)
    )
    return Gap(result, table, figures)


def _age_bound(scenario: Scenario, seed: int) -> float:
    """Return what no policy's mean age over the UEs and rounds of this run is below."""
    streams = Streams(seed)
    channel, devices = scenario.make_channel(streams), scenario.device_table(streams)
    costs, needs = scenario.cost_model(devices, channel.power_budget, scenario.model_length), []
    for block in map(channel.block, range(scenario.run.rounds)):
        met = None if block.true is block.seen else block.true
        needs.append(needs_to_deliver(costs.uplink(block.seen), met))
    return least_mean_age(count_needs(np.array(needs), channel.subchannel_count))


def _row(
    policy: PolicyKey,
    variation: Variation,
    runs: Mapping[int, History],
    bounds: Mapping[int, float],
) -> GapRow:
    losses = [Losses.of(history) for history in runs.values()]
    rounds = sum(one.rounds.size for one in losses)
    return GapRow(
        policy,
        variation,
        seeds=len(losses),
        loss_per_round=estimate([one.per_round for one in losses]),
        loss_over_run=estimate([one.over_run for one in losses]),
        above_bound=estimate([_above(run, bounds[seed]) for seed, run in runs.items()]),
        age_cost=float(np.mean([run.numbers("age_cost").mean() for run in runs.values()])),
        rounds=rounds,
        unproven=rounds - sum(one.proven for one in losses),
    )


def _above(run: History, bound: float) -> float:
    return float(run.ages.mean()) / bound - 1.0 if bound else float("nan")


def _draw(figure: Figure, table: GapTable) -> None:
    """Draw the mean loss of a round, policies down, regimes across; darker is worse."""
    names = list(map(str, table.policies))
    losses = np.array([row.loss_per_round.mean for row in table.rows])
    losses = losses.reshape(len(table.variations), -1).T
    columns = ["\n".join(map(value_text, regime.values())) for regime in table.variations]
    worst = max(0.01, float(np.nanmax(losses, initial=0.0)))
    axis = figure.subplots()
    axis.imshow(100 * losses, cmap="Oranges", vmin=0, vmax=100 * worst, aspect="auto")
    for (row, column), loss in np.ndenumerate(losses):
        text = NOTHING if np.isnan(loss) else percent_text(loss)
        tone = "white" if loss > 0.6 * worst else "black"
        axis.text(column, row, text, ha="center", va="center", fontsize=6.5, color=tone)
    axis.set_xticks(range(len(columns)), columns)
    axis.set_yticks(range(len(names)), names)
    axis.grid(visible=False)
    axis.set_xlabel(", ".join(map(last_part, table.varied)))
    axis.set_title("weight lost against the optimum, % of a round", fontsize=8)
