"""One cell, a few rounds, two policies: who gets which subchannels.

Both policies meet the same UEs on the same channels. Each row is one round, each column one
subchannel, each entry the UE that holds it.
"""

import numpy as np

from agewise import AccessPoint, Scenario, Streams, Uplink
from agewise.policies import AgeBased, MaxPack

ROUNDS = 8
scenario = Scenario.preset("paper").with_(**{"cell.ues": 30, "cell.subchannels": 10})
streams = Streams(seed=1)
channel = scenario.make_channel(streams)
positions_m = channel.block(0).positions_m
assert positions_m is not None  # noqa: S101 (a channel made of parts knows where its UEs are)
distance = np.hypot(*positions_m.T)
print(
    f"{channel.ue_count} UEs within {distance.max():.0f} m share {channel.subchannel_count} "
    f"subchannels; a scheduled UE must reach {scenario.rate_threshold:g} bit per channel use."
)

for policy in (AgeBased(alpha=0.5), MaxPack()):
    access_point = AccessPoint(policy, channel.ue_count, streams)
    print(f"\n{policy}\nround  UE on each subchannel {' ' * 17} UEs  mean age  oldest")
    for t in range(ROUNDS):
        uplink = Uplink(channel.block(t).seen, channel.power_budget, scenario.rate_threshold)
        allocation = access_point.plan(uplink)
        access_point.receive(allocation.ues)
        strip = " ".join(f"{ue:3d}" if ue >= 0 else "  ." for ue in allocation.owner)
        ages = access_point.ages
        print(
            f"{t:5d}  {strip}  {allocation.scheduled.sum():3d}  {ages.mean():8.1f}  {ages.max():6d}"
        )
    heard = access_point.participation > 0
    if heard.all():
        print(f"heard from all {heard.size} UEs")
    else:
        print(
            f"heard from {heard.sum()} of {heard.size} UEs, at {distance[heard].mean():.0f} m on "
            f"average; never from {(~heard).sum()}, at {distance[~heard].mean():.0f} m"
        )
