"""Learned policies: the scorer against plain NumPy, and its file."""

import pickle

import numpy as np
import pytest

from agewise import compare, policies, schedule_traffic
from agewise.policies import FEATURES, Learned, Scorer, features_of
from agewise.spectrum import Uplink
from tests.scenarios import tiny
from tests.test_cli import agewise_command
from tests.views import view_of


def drawn(seed=0, units=4):
    rng = np.random.default_rng(seed)
    shape = units, len(FEATURES)
    return Scorer(rng.normal(size=shape), rng.normal(size=shape), *rng.normal(size=(2, units)))


def twin(scorer, features):
    """The scores in plain NumPy."""
    inputs = np.log1p(features)
    inputs[:, 2], inputs[:, 4] = features[:, 2] / 20, features[:, 4]
    hidden = inputs @ scorer.weights.T + scorer.context @ inputs.mean(axis=0) + scorer.bias
    return np.exp(np.clip(np.maximum(hidden, 0) @ scorer.output, -50, 50))


def test_scores_are_those_of_a_slow_twin():
    rng = np.random.default_rng(1)
    for ues in (1, 7, 100):
        features = rng.exponential(3.0, (ues, len(FEATURES)))
        scores = drawn().scores(features)
        np.testing.assert_allclose(scores, twin(drawn(), features), rtol=1e-12)
        order = rng.permutation(ues)
        np.testing.assert_allclose(drawn().scores(features[order]), scores[order], rtol=1e-12)


def test_features_are_what_their_names_say():
    uplink = Uplink([[3.0, 1.0], [0.0, 0.0], [1.0, 10.0]], [1.0, 1.0, 10.0], 1.01)
    known = {"staleness": [0, 2, 1], "attempts": [0, 4, 3], "successes": [0, 1, 3]}
    known = {name: np.array(values) for name, values in known.items()}
    view = view_of(uplink, np.array([5, 0, 2]), data_sizes=np.array([10, 20, 30]), **known)
    expected = [
        [5, 2, 10 * np.log10(3), 0, 1.0, 10],
        [0, 0, -100, 2, 2 / 5, 20],
        [2, 1, 20, 1, 1.0, 30],
    ]
    np.testing.assert_allclose(features_of(view), expected, rtol=1e-12)


def test_the_file_gives_back_what_was_saved(tmp_path):
    drawn().save(tmp_path / "a.npz", "drawn in a test")
    policy = Learned(path=str(tmp_path / "a.npz"))
    for one, other in zip(policy.scorer, drawn(), strict=True):
        np.testing.assert_array_equal(one, other)
    copy = pickle.loads(pickle.dumps(policy))  # noqa: S301
    assert copy == policy
    assert copy.scorer.bias.tolist() == drawn().bias.tolist()
    assert str(policy) == f"learned:path={tmp_path / 'a.npz'}"


def test_how_the_weights_were_made_is_shown(tmp_path):
    file = tmp_path / "a.npz"
    drawn().save(file, "drawn in a test\x1b[31m")
    assert policies.describe(f"learned:path={file}").provenance == "drawn in a test\x1b[31m"
    assert "train.py" in policies.describe("learned").provenance
    assert policies.describe("age-based:alpha=0.5").provenance == ""
    with pytest.raises(ValueError, match="alpha must be at most 1"):
        policies.describe("age-based:alpha=2")
    shown = agewise_command("policies", f"learned:path={file}").stdout
    assert "Its weights: drawn in a test\\x1b[31m" in shown
    with pytest.raises(ValueError, match="provenance must say how the weights were made"):
        drawn().save(file, " ")


GOOD = {**drawn()._asdict(), "features": np.array(FEATURES), "provenance": "drawn in a test"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bias": None}, "it has no array 'bias'"),
        (
            {"bias": np.ones(3)},
            r"bias must be float64 of shape \(4,\), not float64 of shape \(3,\)",
        ),
        ({"weights": np.ones((4, 5))}, r"weights must be float64 of shape \(4, 6\)"),
        ({"context": np.ones((4, 6), np.float32)}, "context must be float64 .*, not float32"),
        ({"output": np.array([1.0, np.inf, 0, 0])}, "output has an entry that is not a finite"),
        ({"output": np.array([])}, "its array 'output' is empty"),
        ({"bias": np.array([{}] * 4)}, "not a readable NPZ file"),
        ({"provenance": None}, "it has no array 'provenance'"),
        ({"provenance": 3}, "provenance must be a text that says how the weights were made"),
        ({"provenance": " "}, "provenance must be a text"),
        ({"features": np.array(["age", "gain"])}, "its features are age, gain, and learned"),
    ],
    ids=str,
)
def test_a_wrong_file_is_one_sentence(tmp_path, changes, message):
    arrays = {name: array for name, array in (GOOD | changes).items() if array is not None}
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(ValueError, match=rf"bad\.npz: {message}"):
        policies.make_policy(f"learned:path={tmp_path / 'bad.npz'}")


def test_a_file_that_is_none(tmp_path):
    (tmp_path / "text.npz").write_text("weights")
    for path, message in (("text.npz", "not a readable NPZ file"), ("no.npz", "no such file")):
        with pytest.raises(ValueError, match=message):
            Learned(path=str(tmp_path / path))
    with pytest.raises(ValueError, match="path must be the name of an NPZ file, not 3"):
        Learned(path=3)


def test_other_weights_are_another_source(tmp_path):
    """Runs of weights that have changed since are computed again."""
    how = {"seeds": 1, "out": tmp_path / "runs", "engine": "inline", "quiet": True}
    file = tmp_path / "a.npz"
    ages = []
    for seed in (0, 1):
        drawn(seed).save(file, "drawn in a test")
        result = compare(tiny(), [f"learned:path={file}", "learned"], **how)
        ages.append([result.histories(policy)[0].ages for policy in result.policies])
    assert not np.array_equal(ages[0][0], ages[1][0])
    np.testing.assert_array_equal(ages[0][1], ages[1][1])


def test_what_did_not_vary_in_training_has_no_weight():
    """Sizes of data are all 1 without learning; with it they may be thousands."""
    shipped = Learned().scorer
    constant = [FEATURES.index(name) for name in ("staleness", "reliability", "data size")]
    assert not shipped.weights[:, constant].any()
    assert not shipped.context[:, constant].any()


def test_the_shipped_weights_are_near_the_bound():
    """Trained on 100 UEs with 20 subchannels; other cells are served too."""
    for changes in ({}, {"cell.ues": 30}, {"cell.subchannels": 9}):
        ours, random = (
            schedule_traffic(tiny(**changes), name, 300, seed=4).above_bound
            for name in ("learned", "random")
        )
        assert 0 <= ours < 0.6 * random
