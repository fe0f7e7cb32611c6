"""Commands: each calls its Python twin and prints what that returns."""

import contextlib
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

import agewise
from agewise.cli import printing
from agewise.cli.app import command, end_if_failed
from agewise.cli.completion import (
    ENGINES,
    complete_one_of,
    complete_policy,
    complete_preset,
    listed,
)
from agewise.cli.live import Live
from agewise.cli.options import (
    Address,
    AsJson,
    Baseline,
    Changes,
    DryRun,
    EngineName,
    FailFast,
    Folder,
    Force,
    Log,
    OnePolicy,
    OptionalSource,
    Out,
    Over,
    Points,
    Policies,
    Quiet,
    Rounds,
    Seeds,
    Source,
    Target,
    Trace,
    Vary,
    Workers,
    compared_scenario,
    default_out,
    require_axis,
    say_forecast,
    scenario_of,
    shown_of,
    swept_scenario,
    values_of,
    variations_of,
    with_rounds,
)
from agewise.report.pictures import PICTURES


@command("scenario")
def scenario_command(
    source: Annotated[
        str | None,
        typer.Argument(
            help="A preset or a TOML file; without one, the presets.",
            autocompletion=complete_preset,
        ),
    ] = None,
    changes: Changes = None,
) -> None:
    """Print a complete, commented scenario file, or list the presets.

    Example: agewise scenario paper > my.toml
    """
    if source is None:
        if changes:
            raise ValueError("--set needs a scenario to change: agewise scenario paper --set ...")
        names = agewise.scenario.presets()
        printing.print_list({name: agewise.scenario.summary(name) for name in names})
    else:
        printing.say(scenario_of(source, changes).to_toml().rstrip())


@command("policies")
def policies_command(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A policy, or one in a file of yours; without one, all are listed.",
            autocompletion=complete_policy,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the scheduling policies, or say all about one: parameters, source, equation.

    Example: agewise policies age-based
    """
    if name is not None:
        printing.print_policy(agewise.policies.describe(name), as_json=as_json)
        return
    lines = {name: agewise.policies.summary(name) for name in agewise.policies.names()}
    if as_json:
        printing.print_json(lines)
    else:
        printing.print_list(lines)


@command("run")
def run_command(
    source: Source = "paper",
    policy: OnePolicy = "age-based",
    seeds: Seeds = 1,
    out: Out = None,
    changes: Changes = None,
    rounds: Rounds = None,
    live: Annotated[
        bool, typer.Option("--live", help="Show every round as it happens, in this process.")
    ] = False,
    engine: Annotated[
        str | None,
        typer.Option(
            help="Where runs happen: local (processes), inline, or ray (agewise\\[ray]); local by "
            "default, inline with --live.",
            autocompletion=complete_one_of(ENGINES),
        ),
    ] = None,
    workers: Workers = None,
    address: Address = None,
    quiet: Quiet = False,
    baseline: Baseline = None,
    fail_fast: FailFast = False,
    over: Over = "rounds",
    points: Points = None,
    target: Target = None,
    dry_run: DryRun = False,
    force: Force = False,
    log: Log = None,
    as_json: AsJson = False,
) -> None:
    """Run one policy.

    Example: agewise run paper --policy age-based:alpha=0.25 --seeds 3 --set run.rounds=50
    """
    if live:
        _require_live(engine, workers, address, as_json=as_json)
    scenario = scenario_of(source, with_rounds(changes, rounds))
    shown = shown_of(over, points, target)
    require_axis(over, scenario)
    folder = out or default_out("run", source, scenario)
    if dry_run:
        plan = agewise.experiment.Plan.of(scenario, [policy], seeds, baseline=baseline)
        say_forecast({folder: plan}, folder, engine or ("inline" if live else "local"), workers)
        return
    with Live(policy, scenario.run.rounds) if live else contextlib.nullcontext() as watch:
        result = agewise.run(
            scenario,
            policy,
            seeds,
            folder,
            on_round=watch,
            engine=engine or ("inline" if live else "local"),
            workers=workers,
            address=address,
            quiet=quiet or live,
            baseline=baseline,
            fail_fast=fail_fast,
            force=force,
            loggers=log or (),
        )
    printing.print_result(result, as_json=as_json, shown=shown)
    end_if_failed(result)


def _require_live(
    engine: str | None, workers: int | None, address: str | None, *, as_json: bool
) -> None:
    """Raise ``ValueError`` for options that cannot go with ``--live``."""
    others = {
        f"--engine {engine}": engine not in (None, "inline"),
        "--workers": workers is not None,
        "--address": address is not None,
        "--json": as_json,
    }
    for option, given in others.items():
        if given:
            raise ValueError(
                f"--live shows runs of this process as they happen, and {option} cannot go with "
                "it: leave out one of the two"
            )


@command("compare")
def compare_command(
    source: OptionalSource = None,
    policies: Policies = ["age-based", "max-pack"],  # noqa: B006 (typer copies it)
    seeds: Seeds = 20,
    out: Out = None,
    changes: Changes = None,
    rounds: Rounds = None,
    trace: Trace = None,
    engine: EngineName = "local",
    workers: Workers = None,
    address: Address = None,
    quiet: Quiet = False,
    baseline: Baseline = None,
    fail_fast: FailFast = False,
    over: Over = "rounds",
    points: Points = None,
    target: Target = None,
    dry_run: DryRun = False,
    force: Force = False,
    log: Log = None,
    as_json: AsJson = False,
) -> None:
    """Compare policies on the same channels, samples and initial models, and write the page.

    Example: agewise compare paper --policy age-based --policy max-pack --seeds 20
    """
    scenario = compared_scenario(source, trace, with_rounds(changes, rounds))
    shown = shown_of(over, points, target)
    require_axis(over, scenario)
    name = source or (trace.resolve().name if trace else "paper")
    folder = out or default_out("compare", name, scenario)
    if dry_run:
        plan = agewise.experiment.Plan.of(scenario, policies, seeds, baseline=baseline)
        say_forecast({folder: plan}, folder, engine, workers)
        return
    result = agewise.compare(
        scenario,
        policies,
        seeds,
        folder,
        engine=engine,
        workers=workers,
        address=address,
        quiet=quiet,
        baseline=baseline,
        fail_fast=fail_fast,
        force=force,
        loggers=log or (),
    )
    printing.print_result(result, as_json=as_json, shown=shown)
    printing.print_page_of(result, shown=shown, to_stderr=as_json)
    end_if_failed(result)


@command("sweep")
def sweep_command(
    vary: Vary,
    source: Source = "paper",
    policies: Policies = ["age-based", "max-pack"],  # noqa: B006 (typer copies it)
    seeds: Seeds = 10,
    out: Out = None,
    changes: Changes = None,
    rounds: Rounds = None,
    engine: EngineName = "local",
    workers: Workers = None,
    address: Address = None,
    quiet: Quiet = False,
    baseline: Baseline = None,
    fail_fast: FailFast = False,
    over: Over = "rounds",
    points: Points = None,
    target: Target = None,
    dry_run: DryRun = False,
    force: Force = False,
    log: Log = None,
    as_json: AsJson = False,
) -> None:
    """Compare policies for every combination of values, and write the page.

    Example: agewise sweep paper --vary threshold.rate=1,2,4,6 --vary data.partition=iid,shards
    """
    changes = with_rounds(changes, rounds)
    varied, shown = variations_of(vary, changes), shown_of(over, points, target)
    scenario = swept_scenario(source, changes, varied)
    if not any(name.startswith("timing") for name in varied):
        require_axis(over, scenario)
    folder = out or default_out("sweep", source, scenario)
    if dry_run:
        combinations = agewise.experiment.product(varied)
        plan = agewise.experiment.Plan.of(scenario, policies, seeds, combinations, baseline)
        say_forecast({folder: plan}, folder, engine, workers)
        return
    result = agewise.sweep(
        scenario,
        policies,
        varied,
        seeds,
        folder,
        engine=engine,
        workers=workers,
        address=address,
        quiet=quiet,
        baseline=baseline,
        fail_fast=fail_fast,
        force=force,
        loggers=log or (),
    )
    printing.print_result(result, as_json=as_json, shown=shown)
    printing.print_page_of(result, shown=shown, to_stderr=as_json)
    end_if_failed(result)


@command("show")
def show_command(
    folder: Folder,
    baseline: Baseline = None,
    over: Over = "rounds",
    points: Points = None,
    target: Target = None,
    as_json: AsJson = False,
) -> None:
    """Print the tables of a results folder.

    Example: agewise show runs/reproduce-paper --over uses --target 0.7
    """
    shown = shown_of(over, points, target)
    result = agewise.Result.open(folder, baseline)
    printing.print_result(result, as_json=as_json, shown=shown)


@command("report")
def report_command(
    folder: Folder,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The page; DIR/report.html by default.")
    ] = None,
    baseline: Baseline = None,
    over: Over = "rounds",
    points: Points = None,
    target: Target = None,
) -> None:
    """Write one self-contained HTML page that shows what each policy did.

    Example: agewise report runs/reproduce-paper --over uses
    """
    shown = shown_of(over, points, target)
    result = agewise.Result.open(folder, baseline)
    printing.print_page(agewise.write_page(result, output, **asdict(shown)))


@command("figure")
def figure_command(
    folder: Folder,
    kind: Annotated[
        str,
        typer.Argument(
            help=f"{listed(tuple(PICTURES))}.", autocompletion=complete_one_of(PICTURES)
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="The file: .pdf, .pgf, .svg, .eps, .png, or .csv for its data."
        ),
    ],
    at: Annotated[
        list[str] | None,
        typer.Option(
            help="Which setting of a sweep: threshold.rate=4, or rate=4; the first if not given."
        ),
    ] = None,
    baseline: Baseline = None,
    policies: Annotated[
        list[str] | None,
        typer.Option(
            "--policies",
            "--policy",
            help="Which to show, once for each; all if none.",
            autocompletion=complete_policy,
        ),
    ] = None,
    width: Annotated[
        str | None,
        typer.Option(help="column (3.5 in), page (7.16 in) or a number of inches."),
    ] = None,
    ylim: Annotated[
        tuple[float, float] | None, typer.Option(help="The ends of the vertical axis: 0.7 0.9.")
    ] = None,
    style: Annotated[
        str, typer.Option(help="paper, slides, a style of Matplotlib or a .mplstyle file.")
    ] = "paper",
    over: Over = "rounds",
) -> None:
    """Draw one chart for a paper: one IEEE column wide, vector, fonts embedded.

    Example: agewise figure runs/reproduce-paper gain -o gain.pdf --width page --ylim -2 4
    """
    drawn = agewise.draw_figure(
        agewise.Result.open(folder, baseline),
        kind,
        output,
        values_of(at, "--at"),
        policies=policies,
        width=width,
        ylim=ylim,
        style=style,
        over=over,
    )
    printing.say(f"Figure: {drawn}")


@command("traffic")
def traffic_command(
    source: Source = "paper",
    policy: OnePolicy = "age-based",
    rounds: Annotated[int, typer.Option(min=1, help="Slots to schedule.")] = 100_000,
    arrivals: Annotated[
        float | None,
        typer.Option(help="Probability of a new update per UE and slot; without it, always one."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of channels and arrivals.")] = 0,
    changes: Changes = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Schedule many slots without learning: ages, throughput, fairness.

    Example: agewise traffic paper --policy max-pack --rounds 1000000 --arrivals 0.1
    """
    scenario = scenario_of(source, changes)
    with agewise.experiment.progress.progress(rounds, rounds, quiet=quiet, what="slots") as shown:

        def count(done: int) -> None:
            shown.reach(done, done)

        traffic = agewise.schedule_traffic(
            scenario, policy, rounds, arrivals=arrivals, seed=seed, progress=count
        )
    printing.print_traffic(traffic, scenario.run.age_alpha, as_json=as_json)


@command("schedule")
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
    policy: OnePolicy = "age-based",
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
    options = {"alpha": alpha, "form": form, "ties": ties}
    parameters = {name: value for name, value in options.items() if value is not None}
    chosen = agewise.policies.make_policy(policy, **parameters)
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
        printing.print_json(printing.described_allocation(allocation, chosen, seed))
    else:
        printing.print_allocation(allocation, age, chosen, seed)
