"""Where independent pieces of work run."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Engine(Protocol):
    """Runs a function on items and hands the results back as they finish, in any order."""

    def run(
        self, work: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[tuple[Item, Result]]:
        """Each item with its result. Leaving the iteration early stops what still runs."""
        ...
