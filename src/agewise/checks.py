"""Checks of single arguments and of memory, with errors that name them; text made safe to show."""

import difflib
import math
import numbers
import os
import resource
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

#: Where a container keeps its limit, by either version of control groups.
_CONTAINER_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
#: Characters of a name or a value in an error.
_LONGEST = 100
_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")


def first_line(error: BaseException) -> str:
    """The first line of what an error says, or its name if it says nothing."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def real_number(name: str, value: object) -> float:
    """A finite number as a float; ``ValueError`` naming the argument for anything else."""
    if type(value) is float and math.isfinite(value):  # as a rule, and checked fast
        return value
    if type(value) is not bool and isinstance(value, numbers.Real):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise ValueError(f"{name} must be a finite number, not {short(repr(value))}")


def whole_number(name: str, value: object, least: int = 0, most: int | None = None) -> int:
    """A whole number from ``least`` to ``most``; ``ValueError`` naming the argument otherwise."""
    if type(value) is not bool and isinstance(value, numbers.Integral) and int(value) >= least:
        if most is None or int(value) <= most:
            return int(value)
        raise ValueError(
            f"{name} must be a whole number from {least} to {most}, not {short(str(int(value)))}"
        )
    raise ValueError(f"{name} must be a whole number of at least {least}, not {short(repr(value))}")


def whole_parameter(name: str, value: float, least: int = 0, most: int = 2**31 - 1) -> int:
    """A whole number from ``least`` to ``most``, also where it was written as 2.0."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return whole_number(name, value, least, most)


def number_within(
    name: str, value: float, least: float, most: float = math.inf, *, above: bool = False
) -> None:
    """Raise ``ValueError`` unless ``value`` is a finite number from ``least`` to ``most``.

    It must be ``above`` the least where that is said.
    """
    number = real_number(name, value)
    if number < least or number > most or (above and number == least):
        ends = f"{'(' if above else '['}{least:g}, {f'{most:g}]' if most < math.inf else 'inf)'}"
        raise ValueError(f"{name} must be in {ends}, not {value:g}")


def require_list(name: str, value: object) -> None:
    """Raise ``ValueError`` unless the value has items; a text is none of that."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ValueError(f"{name} must be a list, not {short(repr(value))}")


def path_of(name: str, value: object) -> Path:
    """A path; ``ValueError`` naming the argument for what cannot be the name of a file."""
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else ""
    if isinstance(text, str) and text.strip() and "\0" not in text:
        return Path(text)
    raise ValueError(f"{name} must be the name of a file or folder, not {short(repr(value))}")


def one_of(name: str, value: str, choices: Iterable[str]) -> None:
    """Raise ``ValueError`` unless the value is one of the choices."""
    known = tuple(choices)
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, not {value!r}")


def text_parameters(owner: str, text: str, known: Sequence[str]) -> dict[str, float | str | None]:
    """Read ``alpha=0.5,ties=random``, parameters of the ``owner``; numbers become numbers.

    ``ValueError`` names what is not known, given twice or has no value.
    """
    parameters: dict[str, float | str | None] = {}
    for part in filter(None, text.split(",")):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise ValueError(f"{owner}: write parameters as name=value, not {part!r}")
        if name in parameters:
            raise ValueError(f"{owner}: the parameter {name!r} is given twice")
        try:
            parameters[name] = float(value)
        except ValueError:
            parameters[name] = None if value == "None" else value
    require_known(owner, parameters, known)
    return parameters


def require_known(owner: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Raise ``ValueError`` for a parameter that the ``owner`` does not have."""
    for name in given:
        if name not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes no parameters"
            raise ValueError(f"{owner} has no parameter {name!r}; {takes}")


def require_memory(needed: float, what: str) -> None:
    """Raise ``ValueError`` if this process cannot get this many bytes."""
    most = available_bytes()
    if needed > most:
        raise ValueError(
            f"{what} would need {bytes_text(needed)} of memory, and {bytes_text(most)} are "
            "available: make it smaller"
        )


def available_bytes() -> int:
    """What the machine has, or this process may have if that is less.

    How much of it others use at the moment is not known on every system, and changes.
    """
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    of_process, _ = resource.getrlimit(resource.RLIMIT_AS)
    if of_process != resource.RLIM_INFINITY:
        limits.append(of_process)
    texts = [file.read_text("ascii").strip() for file in _CONTAINER_LIMITS if file.exists()]
    return min([*limits, *(int(text) for text in texts if text.isdigit())])  # "max" is no limit


def bytes_text(count: float) -> str:
    """An amount of memory.

    >>> bytes_text(999), bytes_text(1.6e11)
    ('999 bytes', '160 GB')
    """
    power = 0
    while count >= 1000 and power < len(_UNITS) - 1:
        count, power = count / 1000, power + 1
    return f"{count:.3g} {_UNITS[power]}"


def short(text: str) -> str:
    """A name or a value in one line of an error, and not all of a long one."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."


def visible(text: str, *, lines: bool = False) -> str:
    r"""Text for a terminal: what would steer it, or reorder or hide text, is shown as an escape.

    Line breaks stay where the text is laid out in ``lines``.

    >>> print(visible("red\x1b[31m, bell\a, reversed\u202e"))
    red\x1b[31m, bell\x07, reversed\u202e
    """
    if text.isascii() and text.isprintable():  # as a rule, and checked fast
        return text
    return "".join(x if (lines and x == "\n") or not _steers(x) else _escaped(x) for x in text)


def _steers(character: str) -> bool:
    """Control characters, marks of direction, other separators and what cannot be encoded."""
    return unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"}


def _escaped(character: str) -> str:
    if character.isascii():
        return f"\\x{ord(character):02x}"
    return character.encode("ascii", "backslashreplace").decode()


def nearest(name: str, known: Iterable[str]) -> str:
    """Hint at the names that there are.

    >>> nearest("fiveg", ["four", "five"])
    'did you mean five?'
    """
    names = list(dict.fromkeys(known))
    near = difflib.get_close_matches(name, names, n=2, cutoff=0.6)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"there are {', '.join(names)}" if names else "nothing is below it"
