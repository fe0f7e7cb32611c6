"""What defines the policies of the papers around this one, against plain computations."""

import math

import numpy as np
import pytest

from agewise import Streams, Uplink
from agewise.policies import (
    Alternating,
    BestChannel,
    BestChannelNorm,
    BestNorm,
    FedCS,
    ProportionalFair,
    Random,
    make_policy,
)
from agewise.spectrum import waterfill
from tests import reference
from tests.cells import draw_gains
from tests.views import feedback_of, fresh_state, view_of


def placed_gains(t, ues, subchannels, edge_snr_db=10.0):
    """Rayleigh fading of round ``t`` on UEs that stay where they are."""
    fading = np.random.default_rng([5, t]).standard_exponential((ues, subchannels))
    return draw_gains(np.random.default_rng(4), ues, 1, edge_snr_db) * fading


def rounds(policy, ues, subchannels, threshold, count):
    """The gains and the allocation of each round."""
    state = fresh_state(ues)
    for t in range(count):
        gains = placed_gains(t, ues, subchannels)
        view = view_of(Uplink(gains, 1.0, threshold), np.zeros(ues, int), state, t=t)
        yield gains, policy.schedule(view, Streams(0).policy(t))


# --------------------------------------------------------------------------- proportional fair
@pytest.mark.parametrize("window", [1, 4, 100])
def test_proportional_fair_of_gains_goes_by_now_over_average(window):
    average = None
    policy = ProportionalFair(memory_rounds=window, ties="lowest-index")
    for t, (gains, allocation) in enumerate(rounds(policy, 15, 5, 2.0, 12)):
        now = [sum(row) / len(row) for row in gains.tolist()]
        weight = 1 / min(t + 1, window)
        before = average or now
        average = [(1 - weight) * before[ue] + weight * now[ue] for ue in range(15)]
        order = sorted(range(15), key=lambda ue: (-now[ue] / average[ue], ue))
        owner, _ = reference.fill(gains.tolist(), order, 1.0, 2.0)
        assert allocation.owner.tolist() == owner


def test_proportional_fair_of_rates_goes_by_the_rate_over_the_rate_served():
    served = np.zeros(15)
    policy = ProportionalFair(of="rate", memory_rounds=5, ties="lowest-index")
    for t, (gains, allocation) in enumerate(rounds(policy, 15, 5, 2.0, 12)):
        now = [waterfill(row, 1.0).rate for row in gains]
        ratio = [now[ue] / served[ue] if served[ue] else math.inf for ue in range(15)]
        order = sorted(range(15), key=lambda ue: (-ratio[ue], ue))
        owner, _ = reference.fill(gains.tolist(), order, 1.0, 2.0)
        assert allocation.owner.tolist() == owner
        served += (allocation.rate - served) / min(t + 1, 5)


def test_proportional_fair_of_gains_serves_near_and_far_alike():
    """Without a threshold, and although their gains differ more than a hundredfold."""
    counts, count = np.zeros(8), 2000
    for _, allocation in rounds(ProportionalFair(), 8, 2, 0.0, count):
        counts += allocation.scheduled
    assert placed_gains(0, 8, 1).max() > 100 * placed_gains(0, 8, 1).min()
    assert np.abs(counts - count / 4).max() < 4 * math.sqrt(count * 3 / 16)


def test_proportional_fair_of_rates_first_serves_everyone_once():
    served = [allocation.scheduled for _, allocation in
              rounds(ProportionalFair(of="rate"), 12, 3, 0.0, 4)]  # fmt: skip
    assert np.sum(served, axis=0).tolist() == [1] * 12


# -------------------------------------------------------------------------------------- FedCS
def fed_cs_as_printed(uploading, computing, deadline):
    """The paper's Algorithm 3, without the times that are not modelled here."""
    candidates, chosen, elapsed = list(range(len(uploading))), [], 0.0
    while candidates:
        added = {ue: uploading[ue] + max(0.0, computing[ue] - elapsed) for ue in candidates}
        best = min(candidates, key=lambda ue: added[ue])
        candidates.remove(best)
        if elapsed + added[best] <= deadline:
            elapsed += added[best]
            chosen.append(best)
    return chosen


def fed_cs_of(gains, computing, deadline, threshold=1.0):
    """FedCS on these gains with a power of 1, by index among equals."""
    view = view_of(
        Uplink(np.array(gains, dtype=float), 1.0, threshold), np.zeros(len(gains)),
        compute_slots=np.array(computing, dtype=float), deadline_slots=deadline,
    )  # fmt: skip
    return FedCS(request_share=1.0, ties="lowest-index").schedule(view, Streams(0).policy(0))


@pytest.mark.parametrize("deadline", [1.2, 1.5, 2.0, math.inf])
def test_fed_cs_is_algorithm_3_where_each_needs_one_subchannel(deadline):
    """With flat channels and as many subchannels as UEs, an upload is 1/N of the uplink."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rates, computing = 1.0 + 3.0 * rng.random(12), rng.exponential(0.6, 12)
        gains = np.repeat(4.0 ** rates[:, None] - 1.0, 12, axis=1)
        in_time = np.flatnonzero(computing + 1.0 / rates <= deadline)
        chosen = fed_cs_as_printed(1.0 / rates[in_time] / 12, computing[in_time], deadline)
        owner = fed_cs_of(gains, computing, deadline).owner
        # Flat channels are handed out from the first, so owners are in the order of the picks.
        assert owner[owner >= 0].tolist() == in_time[chosen].tolist()


@pytest.mark.parametrize(
    ("deadline", "owner"),
    [
        (math.inf, [3, 0, 1, 2]),
        (2.25, [3, 0, 1, 2]),
        (2.2, [3, 0, 1, -1]),  # the third would be there after 2 + 1/4
        (1.0, [3, 0, 1, -1]),
        (0.99, [3, -1, -1, -1]),  # the first two would be there after 1
        (0.4, [-1, -1, -1, -1]),
    ],
)
def test_fed_cs_by_hand(deadline, owner):
    """Uploads of 1, 1/2, 1/4 and 1/2 slots, of which each counts a quarter.

    At first 1/4, 1/8 + 1/2, 1/16 + 2 and 1/8 would be added: the last goes first. After 1/8 it is
    1/4 and 1/8 + 3/8: the first goes next. After 3/8 the second adds 1/8 + 1/8, and after 5/8 the
    third adds 1/16 + 11/8.
    """
    gains = np.repeat([[3.0], [15.0], [255.0], [15.0]], 4, axis=1)
    assert fed_cs_of(gains, [0.0, 0.5, 2.0, 0.0], deadline).owner.tolist() == owner


def test_fed_cs_asks_a_new_random_share_of_the_ues_in_each_round():
    """Of 20 equal UEs and 20 subchannels just the 5 that were asked are served."""
    policy, counts = FedCS(request_share=0.25), np.zeros(20)
    view = view_of(Uplink(np.full((20, 20), 20.0), 1.0, 1.0), np.zeros(20))
    for seed in range(400):
        scheduled = policy.schedule(view, Streams(seed).policy(0)).scheduled
        assert scheduled.sum() == 5
        counts += scheduled
    assert np.abs(counts - 100).max() < 4.5 * math.sqrt(400 * 0.25 * 0.75)


def test_fed_cs_ends_the_round_in_time_as_a_whole():
    """The second of two that each hold 3/8 of the uplink for a slot no longer fits."""
    weak = 3.0 * (2.0 ** (2.0 / 3.0) - 1.0) * 1.000001
    gains = np.repeat([[weak], [weak], [255.0]], 8, axis=1)
    computing = [0.0, 0.0, 0.3]
    assert fed_cs_of(gains, computing, 1.05).owner.tolist() == [2, 0, 0, 0, -1, -1, -1, -1]
    assert fed_cs_of(gains, computing, 1.15).owner.tolist() == [2, 0, 0, 0, 1, 1, 1, -1]


@pytest.mark.parametrize("deadline", [0.7, 1.0, 2.0, math.inf])
@pytest.mark.parametrize("threshold", [1.0, 3.0])
def test_fed_cs_works_needs_out_anew_after_each_pick(deadline, threshold):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        gains, computing = draw_gains(rng, 15, 6, 5.0), rng.exponential(0.5, 15)
        allocation = fed_cs_of(gains, computing, deadline, threshold)
        free, elapsed, waiting, owner = list(range(6)), 0.0, set(range(15)), [-1] * 6
        while True:
            added = {}
            for ue in waiting:
                found = reference.candidate(gains[ue].tolist(), free, 1.0, threshold)
                if found is None:
                    continue
                upload = threshold / reference.rate_of(gains[ue][found[0]], found[1])
                time = upload * len(found[0]) / 6 + max(0.0, computing[ue] - elapsed)
                if computing[ue] + upload <= deadline and elapsed + time <= deadline:
                    added[ue] = time, found[0]
            if not added:
                break
            ue = min(added, key=lambda ue: added[ue][0])
            elapsed += added[ue][0]
            waiting.remove(ue)
            for n in added[ue][1]:
                owner[n] = ue
                free.remove(n)
        assert allocation.owner.tolist() == owner


def test_fed_cs_leaves_equal_times_to_chance():
    uplink = Uplink(np.ones((30, 5)), 1.0, 0.0)
    served = np.zeros(30, int)
    for t in range(60):
        view = view_of(uplink, np.zeros(30, int))
        served += FedCS().schedule(view, Streams(0).policy(t)).scheduled
    assert (served > 0).all()


# ------------------------------------------------------------------------------- cell interior
@pytest.mark.parametrize(("share", "inside"), [(0.2, 4), (0.5, 10), (0.01, 1)])
@pytest.mark.parametrize("every", [2, 3])
def test_interior_rounds_serve_the_interior_alone(share, inside, every):
    policy = Alternating(interior_share=share, inclusive_every=every)
    total, outside = np.zeros(20), 0
    for t, (gains, allocation) in enumerate(rounds(policy, 20, 6, 0.0, 24), start=1):
        total += gains.mean(axis=1)
        interior = np.argsort(-total)[:inside]
        served = np.flatnonzero(allocation.scheduled)
        if t % every == 0:
            assert served.size == 6
            outside += np.setdiff1d(served, interior).size
        else:
            assert served.size == min(6, inside)
            assert np.isin(served, interior).all()
    assert outside > 0


@pytest.mark.parametrize(
    "policy", [Alternating(inclusive_every=1), Alternating(interior_share=1.0)]
)
def test_rounds_for_everyone_are_random(policy):
    for (_, one), (_, other) in zip(
        rounds(policy, 20, 6, 2.0, 10), rounds(Random(), 20, 6, 2.0, 10), strict=True
    ):
        assert one.owner.tolist() == other.owner.tolist()


# ------------------------------------------------------------------------- channels and norms
def heard(norms):
    """Feedback of these norms; NaN where nothing was heard."""
    return feedback_of(len(norms), update_norms=norms)


def test_best_channel_goes_by_the_mean_gain():
    for gains, allocation in rounds(BestChannel(), 15, 5, 2.0, 10):
        order = sorted(range(15), key=lambda ue: -sum(gains[ue]))
        assert allocation.owner.tolist() == reference.fill(gains.tolist(), order, 1.0, 2.0)[0]


def test_best_norm_goes_by_the_last_norm_heard_and_first_by_those_not_heard():
    norms = [0.5, 3.0, math.nan, 0.0, 2.0, math.nan, 1.0, 4.0]
    order = [2, 5, 7, 1, 4, 6, 0, 3]
    gains = placed_gains(0, 8, 4)
    view = view_of(Uplink(gains, 1.0, 1.0), np.zeros(8, int), feedback=heard(norms))
    made = BestNorm(ties="lowest-index").schedule(view, Streams(0).policy(0))
    assert made.owner.tolist() == reference.fill(gains.tolist(), order, 1.0, 1.0)[0]


def test_best_norm_hears_everyone_once_before_anyone_twice():
    norms, counts = np.full(20, np.nan), np.zeros(20, int)
    for t in range(4):
        view = view_of(Uplink(np.ones((20, 5)), 1.0, 0.0), np.zeros(20, int), feedback=heard(norms))
        served = np.flatnonzero(BestNorm().schedule(view, Streams(0).policy(t)).scheduled)
        counts[served] += 1
        norms[served] = served
    assert counts.tolist() == [1] * 20
    view = view_of(Uplink(np.ones((20, 5)), 1.0, 0.0), np.zeros(20, int), feedback=heard(norms))
    assert BestNorm().schedule(view, Streams(0).policy(4)).owner.tolist() == [19, 18, 17, 16, 15]


@pytest.mark.parametrize(("share", "candidates"), [(0.25, 4), (0.5, 8), (1.0, 16), (0.001, 1)])
def test_best_channel_norm_first_by_channel_then_by_norm(share, candidates):
    for t in range(10):
        gains, norms = placed_gains(t, 16, 5), np.random.default_rng(t).random(16)
        view = view_of(Uplink(gains, 1.0, 2.0), np.zeros(16, int), feedback=heard(norms))
        made = BestChannelNorm(candidate_share=share).schedule(view, Streams(0).policy(t))
        near = sorted(range(16), key=lambda ue: -sum(gains[ue]))[:candidates]
        order = sorted(near, key=lambda ue: -norms[ue])
        assert made.owner.tolist() == reference.fill(gains.tolist(), order, 1.0, 2.0)[0]
        if share == 1.0:
            by_norm = BestNorm().schedule(view, Streams(0).policy(t))
            assert made.owner.tolist() == by_norm.owner.tolist()


def test_norms_are_asked_for():
    assert BestNorm.reads == BestChannelNorm.reads == {"update_norms"}
    assert not BestChannel.reads


# ------------------------------------------------------------------------------------- random
def test_random_draws_one_number_per_ue():
    for t, (gains, allocation) in enumerate(rounds(Random(), 15, 5, 2.0, 5)):
        order = np.argsort(Streams(0).policy(t).random(15)).tolist()
        assert allocation.owner.tolist() == reference.fill(gains.tolist(), order, 1.0, 2.0)[0]


# --------------------------------------------------------------------------------- parameters
@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("alternating:interior_share=1.5", r"interior_share must be in \(0, 1\], not 1.5"),
        ("alternating:interior_share=0", r"interior_share must be in \(0, 1\], not 0"),
        ("alternating:interior_share=half", "interior_share must be a finite number"),
        ("alternating:inclusive_every=2.5", "inclusive_every must be a whole number of at least"),
        ("alternating:inclusive_every=0", "inclusive_every must be a whole number of at least 1"),
        ("best-channel-norm:candidate_share=-1", r"candidate_share must be in \(0, 1\], not -1"),
        ("best-channel-norm:candidate_share=nan", "candidate_share must be a finite number"),
        ("proportional-fair:memory_rounds=0", "memory_rounds must be a whole number of at least 1"),
        ("proportional-fair:memory_rounds=inf", "memory_rounds must be a whole number of at least"),
        ("proportional-fair:of=age", "of must be one of gain, rate, not 'age'"),
        ("proportional-fair:ties=first", "ties must be one of random, lowest-index"),
        ("fed-cs:ties=first", "ties must be one of random, lowest-index"),
        ("best-channel:ties=first", "ties must be one of random, lowest-index"),
        ("best-norm:ties=first", "ties must be one of random, lowest-index"),
        ("best-channel-norm:ties=first", "ties must be one of random, lowest-index"),
    ],
)
def test_parameters_out_of_range(written, message):
    with pytest.raises(ValueError, match=message):
        make_policy(written)


def test_whole_numbers_may_be_written_as_floats():
    assert make_policy("alternating:inclusive_every=3.0") == Alternating(inclusive_every=3)
    twenty = make_policy("proportional-fair:memory_rounds=20")
    assert str(twenty) == "proportional-fair:memory_rounds=20"
