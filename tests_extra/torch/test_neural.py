"""PyTorch modules as learners: the same numbers as plain loops, seeded chance, clear refusals."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from agewise import Streams, simulate
from agewise.data import Mnist
from agewise.learn import ControlVariates, add_module, set_threads
from agewise.learn.aggregation import Updates
from agewise.learn.neural import TorchLearner
from agewise.learn.neural.learner import Batched, can_batch
from agewise.learn.neural.training import Replica, image_shape
from tests.scenarios import tiny
from tests_extra.torch import modules

STREAMS = Streams(3)
UES = np.array([4, 0, 9])
APART = Path(__file__).parent / "checked.json"


def section(function, /, **more):
    source = {"source": f"{modules.__file__}:{function}"}
    return {"kind": "torch", "loss": "cross-entropy", "optimiser": "SGD"} | source | more


def learner_of(model, **changes):
    scenario = tiny(**{"learn.model": model, "learn.batch_size": 4} | changes)
    data = scenario.data.load()
    partition = scenario.data.divide(data, scenario.device_table(STREAMS), STREAMS)
    return scenario.learn.learner(data, partition)


@pytest.fixture(autouse=True)
def two_threads():
    set_threads(2)
    yield
    set_threads(2)


LOCAL = [
    {},
    {"learn.penalty": {"kind": "l2", "weight": 0.1}},
    {"learn.penalty": {"kind": "l1", "weight": 0.1}},
    {"learn.local": {"kind": "proximal", "mu": 0.5}},
]


def two_linear_models(changes):
    """Ours and a module's, with the same start."""
    ours = learner_of(
        {"kind": "linear", "loss": "multinomial", "initial_deviation": 0.1}, **changes
    )
    return ours, learner_of(section("linear"), **changes), ours.init(STREAMS)


def trained(changes, corrected):
    """``[implementation, ue, number]``: models that share nothing but the drawn samples."""
    ours, theirs, start = two_linear_models(changes)
    fix = np.random.default_rng(0).normal(size=(3, 21, 10)).astype(np.float32)
    fixes = (fix.reshape(3, -1), np.stack([_as_module(each) for each in fix]))
    given = fixes if corrected else (None, None)
    one = ours.train(start, UES, 5, STREAMS, given[0])
    other = theirs.train(_as_module(start.reshape(21, 10)), UES, 5, STREAMS, given[1])
    return np.array([[_as_module(each.reshape(21, 10)) for each in one], other])


@pytest.mark.parametrize("changes", LOCAL, ids=["none", "l2", "l1", "proximal"])
@pytest.mark.parametrize("corrected", [False, True])
def test_a_linear_module_learns_as_the_linear_model_does(changes, corrected):
    """Two implementations; float32 keeps six digits."""
    ours, theirs, start = two_linear_models(changes)
    same = _as_module(start.reshape(21, 10))
    one, other = trained(changes, corrected)
    assert (np.abs(one - same).max(axis=1) > 0.01).all()
    np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-5)
    assert theirs.objective(same) == pytest.approx(ours.objective(start), rel=1e-5)
    np.testing.assert_allclose(theirs.losses(same, UES), ours.losses(start, UES), rtol=1e-5)
    assert theirs.evaluate(same).accuracy == ours.evaluate(start).accuracy


def apart():
    """How many numbers of trained models were compared, and the largest difference."""
    pairs = [trained(changes, corrected) for changes in LOCAL for corrected in (False, True)]
    largest = max(float(np.abs(one - other).max()) for one, other in pairs)
    return {"numbers": sum(one.size for one, _ in pairs), "largest": largest}


def test_the_page_on_comparisons_says_what_is_measured():
    kept, now = json.loads(APART.read_bytes()), apart()
    assert kept["numbers"] == now["numbers"]
    assert now["largest"] == pytest.approx(kept["largest"], rel=0.5)


def _as_module(table):
    return np.concatenate([table[:-1].T.ravel(), table[-1]])


def test_an_optimiser_by_name_steps_as_in_a_plain_loop():
    learner = learner_of(section("linear", optimiser="AdamW", optimiser_settings={"eps": 1e-3}))
    start = learner.init(STREAMS)
    trained = learner.train(start, UES[:1], 2, STREAMS)[0]
    module = modules.linear()
    with torch.no_grad():
        module.weight.copy_(torch.from_numpy(start[:200].reshape(10, 20)))
        module.bias.copy_(torch.from_numpy(start[200:]))
    optimiser = torch.optim.AdamW(module.parameters(), lr=0.05, eps=1e-3)
    for inputs, labels in learner._batches(4, 2, STREAMS.sgd):
        optimiser.zero_grad()
        (
            functional.cross_entropy(module(inputs), labels) + 5e-4 * module.weight.square().sum()
        ).backward()
        optimiser.step()
    flat = torch.cat([module.weight.flatten(), module.bias]).detach().numpy()
    np.testing.assert_allclose(trained, flat, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_a_control_variate_is_the_mean_gradient_of_the_steps(decay):
    """Option II: c_k - c + (w^t - w_k) / (tau eta), for SGD with or without weight decay."""
    model = section("linear", optimiser_settings={"weight_decay": decay})
    changes = {"learn.local": "control-variates", "learn.penalty": "none"}
    learner = learner_of(model, **changes)
    local = ControlVariates()
    start, ue = learner.init(STREAMS), UES[:1]
    state = local.init_state(12, start.size)
    state["own"][ue] = np.random.default_rng(0).normal(size=start.size) / 10
    state["server"] += 0.05
    trained = learner.train(start, ue, 2, STREAMS, local.corrections(state, ue))
    module, wanted = modules.linear(), torch.zeros(start.size)
    added = torch.from_numpy(local.corrections(state, ue)[0])
    at = torch.from_numpy(start.copy())
    batches = list(learner._batches(int(ue[0]), 2, STREAMS.sgd))
    for inputs, labels in batches:
        torch.nn.utils.vector_to_parameters(at, module.parameters())
        cost = functional.cross_entropy(module(inputs), labels)
        found = torch.autograd.grad(cost, list(module.parameters()))
        gradient = torch.cat([each.flatten() for each in found]) + decay * at
        wanted += gradient / len(batches)
        at = at - learner.steps.step_of(2) * (gradient + added)
    sizes = np.ones(12, np.int64)
    own = local.receive(state, Updates(start, trained, ue), sizes, 10 * learner.steps.step_of(2))[
        "own"
    ][ue[0]]
    np.testing.assert_allclose(own, wanted.detach().numpy(), rtol=1e-3, atol=1e-4)


def test_a_loss_may_be_a_function():
    data = tiny().data.load()
    changes = {"learn.model": section("linear", loss="squared-error"), "learn.batch_size": 4}
    settings, plain = tiny(**changes).learn, tiny()
    partition = plain.data.divide(data, plain.device_table(STREAMS), STREAMS)
    named, given = (
        TorchLearner(settings.model, data, partition, settings.steps, loss)
        for loss in (None, _half_square)
    )
    start = named.init(STREAMS)
    np.testing.assert_array_equal(
        named.train(start, UES, 0, STREAMS), given.train(start, UES, 0, STREAMS)
    )


def _half_square(outputs, labels):
    return 0.5 * (outputs - torch.eye(10)[labels]).square().sum(1).mean()


def test_the_flat_vector_has_all_numbers_and_counters_begin_anew():
    torch.manual_seed(0)
    module = modules.Tied()
    replica = Replica(module)
    assert replica.flat.numel() == 401  # the shared matrix once, and the frozen scale
    assert replica.trainable == 400
    start = replica.numbers()
    np.testing.assert_array_equal(start[:400], module.first.weight.detach().numpy().ravel())
    replica.module.train()
    first = replica.module(torch.ones(2, 20))
    replica.load(start)
    assert torch.equal(replica.module(torch.ones(2, 20)), first)
    changed = start + 1
    replica.load(changed)
    np.testing.assert_array_equal(replica.numbers(), changed)
    assert replica.module.second.weight[0, 0] == changed[0]


def test_batch_norm_sends_its_running_means():
    learner = learner_of(section("with_batch_norm"))
    start = learner.init(STREAMS)
    assert start.size == 20 * 16 + 16 + 32 + 160 + 10 + 32
    trained = learner.train(start, UES, 0, STREAMS)
    assert not np.array_equal(trained[0][-32:], start[-32:])


@pytest.mark.parametrize("name", ["with_dropout", "Sometimes", "linear", "with_batch_norm"])
def test_the_same_bytes_with_any_number_of_threads_and_no_trace_in_the_generators(name):
    found = []
    for threads in (1, 2):
        set_threads(threads)
        learner = learner_of(section(name))
        torch.manual_seed(threads)
        state, count = torch.get_rng_state(), torch.get_num_threads()
        start = learner.init(STREAMS)
        trained = [learner.train(start, np.arange(12), t, STREAMS) for t in range(3)]
        evaluation = learner.evaluate(trained[0][0])
        found.append((start, *trained, learner.objective(start), evaluation.loss))
        assert torch.equal(torch.get_rng_state(), state)
        assert torch.get_num_threads() == count
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_dropout_differs_between_ues_rounds_and_seeds():
    """With the samples the same: one UE's data on all, and steps on whole batches would agree."""
    learner = learner_of(section("with_dropout"))
    start = learner.init(STREAMS)
    replica = Replica(modules.with_dropout())
    assert replica.flat.numel() == start.size
    alike = learner.train(start, np.array([3]), 0, STREAMS)
    for t, streams in ((1, STREAMS), (0, Streams(4))):
        assert not np.array_equal(learner.train(start, np.array([3]), t, streams), alike)


# --------------------------------------------------------------------- UEs trained together
@pytest.mark.parametrize("local", ["none", {"kind": "proximal", "mu": 0.5}])
def test_ues_trained_together_learn_as_one_by_one(local):
    """On a CPU, for a GPU's way of doing it; float32 keeps six digits."""
    penalty = {"kind": "l2", "weight": 0.1}
    learner = learner_of(section("Partly"), **{"learn.local": local, "learn.penalty": penalty})
    start = learner.init(STREAMS)
    fixes = np.random.default_rng(0).normal(size=(3, start.size)).astype(np.float32)
    alone = learner.train(start, UES, 1, STREAMS, fixes)
    assert can_batch(learner._prototype, learner._descent)
    learner._batched = Batched(learner._prototype, "cpu", learner.loss)
    together = learner.train(start, UES, 1, STREAMS, fixes)
    assert learner._batched is not None
    assert np.abs(alone - start).max() > 0.1
    np.testing.assert_allclose(together, alone, rtol=1e-4, atol=1e-5)


def test_modules_that_draw_or_keep_buffers_train_one_by_one():
    assert not can_batch(modules.with_batch_norm(), learner_of(section("linear"))._descent)
    learner = learner_of(section("with_dropout"))
    start = learner.init(STREAMS)
    alone = learner.train(start, UES, 1, STREAMS)
    learner._batched = Batched(learner._prototype, "cpu", learner.loss)
    np.testing.assert_array_equal(learner.train(start, UES, 1, STREAMS), alone)
    assert learner._batched is None


# ------------------------------------------------------------------------- modules by name
@pytest.mark.parametrize(("name", "length"), [("lenet5", 61706), ("mcmahan-cnn", 1663370)])
def test_modules_of_the_package_have_their_published_sizes(name, length):
    settings = tiny(**{"learn.model": section("", source=None, name=name)}).learn
    assert settings.model.length(Mnist().load()) == length


def test_images_get_a_channel():
    assert image_shape((28, 28)) == (1, 28, 28)
    assert image_shape((3, 32, 32)) == (3, 32, 32)
    assert image_shape((20,)) == (20,)


def test_lenet_learns_digits():
    scenario = tiny(
        **{
            "data.dataset": "mnist", "learn.model": section("", source=None, name="lenet5"),
            "learn.batch_size": 16, "learn.local_steps": 30, "learn.step_size": 0.1,
            "run.rounds": 8, "run.evaluate_every": 8, "data.partition": "iid",
            "learn.penalty": "none",
        }
    )  # fmt: skip
    history = simulate(scenario, "max-pack", 0)
    assert history.info.sources == {}
    assert history.accuracy[-1] > 0.4  # a tenth by chance


SCRIPT = """
import torch
from torch import nn
import agewise
from agewise.learn import add_module
from tests.scenarios import tiny

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner, self.outer = nn.Linear(20, width), nn.Linear(width, 10)

    def forward(self, x):
        return self.outer(torch.relu(self.inner(x)))

add_module("my-net", Net)
model = {"kind": "torch", "name": "my-net", "arguments": {"width": 8},
         "loss": "cross-entropy", "optimiser": "SGD"}
history = agewise.simulate(tiny(**{"learn.model": model}), "age-based", seed=1)
print(history.info.sources["model:my-net"], history.info.scenario["learn"]["model"]["name"])
"""


def test_a_class_of_a_script_learns_under_a_name(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(script)],
        env={"PYTHONPATH": ":".join(filter(None, [*sys.path, str(Path.cwd())]))},
        capture_output=True,
        text=True,
        check=True,
    )
    digest, name = done.stdout.split()
    assert name == "my-net"
    code = SCRIPT[SCRIPT.index("class Net") : SCRIPT.index("\nadd_module")]
    assert digest == hashlib.sha256(code.encode()).hexdigest()


def test_a_file_of_the_users_is_a_source_of_the_run(tmp_path):
    file = tmp_path / "mine.py"
    text = "from torch import nn\n\ndef make_model(width):\n    return nn.Linear(20, 10)\n"
    file.write_text(text)
    model = section("", source=f"{file}:make_model", arguments={"width": 3})
    scenario = tiny(**{"learn.model": model, "run.rounds": 2})
    history = simulate(scenario, "random", 0)
    assert list(history.info.sources) == [f"model:{file}:make_model"]
    file.write_text(text.replace("nn.Linear(20, 10)", "nn.Linear(20, 10, bias=False)"))
    again = simulate(scenario, "random", 0)
    assert again.info.sources != history.info.sources
    assert again.accuracy[-1] != history.accuracy[-1]


def test_the_command_line_takes_a_file_of_the_users(tmp_path):
    (tmp_path / "mine.py").write_text("from torch import nn\n\nmake = lambda: nn.Linear(20, 10)\n")
    (tmp_path / "tiny.toml").write_text(tiny(**{"run.rounds": 1}).to_toml())
    changes = ["learn.model=torch", "learn.model.source=mine.py:make", "learn.model.optimiser=SGD",
               "learn.model.loss=cross-entropy"]  # fmt: skip
    done = subprocess.run(
        [
            sys.executable, "-m", "agewise", "run", "tiny.toml", "--seeds", "1", "--out", "out",
            *(part for change in changes for part in ("--set", change)),
        ],
        cwd=tmp_path,
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "model:mine.py:make" in (tmp_path / "out" / "experiment.json").read_text()


# --------------------------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_parameters", "no parameter of the module requires a gradient, so there is nothing to"),
        ("IntegerWeights", "numbers of type int64.* keep integers as buffers"),
        (
            "five_classes",
            r"outputs of shape \(2, 10\), one for each of 10 classes.* gives \(2, 5\)",
        ),
        ("wrong_width", r"fails on samples of shape \(20,\): mat1 and mat2 shapes"),
        ("doubles", "numbers of type float64.* call .float"),
        ("frozen", "no parameter of the module requires a gradient"),
        ("not_a_module", "torch.nn.Module is needed, and .*not_a_module gives a int"),
        ("broken", "the module cannot be made: no such layer"),
        ("with_dropuot", "does not define a function 'with_dropuot'; did you mean with_dropout"),
    ],
)
def test_modules_that_cannot_learn(name, message):
    with pytest.raises(ValueError, match=message) as error:
        learner_of(section(name))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": "nowhere.py:make"}, "nowhere.py: no such file"),
        ({"source": "model.txt:make"}, "write it as file.py:function"),
        ({"source": None, "name": "lenet"}, "unknown module 'lenet'; did you mean lenet5"),
        ({"loss": "entropy"}, "unknown loss 'entropy'; did you mean cross-entropy"),
        ({"optimiser": "adma"}, "torch.optim has no 'adma'; did you mean Adam"),
        ({"optimiser": "LBFGS"}, "choose one that takes one gradient"),
        ({"optimiser": "SGD", "optimiser_settings": {"speed": 1}}, "speed"),
        ({"optimiser": "Adam", "optimiser_settings": {"eps": -1.0}}, "Invalid epsilon"),
    ],
)
def test_settings_that_cannot_be(changes, message):
    with pytest.raises(ValueError, match=message) as error:
        learner_of(section("linear", **changes))
    assert "\n" not in str(error.value)


def test_a_name_of_the_package_cannot_be_taken():
    with pytest.raises(ValueError, match="cannot be called 'mlp'"):
        add_module("mlp", modules.linear)


def test_weights_that_are_no_longer_finite_name_round_and_ue():
    model = section("linear", loss="squared-error")
    scenario = tiny(**{"learn.model": model, "learn.step_size": 1e6, "learn.local_steps": 60})
    with pytest.raises(ValueError, match=r"round 0.*UE \d+.*learn.step_size"):
        simulate(scenario, "random", 0)


def test_too_little_memory_is_said_before_it_is_taken():
    model = section("", source=None, name="mlp", arguments={"width": 1_000_000, "layers": 1})
    memory = {"kind": "memory", "discount": "none"}
    scenario = tiny(
        **{"learn.model": model, "learn.aggregation": memory, "cell.ues": 4000, "run.rounds": 1}
    )
    with pytest.raises(ValueError, match=r"4,000.*models of 31,000,010 numbers"):
        simulate(scenario, "random", 0)


def test_a_file_that_cannot_be_loaded(tmp_path):
    file = tmp_path / "bad.py"
    file.write_text("import nowhere_to_be_found\n")
    with pytest.raises(ValueError, match="bad.py: cannot be loaded: ModuleNotFoundError"):
        learner_of(section("", source=f"{file}:make"))
    assert Path(file).exists()


if __name__ == "__main__":
    APART.write_text(json.dumps(apart()) + "\n")
