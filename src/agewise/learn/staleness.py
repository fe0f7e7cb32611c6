"""Staleness weights: what an update counts that started from an older model.

An update of version v that arrives in round t has the staleness s = t - v, and a weight a(s) with
a(0) = 1. Normalised by ``weights``, |D_k| a(s_k) takes the place of |D_k| in every aggregation, so
that the model moves as far as ever (Hu, Chen, Larsson 2023). Normalised by ``data``, the update
itself is shortened by a(s_k), so that stale rounds take shorter steps (FedBuff, Nguyen et al. 2022,
which counts updates where |D_k| is counted here).
"""

from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agewise.core.elementary import exp_each, log1p_each, power_each
from agewise.part import CodeError, Part, given

_Ints = NDArray[np.int64]
_Floats = NDArray[np.float64]
#: What any update counts at least: products with sizes and sums must not vanish.
_LEAST: Final = 1e-100


class Staleness(Part):
    """How the weight of an update falls with its staleness."""

    kind: str = ""
    normalised_by: Literal["weights", "data"] = Field(
        default="data",
        description="weights: stale updates count less beside fresher ones of the round; data: "
        "they are shortened whatever arrives beside them, as in FedBuff",
    )

    def weights(self, staleness: _Ints) -> _Floats:
        """Give the weight of updates of this staleness, above 0 and at most 1."""
        found = self.decay(staleness.astype(np.float64))
        weights = given(self, "decay", found, staleness.shape)
        wrong = (weights < 0.0) | (weights > 1.0)
        if wrong.any():
            raise CodeError(
                f"{self.kind}: decay must give weights from 0 to 1, not {weights[wrong][0]:g} for "
                f"a staleness of {staleness[wrong][0]}"
            )
        return np.maximum(weights, _LEAST)

    def decay(self, staleness: _Floats) -> _Floats:
        """Work out a(s); a(0) is 1."""
        raise self.lacks("decay")

    def apply(
        self, staleness: _Ints, ues: _Ints, sizes: NDArray[Any], factors: _Floats | None
    ) -> tuple[_Floats, NDArray[Any], _Floats | None]:
        """Give what these UEs' updates are shortened to, ``|D_k|`` of all, and a policy's factors.

        Weights multiply either the updates or ``|D_k|`` and the factors, which keep their sum.
        """
        weights = self.weights(staleness)
        if self.normalised_by == "data":
            return weights, sizes, factors
        scaled = sizes.astype(np.float64)
        scaled[ues] *= weights
        if factors is not None and ues.size:
            factors = factors * weights * (factors.sum() / (factors * weights).sum())
        return np.ones_like(weights), scaled, factors


class ConstantStaleness(Staleness):
    """A stale update counts as much as a fresh one."""

    kind: Literal["constant"] = "constant"

    def decay(self, staleness: _Floats) -> _Floats:
        """Leave all weights as they are."""
        return np.ones_like(staleness)


class PolynomialStaleness(Staleness):
    """An update counts (1 + s)^-exponent (FedAsync, Xie et al. 2019; FedBuff has 1/2)."""

    kind: Literal["polynomial"] = "polynomial"
    exponent: float = Field(ge=0, le=100, description="a; 0.5 is usual")

    def decay(self, staleness: _Floats) -> _Floats:
        """Raise to the power."""
        return np.asarray(power_each(1.0 + staleness, -self.exponent))


class HingeStaleness(Staleness):
    """An update counts 1 up to a staleness, then 1 / (slope (s - free) + 1) (FedAsync)."""

    kind: Literal["hinge"] = "hinge"
    slope: float = Field(gt=0, le=1e6, description="a, by version; 10 in FedAsync")
    free: int = Field(ge=0, le=10**9, description="b, the staleness up to which all count; 4 there")

    def decay(self, staleness: _Floats) -> _Floats:
        """Bend at the hinge."""
        return 1.0 / (self.slope * np.maximum(0.0, staleness - self.free) + 1.0)


class ExponentialStaleness(Staleness):
    """An update counts base^s."""

    kind: Literal["exponential"] = "exponential"
    base: float = Field(ge=1e-3, le=1, description="g, by version; 0.9 is usual")

    def decay(self, staleness: _Floats) -> _Floats:
        """Raise the base."""
        return np.asarray(exp_each(log1p_each(np.array([self.base - 1.0])) * staleness))
