"""Decibels at the edges, linear SI inside."""

import numpy as np

from agewise.core.elementary import power_each

_TEN = np.array([10.0])


def db_to_linear(ratio_db: float) -> float:
    """A power ratio in dB as a plain ratio.

    >>> db_to_linear(20.0)
    100.0
    """
    return float(power_each(_TEN, ratio_db / 10.0)[0])


def dbm_to_watt(power_dbm: float) -> float:
    """A power in dBm (decibels over a milliwatt) in watts.

    >>> dbm_to_watt(30.0)
    1.0
    """
    return db_to_linear(power_dbm - 30.0)
