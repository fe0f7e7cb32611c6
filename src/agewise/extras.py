"""Packages that not every user needs, each behind an extra of this one."""

from importlib import import_module
from types import ModuleType

_NEEDED_BY = {
    "flower": "scheduling a live federation needs",
    "hdf5": "HDF5 files need",
    "pandas": "pandas data frames need",
    "ray": "the engine ray needs",
    "tensorboard": "the logger tensorboard needs",
    "torch": "models of kind torch need",
    "trackio": "the logger trackio needs",
    "wandb": "the logger wandb needs",
}
_BESIDES = {
    "torch": " (pytorch.org says how to get the build for CPUs, which is far smaller)",
}


def require(module: str, extra: str) -> ModuleType:
    """The optional module; ``ModuleNotFoundError`` says how to install it if it is not there.

    >>> require("json", "pandas").__name__
    'json'
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise  # the package is there, and something that it needs itself is not
        needed = _NEEDED_BY.get(extra, "this needs")
        raise ModuleNotFoundError(
            f"{needed} {package}: pip install 'agewise[{extra}]'{_BESIDES.get(extra, '')}",
            name=error.name,
        ) from error
