"""Commands that show results: the page, and figures for papers."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agewise.cli.app import app

if TYPE_CHECKING:
    from agewise.experiment import Result
    from agewise.reproduction import Claim

Folder = Annotated[Path, typer.Argument(help="A results folder, finished or still running.")]


@app.command("report")
def report_command(
    folder: Folder,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The page; DIR/report.html by default.")
    ] = None,
) -> None:
    """Write one self-contained HTML page that shows what each policy did.

    Example: agewise report runs/reproduce-paper
    """
    from agewise.experiment import Result

    write_report(Result.open(folder), output)


@app.command("figure")
def figure_command(
    folder: Folder,
    kind: Annotated[
        str,
        typer.Argument(help="accuracy, reached, ages, distance, diversity, labels or map."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file: .pdf, .svg, .eps or .png.")
    ],
    at: Annotated[
        list[str] | None,
        typer.Option(help="Which setting of a sweep: channel.rate_threshold=4; the first if not."),
    ] = None,
) -> None:
    """Draw one chart for a paper: one IEEE column wide, vector, fonts embedded.

    Example: agewise figure runs/reproduce-paper accuracy -o accuracy.pdf
    """
    from agewise.experiment import Result
    from agewise.report import draw_figure
    from agewise.scenario import toml

    chosen = {}
    for text in at or []:
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"--at needs name=value, not {text!r}")
        chosen[name.strip()] = toml.value(value.strip())
    typer.echo(f"Figure: {draw_figure(Result.open(folder), kind, output, chosen)}")


def write_report(result: "Result", output: Path | None = None, *, to_stderr: bool = False) -> None:
    """Write the page of a result and say where it is."""
    from agewise.report import write_page

    page = write_page(result, output or result.path / "report.html", _claims(result))
    typer.echo(f"Page: {page}", err=to_stderr)


def _claims(result: "Result") -> "list[Claim]":
    """The paper's claims, where the two policies that they are about ran on the same seeds."""
    from agewise.experiment import Measured
    from agewise.policies import AgeBased, MaxPack
    from agewise.reproduction import judge

    both = [AgeBased().key, MaxPack().key]
    if result.variations != [{}] or not set(both) <= set(result.policies):
        return []
    aged, packed = (result.histories(policy, {}) for policy in both)
    common = sorted(set(aged) & set(packed))
    if not common:
        return []
    measured = [Measured.of({seed: runs[seed] for seed in common}) for runs in (aged, packed)]
    return judge(measured[0], measured[1], result.scenario.run.rounds)
