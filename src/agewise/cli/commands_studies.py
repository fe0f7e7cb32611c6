"""Commands of studies: the paper's claims, and the gap to the optimum."""

from pathlib import Path
from typing import Annotated

import typer

import agewise
from agewise.cli import printing
from agewise.cli.app import command
from agewise.cli.completion import complete_preset
from agewise.cli.options import (
    Address,
    AsJson,
    Changes,
    DryRun,
    EngineName,
    Every,
    Force,
    Log,
    Out,
    Over,
    Points,
    Policies,
    Quiet,
    Rounds,
    Seeds,
    Target,
    Workers,
    default_out,
    require_axis,
    say_forecast,
    scenario_of,
    shown_of,
    swept_scenario,
    variations_of,
    with_rounds,
)


@command("reproduce")
def reproduce_command(
    source: Annotated[
        str | None,
        typer.Argument(
            help="A preset or a TOML file; the paper's by default, with 40 rounds for the map, and "
            "physical-timed over seconds or joules.",
            autocompletion=complete_preset,
        ),
    ] = None,
    seeds: Seeds = 20,
    out: Out = None,
    changes: Changes = None,
    rounds: Rounds = None,
    whole_map: Annotated[
        bool,
        typer.Option(
            "--map",
            help="Instead, where age-based scheduling wins: threshold, likeness of data, alpha.",
        ),
    ] = False,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Also measure what explains the gain, on the same models."),
    ] = False,
    over: Over = "rounds",
    points: Points = None,
    target: Target = None,
    engine: EngineName = "local",
    workers: Workers = None,
    address: Address = None,
    quiet: Quiet = False,
    dry_run: DryRun = False,
    force: Force = False,
    log: Log = None,
    as_json: AsJson = False,
) -> None:
    """Measure the paper's figure and say which of its claims hold.

    Example: agewise reproduce --seeds 5
    """
    shown, usual = shown_of(over, points, target), agewise.studies.usual_scenario(over)
    if whole_map and (explain or shown != printing.Shown(over)):
        option = "--explain" if explain else "--points or --target"
        raise ValueError(f"{option} goes with the paper's figure: leave out --map")
    base = agewise.studies.map_scenario(over) if whole_map else usual
    scenario = scenario_of(source or base, with_rounds(changes, rounds))
    require_axis(over, scenario)
    kind = "map" if whole_map else "reproduce"
    folder = out or (
        Path(f"runs/{kind}-{usual}")
        if scenario == scenario_of(base, None)
        else default_out(kind, source or usual, scenario)
    )
    if dry_run:
        plan = agewise.studies.reproduction_plan(scenario, seeds, whole_map=whole_map)
        say_forecast({folder: plan}, folder, engine, workers)
        return
    if whole_map:
        gains = agewise.reproduce_map(
            scenario,
            seeds,
            folder,
            over=over,
            engine=engine,
            workers=workers,
            address=address,
            quiet=quiet,
            force=force,
            loggers=log or (),
        )
        printing.print_map(gains, as_json=as_json)
        result = gains.result
    else:
        study = agewise.reproduce(
            scenario,
            seeds,
            folder,
            explain=explain,
            over=over,
            engine=engine,
            workers=workers,
            address=address,
            quiet=quiet,
            force=force,
            loggers=log or (),
        )
        printing.print_reproduction(study, as_json=as_json, shown=shown)
        result = study.result
    printing.print_page_of(result, shown=shown, to_stderr=as_json)


@command("gap")
def gap_command(
    source: Annotated[
        str | None,
        typer.Argument(
            help="A preset or a TOML file; the paper's with 50 rounds by default.",
            autocompletion=complete_preset,
        ),
    ] = None,
    policies: Policies = [],  # noqa: B006 (typer copies it)
    vary: Annotated[
        list[str] | None,
        typer.Option(
            help="The regimes: threshold.rate=1,2,4; may be repeated. By default edge SNRs of -10, "
            "0, 10 and 20 dB with thresholds of 1, 2, 4 and 6 bit."
        ),
    ] = None,
    seeds: Seeds = 5,
    out: Out = None,
    every: Every = 10,
    work_limit: Annotated[
        int, typer.Option(min=0, help="Steps of the search in a round, about a million a second.")
    ] = 3_000_000,
    changes: Changes = None,
    engine: EngineName = "local",
    workers: Workers = None,
    address: Address = None,
    quiet: Quiet = False,
    dry_run: DryRun = False,
    force: Force = False,
    log: Log = None,
    as_json: AsJson = False,
) -> None:
    """Measure what policies lose against the optimum of problem (3), over regimes.

    Without --policy: age-based, age-based-plus, max-pack, proportional-fair, round-robin, random.

    Example: agewise gap --policy age-based --policy max-pack --vary threshold.rate=2,4
    """
    varied = variations_of(vary or [], changes)
    default = agewise.studies.gap_scenario()
    scenario = swept_scenario(source or default, changes, varied)
    folder = out or (
        Path("runs/gap-paper")
        if scenario == default
        else default_out("gap", source or "paper", scenario)
    )
    chosen = policies or agewise.studies.GAP_POLICIES
    if dry_run:
        solved = agewise.studies.with_optimum(scenario, every, work_limit)
        plan = agewise.studies.gap_plan(solved, chosen, varied or None, seeds)
        say_forecast({folder: plan}, folder, engine, workers)
        return
    study = agewise.gap(
        scenario,
        chosen,
        varied or None,
        seeds,
        folder,
        every=every,
        work_limit=work_limit,
        engine=engine,
        workers=workers,
        address=address,
        quiet=quiet,
        force=force,
        loggers=log or (),
    )
    printing.print_gap(study, as_json=as_json)
