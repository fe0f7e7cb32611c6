"""Checks of single arguments, with errors that name them, and text made safe to show."""

import difflib
import math
import numbers
import unicodedata
from collections.abc import Iterable


def real_number(name: str, value: object) -> float:
    """A finite number as a float; ``ValueError`` naming the argument for anything else."""
    if type(value) is float and math.isfinite(value):  # as a rule, and checked fast
        return value
    if isinstance(value, numbers.Real):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise ValueError(f"{name} must be a finite number, not {value!r}")


def whole_number(name: str, value: object, least: int = 0, most: int | None = None) -> int:
    """A whole number from ``least`` to ``most``; ``ValueError`` naming the argument otherwise."""
    if isinstance(value, numbers.Integral) and int(value) >= least:
        if most is None or int(value) <= most:
            return int(value)
        raise ValueError(f"{name} must be a whole number from {least} to {most}, not {value:g}")
    raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")


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
