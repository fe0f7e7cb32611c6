"""Every code of updates: any order and company of UEs; chance by seed, round and UE alone."""

import numpy as np
import pytest

from agewise import Streams
from agewise.learn import Compression, LocalModels
from agewise.part import kinds
from agewise.simulation import simulate
from tests.scenarios import tiny

UES, LENGTH = 7, 53
CODES = {
    "none": "none",
    "qsgd": {"kind": "qsgd", "bits": 3},
    "top-k": {"kind": "top-k", "share": 0.2},
    "top-k without feedback": {"kind": "top-k", "share": 0.2, "error_feedback": False},
    "sign": "sign",
    "sign without feedback": {"kind": "sign", "error_feedback": False},
}


@pytest.fixture(params=CODES)
def learning(request):
    return tiny(**{"learn.compression": CODES[request.param]}).learn


def some_rounds():
    """Start, models and UEs of three rounds; some UEs come again."""
    rng = np.random.default_rng(2)
    for t, ues in enumerate(([0, 2, 3], [2, 5], [6, 0, 1, 2])):
        start = rng.standard_normal(LENGTH).astype(np.float32)
        moves = rng.standard_normal((len(ues), LENGTH)).astype(np.float32)
        yield LocalModels(start, start + moves, np.array(ues), t)


def play(learning, order=lambda ues: np.arange(ues.size), seed=1):
    """What arrived of each UE in each round, and the states after it, as bytes."""
    code = learning.compression
    state, seen = code.init_state(UES, LENGTH), {}
    for trained in some_rounds():
        turned = order(trained.ues)
        ues, given = trained.ues[turned], trained.models[turned]
        sent, state = code.send(
            state, LocalModels(trained.start, given, ues, trained.t), Streams(seed).compression
        )
        seen |= {(trained.t, ue): row.tobytes() for ue, row in zip(ues.tolist(), sent, strict=True)}
        seen[trained.t] = {name: array.tobytes() for name, array in state.items()}
    return seen


def test_every_kind_of_the_scenario_is_here():
    named = {code if isinstance(code, str) else code["kind"] for code in CODES.values()}
    assert named == kinds(Compression).keys()


def test_what_arrives_is_finite_float32_of_the_same_shape(learning):
    code = learning.compression
    state = code.init_state(UES, LENGTH)
    assert sum(array.nbytes for array in state.values()) == sum(
        each.nbytes for each in code.state_spec(UES, LENGTH).values()
    )
    for trained in some_rounds():
        start, shape = trained.start.copy(), trained.models.shape
        sent, state = code.send(state, trained, Streams(1).compression)
        assert (sent.dtype, sent.shape) == (np.float32, shape)
        assert np.isfinite(sent).all()
        np.testing.assert_array_equal(trained.start, start)


def test_the_order_of_the_ues_changes_no_byte(learning):
    assert play(learning, lambda ues: np.argsort(-ues)) == play(learning)


def test_the_company_of_other_ues_changes_no_byte(learning):
    code, together = learning.compression, play(learning)
    state = code.init_state(UES, LENGTH)
    for trained in some_rounds():
        for i, ue in enumerate(trained.ues.tolist()):
            alone = LocalModels(trained.start, trained.models[[i]], trained.ues[[i]], trained.t)
            sent, state = code.send(state, alone, Streams(1).compression)
            assert sent[0].tobytes() == together[trained.t, ue]


def test_chance_follows_the_seed(learning):
    random = learning.compression.kind == "qsgd"
    assert (play(learning, seed=2) != play(learning)) == random


def test_an_update_of_nothing_stays_nothing(learning):
    code, start = learning.compression, np.full(LENGTH, 0.25, np.float32)
    trained = LocalModels(start, np.stack([start, start]), np.array([1, 4]), 0)
    sent, _ = code.send(code.init_state(UES, LENGTH), trained, Streams(1).compression)
    np.testing.assert_array_equal(sent, [start, start])


def test_runs_learn_with_it(learning):
    scenario = tiny(**{"learn.compression": learning.compression.model_dump(), "run.rounds": 20})
    first, again = (simulate(scenario, "age-based", 4) for _ in range(2))
    assert first.to_bytes() == again.to_bytes()
    assert first.accuracy[-1] > max(0.3, first.accuracy[0])
