"""Rounds of the paper's cell with the ages that age-based scheduling leads to."""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from agewise import Scenario, Streams
from agewise.age import f_alpha, next_ages
from agewise.radio import CellChannel, power_budget
from agewise.spectrum import Uplink, pack

Round = tuple[int, Uplink, NDArray[np.float64], NDArray[np.int64]]


def aged_rounds(
    snr_db: float, threshold: float, seeds: Iterable[int], wanted: tuple[int, ...]
) -> Iterator[Round]:
    """The wanted rounds of each seed: round, uplink, weights f_0.5(age), rank among equals."""
    changes = {"channel.edge_snr_db": snr_db, "channel.rate_threshold": threshold}
    scenario = Scenario.preset("paper").with_(**changes)
    for seed in seeds:
        streams = Streams(seed)
        channel = CellChannel.of(scenario.cell, scenario.channel, streams)
        ages = np.zeros(scenario.cell.ues, np.int64)
        for t in range(max(wanted) + 1):
            uplink = Uplink(channel.gains(t), power_budget(scenario.channel), threshold)
            weights, rank = f_alpha(ages, 0.5), streams.policy(t).permutation(ages.size)
            if t in wanted:
                yield t, uplink, weights, rank
            ages = next_ages(ages, pack(uplink, weights, rank).scheduled)
