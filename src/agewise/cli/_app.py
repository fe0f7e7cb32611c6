"""The command line's frame: the application, how it prints, and how mistakes are told."""

import difflib
import json
import math
import os
import re
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, NoReturn, TypeVar

import lazy_loader
import typer
from typer.core import TyperCommand, TyperGroup

import agewise
from agewise.checks import visible
from agewise.cli._options import with_options

#: What the parser raises at the user's mistakes: public in typer only as the base of this one.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]
#: The exit code of a command that Ctrl-C ended.
_INTERRUPTED = 130
#: Characters of the sentence on a mistake.
_MOST_SAID = 3000
#: Typer finds out the shell that asks for its script, unless this is set: then it takes a name.
_NAMED_SHELL = "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"
_SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")
_Function = TypeVar("_Function", bound=Callable[..., None])
#: Said where an interrupt does not say what is kept.
_GOES_ON = "the same command goes on from what was finished"


class Interrupted(Exception):
    """Ctrl-C, with a sentence on what is kept; typer would make it an exit that says nothing."""


def _without_types(parameters: list[Any]) -> list[Any]:
    """Options of a command, in whose help a flag takes no value."""
    for each in parameters:
        if getattr(each, "is_flag", False):
            each.metavar = ""
    return parameters


class _Commands(TyperGroup):
    """The commands, from which an interrupt comes out as `Interrupted`."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options, without the types of flags."""
        return _without_types(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise Interrupted(str(error) or _GOES_ON) from error


class _Command(TyperCommand):
    """A command whose options count once each, unless they are made to be repeated."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options, without the types of flags."""
        return _without_types(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; refuse empty ones, and options that would replace themselves."""
        given, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for parameter in self.params:
            values = given.get(parameter.name)
            for value in values if isinstance(values, list) else [values]:
                if isinstance(value, str) and not value.strip():
                    where = f"{ctx.info_name}: {parameter.opts[0]}"
                    otherwise = "" if parameter.required else ", or leave it out"
                    raise ValueError(f"{where} is empty: give a name{otherwise}")
        for option, count in Counter(order).items():
            several = getattr(option, "multiple", False) or option.nargs != 1
            if count > 1 and not (several or getattr(option, "is_flag", False)):
                hint = "; compare takes several policies" if "--policy" in option.opts else ""
                raise ValueError(
                    f"{ctx.info_name} takes one {option.opts[0]}, and it is given {count} times"
                    f"{hint}"
                )
        return list(super().parse_args(ctx, args))


app = typer.Typer(
    name="agewise",
    cls=_Commands,
    invoke_without_command=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Who uploads, on which subchannels, with what power: age-based scheduling of federated "
    "learning over wireless channels.",
)
_traces = typer.Typer(
    cls=_Commands,
    help="Channels in files: record one, or show what is in one.",
    invoke_without_command=True,
)
app.add_typer(_traces, name="trace")


def command(name: str, within: typer.Typer = app) -> Callable[[_Function], _Function]:
    """Register a command of this name; its groups of parameters become options."""

    def register(function: _Function) -> _Function:
        within.command(name, cls=_Command)(with_options(function))
        return function

    return register


#: Registers a command below ``agewise trace``.
trace_command = partial(command, within=_traces)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"agewise {agewise.__version__}")
        raise typer.Exit


@_traces.callback()
def _show_help(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


@app.callback()
def _common(
    context: typer.Context,
    _wanted: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    _show_help(context)


def say(text: str, *, err: bool = False, hang: int = 0) -> None:
    """Print text, broken between words on a terminal; nothing in it steers that."""
    shown, stream = visible(text, lines=True), sys.stderr if err else sys.stdout
    if stream.isatty():
        width = shutil.get_terminal_size().columns
        shown = "\n".join(
            textwrap.fill(
                line, width, break_long_words=False, break_on_hyphens=False,
                subsequent_indent=" " * (hang or len(line) - len(line.lstrip())),
            )
            for line in shown.split("\n")
        )  # fmt: skip
    typer.echo(shown, err=err)


def say_verbatim(text: str) -> None:
    """Print what programs read, line by line as it is; nothing in it steers the terminal."""
    typer.echo(visible(text, lines=True))


def print_json(value: object) -> None:
    """Print for machines; what is no finite number is null, for JSON knows no others."""
    say_verbatim(json.dumps(_plain(value), indent=2, default=str, allow_nan=False))


def _plain(value: object) -> object:
    match value:
        case Mapping():
            return {str(name): _plain(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case float() if not math.isfinite(value):
            return None
    return value


def print_list(lines: Mapping[str, str]) -> None:
    """Print names, each with a line of text."""
    width = max(map(len, lines))
    for name, line in lines.items():
        say(f"{name:<{width}}  {line}", hang=width + 2)


def fail(message: str, code: int = 2) -> NoReturn:
    """End with one sentence, in which long names and lists are shortened."""
    said = " ".join(re.sub(r"\S{300,}", lambda x: f"{x[0][:200]}...{x[0][-60:]}", message).split())
    said = said if len(said) <= _MOST_SAID else f"{said[:_MOST_SAID]}..."
    say(f"agewise: {said}", err=True)
    sys.exit(code)


def end_if_failed(result: "agewise.Result") -> None:
    """The exit code says that runs failed, which is printed already."""
    if result.failed:
        raise typer.Exit(1)


def main() -> None:
    """Run the command line; a user's mistake ends with one sentence and exit code 2."""
    for stream in (sys.stdout, sys.stderr):  # a locale without a letter must not end a command
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    if sys.argv[1:2] in (["--show-completion"], ["--install-completion"]) and (
        sys.argv[2:3] and sys.argv[2] in _SHELLS
    ):
        os.environ[_NAMED_SHELL] = "1"
    try:
        code = app(prog_name="agewise", standalone_mode=False)
        if code == _INTERRUPTED:  # while the arguments were read, where typer hears it first
            raise Interrupted
    except (Interrupted, KeyboardInterrupt, typer.Abort) as error:
        fail(f"interrupted: {str(error) or _GOES_ON}", _INTERRUPTED)
    except _UsageError as error:
        fail(_usage(error))
    except UnicodeEncodeError as error:
        fail(
            f"{error.object!a} cannot be written in this locale's encoding, {error.encoding}: "
            "set PYTHONUTF8=1"
        )
    except MemoryError as error:
        fail(f"not enough memory: {str(error) or 'make the cell, the data or the run smaller'}")
    except OSError as error:
        what = error.filename or "output"
        fail(f"{what}: {error.strerror}" if error.strerror else str(error))
    except (ValueError, ModuleNotFoundError) as error:
        fail(str(error))
    except RuntimeError as error:
        if type(error).__module__.split(".")[0] not in ("loky", "ray"):
            raise
        fail(f"a worker process was lost, and the same command goes on from there: {error}", 1)
    except BaseException as error:
        part = lazy_loader.load("agewise.part", suppress_warning=True)
        if not part.is_users_fault(error):  # completion ends so
            raise
        fail(f"code of your own ended the program: {part.fault(error)}")
    sys.exit(code or 0)


def _usage(error: Any) -> str:
    """What the parser says against a command, with the option or command that may be meant."""
    context = error.ctx
    where = context.command_path.removeprefix("agewise").strip() if context else ""
    help_of = " ".join(filter(None, ("agewise", where, "--help")))
    given = getattr(error, "option_name", None)
    if given is not None and hasattr(error, "possibilities"):
        options = {
            name.lstrip("-"): name
            for parameter in (context.command.params if context else [])
            for name in parameter.opts
        }
        near = difflib.get_close_matches(given.lstrip("-"), options, n=1)
        text = f"there is no option {given}"
        hint = f"did you mean {options[near[0]]}?" if near else f"{help_of} lists them"
    else:
        text = error.format_message().rstrip(".").replace(". Did", "; did")
        text = text[:1].lower() + text[1:]
        hint = "" if "did you mean" in text else f"see {help_of}"
    return "; ".join(filter(None, (f"{where}: {text}" if where else text, hint)))
