"""One cell, a few rounds, two policies: who gets which subchannels.

Both policies meet the same UEs on the same channels. Each row is one round, each column one
subchannel, each entry the UE that holds it.
"""

import numpy as np

from agewise import RoundView, Streams, Uplink
from agewise.age import next_ages
from agewise.policies import AgeBased, MaxPack
from agewise.radio import CellChannel, power_budget
from agewise.scenario import Cell, Channel

ROUNDS = 8
cell = Cell(ues=30, subchannels=10, radius_m=100.0)
settings = Channel(
    path_loss_exponent=3.5, reference_distance_m=1.0, edge_snr_db=10.0, rate_threshold=4.0
)
streams = Streams(seed=1)
channel = CellChannel.of(cell, settings, streams)
distance = np.hypot(*channel.positions_m.T)
print(
    f"{cell.ues} UEs within {cell.radius_m:g} m share "
    f"{cell.subchannels} subchannels; a scheduled UE must reach "
    f"{settings.threshold_bits:g} bit per channel use."
)

for policy in (AgeBased(alpha=0.5), MaxPack()):
    ages = np.zeros(cell.ues, dtype=np.int64)
    reached = np.zeros(cell.ues, dtype=np.int64)
    memory: dict[str, np.ndarray] = {}
    print(f"\n{policy}\nround  UE on each subchannel {' ' * 17} UEs  mean age  oldest")
    for t in range(ROUNDS):
        uplink = Uplink(channel.gains(t), power_budget(settings), settings.threshold_bits)
        allocation = policy.schedule(RoundView(uplink, ages, memory), streams.policy(t))
        allocation.validate()
        strip = " ".join(f"{ue:3d}" if ue >= 0 else "  ." for ue in allocation.owner)
        ages = next_ages(ages, allocation.scheduled)
        reached += allocation.scheduled
        print(
            f"{t:5d}  {strip}  {allocation.scheduled.sum():3d}  {ages.mean():8.1f}  {ages.max():6d}"
        )
    print(
        f"reached {np.count_nonzero(reached)} of {cell.ues} UEs, "
        f"at {distance[reached > 0].mean():.0f} m on average; "
        f"never heard of {np.count_nonzero(reached == 0)}, "
        f"at {distance[reached == 0].mean():.0f} m"
        if (reached == 0).any()
        else f"reached all {cell.ues} UEs"
    )
