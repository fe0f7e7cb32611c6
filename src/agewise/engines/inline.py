"""In this process, one after the other."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from agewise.engines.base import Item, Result


@dataclass(frozen=True)
class Inline:
    """No processes: the easiest to debug; each run may use all cores itself."""

    def run(
        self, work: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[tuple[Item, Result]]:
        """Each item with its result, in order."""
        for item in items:
            yield item, work(item)
