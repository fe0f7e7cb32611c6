"""The Gymnasium environment: the rounds of simulate, whatever the agent does."""

import importlib
import math
import pickle
import sys
import warnings

import numpy as np
import pytest

from agewise import Scenario, schedule_traffic, simulate
from agewise.age import f_alpha
from agewise.data import Data
from agewise.part import CodeError
from agewise.policies import Learned, Scorer
from agewise.scenario import presets
from tests.scenarios import tiny

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from agewise.gym import SchedulingEnv  # noqa: E402

LATE = {
    "timing": {"kind": "slots", "deadline_slots": 2.0},
    "devices.computing": {"kind": "slots", "median_slots": 1.0, "sigma": 0.5},
}
WORLDS = {
    "paper": tiny(),
    "late": tiny(**LATE),
    "estimated": tiny(**{"channel.csi": {"kind": "estimated", "pilot_snr_db": 5.0}}),
    "periods": Scenario.preset("periodic").with_(**{"cell.ues": 12, "run.rounds": 8}),
    "devices": Scenario.preset("mixed-devices").with_(**{"run.rounds": 8}),
}


def play(env, seed, score):
    """Observations and rewards of an episode, with the scores of each observation."""
    observation, _ = env.reset(seed=seed)
    observations, rewards, is_over = [observation], [], False
    while not is_over:
        observation, reward, ended, is_over, _ = env.step(score(observation))
        assert not ended
        assert env.observation_space.contains(observation)
        observations.append(observation)
        rewards.append(reward)
    return np.array(observations), np.array(rewards)


def by_age(observation):
    return f_alpha(observation[:, 0], 0.5)


@pytest.mark.parametrize("reward", ["age", "weight", "loss", "accuracy"])
def test_gymnasium_accepts_it(reward):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of ranges without an end: ages have none
        check_env(SchedulingEnv(tiny(), reward), skip_render_check=True)


@pytest.mark.parametrize("world", WORLDS)
def test_an_agent_that_weighs_ages_is_the_policy(world):
    scenario = WORLDS[world]
    observations, rewards = play(SchedulingEnv(scenario), 3, by_age)
    history = simulate(scenario, "age-based", 3)
    np.testing.assert_array_equal(observations[1:, :, 0], history.ages)
    np.testing.assert_array_equal(rewards, [-ages.mean() for ages in history.ages])


@pytest.mark.parametrize("world", WORLDS)
def test_rewards_of_learning_are_what_simulate_records(world):
    history = simulate(WORLDS[world], "age-based", 1)
    env = SchedulingEnv(WORLDS[world], "accuracy")
    observations, accuracy = play(env, 1, by_age)
    np.testing.assert_array_equal(accuracy, history.accuracy)
    np.testing.assert_array_equal(history.ages, observations[1:, :, 0])
    _, losses = play(SchedulingEnv(WORLDS[world], "loss"), 1, by_age)
    np.testing.assert_array_equal(losses, -history.numbers("test_loss"))
    last, column = observations[-1], env.features.index("last loss")
    assert ((last[:, column] > 0) == (history.participation > 0)).all()
    assert (last[:, env.features.index("data size")] > 1).all()


def test_the_weight_of_a_round_is_that_of_problem_3():
    history = simulate(tiny(), "age-based", 2)
    before = np.vstack((np.zeros((1, 12), int), history.ages[:-1]))
    weights = [f_alpha(b, 0.5)[ues].sum() for b, ues in zip(before, history.scheduled, strict=True)]
    np.testing.assert_allclose(play(SchedulingEnv(tiny(), "weight"), 2, by_age)[1], weights)


@pytest.mark.parametrize("csi", ["perfect", "statistics"])
def test_no_agent_is_below_the_bound(csi):
    scenario = tiny(**{"channel.csi": csi, "run.rounds": 40, "threshold.rate": 2.0})
    rng, env = np.random.default_rng(0), SchedulingEnv(scenario)
    agents = [by_age, lambda o: o[:, 0] ** 3 / np.maximum(o[:, 1], 1), lambda _: rng.random(12)]
    for seed in (0, 1):
        bound = schedule_traffic(scenario, "random", 40, seed=seed).age_bound
        for agent in agents:
            assert -play(env, seed, agent)[1].mean() >= bound > 0.4


def test_no_agent_is_fresher_than_who_takes_turns_by_age():
    """On symmetric links of unknown success oldest first is optimal: (K + 1) / (2 p) - 1.

    Kadota et al. 2018, who count ages from 1. Ten episodes without their first rounds, and 4
    standard errors. The SNR is exponential with a mean of 10 dB, and 1 bit takes one of 3.
    """
    ring = {"kind": "annulus", "radius_m": 100.0, "least_distance_m": 100.0 - 1e-9}
    world = {"cell.ues": 4, "cell.subchannels": 1, "threshold.rate": 1.0, "run.rounds": 400}
    env = SchedulingEnv(
        tiny(**world, **{"channel.placement": ring, "channel.csi": "statistics"}), "age"
    )
    optimum = (4 + 1) / (2 * math.exp(-3 / 10)) - 1
    rng, scorer = np.random.default_rng(0), Learned().scorer
    agents = {
        "oldest first": lambda seen: seen[:, 0],
        "learned": scorer.scores,
        "at random": lambda _: rng.random(4),
        "one twice as often": lambda seen: seen[:, 0] * [2.0, 1.0, 1.0, 1.0],
        "gives up on the old": lambda seen: seen[:, 0] * (seen[:, 0] < 8),
    }
    for name, agent in agents.items():
        ages = [-play(env, seed, agent)[1][40:].mean() for seed in range(10)]
        error = np.std(ages, ddof=1) / 10**0.5
        assert np.mean(ages) > optimum - 4 * error, name
        if name in ("oldest first", "learned"):
            assert abs(np.mean(ages) - optimum) < 4 * error, name
            assert error < 0.05 * optimum
        else:
            assert np.mean(ages) > optimum + 4 * error, name


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (np.ones(11), r"one real score for each of the 12 UEs, not float64 of shape \(11,\)"),
        (np.ones((12, 1)), r"not float64 of shape \(12, 1\)"),
        (np.array(["a"] * 12), "not <U1 of shape"),
        (np.ones(12, complex), "not complex128"),
        ([[1.0], [1.0, 2.0]], "for each of the 12 UEs, not rows of different lengths"),
        (np.array([1.0] * 11 + [np.nan]), "at least 0: that of UE 11 is nan"),
        (np.array([1.0, -2.0] + [1.0] * 10), "at least 0: that of UE 1 is -2"),
    ],
)
def test_wrong_scores_are_one_sentence(action, message):
    env = SchedulingEnv(tiny())
    env.reset(seed=0)
    with pytest.raises(ValueError, match=message):
        env.step(action)
    env.step(np.ones(12, np.float32))  # goes on where it was


def test_wrong_arguments_are_one_sentence():
    with pytest.raises(ValueError, match="reward must be one of .*, not 'ages'"):
        SchedulingEnv(tiny(), "ages")
    with pytest.raises(ValueError, match="greedy, in-order, auction"):
        SchedulingEnv(tiny(), packing="greedi")
    with pytest.raises(ValueError, match=r"cell\.ues = 2,000,000,000 .* would need 32\.1 TB"):
        SchedulingEnv(tiny(**{"cell.ues": 2_000_000_000, "cell.subchannels": 2000}))
    with pytest.raises(ValueError, match="there is no preset 'papr'; did you mean paper"):
        SchedulingEnv("papr")
    env = SchedulingEnv(tiny())
    with pytest.raises(gymnasium.error.ResetNeeded, match=r"call reset\(\) first"):
        env.step(np.ones(12))
    play(env, 0, by_age)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.ones(12))


OWN = """
from agewise.devices import Availability
from agewise.radio import PathLoss

class Lost(PathLoss):
    def loss_db(self, distance_m, line_of_sight):
        return distance_m / self.nothing

class Away(Availability):
    def present(self, state, t):
        return [1 // (3 - t) < 5] * state.ues
"""


@pytest.mark.parametrize(
    ("field", "name", "message"),
    [
        ("channel.path_loss", "Lost", r"^mine\.py:7: AttributeError"),
        ("devices.availability", "Away", r"^mine\.py:11: ZeroDivisionError"),
    ],
)
def test_a_part_of_the_users_that_fails_is_named(field, name, message, tmp_path):
    (tmp_path / "mine.py").write_text(OWN)
    scenario = tiny(**{field: {"kind": f"{tmp_path / 'mine.py'}:{name}"}})
    with pytest.raises(CodeError, match=message):
        play(SchedulingEnv(scenario), 0, by_age)


def test_without_learning_no_data_are_read(monkeypatch):
    monkeypatch.setattr(Data, "load", lambda _: pytest.fail("the data were read"))
    play(SchedulingEnv(tiny(), "weight"), 0, by_age)


def test_seeds_and_copies():
    env = SchedulingEnv(tiny())
    first = play(env, 5, by_age)
    drawn = [env.reset()[1]["seed"] for _ in range(2)]
    assert drawn[0] != drawn[1]
    again = play(env, 5, by_age)
    np.testing.assert_array_equal(first[0], again[0])
    assert [env.reset()[1]["seed"] for _ in range(2)] == drawn, "the next seeds follow from it"
    env.reset(seed=6)
    env.step(np.ones(12))
    copy = pickle.loads(pickle.dumps(env))  # noqa: S301
    for _ in range(3):
        one, other = env.step(np.arange(12.0)), copy.step(np.arange(12.0))
        np.testing.assert_array_equal(one[0], other[0])
        assert one[1] == other[1]


def test_several_at_once():
    envs = gymnasium.vector.SyncVectorEnv([lambda: SchedulingEnv(tiny())] * 2)
    observations, _ = envs.reset(seed=[3, 4])
    assert observations.shape == (2, 12, 6)
    for _ in range(4):
        observations, rewards, *_ = envs.step(np.array([by_age(one) for one in observations]))
    for seed, reward, seen in zip((3, 4), rewards, observations, strict=True):
        history = simulate(tiny(), "age-based", seed)
        assert reward == -history.ages[3].mean()
        np.testing.assert_array_equal(seen[:, 0], history.ages[3])


def test_without_gymnasium_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    monkeypatch.delitem(sys.modules, "agewise.gym")
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'agewise\[gym\]'"):
        importlib.import_module("agewise.gym")


def test_presets_have_ids():
    assert {f"Agewise/{name}-v0" for name in presets()} <= set(gymnasium.registry)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        env = gymnasium.make("agewise.gym:Agewise/paper-v0", reward="weight")
    observation, info = env.reset(seed=8)
    assert observation.shape == (100, 6)
    assert info == {"seed": 8}


def test_a_scorer_plays_as_its_policy_does(tmp_path):
    rng = np.random.default_rng(4)
    arrays = rng.normal(size=(5, 6)), rng.normal(size=(5, 6)), rng.normal(size=5)
    scorer = Scorer(*arrays, rng.normal(size=5))
    scorer.save(tmp_path / "mine.npz", "drawn in a test")
    policy = f"learned:path={tmp_path / 'mine.npz'}"
    rewards = play(SchedulingEnv(tiny()), 7, scorer.scores)[1]
    traffic = schedule_traffic(tiny(), policy, 8, seed=7)
    assert -rewards.mean() == pytest.approx(traffic.mean_age.mean())
    auction = schedule_traffic(tiny(), f"{policy},packing=auction", 8, seed=7)
    by_auction = play(SchedulingEnv(tiny(), packing="auction"), 7, scorer.scores)[0]
    np.testing.assert_array_equal(by_auction[1:, :, 0].mean(axis=0), auction.mean_age)
    assert (auction.mean_age != traffic.mean_age).any()
    env = SchedulingEnv(WORLDS["late"], "accuracy")
    accuracy = play(env, 7, lambda seen: scorer.scores(np.ascontiguousarray(seen[:, :6])))[1]
    np.testing.assert_array_equal(accuracy, simulate(WORLDS["late"], policy, 7).accuracy)
