"""Commands that set policies beside the optimum and beside each other."""

from pathlib import Path
from typing import Annotated

import typer

import agewise
from agewise.cli.app import AsJson, app
from agewise.cli.options import (
    Address,
    Changes,
    EngineName,
    Out,
    Policies,
    Quiet,
    Seeds,
    Source,
    Workers,
    default_out,
    engine_of,
    scenario_of,
    varied_of,
)


@app.command("gap")
def gap_command(
    source: Annotated[
        str | None,
        typer.Argument(help="A preset or a TOML file; the paper's with 50 rounds by default."),
    ] = None,
    policies: Policies = [],  # noqa: B006 (typer copies it)
    vary: Annotated[
        list[str] | None,
        typer.Option(
            help="The regimes: channel.rate_threshold=1,2,4; may be repeated. By default edge SNRs "
            "of -10, 0, 10 and 20 dB with thresholds of 1, 2, 4 and 6 bit."
        ),
    ] = None,
    seeds: Seeds = 5,
    every: Annotated[int, typer.Option(min=1, help="Solve every so many rounds exactly.")] = 10,
    out: Out = None,
    changes: Changes = None,
    engine: EngineName = "local",
    workers: Workers = None,
    address: Address = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Measure what policies lose against the optimum of problem (3), over regimes.

    Without --policy: age-based, age-based-plus, max-pack, proportional-fair, round-robin, random.

    Example: agewise gap --policy age-based --policy max-pack --vary channel.rate_threshold=2,4
    """
    from agewise.cli.printing_rivals import print_gap
    from agewise.optimality import gaps

    short = [] if source else [f"run.rounds={gaps.ROUNDS}"]
    made = agewise.gap(
        scenario_of(source or "paper", [*short, *(changes or [])]),
        policies or gaps.POLICIES, varied_of(vary) if vary else None, seeds,
        out or default_out("gap", source or "paper"), every=every,
        engine=engine_of(engine, workers, address), quiet=quiet,
    )  # fmt: skip
    print_gap(made, as_json=as_json)


@app.command("benchmark")
def benchmark_command(
    policies: Policies = [],  # noqa: B006 (typer copies it)
    scenarios: Annotated[
        list[str] | None,
        typer.Option(
            "--scenario",
            help="paper, low-rate, one-digit, weak-uneven, large or deadline; may be repeated. All "
            "by default.",
        ),
    ] = None,
    seeds: Seeds = 10,
    out: Out = None,
    write: Annotated[Path | None, typer.Option(help="Write the Markdown page here.")] = None,
    engine: EngineName = "local",
    workers: Workers = None,
    address: Address = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run every policy on the fixed suite of scenarios, and rank them.

    A benchmark that was stopped goes on where it was.

    Example: agewise benchmark --seeds 3 --scenario paper --scenario deadline
    """
    from agewise.cli.printing_rivals import print_benchmark
    from agewise.suite.page import write_markdown

    made = agewise.benchmark(
        policies or None, scenarios, seeds, out or Path("runs") / "benchmark",
        engine=engine_of(engine, workers, address), quiet=quiet,
    )  # fmt: skip
    print_benchmark(made, as_json=as_json)
    if write is not None:
        typer.echo(f"Page: {write_markdown(made, write)}", err=as_json)


@app.command("traffic")
def traffic_command(
    source: Source = "paper",
    policy: Annotated[str, typer.Option(help="The policy, as in compare.")] = "age-based",
    rounds: Annotated[int, typer.Option(min=1, help="Slots to schedule.")] = 100_000,
    arrivals: Annotated[
        float | None,
        typer.Option(help="Chance of a new update per UE and slot; without it, always one."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of channels and arrivals.")] = 0,
    changes: Changes = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Schedule many slots without learning: ages, throughput, fairness.

    Example: agewise traffic paper --policy max-pack --rounds 1000000 --arrivals 0.1
    """
    from agewise.cli.printing_rivals import print_traffic
    from agewise.experiment.progress import progress

    scenario = scenario_of(source, changes)
    with progress(rounds, quiet=quiet, what="slots") as shown:

        def count(done: int) -> None:
            shown.rounds = shown.done = done

        traffic = agewise.schedule_traffic(
            scenario, policy, rounds, arrivals=arrivals, seed=seed, progress=count
        )
    print_traffic(traffic, scenario.run.age_alpha, as_json=as_json)
