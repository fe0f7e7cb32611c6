"""Cells to test on: random ones of a chosen regime, and Hypothesis strategies for odd ones."""

import numpy as np
from hypothesis import strategies as st


def draw_gains(rng, ues, subchannels, edge_snr_db):
    """A paper-like cell: uniform in a disc, path loss exponent 3.5, Rayleigh fading."""
    distance = np.maximum(np.sqrt(rng.random(ues)), 0.01)
    mean = 10 ** (edge_snr_db / 10) * distance**-3.5
    return mean[:, None] * rng.standard_exponential((ues, subchannels))


#: Few distinct values, so that equal gains, zeros and exact hits of a threshold abound.
ODD_GAINS = st.sampled_from([0.0, 0.0, 0.25, 0.5, 1.0, 1.0, 3.0, 3.0, 7.5, 15.0, 63.0])
PLAIN_GAINS = st.floats(1e-4, 1e4)
THRESHOLDS = st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.0, 1.5, 2.0, 3.0, 1e3]) | st.floats(0, 6)
BUDGETS = st.sampled_from([1.0, 1.0, 2.0, 3.0, 10.0])


@st.composite
def cells(draw, max_ues=8, max_subchannels=7):
    """(gains, weights, rank, budget, threshold) of a small cell, with ties everywhere.

    Budget and threshold are a number for all UEs, or a list with one for each.
    """
    ues, subchannels = draw(st.integers(1, max_ues)), draw(st.integers(1, max_subchannels))
    values = draw(st.sampled_from([ODD_GAINS, PLAIN_GAINS]))
    row = st.lists(values, min_size=subchannels, max_size=subchannels)
    gains = draw(st.lists(row, min_size=ues, max_size=ues))
    weight = st.sampled_from([0.0, 1.0, 1.0, 2.0, 3.0, 6.0]) | st.floats(0, 50)
    weights = draw(st.lists(weight, min_size=ues, max_size=ues))
    rank = draw(st.permutations(range(ues)))
    limits = [draw(of | st.lists(of, min_size=ues, max_size=ues)) for of in (BUDGETS, THRESHOLDS)]
    return gains, weights, list(rank), *limits
