"""Options of the commands: their types, what they mean, and what a shell offers for them."""

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import wraps
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import lazy_loader
import typer
from typer.models import ParameterInfo

import agewise
from agewise.checks import visible
from agewise.report.pictures import PICTURES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agewise.cli import _printing as printing
else:
    printing = lazy_loader.load("agewise.cli._printing", suppress_warning=True)

# Completion: known without importing what runs, so that a shell offers it at once.

ENGINES = ("auto", "local", "inline", "ray")
LOGGERS = ("csv", "tensorboard", "wandb", "trackio")
AXES = ("rounds", "seconds", "joules", "channel-uses", "bits")


def policy_summaries() -> dict[str, str]:
    """The policies of the package, sorted, each with the first line of its docstring."""
    found = {}
    for file in files("agewise").joinpath("policies").iterdir():
        if not file.name.endswith(".py") or file.name.startswith("_"):
            continue
        tree = ast.parse(file.read_bytes())
        for kind in (node for node in tree.body if isinstance(node, ast.ClassDef)):
            for field in (node for node in kind.body if isinstance(node, ast.AnnAssign)):
                if ast.unparse(field.target) == "name" and isinstance(field.value, ast.Constant):
                    summary = (ast.get_docstring(kind) or "").partition("\n")[0]
                    found[str(field.value.value)] = summary
    return dict(sorted(found.items()))


def added_policies() -> list[str]:
    """The names of policies that other packages register."""
    return [point.name for point in entry_points(group="agewise.policies")]


def preset_summaries() -> dict[str, str]:
    """The package's scenarios, sorted, each with the first line of its file."""
    folder = files("agewise").joinpath("scenario", "presets")
    texts = {file.name.removesuffix(".toml"): file.read_text("utf-8") for file in folder.iterdir()}
    return {name: texts[name].partition("\n")[0].lstrip("# ") for name in sorted(texts)}


def _completing(words: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """What offers those of the words that begin as the word that is typed."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in words() if word.startswith(incomplete)]

    return complete


def _listed(words: Sequence[str]) -> str:
    """The words in a sentence.

    >>> _listed(("local", "inline", "ray"))
    'local, inline or ray'
    """
    return f"{', '.join(words[:-1])} or {words[-1]}"


# Declarations

_PRESETS = "A preset ('agewise scenario' lists them) or a TOML file"
_BITS = "Bits per real channel use"
_POLICY = ("--policy", "-p")
_LOOKED_AT = typer.Option(min=1, help="Rounds to look at; all of a run up to 100 by default.")
_complete_policy = _completing(lambda: sorted({*policy_summaries(), *added_policies()}))
_complete_preset = _completing(preset_summaries)


def _optional_source(text: str) -> ParameterInfo:
    found: ParameterInfo = typer.Argument(
        help=f"{_PRESETS}; {text}", show_default=False, autocompletion=_complete_preset
    )
    return found


def _policy(text: str, *names: str) -> ParameterInfo:
    found: ParameterInfo = typer.Option(*names, help=text, autocompletion=_complete_policy)
    return found


#: What the parameters of commands are on the command line, by their names; where one command means
#: something else by a name, by COMMAND.NAME. Types and defaults stand in the commands.
_DECLARED: Mapping[str, ParameterInfo] = {
    "source": typer.Argument(help=f"{_PRESETS}.", autocompletion=_complete_preset),
    "compare.source": _optional_source("paper if not given."),
    "scenario.source": _optional_source("without one, the presets."),
    "reproduce.source": _optional_source(
        "the paper's by default, with 40 rounds for the map, and physical-timed over seconds or "
        "joules."
    ),
    "gap.source": _optional_source("the paper's with 50 rounds by default."),
    "trace": typer.Option(
        metavar="DIR",
        help="The folder of a recorded federation, whose links are replayed; what is learned is as "
        "there, or as in the scenario that is given.",
    ),
    "changes": typer.Option(
        "--set",
        help="Change a field by its dotted name: learn.local_steps=20; a section by the name of a "
        "kind, data.partition=iid, or as a table, 'timing={kind=\"none\"}'. May be repeated.",
    ),
    "vary": typer.Option(
        help="Values of a field: threshold.rate=1,2,4 or, from the first to the last by a step, "
        "cell.ues=50:200:50; of a section: data.partition=iid,shards. May be repeated, which gives "
        "every combination."
    ),
    "gap.vary": typer.Option(
        help="The regimes: threshold.rate=1,2,4; may be repeated. By default edge SNRs of -10, "
        "0, 10 and 20 dB with thresholds of 1, 2, 4 and 6 bit."
    ),
    "folder": typer.Argument(help="A results folder, finished or still running."),
    "out": typer.Option(
        "--out",
        "-o",
        metavar="DIR",
        help="Results folder, runs/COMMAND-SCENARIO by default, with a short hash behind it if the "
        "scenario is not just a preset; one that is partly filled is continued.",
    ),
    "seeds": typer.Option("--seeds", "-s", help="Seeds 0 to this, exclusive."),
    "rounds": typer.Option(min=1, help="Rounds of a run: short for --set run.rounds=N."),
    "policy": _policy(
        "Name, with parameters behind a colon: age-based:alpha=0.25; or a class in a file of "
        "yours: my_policy.py:MyPolicy.",
        *_POLICY,
    ),
    "name": typer.Argument(
        help="A policy, or one in a file of yours; without one, all are listed.",
        autocompletion=_complete_policy,
    ),
    "policies": _policy(
        "Name, with parameters behind a colon: max-pack:ties=lowest-index; or a class in a file of "
        "yours: my_policy.py:MyPolicy. May be repeated.",
        *_POLICY,
    ),
    "figure.policies": _policy(
        "Which to show, once for each; all if none.", "--policies", "--policy"
    ),
    "baseline": _policy(
        "The policy that the others are compared with; max-pack by default, else the first."
    ),
    "race.policies": _policy(
        "Who races, in the packings that there are unless one is named; may be repeated. All by "
        "default.",
        *_POLICY,
    ),
    "aggregations": typer.Option(
        "--aggregation",
        help="Races too: average, or '{kind=\"momentum\", ...}'; may be repeated. By default the "
        "scenario's own, memory and Adam.",
    ),
    "budget": typer.Option(
        help="Runs at most, as 600, six for each form by default; or a time, as 90s, 10min or 2h."
    ),
    "live": typer.Option("--live", help="Show every round as it happens, in this process."),
    "every": typer.Option(min=1, help="Solve every N-th round to optimality."),
    "work_limit": typer.Option(
        min=0, help="Steps of the search in a round, about a million a second."
    ),
    "whole_map": typer.Option(
        "--map",
        help="Instead, where age-based scheduling wins: threshold, heterogeneity of data, alpha.",
    ),
    "explain": typer.Option(
        "--explain", help="Also replay what the gain is made of, as agewise explain does."
    ),
    "explain.policy": _policy(
        "The policy whose gain is explained; age-based by default, else the first.", *_POLICY
    ),
    "labels": typer.Option(
        "--label", help="What a policy is called, age-based=ABS; may be repeated."
    ),
    "as_latex": typer.Option("--latex", help="Print tables for LaTeX with the package booktabs."),
    "as_json": typer.Option("--json", help="Print JSON for machines."),
    "report.output": typer.Option("--output", "-o", help="The page; DIR/report.html by default."),
    "kind": typer.Argument(
        help=f"{_listed(tuple(PICTURES))}.", autocompletion=_completing(lambda: PICTURES)
    ),
    "figure.output": typer.Option(
        "--output", "-o", help="The file: .pdf, .pgf, .svg, .eps, .png, or .csv for its data."
    ),
    "setting": typer.Option(
        help="Which of a sweep: threshold.rate=4, or rate=4; the first if not given."
    ),
    "width": typer.Option(help="column (3.5 in), page (7.16 in) or a number of inches."),
    "ylim": typer.Option(help="The ends of the vertical axis: 0.7 0.9."),
    "style": typer.Option(help="paper, slides, a style of Matplotlib or a .mplstyle file."),
    "traffic.rounds": typer.Option(min=1, help="Slots to schedule."),
    "arrivals": typer.Option(
        help="Probability of a new update per UE and slot, or a file of arrivals: a CSV of 0 and 1 "
        "with a row per slot and a column per UE, or an NPZ with an array 'arrivals'; without it, "
        "always one."
    ),
    "seed": typer.Option(min=0, help="Seed of channels and what else is random."),
    "gains": typer.Argument(
        help="Gains, SNR per unit of power: a CSV with a row per UE and a column per "
        "subchannel (no column of names), or an NPZ with an array 'gains'."
    ),
    "ages": typer.Option(
        help="Rounds since each UE's last received update: a CSV with one row or one column, "
        "or an NPZ with an array 'ages'."
    ),
    "power": typer.Option(help="Each UE's power budget."),
    "schedule.rate_threshold": typer.Option(help=f"{_BITS} that a scheduled UE must reach."),
    "rate_threshold": typer.Option(help=f"{_BITS}, to say how many subchannels UEs need."),
    "channel.rounds": _LOOKED_AT,
    "show_trace.rounds": _LOOKED_AT,
    "record.rounds": typer.Option(min=1, help="Rounds to record; those of a run by default."),
    "output": typer.Option("--output", "-o", help="Draw a picture here: .png, .pdf, .svg or .eps."),
    "record.out": typer.Option("--out", "-o", help="The file: .npz, .h5 or .hdf5."),
    "file": typer.Argument(help="A trace of gains: .npz, .npy, .mat, .h5, .parquet or .csv."),
    "engine": typer.Option(
        help="Where runs happen: local (processes), inline (this process), ray "
        "(agewise\\[ray]), or auto: inline for work of a few seconds, else local.",
        autocompletion=_completing(lambda: ENGINES),
    ),
    "workers": typer.Option(help="Processes of the local engine; one per core by default."),
    "address": typer.Option(help="Ray cluster to connect to, such as auto."),
    "quiet": typer.Option("--quiet", "-q", help="No progress."),
    "force": typer.Option(
        "--force",
        help="Begin a folder anew that holds results of another scenario, or of other code.",
    ),
    "loggers": typer.Option(
        "--log",
        help=f"Also hand every run to {_listed(LOGGERS)}. May be repeated.",
        autocompletion=_completing(lambda: LOGGERS),
    ),
    "dry_run": typer.Option(
        "--dry-run", help="Say how many runs there are and how long; run nothing."
    ),
    "fail_fast": typer.Option("--fail-fast", help="Stop at the first run that fails; else go on."),
    "over": typer.Option(
        help="What accuracies are shown over: rounds, seconds, joules, channel-uses (airtime) "
        "or bits.",
        autocompletion=_completing(lambda: AXES),
    ),
    "at": typer.Option(
        help="Where on that axis: 10,20,40; some rounds, or parts of what the cheapest run cost, "
        "by default."
    ),
    "target": typer.Option(help="Also what it took to reach this accuracy: 0.8 is 80%."),
}


# Groups: one parameter of a command that stands for several options


def _run_options(
    engine: str = "auto",
    workers: int | None = None,
    address: str | None = None,
    quiet: bool = False,
    force: bool = False,
    loggers: list[str] | None = None,
    dry_run: bool = False,
    fail_fast: bool = False,
) -> "agewise.experiment.RunOptions":
    return agewise.experiment.RunOptions(
        engine, workers, address, quiet, force, loggers or (), fail_fast, dry_run
    )


def _shown(
    over: str = "rounds", at: str | None = None, target: float | None = None
) -> "printing.ShowOptions":
    agewise.statistics.axis_of(over)
    if target is not None and not 0.0 < target <= 1.0:
        raise ValueError(f"--target {target:g}: must be above 0 to 1, a share of the test samples")
    if at is None:
        return printing.ShowOptions(over, None, target)
    numbers = [value_of(text, "--at") for text in split_values(at)]
    if not all(type(number) in (int, float) and number > 0 for number in numbers):
        raise ValueError(f"--at {at}: give numbers above 0, such as 10,20,40")
    return printing.ShowOptions(over, tuple(numbers), target)


_Group = tuple[Callable[..., object], Mapping[str, inspect.Parameter]]
_RUN = inspect.signature(_run_options).parameters
#: Parameters of commands that stand for several options: what makes one value of these, and which.
#: Studies need all their runs, so they have no say in what follows a failed one.
_GROUPS: Mapping[str, _Group] = {
    "options": (_run_options, _RUN),
    "study_options": (_run_options, {n: each for n, each in _RUN.items() if n != "fail_fast"}),
    "shown": (_shown, inspect.signature(_shown).parameters),
}


def with_options(function: Callable[..., None]) -> Callable[..., None]:
    """The command with its parameters as they are declared, a group as the options in it."""
    own = inspect.signature(function).parameters
    groups = {name: _GROUPS[name] for name in own if name in _GROUPS}
    options = {name: each for name, each in own.items() if name not in groups}
    for _, inside in groups.values():
        options |= inside
    parameters = []
    for name, each in options.items():
        special = f"{function.__name__.removesuffix('_command')}.{name}"
        declared = _DECLARED[special if special in _DECLARED else name]
        kind = Annotated[each.annotation, declared]  # type: ignore[name-defined]
        parameters.append(each.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=kind))

    @wraps(function)
    def command(**given: object) -> None:
        made = {
            name: make(**{each: given.pop(each) for each in inside})
            for name, (make, inside) in groups.items()
        }
        try:
            function(**given, **made)
        except Exception as planned:
            if not ("dry_run" in options and isinstance(planned, agewise.experiment.DryRun)):
                raise
            typer.echo(visible(str(planned)))

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


# What options mean


def require_axis(over: str, scenario: "agewise.Scenario") -> None:
    """Raise ``ValueError`` before anything runs that could not be shown over this axis."""
    agewise.statistics.axis_of(over).require(scenario.resolved())


def scenario_of(
    source: "str | agewise.Scenario",
    changes: list[str] | None,
    rounds: int | None = None,
    **varied: Any,
) -> "agewise.Scenario":
    """The scenario of this preset or file with the changes, which are made together."""
    base = _named_scenario(source) if isinstance(source, str) else source
    return base.with_(**_set_values(changes, rounds), **varied)


def compared_scenario(
    source: str | None, trace: Path | None, changes: list[str] | None, rounds: int | None = None
) -> "agewise.Scenario":
    """The scenario to compare on; with a trace, its links and what the source says of learning."""
    if trace is None:
        return scenario_of(source or "paper", changes, rounds)
    learning = None if source is None else _named_scenario(source)
    return scenario_of(agewise.experiment.replay_scenario(trace, learning), changes, rounds)


def swept_scenario(
    source: "str | agewise.Scenario",
    varied: dict[str, list[object]],
    changes: list[str] | None,
    rounds: int | None = None,
) -> "agewise.Scenario":
    """The scenario that a sweep starts from.

    A change may need a field that is varied, as a kind of data set needs the paths: then the
    first value of every varied field is a part of it.
    """
    try:
        return scenario_of(source, changes, rounds)
    except agewise.scenario.ScenarioError:
        if not changes:
            raise
        return scenario_of(source, changes, rounds, **{name: x[0] for name, x in varied.items()})


def _named_scenario(source: str) -> "agewise.Scenario":
    """The preset of this name, or the scenario in this file."""
    known = source in agewise.scenario.presets()
    if known or not (source.endswith(".toml") or Path(source).exists()):
        return agewise.Scenario.preset(source)
    return agewise.Scenario.load(source)


def default_out(
    command: str,
    source: str,
    scenario: "agewise.Scenario",
    usual: "agewise.Scenario | None" = None,
) -> Path:
    """The results folder of a command without ``--out``.

    The ``usual`` scenario, by default the preset that is named, has the name alone; of anything
    else a short hash is a part, so that a scenario that was edited has a folder of its own.
    """
    name = f"{command}-{Path(source).stem}"
    if usual is None and source in agewise.scenario.presets():
        usual = agewise.Scenario.preset(source)
    return Path("runs") / (
        name if scenario == usual else f"{name}-{agewise.scenario.short_hash(scenario)}"
    )


def _set_values(changes: list[str] | None, rounds: int | None) -> dict[str, Any]:
    """The value of each name behind --set, with that of --rounds."""
    short = [] if rounds is None else [f"run.rounds={rounds}"]
    return values_of([*(changes or []), *short], "--set")


def values_of(texts: list[str] | None, option: str) -> dict[str, Any]:
    """The value of each name, from ``name=value`` texts."""
    values: dict[str, Any] = {}
    for name, text in (_assignment(text, option) for text in texts or []):
        if name in values:
            raise ValueError(f"{option} {name} is given twice: leave out one of the two")
        values[name] = value_of(text, option)
    return values


def arrivals_of(text: str | None) -> "float | NDArray[np.float64] | None":
    """A probability, or the arrivals in a file."""
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return agewise.traffic.read_arrivals(text)


def labels_of(texts: list[str] | None) -> dict[str, str]:
    """The label of each policy, from ``policy=label`` texts; a policy may have an = of its own."""
    parts = [text.rpartition("=") for text in texts or []]
    if wrong := [label for policy, _, label in parts if not (policy and label)]:
        raise ValueError(f"--label needs policy=label, such as age-based=ABS, not {wrong[0]!r}")
    return {policy: label for policy, _, label in parts}


def variations_of(
    texts: list[str], changes: list[str] | None = None, rounds: int | None = None
) -> dict[str, list[object]]:
    """The values of each field, from ``name=value,value`` texts, beside the changes of --set."""
    varied: dict[str, list[object]] = {}
    for name, values in (_assignment(text, "--vary") for text in texts):
        if name in varied:
            raise ValueError(f"--vary {name} is given twice: write all its values behind one")
        varied[name] = [value for part in split_values(values) for value in _varied(part, name)]
    if both := [name for name in _set_values(changes, rounds) if name in varied]:
        raise ValueError(f"--set and --vary both change {both[0]}: leave out one of the two")
    return varied


_NUMBER = r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?"
_RANGE = re.compile(rf"{_NUMBER}(:{_NUMBER})+")
#: The most values of a range.
_MOST_VALUES = 10_000


def _varied(text: str, name: str) -> Sequence[object]:
    """The values of one part behind --vary: a single value, or those of a range."""
    if not _RANGE.fullmatch(text):
        return [value_of(text, "--vary")]
    return range_values(text, f"--vary {name}={text}")


def range_values(text: str, where: str) -> list[float]:
    """The numbers of ``first:last:step``, the last included where the steps meet it.

    >>> range_values("50:200:50", ""), range_values("1:0:-0.5", "")
    ([50, 100, 150, 200], [1.0, 0.5, 0.0])
    """
    parts = text.split(":")
    if len(parts) != 3:
        raise ValueError(f"{where}: a range is first:last:step, such as 50:200:50")
    first, last, step = map(Decimal, parts)  # exact, so that 0:1:0.1 has eleven values
    if step == 0:
        raise ValueError(f"{where}: the step of a range must not be 0")
    steps = (last - first) / step
    if steps < 0:
        raise ValueError(
            f"{where}: the range is empty: {first} to {last} is not reached by steps of {step}"
        )
    if steps >= _MOST_VALUES:
        raise ValueError(
            f"{where}: the range has about {steps:.3g} values, and at most {_MOST_VALUES:,} are "
            "taken: make its step larger"
        )
    kind = int if all(re.fullmatch(r"[-+]?\d+", part) for part in parts) else float
    return [kind(first + number * step) for number in range(int(steps) + 1)]


def _assignment(text: str, option: str) -> tuple[str, str]:
    """The two sides of ``name=value``."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"{option} needs name=value, not {text!r}")
    return name.strip(), value.strip()


def value_of(text: str, option: str) -> Any:
    """A value as it is written in TOML; a plain word is text."""
    value = agewise.scenario.toml.value(text)
    if value == text and text.startswith(("{", "[", '"', "'")):
        raise ValueError(f"{option}: {text} is not valid TOML")
    return value


def split_values(text: str) -> list[str]:
    """Values between commas; commas in brackets, braces and quotes belong to a value.

    >>> split_values('iid, {kind = "shards", classes_per_ue = 1}, "a, b"')
    ['iid', '{kind = "shards", classes_per_ue = 1}', '"a, b"']
    """
    values, depth, quote = [""], 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in "[{":
            depth += 1
        elif character in "]}":
            depth -= 1
        if character == "," and depth == 0 and not quote:
            values.append("")
        else:
            values[-1] += character
    return [value.strip() for value in values]
