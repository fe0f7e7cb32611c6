"""Rounds of the paper's cell with the ages that age-based scheduling leads to."""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from agewise import Scenario, Streams
from agewise.age import f_alpha
from agewise.policies import AgeBased
from agewise.scheduling import AccessPoint
from agewise.spectrum import Uplink

Round = tuple[int, Uplink, NDArray[np.float64], NDArray[np.int64]]


def aged_rounds(
    snr_db: float, threshold: float, seeds: Iterable[int], wanted: tuple[int, ...]
) -> Iterator[Round]:
    """The wanted rounds of each seed: round, uplink, weights f_0.5(age), rank among equals."""
    changes = {"channel.link.edge_snr_db": snr_db, "threshold.rate": threshold}
    scenario = Scenario.preset("paper").with_(**changes)
    for seed in seeds:
        streams = Streams(seed)
        channel = scenario.make_channel(streams)
        access_point = AccessPoint(AgeBased(alpha=0.5), channel.ue_count, streams)
        for t in range(max(wanted) + 1):
            uplink = Uplink(channel.block(t).seen, channel.power_budget, threshold)
            if t in wanted:
                rank = streams.policy(t).permutation(channel.ue_count)
                yield t, uplink, f_alpha(access_point.ages, 0.5), rank
            access_point.receive(access_point.plan(uplink).ues)
