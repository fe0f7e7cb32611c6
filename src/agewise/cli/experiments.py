"""Commands that run experiments; each calls its Python twin and prints what that returns."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    Vary,
    Workers,
    default_out,
    engine_of,
    scenario_of,
    varied_of,
)
from agewise.cli.report import write_report

if TYPE_CHECKING:
    from agewise.experiment import Result


@app.command("scenario")
def scenario_command(
    source: Annotated[
        str | None, typer.Argument(help="A preset or a TOML file; without one, the presets.")
    ] = None,
    changes: Changes = None,
) -> None:
    """Print a complete, commented scenario file, or list the presets.

    Example: agewise scenario paper > my.toml
    """
    from agewise.scenario import presets, summary

    if source is not None:
        typer.echo(scenario_of(source, changes).to_toml(), nl=False)
        return
    width = max(map(len, presets()))
    for name in presets():
        typer.echo(f"{name:<{width}}  {summary(name)}")


@app.command("run")
def run_command(
    source: Source = "paper",
    policy: Annotated[str, typer.Option(help="The policy, as in compare.")] = "age-based",
    seeds: Seeds = 1,
    out: Out = None,
    changes: Changes = None,
    engine: EngineName = "local",
    workers: Workers = None,
    address: Address = None,
    quiet: Quiet = False,
    live: Annotated[
        bool, typer.Option("--live", help="Show every round as it happens, in this process.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run one policy.

    Example: agewise run paper --policy age-based:alpha=0.25 --seeds 3 --set run.rounds=50
    """
    from agewise.cli.live import Live

    scenario, folder = scenario_of(source, changes), out or default_out("run", source)
    if live:
        with Live(policy, scenario.run.rounds) as watch:
            result = agewise.run(scenario, policy, seeds, folder, on_round=watch, quiet=True)
    else:
        where = engine_of(engine, workers, address)
        result = agewise.run(scenario, policy, seeds, folder, engine=where, quiet=quiet)
    _print_result(result, as_json=as_json)


@app.command("compare")
def compare_command(
    source: Source = "paper",
    policies: Policies = ["age-based", "max-pack"],  # noqa: B006 (typer copies it)
    seeds: Seeds = 20,
    out: Out = None,
    changes: Changes = None,
    engine: EngineName = "local",
    workers: Workers = None,
    address: Address = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Compare policies on the same channels, samples and initial models.

    Example: agewise compare paper --policy age-based --policy max-pack --seeds 20
    """
    result = agewise.compare(
        scenario_of(source, changes), policies, seeds, out or default_out("compare", source),
        engine=engine_of(engine, workers, address), quiet=quiet,
    )  # fmt: skip
    _print_result(result, as_json=as_json)
    write_report(result, to_stderr=as_json)


@app.command("sweep")
def sweep_command(
    vary: Vary,
    source: Source = "paper",
    policies: Policies = ["age-based", "max-pack"],  # noqa: B006 (typer copies it)
    seeds: Seeds = 10,
    out: Out = None,
    changes: Changes = None,
    engine: EngineName = "local",
    workers: Workers = None,
    address: Address = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Compare policies for every combination of values.

    Example: agewise sweep paper --vary channel.rate_threshold=1,2,4,6 --vary
    data.partition=iid,shards
    """
    result = agewise.sweep(
        scenario_of(source, changes), policies, varied_of(vary), seeds,
        out or default_out("sweep", source), engine=engine_of(engine, workers, address),
        quiet=quiet,
    )  # fmt: skip
    _print_result(result, as_json=as_json)
    write_report(result, to_stderr=as_json)


@app.command("reproduce")
def reproduce_command(
    source: Source = "paper",
    seeds: Seeds = 20,
    out: Out = None,
    changes: Changes = None,
    whole_map: Annotated[
        bool, typer.Option("--map", help="Where ABS wins: threshold, likeness of data, alpha.")
    ] = False,
    engine: EngineName = "local",
    workers: Workers = None,
    address: Address = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Measure the paper's figure and say which of its claims hold."""
    from agewise.cli import printing

    folder = out or default_out("reproduce-map" if whole_map else "reproduce", source)
    where = engine_of(engine, workers, address)
    if whole_map:
        base = scenario_of(
            source, [f"run.rounds={agewise.reproduction.map.ROUNDS}", *(changes or [])]
        )
        drawn = agewise.reproduce_map(base, seeds, folder, engine=where, quiet=quiet)
        printing.print_map(drawn, as_json=as_json)
        write_report(drawn.result, to_stderr=as_json)
        return
    made = agewise.reproduce(scenario_of(source, changes), seeds, folder, engine=where, quiet=quiet)
    printing.print_reproduction(made, as_json=as_json)
    write_report(made.result, to_stderr=as_json)


@app.command("show")
def show_command(
    folder: Annotated[Path, typer.Argument(help="A results folder, finished or still running.")],
    as_json: AsJson = False,
) -> None:
    """Print the tables of a results folder."""
    from agewise.experiment import Result

    _print_result(Result.open(folder), as_json=as_json)


def _print_result(result: "Result", *, as_json: bool) -> None:
    from agewise.cli import printing

    printing.print_result(result, as_json=as_json)
