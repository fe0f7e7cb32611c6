"""What every learner must do, whatever it learns."""

import hashlib
import json
import subprocess
import sys
from typing import get_args

import numpy as np
import pytest

from agewise import Streams
from agewise.data import Dataset, Partition
from agewise.learn import Linear, set_threads, threads
from tests.experiment.watch import ROOT
from tests.samples import average
from tests.scenarios import tiny

LOSSES = get_args(Linear.model_fields["loss"].annotation)
MODELS = [{"kind": "linear", "loss": loss, "initial_deviation": 0.01} for loss in LOSSES]
MODELS.append({"kind": "k-means", "clusters": 10, "initial_deviation": 0.01})
MODELS.append({"kind": "mlp", "hidden_widths": [24]})
MODELS.append({"kind": "mlp", "hidden_widths": [17, 9]})
STREAMS = Streams(1)
UES = np.arange(12)


def name_of(model):
    return model.get("loss") or "-".join(map(str, (model["kind"], *model.get("hidden_widths", ()))))


def make(model, **changes):
    scenario = tiny(**{"learn.model": model}, **changes)
    data = scenario.data.load()
    partition = scenario.data.divide(data, scenario.device_table(STREAMS), STREAMS)
    return scenario.learn.learner(data, partition)


@pytest.fixture(params=MODELS, ids=name_of)
def model(request):
    return request.param


@pytest.fixture
def learner(model):
    return make(model)


@pytest.fixture
def alone_with_a_sample(model):
    """A learner whose UEs have one sample each, so that a step is that sample's gradient."""
    data = tiny().data.load()
    kept = Dataset("few", data.train.take(np.arange(12)), data.test, data.names)
    partition = Partition(UES, np.arange(13))
    settings = {"local_steps": 1, "step_size": 1.0, "penalty": "none", "model": model}
    chosen = tiny(**{f"learn.{name}": value for name, value in settings.items()}).learn
    return chosen.learner(kept, partition)


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


def digest(learner):
    """Of the models of three UEs after two rounds, and of all that is said of the last one."""
    start = learner.init(STREAMS)
    models = learner.train(start, np.array([7, 2, 5]), 0, STREAMS)
    models = learner.train(models[1], np.array([2, 11, 7]), 1, STREAMS)
    content = hashlib.sha256(models.tobytes())
    content.update(learner.losses(models[0], UES).tobytes())
    evaluation = learner.evaluate(models[0])
    content.update(repr((evaluation.accuracy, evaluation.loss)).encode())
    content.update(repr(learner.objective(models[0])).encode())
    return content.hexdigest()


def digests():
    return {name_of(model): digest(make(model)) for model in MODELS}


def test_any_number_of_threads_gives_the_same_bytes(learner, monkeypatch):
    expected, before = digest(learner), threads._count
    monkeypatch.setattr(threads, "LEAST_ENTRIES", 1)  # work is divided however little it is
    try:
        for count in (1, 2, 5):
            set_threads(count)
            assert digest(learner) == expected
    finally:
        set_threads(before)


def test_any_process_gives_the_same_bytes():
    code = "import json; from tests.conformance import test_learners as suite; "
    code += "print(json.dumps(suite.digests()))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == digests()


def test_a_step_goes_down_the_gradient_of_the_loss(alone_with_a_sample):
    """Central differences along the step and along a random direction.

    Losses are in single precision, which gives the differences errors of about 1e-7 / 1e-2, and
    curvature adds some 1e-4: half a percent of the gradient's length is allowed.
    """
    learner, rng = alone_with_a_sample, np.random.default_rng(3)
    start = learner.init(STREAMS)
    for ue in (0, 5, 9):
        here = np.array([ue])
        gradient = start.astype(np.float64) - learner.train(start, here, 0, STREAMS)[0]
        length = np.linalg.norm(gradient)
        random = rng.normal(size=start.size)
        for direction in (gradient / length, random / np.linalg.norm(random)):
            ahead, behind = (
                (start + step * direction).astype(np.float32) for step in (1e-2, -1e-2)
            )
            moved = np.dot(ahead.astype(np.float64) - behind, direction)
            rise = learner.losses(ahead, here)[0] - learner.losses(behind, here)[0]
            assert rise / moved == pytest.approx(gradient @ direction, abs=5e-3 * length)


def test_a_correction_is_added_to_the_gradient(model, alone_with_a_sample):
    learner = alone_with_a_sample
    start, ues = learner.init(STREAMS), np.array([3, 8])
    corrections = np.random.default_rng(1).normal(size=(2, start.size)).astype(np.float32)
    if model["kind"] == "k-means":
        with pytest.raises(ValueError, match="no corrections"):
            learner.train(start, ues, 0, STREAMS, corrections)
        return
    plain = learner.train(start, ues, 0, STREAMS)
    corrected = learner.train(start, ues, 0, STREAMS, corrections)
    np.testing.assert_allclose(corrected, plain - corrections, atol=2e-6, rtol=1e-6)
    alone = learner.train(start, ues[1:], 0, STREAMS, corrections[1:])
    np.testing.assert_array_equal(alone[0], corrected[1])


def test_steps_of_no_length_leave_the_model(model):
    """Every number is where it was: the way into the learner's own form and back is the same."""
    learner = make(model, **{"learn.step_size": 1e-30})
    start = learner.init(STREAMS)
    varied = (start + np.arange(1, start.size + 1) / start.size).astype(np.float32)
    for trained in learner.train(varied, UES, 0, STREAMS):
        np.testing.assert_array_equal(trained, varied)


def test_the_length_is_known_beforehand(model, learner):
    scenario = tiny(**{"learn.model": model})
    length = scenario.model_length
    assert learner.init(STREAMS).shape == (length,)


def test_the_objective_weighs_ues_by_their_samples(model):
    """P(w) is the average of the UEs' losses with the weights by which models are averaged."""
    sizes = {"devices.samples_sigma": 1.0, "learn.penalty": "none"}
    learner = make(model, **sizes)
    assert np.unique(learner.sizes).size > 6
    params = learner.init(STREAMS)
    expected = np.average(learner.losses(params, UES), weights=learner.sizes)
    assert learner.objective(params) == pytest.approx(expected, rel=1e-6)
