"""Options that several commands share, and what they mean."""

from pathlib import Path
from typing import Annotated, Any

import typer

import agewise

Source = Annotated[
    str, typer.Argument(help="A preset ('agewise scenario' lists them) or a TOML file.")
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
        help="Values of a field: threshold.rate=1,2,4, or of a section, data.partition=iid,shards. "
        "May be repeated, which gives every combination."
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
        parser=out_folder,
        metavar="DIR",
        help="Results folder, runs/COMMAND-SCENARIO by default; one that is partly filled is "
        "continued.",
    ),
]
Seeds = Annotated[int, typer.Option(help="Seeds 0 to this, exclusive.")]
OnePolicy = Annotated[
    str, typer.Option(help="Name, with parameters behind a colon: age-based:alpha=0.25.")
]
Policies = Annotated[
    list[str],
    typer.Option(
        "--policy",
        help="Name, with parameters behind a colon: max-pack:ties=lowest-index. May be repeated.",
    ),
]
Baseline = Annotated[
    str | None,
    typer.Option(
        help="The policy that the others are compared with; max-pack by default, else the first."
    ),
]
EngineName = Annotated[
    str, typer.Option(help="Where runs happen: local (processes), inline, or ray (agewise\\[ray]).")
]
Workers = Annotated[
    int | None, typer.Option(help="Processes of the local engine; one per core by default.")
]
Address = Annotated[str | None, typer.Option(help="Ray cluster to connect to, such as auto.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
FailFast = Annotated[
    bool, typer.Option("--fail-fast", help="Stop at the first run that fails; else go on.")
]
Every = Annotated[int, typer.Option(min=1, help="Solve every so many rounds to optimality.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def scenario_of(source: "str | agewise.Scenario", changes: list[str] | None) -> "agewise.Scenario":
    """The scenario of this preset or file with the changes, which are made together."""
    base = named_scenario(source) if isinstance(source, str) else source
    written = dict(assignment(text, "--set") for text in changes or [])
    return base.with_(**{name: value_of(text, "--set") for name, text in written.items()})


def named_scenario(source: str) -> "agewise.Scenario":
    """The preset of this name, or the scenario in this file."""
    known = source in agewise.scenario.presets()
    if known or not (source.endswith(".toml") or Path(source).exists()):
        return agewise.Scenario.preset(source)
    return agewise.Scenario.load(source)


def default_out(command: str, source: str) -> Path:
    """The results folder of a command without ``--out``."""
    return Path("runs") / f"{command}-{Path(source).stem}"


def variations_of(texts: list[str]) -> dict[str, list[Any]]:
    """The values of each field, from ``name=value,value`` texts."""
    varied: dict[str, list[Any]] = {}
    for text in texts:
        name, values = assignment(text, "--vary")
        if name in varied:
            raise ValueError(f"--vary {name} is given twice: write all its values behind one")
        varied[name] = [value_of(value, "--vary") for value in split_values(values)]
    return varied


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
