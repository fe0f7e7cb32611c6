"""Traffic: slots against a slow twin and the access point, closed forms, edges."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

from agewise import (
    Allocation,
    Scenario,
    Streams,
    Uplink,
    schedule_traffic,
    simulate,
    traffic,
)
from agewise.core.random import fold_in, random_bits, uniform, uniforms
from agewise.policies import AgeBased, Policy, RoundRobin
from agewise.radio import Block
from agewise.spectrum import Greedy
from agewise.traffic import read_arrivals
from tests import reference
from tests.scenarios import tiny
from tests.test_cli import agewise_command

ARRIVALS = [None, 0.3, np.linspace(0.05, 1.0, 12)]
FIELDS = ("mean_age", "mean_peak_age", "oldest", "deliveries", "age_counts", "subchannels_used",
          "empty_share")  # fmt: skip


def in_regime(edge_snr_db, threshold, **changes):
    return tiny(**{"channel.link.edge_snr_db": edge_snr_db, "threshold.rate": threshold}, **changes)


def word(key, t, ue):
    return np.uint64(random_bits(np.uint64(fold_in(key, t)), ue))


def arrives(streams, t, ue, chance):
    return uniform(word(streams.arrivals, t, ue)) < chance


def assert_same(one, other):
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def twin(scenario, alpha, count, chances, seed):
    """Everything but the draws in plain Python; ties go to the lowest index."""
    streams, ues = Streams(seed), scenario.cell.ues
    channel = scenario.make_channel(streams)
    threshold = scenario.rate_threshold
    ages, generated, delivered = [0] * ues, [None] * ues, [0] * ues
    history, peaks, used = [], [[] for _ in range(ues)], []
    for t in range(count):
        for ue in range(ues):
            if arrives(streams, t, ue, chances[ue]):
                generated[ue] = t
        gains = channel.block(t).true.tolist()
        for ue in range(ues):
            if generated[ue] is None:
                gains[ue] = [0.0] * len(gains[ue])
        weights = [reference.f_alpha(age, alpha) for age in ages]
        owner, _ = reference.pack(gains, weights, range(ues), 1.0, threshold)
        used.append(sum(ue >= 0 for ue in owner))
        for ue in range(ues):
            if ue in owner:
                peaks[ue].append(ages[ue])
                ages[ue], generated[ue] = t - generated[ue], None
                delivered[ue] += 1
            else:
                ages[ue] += 1
        history.append(list(ages))
    return history, peaks, delivered, used


@pytest.mark.parametrize("arrivals", [1.0, 0.2, np.linspace(0.05, 1.0, 12)])
def test_statistics_are_those_of_a_slow_twin(arrivals):
    scenario, count = tiny(), 150
    policy = AgeBased(alpha=0.5, ties="lowest-index")
    traffic = schedule_traffic(scenario, policy, count, arrivals=arrivals, seed=8)
    chances = np.broadcast_to(arrivals, 12)
    history, peaks, delivered, used = twin(scenario, 0.5, count, chances, 8)
    ages = np.array(history)
    assert traffic.deliveries.tolist() == delivered
    np.testing.assert_allclose(traffic.mean_age, ages.mean(axis=0))
    assert traffic.oldest.tolist() == ages.max(axis=0).tolist()
    np.testing.assert_allclose(traffic.mean_peak_age, [np.mean(p) if p else np.nan for p in peaks])
    assert traffic.age_counts.tolist() == np.bincount(ages.ravel()).tolist()
    assert traffic.subchannels_used == pytest.approx(np.mean(used))
    assert traffic.empty_share == pytest.approx(np.mean(np.array(used) == 0))
    assert traffic.throughput == pytest.approx(sum(delivered) / count)
    assert traffic.goodput == pytest.approx(4.0 * sum(delivered) / count)
    squares = sum(d * d for d in delivered)
    assert traffic.fairness == pytest.approx(sum(delivered) ** 2 / (12 * squares))
    costs = [sum(reference.f_alpha(a, 0.25) for a in row) for row in history]
    assert traffic.age_cost(0.25) == pytest.approx(np.mean(costs))
    for share in (0.0, 0.1, 0.5, 0.99, 1.0):
        by_sorting = np.quantile(ages, share, method="inverted_cdf")
        assert traffic.age_quantile(share) == by_sorting


@pytest.mark.parametrize("policy", [AgeBased(), RoundRobin()], ids=str)
def test_without_a_threshold_the_ages_go_round(policy):
    """12 UEs on 4 subchannels: each is served every third slot, its ages go 0, 1, 2.

    Only the start differs, as all ages are 0 before it: those served in slot 1 begin with
    1, 0, 1, 2 and end with 0, 1, one less in sum than whole cycles.
    """
    scenario = in_regime(10.0, 0.0, **{"cell.subchannels": 4})
    traffic = schedule_traffic(scenario, policy, 750)
    assert traffic.deliveries.tolist() == [250] * 12
    assert sorted(traffic.mean_age) == [749 / 750] * 4 + [1.0] * 8
    assert traffic.oldest.tolist() == [2] * 12
    assert traffic.age_counts.tolist() == [3_000, 3_004, 2_996]
    # Before their first delivery the ages are 0, 1 and 2, later always 2.
    assert sorted(traffic.mean_peak_age) == [1.992] * 4 + [1.996] * 4 + [2.0] * 4
    assert (traffic.fairness, traffic.subchannels_used, traffic.empty_share) == (1.0, 4.0, 0.0)


@pytest.mark.parametrize("policy", ["age-based", "max-pack"])
def test_served_in_every_slot_the_age_is_geometric(policy):
    """As many subchannels as UEs and no threshold: each update is delivered as it is generated.

    The age after a slot is then the time since the last generation: P(age = a) = p (1 - p)^a,
    of mean (1 - p) / p. Its correlation over d slots is (1 - p)^d, so the mean of n slots has
    the variance (1 - p) / p^2 (2 / p - 1) / n.
    """
    chances, n = np.array([0.05, 0.3, 0.5, 0.9, 1.0] * 2), 20_000
    scenario = in_regime(10.0, 0.0, **{"cell.ues": 10, "cell.subchannels": 10})
    traffic = schedule_traffic(scenario, policy, n, arrivals=chances)
    deviation = np.sqrt((1 - chances) / chances**2 * (2 / chances - 1) / n)
    assert (abs(traffic.mean_age - (1 - chances) / chances) <= 4 * deviation + 1 / n).all()
    deviation = np.sqrt(chances * (1 - chances) / n)
    assert (abs(traffic.participation - chances) <= 4 * deviation).all()
    never = np.prod(1 - chances)
    assert traffic.empty_share == pytest.approx(never, abs=1e-3)


@pytest.mark.parametrize("policy", ["age-based", "max-pack", "random", "round-robin"])
def test_an_arrival_in_every_slot_is_the_case_of_the_paper(policy):
    always, one = (schedule_traffic(tiny(), policy, 80, arrivals=a) for a in (None, 1.0))
    assert_same(always, one)


def test_arrivals_of_ones_own_are_those_that_happen(tmp_path):
    streams = Streams(4)
    own = np.array([uniforms(streams.arrivals, t, 12) < 0.3 for t in range(60)])
    drawn = schedule_traffic(tiny(), "age-based", 60, arrivals=0.3, seed=4)
    assert_same(drawn, schedule_traffic(tiny(), "age-based", 60, arrivals=own, seed=4))
    np.savetxt(tmp_path / "a.csv", own, "%d", ",")
    np.savez(tmp_path / "a.npz", arrivals=own)
    for name in ("a.csv", "a.npz"):
        read = read_arrivals(tmp_path / name)
        assert_same(drawn, schedule_traffic(tiny(), "age-based", 60, arrivals=read, seed=4))
    (tmp_path / "tiny.toml").write_text(tiny().to_toml())
    told = ("traffic", "tiny.toml", "--rounds", "60", "--seed", "4", "--json", "--arrivals")
    said = agewise_command(*told, "a.csv", cwd=tmp_path)
    assert json.loads(said.stdout)["deliveries"] == drawn.deliveries.tolist(), said.stderr
    np.savez(tmp_path / "b.npz", arrivals=own[0])
    with pytest.raises(ValueError, match=r"arrivals must be numbers\[slot, ue\], not of shape"):
        read_arrivals(tmp_path / "b.npz")


@pytest.mark.parametrize("arrivals", ARRIVALS, ids=["always", "scalar", "vector"])
@pytest.mark.parametrize("policy", ["age-based", "max-pack", "random", "round-robin"])
def test_what_holds_for_every_policy(policy, arrivals):
    traffic = schedule_traffic(tiny(), policy, 200, arrivals=arrivals, seed=1)
    assert traffic.age_counts.sum() == 200 * 12
    assert traffic.age_counts @ np.arange(traffic.age_counts.size) == pytest.approx(
        200 * traffic.mean_age.sum()
    )
    assert traffic.age_counts[-1] > 0
    assert traffic.oldest.max() == traffic.age_counts.size - 1
    assert traffic.throughput <= traffic.subchannels_used <= 5
    assert 1 / 12 <= traffic.fairness <= 1 + 1e-12
    assert (traffic.mean_peak_age[traffic.deliveries > 0] <= traffic.oldest.max()).all()
    if arrivals is not None:
        chances = np.broadcast_to(arrivals, 12)
        streams = Streams(1)
        generated = [
            sum(arrives(streams, t, ue, chances[ue]) for t in range(200)) for ue in range(12)
        ]
        assert (traffic.deliveries <= generated).all()


@pytest.mark.parametrize("policy", ["age-based", "round-robin"])
def test_the_size_of_chunks_does_not_matter(policy, monkeypatch):
    whole = schedule_traffic(tiny(), policy, 100, arrivals=0.4)
    done = []
    monkeypatch.setattr(traffic, "_CHUNK_SLOTS", 7)
    assert_same(whole, schedule_traffic(tiny(), policy, 100, arrivals=0.4, progress=done.append))
    assert done == [*range(7, 100, 7), 100]


def test_a_scenario_is_its_channel_with_its_threshold():
    scenario, streams = tiny(), Streams(3)
    channel = scenario.make_channel(streams)
    assert_same(
        schedule_traffic(scenario, "age-based", 50, seed=3),
        schedule_traffic(channel, "age-based", 50, rate_threshold=4.0, seed=3),
    )


def test_nobody_in_reach_ages_everyone():
    traffic = schedule_traffic(in_regime(10.0, 1000.0), "age-based", 30)
    assert traffic.empty_share == 1.0
    assert traffic.mean_age.tolist() == [15.5] * 12
    assert np.isnan(traffic.mean_peak_age).all()
    assert np.isnan(traffic.fairness)
    written = json.loads(json.dumps(traffic.to_dict(), allow_nan=False))
    assert written["fairness"] is None
    assert written["mean_peak_age"] == [None] * 12
    assert written["oldest"] == [30] * 12


def test_draws_are_pinned():
    """Results of one version stay reproducible: a changed stream must be a decision."""
    streams = Streams(2020)
    assert int(streams.arrivals) == 14311566436908147224
    traffic = schedule_traffic(tiny(), "max-pack", 100, arrivals=0.5)
    assert traffic.deliveries.tolist() == [1, 24, 11, 15, 40, 4, 44, 11, 37, 33, 49, 16]


@dataclass(frozen=True)
class Trace:
    """A channel that repeats what it was given."""

    blocks: list
    power_budget: float = 1.0

    @property
    def ue_count(self):
        return len(self.blocks[0])

    @property
    def subchannel_count(self):
        return len(self.blocks[0][0])

    def block(self, t):
        gains = np.array(self.blocks[t % len(self.blocks)])
        return Block(gains, gains, None)


def test_any_channel_will_do():
    """Two UEs, one subchannel, the better of equal ages first; then they alternate."""
    trace = Trace([[[3.0], [0.0]], [[3.0], [3.0]]])
    traffic = schedule_traffic(trace, "age-based", 10, rate_threshold=1.0)
    assert traffic.deliveries.tolist() == [5, 5]
    assert traffic.mean_age.tolist() == [0.5, 0.5]
    assert traffic.oldest.tolist() == [1, 1]
    assert "10 slots: mean age 0.500, 1.000 updates per slot" in repr(traffic)


def test_each_ue_has_its_own_budget_and_threshold():
    """The one subchannel serves UE 0 by its power, UE 1 by its low threshold, and UE 2 never."""
    trace = Trace([[[1.0], [1.0], [9.0]]], np.array([3.0, 1.0, 1.0]))
    traffic = schedule_traffic(trace, "age-based", 10, rate_threshold=[1.0, 0.5, np.inf])
    assert traffic.deliveries.tolist() == [5, 5, 0]
    assert traffic.goodput == pytest.approx(0.5 * 1.0 + 0.5 * 0.5)
    assert json.loads(json.dumps(traffic.to_dict()))["rate_threshold"] == [1.0, 0.5, None]
    equal = schedule_traffic(tiny(), "age-based", 50, seed=2).to_dict()
    channel = tiny().make_channel(Streams(2))
    assert (
        schedule_traffic(channel, rounds=50, rate_threshold=[4.0] * 12, seed=2).to_dict() == equal
    )
    with pytest.raises(ValueError, match="rate_threshold must be a number, or have one for each"):
        schedule_traffic(trace, "age-based", 10, rate_threshold=[1.0, 0.5])


class Faded:
    """A user's own channel of exponential gains."""

    power_budget = 1.0
    moves = False

    def __init__(self, mean_gains, subchannels):
        self.mean_gains, self.subchannel_count = mean_gains, subchannels
        self.ue_count = mean_gains.size

    def block(self, t):
        fading = np.random.default_rng(t).exponential(size=(self.ue_count, self.subchannel_count))
        gains = self.mean_gains[:, np.newaxis] * fading
        return Block(gains, gains, None)


def test_a_channel_without_ues_or_subchannels():
    for ues, subchannels in ((0, 3), (3, 0), (0, 0)):
        channel = Faded(np.ones(ues), subchannels)
        for policy in ("age-based", "round-robin"):
            traffic = schedule_traffic(channel, policy, 4, rate_threshold=1.0)
            assert traffic.deliveries.tolist() == [0] * ues
            assert traffic.empty_share == 1.0
            json.dumps(traffic.to_dict(), allow_nan=False)
    with pytest.raises(ValueError, match="no ages"):
        traffic.age_quantile(0.5)


def test_a_channel_that_changes_its_size_stops_with_the_slot():
    trace = Trace([[[1.0, 2.0]], [[1.0]]])
    with pytest.raises(ValueError, match=r"shape \(1, 1\) in slot 1, but 1 UEs and 2 subch"):
        schedule_traffic(trace, "random", 3, rate_threshold=0.0)


def test_wrong_gains_of_a_cell_are_told_with_their_place():
    bad = Faded(np.array([1.0, np.nan]), 3)
    with pytest.raises(ValueError, match="gain of UE 1 on subchannel 0 is nan"):
        schedule_traffic(bad, "age-based", 5, rate_threshold=1.0)


def test_a_subclass_schedules_in_its_own_way():
    @dataclass(frozen=True)
    class Nobody(AgeBased):
        def schedule(self, view, rng):
            return Greedy().pack(Uplink(view.uplink.gains, 1.0, 1e6), view.ages)

    assert schedule_traffic(tiny(), Nobody(), 5).empty_share == 1.0


@dataclass(frozen=True)
class Fixed(Policy):
    """A policy that always gives the same answer."""

    name = "fixed"
    answer: object

    def schedule(self, view, rng):
        return self.answer(view) if callable(self.answer) else self.answer


@pytest.mark.parametrize(
    ("answer", "threshold", "message"),
    [
        (lambda v: Allocation.of(v.uplink, [0, 0], [1.0, 1.0]), 1.0, r": power.*\(3c\)"),
        (lambda v: Allocation.of(v.uplink, [0, 1], [1.0, 1.0]), 0.0, ": UE 1 .*nothing to send"),
        (
            Greedy().pack(Uplink(np.ones((3, 2)), 1.0, 0.0), [1, 1, 1]),
            0.0,
            ": .*of 3 UEs and 2 subch",
        ),
        (None, 0.0, ": returned None instead of an Allocation"),
    ],
)
def test_a_wrong_answer_stops_with_the_policy_the_slot_and_the_cause(answer, threshold, message):
    with pytest.raises(ValueError, match=r"fixed:answer=.* in (slot|round) 0" + message):
        schedule_traffic(
            Trace([[[3.0, 3.0], [3.0, 3.0]]]), Fixed(answer), 2,
            rate_threshold=threshold, arrivals=[1.0, 1e-9],
        )  # fmt: skip


LATE = tiny(
    timing={"kind": "slots", "deadline_slots": 2.0, "eligible": "everyone"},
    **{"devices.computing": {"kind": "slots", "median_slots": 1.0, "sigma": 0.5}},
)


PERIODIC = LATE.with_(
    timing={"kind": "slots"}, pace={"kind": "periodic", "period_slots": 3.0, "waiting": "hold"}
)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rounds": 0}, "rounds must be a whole number of at least 1, not 0"),
        ({"rounds": 2.5}, "rounds must be a whole number"),
        ({"arrivals": 0.0}, "above 0 and at most 1: that of UE 0 is 0"),
        ({"arrivals": [0.5] * 11 + [1.5]}, "that of UE 11 is 1.5"),
        ({"arrivals": float("nan")}, "that of UE 0 is nan"),
        ({"arrivals": [0.5, 0.5]}, r"each of the 12 UEs, .* not \[0.5, 0.5\]"),
        ({"arrivals": "often"}, "one probability, .* not 'often'"),
        ({"arrivals": np.ones((4, 12))}, "4 slots and 12 UEs: .* at least 5 slots of 12 UEs"),
        ({"arrivals": np.full((20, 12), 0.5)}, "must be 0 or 1 each"),
        ({"rate_threshold": 2.0}, "comes from the scenario"),
        ({"channel": LATE}, 'scenario.with_.*"timing.eligible": "in-time"'),
        ({"channel": PERIODIC}, 'scenario.with_.*"pace": "rounds".*--set pace=rounds'),
        ({"policy": "oort"}, "oort.* reads losses, which only learning gives"),
        ({"policy": "age-basd"}, "did you mean age-based"),
        ({"seed": -1}, "seed must be"),
        ({"channel": Trace([[[1.0]]])}, "rate_threshold must be given"),
        (
            {"channel": Trace([[[1.0]]], -1.0), "rate_threshold": 1.0},
            "power budget must be positive",
        ),
    ],
)
def test_wrong_arguments(given, message):
    arguments = {"channel": tiny(), "policy": "age-based", "rounds": 5} | given
    with pytest.raises(ValueError, match=message):
        schedule_traffic(**arguments)


def test_wrong_share_of_a_quantile():
    traffic = schedule_traffic(tiny(), "age-based", 5)
    with pytest.raises(ValueError, match=r"share must be in \[0, 1\], not 2"):
        traffic.age_quantile(2)


def test_devices_of_a_scenario_meet_traffic_as_they_meet_learning():
    """Power, thresholds by the time that is left, and who is there: the same ages as a run has."""
    mixed = Scenario.preset("mixed-devices").with_(
        **{"data.dataset": "synthetic", "run.rounds": 40, "learn.local_steps": 1}
    )
    history = simulate(mixed, "age-based", 3)
    traffic = schedule_traffic(mixed, "age-based", 40, seed=3)
    np.testing.assert_allclose(traffic.mean_age, history.ages.mean(axis=0))
    assert traffic.deliveries.tolist() == history.participation.tolist()
    in_time = LATE.with_(**{"timing.eligible": "in-time"})
    history = simulate(in_time, "max-pack", 1)
    traffic = schedule_traffic(in_time, "max-pack", len(history), seed=1)
    assert traffic.deliveries.tolist() == history.participation.tolist()
    assert (traffic.deliveries == 0).any()
