"""Options that several commands share, and what they mean."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from agewise.engines import Engine
    from agewise.scenario import Scenario

Source = Annotated[
    str, typer.Argument(help="A preset ('agewise scenario' lists them) or a TOML file.")
]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change a value by its dotted name: learn.local_steps=20."),
]
Vary = Annotated[
    list[str],
    typer.Option(help="Values of a field: channel.rate_threshold=1,2,4; may be repeated."),
]
Out = Annotated[
    Path | None, typer.Option(help="Results folder; one that is partly filled is continued.")
]
Seeds = Annotated[int, typer.Option(help="Seeds 0 to this, exclusive.")]
EngineName = Annotated[
    str, typer.Option(help="Where runs happen: local (processes), inline, or ray (agewise\\[ray]).")
]
Workers = Annotated[
    int | None, typer.Option(help="Processes of the local engine; one per core by default.")
]
Address = Annotated[str | None, typer.Option(help="Ray cluster to connect to, such as auto.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
Policies = Annotated[
    list[str],
    typer.Option(
        "--policy", help="Name, with parameters behind a colon: max-pack:ties=lowest-index."
    ),
]


def scenario_of(source: str, changes: list[str] | None) -> "Scenario":
    """The scenario of this preset or file, with the changes."""
    from agewise.scenario import Scenario, presets, toml

    is_preset = source in presets() or not (source.endswith(".toml") or Path(source).exists())
    chosen = Scenario.preset(source) if is_preset else Scenario.load(source)
    for text in changes or []:
        name, value = assignment(text, "--set")
        chosen = chosen.with_(**{name: toml.value(value)})
    return chosen


def assignment(text: str, option: str) -> tuple[str, str]:
    """The two sides of ``name=value``."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"{option} needs name=value, not {text!r}")
    return name.strip(), value.strip()


def engine_of(name: str, workers: int | None, address: str | None) -> "Engine":
    """Where runs happen."""
    from agewise.engines import make_engine

    return make_engine(name, workers, address)


def default_out(command: str, source: str) -> Path:
    """The results folder of a command without ``--out``."""
    return Path("runs") / f"{command}-{Path(source).stem}"


def varied_of(texts: list[str]) -> dict[str, list[Any]]:
    """The values of each field, from ``name=value,value`` texts."""
    from agewise.scenario import toml

    varied = {}
    for text in texts:
        name, values = assignment(text, "--vary")
        varied[name] = [toml.value(value) for value in values.split(",")]
    return varied
