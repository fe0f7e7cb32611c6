"""What every aggregator must do, whatever it makes of the updates."""

import hashlib
import io
import itertools
import subprocess
import sys

import numpy as np
import pytest

from agewise.learn import Aggregation, Updates
from agewise.part import kinds
from tests.scenarios import tiny

RULES = {
    "average": "average",
    "memory": {"kind": "memory", "discount": "none"},
    "memory-fixed": {"kind": "memory", "discount": {"kind": "fixed", "rate": 0.3}},
    "memory-agreement": {"kind": "memory", "discount": "agreement"},
    "variance-reduced": "variance-reduced",
    "momentum": {"kind": "momentum", "beta": 0.9, "server_step": 1.0},
    "adam": {"kind": "adam", "beta_1": 0.9, "beta_2": 0.99, "server_step": 0.1, "tau": 0.001},
}
#: Not a multiple of the 16 floats that the kernels take at a time, and more than one of their
#: blocks.
LENGTH, UES = 1061, 9
SIZES = np.array([600, 1, 70, 600, 12, 300, 5, 44, 1000])


def settings_of(name):
    return tiny(**{"learn.aggregation": RULES[name]}).learn


@pytest.fixture(params=RULES)
def rule(request):
    return settings_of(request.param).aggregation


def random_rounds(seed=0, count=12, ues=UES, length=LENGTH):
    """Who is heard in each round, and how each moves the model: nobody, one and all among them."""
    rng = np.random.default_rng(seed)
    for t in range(count):
        heard = np.flatnonzero(rng.random(ues) < 0.4)
        if t in (3, 7):
            heard = np.arange(0 if t == 3 else ues)
        elif t == 5:
            heard = np.array([ues - 1])
        yield heard, (0.1 * rng.standard_normal((heard.size, length))).astype(np.float32)


def first_model(length=LENGTH):
    return np.random.default_rng(9).standard_normal(length).astype(np.float32)


def play(rule, rounds, sizes=SIZES, model=None, order=lambda ues: np.arange(ues.size)):
    """The model, diversity and state after each round."""
    model = first_model() if model is None else model
    state = rule.init_state(sizes.size, model.size)
    answers = []
    for ues, moves in rounds:
        chosen = order(ues)
        updates = Updates(model, model + moves[chosen], ues[chosen])
        answers.append(rule.combine(state, updates, sizes))
        model, state, _ = answers[-1]
        answers[-1] = answers[-1]._replace(state={k: v.copy() for k, v in state.items()})
    return answers


def digest(answers):
    content = hashlib.sha256()
    for params, state, diversity in answers:
        content.update(params.tobytes())
        content.update(repr(diversity).encode())
        for name in sorted(state):
            content.update(state[name].tobytes())
    return content.hexdigest()


def digests():
    return {name: digest(play(settings_of(name).aggregation, random_rounds())) for name in RULES}


def test_every_kind_of_the_scenario_is_here():
    named = {rule if isinstance(rule, str) else rule["kind"] for rule in RULES.values()}
    assert named == kinds(Aggregation).keys()


def test_models_are_finite_float32_and_inputs_stay_as_they_are(rule):
    model, state = first_model(), rule.init_state(UES, LENGTH)
    for ues, moves in random_rounds():
        given, kept = model.copy(), model + moves
        trained = kept.copy()
        params, state, diversity = rule.combine(state, Updates(model, trained, ues), SIZES)
        assert params.dtype == np.float32
        assert params.shape == (LENGTH,)
        assert np.isfinite(params).all()
        assert diversity is None or diversity > 0
        assert (diversity is None) == (ues.size == 0)
        np.testing.assert_array_equal(model, given)
        np.testing.assert_array_equal(trained, kept)
        model = params


def test_the_order_in_which_updates_arrive_changes_no_byte(rule):
    shuffled = np.random.default_rng(4)
    usual = digest(play(rule, random_rounds()))
    assert digest(play(rule, random_rounds(), order=lambda ues: np.argsort(-ues))) == usual
    order = lambda ues: shuffled.permutation(ues.size)  # noqa: E731
    assert digest(play(rule, random_rounds(), order=order)) == usual


def test_factors_follow_their_ues():
    model = first_model()
    moves = np.random.default_rng(1).standard_normal((3, LENGTH)).astype(np.float32)
    ues, factors = np.array([2, 5, 8]), np.array([0.5, 0.1, 2.0])
    turned = [2, 0, 1]
    for name in RULES:
        rule = settings_of(name).aggregation
        one, other = (
            rule.combine(rule.init_state(UES, LENGTH), updates, SIZES).params
            for updates in (
                Updates(model, model + moves, ues, factors),
                Updates(model, model + moves[turned], ues[turned], factors[turned]),
            )
        )
        np.testing.assert_array_equal(one, other, err_msg=name)


def test_updates_that_do_not_fit_are_refused():
    model = first_model()
    with pytest.raises(ValueError, match="UE 4 sent two updates"):
        Updates(model, np.stack([model] * 3), np.array([4, 1, 4]))
    with pytest.raises(ValueError, match=r"need models of shape \(2, 1061\), not \(3, 1061\)"):
        Updates(model, np.stack([model] * 3), np.array([4, 1]))


def test_another_process_gives_the_same_bytes():
    code = "from tests.conformance.test_aggregators import digests; print(digests())"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == str(digests())


@pytest.mark.parametrize("name", RULES)
def test_the_state_has_the_declared_arrays_and_survives_a_file(name):
    rule, model = settings_of(name).aggregation, first_model()
    spec, state = rule.state_spec(UES, LENGTH), rule.init_state(UES, LENGTH)
    assert sum(each.nbytes for each in spec.values()) == sum(a.nbytes for a in state.values())
    stored = {key: value.copy() for key, value in state.items()}
    other = model
    for ues, moves in random_rounds():
        file = io.BytesIO()
        np.savez(file, **stored)
        file.seek(0)
        with np.load(file) as loaded:
            stored = {key: loaded[key] for key in loaded.files}
        model, state, _ = rule.combine(state, Updates(model, model + moves, ues), SIZES)
        other, stored, _ = rule.combine(stored, Updates(other, other + moves, ues), SIZES)
        np.testing.assert_array_equal(model, other)
        assert {key: (a.shape, a.dtype) for key, a in state.items()} == {
            key: (shape, np.dtype(dtype)) for key, (shape, dtype) in spec.items()
        }


def test_two_runs_of_one_rule_do_not_mix(rule):
    alone = digest(play(rule, random_rounds()))
    one, other = rule.init_state(UES, LENGTH), rule.init_state(UES, LENGTH)
    for name, array in one.items():
        array += 1.0
        assert not np.shares_memory(array, other[name])
    assert digest(play(rule, random_rounds())) == alone


def test_names_of_ues_do_not_matter(rule):
    relabelled = np.random.default_rng(2).permutation(UES)
    sizes = np.empty_like(SIZES)
    sizes[relabelled] = SIZES
    usual = play(rule, random_rounds())
    other = play(rule, ((relabelled[ues], moves) for ues, moves in random_rounds()), sizes)
    for one, two in zip(usual, other, strict=True):
        np.testing.assert_allclose(two.params, one.params, rtol=1e-5, atol=1e-5)
        assert two.diversity == (one.diversity and pytest.approx(one.diversity, rel=1e-5))


def test_nobody_heard_at_first_leaves_the_model(rule):
    nobody = np.array([], dtype=np.int64), np.zeros((0, LENGTH), np.float32)
    for answer in play(rule, [nobody] * 3):
        np.testing.assert_array_equal(answer.params, first_model())
        assert answer.diversity is None


def test_one_ue_alone_is_followed(rule):
    """The first round of a cell with one UE: all but Adam take its step as it is."""
    moves = next(moves for ues, moves in random_rounds() if ues.size)[:1]
    answer, *_ = play(rule, [(np.array([0]), moves)], sizes=np.array([7]))
    taken = (answer.params - first_model()).astype(np.float64)
    if rule == settings_of("adam").aggregation:
        moved = np.abs(moves[0]) > 1e-3
        np.testing.assert_array_equal(np.sign(taken)[moved], np.sign(moves[0])[moved])
    else:
        np.testing.assert_allclose(taken, moves[0], atol=1e-6)
    assert answer.diversity == pytest.approx(1.0, rel=1e-6)


def test_equal_models_leave_the_model(rule):
    """Averaging rounds the weights to single precision; the others add up changes, here none."""
    still = np.zeros((UES, LENGTH), np.float32)
    rounds = [(np.arange(UES), still), (np.array([0, 4]), still[:2]), (np.arange(0), still[:0])]
    exact = rule != settings_of("average").aggregation
    for answer in play(rule, rounds):
        tolerance = 0.0 if exact else 3e-7
        np.testing.assert_allclose(answer.params, first_model(), rtol=tolerance, atol=0.0)
        assert answer.diversity is None


def test_updates_that_cancel_leave_the_model_and_have_no_diversity(rule):
    moves = 2.0 ** np.random.default_rng(3).integers(-6, 3, LENGTH)
    pair = np.stack([moves, -moves]).astype(np.float32)
    still = np.zeros(LENGTH, np.float32)
    answer, *_ = play(rule, [(np.array([0, 3]), pair)], model=still)  # both have 600 samples
    np.testing.assert_array_equal(answer.params, still)
    assert answer.diversity is None


def test_identical_updates_count_as_one(rule):
    move = next(moves for ues, moves in random_rounds() if ues.size)[0]
    sizes = np.full(UES, 10)
    alone, *_ = play(rule, [(np.array([0]), move[None])], sizes[:1])
    together, *_ = play(rule, [(np.arange(UES), np.stack([move] * UES))], sizes)
    np.testing.assert_allclose(together.params, alone.params, atol=2e-6)
    assert together.diversity == pytest.approx(1 / UES, rel=1e-5)


@pytest.mark.parametrize("unit", [1, 10**6, 10**12])
def test_sizes_count_by_their_ratios(rule, unit):
    usual, other = (play(rule, random_rounds(), SIZES * scale) for scale in (1, unit))
    for one, two in zip(usual, other, strict=True):
        np.testing.assert_allclose(two.params, one.params, atol=1e-5)


def test_sizes_may_differ_by_ten_orders_of_magnitude(rule):
    sizes = np.array([10**10] + [1] * (UES - 1))
    for answer in play(rule, random_rounds(), sizes):
        assert np.isfinite(answer.params).all()
        assert all(np.isfinite(array).all() for array in answer.state.values())


@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1e12])
def test_tiny_and_huge_updates_stay_finite(rule, scale):
    still = np.zeros(LENGTH, np.float32)
    rounds = [(ues, (moves * scale).astype(np.float32)) for ues, moves in random_rounds()]
    for answer in play(rule, rounds, model=still):
        assert np.isfinite(answer.params).all()
        assert all(np.isfinite(array).all() for array in answer.state.values())


@pytest.mark.parametrize("name", [name for name in RULES if "memory" in name or "var" in name])
def test_a_ue_that_is_heard_again_replaces_its_own_memory_only(name):
    rule, model = settings_of(name).aggregation, first_model()
    before = rule.init_state(UES, LENGTH)["updates"]
    for (ues, moves), answer in zip(random_rounds(), play(rule, random_rounds()), strict=True):
        after = answer.state["updates"]
        others = np.setdiff1d(np.arange(UES), ues)
        np.testing.assert_array_equal(after[others], before[others])
        np.testing.assert_array_equal(after[ues], (model + moves) - model)
        before, model = after, answer.params


@pytest.mark.parametrize("rate", [0.1, 1.0, 74.0, 100.0])
def test_a_long_silence_forgets_nothing_and_ends_in_no_zero_over_zero(rate):
    """74 a round for 10 rounds once made weights whose reciprocal is infinite."""
    settings = tiny(
        **{"learn.aggregation": {"kind": "memory", "discount": {"kind": "fixed", "rate": rate}}}
    ).learn
    rule = settings.aggregation
    (ues, moves), *_ = random_rounds()
    nobody = np.array([], dtype=np.int64), np.zeros((0, LENGTH), np.float32)
    answers = play(rule, [(ues, moves)] + [nobody] * 10 + [(ues[:1], moves[:1])])
    step = answers[0].params - first_model()
    for before, after in itertools.pairwise(answers[:-1]):
        np.testing.assert_allclose(after.params - before.params, step, atol=1e-5)
    assert np.isfinite(answers[-1].params).all()
    weights = answers[-1].state["weights"][ues]
    np.testing.assert_allclose(weights[1:], SIZES[ues[1:]] * np.exp(-11.0 * rate), rtol=1e-9)
