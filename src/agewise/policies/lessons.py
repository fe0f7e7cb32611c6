"""What earlier rounds taught about the UEs."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Lesson = Literal["losses", "update_norms", "dissimilarities"]


@dataclass(frozen=True, eq=False)
class Lessons:
    """What is known of each UE from the last of its updates that arrived.

    NaN where none has arrived yet, and where the policy does not ask for it (`Policy.lessons`).
    ``losses[ue]`` is the mean loss on the UE's samples of the model that it was given,
    ``update_norms[ue]`` the length of its update, and ``dissimilarities[ue]`` one minus the
    cosine between its update and the sum of those that arrived with it: 0 alike, 2 opposed.
    """

    losses: NDArray[np.float64]
    update_norms: NDArray[np.float64]
    dissimilarities: NDArray[np.float64]

    @classmethod
    def none(cls, ue_count: int) -> "Lessons":
        """Nothing has been heard yet."""
        return cls(*(np.full(ue_count, np.nan) for _ in fields(cls)))

    def after(
        self, ues: NDArray[np.int64], heard: Mapping[Lesson, NDArray[np.float64]]
    ) -> "Lessons":
        """These lessons with what was ``heard`` of ``ues``, in their order."""
        known = {f.name: getattr(self, f.name).copy() for f in fields(self)}
        for lesson, values in heard.items():
            known[lesson][ues] = values
        return Lessons(**known)
