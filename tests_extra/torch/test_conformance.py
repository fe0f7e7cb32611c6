"""The suite of all learners, for PyTorch modules."""

import pytest

from agewise.data import divide, load
from agewise.learn import make_learner
from tests.conformance import test_learners as suite
from tests.scenarios import tiny
from tests_extra.torch import modules

MODELS = {
    "mlp": {"name": "mlp", "arguments": {"width": 16, "layers": 1}},
    "dropout": {"source": f"{modules.__file__}:with_dropout"},
    "batch-norm": {"source": f"{modules.__file__}:with_batch_norm"},
    "Adam": {"name": "mlp", "arguments": {"width": 16}, "optimiser": "Adam"},
}
COMMON = {"kind": "torch", "loss": "cross-entropy", "optimiser": "SGD"}

globals().update({name: test for name, test in vars(suite).items() if name.startswith("test_")})


@pytest.fixture(params=MODELS.values(), ids=MODELS)
def learner(request):
    size = 0.003 if "optimiser" in request.param else 0.05
    scenario = tiny(
        **{"learn.model": COMMON | request.param, "learn.batch_size": 4, "learn.step_size": size}
    )
    data = load(scenario.data)
    partition = divide(data.train.labels, scenario.data, 12, suite.STREAMS)
    return make_learner(data, partition, scenario.learn)
