"""Commands of the radio: what a channel means, and channels in files."""

from pathlib import Path
from typing import Annotated

import typer

import agewise
from agewise.cli import printing
from agewise.cli.app import command, trace_command
from agewise.cli.options import AsJson, Changes, Source, scenario_of

_Seed = Annotated[int, typer.Option(min=0, help="Seed of the channel.")]
_Picture = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Draw a picture here: .png, .pdf, .svg or .eps."),
]


@command("channel")
def channel_command(
    source: Source = "paper",
    seed: _Seed = 0,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Rounds to look at; those of a run up to 100.")
    ] = None,
    output: _Picture = None,
    changes: Changes = None,
    as_json: AsJson = False,
) -> None:
    """Say what a scenario's channel means before anything is simulated, and draw it.

    Example: agewise channel paper -o channel.pdf
    """
    view = agewise.view_channel(scenario_of(source, changes), seed, rounds)
    picture = None if output is None else agewise.draw_channel(view, output)
    printing.print_channel(view, picture, as_json=as_json)


@trace_command("record")
def record_command(
    source: Source,
    out: Annotated[Path, typer.Option("--out", "-o", help="The file: .npz, .h5 or .hdf5.")],
    seed: _Seed = 0,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Rounds to record; those of a run by default.")
    ] = None,
    changes: Changes = None,
) -> None:
    """Write a scenario's channel as a trace, whose replay is the same run to the byte.

    Example: agewise trace record paper --out gains.npz --seed 3
    """
    printing.say(f"Trace: {agewise.record_trace(scenario_of(source, changes), out, seed, rounds)}")


@trace_command("show")
def show_trace_command(
    file: Annotated[Path, typer.Argument(help="A trace of gains: .npz, .npy, .h5 or .parquet.")],
    rate_threshold: Annotated[
        float | None,
        typer.Option(help="Bits per real channel use, to say how many subchannels UEs need."),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Rounds to look at; all up to 100 by default.")
    ] = None,
    output: _Picture = None,
    as_json: AsJson = False,
) -> None:
    """Say what is in a file of gains, and draw it; `agewise channel` shows other formats.

    Example: agewise trace show gains.npz --rate-threshold 4 -o gains.png
    """
    view = agewise.view_trace(file, rate_threshold, rounds)
    picture = None if output is None else agewise.draw_channel(view, output)
    printing.print_channel(view, picture, as_json=as_json)
