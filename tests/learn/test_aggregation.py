"""Aggregators against their published formulas, and the estimate of the discount."""

import functools

import numpy as np
import pytest

import agewise
from agewise import checks as machine
from agewise.engines import Inline, Local
from agewise.learn import (
    ServerAdam,
    ServerMomentum,
    UpdateMemory,
    Updates,
    VarianceReduced,
    WeightedAverage,
)
from agewise.resources import kept_memories
from agewise.simulation import rounds, simulate
from tests.learn import aggregation_twin as twin
from tests.scenarios import tiny

MEMORY = {"kind": "memory", "discount": "none"}


def fixed(rate):
    return UpdateMemory(discount={"kind": "fixed", "rate": rate})


PAIRS = {
    "average": (WeightedAverage(), twin.average),
    "memory": (UpdateMemory(discount="none"), functools.partial(twin.memory, rate=0.0)),
    "memory-0.1": (fixed(0.1), functools.partial(twin.memory, rate=0.1)),
    "memory-1.5": (fixed(1.5), functools.partial(twin.memory, rate=1.5)),
    "memory-agreement": (UpdateMemory(discount="agreement"), twin.memory_by_agreement),
    "variance-reduced": (VarianceReduced(), twin.variance_reduced),
    "momentum": (
        ServerMomentum(beta=0.8, server_step=0.7),
        functools.partial(twin.momentum, beta=0.8, step=0.7),
    ),
    "adam": (
        ServerAdam(beta_1=0.9, beta_2=0.95, server_step=0.05, tau=1e-3),
        functools.partial(twin.adam, beta_1=0.9, beta_2=0.95, step=0.05, tau=1e-3),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("decay", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(3))
def test_a_rule_moves_the_model_as_published(name, seed, decay):
    """60 rounds; updates lean on those before, so that the agreement is neither 0 nor 1."""
    rule, published = PAIRS[name]
    rng = np.random.default_rng(seed)
    ues, length = 7, 37
    sizes = rng.integers(1, 1000, ues)
    model = rng.standard_normal(length).astype(np.float32)
    leaning = rng.standard_normal((ues, length))
    state, history, steps = rule.init_state(ues, length), [], []
    for t in range(60):
        steps.append(1.0 / (1.0 + decay * t))
        heard = rng.permutation(ues)[: rng.integers(0, ues + 1)]
        leaning += 0.3 * rng.standard_normal((ues, length))
        models = (model + 0.1 * steps[t] * leaning[heard]).astype(np.float32)
        moves = models.astype(np.float64) - model
        history.append(dict(zip(heard.tolist(), moves, strict=True)))
        if isinstance(rule, (UpdateMemory, VarianceReduced)):
            expected = model + twin.with_steps(published, history, sizes, steps)
        else:
            expected = model + published(history, sizes)
        updates = Updates(model, models, heard, step=steps[t])
        model, state, _ = rule.combine(state, updates, sizes)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(model, expected, rtol=0.0, atol=3e-7 * scale)


def test_adam_makes_no_step_of_the_rounding_of_averages():
    """Models that are all equal to the start: no step, however small tau is."""
    model = np.random.default_rng(0).standard_normal(500).astype(np.float32)
    rule = ServerAdam(beta_1=0.9, beta_2=0.99, server_step=0.1, tau=1e-9)
    ues, sizes = np.arange(3), np.array([600, 1, 70])
    updates = Updates(model, np.stack([model] * 3), ues)
    np.testing.assert_array_equal(
        rule.combine(rule.init_state(3, 500), updates, sizes).params, model
    )


# ------------------------------------------------------------------------------------- agreement
def estimate(share, every=1, count=150, opposite=False):
    """What is found to be kept a round of updates that keep ``share`` of the last one a round."""
    rule, rng = UpdateMemory(discount="agreement"), np.random.default_rng(5)
    ues, length = 6, 400
    still, sizes = np.zeros(length, np.float32), np.full(ues, 10)
    hidden = rng.standard_normal((ues, length))
    state = rule.init_state(ues, length)
    found = []
    for t in range(count):
        noise = np.sqrt(1 - share**2) * rng.standard_normal((ues, length))
        hidden = (-1 if opposite else 1) * share * hidden + noise
        heard = np.flatnonzero((t + np.arange(ues)) % every == 0)
        updates = Updates(still, hidden[heard].astype(np.float32), heard)
        state = rule.combine(state, updates, sizes).state
        found.append(rule.discount.decay(state["agreement"]))
    assert all(0.0 < kept <= 1.0 for kept in found)
    return float(np.mean(found[count // 2 :]))


@pytest.mark.parametrize("share", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("every", [1, 3])
def test_agreement_finds_what_updates_keep_a_round(share, every):
    assert estimate(share, every) == pytest.approx(share, abs=0.03)


def test_agreement_is_within_its_bounds():
    assert estimate(1.0) == pytest.approx(1.0, abs=1e-6)
    assert estimate(0.0) < 0.05
    assert estimate(0.9, opposite=True) == pytest.approx(1e-3)
    rule = UpdateMemory(discount="agreement")
    assert rule.discount.decay(np.zeros(3)) == 1.0
    assert rule.discount.decay(np.array([5.0, 1.0, 1.0])) == 1.0


def test_agreement_outlives_rounds_in_which_nobody_is_heard():
    rule, rng = UpdateMemory(discount="agreement"), np.random.default_rng(1)
    model, sizes, ues = np.zeros(50, np.float32), np.array([1, 2]), np.arange(2)
    state = rule.init_state(2, 50)
    first = rng.standard_normal((2, 50)).astype(np.float32)
    for moves in (first, 0.5 * first):
        model, state, _ = rule.combine(state, Updates(model, model + moves, ues), sizes)
    assert rule.discount.decay(state["agreement"]) == pytest.approx(0.5, rel=1e-5)
    nobody = Updates(model, np.empty((0, 50), np.float32), ues[:0])
    for _ in range(8000):
        state = rule.combine(state, nobody, sizes).state
    assert rule.discount.decay(state["agreement"]) == pytest.approx(0.5, rel=1e-5)


# ---------------------------------------------------------------------------------------- memory
def test_what_is_kept_is_known_before_a_run():
    scenario = tiny(**{"learn.aggregation": MEMORY})
    (kept,) = kept_memories(scenario)
    length = 21 * 10  # ten outputs of twenty features and a bias
    assert kept.length == length
    assert kept.bytes == sum(
        each.nbytes for each in scenario.learn.aggregation.state_spec(12, length).values()
    )
    assert str(kept) == f"memory aggregation keeps 12 x 210 numbers: {kept.bytes / 1000:.3g} kB"
    centres = scenario.with_(
        **{"learn.model": {"kind": "k-means", "clusters": 3, "initial_deviation": 0.0}}
    )
    assert kept_memories(centres)[0].length == 60
    assert kept_memories(scenario.with_(**{"data.task": "parity"}))[0].length == 21
    assert kept_memories(tiny()) == []


def test_only_what_grows_with_the_ues_is_announced():
    for rule, announced in (("average", 0), ("variance-reduced", 1), (MEMORY, 1)):
        assert len(kept_memories(tiny(**{"learn.aggregation": rule}))) == announced


@pytest.mark.parametrize("quiet", [False, True])
def test_a_run_says_what_it_keeps(quiet, capsys):
    scenario = tiny(**{"learn.aggregation": MEMORY, "run.rounds": 2})
    agewise.compare(scenario, ["age-based", "random"], 2, engine=Inline(), quiet=quiet)
    said = capsys.readouterr().err
    assert said.count("memory aggregation keeps 12 x 210 numbers") == (0 if quiet else 1)


def test_more_than_there_is_is_refused_before_anything_starts(monkeypatch, tmp_path):
    scenario = tiny(**{"learn.aggregation": MEMORY, "run.rounds": 2})
    kept = kept_memories(scenario)[0].bytes
    monkeypatch.setattr(machine, "available_bytes", lambda: kept - 1)
    message = "learn.aggregation = 'memory' with cell.ues = 12 and models of 210 numbers would need"
    for attempt in (simulate, rounds):
        with pytest.raises(ValueError, match=message):
            attempt(scenario, "age-based")
    with pytest.raises(ValueError, match=message):
        agewise.compare(scenario, seeds=2, out=tmp_path / "new", engine=Inline(), quiet=True)
    assert not (tmp_path / "new").exists()
    monkeypatch.setattr(machine, "available_bytes", lambda: 2 * kept - 1)
    with pytest.raises(ValueError, match="in each of 2 processes would need"):
        agewise.compare(scenario, seeds=2, engine=Local(2), quiet=True)
    monkeypatch.setattr(machine, "available_bytes", lambda: 2 * kept)
    assert len(agewise.compare(scenario, seeds=1, engine=Inline(), quiet=True).table().rows) == 2


# ------------------------------------------------------------------------- starts of their own
def test_updates_may_have_started_from_older_models():
    """w + sum of p_i (w_i - start_i): each update counts from the model that it started from."""
    rng = np.random.default_rng(3)
    starts = rng.standard_normal((2, 53)).astype(np.float32)
    version, sizes = np.array([1, 0, 1]), np.array([10, 20, 70])
    moves = rng.standard_normal((3, 53)).astype(np.float32)
    updates = Updates(
        starts[1], starts[version] + moves, np.array([2, 0, 1]), starts=starts, version=version
    )
    assert updates.version.tolist() == [0, 1, 1]
    heard = np.array([1, 2, 0])
    np.testing.assert_allclose(updates.moves, moves[heard], atol=1e-6)
    expected = starts[1] + (sizes / 100) @ moves[heard]
    for name in ("average", "memory"):
        rule = PAIRS[name][0]
        found = rule.combine(rule.init_state(3, 53), updates, sizes).params
        np.testing.assert_allclose(found, expected, atol=2e-6)
    taken = ServerMomentum(beta=0.5, server_step=1.0)
    found = taken.combine(taken.init_state(3, 53), updates, sizes).params
    np.testing.assert_array_equal(found, WeightedAverage().combine({}, updates, sizes).params)
