"""Log-normal shadowing, correlated in space and by that along the way of a UE."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from agewise import scenario
from agewise.radio.fields import GaussianField
from agewise.radio.path_loss import BySight, PathLoss, StandardLoss

SEEN: Final = 0
HIDDEN: Final = 1
INDOOR: Final = 2


@dataclass(frozen=True, eq=False)
class Shadowing:
    """A field of its own for each state of sight, with its deviation in dB."""

    fields: tuple[GaussianField, ...]
    sigma_db: tuple[float, ...]

    def loss_db(
        self, positions_m: NDArray[np.float64], state: NDArray[np.int8]
    ) -> NDArray[np.float64]:
        """What shadowing adds to the path loss ``[place]``, each in its state of sight."""
        loss = np.zeros(state.size)
        for index, (field, sigma_db) in enumerate(zip(self.fields, self.sigma_db, strict=True)):
            of_state = np.flatnonzero(state == index)
            if of_state.size:
                loss[of_state] = sigma_db * field.at(positions_m[of_state])
        return loss


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
    fields = [
        GaussianField.draw(key, state, length)
        for state, length in enumerate((lengths.seen, lengths.hidden, lengths.indoor))
    ]
    return Shadowing(tuple(fields), (sigmas.seen, sigmas.hidden, sigmas.indoor))
