"""What a case is, and what may come of it: a valid result, or a clean error within limits."""

import contextlib
import dataclasses
import faulthandler
import io
import json
import re
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from agewise.cli import main

#: A case that takes longer hangs; the process ends if it cannot even be interrupted.
SECONDS = 30
#: What a case may take of the address space beyond what the process already has.
MEMORY = 2 * 2**30
#: Errors may quote the input, but not all of it.
LONGEST_MESSAGE = 20_000
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_FORBIDDEN = (
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.fork",
    "subprocess.Popen",
    "socket.connect",
)


class Wrong(Exception):
    """A result that is not valid, or an error that is not clean."""


class Hang(BaseException):
    """The case took too long."""


class CleanExit(ValueError):
    """The command line ended with exit code 2 and this one sentence."""


@dataclasses.dataclass
class Case:
    """One input: files to write, and what is tried with them in the folder that they are in.

    ``attempt(folder)`` returns if the result is valid. An error must name one of ``names``.
    ``shown`` is the rest of the input, as text.
    """

    attempt: Callable[[Path], object]
    names: tuple[str, ...]
    files: dict[str, bytes] = dataclasses.field(default_factory=dict)
    shown: str = ""


class Target:
    """Seeds, and cases made from them.

    ``make(chance)`` gives a case: ``chance.rng`` chooses the seed, and each of
    ``chance.changes()`` is the source of one change, of which some may be left out to find out
    which ones matter.
    """

    name: str
    #: How much more of the time it gets than others: cases of some take long.
    share = 1

    def __init__(self, room):
        self.room = room
        #: Made by whoever unpickles what is planted in the input.
        self.trap = room / "trap"
        self.warm_up()

    def warm_up(self):
        """Compile what the cases need, which may take longer than a case may."""

    def make(self, chance):
        raise NotImplementedError


def judge(case, folder):
    """``"valid"``, ``"error"``, or what is wrong as a text with the traceback."""
    for name, content in case.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    verdict = "valid"
    try:
        with _limits(), _watched() as forbidden, warnings.catch_warnings():
            warnings.simplefilter("error")
            case.attempt(folder)
    except (ValueError, OSError) as error:
        verdict = _unclean(error, case.names) or "error"
    except Hang:
        return f"no end after {SECONDS} s\n{traceback.format_exc()}"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
    return f"it did {forbidden[0]}" if forbidden else verdict


def _unclean(error, names):
    """What is wrong with an error, or ``None``."""
    message = str(error)
    problem = None
    if not message.strip():
        problem = "an error without a message"
    elif "\n" in message:
        problem = "an error of several lines"
    elif len(message) > LONGEST_MESSAGE:
        problem = f"an error of {len(message)} characters"
    elif not any(name in message for name in names):
        problem = f"an error that names none of {', '.join(names)}"
    return problem and f"{problem}: {type(error).__name__}: {message[:500]}\n{_trace(error)}"


def _trace(error):
    return "".join(traceback.format_exception(error))


@contextlib.contextmanager
def _limits():
    """Time and memory; what cannot be interrupted ends the process, and the parent notices."""

    def ring(_number, _frame):
        raise Hang

    before = signal.signal(signal.SIGALRM, ring)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, hard))
    faulthandler.dump_traceback_later(SECONDS + 10, exit=True)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGALRM, before)


_seen = None


def _hook(event, arguments):
    if _seen is not None and event in _FORBIDDEN:
        _seen.append(f"{event} {arguments!r:.300}")


@contextlib.contextmanager
def _watched():
    """What the case did that no input may make it do: run a program, open a connection."""
    global _seen
    if not getattr(_watched, "hooked", False):
        sys.addaudithook(_hook)  # for good: hooks cannot be taken away
        _watched.hooked = True
    _seen = seen = []
    try:
        yield seen
    finally:
        _seen = None


def command(*arguments):
    """What the command prints on standard output; `CleanExit` if it ends with one sentence."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2))
    code = 0
    with (
        mock.patch.object(sys, "argv", ["agewise", *map(str, arguments)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as error:
            code = error.code or 0
    printed, said = _content(out), _content(err)
    require_printable(printed + said)
    if code == 2:
        if not said.startswith("agewise: ") or said.count("\n") != 1:
            raise Wrong(f"exit code 2, but not one sentence: {said[:500]!r}")
        raise CleanExit(said.strip())
    if code != 0:
        raise Wrong(f"exit code {code}: {said[:500]!r}")
    return printed


def _content(stream):
    stream.flush()
    return stream.buffer.getvalue().decode("utf-8")


def require_printable(text):
    """Nothing in the text may command a terminal."""
    found = _CONTROL.search(text)
    if found:
        around = text[max(0, found.start() - 80) : found.end() + 80]
        raise Wrong(f"{found[0]!r} reaches the terminal: {around!r}")


def json_of(text):
    """Output of ``--json``, strictly: no NaN."""

    def refuse(name):
        raise Wrong(f"{name} in JSON")

    return json.loads(text, parse_constant=refuse)


def require(condition, text):
    """Raise `Wrong` unless the condition holds."""
    if not condition:
        raise Wrong(text)


def keep(case, folder):
    """Write the input of a case into a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in case.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / "input.txt").write_text(case.shown, encoding="utf-8", errors="backslashreplace")
