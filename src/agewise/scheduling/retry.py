"""Retry: when a UE whose attempts failed is eligible again."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agewise.part import Part


class Retry(Part):
    """When a UE is eligible again after failed attempts."""

    kind: str = ""

    def pause(self, failures: NDArray[np.int64], turn: int) -> NDArray[np.int64]:
        """Count the rounds that UEs sit out after this many failures in a row each.

        In ``turn`` rounds as many are scheduled as there are UEs with a channel.
        """
        raise self.lacks("pause")


class NoPause(Retry):
    """A UE is eligible again at once, as in the paper."""

    kind: Literal["none"] = "none"

    def pause(self, failures: NDArray[np.int64], turn: int) -> NDArray[np.int64]:
        """Sit out no round."""
        return np.zeros_like(failures)


class BackOff(Retry):
    """After f failed attempts in a row a UE sits out min(2^f - 1, limit) rounds.

    A UE that can never answer grows old, so oldest first would ask it again and again; with the
    back-off it is asked about once in ``limit`` rounds. A success ends it.
    """

    kind: Literal["back-off"] = "back-off"
    limit: int = Field(default=16, ge=1, le=2**30, description="rounds that are sat out at most")

    def pause(self, failures: NDArray[np.int64], turn: int) -> NDArray[np.int64]:
        """Double the pause with every failure, up to the limit.

        >>> BackOff(limit=16).pause(np.array([0, 1, 2, 5, 100]), turn=10)
        array([ 0,  1,  3, 16, 16])
        """
        return _doubled(failures, self.limit)


class BackOffByTurns(Retry):
    """After f failed attempts in a row a UE sits out min(2^f - 1, limit) of its turns.

    A turn lasts until all UEs with a channel would have been scheduled once. Failed UEs that are
    back before the others' turn has come are the oldest, so that where a turn takes many rounds
    they could fill all of them; by turns they get the same small share of messages however many
    UEs there are.
    """

    kind: Literal["back-off-by-turns"] = "back-off-by-turns"
    limit: int = Field(default=16, ge=1, le=2**20, description="turns that are sat out at most")

    def pause(self, failures: NDArray[np.int64], turn: int) -> NDArray[np.int64]:
        """Double the pause with every failure, up to the limit.

        >>> BackOffByTurns(limit=16).pause(np.array([0, 1, 2, 5]), turn=10)
        array([  0,  10,  30, 160])
        """
        return _doubled(failures, self.limit) * turn


def _doubled(failures: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    return np.asarray(np.minimum(2 ** np.minimum(failures, 31) - 1, limit))
