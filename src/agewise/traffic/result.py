"""What came of a schedule over many slots."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agewise.age import Form, f_alpha
from agewise.checks import real_number
from agewise.core.traffic import EMPTY_SLOTS, SUBCHANNELS_USED, Ledger
from agewise.statistics import jain


@dataclass(frozen=True, eq=False, repr=False)
class Traffic:
    """Ages, deliveries and use of the spectrum over ``rounds`` slots.

    Ages are those after each slot, T[t+1] (Eq. 2). ``mean_age[ue]`` is their average over the
    slots, ``oldest[ue]`` their maximum, ``mean_peak_age[ue]`` the mean of the ages just before a
    delivery (NaN for a UE without one), and ``age_counts[age]`` how often each age occurred, all
    UEs and slots together. ``deliveries[ue]`` counts updates received. ``subchannels_used`` is
    an average per slot, ``empty_share`` the share of slots that served nobody.
    """

    policy: str
    seed: int
    rounds: int
    subchannels: int
    rate_threshold: float
    mean_age: NDArray[np.float64]
    mean_peak_age: NDArray[np.float64]
    oldest: NDArray[np.int64]
    deliveries: NDArray[np.int64]
    age_counts: NDArray[np.int64]
    subchannels_used: float
    empty_share: float

    @classmethod
    def of(
        cls,
        ledger: Ledger,
        policy: str,
        seed: int,
        rounds: int,
        subchannels: int,
        rate_threshold: float,
    ) -> "Traffic":
        """What the ledger says after the last slot."""
        served = ledger.deliveries > 0
        mean_peak_age = np.full(served.size, np.nan)
        mean_peak_age[served] = ledger.peak_sums[served] / ledger.deliveries[served]
        return cls(
            policy=policy,
            seed=seed,
            rounds=rounds,
            subchannels=subchannels,
            rate_threshold=rate_threshold,
            mean_age=ledger.age_sums / rounds,
            mean_peak_age=mean_peak_age,
            oldest=ledger.oldest,
            deliveries=ledger.deliveries,
            age_counts=ledger.age_counts[: ledger.oldest.max(initial=-1) + 1].copy(),
            subchannels_used=int(ledger.totals[SUBCHANNELS_USED]) / rounds,
            empty_share=int(ledger.totals[EMPTY_SLOTS]) / rounds,
        )

    def __post_init__(self) -> None:
        for array in (
            self.mean_age, self.mean_peak_age, self.oldest, self.deliveries, self.age_counts,
        ):  # fmt: skip
            array.flags.writeable = False

    @property
    def ue_count(self) -> int:
        """K, the number of UEs."""
        return self.deliveries.size

    @property
    def participation(self) -> NDArray[np.float64]:
        """``[ue]``: the share of slots in which an update of the UE arrived."""
        return self.deliveries / self.rounds

    @property
    def throughput(self) -> float:
        """Updates received per slot."""
        return float(self.participation.sum())

    @property
    def goodput(self) -> float:
        """Bits received per slot and real channel use: R_s for each update.

        What a UE's rate has above the threshold carries nothing that was asked for.
        """
        return self.throughput * self.rate_threshold

    @property
    def fairness(self) -> float:
        """Jain's index of the deliveries: 1 if all UEs have as many, 1/K if one has all.

        NaN if there were none.
        """
        return float(jain(self.participation))

    def age_cost(self, alpha: float, form: Form = "paper") -> float:
        """The sum over the UEs of f_alpha of their ages (problem 3), average over the slots."""
        costs = f_alpha(np.arange(self.age_counts.size), alpha, form)
        return float((self.age_counts * costs).sum()) / self.rounds

    def age_quantile(self, share: float) -> int:
        """The lowest age that this share of all ages, over UEs and slots, does not exceed."""
        if not 0 <= real_number("share", share) <= 1:
            raise ValueError(f"share must be between 0 and 1, not {share:g}")
        if not self.age_counts.size:
            raise ValueError("there are no ages: the channel has no UEs")
        enough = np.cumsum(self.age_counts) >= share * self.age_counts.sum()
        return int(enough.argmax())

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the cell's numbers, then those of each UE; ``None`` where there is none."""
        return {
            "policy": self.policy,
            "seed": self.seed,
            "rounds": self.rounds,
            "ues": self.ue_count,
            "subchannels": self.subchannels,
            "rate_threshold": self.rate_threshold,
            "throughput": self.throughput,
            "goodput": self.goodput,
            "fairness": _known(self.fairness),
            "subchannels_used": self.subchannels_used,
            "empty_share": self.empty_share,
            "age_mean": _known(_mean(self.mean_age)),
            "age_quantiles": {
                str(share): self.age_quantile(share) for share in (0.5, 0.95, 0.99) if self.ue_count
            },
            "mean_age": self.mean_age.tolist(),
            "mean_peak_age": [_known(age) for age in self.mean_peak_age.tolist()],
            "oldest": self.oldest.tolist(),
            "deliveries": self.deliveries.tolist(),
        }

    def __repr__(self) -> str:
        return (
            f"<Traffic {self.policy}, {self.rounds:,} slots: mean age {_mean(self.mean_age):.3f}, "
            f"{self.throughput:.3f} updates per slot, fairness {self.fairness:.3f}>"
        )


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if values.size else float("nan")


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value
