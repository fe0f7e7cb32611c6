"""Policies under each packing: what utilities mean, and what a better packing brings."""

from dataclasses import dataclass

import cloudpickle
import numpy as np
import pytest

from agewise import AccessPoint, InfeasibleAllocation, Policy, Streams, Uplink, compare, simulate
from agewise.age import f_alpha, next_ages
from agewise.policies import AgeBased, MaxPack, RoundRobin, make_policy
from agewise.spectrum import Auction, Exact, Greedy, InOrder, Packing
from tests import reference
from tests.cells import draw_gains
from tests.scenarios import tiny
from tests.views import view_of

PACKINGS = [Greedy(), InOrder(), Auction(), Exact()]
OPTIMAL, MOST = AgeBased(packing=Exact()), MaxPack(packing=Exact())


@dataclass(frozen=True)
class Given(Policy):
    """Utilities that the test says."""

    name = "given"
    values: object = ()

    def utility(self, view, rng):
        return np.array(self.values)


def owners(values, packing, gains, threshold=1.0, ties="lowest-index"):
    policy = Given(values, packing=packing, ties=ties)
    access_point = AccessPoint(policy, len(gains), Streams(0))
    return access_point.plan(Uplink(np.array(gains), 1.0, threshold)).owner.tolist()


# ---------------------------------------------------------------------------- what utilities mean
@pytest.mark.parametrize("packing", PACKINGS, ids=str)
def test_infinite_utilities(packing):
    """Three UEs that need one subchannel each, then one subchannel too few."""
    gains = np.full((3, 2), 9.0)
    inf = np.inf
    assert sorted(owners([1.0, -inf, 2.0], packing, gains)) == [0, 2]
    assert owners([-inf] * 3, packing, gains) == [-1, -1]
    assert owners([inf, inf, inf], packing, gains) == [0, 1], "in the order of ties"
    assert sorted(owners([1.0, 5.0, inf], packing, gains)) == [1, 2]
    assert sorted(owners([0.0, 1e-300, 0.0], packing, gains)) == [0, 1], "0 takes what is left"
    drawn = {tuple(owners([inf] * 3, packing, gains, ties="random")) for _ in range(2)}
    assert len(drawn) == 1, "ties are drawn from the round's stream"


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
def test_an_infinite_utility_goes_first_whatever_it_needs(packing):
    """UE 0 takes both subchannels, on which two others could be served."""
    gains = [[2.1, 2.1], [9.0, 1.0], [1.0, 9.0]]
    assert owners([np.inf, 9.0, 9.0], packing, gains) == [0, 0]
    assert owners([-np.inf, 9.0, 9.0], packing, gains) == [1, 2]
    expected = [0, 0] if packing == InOrder() else [1, 2]
    assert owners([9.0, 8.0, 8.0], packing, gains) == expected


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([1.0, np.nan], "utilities must be at least 0, or infinite: that of UE 1 is nan"),
        ([-1.0, 1.0], "that of UE 0 is -1.0"),
        ([1.0], r"one entry for each of the 2 UEs, not shape \(1,\)"),
        ([[1.0], [1.0]], r"not shape \(2, 1\)"),
        ([True, False], "real numbers, not bool"),
        (["a", "b"], "real numbers, not <U1"),
        ([1j, 1.0], "real numbers, not complex128"),
        ([None, 1.0], "real numbers, not object"),
    ],
)
def test_what_is_no_utility_is_told_with_the_policy_and_the_round(packing, values, sentence):
    with pytest.raises(ValueError, match=rf"policy given:.* in round 0: .*{sentence}"):
        owners(values, packing, np.ones((2, 2)))


def test_whole_numbers_are_utilities():
    assert owners([1, 5], Greedy(), [[4.0, 1.0], [9.0, 3.0]]) == [1, -1]


def test_a_policy_that_gives_nothing_says_what_to_give():
    @dataclass(frozen=True)
    class Empty(Policy):
        name = "empty"

    with pytest.raises(NotImplementedError, match="empty: give it a method utility or schedule"):
        Empty().schedule(view_of(Uplink(np.ones((1, 1)), 1.0, 0.0), [0]), Streams(0).policy(0))


def test_a_policy_cannot_spoil_what_it_is_judged_by():
    """A policy from outside the package gets copies, and is proven against the access point's."""

    @dataclass(frozen=True)
    class Spoiler(Policy):
        name = "spoiler"

        def utility(self, view, rng):
            arrays = [view.uplink.gains, view.uplink.best_gains, view.ages, view.data_sizes,
                      view.compute_slots, view.feedback.losses]  # fmt: skip
            for array in arrays:
                with pytest.raises(ValueError, match="read-only"):
                    array[0] = 1
                array.setflags(write=True)
                array *= 1000
            return np.ones(view.ue_count)

    gains = np.full((3, 2), 0.5)
    access_point = AccessPoint(Spoiler(), 3, Streams(0))
    with pytest.raises(ValueError, match=r"spoiler.* in round 0: rate constraint \(3b\)"):
        access_point.plan(Uplink(gains, 1.0, 2.0))
    assert (gains == 0.5).all()
    assert not access_point.ages.any()


def normalise(uplink):
    """Make every UE's best gain 1e4, in place."""
    for array in (uplink.gains, uplink.best_gains):
        array.setflags(write=True)
    gains = uplink.gains
    gains /= gains.max(axis=1, keepdims=True)
    gains *= 1e4
    uplink.best_gains[:] = 1e4


@dataclass(frozen=True)
class NormalisingGreedy(Greedy):
    name = "normalising"

    def _pack(self, uplink, weights, rank):
        normalise(uplink)
        return super()._pack(uplink, weights, rank)


@dataclass(frozen=True)
class Normalising(AgeBased):
    name = "normalising"

    def utility(self, view, rng):
        normalise(view.uplink)
        return super().utility(view, rng)


@pytest.mark.parametrize("policy", [Normalising(), AgeBased(packing=NormalisingGreedy())], ids=str)
def test_what_is_planned_on_gains_that_a_policy_changed_is_refused(policy):
    """Also in a comparison, in which the others have what they would have alone."""
    with pytest.raises(InfeasibleAllocation, match=r"in round 0: rate constraint \(3b\)"):
        simulate(tiny(), policy, 0)
    options = {"seeds": 2, "engine": "inline"}
    both = compare(tiny(), [AgeBased(), policy], **options)
    assert [run.policy for run in both.failed] == [policy.key] * 2
    assert both.table().to_csv() == compare(tiny(), [AgeBased()], **options).table().to_csv()


# ------------------------------------------------------------------------------- how it is written
def test_packings_are_written_as_text():
    assert [str(packing) for packing in PACKINGS] == ["greedy", "in-order", "auction", "exact"]
    for text in ("exact", "exact:work_limit=3000", "auction:price_rounds=20"):
        policy = make_policy(f"age-based:packing={text},alpha=0.25")
        assert policy == AgeBased(packing=Packing.of(text), alpha=0.25)
        assert policy == make_policy("age-based", **policy.parameters)
        assert policy.parameters["packing"] == text
        assert str(policy) == f"age-based:alpha=0.25,packing={text}"
    assert make_policy("age-based:packing=exact:work_limit=1e6").parameters["packing"] == "exact"


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("age-based:packing=best", "packing must be one of greedy, in-order, auction, exact, not"),
        ("age-based:packing=exact:limit=3", "packing 'exact' has no parameter 'limit'; it takes w"),
        ("age-based:packing=greedy:limit=3", "'greedy' has no parameter 'limit'; it takes no"),
        ("age-based:packing=exact:work_limit=-1", "work_limit must be a whole number of at least"),
        ("age-based:packing=exact:work_limit=0.5", "work_limit must be a whole number of at le"),
        ("age-based:packing=auction:price_rounds=-1", "price_rounds must be a whole number of at"),
        ("age-based:packing=exact:3000", "write parameters as name=value, not '3000'"),
        ("max-pack:ties=first", "ties must be one of random, lowest-index"),
        ("round-robin:packing=exact", "'round-robin' has no parameter 'packing'; it takes no par"),
        ("fed-cs:packing=exact", "'fed-cs' has no parameter 'packing'; it takes request_share, t"),
    ],
)
def test_packings_that_there_are_not(written, sentence):
    with pytest.raises(ValueError, match=sentence):
        make_policy(written)


def test_policies_that_choose_sets_have_no_packing():
    sets = {"round-robin", "markov", "fed-cs", "importance-channel"}
    for name in ("age-based", "oort", "random", "power-of-choice", "best-channel-norm", *sets):
        assert ("packing" in make_policy(name).parameters) == (name not in sets)
    with pytest.raises(ValueError, match="round-robin has no packing: it chooses sets of UEs"):
        RoundRobin(packing=Exact())


# --------------------------------------------------------------------------- what packings bring
def views(policy, rounds, ues=60, subchannels=12, edge_snr_db=0.0, threshold=3.0):
    """The views of the rounds that ``policy`` goes through."""
    ages = np.zeros(ues, np.int64)
    for t in range(rounds):
        gains = draw_gains(np.random.default_rng([11, t]), ues, subchannels, edge_snr_db)
        view = view_of(Uplink(gains, 1.0, threshold), ages)
        yield view
        ages = next_ages(ages, policy.schedule(view, Streams(0).policy(t)).scheduled)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("work_limit", [0, 1_000_000])
def test_the_optimum_is_never_below_age_based_and_above_it_at_times(alpha, work_limit):
    better = 0
    for t, view in enumerate(views(AgeBased(alpha=alpha), 15)):
        weights = f_alpha(view.ages, alpha)
        greedy = AgeBased(alpha=alpha).schedule(view, Streams(0).policy(t))
        exact = AgeBased(alpha=alpha, packing=Exact(work_limit))
        optimal = exact.schedule(view, Streams(0).policy(t))
        optimal.validate(view.uplink.gains)
        gain = weights[optimal.scheduled].sum() - weights[greedy.scheduled].sum()
        assert gain > -1e-9
        better += gain > 1e-6
    assert better >= 5 or not work_limit


def test_in_the_first_round_the_optimum_packs_as_age_based_does():
    view = next(views(AgeBased(), 1))
    first = OPTIMAL.schedule(view, Streams(3).policy(0))
    assert first.scheduled.any()
    assert first.owner.tolist() == AgeBased().schedule(view, Streams(3).policy(0)).owner.tolist()


def test_max_pack_exact_never_serves_fewer_than_max_pack():
    more = 0
    for t, view in enumerate(views(AgeBased(), 15, edge_snr_db=-10.0, threshold=2.0)):
        greedy = MaxPack().schedule(view, Streams(0).policy(t)).scheduled.sum()
        exact = MOST.schedule(view, Streams(0).policy(t))
        exact.validate(view.uplink.gains)
        assert exact.scheduled.sum() >= greedy
        more += exact.scheduled.sum() > greedy
    assert more > 0


def test_exact_is_exhaustive_on_tiny_cells():
    rng = np.random.default_rng(12)
    for trial in range(40):
        gains = draw_gains(rng, 5, 4, 0.0)
        threshold = [0.5, 1.0, 2.0, 3.0][trial % 4]
        ages = rng.integers(0, 9, 5)
        view = view_of(Uplink(gains, 1.0, threshold), ages)
        count = MOST.schedule(view, rng).scheduled.sum()
        assert count == reference.best_value(gains.tolist(), [1.0] * 5, 1.0, threshold)
        weights = f_alpha(ages, 0.5)
        value = weights[OPTIMAL.schedule(view, rng).scheduled].sum()
        assert value == pytest.approx(
            reference.best_value(gains.tolist(), weights.tolist(), 1.0, threshold)
        )


@pytest.mark.parametrize("policy", [OPTIMAL, MOST, AgeBased(packing=Exact(500))], ids=str)
def test_same_draw_same_schedule(policy):
    for t, view in enumerate(views(AgeBased(), 6)):
        first, again = (policy.schedule(view, Streams(0).policy(t)) for _ in range(2))
        assert first.owner.tolist() == again.owner.tolist()


def test_ties_of_max_pack_exact():
    """By chance others are served each time, by index always the same."""
    view = view_of(Uplink(np.full((40, 10), 10.0), 1.0, 1.0), np.zeros(40, int))
    rngs = [Streams(seed).policy(0) for seed in range(5)]
    by_chance = {tuple(MOST.schedule(view, rng).owner) for rng in rngs}
    indexed = MaxPack(packing=Exact(), ties="lowest-index")
    assert len(by_chance) == 5
    assert {tuple(indexed.schedule(view, rng).owner) for rng in rngs} == {tuple(range(10))}


def test_over_a_run_an_auction_keeps_the_ages_lower():
    costs = []
    for policy in (AgeBased(), AgeBased(packing=Auction())):
        ages, cost = np.zeros(60, np.int64), 0.0
        for t in range(60):
            gains = draw_gains(np.random.default_rng([4, t]), 60, 12, -5.0)
            view = view_of(Uplink(gains, 1.0, 3.0), ages)
            ages = next_ages(ages, policy.schedule(view, Streams(0).policy(t)).scheduled)
            cost += f_alpha(ages, 0.5).sum()
        costs.append(cost)
    assert costs[1] < costs[0]


def test_a_default_packing_without_a_type_is_refused():
    with pytest.raises(TypeError, match="write packing: Packing = "):

        class Untyped(Policy):
            packing = InOrder()


def test_a_class_that_is_pickled_by_value_has_the_same_parameters():
    @dataclass(frozen=True)
    class Sets(Policy):
        name = "sets"
        share: float = 0.5

        def schedule(self, view, rng):
            return RoundRobin().schedule(view, rng)

    @dataclass(frozen=True)
    class Kept(Sets):
        packing: Packing = InOrder()

    for policy in (Sets(), Kept(), Given([1.0])):
        again = cloudpickle.loads(cloudpickle.dumps(policy))
        assert again.parameters == policy.parameters
    assert (Sets().parameters, list(Kept().parameters)) == ({"share": 0.5}, ["share", "packing"])
