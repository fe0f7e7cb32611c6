"""How strong a UE's channel is on average, from its distance and the scale of the scenario."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agewise.units import db_to_linear, dbm_to_watt

if TYPE_CHECKING:  # pydantic takes a while to import, and not every user needs scenarios
    from agewise.scenario import Channel


def power_law(
    distance_m: NDArray[np.float64] | float, exponent: float, reference_distance_m: float
) -> NDArray[np.float64]:
    """Mean gain relative to that at the reference distance: ``(d / d_0)^-exponent``.

    Below the reference distance the law would grow without bound; such UEs get its gain there.

    >>> power_law(np.array([0.1, 1.0, 10.0]), exponent=3.0, reference_distance_m=1.0)
    array([1.   , 1.   , 0.001])
    """
    ratio = np.maximum(distance_m, reference_distance_m) / reference_distance_m
    return np.asarray(ratio**-exponent)


def power_budget(channel: "Channel") -> float:
    """P_TX: in watts with a link budget, else 1, the unit in which the edge SNR is given."""
    if channel.link_budget is None:
        return 1.0
    return dbm_to_watt(channel.link_budget.transmit_power_dbm)


def mean_gains(
    distance_m: NDArray[np.float64], channel: "Channel", radius_m: float
) -> NDArray[np.float64]:
    """Mean of the gains G of UEs at these distances: SNR per unit of `power_budget`.

    With an edge SNR the law is scaled to meet it at ``radius_m`` with all power on one
    subchannel; with a link budget it starts from the reference loss over the noise of one
    subchannel.
    """
    exponent, reference = channel.path_loss_exponent, channel.reference_distance_m
    law = power_law(distance_m, exponent, reference)
    budget = channel.link_budget
    if channel.edge_snr_db is not None:
        edge_snr = db_to_linear(channel.edge_snr_db)
        return np.asarray(law * (edge_snr / power_law(radius_m, exponent, reference)))
    if budget is None or channel.subchannel_bandwidth_hz is None:
        raise ValueError("the channel has neither an edge SNR nor a link budget with a bandwidth")
    noise_w = channel.subchannel_bandwidth_hz * dbm_to_watt(
        budget.noise_density_dbm_hz + budget.noise_figure_db
    )
    return np.asarray(law / (db_to_linear(budget.reference_loss_db) * noise_w))
