"""Options that several commands share, and what they mean."""

import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer

import agewise
from agewise.cli import printing
from agewise.cli.completion import (
    AXES,
    ENGINES,
    LOGGERS,
    complete_one_of,
    complete_policy,
    complete_preset,
    listed,
)

_NUMBER = r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?"
_RANGE = re.compile(rf"{_NUMBER}(:{_NUMBER})+")
#: The most values of a range.
_MOST_VALUES = 10_000

Source = Annotated[
    str,
    typer.Argument(
        help="A preset ('agewise scenario' lists them) or a TOML file.",
        autocompletion=complete_preset,
    ),
]
OptionalSource = Annotated[
    str | None,
    typer.Argument(
        help="A preset ('agewise scenario' lists them) or a TOML file; paper if not given.",
        show_default=False,
        autocompletion=complete_preset,
    ),
]
Trace = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="The folder of a recorded federation, whose links are replayed; what is learned is as "
        "there, or as in the scenario that is given.",
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Change a field by its dotted name: learn.local_steps=20; a section by the name of a "
        "kind, data.partition=iid, or as a table, 'timing={kind=\"none\"}'. May be repeated.",
    ),
]
Vary = Annotated[
    list[str],
    typer.Option(
        help="Values of a field: threshold.rate=1,2,4 or, from the first to the last by a step, "
        "cell.ues=50:200:50; of a section: data.partition=iid,shards. May be repeated, which gives "
        "every combination."
    ),
]


def out_folder(text: str | Path) -> Path:
    """The folder that is meant; an empty name would mean this very folder."""
    if isinstance(text, str) and not text.strip():
        raise typer.BadParameter("it is empty: give the name of a results folder")
    return Path(text)


Folder = Annotated[Path, typer.Argument(help="A results folder, finished or still running.")]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        parser=out_folder,
        metavar="DIR",
        help="Results folder, runs/COMMAND-SCENARIO by default, with a short hash behind it if the "
        "scenario is not just a preset; one that is partly filled is continued.",
    ),
]
Seeds = Annotated[int, typer.Option("--seeds", "-s", help="Seeds 0 to this, exclusive.")]
Rounds = Annotated[
    int | None, typer.Option(min=1, help="Rounds of a run: short for --set run.rounds=N.")
]
OnePolicy = Annotated[
    str,
    typer.Option(
        "--policy",
        "-p",
        help="Name, with parameters behind a colon: age-based:alpha=0.25; or a class in a file of "
        "yours: my_policy.py:MyPolicy.",
        autocompletion=complete_policy,
    ),
]
Policies = Annotated[
    list[str],
    typer.Option(
        "--policy",
        "-p",
        help="Name, with parameters behind a colon: max-pack:ties=lowest-index; or a class in a "
        "file of yours: my_policy.py:MyPolicy. May be repeated.",
        autocompletion=complete_policy,
    ),
]
Baseline = Annotated[
    str | None,
    typer.Option(
        help="The policy that the others are compared with; max-pack by default, else the first.",
        autocompletion=complete_policy,
    ),
]
EngineName = Annotated[
    str,
    typer.Option(
        help="Where runs happen: local (processes), inline, or ray (agewise\\[ray]).",
        autocompletion=complete_one_of(ENGINES),
    ),
]
Workers = Annotated[
    int | None, typer.Option(help="Processes of the local engine; one per core by default.")
]
Address = Annotated[str | None, typer.Option(help="Ray cluster to connect to, such as auto.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
FailFast = Annotated[
    bool, typer.Option("--fail-fast", help="Stop at the first run that fails; else go on.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say how many runs there are and how long; run nothing.")
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Begin a folder anew that holds results of another scenario."),
]
Log = Annotated[
    list[str] | None,
    typer.Option(
        "--log",
        help=f"Also hand every run to {listed(LOGGERS)}. May be repeated.",
        autocompletion=complete_one_of(LOGGERS),
    ),
]
Every = Annotated[int, typer.Option(min=1, help="Solve every N-th round to optimality.")]
Over = Annotated[
    str,
    typer.Option(
        help="What accuracies are shown over: rounds, seconds, joules, uses (of the channel) or "
        "bits.",
        autocompletion=complete_one_of(AXES),
    ),
]
Points = Annotated[
    str | None,
    typer.Option(
        help="Where on that axis: 10,20,40; some rounds, or parts of what the cheapest run spent, "
        "by default."
    ),
]
Target = Annotated[
    float | None,
    typer.Option(help="Also what it took to reach this accuracy: 0.8 is 80%."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def shown_of(over: str, points: str | None = None, target: float | None = None) -> printing.Shown:
    """How a result is to be shown."""
    agewise.statistics.axis_of(over)
    if target is not None and not 0.0 < target <= 1.0:
        raise ValueError(f"--target {target:g}: must be above 0 to 1, a share of the test samples")
    if points is None:
        return printing.Shown(over, None, target)
    numbers = [value_of(text, "--points") for text in split_values(points)]
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int | float) or not number > 0:
            raise ValueError(f"--points {points}: give numbers above 0, such as 10,20,40")
    return printing.Shown(over, tuple(numbers), target)


def require_axis(over: str, scenario: "agewise.Scenario") -> None:
    """Raise ``ValueError`` before anything runs that could not be shown over this axis."""
    agewise.statistics.axis_of(over).require(scenario.resolved())


def scenario_of(source: "str | agewise.Scenario", changes: list[str] | None) -> "agewise.Scenario":
    """The scenario of this preset or file with the changes, which are made together."""
    base = named_scenario(source) if isinstance(source, str) else source
    return base.with_(**values_of(changes, "--set"))


def compared_scenario(
    source: str | None, trace: Path | None, changes: list[str] | None
) -> "agewise.Scenario":
    """The scenario to compare on; with a trace, its links and what the source says of learning."""
    if trace is None:
        return scenario_of(source or "paper", changes)
    learning = None if source is None else named_scenario(source)
    return scenario_of(agewise.experiment.replay_scenario(trace, learning), changes)


def swept_scenario(
    source: "str | agewise.Scenario", changes: list[str] | None, varied: dict[str, list[Any]]
) -> "agewise.Scenario":
    """The scenario that a sweep starts from.

    A change may need a field that is varied, as a kind of data set needs the paths: then the
    first value of every varied field is a part of it.
    """
    try:
        return scenario_of(source, changes)
    except agewise.scenario.ScenarioError:
        if not changes:
            raise
        first = {name: values[0] for name, values in varied.items()}
        base = named_scenario(source) if isinstance(source, str) else source
        return base.with_(**values_of(changes, "--set"), **first)


def named_scenario(source: str) -> "agewise.Scenario":
    """The preset of this name, or the scenario in this file."""
    known = source in agewise.scenario.presets()
    if known or not (source.endswith(".toml") or Path(source).exists()):
        return agewise.Scenario.preset(source)
    return agewise.Scenario.load(source)


def default_out(command: str, source: str, scenario: "agewise.Scenario") -> Path:
    """The results folder of a command without ``--out``.

    A preset as it is has its name alone; of anything else a short hash of the scenario is a part,
    so that a scenario that was edited has a folder of its own.
    """
    name = f"{command}-{Path(source).stem}"
    if source in agewise.scenario.presets() and scenario == agewise.Scenario.preset(source):
        return Path("runs") / name
    return Path("runs") / f"{name}-{agewise.scenario.short_hash(scenario)}"


def with_rounds(changes: list[str] | None, rounds: int | None) -> list[str] | None:
    """The changes of --set, with that of --rounds."""
    return changes if rounds is None else [*(changes or []), f"run.rounds={rounds}"]


def say_forecast(
    plans: "Mapping[Path, agewise.experiment.Plan]", out: Path, engine: str, workers: int | None
) -> None:
    """What the command would do, for --dry-run: these plans, each in its folder."""
    runner = agewise.engines.make_engine(engine, workers)
    printing.say(str(agewise.experiment.forecast_all(plans, out, runner)))


def values_of(texts: list[str] | None, option: str) -> dict[str, Any]:
    """The value of each name, from ``name=value`` texts."""
    values: dict[str, Any] = {}
    for name, text in (assignment(text, option) for text in texts or []):
        if name in values:
            raise ValueError(f"{option} {name} is given twice: leave out one of the two")
        values[name] = value_of(text, option)
    return values


def variations_of(texts: list[str], changes: list[str] | None = None) -> dict[str, list[Any]]:
    """The values of each field, from ``name=value,value`` texts, beside the changes of --set."""
    varied: dict[str, list[Any]] = {}
    for text in texts:
        name, values = assignment(text, "--vary")
        if name in varied:
            raise ValueError(f"--vary {name} is given twice: write all its values behind one")
        varied[name] = [value for part in split_values(values) for value in _varied(part, name)]
    both = [name for name in values_of(changes, "--set") if name in varied]
    if both:
        raise ValueError(f"--set and --vary both change {both[0]}: leave out one of the two")
    return varied


def _varied(text: str, name: str) -> list[Any]:
    """The values of one part behind --vary: a single value, or those of a range."""
    if not _RANGE.fullmatch(text):
        return [value_of(text, "--vary")]
    return range_values(text, f"--vary {name}={text}")


def range_values(text: str, where: str) -> list[int] | list[float]:
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
    values = [first + number * step for number in range(int(steps) + 1)]
    if all(re.fullmatch(r"[-+]?\d+", part) for part in parts):
        return [int(value) for value in values]
    return [float(value) for value in values]


def assignment(text: str, option: str) -> tuple[str, str]:
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
