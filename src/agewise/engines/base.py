"""Where independent pieces of work run: what an engine is, and the plainest one."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from agewise.learn.threads import set_threads

Item = TypeVar("Item")
Result = TypeVar("Result")


class Engine(Protocol):
    """Runs a function on items and hands the results back as they finish, in any order."""

    def run(
        self, work: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[tuple[Item, Result]]:
        """Each item with its result. Leaving the iteration early stops what still runs."""
        ...


@dataclass(frozen=True)
class Inline:
    """In this process, one after the other: the easiest to debug."""

    def run(
        self, work: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[tuple[Item, Result]]:
        """Each item with its result, in order."""
        for item in items:
            yield item, work(item)


def use_one_thread() -> None:
    """For a process beside others, one per core: more threads would only stand in their way."""
    set_threads(1)
