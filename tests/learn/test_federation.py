"""The learning half of a round: state in and out, and fresh numbers for policies that ask."""

from dataclasses import dataclass

import numpy as np
import pytest

from agewise import Streams, simulate
from agewise.learn import update_reports
from agewise.policies import AgeBased, Policy, make_policy
from agewise.simulation import samples_of
from tests.scenarios import in_seconds, tiny

KEPT = {
    "learn.compression": "sign",
    "learn.aggregation": {"kind": "memory", "discount": "none"},
    "learn.local": "control-variates",
}
SECONDS = in_seconds()


@pytest.fixture
def federation():
    return samples_of(tiny(**KEPT), Streams(2)).federation(tiny(**KEPT))


def content(state):
    return [state.params.tobytes(), *({k: x.tobytes() for k, x in s.items()} for s in state[1:4])]


def test_a_round_follows_from_its_state_alone(federation):
    """Going two ways from a copy: the same ones give the same bytes, others do not touch it."""
    state = federation.round(federation.init(), np.array([1, 4, 7]), 0).state
    other, again = state.copy(), state.copy()
    federation.round(other, np.array([0, 1, 2]), 1)
    one, two = (federation.round(each, np.array([2, 4]), 1).state for each in (state, again))
    assert content(one) == content(two)
    assert one.unsent["unsent"][4].any()


@pytest.mark.parametrize("kind", ["memory", "variance-reduced"])
def test_remembered_updates_count_with_the_step_of_the_round(kind):
    """G = u / eta of the round whose model an update started from, applied with eta of now."""
    rule = {"kind": kind} | ({"discount": "none"} if kind == "memory" else {})
    scenario = tiny(**{"learn.aggregation": rule, "learn.step_decay": 0.5})
    federation = samples_of(scenario, Streams(2)).federation(scenario)
    sizes, state, gradients = federation.learner.sizes, federation.init(), {}
    for t, versions in ((0, [0, 0]), (1, [1]), (2, [0, 2])):
        ues = np.arange(12)[3 * t : 3 * t + len(versions)]
        state = state.keep(t, {0})
        start, before = state.params, dict(gradients)
        late = None if t == 1 else np.array(versions)
        state, updates, _ = federation.round(state, ues, t, versions=late)
        steps = 1.0 / (1.0 + 0.5 * np.array(versions))
        new = dict(
            zip(ues.tolist(), updates.moves.astype(float) / steps[:, np.newaxis], strict=True)
        )
        gradients |= new
        if kind == "memory":
            moved = sum(sizes[ue] * gradient for ue, gradient in gradients.items())
            moved = moved / sum(sizes[ue] for ue in gradients)
        else:
            moved = sum(sizes[ue] * gradient for ue, gradient in new.items()) / sizes[ues].sum()
            moved = moved + sum(sizes[ue] * old for ue, old in before.items()) / sizes.sum()
        np.testing.assert_allclose(state.params, start + moved / (1.0 + 0.5 * t), atol=1e-6)


def test_a_probe_is_what_the_round_would_bring_and_changes_nothing(federation):
    state = federation.round(federation.init(), np.array([1, 4, 7]), 0).state
    before, ues = content(state), np.arange(12)
    fresh = federation.probe(state, ues, 1)
    assert content(state) == before
    np.testing.assert_array_equal(fresh.losses, federation.learner.losses(state.params, ues))
    models = federation.train(state, np.array([3, 5]), 1)
    norms = update_reports({"update_norms"}, state.params, models)["update_norms"]
    np.testing.assert_array_equal(fresh.update_norms[[3, 5]], norms)


@dataclass(frozen=True)
class Prober(Policy):
    """As age-based, but everybody is asked first; keeps what it saw."""

    name = "prober"
    reads = frozenset({"losses", "update_norms"})
    probes = True

    def schedule(self, view, rng):
        SEEN.append((view.feedback.losses, view.feedback.update_norms))
        return AgeBased().schedule(view, rng)


SEEN: list = []


def test_a_policy_that_probes_sees_fresh_numbers_at_a_cost():
    scenario = tiny(**SECONDS, **{"run.rounds": 3})
    SEEN.clear()
    probed, plain = simulate(scenario, Prober(), 1), simulate(scenario, "age-based", 1)
    np.testing.assert_array_equal(probed.accuracy, plain.accuracy)
    federation = samples_of(scenario, Streams(1)).federation(scenario)
    state, everyone = federation.init(), np.arange(12)
    for t, seen in enumerate(SEEN):
        np.testing.assert_array_equal(seen, federation.probe(state, everyone, t))
        state = federation.round(state, plain.received[t], t).state
    devices = scenario.device_table(Streams(1))
    more = {
        n: probed.numbers(n) - plain.numbers(n)
        for n in ("seconds", "joules", "bits", "channel_uses")
    }
    assert more["seconds"] == pytest.approx([devices.compute_time.max()] * 3)
    assert more["joules"] == pytest.approx([devices.compute_j.sum()] * 3)
    assert more["bits"].tolist() == [64.0 * 12] * 3
    assert more["channel_uses"].tolist() == [0.0] * 3


@pytest.mark.parametrize(
    ("policy", "known"),
    [
        ("best-norm:norms=", "update_norms"),
        ("best-channel-norm:candidate_share=1,norms=", "update_norms"),
        ("power-of-choice:candidate_share=1,losses=", "losses"),
    ],
)
def test_fresh_reports_choose_by_the_present_model(policy, known):
    """With fresh numbers the UE served is the one whose report on this very model is highest."""
    scenario = tiny(**{"run.rounds": 4, "threshold.rate": 0.0, "cell.subchannels": 1})
    fresh, last = (
        simulate(scenario, make_policy(f"{policy}{how}"), 1) for how in ("fresh", "last")
    )
    assert [ues.tolist() for ues in fresh.received] != [ues.tolist() for ues in last.received]
    federation = samples_of(scenario, Streams(1)).federation(scenario)
    state = federation.init()
    for t, heard in enumerate(fresh.received):
        probe = federation.probe(state, np.arange(12), t)
        numbers = getattr(probe, known)
        assert heard.tolist() == [int(numbers.argmax())]
        state = federation.round(state, heard, t).state
