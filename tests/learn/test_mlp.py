"""The multilayer perceptron: gradients by differences, kernels by the twin."""

import hashlib
import itertools

import numpy as np
import pytest

from agewise import Streams, simulate
from agewise import checks as machine
from agewise.core import mlp as kernels
from agewise.core.mlp import empty_net, put, take
from agewise.learn import Diverged
from agewise.scenario import ScenarioError
from tests.learn import twin
from tests.learn.test_learners import dataset, learner_of, penalised
from tests.scenarios import tiny

#: With seed 5 a unit comes within 3e-8 of its kink, where single precision takes the other side.
STREAMS = Streams(6)
#: Below, at and above whole lanes of 16, and one layer or several.
SHAPES = [(1,), (16,), (17, 33), (5, 48, 3), (40, 17)]


def widths_of(learner):
    data = learner.samples.dataset
    return np.array([data.train.feature_count, *learner.model.hidden_widths, data.class_count])


def mlp(*widths):
    return {"kind": "mlp", "hidden_widths": widths}


def test_the_gradient_of_the_twin_by_finite_differences():
    rng = np.random.default_rng(0)
    widths, x, labels = (4, 6, 5, 3), rng.normal(size=(7, 4)), rng.integers(3, size=7)
    model = rng.normal(size=5 * 6 + 7 * 5 + 6 * 3)

    def loss(at):
        return twin.losses("multinomial", twin.mlp_scores(widths, at, x)[0], labels).mean()

    gradient = twin.mlp_gradient(widths, model, x, labels)
    for i in range(model.size):
        step = np.zeros(model.size)
        step[i] = 1e-6
        rise = (loss(model + step) - loss(model - step)) / 2e-6
        assert gradient[i] == pytest.approx(rise, abs=1e-7)


def expected_model(learner, data, start, own, draw, correction=0.0):
    x, labels = data.train.values().astype(np.float64)[own], data.train.labels[own]

    def gradient(model, rows):
        return twin.mlp_gradient(widths_of(learner), model, x[rows], labels[rows])

    weights = twin.mlp_weights(widths_of(learner))
    return twin.sgd(
        learner.steps, gradient, start, len(own), draw, penalised=weights, correction=correction
    )


@pytest.mark.parametrize("hidden", SHAPES)
@pytest.mark.parametrize(
    ("penalty", "local", "corrected"),
    [("none", "none", False), ("l2", "none", False), ("l1", "none", False),
     ("l2", {"kind": "proximal", "mu": 0.7}, False), ("l1", "none", True), ("l2", "none", True)],
)  # fmt: skip
def test_local_sgd_is_the_twins(hidden, penalty, local, corrected):
    """25 steps in single precision: within 1e-5, a hundred roundings of weights of size 1."""
    data = dataset(4, features=9, samples=120)
    batch = 1 + 2 * len(hidden)
    learner, partition = learner_of(
        data, model=mlp(*hidden), penalty=penalised(penalty, 0.02), local=local, batch_size=batch,
        local_steps=25, step_decay=0.5, step_size=0.1,
    )  # fmt: skip
    start, ues = learner.init(STREAMS), np.array([2, 0])
    corrections = None
    if corrected:
        corrections = np.random.default_rng(1).normal(size=(2, start.size)).astype(np.float32) / 10
    trained = learner.train(start, ues, 3, STREAMS, corrections)
    for i, ue in enumerate(ues):
        own, draw = partition.samples_of(ue), (int(STREAMS.sgd), 3, int(ue))
        added = corrections[i] if corrected else 0.0
        expected = expected_model(learner, data, start, own, draw, added)
        assert np.abs(expected - start).max() > 1e-3
        np.testing.assert_allclose(trained[i], expected, rtol=1e-4, atol=1e-5)
    model = trained[0].astype(np.float64)
    scores, _ = twin.mlp_scores(widths_of(learner), model, data.train.values().astype(np.float64))
    losses = twin.losses("multinomial", scores, data.train.labels)
    evaluation = learner.evaluate(trained[0])
    assert evaluation.loss == pytest.approx(losses.mean(), rel=1e-5)
    right = scores.argmax(1) == data.train.labels
    assert evaluation.accuracy == pytest.approx(right.mean(), abs=1e-9)
    np.testing.assert_allclose(
        learner.losses(trained[0], ues), [losses[partition.samples_of(ue)].mean() for ue in ues],
        rtol=1e-5,
    )  # fmt: skip
    weights = twin.mlp_weights(widths_of(learner)) * model
    cost = twin.penalty_weight(learner.steps) * twin.penalty(penalty, weights)
    assert learner.objective(trained[0]) == pytest.approx(losses.mean() + cost, rel=1e-5)


def test_a_penalty_that_shrinks_weights_far_is_still_exact():
    """The scale of the first layer falls below its limit several times: 0.5 ** 60."""
    data = dataset(3, features=9)
    learner, partition = learner_of(
        data, model=mlp(7), penalty=penalised("l2", 5.0), local_steps=60, step_size=0.1
    )
    start = learner.init(STREAMS)
    draw = (int(STREAMS.sgd), 0, 1)
    expected = expected_model(learner, data, start, partition.samples_of(1), draw)
    trained = learner.train(start, np.array([1]), 0, STREAMS)[0]
    np.testing.assert_allclose(trained, expected, rtol=1e-3, atol=1e-6)


def test_the_bytes_are_those_of_published_results():
    """Sums keep their order, however the kernels go through memory."""
    learner, _ = learner_of(
        dataset(4, features=9, samples=120), model=mlp(40, 17), penalty=penalised("l2", 0.02),
        batch_size=7, local_steps=25, step_size=0.1,
    )  # fmt: skip
    trained = learner.train(learner.init(STREAMS), np.array([0, 2]), 3, STREAMS)
    assert hashlib.sha256(trained.tobytes()).hexdigest()[:16] == "cdffe05a63b54f6e"


@pytest.mark.parametrize("hidden", SHAPES)
def test_panels_and_back_leave_every_byte(hidden):
    widths = np.array([9, *hidden, 4])
    net = empty_net(widths)
    length = sum((a + 1) * b for a, b in itertools.pairwise(widths))
    net.weights[:] = np.nan  # what another UE may have left
    model = np.random.default_rng(2).normal(size=length).astype(np.float32)
    put(model, net)
    back = np.full_like(model, np.nan)
    take(net, np.float32(1.0), back)
    np.testing.assert_array_equal(back, model)
    assert np.isfinite(net.weights).all()
    assert np.count_nonzero(net.weights) + np.count_nonzero(net.biases) == length


def test_the_initial_model_is_uniform_within_the_root_of_the_inputs():
    """Of 9,000 weights, the mean is within 4 deviations of 0 and the largest near the bound."""
    learner, _ = learner_of(dataset(features=9), model=mlp(1000))
    first = learner.init(STREAMS)[:9000]
    bound = 1 / 3
    assert np.abs(first).max() <= bound
    assert np.abs(first).max() > 0.999 * bound
    assert abs(first.mean()) < 4 * bound / np.sqrt(3 * 9000)
    assert first.std() == pytest.approx(bound / np.sqrt(3), rel=0.03)


def test_a_ue_that_diverged_leaves_no_trace_on_the_next():
    """The same memory serves all UEs of a thread."""
    data = dataset(3)
    learner, _ = learner_of(data, model=mlp(20, 20), step_size=1e9, local_steps=30, penalty="none")
    start = learner.init(STREAMS)
    assert not np.isfinite(learner.train(start, np.array([0]), 0, STREAMS)).all()
    calm, _ = learner_of(data, model=mlp(20, 20))
    alone = calm.train(start, np.array([1]), 0, STREAMS)[0]
    models = np.empty((2, start.size), np.float32)
    spoilt = np.zeros((2, start.size), np.float32)
    spoilt[0] = np.inf
    models = calm.train(start, np.array([0, 1]), 0, STREAMS, spoilt)
    assert not np.isfinite(models[0]).all()
    plain = calm.train(start, np.array([1]), 0, STREAMS, spoilt[1:])[0]
    np.testing.assert_array_equal(models[1], plain)
    np.testing.assert_allclose(plain, alone, atol=1e-5)


@pytest.mark.parametrize(
    ("widths", "message"),
    [([0], "learn.model.hidden_widths: 0 units: each layer has from 1 to 1048576"),
     ([5, -3], "-3 units"), ([], "0 layers: 1 to 64 are taken"), ([2] * 65, "65 layers")],
)  # fmt: skip
def test_widths_that_cannot_be(widths, message):
    with pytest.raises(ScenarioError, match=message):
        tiny(**{"learn.model": mlp(*widths)})


def test_samples_in_a_batch_are_many_or_few():
    """A batch that is no multiple of the tile of samples, larger than what a UE has."""
    data = dataset(3, samples=30)
    assert kernels.TILE == 5
    learner, partition = learner_of(
        data, model=mlp(18, 4), batch_size=43, local_steps=3, penalty="none"
    )
    start = learner.init(STREAMS)
    trained = learner.train(start, np.array([1]), 0, STREAMS)[0]
    draw = (int(STREAMS.sgd), 0, 1)
    expected = expected_model(learner, data, start, partition.samples_of(1), draw)
    np.testing.assert_allclose(trained, expected, rtol=1e-4, atol=1e-5)


def test_a_net_that_diverges_is_reported_with_round_ue_and_cause():
    settings = {"learn.model": mlp(30), "learn.step_size": 1e6, "learn.penalty": "none"}
    pattern = r"in round \d: its weights are no longer finite, first those of UE \d+; the likely "
    pattern += r"cause is a step size that is too large: lower learn.step_size \(1e\+06\)"
    with pytest.raises(Diverged, match=pattern):
        simulate(tiny(**settings), "age-based")
    proximal = settings | {"learn.step_size": 0.01, "learn.local": {"kind": "proximal", "mu": 1e6}}
    with pytest.raises(Diverged, match=r"step size times mu is 10000: lower learn.local.mu"):
        simulate(tiny(**proximal), "age-based")


def test_a_net_that_does_not_fit_into_memory_is_refused(monkeypatch):
    scenario = tiny(**{"learn.model": mlp(1_000_000)})
    monkeypatch.setattr(machine, "available_bytes", lambda: 10**9)
    message = "learn.model = 'mlp' with 31,000,010 numbers for 11 models would need 1.36 GB"
    with pytest.raises(ValueError, match=message):
        simulate(scenario, "age-based")
