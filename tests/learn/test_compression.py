"""Codes of updates against their definitions, what they keep, and the bits that they take."""

import numpy as np
import pytest

from agewise import Streams, schedule_traffic
from agewise.learn import LocalModels
from agewise.resources import kept_memories
from agewise.scenario import ScenarioError
from agewise.simulation import rounds, simulate
from tests.scenarios import tiny

TOP_K = {"kind": "top-k", "share": 0.1}
CODES = {"none": "none", "qsgd": {"kind": "qsgd", "bits": 4}, "top-k": TOP_K, "sign": "sign"}


def code_of(compression):
    return tiny(**{"learn.compression": compression}).learn.compression


def moves_of(seed, shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def sent_of(code, moves, state, ues, t=0):
    """What is sent of these updates of a model of zeros."""
    start = np.zeros(moves.shape[1], np.float32)
    return code.send(state, LocalModels(start, start + moves, ues, t), Streams(3).compression)[0]


# ------------------------------------------------------------------------------------------ qsgd
@pytest.mark.parametrize("bits", [1, 4])
def test_qsgd_is_unbiased_and_on_its_levels(bits):
    """4,000 draws of 40 weights; a draw deviates by at most half a step: r / (2 s).

    So a mean of n draws has a standard error of at most r / (2 s sqrt(n)); 5 of them are exceeded
    by one of 40 weights with a probability of 2e-5.
    """
    count, length, levels = 4_000, 40, 2**bits - 1
    code, move = code_of({"kind": "qsgd", "bits": bits}), moves_of(1, (1, length))
    moves, size = (
        np.repeat(move, count, axis=0),
        np.float64(np.sqrt((move.astype(float) ** 2).sum())),
    )
    sent = sent_of(code, moves, {}, np.arange(count)).astype(np.float64)
    assert np.abs(sent.mean(axis=0) - move[0]).max() < 5 * size / (2 * levels * np.sqrt(count))
    steps = sent / size * levels
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-5 * levels)
    assert np.abs(np.round(steps)).max() <= levels
    assert (sent * move >= 0).all()
    above = np.abs(sent) - np.abs(move)
    assert np.abs(above).max() <= size / levels * (1 + 1e-6)


def test_rounds_and_ues_draw_their_own():
    code, move = code_of({"kind": "qsgd", "bits": 1}), moves_of(1, (1, 200))
    drawn = {sent_of(code, move, {}, np.array([ue]), t).tobytes() for ue in (0, 1) for t in (0, 1)}
    assert len(drawn) == 4


def test_a_lone_weight_stays_as_it_is():
    code, move = code_of({"kind": "qsgd", "bits": 2}), np.zeros((1, 9), np.float32)
    move[0, 4] = -0.1
    np.testing.assert_array_equal(sent_of(code, move, {}, np.array([0])), move)


# ----------------------------------------------------------------------------------------- top-k
def test_top_k_keeps_the_largest_and_the_first_among_equals():
    code, moves = code_of(TOP_K | {"error_feedback": False}), moves_of(5, (6, 80))
    moves[3:] = np.round(moves[3:])  # many equals
    moves[5] = 1.0
    sent = sent_of(code, moves, code.init_state(6, 80), np.arange(6))
    for move, kept in zip(moves, sent, strict=True):
        largest = np.argsort(-np.abs(move), kind="stable")[:8]
        expected = np.zeros(80, np.float32)
        expected[largest] = move[largest]
        np.testing.assert_array_equal(kept, expected)


@pytest.mark.parametrize("compression", [TOP_K, "sign"])
def test_error_feedback_loses_nothing(compression):
    """What was sent so far and what is left are together the sum of all updates.

    With start at zero each step of top-k is exact but for the sum of update and rest: T roundings
    of numbers below 2^5 in single precision.
    """
    code, ues, count = code_of(compression), np.array([4, 1]), 30
    state = code.init_state(5, 60)
    total, sent = np.zeros((2, 60)), np.zeros((2, 60))
    for t in range(count):
        moves = moves_of(t, (2, 60))
        before = state["unsent"][ues].copy()
        step = sent_of(code, moves, state, ues, t)
        np.testing.assert_allclose(step + state["unsent"][ues], before + moves, atol=2**-19)
        total += moves
        sent += step
    assert np.abs(state["unsent"][ues]).max() < 2**5
    assert np.abs(state["unsent"][ues]).max() > 0.1
    np.testing.assert_allclose(sent + state["unsent"][ues], total, atol=count * 2**-19)
    assert not state["unsent"][[0, 2, 3]].any()  # of UEs that sent nothing


def test_the_sign_has_the_mean_magnitude():
    code, moves = code_of("sign"), moves_of(2, (3, 100))
    sent = sent_of(code, moves, code.init_state(3, 100), np.arange(3))
    means = np.abs(moves.astype(np.float64)).mean(axis=1, keepdims=True)
    np.testing.assert_allclose(sent, np.sign(moves) * means, rtol=1e-6)


# ------------------------------------------------------------------------------------ bits, memory
def test_payloads():
    """32 n; n (b + 1) + 32; k (32 + ceil(lg2 n)); n + 32: for 210 weights, and others."""
    expected = {"none": 6720.0, "qsgd": 1082.0, "top-k": 840.0, "sign": 242.0}
    for name, code in CODES.items():
        assert (
            tiny(**{"learn.compression": code}).learn.compression.payload_bits(210)
            == expected[name]
        )
    top = tiny(**{"learn.compression": TOP_K})
    assert [top.learn.compression.payload_bits(n) for n in (1, 1024, 1025)] == [
        32,
        102 * 42,
        102 * 43,
    ]


@pytest.mark.parametrize("name", CODES)
def test_sent_bits_and_channel_uses_are_counted(name):
    scenario = tiny(**{"learn.compression": CODES[name]})
    payload = scenario.learn.compression.payload_bits(210)
    for record in rounds(scenario, "max-pack", 1):
        assert record.cost.bits == payload * record.delivery.scheduled.size
        held = (record.delivery.owner[None, :] == record.delivery.scheduled[:, None]).sum(axis=1)
        assert record.cost.channel_uses == pytest.approx(
            float((held * payload / record.delivery.rate).sum())
        )
        assert record.cost.seconds is record.cost.energy_j is record.cost.joules is None


def test_the_threshold_follows_from_the_model():
    base = tiny(
        threshold={"kind": "model", "deadline_s": 0.1}, **{"cell.subchannel_bandwidth_hz": 15e3}
    )
    rates = {n: base.with_(**{"learn.compression": c}).rate_threshold for n, c in CODES.items()}
    assert rates == pytest.approx(
        {"none": 2.24, "qsgd": 1082 / 3000, "top-k": 0.28, "sign": 242 / 3000}
    )
    plain = tiny(threshold={"kind": "rate", "rate": base.rate_threshold})
    follows, given = (simulate(one, "max-pack", 2) for one in (base, plain))
    np.testing.assert_array_equal(follows.owner, given.owner)
    np.testing.assert_array_equal(follows.accuracy, given.accuracy)
    hurried = base.with_(**{"threshold.deadline_s": 0.04})
    served = [
        sum(ues.size for ues in simulate(one, "max-pack", 2).received)
        for one in (hurried, hurried.with_(**{"learn.compression": "sign"}))
    ]
    assert served[0] < 0.7 * served[1]
    assert set(schedule_traffic(base, "max-pack", 5).rate_threshold) == {base.rate_threshold}
    with pytest.raises(ScenarioError, match=r"needs cell\.subchannel_bandwidth_hz"):
        tiny(threshold={"kind": "model", "deadline_s": 0.1})
    with pytest.raises(ValueError, match=r"6720 bits need a rate of .* raise threshold\.dead"):
        _ = base.with_(**{"threshold.deadline_s": 1e-6}).rate_threshold


def test_what_is_kept_is_said():
    (kept,) = kept_memories(tiny(**{"learn.compression": TOP_K}))
    assert str(kept) == "top-k compression keeps 12 x 210 numbers: 10.1 kB"
    assert kept.bytes == 12 * 210 * 4
    assert kept.what.startswith("learn.compression = 'top-k' with cell.ues = 12")
    for code in ("none", CODES["qsgd"], TOP_K | {"error_feedback": False}):
        assert kept_memories(tiny(**{"learn.compression": code})) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "qsgd", "bits": 0}, "learn.compression.bits = 0: must be from 1 to 16"),
        ({"kind": "top-k", "share": 0.0}, "learn.compression.share = 0.0: must be above 0 to 1"),
        ({"kind": "topk", "share": 0.1}, "learn.compression.kind = 'topk': did you mean top-k"),
    ],
)
def test_codes_that_cannot_be(change, said):
    with pytest.raises(ScenarioError) as error:
        tiny(**{"learn.compression": change})
    assert said in str(error.value)
