"""Commands: each calls its Python twin and prints what that returns."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import lazy_loader

import agewise
from agewise.cli import _options as opt
from agewise.cli._app import (
    command,
    end_if_failed,
    print_json,
    print_list,
    say,
    say_verbatim,
    trace_command,
)

if TYPE_CHECKING:
    from agewise.cli import _live as live_view
    from agewise.cli import _printing as printing
    from agewise.cli._printing import ShowOptions
    from agewise.experiment import Plan, RunOptions
else:
    live_view = lazy_loader.load("agewise.cli._live", suppress_warning=True)
    printing = lazy_loader.load("agewise.cli._printing", suppress_warning=True)

_PAIR = ["age-based", "max-pack"]


@command("scenario")
def scenario_command(source: str | None = None, changes: list[str] | None = None) -> None:
    """Print a complete, commented scenario file, or list the presets.

    Example: agewise scenario paper > my.toml
    """
    if source is not None:
        say_verbatim(opt.scenario_of(source, changes).to_toml().rstrip())
        return
    if changes:
        raise ValueError("--set needs a scenario to change: agewise scenario paper --set ...")
    print_list(opt.preset_summaries())


@command("policies")
def policies_command(name: str | None = None, as_json: bool = False) -> None:
    """List the scheduling policies, or say all about one: parameters, source, equation.

    Example: agewise policies age-based
    """
    if name is not None:
        printing.print_policy(agewise.policies.describe(name), as_json=as_json)
        return
    added = {each: agewise.policies.summary(each) for each in opt.added_policies()}
    lines = dict(sorted((opt.policy_summaries() | added).items()))
    if as_json:
        print_json(lines)
    else:
        print_list(lines)


@command("run")
def run_command(
    options: "RunOptions",
    shown: "ShowOptions",
    source: str = "paper",
    policy: str = "age-based",
    seeds: int = 1,
    out: Path | None = None,
    changes: list[str] | None = None,
    rounds: int | None = None,
    live: bool = False,
    baseline: str | None = None,
    as_json: bool = False,
) -> None:
    """Run one policy.

    Example: agewise run paper --policy age-based:alpha=0.25 --seeds 3 --set run.rounds=50
    """
    scenario = opt.scenario_of(source, changes, rounds)
    opt.require_axis(shown.over, scenario)
    folder = out or opt.default_out("run", source, scenario)
    plan = agewise.experiment.Plan.of(scenario, [policy], seeds, baseline=baseline)
    if live:
        result = live_view.watched(plan, folder, options, as_json=as_json)
    else:
        result = agewise.experiment.execute(plan, folder, options)
    printing.print_result(result, shown, as_json=as_json)
    end_if_failed(result)


def _carry_out(
    plan: "Plan", folder: Path, options: "RunOptions", shown: "ShowOptions", *, as_json: bool
) -> None:
    """Run what is missing, print the tables, and write the page."""
    result = agewise.experiment.execute(plan, folder, options)
    printing.print_result(result, shown, as_json=as_json, page=True)
    end_if_failed(result)


@command("compare")
def compare_command(
    options: "RunOptions",
    shown: "ShowOptions",
    source: str | None = None,
    policies: list[str] = _PAIR,
    seeds: int = 20,
    out: Path | None = None,
    changes: list[str] | None = None,
    rounds: int | None = None,
    trace: Path | None = None,
    baseline: str | None = None,
    as_json: bool = False,
) -> None:
    """Compare policies on the same channels, samples and initial models, and write the page.

    Example: agewise compare paper --policy age-based --policy max-pack --seeds 20
    """
    scenario = opt.compared_scenario(source, trace, changes, rounds)
    opt.require_axis(shown.over, scenario)
    name = source or (trace.resolve().name if trace else "paper")
    plan = agewise.experiment.Plan.of(scenario, policies, seeds, baseline=baseline)
    folder = out or opt.default_out("compare", name, scenario)
    _carry_out(plan, folder, options, shown, as_json=as_json)


@command("sweep")
def sweep_command(
    options: "RunOptions",
    shown: "ShowOptions",
    vary: list[str],
    source: str = "paper",
    policies: list[str] = _PAIR,
    seeds: int = 10,
    out: Path | None = None,
    changes: list[str] | None = None,
    rounds: int | None = None,
    baseline: str | None = None,
    as_json: bool = False,
) -> None:
    """Compare policies for every combination of values, and write the page.

    Example: agewise sweep paper --vary threshold.rate=1,2,4,6 --vary data.partition=iid,shards
    """
    varied = opt.variations_of(vary, changes, rounds)
    scenario = opt.swept_scenario(source, varied, changes, rounds)
    if not any(name.startswith("timing") for name in varied):
        opt.require_axis(shown.over, scenario)
    combinations = agewise.experiment.product(varied)
    plan = agewise.experiment.Plan.of(scenario, policies, seeds, combinations, baseline)
    folder = out or opt.default_out("sweep", source, scenario)
    _carry_out(plan, folder, options, shown, as_json=as_json)


@command("show")
def show_command(
    shown: "ShowOptions",
    folder: Path,
    baseline: str | None = None,
    as_latex: bool = False,
    labels: list[str] | None = None,
    as_json: bool = False,
) -> None:
    """Print the tables of a results folder.

    Example: agewise show runs/reproduce-paper --over channel-uses --target 0.7
    """
    result = agewise.Result.open(folder, baseline)
    if as_latex and as_json:
        raise ValueError("--latex and --json print the same in two ways: leave out one of the two")
    if labels and not as_latex:
        raise ValueError("--label is for papers: give --latex too")
    if as_latex:
        names = {str(result.key(name)): x for name, x in opt.labels_of(labels).items()}
        printing.print_latex(result, shown, names)
        return
    printing.print_result(result, shown, as_json=as_json)


@command("report")
def report_command(
    shown: "ShowOptions", folder: Path, output: Path | None = None, baseline: str | None = None
) -> None:
    """Write one self-contained HTML page that shows what each policy did.

    Example: agewise report runs/reproduce-paper --over channel-uses
    """
    result = agewise.Result.open(folder, baseline)
    say(f"Page: {agewise.write_page(result, output, **asdict(shown))}")


@command("figure")
def figure_command(
    folder: Path,
    kind: str,
    output: Path,
    setting: list[str] | None = None,
    baseline: str | None = None,
    policies: list[str] | None = None,
    width: str | None = None,
    ylim: tuple[float, float] | None = None,
    style: str = "paper",
    over: str = "rounds",
    labels: list[str] | None = None,
) -> None:
    """Draw one chart for a paper: one IEEE column wide, vector, fonts embedded.

    Example: agewise figure runs/reproduce-paper gain -o gain.pdf --width page --ylim -2 4
    """
    what = agewise.Result.open(folder, baseline), kind, output, opt.values_of(setting, "--setting")
    names = opt.labels_of(labels)
    drawn = agewise.draw_figure(
        *what, policies=policies, width=width, ylim=ylim, style=style, over=over, labels=names
    )
    say(f"Figure: {drawn.path}")


@command("cite")
def cite_command() -> None:
    """Print BibTeX of the paper and of this software."""
    say_verbatim(printing.BIBTEX)


@command("reproduce")
def reproduce_command(
    study_options: "RunOptions",
    shown: "ShowOptions",
    source: str | None = None,
    seeds: int = 20,
    out: Path | None = None,
    changes: list[str] | None = None,
    rounds: int | None = None,
    whole_map: bool = False,
    explain: bool = False,
    as_json: bool = False,
) -> None:
    """Measure the paper's figure and say which of its claims hold.

    Example: agewise reproduce --seeds 5
    """
    over = shown.over
    if whole_map and (explain or shown != printing.ShowOptions(over)):
        option = "--explain" if explain else "--at or --target"
        raise ValueError(f"{option} goes with the paper's figure: leave out --map")
    kind, usual = ("map" if whole_map else "reproduce"), agewise.studies.usual_scenario(over)
    base = agewise.studies.map_scenario(over) if whole_map else agewise.Scenario.preset(usual)
    scenario = opt.scenario_of(source or base, changes, rounds)
    opt.require_axis(over, scenario)
    folder = out or opt.default_out(kind, source or usual, scenario, base)
    given = {"over": over, **vars(study_options)}
    if whole_map:
        gains = agewise.reproduce_map(scenario, seeds, folder, **given)
        printing.print_map(gains, as_json=as_json)
        printing.print_page_of(gains.result, shown, to_stderr=as_json)
        return
    study = agewise.reproduce(scenario, seeds, folder, explain=explain, **given)
    printing.print_reproduction(study, shown, as_json=as_json)
    printing.print_page_of(study.result, shown, to_stderr=as_json)


@command("explain")
def explain_command(
    folder: Path,
    policy: str | None = None,
    baseline: str | None = None,
    engine: str = "auto",
    workers: int | None = None,
    address: str | None = None,
    quiet: bool = False,
    as_json: bool = False,
) -> None:
    """Replay what the gain of a policy is made of: who is heard changes, one thing at a time.

    Example: agewise explain runs/compare-paper --policy round-robin --baseline max-pack
    """
    made = agewise.explain(
        folder, policy, baseline, engine=engine, workers=workers, address=address, quiet=quiet
    )
    printing.print_explanation(made, folder, as_json=as_json)


@command("race")
def race_command(
    study_options: "RunOptions",
    source: str = "paper",
    policies: list[str] | None = None,
    aggregations: list[str] | None = None,
    budget: str | None = None,
    out: Path | None = None,
    changes: list[str] | None = None,
    rounds: int | None = None,
    as_json: bool = False,
) -> None:
    """Measure which policy, packing and aggregation learn best on a scenario of yours.

    Example: agewise race my.toml --budget 5min
    """
    scenario = opt.scenario_of(source, changes, rounds)
    folder = out or opt.default_out("race", source, scenario)
    chosen = [opt.value_of(text, "--aggregation") for text in aggregations or []]
    study = agewise.race(
        scenario, policies, folder, aggregations=chosen, budget=budget, **vars(study_options)
    )
    printing.print_race(study, as_json=as_json)


@command("gap")
def gap_command(
    study_options: "RunOptions",
    source: str | None = None,
    policies: list[str] = [],  # noqa: B006 (typer copies it)
    vary: list[str] | None = None,
    seeds: int = 5,
    out: Path | None = None,
    every: int = 10,
    work_limit: int = 3_000_000,
    changes: list[str] | None = None,
    as_json: bool = False,
) -> None:
    """Measure what policies lose against the optimum of problem (3), over regimes.

    Without --policy: age-based, age-based:packing=auction, max-pack, proportional-fair,
    round-robin, random.

    Example: agewise gap --policy age-based --policy max-pack --vary threshold.rate=2,4
    """
    varied, default = opt.variations_of(vary or [], changes), agewise.studies.gap_scenario()
    scenario = opt.swept_scenario(source or default, varied, changes)
    folder = out or opt.default_out("gap", source or "paper", scenario, default)
    given = {"every": every, "work_limit": work_limit, **vars(study_options)}
    chosen = policies or agewise.studies.GAP_POLICIES
    study = agewise.gap(scenario, chosen, varied or None, seeds, folder, **given)
    printing.print_gap(study, as_json=as_json)


@command("channel")
def channel_command(
    source: str = "paper",
    seed: int = 0,
    rounds: int | None = None,
    output: Path | None = None,
    changes: list[str] | None = None,
    as_json: bool = False,
) -> None:
    """Say what a scenario's channel means before anything is simulated, and draw it.

    Example: agewise channel paper -o channel.pdf
    """
    scenario = opt.scenario_of(source, changes)
    view = agewise.view_channel(scenario, seed, rounds)
    printing.print_channel(view, output, scenario, as_json=as_json)


@trace_command("record")
def record_command(
    source: str,
    out: Path,
    seed: int = 0,
    rounds: int | None = None,
    changes: list[str] | None = None,
) -> None:
    """Write a scenario's channel as a trace, whose replay is the same run to the byte.

    Example: agewise trace record paper --out gains.npz --seed 3
    """
    file = agewise.record_trace(opt.scenario_of(source, changes), out, seed, rounds)
    say(f"Trace: {file}")


@trace_command("show")
def show_trace_command(
    file: Path,
    rate_threshold: float | None = None,
    rounds: int | None = None,
    output: Path | None = None,
    as_json: bool = False,
) -> None:
    """Say what is in a file of gains, and draw it; `agewise channel` shows other formats.

    Example: agewise trace show gains.npz --rate-threshold 4 -o gains.png
    """
    view = agewise.view_trace(file, rate_threshold, rounds)
    printing.print_channel(view, output, as_json=as_json)


@command("traffic")
def traffic_command(
    source: str = "paper",
    policy: str = "age-based",
    rounds: int = 100_000,
    arrivals: str | None = None,
    seed: int = 0,
    changes: list[str] | None = None,
    quiet: bool = False,
    as_json: bool = False,
) -> None:
    """Schedule many slots without learning: ages, throughput, fairness.

    Example: agewise traffic paper --policy max-pack --rounds 1000000 --arrivals 0.1
    """
    scenario = opt.scenario_of(source, changes)
    with agewise.experiment.progress(rounds, rounds, quiet=quiet, what="slot") as shown:
        traffic = agewise.schedule_traffic(
            scenario,
            policy,
            rounds,
            arrivals=opt.arrivals_of(arrivals),
            seed=seed,
            progress=lambda done: shown.reach(done, done),
        )
    printing.print_traffic(traffic, scenario.run.age_alpha, as_json=as_json)


@command("schedule")
def schedule_command(
    gains: Path,
    ages: Path,
    power: float,
    rate_threshold: float,
    policy: str = "age-based",
    seed: int = 0,
    as_json: bool = False,
) -> None:
    """Schedule one round: who transmits on which subchannels with what power.

    Example: agewise schedule gains.csv --ages ages.csv --power 10 --rate-threshold 4
    """
    chosen, age = agewise.policies.make_policy(policy), agewise.radio.read_ages(ages)
    allocation = agewise.schedule(
        agewise.radio.read_gains(gains),
        age,
        power=power,
        rate_threshold=rate_threshold,
        policy=chosen,
        seed=seed,
    )
    printing.print_allocation(allocation, age, chosen, seed, as_json=as_json)
