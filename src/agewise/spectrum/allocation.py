"""The answer of a scheduler, and the proof that it keeps every constraint of problem (3)."""

import functools
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agewise import display
from agewise.core.proof import (
    BAD_POWER,
    BELOW_THRESHOLD,
    NO_OWNER,
    OVER_BUDGET,
    ROUNDING,
    SOUND,
    UNKNOWN_OWNER,
    first_violation,
    owners_gains,
    rates_of,
    scheduled_mask,
    scheduled_ues,
)
from agewise.spectrum.uplink import Uplink, read_only

_INT, _FLOAT = np.dtype(np.int64), np.dtype(np.float64)


class InfeasibleAllocation(ValueError):
    """An allocation that violates a constraint of problem (3); the message names it."""


@dataclass(frozen=True, eq=False)
class Allocation:
    """Owners and powers of all subchannels: who transmits where, and with what power.

    ``owner[subchannel]`` is a UE or -1, ``power[subchannel]`` what that UE spends there, and
    ``gain[subchannel]`` the owner's gain there (0 where nobody transmits). An owner per
    subchannel makes the sets of different UEs disjoint by construction.

    ``power_budget[ue]`` and ``rate_threshold[ue]`` are what each UE may spend and must reach.
    ``aggregation[ue]`` is the factor of each UE's update in the next model, for policies that
    choose it; without it updates are averaged by the number of samples behind them.
    """

    owner: NDArray[np.int64]
    power: NDArray[np.float64]
    gain: NDArray[np.float64]
    power_budget: NDArray[np.float64]
    rate_threshold: NDArray[np.float64]
    aggregation: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        for array in (self.owner, self.power, self.gain):
            read_only(array)

    def _repr_html_(self) -> str:
        used = int(np.count_nonzero(self.owner >= 0))
        said = {
            "UEs scheduled": f"{int(self.scheduled.sum())} of {self.ue_count}",
            "subchannels used": f"{used} of {self.owner.size}",
        }
        owners = display.strip(self.owner.tolist(), "owner of each subchannel")
        return display.facts("Allocation", said, owners)

    @property
    def ue_count(self) -> int:
        """K, the number of UEs."""
        return np.size(self.power_budget)

    def weighing(self, aggregation: ArrayLike) -> "Allocation":
        """The same allocation with a factor for each UE's update: ``w + sum a_k (w_k - w)``."""
        factors = np.array(aggregation, dtype=np.float64)
        if factors.shape != (self.ue_count,):
            raise ValueError(
                f"aggregation must have one factor for each of the {self.ue_count} UEs, not shape "
                f"{factors.shape}"
            )
        bad = ~(np.isfinite(factors) & (factors >= 0))
        if bad.any():
            ue = int(bad.argmax())
            raise ValueError(
                f"aggregation factors must be non-negative and finite: that of UE {ue} is "
                f"{factors[ue]}"
            )
        return replace(self, aggregation=read_only(factors))

    @classmethod
    def of(cls, uplink: Uplink, owner: ArrayLike, power: ArrayLike) -> "Allocation":
        """The allocation of ``uplink`` with these owners and powers, not yet validated."""
        owners, powers = np.array(owner), np.array(power, dtype=np.float64)
        count = uplink.subchannel_count
        if owners.shape != (count,) or powers.shape != (count,):
            raise InfeasibleAllocation(
                f"owner and power must have one entry for each of the {count} subchannels, "
                f"not shapes {owners.shape} and {powers.shape}"
            )
        if owners.dtype.kind not in "iu":
            raise InfeasibleAllocation(f"owner must hold UE indices, not {owners.dtype}")
        owners = owners.astype(np.int64, copy=False)
        _require_known_owners(owners, uplink.ue_count)
        gain = owners_gains(uplink.gains, owners)
        return cls(owners, powers, gain, uplink.power_budget, uplink.rate_threshold)

    def factors_of(self, ues: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """The factors of these UEs' updates, or ``None`` if the policy left them to the average."""
        return None if self.aggregation is None else self.aggregation[ues]

    @functools.cached_property
    def scheduled(self) -> NDArray[np.bool_]:
        """``bool[ue]``: S_k, whether the UE holds a subchannel."""
        return read_only(scheduled_mask(self.owner, self.ue_count))

    @functools.cached_property
    def ues(self) -> NDArray[np.int64]:
        """The UEs that transmit, in rising order."""
        return read_only(scheduled_ues(self.owner, self.ue_count))

    def subchannels_of(self, ue: int) -> NDArray[np.int64]:
        """C_k: the subchannels that ``ue`` holds, in rising order."""
        if not 0 <= ue < self.ue_count:
            raise ValueError(f"there is no UE {ue}: they go from 0 to {self.ue_count - 1}")
        return np.flatnonzero(self.owner == ue)

    @property
    def rate(self) -> NDArray[np.float64]:
        """``float[ue]``: sum of ½ log2(1 + G P) over the UE's subchannels; 0 if it has none."""
        rate: NDArray[np.float64] = rates_of(self.owner, self.power, self.gain, self.ue_count)
        return rate

    def validate(self, gains: ArrayLike | Uplink | None = None) -> None:
        """Prove every constraint of problem (3), or raise `InfeasibleAllocation` naming it.

        The gains are those the allocation was made from; give ``gains[ue, subchannel]`` to prove
        it against others, such as the true channel where the scheduler saw an estimate, or an
        ``Uplink`` to prove it against power budgets and thresholds as well.
        """
        owner, power, gain = self._checked_arrays()
        if gains is None:
            budget, threshold = self._checked_limits()
        else:
            shape = gains.gains.shape if isinstance(gains, Uplink) else np.shape(gains)
            if shape != (self.ue_count, owner.size):
                raise InfeasibleAllocation(
                    f"gains have shape {shape}, the allocation is of {self.ue_count} UEs and "
                    f"{owner.size} subchannels"
                )
            uplink = gains
            if not isinstance(uplink, Uplink):
                uplink = Uplink(uplink, self.power_budget, self.rate_threshold)
            budget, threshold = uplink.power_budget, uplink.rate_threshold
            gain = owners_gains(uplink.gains, owner)
        violation, where, amount, limit = first_violation(owner, power, gain, budget, threshold)
        if violation == SOUND:
            return
        if violation == UNKNOWN_OWNER:
            _require_known_owners(owner, self.ue_count)
        said = {
            BAD_POWER: f"powers and gains must be non-negative and finite: subchannel {where} "
            f"has power {amount}",
            NO_OWNER: f"channel constraint (3e) violated: subchannel {where} has power "
            f"{amount:.6g} but no owner",
            OVER_BUDGET: f"power constraint (3c) violated: UE {where} spends {amount:.9g} of a "
            f"budget of {limit:.9g}",
            BELOW_THRESHOLD: f"rate constraint (3b) violated: UE {where} reaches {amount:.9g} "
            f"of the {limit:.9g} bits per channel use that the threshold asks",
        }
        raise InfeasibleAllocation(said[violation])

    def on(self, uplink: Uplink) -> "Allocation":
        """The same owners, powers and factors with the gains, budgets and thresholds of ``uplink``.

        It must be valid there; where it is of this very uplink already, it is returned as it is.
        """
        if (
            np.array_equal(self.power_budget, uplink.power_budget)
            and np.array_equal(self.rate_threshold, uplink.rate_threshold)
            and np.array_equal(self.gain, owners_gains(uplink.gains, self.owner))
        ):
            return self
        return replace(Allocation.of(uplink, self.owner, self.power), aggregation=self.aggregation)

    def on_true_channel(self, gains: NDArray[np.float64]) -> "Allocation":
        """The same owners and powers on the ``gains[ue, subchannel]`` that the uploads meet.

        Where the scheduler saw others, rates may be below the threshold (`reaches`).
        """
        return replace(self, gain=owners_gains(gains, self.owner))

    def reaches(self, rate_threshold: ArrayLike) -> NDArray[np.bool_]:
        """``bool[ue]``: whether the rate is at least this, up to rounding."""
        return np.asarray(self.rate >= np.multiply(rate_threshold, 1.0 - ROUNDING))

    def _checked_limits(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Budgets and thresholds in the form that the proof takes."""
        budget, threshold = self.power_budget, self.rate_threshold
        if not np.shape(budget) == np.shape(threshold) == (self.ue_count,):
            raise InfeasibleAllocation("power_budget and rate_threshold must have an entry per UE")
        return np.asarray(budget, np.float64), np.asarray(threshold, np.float64)

    def _checked_arrays(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """Owner, power and gain in the form that the proof takes."""
        owner, power, gain = self.owner, self.power, self.gain
        if not (
            owner.ndim == power.ndim == gain.ndim == 1 and owner.size == power.size == gain.size
        ):
            raise InfeasibleAllocation("owner, power and gain must have the same length")
        if self.aggregation is not None:
            try:
                self.weighing(self.aggregation)
            except ValueError as error:
                raise InfeasibleAllocation(str(error)) from error
        if owner.dtype is _INT and power.dtype is _FLOAT and gain.dtype is _FLOAT:
            return owner, power, gain  # as a rule, and checked fast
        if owner.dtype.kind not in "iu":
            raise InfeasibleAllocation(f"owner must hold UE indices, not {owner.dtype}")
        for array in (power, gain):
            if array.dtype.kind not in "iuf":
                raise InfeasibleAllocation(f"powers and gains must be numbers, not {array.dtype}")
        return owner.astype(np.int64), power.astype(np.float64), gain.astype(np.float64)


def _require_known_owners(owner: NDArray[np.int64], ue_count: int) -> None:
    if owner.size and not -1 <= owner.min() <= owner.max() < ue_count:
        n = int(((owner < -1) | (owner >= ue_count)).argmax())
        raise InfeasibleAllocation(
            f"channel constraint (3e) violated: subchannel {n} belongs to UE {owner[n]}, but the "
            f"UEs go from 0 to {ue_count - 1} (-1 is nobody)"
        )
