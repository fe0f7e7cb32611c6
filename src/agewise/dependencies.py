"""Libraries that wait: Polars, imported when first used, and those that are optional."""

import os
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    import polars as pl
else:
    pl = lazy_loader.load("polars")

__all__ = ["pl", "refuse_after_fork", "require"]

_used = _lost = False


def refuse_after_fork() -> None:
    """Raise ``RuntimeError`` in a child of a process that had used tables of Polars.

    Its threads do not survive a fork, and the child would wait for them for ever. A child of a
    process that had not used them may.
    """
    global _used
    if _lost:
        raise RuntimeError(
            "tables cannot be used in a process that was forked after its parent had used them: "
            'start it with multiprocessing.get_context("spawn"), or fork before'
        )
    _used = True


def _in_child() -> None:
    global _lost
    _lost = _lost or _used


os.register_at_fork(after_in_child=_in_child)


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
        beside = ""
        if extra == "torch":
            beside = " (pytorch.org says how to get the build for CPUs, which is far smaller)"
        raise ModuleNotFoundError(
            f"this needs {package}: pip install 'agewise[{extra}]'{beside}", name=error.name
        ) from error
