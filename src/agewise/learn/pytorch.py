"""PyTorch modules as models, and where modules come from: the package, a file, or the program."""

import functools
import importlib.util
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final, Literal, Self

from pydantic import Field, model_validator

from agewise.checks import nearest
from agewise.data import Dataset, Partition
from agewise.dependencies import require
from agewise.files import fingerprint
from agewise.learn.model import Learner, LocalSteps, Model
from agewise.part import CodeError, Options, RelativeTo
from agewise.readers import require_file

#: Makes a module; the arguments are those of the scenario.
_Maker = Callable[..., object]

_NAMES: Final = ("lenet5", "mcmahan-cnn", "mlp")
_added: dict[str, _Maker] = {}


def add_module(name: str, make_model: _Maker) -> None:
    """Let scenarios name a PyTorch module of this program: ``learn.model.name``.

    ``make_model`` is a function or a class; called with ``learn.model.arguments`` it gives the
    module. It is known to this process alone: runs in other processes need it in a file, which
    ``learn.model.source`` names.
    """
    if name in _NAMES or not name:
        raise ValueError(f"a module cannot be called {name!r}: the package has {', '.join(_NAMES)}")
    if not callable(make_model):
        raise ValueError(f"make_model must be a function or a class, not {make_model!r}")
    _added[name] = make_model


class Torch(Model):
    """A PyTorch module: one of the package's by name, or your own from a file."""

    kind: Literal["torch"] = "torch"
    name: str | None = Field(
        default=None, description="a module of the package, such as lenet5, mcmahan-cnn or mlp"
    )
    source: str | None = Field(
        default=None, description="your own: file.py:function, which makes the module"
    )
    relative_to: RelativeTo = "working-folder"
    arguments: Options = Field(
        default=Options.model_validate({}),
        description="what the function that makes the module is called with",
    )
    loss: str = Field(description="what a sample costs, such as cross-entropy")
    optimiser: str = Field(description="of torch.optim by name, such as SGD")
    optimiser_settings: Options = Field(
        default=Options.model_validate({}),
        description="of the optimiser, such as momentum; the step size is learn.step_size",
    )

    @model_validator(mode="after")
    def _require_one_module(self) -> Self:
        if (self.name is None) == (self.source is None):
            told = "neither is" if self.name is None else "both are"
            raise ValueError(f"a torch model has either a name or a source, and {told} given")
        return self

    def length(self, dataset: Dataset) -> int:
        """Count the numbers of parameters and floating buffers."""
        length: int = _neural().length_of(self, dataset)
        return length

    def learner(self, dataset: Dataset, partition: Partition, steps: LocalSteps) -> Learner:
        """Bring the module together with the samples of every UE."""
        learner: Learner = _neural().TorchLearner(self, dataset, partition, steps)
        return learner

    def require_plain_sgd(self) -> None:
        """Raise ``ValueError`` unless the optimiser is SGD without momentum."""
        settings = self.optimiser_settings.values()
        bent = [name for name in ("momentum", "maximize") if settings.get(name)]
        if self.optimiser == "SGD" and not bent:
            return
        told = f"{bent[0]} = {settings[bent[0]]}" if self.optimiser == "SGD" else self.optimiser
        raise ValueError(
            "local = 'control-variates' needs steps along the gradient, and those of "
            f"{told} are not: set learn.model.optimiser to SGD without momentum, or local to "
            '"none" or proximal'
        )

    def source_files(self) -> dict[str, Path]:
        """Name the file of the function that makes the module."""
        if self.source is None:
            return {}
        return {self.source: Path(self.source.rpartition(":")[0] or self.source)}

    def source_names(self) -> list[str]:
        """List the source, or the name of the module."""
        return [self.source or self.name or ""]

    def made_by(self) -> _Maker | None:
        """Return what `add_module` was given under this name, if it is one of those."""
        return _added.get(self.name or "")

    def seconds_per_sample(self) -> float:
        """Guess a small convolutional network."""
        return 1e-4

    def maker(self, shape: tuple[int, ...], classes: int) -> Callable[[], object]:
        """Give the function that makes the module, without arguments.

        Modules of the package are made for the shape of a sample, with its channels first, and the
        number of classes.
        """
        arguments = self.arguments.values()
        if self.source is not None:
            return functools.partial(_from_file(self.source), **arguments)
        if self.name in _NAMES:
            built_in: _Maker = _neural().BUILT_IN[self.name]
            return functools.partial(built_in, shape, classes, **arguments)
        added = self.made_by()
        if added is None:
            raise ValueError(
                f"learn.model.name: unknown module {self.name!r}; "
                f"{nearest(self.name or '', [*_NAMES, *_added])} (add_module makes one known to "
                "its own process; runs in other processes need learn.model.source)"
            )
        return functools.partial(added, **arguments)


def _neural() -> ModuleType:
    """What needs PyTorch, which takes seconds to import and is not everywhere."""
    require("torch", "torch")
    return import_module("agewise.learn.neural")


def _from_file(source: str) -> _Maker:
    path, _, name = source.rpartition(":")
    if not path.endswith(".py") or not name.isidentifier():
        raise ValueError(
            f"learn.model.source = {source!r}: write it as file.py:function, such as "
            "my_model.py:make_model"
        )
    file = Path(path)
    require_file(file)
    module = _loaded(file.resolve(), fingerprint(file) or "")
    found: _Maker | None = getattr(module, name, None)
    if not callable(found):
        functions = [
            key
            for key, value in vars(module).items()
            if callable(value) and getattr(value, "__module__", None) == module.__name__
        ]
        hint = nearest(name, functions) if functions else "it defines none"
        raise CodeError(f"{path} does not define a function {name!r}; {hint}")
    return found


@functools.lru_cache(maxsize=8)
def _loaded(file: Path, digest: str) -> ModuleType:
    """The file's module, run once as long as its content stays the same."""
    name = f"agewise_model_{digest[:16]}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise CodeError(f"{file}: cannot be loaded as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # classes find their module, for copies of them
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        # The user's code runs here: whatever is wrong with it is said with its file.
        sys.modules.pop(name, None)
        raise CodeError(f"{file}: cannot be loaded: {type(error).__name__}: {error}") from error
    return module
