"""Scheduling without learning, slot after slot."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from agewise.checks import whole_number
from agewise.core.traffic import EMPTY_SLOTS, SUBCHANNELS_USED, Ledger
from agewise.policies import Policy, make_policy
from agewise.radio import Channel
from agewise.random import Streams
from agewise.traffic import slots
from agewise.traffic.result import Traffic
from agewise.traffic.setting import Setting

if TYPE_CHECKING:
    from agewise.scenario import Scenario

#: A compiled run hears neither Ctrl-C nor anything else until it comes back: it goes for at most
#: so many slots, and so many gains, at a time, which is a fraction of a second.
_CHUNK_SLOTS, _CHUNK_GAINS = 10_000, 20_000_000


def schedule_traffic(
    channel: "Channel | Scenario",
    policy: Policy | str,
    rounds: int,
    *,
    arrivals: ArrayLike | None = None,
    power: float | None = None,
    rate_threshold: float | None = None,
    seed: int = 0,
    progress: Callable[[int], object] | None = None,
) -> Traffic:
    """Schedule ``rounds`` slots one after the other, with nothing but ages to keep.

    ``channel`` is a scenario, whose cell is drawn from the seed as `simulate` does and which
    brings power and threshold, or any channel, beside which ``power`` and ``rate_threshold``
    have to be given. ``policy`` is a name or an object.

    ``arrivals`` is the probability that a UE generates an update in a slot, one number or one
    per UE, above 0; ``None`` is always, as in the paper. A UE without an undelivered update is
    not scheduled (the policy sees gains of 0). Only its newest one counts, and on reception the
    age becomes the time since it was generated.

    Fading and arrivals follow from the seed alone, so policies meet the same. "age-based" and
    "max-pack" in a cell run compiled, at the paper's size more than 50,000 slots a second; their
    random ties are then drawn from a stream of their own, not from the one of `simulate`.
    ``progress`` is called now and then with the number of slots done.

    >>> from agewise import Scenario
    >>> schedule_traffic(Scenario.preset("paper"), "round-robin", 1000)
    <Traffic round-robin, 1,000 slots: mean age 4.118, 10.843 updates per slot, fairness 1.000>
    """
    rounds = whole_number("rounds", rounds, least=1)
    chosen, streams = make_policy(policy), Streams(seed)
    if chosen.lessons:
        raise ValueError(
            f"policy {chosen} reads {', '.join(sorted(chosen.lessons))}, which only learning "
            "gives: compare it by simulate, not by traffic"
        )
    setting = Setting.of(channel, power, rate_threshold, arrivals, streams)
    serve = slots.compiled(setting, chosen, streams) or slots.one_by_one(setting, chosen, streams)
    ledger = Ledger.opened(setting.ues)
    chunk = min(_CHUNK_SLOTS, _CHUNK_GAINS // max(1, setting.ues * setting.subchannels) + 1)
    for first in range(0, rounds, chunk):
        end = min(first + chunk, rounds)
        ledger = ledger.with_room_for(end - first)
        serve(first, end, ledger)
        if progress is not None:
            progress(end)
    return _closed(ledger, rounds, setting, chosen, streams)


def _closed(
    ledger: Ledger, rounds: int, setting: Setting, policy: Policy, streams: Streams
) -> Traffic:
    """What the ledger says after the last slot."""
    served = ledger.deliveries > 0
    peak_age = np.full(setting.ues, np.nan)
    peak_age[served] = ledger.peak_sums[served] / ledger.deliveries[served]
    return Traffic(
        policy=str(policy),
        seed=streams.seed,
        rounds=rounds,
        subchannels=setting.subchannels,
        rate_threshold=setting.rate_threshold,
        mean_age=ledger.age_sums / rounds,
        peak_age=peak_age,
        oldest=ledger.oldest,
        deliveries=ledger.deliveries,
        age_counts=ledger.age_counts[: ledger.oldest.max(initial=-1) + 1].copy(),
        subchannels_used=int(ledger.totals[SUBCHANNELS_USED]) / rounds,
        empty_share=int(ledger.totals[EMPTY_SLOTS]) / rounds,
    )
