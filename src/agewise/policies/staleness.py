"""Policies that know how old the updates are that UEs have in hand."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from agewise.age import check_alpha, f_alpha
from agewise.scheduling import Policy, RoundView


@dataclass(frozen=True, kw_only=True)
class Freshest(Policy):
    """The freshest update in hand first, per subchannel needed.

    The utility is 1 / (1 + s) for an update that is s versions old. Where every update starts from
    the newest model all are equally fresh, and this is max-pack.
    """

    name: ClassVar[str] = "freshest"
    equation: ClassVar[str] = "U_k = 1 / (1 + s_k)"

    def utility(self, view: RoundView, rng: np.random.Generator) -> NDArray[np.float64]:
        """Weigh by freshness."""
        return np.asarray(1.0 / (1.0 + view.staleness), np.float64)


@dataclass(frozen=True, kw_only=True)
class VersionAge(Policy):
    """Most versions missed first (after Hu, Pappas, Yang 2024).

    "Version age-based client scheduling policy for federated learning" serves the clients whose
    version age is highest: the number of models made since the one that the last update received of
    a client started from. The utility is f_alpha of it, per subchannel needed. Adapted: every model
    counts as a new version; the publication counts those that differ enough from what the client
    has. Where updates start from the newest model the version age is the age.
    """

    name: ClassVar[str] = "version-age"
    equation: ClassVar[str] = "U_k = f_α(Δ_k), f_α(T) = T^(1−α) / (1−α)"
    state_per_ue: ClassVar[Mapping[str, float]] = {"lag": 0.0, "offered": 0.0}
    alpha: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_alpha(self.alpha)

    def utility(self, view: RoundView, rng: np.random.Generator) -> NDArray[np.float64]:
        """Weigh the version ages."""
        return f_alpha(_version_ages(view), self.alpha)


@dataclass(frozen=True, kw_only=True)
class AgeReduction(VersionAge):
    """The update first that makes the access point's knowledge of a UE the most younger.

    If what the access point last heard of UE k started from a model that is Delta_k versions old,
    an update that is s_k versions old makes that s_k in place of Delta_k + 1. The utility is
    f_alpha(Delta_k - s_k), per subchannel needed: the fall of the version age without the 1 that
    all UEs share. Where updates start from the newest model s_k is 0 and Delta_k the age, and this
    is age-based scheduling. Where UEs hold their updates, those never heard come last: they hold
    one of the first model, so that their fall is 0 (docs/late-updates.md).
    """

    name: ClassVar[str] = "age-reduction"
    equation: ClassVar[str] = "U_k = f_α(max(Δ_k − s_k, 0)), f_α(T) = T^(1−α) / (1−α)"

    def utility(self, view: RoundView, rng: np.random.Generator) -> NDArray[np.float64]:
        """Weigh the fall of the version age."""
        fall = np.maximum(_version_ages(view) - view.staleness, 0.0)
        return f_alpha(fall, self.alpha)


def _version_ages(view: RoundView) -> NDArray[np.float64]:
    """Count the versions since that of the last update received of each UE.

    It was as old as what the UE offered then; a UE that was heard in the last round has an age of 0
    now. The policy keeps "lag" and "offered".
    """
    state = view.state.per_ue
    heard = (view.ages == 0) & (view.t > 0)
    state["lag"] = np.where(heard, state["offered"], state["lag"])
    state["offered"] = view.staleness.astype(np.float64)
    return np.asarray(view.ages + state["lag"])
