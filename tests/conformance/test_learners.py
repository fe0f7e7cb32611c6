"""What every learner must do, whatever it learns."""

from typing import get_args

import numpy as np
import pytest

from agewise import Streams
from agewise.data import divide, load
from agewise.learn import average, make_learner
from agewise.scenario import Linear
from tests.scenarios import tiny

LOSSES = get_args(Linear.model_fields["loss"].annotation)
MODELS = [{"kind": "linear", "loss": loss, "initial_deviation": 0.01} for loss in LOSSES]
MODELS.append({"kind": "k-means", "clusters": 10, "initial_deviation": 0.01})
STREAMS = Streams(1)


@pytest.fixture(params=MODELS, ids=lambda model: model.get("loss", model["kind"]))
def learner(request):
    scenario = tiny(**{"learn.model": request.param})
    data = load(scenario.data)
    partition = divide(data.train.labels, scenario.data, 12, STREAMS)
    return make_learner(data, partition, scenario.learn)


def test_models_are_flat_float32_vectors(learner):
    start = learner.init(STREAMS)
    assert start.ndim == 1
    assert start.dtype == np.float32
    trained = learner.train(start, np.array([3, 7, 1]), 0, STREAMS)
    assert trained.shape == (3, start.size)
    assert trained.dtype == np.float32
    assert learner.train(start, np.array([], dtype=np.int64), 0, STREAMS).shape == (0, start.size)
    assert learner.sizes.sum() == 5000


def test_nothing_but_seed_round_ue_and_model_counts(learner):
    start = learner.init(STREAMS)
    kept = start.copy()
    first = learner.train(start, np.array([3, 7]), 2, STREAMS)
    learner.evaluate(first[0])
    again = learner.train(start, np.array([7, 0, 3]), 2, Streams(1))
    np.testing.assert_array_equal(first, again[[2, 0]])
    np.testing.assert_array_equal(start, kept)
    np.testing.assert_array_equal(learner.init(Streams(1)), kept)
    for other in (
        learner.train(start, np.array([3]), 1, STREAMS),
        learner.train(start, np.array([3]), 2, Streams(2)),
        learner.train(first[0], np.array([3]), 2, STREAMS),
    ):
        assert not np.array_equal(other[0], first[0])
    assert not np.array_equal(learner.init(Streams(2)), kept)


def test_learning_lowers_the_objective_and_the_test_loss(learner):
    model = learner.init(STREAMS)
    before = learner.objective(model), learner.evaluate(model).loss
    for t in range(60):
        trained = learner.train(model, np.arange(12), t, STREAMS)
        model, _ = average(trained, learner.sizes, model)
    assert learner.objective(model) < 0.95 * before[0]
    assert learner.evaluate(model).loss < 0.95 * before[1]
    evaluation = learner.evaluate(model)
    assert 0 <= evaluation.accuracy <= 1
    assert evaluation.class_accuracy.shape == (10,)
    assert evaluation.class_accuracy.dtype == np.float64
    assert evaluation.class_accuracy.min() >= 0
    assert evaluation.class_accuracy.max() <= 1
    assert evaluation.class_accuracy.min() <= evaluation.accuracy <= evaluation.class_accuracy.max()
