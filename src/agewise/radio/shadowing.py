"""Log-normal shadowing, correlated in space and by that along the way of a UE."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agewise import scenario
from agewise.core.large_scale import HIDDEN, INDOOR, SEEN
from agewise.radio.fields import GaussianField
from agewise.radio.path_loss import BySight, PathLoss, StandardLoss


@dataclass(frozen=True, eq=False)
class Shadowing:
    """Fields in sight, out of it and indoors, each with its deviation in dB."""

    fields: tuple[GaussianField, GaussianField, GaussianField]
    sigma_db: tuple[float, float, float]

    def hidden_db(self, positions_m: NDArray[np.float64]) -> NDArray[np.float64]:
        """What shadowing adds to the path loss ``[place]`` where nobody is in sight."""
        return self.sigma_db[HIDDEN] * self.fields[HIDDEN].at(positions_m)


def make_shadowing(
    settings: scenario.ShadowingKind, loss: PathLoss, key: np.uint64
) -> Shadowing | None:
    """The shadowing that a scenario describes; ``None`` for none."""
    if isinstance(settings, scenario.NoShadowing):
        return None
    sigma_db, decorrelation_m = settings.sigma_db, settings.decorrelation_m
    if isinstance(loss, StandardLoss):
        sigmas = loss.sigma_db if sigma_db is None else BySight(sigma_db, sigma_db, sigma_db)
        lengths = loss.decorrelation_m
        if decorrelation_m is not None:
            lengths = BySight(decorrelation_m, decorrelation_m, decorrelation_m)
    elif sigma_db is None or decorrelation_m is None:
        raise ValueError("shadowing without a model of TR 38.901 needs sigma_db, decorrelation_m")
    else:
        sigmas = BySight(sigma_db, sigma_db, sigma_db)
        lengths = BySight(decorrelation_m, decorrelation_m, decorrelation_m)
    return Shadowing(
        fields=(
            GaussianField.draw(key, SEEN, lengths.seen),
            GaussianField.draw(key, HIDDEN, lengths.hidden),
            GaussianField.draw(key, INDOOR, lengths.indoor),
        ),
        sigma_db=(sigmas.seen, sigmas.hidden, sigmas.indoor),
    )
