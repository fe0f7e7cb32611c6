"""Cells in physical units to test on."""

from tests.scenarios import tiny

_BUDGET = {
    "kind": "budget", "transmit_power_dbm": 23.0, "noise_density_dbm_hz": -174.0,
    "noise_figure_db": 5.0,
}  # fmt: skip
WALK = {"kind": "random-waypoint", "slowest_m_s": 0.3, "fastest_m_s": 0.7, "pause_s": 2.0}
DRIFT = {"kind": "gauss-markov", "mean_speed_m_s": 5.0, "deviation_m_s": 2.0, "memory_s": 10.0}


def street(**changes):
    """A hexagonal street cell (UMi)."""
    return tiny(**{
        "cell.subchannel_bandwidth_hz": 180e3,
        "channel.link": _BUDGET,
        "channel.placement": {"kind": "hexagon", "inter_site_distance_m": 200.0,
                              "least_distance_m": 10.0},
        "channel.path_loss": {"kind": "umi", "carrier_ghz": 3.5, "access_point_height_m": 10.0,
                              "ue_height_m": 1.5},
        "channel.shadowing": "log-normal",
    } | changes)  # fmt: skip


def office(**changes):
    """An open office (InH)."""
    return street(**{
        "channel.placement": {"kind": "disc", "radius_m": 40.0},
        "channel.path_loss": {"kind": "inh", "carrier_ghz": 3.5, "office": "open",
                              "access_point_height_m": 3.0, "ue_height_m": 1.0},
    } | changes)  # fmt: skip
