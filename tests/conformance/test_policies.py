"""What every registered policy must do, whatever it prefers."""

from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np
import pytest

from agewise import RoundView, Streams, Uplink, policies
from agewise.age import f_alpha
from agewise.scheduling import AccessPoint, Feedback, State
from agewise.spectrum import Allocation
from tests.cells import draw_gains
from tests.views import view_of

#: Every policy in its own packing, and one in each of the others.
NAMES = [
    *policies.names(), "age-based:packing=auction", "age-based:packing=exact",
    "best-norm:packing=greedy", "max-pack:packing=exact", "oort:packing=auction",
]  # fmt: skip

#: For policies that reach an optimum which several sets of UEs may share: the value by which their
#: answers are compared where others must give the very same answer.
VALUES: dict[str, Callable[[RoundView, Allocation], float]] = {
    "max-pack:packing=exact": lambda _, allocation: allocation.scheduled.sum(),
    "age-based:packing=exact": lambda view, allocation: f_alpha(view.ages, 0.5)[
        allocation.scheduled
    ].sum(),
}


def run(policy, gains_of, ages, power=1.0, threshold=2.0, rounds=6, seed=0, **known):
    """Owners of each round, and the ages after the last; every allocation is proven on the way."""
    deadline = known.pop("deadline_slots", np.inf)
    access_point = AccessPoint(policy, len(ages), Streams(seed), deadline_slots=deadline)
    access_point.describe(ages=ages, **known)
    owners = []
    for t in range(rounds):
        uplink = Uplink(gains_of(t), power, threshold)
        allocation = access_point.plan(uplink)
        check_aggregation(allocation)
        owners.append(allocation.owner.tolist())
        access_point.receive(np.flatnonzero(allocation.scheduled))
    return owners, access_point.ages


def check_aggregation(allocation):
    """What may be said of the weights of the updates."""
    factors = allocation.aggregation
    if factors is not None:
        assert factors.shape == (allocation.ue_count,)
        assert np.isfinite(factors).all()
        assert (factors >= 0).all()
        assert not factors[~allocation.scheduled].any()


def cell(ues, subchannels, edge_snr_db=0.0):
    return lambda t: draw_gains(np.random.default_rng([7, t]), ues, subchannels, edge_snr_db)


def feedback(ues, known=1.0):
    """Something to know of each UE, with a ``known`` share of it reported already."""
    rng = np.random.default_rng(11)
    drawn = [rng.exponential(size=ues) for _ in range(2)]
    heard = rng.random(ues) < known
    return Feedback(*(np.where(heard, values, np.nan) for values in drawn))


def circumstances(ues, known=0.7):
    """Everything that a view may hold beside channels and ages, different for each UE."""
    rng = np.random.default_rng(13)
    return {
        "data_sizes": rng.integers(10, 1000, ues),
        "feedback": feedback(ues, known),
        "compute_slots": rng.exponential(0.5, ues),
        "deadline_slots": 2.5,
    }


# ----------------------------------------------------------------------------- what is feasible
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("ues", "subchannels"), [(30, 10), (3, 10), (10, 10), (1, 10), (1, 1), (10, 1)]
)
@pytest.mark.parametrize("threshold", [0.0, 1.0, 4.0])
def test_allocations_are_feasible_and_not_empty(name, ues, subchannels, threshold):
    owners, _ = run(
        policies.make_policy(name), cell(ues, subchannels, 20.0), np.zeros(ues, int),
        threshold=threshold,
    )  # fmt: skip
    assert any(owner >= 0 for round_ in owners for owner in round_)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("threshold", "strength"), [(1e3, 1.0), (2.0, 0.0), (0.0, 0.0)])
def test_nobody_reaches_the_threshold(name, threshold, strength):
    """A threshold out of reach, and channels that carry nothing at all."""
    owners, ages = run(
        policies.make_policy(name), lambda t: strength * cell(5, 4)(t), np.arange(5),
        threshold=threshold,
    )  # fmt: skip
    assert all(owner == -1 for round_ in owners for owner in round_)
    assert ages.tolist() == [6, 7, 8, 9, 10]


@pytest.mark.parametrize("name", NAMES)
def test_zero_gains_are_never_used(name):
    def half_dead(t):
        gains = cell(12, 6, 20.0)(t)
        gains[:, ::2] = 0.0
        gains[3] = 0.0
        return gains

    owners, _ = run(policies.make_policy(name), half_dead, np.zeros(12, int), threshold=0.0)
    for round_ in owners:
        assert all(owner == -1 for owner in round_[::2])
        # Whoever draws with replacement may draw too few to fill the spectrum.
        assert name == "importance-channel" or all(owner >= 0 for owner in round_[1::2])
        assert 3 not in round_


@pytest.mark.parametrize("name", NAMES)
def test_without_subchannels_nobody_is_served(name):
    owners, _ = run(policies.make_policy(name), lambda _: np.empty((5, 0)), np.arange(5))
    assert owners == [[]] * 6


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("age", [0, 10**15, 2.0**53])
def test_ages_that_are_all_the_same(name, age):
    run(policies.make_policy(name), cell(10, 4), np.full(10, age))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("known", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e100])
def test_whatever_was_heard(name, known, scale):
    """Nothing, something or everything is known, and all of it may be zero or huge."""
    heard = feedback(12, known)
    heard = Feedback(heard.losses * scale, heard.update_norms * scale)
    owners, _ = run(
        policies.make_policy(name), cell(12, 4, 20.0), np.zeros(12, int), feedback=heard
    )
    assert any(owner >= 0 for round_ in owners for owner in round_)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("deadline", [1e-9, 1.0, 3.0])
def test_deadlines(name, deadline):
    """Also one that nobody meets: whether anyone is served then is up to the policy."""
    known = circumstances(12) | {"deadline_slots": deadline}
    run(policies.make_policy(name), cell(12, 4, 20.0), np.arange(12), **known)


# -------------------------------------------------------------------- what it may depend on
@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_schedule(name):
    first, again = (
        run(policies.make_policy(name), cell(30, 10), np.zeros(30, int), **circumstances(30))[0]
        for _ in range(2)
    )
    assert first == again


@pytest.mark.parametrize("name", NAMES)
def test_one_object_serves_two_runs_at_once(name):
    """Whatever evolves is in the state: runs that take turns do not disturb each other."""
    policy = policies.make_policy(name)
    alone = run(policy, cell(30, 10), np.zeros(30, int))
    run(policy, cell(30, 10, 20.0), np.arange(30), seed=5)
    assert run(policy, cell(30, 10), np.zeros(30, int))[0] == alone[0]


@pytest.mark.parametrize("name", NAMES)
def test_the_view_is_left_as_it_was(name):
    gains, ages, known = cell(10, 4)(0), np.arange(10), circumstances(10)
    view = view_of(Uplink(gains, 1.0, 2.0), ages, **known)
    heard = [getattr(view.feedback, f.name) for f in fields(Feedback)]
    arrays = [gains, view.uplink.best_gains, ages, view.data_sizes, view.compute_slots, *heard]
    before = [array.copy() for array in arrays]
    for t in range(3):
        policies.make_policy(name).schedule(view, Streams(0).policy(t))
    for array, copied in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copied)


@pytest.mark.parametrize("name", NAMES)
def test_it_reads_only_the_feedback_that_it_asks_for(name):
    policy, known = policies.make_policy(name), circumstances(20)
    kept = {report: getattr(known["feedback"], report) for report in policy.reads}
    asked = known | {"feedback": replace(Feedback.none(20), **kept)}
    with_all, with_asked = (
        run(policy, cell(20, 8, 10.0), np.arange(20), **given)[0] for given in (known, asked)
    )
    assert with_all == with_asked


class RelabelledChance:
    """A generator whose draws, one entry per UE each, come in the order of the new labels.

    Single numbers stay what they are. ``permutation`` is taken as a rank for each UE. Whatever
    draws anything else breaks the convention of `Policy.schedule`.
    """

    def __init__(self, rng, ues):
        self._rng, self._ues = rng, ues

    def __getattr__(self, name):
        assert name not in {"choice", "shuffle", "permuted", "bytes", "spawn", "bit_generator"}

        def draw(*args, **kwargs):
            drawn = getattr(self._rng, name)(*args, **kwargs)
            assert np.ndim(drawn) == 0 or drawn.shape == self._ues.shape
            return drawn if np.ndim(drawn) == 0 else drawn[self._ues]

        return draw


def relabelled(view, state, ues, subchannels):
    """The same view in which UE i is what was UE ``ues[i]``, and the subchannels likewise."""
    uplink = view.uplink
    heard = (getattr(view.feedback, f.name)[ues] for f in fields(Feedback))
    gains = uplink.gains[np.ix_(ues, subchannels)]
    return replace(
        view,
        uplink=Uplink(gains, uplink.power_budget[ues], uplink.rate_threshold[ues]),
        ages=view.ages[ues],
        data_sizes=view.data_sizes[ues],
        compute_slots=view.compute_slots[ues],
        feedback=Feedback(*heard),
        state=state,
    )


def same_answer(name, view, allocation, other_view, other, ues, subchannels):
    """Whether ``other`` is the same allocation under other labels, or as good as it."""
    if name in VALUES:
        value = VALUES[name]
        return value(other_view, other) == pytest.approx(value(view, allocation), rel=1e-9)
    label = np.append(np.argsort(ues), -1)  # of each old UE, and of nobody
    if (other.owner != label[allocation.owner[subchannels]]).any():
        return False
    if allocation.aggregation is None:
        return other.aggregation is None
    return np.allclose(other.aggregation, allocation.aggregation[ues], rtol=1e-9, atol=0.0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("threshold", "known", "spread"),
    [(0.0, 0.0, 0.0), (0.0, 0.7, 0.5), (2.0, 0.7, 0.0), (2.0, 0.0, 0.5), (4.0, 0.0, 0.0),
     (4.0, 0.7, 0.5)],
)  # fmt: skip
def test_relabelling_relabels_the_answer(name, threshold, known, spread):
    """No UE and no subchannel is preferred for its index, whatever it may spend and must reach.

    Ages are distinct at the start: round-robin's first queue has to begin somewhere, and takes
    the index where they are equal. Both sides go on from what the first one answered, so that an
    equally good answer of an optimal policy does not send them apart.
    """
    policy, (k, n) = policies.make_policy(name), (20, 7)
    rng = np.random.default_rng(17)
    ues, subchannels = rng.permutation(k), rng.permutation(n)
    access_point, state = AccessPoint(policy, k, Streams(0)), initial_state(policy, k)
    access_point.describe(ages=rng.permutation(k))
    for t in range(8):
        factor = np.exp(spread * np.random.default_rng(t).standard_normal((2, k)))
        uplink = Uplink(cell(k, n, 10.0)(t), factor[0], threshold * factor[1])
        shown = circumstances(k, known)
        access_point.deadline_slots = shown["deadline_slots"]
        access_point.describe(
            **{name: shown[name] for name in ("data_sizes", "compute_slots", "feedback")}
        )
        view = view_of(access_point.mask_ineligible(uplink), access_point.ages, t=t, **shown)
        allocation = access_point.plan(uplink)
        other_view = relabelled(view, state, ues, subchannels)
        other = policy.schedule(other_view, RelabelledChance(Streams(0).policy(t), ues))
        other.validate(other_view.uplink)
        check_aggregation(other)
        assert same_answer(name, view, allocation, other_view, other, ues, subchannels)
        access_point.receive(np.flatnonzero(allocation.scheduled))


def initial_state(policy, ues):
    per_ue = {name: np.full(ues, float(fill)) for name, fill in policy.state_per_ue.items()}
    return State(per_ue, dict(policy.state_scalars))


@pytest.mark.parametrize("name", NAMES)
def test_only_gains_times_power_matter(name):
    """With more power and weaker gains, by powers of two, nothing changes, nor by rounding."""
    policy, gains_of, known = policies.make_policy(name), cell(30, 10, 10.0), circumstances(30)
    rng = np.random.default_rng(19)
    factor, threshold = 2.0 ** rng.integers(-6, 7, 30), rng.uniform(0.5, 4.0, 30)
    alike = run(policy, gains_of, np.zeros(30, int), 1.0, threshold, **known)[0]
    scaled = run(
        policy, lambda t: gains_of(t) / factor[:, None], np.zeros(30, int), factor, threshold,
        **known,
    )[0]  # fmt: skip
    assert scaled == alike


@pytest.mark.parametrize("name", NAMES)
def test_a_ue_that_cannot_be_served_is_as_one_that_is_not_there(name):
    """An infinite threshold is the same as gains of 0."""
    policy, gains_of = policies.make_policy(name), cell(20, 8, 10.0)
    out = np.arange(20) % 3 == 0
    threshold = np.where(out, np.inf, 2.0)

    def masked(t):
        return np.where(out[:, None], 0.0, gains_of(t))

    first, other = (
        run(policy, gains, np.zeros(20, int), threshold=rates, **circumstances(20))[0]
        for gains, rates in ((gains_of, threshold), (masked, 2.0))
    )
    assert first == other
    assert not out[[ue for owners in first for ue in owners if ue >= 0]].any()


# ----------------------------------------------------------------- devices that come and go
class ChanceByName:
    """A generator that gives each UE the draws of its name, wherever its row is."""

    def __init__(self, rng, names, everyone):
        self._rng, self._rows, self._everyone = rng, [everyone.index(n) for n in names], everyone

    def random(self, size=None):
        return (
            self._rng.random()
            if size is None
            else self._rng.random(len(self._everyone))[self._rows]
        )

    def permutation(self, _):
        return self._rng.permutation(len(self._everyone))[self._rows]


class StreamsByName(Streams):
    """Streams whose draws follow the names of the UEs that are present."""

    everyone = tuple("abcdefghij")
    present = everyone

    def policy(self, t):
        return ChanceByName(super().policy(t), type(self).present, self.everyone)


@pytest.mark.parametrize("name", NAMES)
def test_ages_and_state_follow_the_id_when_devices_come_and_go(name):
    """Two access points list the same devices in other orders: each device fares the same.

    Devices join late, leave, and come back; twice the number stays, but not the members. New ones
    are listed last and alike: round-robin puts them in its queue as they come.
    """
    everyone = StreamsByName.everyone
    visits = ["abcde", "abcdefg", "bcdefg", "abcdfg", "ahijbc", "abcdefghij", "ijab", "abcdefghij"]
    policy, rng = policies.make_policy(name), np.random.default_rng(3)
    # Optima may be shared by several sets of UEs, so that orders may matter: one is enough there.
    points = [
        AccessPoint(policy, visits[0], StreamsByName(0)) for _ in range(1 + (name not in VALUES))
    ]
    ages: dict[str, int] = {}
    for t, members in enumerate(visits):
        gains = draw_gains(np.random.default_rng([5, t]), 10, 4, 10.0)
        known = sorted(ue for ue in members if ue in ages)
        new = [ue for ue in members if ue not in ages]
        answers = []
        for point, listed in zip(points, (known, rng.permutation(known).tolist()), strict=False):
            order = [*listed, *new]
            rows = [everyone.index(ue) for ue in order]
            point.set_present(order)
            point.describe(data_sizes=10 + np.array(rows) ** 2)
            assert point.ages.tolist() == [ages.get(ue, 0) for ue in order]
            StreamsByName.present = order
            allocation = point.plan(Uplink(gains[rows], 1.0, 2.0))
            served = np.flatnonzero(allocation.scheduled)
            point.receive(served, {report: np.array(rows)[served] + t for report in policy.reads})
            answers.append({order[ue] for ue in served})
        assert answers[0] == answers[-1]
        ages = {ue: age + 1 for ue, age in ages.items()} | dict.fromkeys(new, 1)
        ages |= dict.fromkeys(answers[0], 0)


# ----------------------------------------------------------------------------- what it is called
@pytest.mark.parametrize("name", NAMES)
def test_it_is_described(name):
    policy = policies.make_policy(name)
    assert len(policies.summary(policy.name)) > 20
    assert str(policy).startswith(name.partition(":")[0])
    assert policies.make_policy(policy.name, **policy.parameters) == policy


@pytest.mark.parametrize("name", NAMES)
def test_parameters_written_as_text(name):
    """Numbers written in a name come as floats, and make the same policy."""
    policy = policies.make_policy(name)
    written = ",".join(f"{key}={value}" for key, value in policy.parameters.items())
    again = policies.make_policy(f"{policy.name}:{written}")
    assert again == policy
    assert str(again) == str(policy)
