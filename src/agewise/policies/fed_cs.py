"""FedCS: as many updates as arrive before the deadline."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from agewise.checks import number_within
from agewise.scheduling import Policy, RoundView, Ties
from agewise.spectrum import Allocation, fill


@dataclass(frozen=True, kw_only=True)
class FedCS(Policy):
    """Least time added to the round first, up to the deadline (Nishio, Yonetani 2019).

    "Client selection for federated learning with heterogeneous resources in mobile edge": uploads
    go one after another while the UEs behind still compute, so that UE k prolongs a round that has
    lasted Theta by ``t_upload[k] + max(0, t_compute[k] - Theta)``; the UE that prolongs it least
    is added, as long as the round ends before the deadline. Only a random ``request_share`` of the
    UEs, at least one, is asked in a round (the paper's C), which keeps the fast ones from being
    the only ones ever heard.

    Adapted: N subchannels work in parallel, and an upload holds ``|C_k|`` of them. It is counted
    as that part of the uplink's time, ``t_upload[k] |C_k| / N``, which is the original for N = 1.
    C_k are the fewest best free subchannels, so that needs and upload times are worked out anew
    after each pick. Nobody waits for the uplink any more, but since a part of its time says
    nothing about a single upload, a UE whose own ``t_compute + t_upload`` exceeds the deadline is
    not a candidate. Distribution, selection and aggregation take no time here. ``ties`` decides
    between equal times: all of them are, without a rate threshold and computing times. What a UE
    adds depends on who was chosen before it: this policy chooses a set, and so has no packing.
    """

    name: ClassVar[str] = "fed-cs"
    equation: ClassVar[str] = (
        "next = argmin_k t_k n_k / N + max(0, c_k − Θ), while Θ stays within the deadline"
    )
    request_share: float = 0.5
    ties: Ties = "random"

    def __post_init__(self) -> None:
        super().__post_init__()
        number_within("request_share", self.request_share, 0.0, 1.0, above=True)

    def schedule(self, view: RoundView, rng: np.random.Generator) -> Allocation:
        """Fill the spectrum in the order of least time added."""
        uplink, rank = view.uplink, self.tie_rank(view, rng)
        free, elapsed, order = np.arange(uplink.subchannel_count), 0.0, list[int]()
        asked = max(1, round(self.request_share * view.ue_count))
        waiting = np.argsort(np.argsort(rng.random(view.ue_count))) < asked
        while free.size > 0:
            need, rate = uplink.needs(free)
            ues = np.flatnonzero(waiting & (need > 0))
            computing = view.compute_slots[ues]
            slot_rate = uplink.rate_threshold[ues] * view.threshold_slots[ues]
            uploading = slot_rate / rate[ues]
            added = uploading * need[ues] / uplink.subchannel_count
            added += np.maximum(0.0, computing - elapsed)
            # Its own upload and the round as a whole have to end in time.
            fits = np.maximum(computing + uploading, elapsed + added) <= view.deadline_slots
            if not fits.any():
                break
            ues, added = ues[fits], added[fits]
            first = np.lexsort((rank[ues], added))[0]
            ue, elapsed = int(ues[first]), elapsed + added[first]
            order.append(ue)
            waiting[ue] = False
            best_first = np.argsort(-uplink.gains[ue, free], kind="stable")
            free = free[np.sort(best_first[need[ue] :])]
        return fill(uplink, np.array(order, np.int64))
