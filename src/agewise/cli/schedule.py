"""Commands that schedule one round."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import agewise
from agewise.cli.app import AsJson, app

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@app.command("schedule")
def schedule_command(
    gains: Annotated[
        Path,
        typer.Argument(
            help="Gains, SNR per unit of power: a CSV with a row per UE and a column per "
            "subchannel (no column of names), or an NPZ with an array 'gains'."
        ),
    ],
    ages: Annotated[
        Path,
        typer.Option(
            help="Rounds since each UE's last received update: a CSV with one row or one column, "
            "or an NPZ with an array 'ages'."
        ),
    ],
    power: Annotated[float, typer.Option(help="Each UE's power budget.")],
    rate_threshold: Annotated[
        float, typer.Option(help="Bits per real channel use that a scheduled UE must reach.")
    ],
    policy: Annotated[str, typer.Option(help="One of 'agewise policies'.")] = "age-based",
    alpha: Annotated[
        float | None,
        typer.Option(help="Sensitivity to age, at most 1; lower favours the stalest more."),
    ] = None,
    form: Annotated[
        str | None, typer.Option(help="Of the weight of ages: paper, or continuous for any alpha.")
    ] = None,
    ties: Annotated[
        str | None, typer.Option(help="Who goes first among equals: random or lowest-index.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides what the policy leaves to chance.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Schedule one round: who transmits on which subchannels with what power.

    Example: agewise schedule gains.csv --ages ages.csv --power 10 --rate-threshold 4
    """
    given = {"alpha": alpha, "form": form, "ties": ties}
    chosen = agewise.policies.make_policy(
        policy, **{k: v for k, v in given.items() if v is not None}
    )
    age = agewise.radio.read_ages(ages)
    allocation = agewise.schedule(
        agewise.radio.read_gains(gains),
        age,
        power=power,
        rate_threshold=rate_threshold,
        policy=chosen,
        seed=seed,
    )
    if as_json:
        typer.echo(json.dumps(_as_json(allocation, chosen, seed), indent=2, default=str))
    else:
        _print_allocation(allocation, age, chosen, seed)


@app.command("policies")
def policies_command(as_json: AsJson = False) -> None:
    """List the scheduling policies, one line each."""
    lines = {name: agewise.policies.summary(name) for name in agewise.policies.names()}
    if as_json:
        typer.echo(json.dumps(lines, indent=2))
        return
    width = max(map(len, lines))
    for name, line in lines.items():
        typer.echo(f"{name:<{width}}  {line}")


def _as_json(
    allocation: "agewise.Allocation", policy: "agewise.Policy", seed: int
) -> dict[str, Any]:
    return {
        "agewise": agewise.__version__,
        "policy": policy.name,
        "parameters": policy.parameters,
        "seed": seed,
        "power_budget": allocation.power_budget,
        "rate_threshold": allocation.rate_threshold,
        "owner": allocation.owner.tolist(),
        "power": allocation.power.tolist(),
        "scheduled": allocation.scheduled.tolist(),
        "rate": allocation.rate.tolist(),
    }


def _print_allocation(
    allocation: "agewise.Allocation",
    ages: "NDArray[np.float64]",
    policy: "agewise.Policy",
    seed: int,
) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    served = allocation.scheduled.nonzero()[0]
    used = int((allocation.owner >= 0).sum())
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading, justify in (
        ("UE", "right"),
        ("age", "right"),
        ("rate (bit)", "right"),
        ("subchannel: power", "left"),
    ):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    rate = allocation.rate
    for ue in served.tolist():
        held = "  ".join(f"{n}: {allocation.power[n]:.4g}" for n in allocation.subchannels_of(ue))
        table.add_row(str(ue), f"{ages[ue]:g}", f"{rate[ue]:.3f}", held)
    console = Console()
    if served.size:
        console.print(table)
    console.print(
        f"{served.size} of {allocation.ue_count} UEs scheduled on {used} of "
        f"{allocation.owner.size} subchannels by {policy}, seed {seed}"
        f"{'' if served.size else ': no UE reaches the rate threshold'}",
        markup=False,
        highlight=False,
    )
