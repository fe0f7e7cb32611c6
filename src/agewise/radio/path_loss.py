"""How the mean gain falls with the distance, and what turns it into SNR."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agewise import scenario
from agewise.core.elementary import power_each
from agewise.units import db_to_linear, dbm_to_watt


@dataclass(frozen=True)
class PowerLawLoss:
    """``(d / d_0)^-exponent`` times the gain at the reference distance d_0.

    Below the reference distance the law would grow without bound; such UEs get its gain there.

    >>> PowerLawLoss(exponent=3.0, reference_distance_m=1.0).gain(np.array([0.1, 1.0, 10.0]))
    array([1.   , 1.   , 0.001])
    """

    exponent: float
    reference_distance_m: float
    reference_loss_db: float = 0.0

    def gain(self, distance_m: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """Received over transmitted power at these distances, fading averaged out."""
        ratio = np.maximum(distance_m, self.reference_distance_m) / self.reference_distance_m
        lost = db_to_linear(self.reference_loss_db)
        powers = power_each(np.ravel(ratio), -self.exponent)
        return np.asarray(powers.reshape(np.shape(ratio)) / lost)


@dataclass(frozen=True)
class EdgeScale:
    """Scales gains so that a UE at the edge has this mean SNR with all power on one subchannel."""

    edge_snr_db: float
    edge_distance_m: float
    power_budget = 1.0

    def snr_per_power(
        self, loss: PowerLawLoss, distance_m: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Mean SNR of UEs at these distances per unit of the power budget."""
        scale = db_to_linear(self.edge_snr_db) / loss.gain(self.edge_distance_m)
        return np.asarray(loss.gain(distance_m) * scale)


@dataclass(frozen=True)
class NoiseScale:
    """Divides gains by the noise of one subchannel: SNR per watt."""

    power_budget: float
    noise_w: float

    def snr_per_power(
        self, loss: PowerLawLoss, distance_m: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Mean SNR of UEs at these distances per watt."""
        return np.asarray(loss.gain(distance_m) / self.noise_w)


def make_path_loss(settings: scenario.PowerLaw | scenario.LogDistance) -> PowerLawLoss:
    """The path loss that a scenario describes."""
    loss_db = settings.reference_loss_db if isinstance(settings, scenario.LogDistance) else 0.0
    return PowerLawLoss(settings.exponent, settings.reference_distance_m, loss_db)


def make_scale(
    settings: scenario.EdgeSnr | scenario.LinkBudget, edge_distance_m: float, bandwidth_hz: float
) -> EdgeScale | NoiseScale:
    """What turns path loss into SNR: an SNR at the edge, or transmit power and noise."""
    if isinstance(settings, scenario.EdgeSnr):
        return EdgeScale(settings.edge_snr_db, edge_distance_m)
    density_w_hz = dbm_to_watt(settings.noise_density_dbm_hz + settings.noise_figure_db)
    return NoiseScale(dbm_to_watt(settings.transmit_power_dbm), bandwidth_hz * density_w_hz)
