"""What defines the policies of later papers, each against a plain computation."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from agewise import Streams, Uplink
from agewise.age import next_ages
from agewise.policies import (
    ImportanceChannel,
    Markov,
    MaxWeight,
    Oort,
    PowerOfChoice,
    RoundRobin,
    Whittle,
    make_policy,
)
from agewise.policies._estimates import chances_of_reach, chances_of_success
from agewise.policies.importance_channel import _probabilities
from agewise.policies.markov import _chance_to_send
from agewise.policies.max_weight import _whittle_index
from agewise.scheduling import AccessPoint
from agewise.spectrum import Greedy, fill
from tests.cells import draw_gains
from tests.policies.test_policies import schedules
from tests.views import feedback_of, fresh_state, view_of

#: A mean of seeded draws may be this many standard errors off: one in 150,000 such tests is.
Z = 4.5


def flat(ues, subchannels, ages=None, threshold=0.0, **known):
    """A view of a cell in which all channels are alike and, as a rule, one subchannel suffices."""
    ages = np.zeros(ues, int) if ages is None else np.asarray(ages)
    return view_of(Uplink(np.ones((ues, subchannels)), 1.0, threshold), ages, **known)


def served(policy, view, seed=0):
    return np.flatnonzero(policy.schedule(view, Streams(seed).policy(0)).scheduled).tolist()


# ------------------------------------------------------------------------------ power-of-choice
@pytest.mark.parametrize("seed", range(20))
def test_power_of_choice_takes_the_highest_losses_of_its_candidates(seed):
    rng = np.random.default_rng(seed)
    sizes, losses = rng.integers(1, 50, 12), rng.random(12)
    drawn = Streams(seed).policy(0).random(12)
    rings = [-math.log(1 - u) / size for u, size in zip(drawn, sizes, strict=True)]
    candidates = sorted(range(12), key=rings.__getitem__)[:6]
    expected = sorted(candidates, key=lambda ue: -losses[ue])[:4]
    view = flat(12, 4, data_sizes=sizes, feedback=feedback_of(12, losses=losses))
    assert served(PowerOfChoice(candidate_share=0.5), view, seed) == sorted(expected)


def test_power_of_choice_hears_everyone_once():
    losses = np.array([9.0, np.nan, 5.0, np.nan, 7.0, 1.0])
    view = flat(6, 3, feedback=feedback_of(6, losses=losses))
    assert served(PowerOfChoice(candidate_share=1.0), view) == [0, 1, 3]


@pytest.mark.parametrize("ues", [10, 100, 400])
def test_power_of_choice_has_its_share_of_candidates_at_any_size(ues):
    assert len(served(PowerOfChoice(candidate_share=0.4), flat(ues, ues))) == 0.4 * ues


def test_candidates_are_drawn_by_data_size_without_replacement():
    sizes, rounds = np.array([1, 2, 3, 6]), 1000
    share = sizes / sizes.sum()
    second = [sum(share[j] * share[i] / (1 - share[j]) for j in range(4) if j != i)
              for i in range(4)]  # fmt: skip
    expected = share + second
    counts = np.zeros(4)
    for seed in range(rounds):
        counts[served(PowerOfChoice(candidate_share=0.5), flat(4, 4, data_sizes=sizes), seed)] += 1
    errors = np.sqrt(expected * (1 - expected) / rounds)
    assert (np.abs(counts / rounds - expected) < Z * errors).all()


# ------------------------------------------------------------------------------------------ Oort
def oort_view(ages=(0, 1, 2, 3, 4)):
    """Five UEs of which four were heard, with utilities of 10, 20, 30 and 40; the last is slow."""
    return flat(
        5, 2, ages, data_sizes=np.array([10, 5, 10, 20, 10]),
        feedback=feedback_of(5, losses=[1.0, 4.0, 3.0, 2.0, np.nan]),
        compute_slots=np.array([0.0, 0.0, 1.0, 3.0, 0.0]), deadline_slots=2.0,
    )  # fmt: skip


def test_oorts_utility_by_hand():
    """Round 5: last heard in rounds 4, 3, 2, 1; bonus sqrt(0.1 ln 5 / L); 4 slots of 2 wanted."""
    utilities = Oort(clip=1.0).usefulness(oort_view(), rounds=5)
    by_hand = [0.0 + 0.200589, 1 / 3 + 0.231620, 2 / 3 + 0.283676, (1.0 + 0.401178) / 4]
    assert utilities[:4] == pytest.approx(by_hand, abs=1e-6)
    clipped = Oort(clip=0.5, penalty=0.0).usefulness(oort_view(), rounds=1)
    assert clipped[:4] == pytest.approx([0.0, 10 / 15, 1.0, 1.0])  # the median is 25
    faster = Oort(clip=1.0, pace=0.5).usefulness(oort_view(), rounds=1)
    assert faster[:4] == pytest.approx([0.0, 1 / 3, 2 / 3 / 4, 1 / 16])


def test_oort_takes_the_highest_utilities_where_the_cut_off_leaves_no_choice():
    losses = np.random.default_rng(2).permutation(30) + 1.0
    view = flat(30, 10, feedback=feedback_of(30, losses=losses))
    policy = Oort(epsilon=0.0, least_epsilon=0.0, cutoff=1.0, clip=1.0)
    assert served(policy, view) == np.flatnonzero(losses > 20).tolist()


def test_oort_draws_by_utility_above_the_cut_off():
    """With the cut-off at 0 and two UEs for one place, in proportion to their utilities."""
    policy, rounds = Oort(epsilon=0.0, least_epsilon=0.0, cutoff=0.0, clip=1.0), 500
    first = 0
    for seed in range(rounds):
        view = flat(3, 1, feedback=feedback_of(3, losses=[1.0, 2.0, 5.0]))  # utilities 0, 1/4, 1
        first += served(policy, view, seed) == [2]
    assert abs(first / rounds - 0.8) < Z * math.sqrt(0.8 * 0.2 / rounds)


@pytest.mark.parametrize(
    ("epsilon", "past", "untried"), [(0.3, 0, 3), (0.9, 0, 9), (0.9, 30, 5), (0.9, 500, 2)]
)
def test_oorts_share_of_places_for_untried_ues(epsilon, past, untried):
    """0.9 * 0.98^30 is 0.49, and 0.2 is the least."""
    losses = np.where(np.arange(40) < 20, 1.0 + np.arange(40), np.nan)
    view = flat(40, 10, t=past, feedback=feedback_of(40, losses=losses))
    chosen = served(Oort(epsilon=epsilon), view)
    assert len(chosen) == 10
    assert sum(ue >= 20 for ue in chosen) == untried


def test_every_number_of_places_has_its_share_of_untried_ues():
    losses = np.where(np.arange(40) < 20, 1.0 + np.arange(40), np.nan)
    for places in range(1, 20):
        view = flat(40, places, feedback=feedback_of(40, losses=losses))
        chosen = served(Oort(epsilon=0.31), view)
        assert sum(ue >= 20 for ue in chosen) == round(0.31 * places)


@pytest.mark.parametrize(("past", "untried"), [(0, 8), (1, 4), (2, 2)])
def test_oorts_first_round_explores_most(past, untried):
    losses = np.where(np.arange(40) < 20, 1.0 + np.arange(40), np.nan)
    view = flat(40, 10, t=past, feedback=feedback_of(40, losses=losses))
    chosen = served(Oort(epsilon=0.8, decay=0.5, least_epsilon=0.0), view)
    assert sum(ue >= 20 for ue in chosen) == untried


def test_oort_prefers_fast_ones_among_the_untried_and_tries_each_once():
    state = fresh_state(4)
    policy, slots = Oort(epsilon=1.0, decay=1.0), np.array([0.0, 1e9, 0.0, 1e9])
    rounds = [
        served(policy, flat(4, 2, state=state, compute_slots=slots), seed) for seed in range(2)
    ]
    assert rounds == [[0, 2], [1, 3]]


# ---------------------------------------------------------------------------- importance-channel
@pytest.mark.parametrize("seed", range(30))
def test_probabilities_add_to_one_and_are_optimal(seed):
    rng = np.random.default_rng(seed)
    importance = rng.exponential(size=15) * 10.0 ** rng.integers(-6, 7, 15 if seed % 2 else 1)
    latency, rho = rng.integers(1, 21, 15) / 20, 1.0 - rng.random() ** 3
    found = _probabilities(importance, latency, rho)
    scaled = importance / importance.sum()

    # The multiplier is sought by its logarithm above the least that it may be, where no digit of
    # a small one is lost.
    def at(logarithm):
        excess = (1 - rho) * (latency - latency.min())
        return scaled * np.sqrt(rho / (excess + math.exp(logarithm)))

    root = brentq(lambda x: at(x).sum() - 1, math.log(1e-40), math.log(2.0), xtol=1e-13)
    np.testing.assert_allclose(found, at(root), rtol=1e-9)
    assert found.sum() == pytest.approx(1.0, abs=1e-12)

    def cost(p):
        return rho * (scaled**2 / p).sum() + (1 - rho) * (p * latency).sum()

    for _ in range(20):
        other = found * np.exp(0.1 * rng.normal(size=15))
        assert cost(found) <= cost(other / other.sum()) * (1 + 1e-12)


def test_without_latency_probabilities_are_importances():
    importance = np.array([1.0, 0.0, 3.0])
    assert _probabilities(importance, np.array([0.1, 0.1, 1.0]), 1.0).tolist() == [0.25, 0.0, 0.75]


def mixed_needs(subchannels):
    """Three UEs that need one subchannel, three that need two and one out of reach."""
    gains = np.repeat([3.5, 2.5, 1e-9], [3, 3, 1])[:, None] * np.ones(subchannels)
    view = view_of(
        Uplink(gains, 1.0, 1.0), np.zeros(7, int), data_sizes=np.array([5, 1, 9, 2, 4, 7, 50]),
        feedback=feedback_of(7, update_norms=[0.1, 4.0, 1.0, 2.0, np.nan, 0.0, 9.0]),
    )  # fmt: skip
    assert view.uplink.needs()[0].tolist() == [1, 1, 1, 2, 2, 2, 0]
    return view


def test_the_expected_update_is_that_of_all_ues_within_reach():
    """Nine subchannels serve all six of them, so that every draw fits."""
    view, rounds = mixed_needs(9), 6000
    policy = ImportanceChannel(draw_share=1 / 3)
    factors = np.array(
        [policy.schedule(view, Streams(seed).policy(0)).aggregation for seed in range(rounds)]
    )
    shares = np.array([5, 1, 9, 2, 4, 7, 0]) / 28
    errors = factors.std(axis=0) / math.sqrt(rounds)
    assert (np.abs(factors.mean(axis=0) - shares) <= Z * errors).all()
    assert factors.max() <= 1 / policy.floor
    updates = np.random.default_rng(0).normal(size=(7, 5))
    steps = factors @ updates
    errors = steps.std(axis=0) / math.sqrt(rounds)
    assert (np.abs(steps.mean(axis=0) - shares @ updates) < Z * errors).all()


@pytest.mark.parametrize("seed", range(10))
def test_draws_that_do_not_fit_are_dropped(seed):
    """Draws, needs and factors by plain computation, with room for two or three UEs."""
    view, policy = mixed_needs(3), ImportanceChannel(rho=0.3, draw_share=8 / 3, floor=0.25)
    shares = np.array([5, 1, 9, 2, 4, 7, 0]) / 28
    importance = shares * [0.1, 4.0, 1.0, 2.0, 9.0, 0.0, 9.0]
    chances = _probabilities(importance, np.array([1, 1, 1, 2, 2, 2, 0]) / 3, 0.3)
    chances = 0.75 * chances + 0.25 * shares
    rng, drawn = Streams(seed).policy(0), []
    for _ in range(8):
        waiting = -np.log1p(-rng.random(7))
        drawn.append(min(range(6), key=lambda ue, waiting=waiting: waiting[ue] / chances[ue]))
    free, kept = 3, []
    for ue in dict.fromkeys(drawn):
        need = 1 if ue < 3 else 2
        if need <= free:
            free, kept = free - need, [*kept, ue]
    counts = {ue: drawn.count(ue) for ue in kept}
    allocation = policy.schedule(view, Streams(seed).policy(0))
    assert np.flatnonzero(allocation.scheduled).tolist() == sorted(kept)
    expected = [
        shares[ue] * counts.get(ue, 0) / (sum(counts.values()) * chances[ue]) if ue < 6 else 0.0
        for ue in range(7)
    ]
    assert allocation.aggregation == pytest.approx(expected)


# ------------------------------------------------------------------------- max-weight and Whittle
def test_the_chance_of_reach_is_the_share_of_rounds_with_one_of_each_added():
    state = fresh_state(2)
    for reach in ([1, 0], [1, 0], [1, 1]):
        gains = np.array(reach)[:, None] * np.ones((2, 3))
        chances = chances_of_reach(view_of(Uplink(gains, 1.0, 0.1), np.zeros(2, int), state))
    assert chances == pytest.approx([4 / 5, 2 / 5])


def test_the_chance_of_success_is_that_of_reach_times_the_share_that_arrived():
    """Sent four times, of which one arrived: (1 + 1) / (4 + 1) of the chance of reach."""
    state, uplink = fresh_state(2), Uplink(np.ones((2, 3)), 1.0, 0.1)
    for attempts, successes in ((0, 0), (1, 0), (2, 1), (3, 1), (4, 1)):
        known = {"attempts": np.array([attempts, 0]), "successes": np.array([successes, 0])}
        chances = chances_of_success(view_of(uplink, np.zeros(2, int), state, **known))
    assert chances == pytest.approx([6 / 7 * 2 / 5, 6 / 7])


@pytest.mark.parametrize("policy", [MaxWeight(), Whittle()])
def test_at_equal_ages_ues_whose_uploads_were_lost_go_last(policy):
    """The first two UEs were sent for nine times in vain, the others were not."""
    state = fresh_state(4, rounds=np.full(4, 9.0), mean=np.ones(4))
    uplink, attempts = Uplink(np.full((4, 2), 20.0), 1.0, 1.0), np.array([9, 9, 0, 0])
    view = view_of(uplink, np.full(4, 6), state, attempts=attempts)
    assert served(policy, view) == [2, 3]


@pytest.mark.parametrize("h", [1, 2, 7])
@pytest.mark.parametrize("p", [1.0, 0.6, 0.1])
@pytest.mark.parametrize("channel", ["unseen", "seen"])
def test_at_whittles_index_waiting_one_round_more_costs_the_same(h, p, channel):
    """Mean cost of sending from age H on: H - 1 idle rounds, then tries until one works.

    A try costs the price in the paper. Where the channel is seen only those that work are made.
    """
    price = float(_whittle_index(np.array(h), np.array(p))) / (1.0 if channel == "unseen" else p)

    def mean_cost(start):
        tries = np.arange(1, 2000)
        chance = p * (1 - p) ** (tries - 1.0)
        length = start - 1 + tries
        paid = price * (tries if channel == "unseen" else 1)
        return (chance * (length * (length + 1) / 2 + paid)).sum() / (chance * length).sum()

    assert mean_cost(h) == pytest.approx(mean_cost(h + 1), rel=1e-9)
    assert mean_cost(h) <= min(mean_cost(start) for start in range(1, 30)) * (1 + 1e-9)


@pytest.mark.parametrize("channel", ["unseen", "seen"])
def test_indices_per_subchannel_needed(channel):
    rng = np.random.default_rng(3)
    for _ in range(10):
        gains, ages = draw_gains(rng, 30, 8, 0.0), rng.integers(0, 9, 30)
        uplink, share, past = Uplink(gains, 1.0, 2.0), rng.random(30), 17
        now = uplink.needs()[0] > 0
        p = (share * past + now + 1) / (past + 3)
        h, seen = ages + 1, channel == "seen"
        for policy, weights in (
            (MaxWeight(ties="lowest-index", channel=channel), (1 if seen else p) * h * (h + 2)),
            (
                Whittle(ties="lowest-index", channel=channel),
                (1 / p if seen else 1) * h * (p * h + 2 - p) / 2,
            ),
        ):
            state = fresh_state(30, rounds=np.full(30, float(past)), mean=share)
            made = policy.schedule(view_of(uplink, ages, state), rng)
            assert made.owner.tolist() == Greedy().pack(uplink, weights).owner.tolist()


@pytest.mark.parametrize("policy", [MaxWeight, Whittle])
@pytest.mark.parametrize(("ues", "subchannels"), [(100, 20), (6, 3), (5, 5), (4, 1)])
def test_with_equal_chances_and_no_threshold_indices_are_round_robin(policy, ues, subchannels):
    by_index = schedules(policy(ties="lowest-index"), ues, subchannels, 0.0, 25)
    assert list(by_index) == list(schedules(RoundRobin(), ues, subchannels, 0.0, 25))


# ---------------------------------------------------------------------------------------- Markov
@pytest.mark.parametrize(("load", "lengths"), [(0.3, {3, 4}), (0.25, {4}), (0.8, {1, 2})])
def test_markov_intervals_are_the_two_whole_numbers_around_their_mean(load, lengths):
    """Where everyone fits; the first round, too, has n / r of the UEs on average."""
    ues, rounds = 100, 300
    ages, state, last = np.zeros(ues, int), fresh_state(ues), np.full(ues, -1)
    intervals, counts = [], []
    for t in range(rounds):
        scheduled = served(Markov(load=load), flat(ues, ues, ages, state=state), t)
        intervals += [t - last[ue] for ue in scheduled if last[ue] >= 0]
        counts.append(len(scheduled))
        last[scheduled] = t
        ages = next_ages(ages, np.array(scheduled, int))
    assert set(intervals) == lengths
    spread = np.std(intervals) / math.sqrt(len(intervals))
    # Intervals that the end of the run cuts off are missing, which may shift the mean by 1 / T.
    assert abs(np.mean(intervals) - 1 / load) <= Z * spread + 1 / rounds
    assert abs(np.mean(counts) - load * ues) < Z * math.sqrt(ues) / rounds + 0.5


def test_markov_counts_rounds_since_selection_though_every_upload_is_lost():
    """Intervals between turns stay what they are: a lost upload has had its turn."""
    ues, load, last = 60, 0.3, np.full(60, -1)
    point, intervals = AccessPoint(Markov(load=load), ues, Streams(3)), []
    for t in range(120):
        allocation = point.plan(Uplink(np.ones((ues, ues)), 1.0, 0.0))
        point.receive(np.empty(0, np.int64))
        selected = np.flatnonzero(allocation.scheduled)
        intervals += [t - last[ue] for ue in selected if last[ue] >= 0]
        last[selected] = t
    assert point.ages.min() == 120
    assert set(intervals) == {3, 4}


def test_markov_starts_in_its_stationary_law():
    seeds, ues, load = 400, 50, 0.3
    first = [len(served(Markov(load=load), flat(ues, ues), seed)) for seed in range(seeds)]
    error = math.sqrt(ues * load * (1 - load) / seeds)
    assert abs(np.mean(first) - ues * load) < Z * error


def test_chance_to_send_gives_the_mean_interval():
    for interval in (1.0, 1.4, 2.0, 3.75, 10.01):
        chances = _chance_to_send(np.arange(20.0), interval)
        waiting = np.concatenate(([1.0], np.cumprod(1 - chances)[:-1]))
        lengths = np.arange(1, 21)
        mean = (waiting * chances * lengths).sum()
        variance = (waiting * chances * lengths**2).sum() - mean**2
        assert mean == pytest.approx(interval)
        assert variance == pytest.approx((interval % 1) * (1 - interval % 1), abs=1e-9)


def test_markov_serves_those_first_that_did_not_fit():
    ages, state, turns = np.zeros(4, int), fresh_state(4), []
    for t in range(12):
        turns += served(Markov(load=4.0), flat(4, 1, ages, state=state), t)
        ages = next_ages(ages, np.array(turns[-1:]))
    assert turns == turns[:4] * 3
    assert sorted(turns[:4]) == [0, 1, 2, 3]


# ------------------------------------------------------------------------------------ parameters
@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("power-of-choice:losses=now", "losses must be one of last, fresh, not 'now'"),
        ("best-norm:norms=now", "norms must be one of last, fresh, not 'now'"),
        ("power-of-choice:candidate_share=0", r"candidate_share must be in \(0, 1\], not 0"),
        ("fed-cs:request_share=1.5", r"request_share must be in \(0, 1\], not 1.5"),
        ("oort:epsilon=1.5", r"epsilon must be in \[0, 1\], not 1.5"),
        ("oort:decay=-0.1", r"decay must be in \[0, 1\], not -0.1"),
        ("oort:least_epsilon=2", r"least_epsilon must be in \[0, 1\], not 2"),
        ("oort:clip=1.1", r"clip must be in \[0, 1\], not 1.1"),
        ("oort:cutoff=nan", "cutoff must be a finite number, not nan"),
        ("oort:penalty=-1", r"penalty must be in \[0, inf\), not -1"),
        ("oort:pace=0", r"pace must be in \(0, inf\), not 0"),
        ("importance-channel:rho=0", r"rho must be in \(0, 1\], not 0"),
        ("importance-channel:draw_share=0", r"draw_share must be in \(0, 1000\], not 0"),
        ("importance-channel:floor=-0.5", r"floor must be in \[0, 1\], not -0.5"),
        ("max-weight:ties=first", "ties must be one of random, lowest-index, not 'first'"),
        ("max-weight:channel=known", "channel must be one of unseen, seen, not 'known'"),
        ("whittle:channel=known", "channel must be one of unseen, seen, not 'known'"),
        ("markov:load=0", r"load must be in \[1e-09, inf\), not 0"),
        ("markov:load=inf", "load must be a finite number, not inf"),
    ],
)
def test_parameters_out_of_range(written, message):
    with pytest.raises(ValueError, match=message):
        make_policy(written)


def test_nobody_within_reach_is_nobody_drawn():
    view = flat(4, 2, threshold=50.0)
    assert not ImportanceChannel().schedule(view, Streams(0).policy(0)).scheduled.any()
    assert fill(view.uplink, []).aggregation is None
