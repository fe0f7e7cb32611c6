"""Parts of learning of the user's own, in a few lines of NumPy: they run; faults are told."""

import numpy as np
import pytest

from agewise import simulate
from agewise.learn import Aggregated, Aggregation
from agewise.part import CodeError
from tests.scenarios import tiny

PARTS = '''
import numpy as np
from agewise.data import Dataset, DataSource, Partition, PartitionScheme, Samples
from agewise.learn import Aggregated, Aggregation, ArraySpec, Compression, LocalObjective, Model

class Median(Aggregation):
    """The median of every weight."""

    def combine(self, state, updates, sizes):
        if not updates.ues.size:
            return Aggregated(updates.params, state)
        return Aggregated(np.median(updates.models, axis=0).astype(np.float32), state)

class Half(Compression):
    """The first half of the weights in single precision, the rest not at all."""

    share: float = 0.5

    def state_spec(self, ues, length):
        return {"heard": ArraySpec((ues,))}

    def send(self, state, sent, key):
        models = sent.models.copy()
        cut = round(self.share * sent.start.size)
        models[:, cut:] = sent.start[cut:]
        state["heard"][sent.ues] += 1.0
        return models, state

    def payload_bits(self, length):
        return 32.0 * round(self.share * length)

class Anchored(LocalObjective):
    """A proximal term under another name."""

    @property
    def proximal_weight(self):
        return 0.5

class Softmax(Model):
    """Multinomial logistic regression without a bias."""

    def length(self, dataset):
        return dataset.train.feature_count * dataset.class_count

    def init(self, samples, rng):
        return np.zeros(self.length(samples.dataset), np.float32)

    def _scores(self, params, x):
        return x @ params.reshape(x.shape[1], -1)

    def loss_and_gradient(self, params, x, y):
        scores = self._scores(params, x)
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares = powers / powers.sum(axis=1, keepdims=True)
        loss = -np.log(shares[np.arange(y.size), y]).mean()
        shares[np.arange(y.size), y] -= 1.0
        return float(loss), (x.T @ shares / y.size).ravel()

    def predict(self, params, x):
        return self._scores(params, x).argmax(axis=1)

class Moons(DataSource):
    """Two half circles."""

    count: int = 400

    def load(self):
        rng = np.random.default_rng(0)
        angle, labels = rng.random(self.count) * np.pi, np.arange(self.count) % 2
        x = np.stack([np.cos(angle) + labels, np.sin(angle) * (1 - 2 * labels)], axis=1)
        samples = Samples(x.astype(np.float32), labels)
        return Dataset("moons", samples, samples, ("upper", "lower"))

class InTurn(PartitionScheme):
    """Sample i lies on UE i mod K."""

    def divide(self, dataset, shares, rng):
        return Partition.of_owners(np.arange(len(dataset.train)) % shares.size, shares.size)

class Broken(Aggregation):
    """Fails in its second line."""

    def combine(self, state, updates, sizes):
        wrong = {}
        return wrong["here"]

class Empty(Compression):
    """Has nothing that a code needs."""
'''


@pytest.fixture
def file(tmp_path):
    (tmp_path / "mine.py").write_text(PARTS)
    return tmp_path / "mine.py"


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("learn.aggregation", "Median"), ("learn.compression", "Half"),
        ("learn.local", "Anchored"), ("learn.model", "Softmax"),
        ("data.dataset", "Moons"), ("data.partition", "InTurn"),
    ],
)  # fmt: skip
def test_a_part_of_the_users_own_runs_and_is_a_source(field, name, file):
    scenario = tiny(**{field: f"{file}:{name}"})
    history, again = (simulate(scenario, "age-based", 1) for _ in range(2))
    assert history.to_bytes() == again.to_bytes()
    assert history.accuracy[-1] > (0.55 if name == "Moons" else 0.3)
    assert f"part:{file}:{name}" in history.info.sources


def test_a_model_in_numpy_learns_as_the_compiled_one_does(file):
    """With the same samples drawn: only the bias is missing, and a step without it is the same."""
    changes = {"learn.step_size": 0.5, "learn.batch_size": 5, "learn.penalty": "none"}
    compiled = {"kind": "linear", "loss": "multinomial", "initial_deviation": 0.0}
    models = [tiny(**changes, **{"learn.model": one}).loaded().learn
              for one in (f"{file}:Softmax", compiled)]  # fmt: skip
    data = tiny().data.load()
    learners = [one.learner(data, tiny().data.partition.divide(data, np.full(12, 1 / 12),
                np.random.default_rng(0))) for one in models]  # fmt: skip
    starts = [np.zeros(one.model.length(data), np.float32) for one in learners]
    losses = [one.losses(start, np.arange(12)) for one, start in zip(learners, starts, strict=True)]
    np.testing.assert_allclose(*losses, rtol=1e-5)


def test_fields_are_read_and_kept(file):
    scenario = tiny(**{"learn.compression": {"kind": f"{file}:Half", "share": 0.25}})
    assert (
        scenario.with_(**{"learn.compression.share": 0.5}).loaded().learn.compression.share == 0.5
    )
    assert simulate(scenario, "max-pack", 1).numbers("bits")[0] % (32 * 52) == 0


@pytest.mark.parametrize(
    ("field", "name", "said"),
    [
        ("learn.aggregation", "Broken", r"mine\.py:\d+: KeyError: 'here'"),
        ("learn.compression", "Empty", r"Empty has no method .* every compression needs"),
        ("learn.compression", "Median", "there is no subclass of agewise's Compression"),
    ],
)
def test_what_is_wrong_with_it_is_told_with_its_file(field, name, said, file):
    with pytest.raises(ValueError, match=said) as error:
        simulate(tiny(**{field: f"{file}:{name}"}), "age-based")
    assert isinstance(error.value, CodeError) or "mine.py" in str(error.value)


class Trimmed(Aggregation):
    """Leaves out the update that is the longest."""

    def combine(self, state, updates, sizes):
        lengths = np.linalg.norm(updates.moves, axis=1)
        kept = np.argsort(lengths)[: max(1, lengths.size - 1)]
        if not updates.ues.size:
            return Aggregated(updates.params, state)
        return Aggregated(updates.models[kept].mean(axis=0), state)


def test_an_object_of_the_program_will_do():
    history = simulate(tiny(**{"learn.aggregation": Trimmed()}), "age-based", 1)
    assert history.info.scenario["learn"]["aggregation"]["kind"] == "Trimmed"
    assert history.accuracy[-1] > 0.3
