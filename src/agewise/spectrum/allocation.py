"""The answer of a scheduler, and the proof that it keeps every constraint of problem (3)."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agewise.spectrum.uplink import Uplink

#: Relative rounding allowed when constraints are proven from the powers alone.
_ROUNDING = 1e-9


class InfeasibleAllocation(ValueError):
    """An allocation that violates a constraint of problem (3); the message names it."""


@dataclass(frozen=True, eq=False)
class Allocation:
    """Who transmits on which subchannel with what power.

    ``owner[subchannel]`` is a UE or -1, ``power[subchannel]`` what that UE spends there, and
    ``gain[subchannel]`` the owner's gain there (0 where nobody transmits). An owner per
    subchannel makes the sets of different UEs disjoint by construction.

    ``aggregation[ue]`` is the factor of each UE's update in the next model, for policies that
    choose it; without it updates are averaged by the number of samples behind them.
    """

    owner: NDArray[np.int64]
    power: NDArray[np.float64]
    gain: NDArray[np.float64]
    ue_count: int
    power_budget: float
    rate_threshold: float
    aggregation: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        for array in (self.owner, self.power, self.gain):
            array.flags.writeable = False

    def weighing(self, aggregation: ArrayLike) -> "Allocation":
        """The same allocation with a factor for each UE's update: ``w + sum a_k (w_k - w)``."""
        factors = np.array(aggregation, dtype=np.float64)
        if factors.shape != (self.ue_count,):
            raise ValueError(
                f"aggregation must have one factor for each of the {self.ue_count} UEs, not shape "
                f"{factors.shape}"
            )
        if not (np.isfinite(factors).all() and (factors >= 0).all()):
            ue = int((~(np.isfinite(factors) & (factors >= 0))).argmax())
            raise ValueError(
                f"aggregation factors must be non-negative and finite: that of UE {ue} is "
                f"{factors[ue]}"
            )
        factors.flags.writeable = False
        return replace(self, aggregation=factors)

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
        owners = owners.astype(np.int64)
        _require_known_owners(owners, uplink.ue_count)
        held = owners >= 0
        gain = np.zeros(count)
        gain[held] = uplink.gains[owners[held], held.nonzero()[0]]
        return cls(
            owners, powers, gain, uplink.ue_count, uplink.power_budget, uplink.rate_threshold
        )

    def factors_of(self, ues: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """The factors of these UEs' updates, or ``None`` if the policy left them to the average."""
        return None if self.aggregation is None else self.aggregation[ues]

    @property
    def scheduled(self) -> NDArray[np.bool_]:
        """``bool[ue]``: S_k, whether the UE holds a subchannel."""
        mask = np.zeros(self.ue_count, dtype=np.bool_)
        mask[self.owner[self.owner >= 0]] = True
        return mask

    def subchannels_of(self, ue: int) -> NDArray[np.int64]:
        """C_k: the subchannels that ``ue`` holds, in rising order."""
        if not 0 <= ue < self.ue_count:
            raise ValueError(f"there is no UE {ue}: they go from 0 to {self.ue_count - 1}")
        return np.flatnonzero(self.owner == ue)

    @property
    def rate(self) -> NDArray[np.float64]:
        """``float[ue]``: sum of ½ log2(1 + G P) over the UE's subchannels; 0 if it has none."""
        return self._per_ue(np.log1p(self.gain * self.power) / (2.0 * np.log(2.0)))

    def validate(self, gains: ArrayLike | Uplink | None = None) -> None:
        """Prove every constraint of problem (3), or raise `InfeasibleAllocation` naming it.

        The gains are those the allocation was made from; give ``gains[ue, subchannel]`` to prove
        it against others, such as the true channel where the scheduler saw an estimate, or an
        ``Uplink`` to prove it against a power budget and a threshold as well.
        """
        from agewise.spectrum import kernels

        self._require_form()
        if gains is not None and not self._is_of(gains):
            self._on(gains).validate()
            return
        violation, where, amount = kernels.first_violation(
            self.owner, self.power, self.gain, self.ue_count, self.power_budget,
            self.rate_threshold, _ROUNDING,
        )  # fmt: skip
        if violation == kernels.SOUND:
            return
        if violation == kernels.UNKNOWN_OWNER:
            _require_known_owners(self.owner, self.ue_count)
        raise InfeasibleAllocation(
            {
                kernels.BAD_POWER: f"powers and gains must be non-negative and finite: "
                f"subchannel {where} has power {amount}",
                kernels.NO_OWNER: f"channel constraint (3e) violated: subchannel {where} has "
                f"power {amount:.6g} but no owner",
                kernels.OVER_BUDGET: f"power constraint (3c) violated: UE {where} spends "
                f"{amount:.9g} of a budget of {self.power_budget:.9g}",
                kernels.BELOW_THRESHOLD: f"rate constraint (3b) violated: UE {where} reaches "
                f"{amount:.9g} of the {self.rate_threshold:.9g} bits per channel use that the "
                "threshold asks",
            }[violation]
        )

    def _require_form(self) -> None:
        """Raise unless the arrays are such that constraints can be looked at."""
        if not self.owner.shape == self.power.shape == self.gain.shape == (self.owner.size,):
            raise InfeasibleAllocation("owner, power and gain must have the same length")
        if self.owner.dtype.kind not in "iu":
            raise InfeasibleAllocation(f"owner must hold UE indices, not {self.owner.dtype}")
        if self.aggregation is not None:
            try:
                self.weighing(self.aggregation)
            except ValueError as error:
                raise InfeasibleAllocation(str(error)) from error

    def _is_of(self, gains: ArrayLike | Uplink) -> bool:
        """Whether the allocation was made from just this, so that its own gains are the ones."""
        from agewise.spectrum import kernels

        return (
            isinstance(gains, Uplink)
            and gains.power_budget == self.power_budget
            and gains.rate_threshold == self.rate_threshold
            and gains.gains.shape == (self.ue_count, self.owner.size)
            and self.owner.size == self.gain.size
            and kernels.are_gains_of(gains.gains, self.owner, self.gain)
        )

    def _on(self, gains: ArrayLike | Uplink) -> "Allocation":
        """These owners and powers on other gains."""
        uplink = gains
        if not isinstance(uplink, Uplink):
            uplink = Uplink(np.asarray(gains), self.power_budget, self.rate_threshold)
        if uplink.gains.shape != (self.ue_count, self.owner.size):
            raise InfeasibleAllocation(
                f"gains have shape {uplink.gains.shape}, the allocation is of "
                f"{self.ue_count} UEs and {self.owner.size} subchannels"
            )
        return Allocation.of(uplink, self.owner, self.power)

    def _per_ue(self, per_subchannel: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum a quantity of the subchannels over each UE's own."""
        held = self.owner >= 0
        return np.bincount(
            self.owner[held], weights=per_subchannel[held], minlength=self.ue_count
        ).astype(np.float64)


def _require_known_owners(owner: NDArray[np.int64], ue_count: int) -> None:
    if owner.size and not -1 <= owner.min() <= owner.max() < ue_count:
        n = int(((owner < -1) | (owner >= ue_count)).argmax())
        raise InfeasibleAllocation(
            f"channel constraint (3e) violated: subchannel {n} belongs to UE {owner[n]}, but the "
            f"UEs go from 0 to {ue_count - 1} (-1 is nobody)"
        )
