"""Engines for independent runs: this process, local processes, a Ray cluster."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from agewise.checks import short, whole_number
from agewise.engines.local import Local
from agewise.engines.ray import Ray

__all__ = ["Engine", "Inline", "Local", "Ray", "make_engine"]

NAMES = ("local", "inline", "ray")
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Engine(Protocol):
    """Runs a function on items and hands the results back as they finish, in any order."""

    def run(
        self, work: Callable[[_Item], _Result], items: Sequence[_Item]
    ) -> Iterator[tuple[_Item, _Result]]:
        """Yield each item with its result. Leaving the iteration early stops what still runs."""


@dataclass(frozen=True)
class Inline:
    """In this process, one after the other: the easiest to debug."""

    def run(
        self, work: Callable[[_Item], _Result], items: Sequence[_Item]
    ) -> Iterator[tuple[_Item, _Result]]:
        """Yield each item with its result, in order."""
        for item in items:
            yield item, work(item)


def make_engine(
    engine: str | Engine, workers: int | None = None, address: str | None = None
) -> Engine:
    """Make an engine by name, or give an engine object back as it is."""
    if not isinstance(engine, str):
        if workers is not None or address is not None:
            raise ValueError("workers and an address go with an engine by name, not an object")
        if not callable(getattr(engine, "run", None)):
            raise ValueError(
                f"engine must be a name or an object with a run, not {short(repr(engine))}"
            )
        return engine
    if engine not in NAMES:
        raise ValueError(f"unknown engine {engine!r}; there are {', '.join(NAMES)}")
    if address is not None and engine != "ray":
        raise ValueError("an address goes with the engine ray")
    if workers is not None and engine != "local":
        raise ValueError("workers go with the engine local")
    if workers is not None:
        whole_number("workers", workers, least=1)
    if engine == "ray":
        return Ray(address)
    return Inline() if engine == "inline" else Local(workers)
