"""The command line's frame: the application, its version, and how mistakes are told."""

import sys
from typing import Annotated, NoReturn

import typer

import agewise
from agewise.checks import visible

app = typer.Typer(
    name="agewise",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Who uploads, on which subchannels, with what power: age-based scheduling of federated "
    "learning over wireless channels.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"agewise {agewise.__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None: ...


def fail(message: str, code: int = 2) -> NoReturn:
    """End with one sentence."""
    typer.echo(visible(f"agewise: {' '.join(message.split())}"), err=True)
    sys.exit(code)


def end_if_failed(result: "agewise.Result") -> None:
    """The exit code says that runs failed, which is printed already."""
    if result.failed:
        sys.exit(1)


def main() -> None:
    """Run the command line; a user's mistake ends with one sentence and exit code 2."""
    try:
        app()
    except KeyboardInterrupt:
        fail("interrupted; what is finished is kept, the same command goes on from there", 130)
    except (ValueError, OSError, ModuleNotFoundError) as error:
        fail(str(error))
    except RuntimeError as error:
        if type(error).__module__.split(".")[0] not in ("loky", "ray"):
            raise
        fail(f"a worker process was lost, and the same command goes on from there: {error}", 1)
