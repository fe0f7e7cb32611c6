"""The suite of all learners, for PyTorch modules."""

import json
import subprocess
import sys

import pytest

from tests.conformance import test_learners as suite
from tests.experiment.watch import ROOT
from tests.samples import average
from tests_extra.torch import modules

COMMON = {"kind": "torch", "loss": "cross-entropy", "optimiser": "SGD"}
PLAIN = {
    "mlp": {"name": "mlp", "arguments": {"width": 16, "layers": 1}},
    "linear": {"source": f"{modules.__file__}:linear", "loss": "multi-margin"},
}
#: Steps of these are not along the gradient of the loss.
OTHERS = {
    "dropout": {"source": f"{modules.__file__}:with_dropout"},
    "batch-norm": {"source": f"{modules.__file__}:with_batch_norm"},
    "Adam": {"name": "mlp", "arguments": {"width": 16}, "optimiser": "Adam"},
}

globals().update({name: test for name, test in vars(suite).items() if name.startswith("test_")})
alone_with_a_sample = suite.alone_with_a_sample


@pytest.fixture(params=PLAIN.values(), ids=PLAIN)
def model(request):
    return COMMON | request.param


@pytest.fixture
def learner(model):
    return suite.make(model)


@pytest.fixture(params=OTHERS)
def other(request):
    return make_other(request.param)


def make_other(name):
    step_size = 0.01 if name == "Adam" else 0.05
    changes = {"learn.batch_size": 4, "learn.step_size": step_size}
    return suite.make(COMMON | OTHERS[name], **changes)


@pytest.mark.parametrize(
    "check",
    [
        suite.test_models_are_flat_float32_vectors,
        suite.test_nothing_but_seed_round_ue_and_model_counts,
    ],
)
def test_modules_with_more_than_gradients(other, check):
    check(other)


def test_they_learn(other):
    model = other.init(suite.STREAMS)
    before = other.objective(model)
    for t in range(12):
        trained = other.train(model, suite.UES, t, suite.STREAMS)
        model, _ = average(trained, other.sizes, model)
    assert other.objective(model) < 0.95 * before


def digests():
    plain = {name: suite.digest(suite.make(COMMON | own)) for name, own in PLAIN.items()}
    return plain | {name: suite.digest(make_other(name)) for name in OTHERS}


def test_any_process_gives_the_same_bytes():
    code = "import json; from tests_extra.torch import test_conformance as suite; "
    code += "print(json.dumps(suite.digests()))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == digests()
