"""Who transmits in neighbouring cells."""

import numpy as np

from agewise.core.fading import exponential
from agewise.core.jit import kernel
from agewise.core.mobility import draw_point
from agewise.core.random import bits, subkey, unit


@kernel(nogil=True)
def draw_interferers(key, t, subchannels, sites, cell, load):
    """(``positions[link, (x, y)]``, ``fading[link]``, ``subchannel[link]``) of round ``t``.

    On each subchannel a cell transmits with the chance ``load``, from a uniform place in it.
    """
    most = subchannels * sites.shape[0]
    positions, fading = np.empty((most, 2)), np.empty(most)
    subchannel = np.empty(most, np.int64)
    round_key, found = subkey(key, t), 0
    for link in range(most):
        link_key = subkey(round_key, link)
        if unit(bits(link_key, 0)) >= load:
            continue
        site = sites[link % sites.shape[0]]
        x, y, _ = draw_point(link_key, 2, cell)
        positions[found, 0], positions[found, 1] = site[0] + x, site[1] + y
        fading[found] = exponential(bits(link_key, 1))
        subchannel[found] = link // sites.shape[0]
        found += 1
    return positions[:found], fading[:found], subchannel[:found]
