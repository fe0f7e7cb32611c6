"""Local objectives against their published forms, on quadratics whose answers are known."""

import numpy as np
import pytest

from agewise import Streams
from agewise import checks as machine
from agewise.data import Dataset, Partition, Samples
from agewise.learn import Updates
from agewise.resources import kept_memories, require_resources
from agewise.simulation import rounds
from tests.learn.test_learners import linear, settings_of
from tests.samples import average
from tests.scenarios import tiny

STREAMS = Streams(2)
#: One sample a UE, so that no draw matters: f_k(w, b) = (w x_k + b - y_k)^2 / 2.
X = np.array([0.5, -1.0, 2.0, 1.5])
LABELS = np.array([1, 0, 0, 1])
Y = np.where(LABELS == 1, 1.0, -1.0)
A = np.stack((X, np.ones(4)), axis=1)  # gradients are A_k (A_k w - y_k)


def chosen(**settings):
    return settings_of(**{"model": linear("squared-error"), "penalty": "none"} | settings)


def total_step(settings, t):
    return settings.local_steps * settings.steps.step_of(t)


def quadratic(settings):
    samples = Samples(X[:, None].astype(np.float32), LABELS)
    data = Dataset("quadratic", samples, samples, ("no", "yes"))
    return settings.learner(data, Partition(np.arange(4), np.arange(5)))


def gradient(ue, w):
    return A[ue] * (A[ue] @ w - Y[ue])


def test_a_proximal_term_leads_to_the_proximal_point():
    """Li et al. (2020): the minimum of f_k(w) + mu/2 |w - start|^2, here in closed form."""
    mu = 0.8
    learner = quadratic(
        chosen(local={"kind": "proximal", "mu": mu}, local_steps=800, step_size=0.1)
    )
    start = np.array([0.3, -0.4], np.float32)
    models = learner.train(start, np.arange(4), 0, STREAMS)
    for ue in range(4):
        left = np.outer(A[ue], A[ue]) + mu * np.eye(2)
        point = np.linalg.solve(left, A[ue] * Y[ue] + mu * start)
        np.testing.assert_allclose(models[ue], point, atol=1e-5)


def scaffold(settings, turns):
    """Karimireddy et al. (2020), Algorithm 1 with option II and a global step of 1."""
    w, c, own = np.array([0.3, -0.4]), np.zeros(2), np.zeros((4, 2))
    for t, ues in enumerate(turns):
        eta, change, move = settings.step_of(t), np.zeros(2), np.zeros(2)
        for ue in ues:
            y = w.copy()
            for _ in range(settings.local_steps):
                y = y - eta * (gradient(ue, y) - own[ue] + c)
            new = own[ue] - c + (w - y) / (settings.local_steps * eta)
            change, move = change + new - own[ue], move + y - w
            own[ue] = new
        w = w + move / len(ues)
        c = c + change / 4
    return w, c, own


def federated(settings, turns):
    learner, local = quadratic(settings), settings.local
    w = np.array([0.3, -0.4], np.float32)
    state = local.init_state(4, 2)
    for t, ues in enumerate(turns):
        models = learner.train(w, ues, t, STREAMS, local.corrections(state, ues))
        updates = Updates(w, models, ues)
        w, _ = average(models, learner.sizes[ues], w)
        state = local.receive(state, updates, learner.sizes, total_step(settings, t))
    return w, state


def test_control_variates_are_the_published_ones():
    rng = np.random.default_rng(4)
    turns = [np.sort(rng.choice(4, rng.integers(1, 4), replace=False)) for _ in range(12)]
    settings = chosen(local="control-variates", local_steps=7, step_size=0.1, step_decay=0.1)
    w, state = federated(settings, turns)
    expected, c, own = scaffold(settings.steps, turns)
    np.testing.assert_allclose(w, expected, atol=2e-5)
    np.testing.assert_allclose(state["server"], c, atol=1e-4)
    np.testing.assert_allclose(state["own"], own, atol=1e-4)


def test_control_variates_take_the_drift_away():
    """All UEs in every round end at the least-squares answer; without variates they do not."""
    best = np.linalg.lstsq(A, Y, rcond=None)[0]
    turns = [np.arange(4)] * 400
    settings = {"local_steps": 10, "step_size": 0.1}
    plain, _ = federated(chosen(**settings), turns)
    corrected, _ = federated(chosen(local="control-variates", **settings), turns)
    np.testing.assert_allclose(corrected, best, atol=2e-4)
    assert np.abs(plain - best).max() > 0.05


def test_means_of_variates_are_weighted_by_samples():
    settings = settings_of(local="control-variates", local_steps=2, step_size=0.5)
    local, sizes = settings.local, np.array([10, 30, 60])
    state = local.init_state(3, 1)
    start, models = np.zeros(1, np.float32), np.array([[-1.0], [2.0]], np.float32)
    state = local.receive(state, Updates(start, models, np.array([0, 2])), sizes, 1.0)
    np.testing.assert_allclose(state["own"][:, 0], [1.0, 0.0, -2.0])
    assert state["server"][0] == pytest.approx(0.1 * 1.0 - 0.6 * 2.0)
    corrections = local.corrections(state, np.array([1, 2]))
    np.testing.assert_allclose(corrections[:, 0], [-1.1, 0.9], rtol=1e-6)


def test_a_variate_changes_only_when_its_update_arrived():
    settings = settings_of(local="control-variates")
    local, sizes = settings.local, np.ones(5, np.int64)
    state = local.init_state(5, 20)
    rng = np.random.default_rng(0)
    for _ in range(6):
        before = state["own"].copy()
        heard = np.flatnonzero(rng.random(5) < 0.5)
        models = rng.normal(size=(heard.size, 20)).astype(np.float32)
        state = local.receive(state, Updates(np.zeros(20, np.float32), models, heard), sizes, 1.0)
        changed = (state["own"] != before).any(axis=1)
        np.testing.assert_array_equal(np.flatnonzero(changed), heard)
        np.testing.assert_allclose(state["server"], state["own"].mean(axis=0), atol=1e-5)


@pytest.mark.parametrize("local", [{"kind": "proximal", "mu": 0.5}, "control-variates"])
def test_a_run_with_a_local_objective_learns_otherwise(local):
    plain, other = (
        list(rounds(tiny(**{"learn.local": each}), "round-robin", 1)) for each in ("none", local)
    )
    assert plain[0].delivery.owner.tolist() == other[0].delivery.owner.tolist()
    assert plain[-1].evaluation.loss != other[-1].evaluation.loss
    assert other[-1].evaluation.loss < other[0].evaluation.loss


def test_what_variates_take_is_said_and_refused(monkeypatch):
    scenario = tiny(**{"learn.local": "control-variates"})
    (kept,) = kept_memories(scenario)
    assert kept.bytes == 12 * 210 * 4 + 210 * 8
    assert str(kept) == "control-variates keep 12 x 210 numbers: 11.8 kB"
    monkeypatch.setattr(machine, "available_bytes", lambda: kept.bytes - 1)
    message = "learn.local = 'control-variates' with cell.ues = 12 and models of 210 numbers"
    with pytest.raises(ValueError, match=message):
        require_resources(scenario)


def test_kmeans_has_no_gradients_to_correct():
    centres = {"kind": "k-means", "clusters": 3, "initial_deviation": 0.0}
    with pytest.raises(ValueError, match="k-means moves centres: choose another model"):
        tiny(**{"learn.model": centres, "learn.local": "control-variates"})


@pytest.mark.parametrize(
    ("optimiser", "options", "told"),
    [("Adam", {}, "those of Adam"), ("SGD", {"momentum": 0.9}, "those of momentum = 0.9")],
)
def test_variates_need_steps_along_the_gradient(optimiser, options, told):
    model = {"kind": "torch", "name": "mlp", "loss": "cross-entropy", "optimiser": optimiser}
    model["optimiser_settings"] = options
    with pytest.raises(ValueError, match=f"{told} are not: set learn.model.optimiser to SGD"):
        tiny(**{"learn.model": model, "learn.local": "control-variates"})
    tiny(**{"learn.model": model, "learn.local": {"kind": "proximal", "mu": 0.1}})
