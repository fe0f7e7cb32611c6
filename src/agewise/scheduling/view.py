"""What a policy may look at before a round."""

import functools
import math
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agewise.age import check_ages
from agewise.spectrum import Uplink

#: What UEs report with their updates.
Report = Literal["losses", "update_norms", "dissimilarities"]


@dataclass(frozen=True, eq=False)
class Feedback:
    """What is known of each UE from the last of its updates that arrived, ``float64[ue]`` each.

    NaN where none has arrived yet, and where the policy does not ask for it (`Policy.reads`).
    ``losses[ue]`` is the mean loss on the UE's samples of the model that it was given,
    ``update_norms[ue]`` the length of its update, and ``dissimilarities[ue]`` one minus the
    cosine between its update and the sum of those that arrived with it: 0 alike, 2 opposed.
    """

    losses: NDArray[np.float64]
    update_norms: NDArray[np.float64]
    dissimilarities: NDArray[np.float64]

    @classmethod
    @functools.lru_cache(maxsize=16)
    def none(cls, ue_count: int) -> "Feedback":
        """Nothing has been reported yet; the arrays are shared and read-only."""
        unknown = np.full(ue_count, np.nan)
        unknown.flags.writeable = False
        return cls(*(unknown for _ in fields(cls)))


@dataclass(eq=False)
class State:
    """What a policy carries from round to round, as it declares it: the policy may change it."""

    per_ue: dict[str, NDArray[np.float64]]
    scalars: dict[str, float]


@dataclass(eq=False, slots=True)
class RoundView:
    """What the access point knows before round ``t``; no policy sees the future or the data.

    ``uplink`` holds the gains as they are seen, the power budget and the rate threshold;
    ``ages[ue]`` is the age of each UE's last received update, ``data_sizes[ue]`` ``|D_k|``. Times
    are in slots, of which an upload at exactly the rate threshold takes one: ``compute_slots[ue]``
    is how long the UE's local learning takes, and an update that is not there after
    ``deadline_slots`` is lost. ``feedback`` is what earlier rounds reported, and ``state`` what
    the policy left there, the only part that it may change.
    """

    t: int
    uplink: Uplink
    ages: NDArray[np.int64] | NDArray[np.float64]
    data_sizes: NDArray[np.int64]
    compute_slots: NDArray[np.float64]
    deadline_slots: float
    feedback: Feedback
    state: State

    @classmethod
    def simple(cls, uplink: Uplink, ages: ArrayLike, state: State | None = None) -> "RoundView":
        """A first round of which only the channel and the ages are known."""
        count = uplink.ue_count
        return cls(
            t=0,
            uplink=uplink,
            ages=check_ages(ages, count),
            data_sizes=np.ones(count, np.int64),
            compute_slots=np.zeros(count),
            deadline_slots=math.inf,
            feedback=Feedback.none(count),
            state=State({}, {}) if state is None else state,
        )

    @property
    def ue_count(self) -> int:
        """K, the number of UEs."""
        return self.uplink.ue_count
