"""Where PyTorch modules come from: the package, a file, or a function of the running program."""

import functools
import importlib.util
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from agewise.files import fingerprint
from agewise.npz import require_file
from agewise.scenario import Torch
from agewise.scenario.errors import nearest

#: Makes a module; the arguments are those of the scenario.
Maker = Callable[..., Any]

_NAMES = ("lenet5", "mcmahan-cnn", "mlp")
_added: dict[str, Maker] = {}


def add_module(name: str, make_model: Maker) -> None:
    """Let scenarios name a PyTorch module of this program: ``learn.model.name``.

    ``make_model`` is a function or a class; called with ``learn.model.arguments`` it gives the
    module. It is known to this process alone: runs in other processes need it in a file, which
    ``learn.model.source`` names.
    """
    if name in _NAMES or not name:
        raise ValueError(f"a module cannot be called {name!r}: the package has {_list(_NAMES)}")
    if not callable(make_model):
        raise ValueError(f"make_model must be a function or a class, not {make_model!r}")
    _added[name] = make_model


def added_maker(model: Torch) -> Maker | None:
    """What `add_module` was given under the name of the scenario, if it is one of those."""
    return _added.get(model.name or "")


def maker_of(model: Torch, shape: tuple[int, ...], classes: int) -> Callable[[], Any]:
    """The function that makes the scenario's module, without arguments.

    Modules of the package are made for the shape of a sample, with its channels first, and the
    number of classes.
    """
    arguments = model.arguments.values()
    if model.source is not None:
        return functools.partial(_from_file(model.source), **arguments)
    if model.name in _NAMES:
        built_in: dict[str, Maker] = import_module("agewise.learn.neural.modules").BUILT_IN
        return functools.partial(built_in[model.name], shape, classes, **arguments)
    added = added_maker(model)
    if added is None:
        raise ValueError(
            f"learn.model.name: unknown module {model.name!r}; "
            f"{nearest(model.name or '', [*_NAMES, *_added])} (add_module makes one known to its "
            "own process; runs in other processes need learn.model.source)"
        )
    return functools.partial(added, **arguments)


def source_file(source: str) -> Path:
    """The file of ``file.py:function``."""
    return Path(source.rpartition(":")[0] or source)


def _from_file(source: str) -> Maker:
    path, _, name = source.rpartition(":")
    if not path.endswith(".py") or not name.isidentifier():
        raise ValueError(
            f"learn.model.source = {source!r}: write it as file.py:function, such as "
            "my_model.py:make_model"
        )
    file = Path(path)
    require_file(file)
    namespace = _loaded(file.resolve(), fingerprint(file) or "")
    found: Maker | None = getattr(namespace, name, None)
    if not callable(found):
        functions = [key for key, value in vars(namespace).items() if _is_own(value, namespace)]
        hint = nearest(name, functions) if functions else "it defines none"
        raise ValueError(f"{path} does not define a function {name!r}; {hint}")
    return found


def _is_own(value: object, namespace: Any) -> bool:
    return callable(value) and getattr(value, "__module__", None) == namespace.__name__


@functools.lru_cache(maxsize=8)
def _loaded(file: Path, digest: str) -> Any:
    """The file's module, run once as long as its content stays the same."""
    name = f"agewise_model_{digest[:16]}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ValueError(f"{file}: cannot be loaded as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # classes find their module, for copies of them
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        # The user's code runs here: whatever is wrong with it is said with its file.
        sys.modules.pop(name, None)
        raise ValueError(f"{file}: cannot be loaded: {type(error).__name__}: {error}") from error
    return module


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(names)
