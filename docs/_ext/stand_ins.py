"""Empty stand-ins for Flower, which the site describes but does not need.

Sphinx's own ones are objects, which cannot stand in ``Name | None``; these are classes.
"""

import sys
from importlib.util import find_spec
from types import ModuleType

_MODULES = (
    "flwr",
    "flwr.app",
    "flwr.clientapp",
    "flwr.serverapp",
    "flwr.serverapp.strategy",
    "flwr.serverapp.strategy.fedopt",
    "flwr.supercore",
)


class _StandIn(ModuleType):
    """A module in which every name is an empty class."""

    __path__: list[str] = []  # noqa: RUF012 (what makes it a package)

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__module__": self.__name__})


def install() -> None:
    """Put the stand-ins where imports look, unless Flower is there."""
    if find_spec("flwr") is None:
        sys.modules.update({name: _StandIn(name) for name in _MODULES})
