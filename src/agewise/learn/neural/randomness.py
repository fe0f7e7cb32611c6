"""Random numbers that code from outside draws from the generators of a whole process.

Dropout draws from PyTorch's one generator, whose numbers would depend on which thread comes first.
So code is watched: as long as it draws nothing, pieces of work run side by side. Once it draws,
they run one after the other, each with the generators seeded for it, so that a piece depends on
its seed alone. The generators are afterwards as they were.
"""

import contextlib
import random
import threading
from collections.abc import Callable, Iterator

import numpy as np
import torch

from agewise.learn.threads import in_chunks

#: Who seeds the generators of the process has them alone until they are put back.
_ALONE = threading.RLock()
#: More than any number of chunks needs: every piece is long enough for a thread.
_LONG = 1e15


class Watched:
    """Runs pieces of work, side by side if they draw no random numbers.

    ``alone`` has them always run one after the other.
    """

    def __init__(self, alone: bool = False) -> None:
        self._draws: bool | None = alone or None  # not known before the first piece

    def run(
        self, work: Callable[[slice], object], count: int, seed_of: Callable[[int], int]
    ) -> None:
        """Call ``work`` with slices that make up ``range(count)``.

        If it draws, piece ``i`` is worked on alone, with generators seeded by ``seed_of(i)``.
        """
        start = 0
        if self._draws is None and count:
            self._draws = _alone(work, 0, seed_of)
            start = 1
        if not self._draws:
            before = _states()
            in_chunks(
                lambda part: work(slice(part.start + start, part.stop + start)),
                count - start,
                _LONG,
            )
            # Some code draws only now and then: what was worked on is done again.
            self._draws = _states() != before
        if self._draws:
            for piece in range(start, count):
                _alone(work, piece, seed_of)


def _alone(work: Callable[[slice], object], piece: int, seed_of: Callable[[int], int]) -> bool:
    """Work on one piece with seeded generators; whether it drew from them."""
    with seeded(seed_of(piece)):
        before = _states()
        work(slice(piece, piece + 1))
        return _states() != before


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Generators of the process (PyTorch's, NumPy's and Python's) seeded, and put back at the end.

    Other threads that would do so wait.
    """
    with _ALONE:
        kept = torch.get_rng_state(), np.random.get_state(), random.getstate()  # noqa: NPY002
        try:
            torch.default_generator.manual_seed(seed)
            np.random.seed(seed % 2**32)  # noqa: NPY002
            random.seed(seed)
            if torch.cuda.is_available():
                torch.cuda.manual_seed_all(seed)
            yield
        finally:
            torch.set_rng_state(kept[0])
            np.random.set_state(kept[1])  # noqa: NPY002
            random.setstate(kept[2])


def _states() -> tuple[object, ...]:
    """Read the states that change when one of the generators is drawn from."""
    name, words, *rest = np.random.get_state()  # noqa: NPY002
    own = torch.get_rng_state().numpy().tobytes()
    return own, np.asarray(words).tobytes(), name, *rest, random.getstate()
