"""Paces: who has which update when, what it counts, and that waiting for all is a special case."""

import math

import numpy as np
import pytest

from agewise import Scenario, checks, compare, simulate, sweep
from agewise.experiment import DryRun
from agewise.learn import (
    ExponentialStaleness,
    Federation,
    HingeStaleness,
    PolynomialStaleness,
    Staleness,
)
from agewise.pace import Periodic, Times
from agewise.part import CodeError
from agewise.random import Streams
from agewise.resources import kept_memories, require_resources
from agewise.scenario import ScenarioError
from tests import reference as twin
from tests.scenarios import in_seconds, tiny

SLOTS = {
    "timing": "slots",
    "devices.computing": {"kind": "slots", "median_slots": 1.0, "sigma": 0.5},
}
SECONDS = in_seconds(downlink_s=0.1, median_s=0.6, sigma=0.7)


def periodic(slots, waiting="hold", **more):
    pace = {"kind": "periodic", "period_slots": slots, "waiting": waiting}
    return {"pace": pace, **SLOTS, **more}


def followed(waiting, compute, heard, *, period=2.0, downlink=0.0, able=None):
    """``[period][ue]``: ready slots and staleness where ``heard[period]`` are heard."""
    times = Times(period, downlink, np.array(compute, float), np.ones(len(compute)))
    background = Periodic(period_slots=period, waiting=waiting).start(times)
    rows = []
    for t, ues in enumerate(heard):
        now = np.ones(len(compute), bool) if able is None else np.array(able[t])
        hand = background.begin(t, now)
        rows.append((hand.ready_slots.tolist(), hand.staleness(t).tolist(), hand.starts.tolist()))
        background.end(t, np.array(ues, int), now)
    return rows


# ------------------------------------------------------------------------------ who has what when
def test_a_held_update_stays_the_same_until_it_is_heard():
    rows = followed("hold", [0.5, 1.5], [[], [0], [0, 1], []])
    assert rows[0] == ([0.5, math.inf], [0, 0], [1, 1])  # 1.5 + 1 is more than the period
    assert rows[1] == ([0.0, 0.0], [1, 1], [0, 0])
    assert rows[2] == ([0.5, 0.0], [0, 2], [1, 0])
    assert rows[3] == ([0.5, math.inf], [0, 0], [1, 1])


def test_a_ue_that_restarts_has_a_newer_update_each_time_that_it_is_done():
    """Three slots of computing in periods of two: done at 3 (version 0), 6 (1), 9 (3), 12 (4)."""
    rows = followed("restart", [3.0], [[]] * 7)
    assert [row[0][0] for row in rows] == [math.inf, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    assert [row[1][0] for row in rows] == [0, 1, 2, 2, 1, 2, 2]
    assert sum(row[2][0] for row in rows) == 5


def test_who_restarts_fast_waits_for_the_next_model():
    """An update of the newest model is not computed twice."""
    rows = followed("restart", [0.25], [[]] * 4)
    assert rows == [([0.25], [0], [1])] * 4


def test_the_model_is_there_after_the_downlink():
    assert followed("hold", [0.5], [[0], [0]], downlink=0.25)[1] == ([0.75], [0], [1])


@pytest.mark.parametrize("waiting", ["hold", "restart"])
def test_updates_in_hand_are_those_of_one_clock(waiting):
    rng, period, downlink, ues = np.random.default_rng(7), 2.5, 0.2, 40
    compute, least = rng.lognormal(0.5, 1.0, ues), rng.uniform(0.2, 1.5, ues)
    background = Periodic(period_slots=period, waiting=waiting).start(
        Times(period, downlink, compute, least)
    )
    plain = twin.Background(period, downlink, compute, least, waiting == "restart")
    for t in range(60):
        able, late = rng.random(ues) < 0.8, float(rng.random())
        found, (hands, starts) = background.begin(t, able, late), plain.begin(t, able, late)
        assert found.ready.tolist() == [hand is not None for hand in hands]
        assert found.version.tolist() == [hand[0] if hand else -1 for hand in hands]
        assert found.starts.tolist() == starts
        when = [max(hand[1] - t * period, 0.0) if hand else math.inf for hand in hands]
        np.testing.assert_allclose(found.ready_slots, when, rtol=0, atol=1e-9)
        jobs = {job[0] for job in (*plain.hands, *plain.jobs) if job}
        assert background.versions == jobs
        heard = np.flatnonzero(found.ready & (rng.random(ues) < 0.3))
        background.end(t, heard, able)
        plain.end(t, heard.tolist(), able)


def test_an_absent_ue_does_not_start_and_keeps_what_it_has():
    able = [[True], [False], [False], [True]]
    rows = followed("hold", [0.5], [[0], [], [], []], able=able)
    assert [row[2][0] for row in rows] == [1, 0, 0, 1]
    rows = followed("restart", [1.5], [[], [], [], []], able=able)
    assert [row[1][0] for row in rows] == [0, 1, 2, 3]


def test_a_broadcast_does_not_wait_for_a_ue_without_a_channel(tmp_path):
    """It starts nothing; the others learn and upload as if it were not in the cell."""
    gains = np.random.default_rng(0).exponential(50.0, (8, 12, 5))
    gains[:, 3] = 0.0
    np.savez(tmp_path / "gains.npz", gains=gains, power_budget=1.0)
    pace = {"kind": "periodic", "period_s": 1.5, "waiting": "restart"}
    scenario = tiny(
        **SECONDS, pace=pace, channel={"kind": "trace", "path": str(tmp_path / "gains.npz")}
    ).with_(**{
        "timing.downlink": {"kind": "broadcast", "power_db": 30.0},
        "cell.subchannel_bandwidth_hz": 180e3,
    })  # fmt: skip
    participation = simulate(scenario, "age-based").participation
    assert participation[3] == 0
    assert np.delete(participation, 3).all()


# --------------------------------------------------------------------- synchronous rounds are one
@pytest.mark.parametrize("staleness", ["constant", {"kind": "polynomial", "exponent": 0.5}])
@pytest.mark.parametrize("waiting", ["hold", "restart"])
@pytest.mark.parametrize("policy", ["age-based", "max-pack", "best-norm"])
def test_a_period_for_the_slowest_is_a_synchronous_round(policy, waiting, staleness):
    """With everybody restarted: the same owners, ages, models and accuracies, to the byte."""
    more = {"learn.staleness": staleness, "learn.aggregation": {"kind": "momentum", "beta": 0.5,
            "server_step": 0.7}, "learn.compression": "sign"}  # fmt: skip
    rounds = simulate(tiny(**SLOTS, **more), policy, 4)
    if waiting == "restart":
        periods = simulate(tiny(**periodic(50.0, waiting, **more)), policy, 4)
        for name in ("owner", "power", "ages", "accuracy"):
            np.testing.assert_array_equal(getattr(periods, name), getattr(rounds, name))
        for name in ("test_loss", "objective"):
            np.testing.assert_array_equal(periods.numbers(name), rounds.numbers(name))
        assert not np.concatenate(periods.staleness).any()
    else:  # who holds is left behind
        periods = simulate(tiny(**periodic(50.0, waiting, **more)), policy, 4)
        assert np.concatenate(periods.staleness).any()


@pytest.mark.parametrize("kind", ["memory", "variance-reduced", "momentum", "adam"])
@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_late_updates_go_with_every_aggregation_and_model(kind, model):
    given = {
        "memory": {"kind": "memory", "discount": "none"},
        "variance-reduced": "variance-reduced",
        "momentum": {"kind": "momentum", "beta": 0.5, "server_step": 1.0},
        "adam": {"kind": "adam", "beta_1": 0.9, "beta_2": 0.99, "server_step": 0.01, "tau": 1e-3},
    }[kind]
    models = {"mlp": {"learn.model": {"kind": "mlp", "hidden_widths": [8]}}, "linear": {}}
    late = {"kind": "exponential", "base": 0.8}
    scenario = tiny(
        **periodic(2.0), **models[model], **{"learn.aggregation": given, "learn.staleness": late}
    )
    history = simulate(scenario, "age-based", 1)
    again = simulate(scenario, "age-based", 1)
    assert np.concatenate(history.staleness).max() > 1
    assert history.frame.equals(again.frame)


# ------------------------------------------------------------------------------ weights
def test_weights_by_hand():
    s = np.array([0, 1, 3, 8])
    np.testing.assert_allclose(
        PolynomialStaleness(exponent=0.5).weights(s), [1, 2**-0.5, 0.5, 1 / 3], rtol=1e-15
    )
    hinge = HingeStaleness(slope=10.0, free=2)
    np.testing.assert_allclose(hinge.weights(s), [1, 1, 1 / 11, 1 / 61], rtol=1e-15)
    np.testing.assert_allclose(
        ExponentialStaleness(base=0.5).weights(s), [1, 0.5, 0.125, 1 / 256], rtol=1e-14
    )
    assert ExponentialStaleness(base=0.001).weights(np.array([10**6]))[0] == 1e-100


class Given(Staleness):
    """Staleness weights of a user's."""

    formula: str

    def decay(self, staleness):
        return {
            "1 + s": staleness + 1.0,
            "s - 1": staleness - 1.0,
            "one": np.ones(1),
            "nan": staleness * np.nan,
            "half": np.full(staleness.size, 0.5),
        }[self.formula]


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("1 + s", "Given: decay must give weights from 0 to 1, not 2 for a staleness of 1"),
        ("s - 1", "Given: decay must give weights from 0 to 1, not -1 for a staleness of 0"),
        ("one", r"Given: decay must give numbers of shape \(3,\), not \(1,\)"),
        ("nan", "Given: decay must give finite numbers, not nan"),
    ],
)
def test_weights_of_a_user_s_own_are_checked(formula, message):
    with pytest.raises(CodeError, match=message):
        Given(formula=formula).weights(np.array([0, 1, 2]))
    assert Given(formula="half").weights(np.array([1, 2])).tolist() == [0.5, 0.5]


class Pulls:
    """A learner whose every UE goes a share of the way to its own goal: w + share (goal - w)."""

    def __init__(self, goals, share):
        self.goals, self.share = np.asarray(goals, np.float32), np.float32(share)
        self.sizes = np.full(len(goals), 10)
        self.steps = Scenario.preset("paper").learn.steps

    def init(self, streams):
        return np.ones(1, np.float32)

    def train_from(self, start):
        models = start.starts[start.version]
        return models + self.share * (self.goals[start.ues][:, np.newaxis] - models)


def federation_of(goals, share, **changes):
    settings = Scenario.preset("paper").learn
    return Federation(Pulls(goals, share), settings.model_copy(update=changes), Streams(0))


def test_fed_buff_by_hand():
    """Two updates of staleness 0 and 3: w + (u_1 + u_2 / 2) / 2."""
    federation = federation_of([0.0, 4.0], 0.5, staleness=PolynomialStaleness(exponent=0.5))
    state = federation.init()._replace(past={2: np.array([2.0], np.float32)})
    after = federation.round(state, np.array([0, 1]), 5, versions=np.array([5, 2])).state
    # From w = 1 to 0: u_1 = -0.5. From w_2 = 2 to 4: u_2 = 1.
    assert after.params.tolist() == [1.0 + (-0.5 + 0.5 * 1.0) / 2]


def test_normalised_by_weights_the_step_is_whole():
    weights = PolynomialStaleness(exponent=0.5, normalised_by="weights")
    federation = federation_of([0.0, 4.0], 0.5, staleness=weights)
    state = federation.init()._replace(past={2: np.array([2.0], np.float32)})
    both = federation.round(state, np.array([0, 1]), 5, versions=np.array([5, 2])).state
    assert both.params[0] == pytest.approx(1.0 + (-0.5 + 0.5 * 1.0) / 1.5)
    own = federation.round(
        state, np.array([0, 1]), 5, np.array([0.2, 0.6]), versions=np.array([5, 2])
    ).state
    kept = 0.8 / (0.2 + 0.3)  # a policy's factors keep their sum
    assert own.params[0] == pytest.approx(1.0 + kept * (0.2 * -0.5 + 0.3 * 1.0))


# ------------------------------------------------------------------------------ costs and records
def test_every_start_costs_energy_and_every_period_its_time():
    pace = {"kind": "periodic", "period_s": 1.5, "waiting": "hold"}
    scenario = tiny(**SECONDS, pace=pace)
    held = simulate(scenario, "max-pack", 2)
    restarted = simulate(scenario.with_(**{"pace.waiting": "restart"}), "max-pack", 2)
    np.testing.assert_allclose(held.numbers("seconds"), 1.5)
    compute_j = scenario.device_table(Streams(2)).compute_j
    # In the first period all begin; later, where they hold, only those that were heard.
    began = [np.arange(compute_j.size), *held.received[:-1]]
    expected = [compute_j[ues].sum() for ues in began]
    np.testing.assert_allclose(held.numbers("background_j"), expected)
    assert restarted.numbers("background_j")[0] == held.numbers("background_j")[0]
    assert restarted.numbers("background_j").sum() > held.numbers("background_j").sum()


def test_probes_of_a_period_cost_energy_and_no_time():
    """The background knows no other time than that of its periods."""
    pace = {"kind": "periodic", "period_s": 1.5, "waiting": "restart"}
    last, fresh = (
        simulate(tiny(**SECONDS, pace=pace), f"best-norm:norms={known}", 2)
        for known in ("last", "fresh")
    )
    np.testing.assert_allclose(fresh.numbers("seconds"), 1.5)
    assert fresh.numbers("background_j").sum() > last.numbers("background_j").sum()


def test_learning_in_the_background_empties_batteries():
    """Who restarts without being heard spends its energy on that, and is gone at last."""
    pace = {"kind": "periodic", "period_s": 1.5, "waiting": "restart"}
    battery = {"devices.battery_j": 6.0, "run.rounds": 30}
    history = simulate(tiny(**SECONDS, pace=pace, **battery), "max-pack", 2)
    spent = float(history.numbers("joules").sum())
    assert spent == pytest.approx(12 * 6.0)
    assert not any(ues.size for ues in history.scheduled[-5:])
    held = simulate(tiny(**SECONDS, pace=pace | {"waiting": "hold"}, **battery), "max-pack", 2)
    assert any(ues.size for ues in held.scheduled[10:])


def test_results_over_seconds_compare_paces_at_equal_time():
    pace = {"kind": "periodic", "period_s": 1.5, "waiting": "hold"}
    paces = {"pace": ["rounds", pace]}
    swept = sweep(tiny(**SECONDS), ["age-based", "max-pack"], vary=paces, seeds=2, engine="inline")
    table = swept.table(over="seconds", at=[3.0, 9.0])
    assert list(table.rows[0].at) == [3.0, 9.0]
    assert len(table.rows) == 4


def test_models_of_versions_in_flight_are_kept_and_no_others():
    times = Times(2.0, 0.0, np.array([0.5, 9.0, 1.0]), np.ones(3))
    background = Periodic(period_slots=2.0, waiting="hold").start(times)
    able = np.ones(3, bool)
    for t in range(6):
        background.begin(t, able)
        background.end(t, np.array([0]), able)
    assert background.versions == {0}
    background.begin(6, able)
    assert background.versions == {0, 6}


def test_memory_of_models_in_flight_is_said_and_refused(monkeypatch):
    """At most an update in hand and one under way of each UE, and no more than there are rounds."""
    scenario = tiny(**periodic(2.0))
    (kept,) = kept_memories(scenario)
    said = "eriodic pace keeps 8 x 210 numbers at most: 6.72 kB"
    assert str(kept) == f"p{said}"
    with pytest.raises(DryRun, match=f"P{said}"):
        compare(scenario, ["age-based"], 1, "nowhere", dry_run=True)
    many = scenario.with_(**{"run.rounds": 100})
    assert kept_memories(many)[0].bytes == 24 * 210 * 4
    monkeypatch.setattr(checks, "available_bytes", lambda: kept.bytes - 1)
    with pytest.raises(ValueError, match="pace = 'periodic' with cell.ues = 12 and models of 210"):
        require_resources(scenario)
    large = tiny(**periodic(2.0), **{"learn.model": {"kind": "mlp", "hidden_widths": [1_000_000]}})
    monkeypatch.setattr(checks, "available_bytes", lambda: 10**9)
    with pytest.raises(ValueError, match="31,000,010 numbers for 21 models would need 2.6 GB"):
        require_resources(large)  # five UEs with three each, and what a round has besides


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"timing": "none", "devices.computing": None}, "pace.kind = periodic needs times"),
        ({"timing.deadline_slots": 4.0}, "the period is one: leave the deadline out"),
        ({"pace.period_slots": -1.0}, r"period_slots = -1.*: must be from 1 .* nearest is 1"),
        ({"pace.period_slots": None}, "give either period_s or period_slots"),
        ({"pace.period_slots": None, "pace.period_s": 1.0}, "needs timing.kind = seconds"),
        ({"learn.local": "control-variates"}, 'pace = "rounds", or learn.local = "none"'),
        ({"learn.aggregation": "variance-reduced",
          "learn.staleness": {"kind": "polynomial", "exponent": 1.0, "normalised_by": "weights"}},
         "remembers updates at their full weight"),
        ({"learn.staleness": {"kind": "exponential", "base": 0.0}}, "learn.staleness.*base"),
        ({"pace.waiting": "forever"}, "pace.*waiting"),
    ],
)  # fmt: skip
def test_what_does_not_fit_a_periodic_pace(changes, message):
    with pytest.raises(ScenarioError, match=message):
        tiny(**periodic(2.0)).with_(**changes)


def test_a_period_in_seconds_is_compared_in_seconds():
    pace = {"kind": "periodic", "period_s": 0.55, "waiting": "hold"}
    with pytest.raises(ScenarioError, match=r"a period of 0\.55, and .*: the nearest is 0\.6"):
        tiny(**SECONDS, pace=pace)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"devices.payload_share": 2.5},
            r"devices \(all\): .* UE 0 2\.5 slots, so it is never .* raise the period to 2\.5",
        ),
        (
            {"devices.computing.median_slots": 100.0, "devices.computing.sigma": 0.0},
            r"devices \(all\): .* take 50\.5 periods: raise run\.rounds to 51, or .* to 12\.625",
        ),
        (
            {
                "devices": {
                    "kind": "classes",
                    "classes": {
                        "fast": {"share": 0.5, "computing": SLOTS["devices.computing"]},
                        "slow": {
                            "share": 0.5,
                            "computing": {"kind": "slots", "median_slots": 15.5, "sigma": 0.0},
                        },
                    },
                }
            },
            r"devices \(slow\): no UE is ready .* run\.rounds to 9, or the .* pace to 2\.0625",
        ),
    ],
)
def test_who_can_never_be_ready_is_named(changes, message):
    with pytest.raises(ValueError, match=message):
        simulate(tiny(**periodic(2.0)).with_(**changes), "age-based")


def test_a_device_that_needs_more_than_the_run_is_named_by_its_row(tmp_path):
    """Ten samples at 1 a second and a slot of 0.5 s are 35 periods; eight are the run."""
    file = tmp_path / "devices.csv"
    file.write_text("samples_per_s,compute_w\n100,1\n1,1\n")
    devices = {"kind": "file", "path": str(file), "assignment": "in-order"}
    pace = {"kind": "periodic", "period_s": 0.6, "waiting": "restart"}
    scenario = tiny(timing=SECONDS["timing"], devices=devices, pace=pace, **{"run.rounds": 17})
    with pytest.raises(ValueError, match=r"line 3\): .* run\.rounds to 18, or .* pace to 0\.6235"):
        simulate(scenario, "age-based")
    enough = scenario.with_(**{"run.rounds": 18, "channel.link.edge_snr_db": 40.0})
    assert simulate(enough, "round-robin").participation[1::2].any()


def test_an_upload_that_takes_the_whole_period_arrives():
    history = simulate(tiny(**periodic(2.0), **{"devices.payload_share": 2.0}), "age-based")
    assert history.outcome_counts["received"] > 0
    assert history.outcome_counts["late"] == 0
