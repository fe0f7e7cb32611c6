"""The loss of each policy against the optimum, over regimes of the channel."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from agewise import statistics
from agewise.engines import make_engine
from agewise.experiment import Plan, Result, execute, product
from agewise.optimality.losses import WORK_LIMIT, Losses, losses_of
from agewise.policies import Policy
from agewise.records import PolicyKey
from agewise.report import loss_map
from agewise.report.names import short_names
from agewise.report.squares import say
from agewise.scenario import Scenario

if TYPE_CHECKING:
    import polars

    from agewise.engines import Engine

POLICIES = ("age-based", "age-based-plus", "max-pack", "proportional-fair", "round-robin", "random")
REGIMES: dict[str, Sequence[Any]] = {
    "channel.edge_snr_db": (-10.0, 0.0, 10.0, 20.0),
    "channel.rate_threshold": (1.0, 2.0, 4.0, 6.0),
}
ROUNDS = 50


@dataclass(frozen=True, eq=False)
class Gap:
    """The runs, and a row per regime and policy of what they lost against the optimum.

    ``loss_per_round`` is the mean share of the optimum that a round lost, ``loss_over_run`` that
    of all rounds together, each with the ends of its 95% interval over the seeds; the optimum is
    that of the ages and gains which the policy itself met. ``age_cost`` is the mean cost of the
    ages that it led to. ``unproven`` counts rounds whose optimum is only known within a bound.
    """

    result: Result
    table: "polars.DataFrame"
    figures: list[Path]


def gap(
    scenario: Scenario | None = None,
    policies: Sequence[Policy | str] = POLICIES,
    vary: Mapping[str, Sequence[Any]] | None = None,
    seeds: int | Iterable[int] = 5,
    out: Path | str = "runs/gap",
    *,
    every: int = 10,
    work_limit: int = WORK_LIMIT,
    engine: "str | Engine" = "local",
    workers: int | None = None,
    quiet: bool = False,
) -> Gap:
    """Run the policies over regimes and solve every so many rounds to optimality.

    Everything is kept in the folder ``out``: a run that was stopped goes on where it was.
    """
    base = (
        Scenario.preset("paper").with_(**{"run.rounds": ROUNDS}) if scenario is None else scenario
    )
    chosen = make_engine(engine, workers)
    regimes = product(REGIMES if vary is None else vary)
    result = execute(Plan.of(base, policies, seeds, regimes), out, chosen, quiet=quiet)
    losses = losses_of(result, chosen, every=every, work_limit=work_limit, quiet=quiet)
    table = _table(result, {(e.policy, say(e.variation), e.seed): own for e, own in losses})
    return Gap(result, table, _draw(result, table))


def _table(
    result: Result, losses: Mapping[tuple[PolicyKey, str, int], Losses]
) -> "polars.DataFrame":
    import polars as pl

    rows = []
    for variation in result.variations:
        for policy in result.policies:
            histories = result.histories(policy, variation)
            own = [losses[policy, say(variation), seed] for seed in histories]
            row: dict[str, Any] = {**variation, "policy": str(policy), "seeds": len(own)}
            for name in ("per_round", "over_run"):
                interval = statistics.mean_interval([getattr(one, name) for one in own])
                row |= {
                    f"loss_{name}": interval.mean,
                    f"loss_{name}_low": interval.low,
                    f"loss_{name}_high": interval.high,
                }
            costs = [history.frame["age_cost"].to_numpy().mean() for history in histories.values()]
            row["age_cost"] = float(np.mean(costs))
            row["rounds"] = sum(len(one.rounds) for one in own)
            row["unproven"] = row["rounds"] - sum(one.proven for one in own)
            rows.append(row)
    return pl.DataFrame(rows)


def _draw(result: Result, table: "polars.DataFrame") -> list[Path]:
    """The mean loss of a round: policies down, regimes across."""
    names = short_names(result.policies)
    losses = table["loss_per_round"].to_numpy().reshape(len(result.variations), -1).T
    columns = [
        "\n".join(f"{value:g}" if isinstance(value, float) else str(value) for value in v.values())
        for v in result.variations
    ]
    across = ", ".join(name.split(".")[-1] for name in result.variations[0])
    files = [result.path / f"gap.{kind}" for kind in ("png", "pdf")]
    loss_map(losses, columns, list(names.values()), across, files)
    return files
