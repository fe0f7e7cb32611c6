"""Log-normal shadowing, correlated in space and by that along the way of a UE."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agewise.core.propagation import draw_waves, field_each
from agewise.part import Part, State
from agewise.radio.cell import RunContext
from agewise.radio.path_loss import ByCondition, PathLoss

_Floats = NDArray[np.float64]
_Conditions = NDArray[np.int8]
#: Propagation conditions of a place, in the order of `ByCondition`.
LOS, NLOS, O2I = 0, 1, 2
#: Waves of a field. Its kurtosis is 3 - 1.5/128, and a round of 100 places takes some 10 us.
_WAVES = 128


class GaussianField(NamedTuple):
    """A Gaussian random field over the plane: a value for any place, near ones alike.

    Mean 0, variance 1 and covariance ``exp(-distance / decorrelation)``. ``waves[wave, (x, y,
    phase)]`` are in turns per metre and turns.
    """

    waves: _Floats

    @classmethod
    def draw(cls, key: np.uint64, index: int, decorrelation_m: float) -> "GaussianField":
        """Draw the field of this number of a key."""
        waves = draw_waves(key, index, _WAVES)
        waves[:, :2] /= decorrelation_m
        return cls(waves)

    def at(self, positions_m: _Floats) -> _Floats:
        """Return the values at ``positions_m[place, (x, y)]``."""
        return np.asarray(field_each(positions_m, self.waves))


class Shadowing(Part):
    """Variation of mean gains between places at the same distance.

    A kind of your own has `loss_db`.
    """

    kind: str = ""

    def check(self, path_loss: PathLoss) -> None:
        """Raise ``ValueError`` if it does not go with this path loss."""

    def prepare(self, run: RunContext, path_loss: PathLoss) -> State:
        """Return the state for one run: by default what the run asks of its channel."""
        return run

    def loss_db(self, state: State, positions_m: _Floats, condition: _Conditions) -> _Floats:
        """Return what shadowing adds to the path loss at ``positions_m[place, (x, y)]``, in dB.

        ``condition[place]`` is `LOS`, `NLOS` or `O2I`.
        """
        raise self.lacks("loss_db")


class NoShadowing(Shadowing):
    """UEs at the same distance in the same condition have the same mean gain."""

    kind: Literal["none"] = "none"

    def loss_db(self, state: State, positions_m: _Floats, condition: _Conditions) -> _Floats:
        """Return 0 dB for every place."""
        return np.zeros(condition.size)


class LogNormalShadowing(Shadowing):
    """Path loss varies by normal decibels, correlated in space: exp(-distance / decorrelation)."""

    kind: Literal["log-normal"] = "log-normal"
    sigma_db: float | None = Field(
        default=None,
        ge=0,
        le=30,
        description="standard deviation in dB; without it that of the 38.901 model, by the "
        "condition (LOS, NLOS, O2I)",
    )
    decorrelation_m: float | None = Field(
        default=None,
        ge=1e-3,
        le=1e7,
        description="metres in which the correlation falls to 1/e; without it those of the 38.901 "
        "model, by the condition",
    )

    def check(self, path_loss: PathLoss) -> None:
        """Raise ``ValueError`` if neither it nor the path loss has numbers."""
        for name in ("sigma_db", "decorrelation_m"):
            known = getattr(path_loss, f"shadowing_{name}")
            if getattr(self, name) is None and known is None:
                raise ValueError(
                    f"channel.shadowing.{name} is missing: {path_loss.kind} has none of its own, "
                    "as uma, umi, inh and inf do"
                )

    def prepare(self, run: RunContext, path_loss: PathLoss) -> State:
        """Draw a field for each condition; returns (field, deviation in dB) of each."""
        sigma = path_loss.shadowing_sigma_db
        if self.sigma_db is not None or sigma is None:
            sigma = ByCondition(*[self.sigma_db or 0.0] * 3)
        length = path_loss.shadowing_decorrelation_m
        if self.decorrelation_m is not None or length is None:
            length = ByCondition(*[self.decorrelation_m or 1.0] * 3)
        key = run.streams.shadowing
        return [(GaussianField.draw(key, i, length[i]), sigma[i]) for i in (LOS, NLOS, O2I)]

    def loss_db(self, state: State, positions_m: _Floats, condition: _Conditions) -> _Floats:
        """Return the value of the field of each place's condition, in dB."""
        lost_db = np.zeros(len(positions_m))
        for i, (field, sigma_db) in enumerate(state):
            places = np.flatnonzero(condition == i)
            if places.size:
                lost_db[places] = sigma_db * field.at(positions_m[places])
        return lost_db
