"""Policies in Python files: ``my_policy.py:MyPolicy``.

The class belongs to no importable module, so that pickling takes it along by value and it runs in
other processes and on other machines. What it uses of its own file goes with it; what it imports
must be installed there.
"""

import functools
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType

from agewise.scheduling import Policy

_NAMED = re.compile(
    r"(?P<file>.+\.py)(?::(?P<name>[A-Za-z_]\w*)(?=:|$))?(?::(?P<parameters>.*))?$", re.DOTALL
)
#: The text of the file that a class was loaded from.
_TEXTS: dict[type[Policy], str] = {}


def split_file(text: str) -> tuple[str, str, str] | None:
    """The file, the class and the parameters of a policy in a file; ``None`` for a name.

    >>> split_file("mine.py:Mine:alpha=0.5"), split_file("mine.py:alpha=0.5")
    (('mine.py', 'Mine', 'alpha=0.5'), ('mine.py', '', 'alpha=0.5'))
    >>> split_file("age-based:alpha=0.5")
    """
    found = _NAMED.match(text)
    return (found["file"], found["name"] or "", found["parameters"] or "") if found else None


def policy_in_file(file: str, name: str = "") -> type[Policy]:
    """The policy class of this name in a file, or the only one there is."""
    path = Path(file)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"policy {file}: the file cannot be read: {reason}") from error
    found = _classes(str(path.resolve()), text)
    if not found:
        raise ValueError(f"policy {file}: there is no subclass of agewise.Policy in it")
    if not name and len(found) > 1:
        listed = " or ".join(f"{file}:{each}" for each in found)
        raise ValueError(f"policy {file}: there are several classes in it: write {listed}")
    name = name or next(iter(found))
    if name not in found:
        raise ValueError(f"policy {file}: there is no policy {name}, only {', '.join(found)}")
    kind = found[name]
    if "__dataclass_fields__" not in vars(kind):
        raise ValueError(
            f"policy {file}:{name}: put @dataclass(frozen=True) above the class, so that its "
            "parameters are known"
        )
    if not isinstance(getattr(kind, "name", None), str):
        raise ValueError(f'policy {file}:{name}: give the class a name: name = "my-policy"')
    return kind


def text_of_file(kind: type) -> str | None:
    """The text of the file that a policy class was loaded from, as it was then."""
    return _TEXTS.get(kind)


@functools.lru_cache(maxsize=64)
def _classes(path: str, text: str) -> dict[str, type[Policy]]:
    """The policy classes that stand in the file, by name."""
    module = ModuleType(f"_agewise_policy_{Path(path).stem}")
    module.__file__ = path
    sys.modules[module.__name__] = module  # dataclasses look there for what annotations mean
    try:
        exec(compile(text, path, "exec"), module.__dict__)  # noqa: S102 - the user names the file
    except Exception as error:
        said = str(error).partition("\n")[0] or type(error).__name__
        raise ValueError(
            f"policy {Path(path).name}: the file cannot be run: {type(error).__name__}: {said}"
        ) from error
    finally:
        del sys.modules[module.__name__]
    found = {
        name: kind
        for name, kind in vars(module).items()
        if isinstance(kind, type)
        and issubclass(kind, Policy)
        and kind.__module__ == module.__name__
        and not inspect.isabstract(kind)
    }
    _TEXTS.update(dict.fromkeys(found.values(), text))
    return found
