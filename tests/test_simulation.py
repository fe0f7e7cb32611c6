"""Algorithm 3 as a whole: against a plain composition, at its edges, and bit for bit."""

import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

import agewise
from agewise import Allocation, InfeasibleAllocation, Streams, Uplink, simulation
from agewise.age import f_alpha
from agewise.learn import Diverged
from agewise.learn.threads import set_threads
from agewise.policies import AgeBased, MaxPack, Policy
from agewise.simulation import rounds, simulate
from tests import reference
from tests.learn import twin
from tests.scenarios import tiny
from tests.views import view_of


def test_a_run_is_algorithm_3():
    """Scheduling, training, averaging and ageing by the slow twins, composed by hand."""
    scenario, seed, count = tiny(), 4, 5
    streams = Streams(seed)
    channel = scenario.make_channel(streams)
    data = scenario.data.load()
    x, labels = data.train.values().astype(np.float64), data.train.labels
    partition = scenario.data.divide(data, scenario.device_table(streams), streams)
    drawn = streams.model().standard_normal((20, 10), np.float32)
    model = np.vstack((0.01 * drawn, np.zeros((1, 10))))
    ages = [0] * 12
    policy = AgeBased(alpha=0.5, ties="lowest-index")
    for t, record in zip(range(count), rounds(scenario, policy, seed), strict=False):
        weights = [reference.f_alpha(age, 0.5) for age in ages]
        owner, _ = reference.pack(channel.block(t).true.tolist(), weights, range(12), 1.0, 4.0)
        ues = sorted(set(owner) - {-1})
        assert record.delivery.owner.tolist() == owner
        assert record.delivery.scheduled.tolist() == record.delivery.received.tolist() == ues
        own = [partition.samples_of(ue) for ue in ues]
        models = [
            twin.local_sgd(scenario.learn, model, x[i], labels[i], int(streams.sgd), t, ue)
            for ue, i in zip(ues, own, strict=True)
        ]
        updates = np.array(models) - model
        diversity = (updates**2).sum() / (updates.sum(0) ** 2).sum()
        assert record.gradient_diversity == pytest.approx(diversity, rel=1e-3)
        model = np.average(models, axis=0, weights=[len(i) for i in own])
        ages = [0 if ue in ues else age + 1 for ue, age in enumerate(ages)]
        assert record.ages.tolist() == ages
        scores = data.test.values() @ model[:-1] + model[-1]
        right = (scores.argmax(1) == data.test.labels).mean()
        assert record.evaluation.accuracy == pytest.approx(right, abs=0.003)
        expected = twin.losses("hinge", scores, data.test.labels).mean()
        assert record.evaluation.loss == pytest.approx(expected, rel=1e-3)


def test_history_tells_what_the_rounds_did():
    scenario = tiny(**{"run.rounds": 7, "run.evaluate_every": 3, "run.objective_every": 2})
    records = list(rounds(scenario, "age-based", 2))
    history = simulate(scenario, "age-based", 2)
    frame = history.frame
    assert frame["round"].to_list() == list(range(7))
    measured = [t for t in range(7) if not np.isnan(history.accuracy[t])]
    assert measured == [2, 5, 6]
    assert frame["objective"].is_not_null().to_list() == [False, True] * 3 + [True]
    np.testing.assert_array_equal(history.owner, [r.delivery.owner for r in records])
    np.testing.assert_array_equal(history.ages, [r.ages for r in records])
    np.testing.assert_array_equal(history.participation, records[-1].participation)
    assert frame["received"].to_list() == [r.delivery.received.tolist() for r in records]
    assert frame["power"].to_list() == [r.delivery.power.tolist() for r in records]
    assert frame["age_mean"].to_list() == pytest.approx([r.ages.mean() for r in records])
    assert frame["age_largest"].to_list() == [r.ages.max() for r in records]
    costs = [sum(reference.f_alpha(int(a), 0.5) for a in r.ages) for r in records]
    assert frame["age_cost"].to_list() == pytest.approx(costs)
    reached = [np.count_nonzero(r.participation) for r in records]
    assert frame["reached"].to_list() == reached
    assert frame["subchannels_used"].to_list() == [
        np.count_nonzero(r.delivery.owner >= 0) for r in records
    ]
    assert history.info.scenario == scenario.model_dump(mode="json", exclude_none=True)
    assert (history.info.policy, history.info.seed) == (AgeBased().key, 2)
    assert history.info.version == agewise.__version__


def test_every_round_is_told_as_soon_as_it_is_over():
    scenario, seen = tiny(**{"run.rounds": 3}), []
    history = agewise.simulate(scenario, "random", 1, on_round=seen.append)
    assert [record.t for record in seen] == [0, 1, 2]
    assert [record.evaluation.accuracy for record in seen] == history.accuracy.tolist()

    def stop(record):
        raise RuntimeError(f"stopped in round {record.t}")

    with pytest.raises(RuntimeError, match="stopped in round 0"):
        simulate(scenario, "random", 1, stop)


def test_nobody_scheduled_leaves_the_model_and_ages_everyone():
    history = simulate(tiny(**{"threshold.rate": 1000.0}), "age-based")
    assert len(set(history.accuracy)) == 1
    assert history.ages.tolist() == [[t + 1] * 12 for t in range(8)]
    assert history.frame["gradient_diversity"].null_count() == 8
    assert history.participation.tolist() == [0] * 12


@pytest.mark.parametrize("loss", ["squared-error", "squared-hinge"])
def test_a_diverging_model_stops_with_the_round_and_the_cause(loss):
    scenario = tiny(**{"learn.model.loss": loss, "learn.step_size": 50.0, "learn.local_steps": 200})
    with pytest.raises(Diverged, match=r"diverged in round \d.*too large: lower learn.step_size"):
        simulate(scenario, "random")


def test_an_infeasible_allocation_stops_with_the_policy_the_round_and_the_constraint():
    @dataclass(frozen=True)
    class Cheat(Policy):
        name = "cheat"

        def schedule(self, view, rng):
            count = view.uplink.subchannel_count
            return Allocation.of(view.uplink, np.zeros(count, int), np.ones(count))

    with pytest.raises(InfeasibleAllocation, match=r"cheat in round 0: power constraint \(3c\)"):
        simulate(tiny(), Cheat())


@dataclass(frozen=True)
class Forger(Policy):
    """Fair at first, then says what suits it."""

    forge: str
    name = "forger"

    def schedule(self, view, rng):
        uplink = view.uplink
        fair = AgeBased().schedule(view, rng)
        if view.ages.max() < 2:
            return fair
        return {
            "gains": Allocation(
                fair.owner, fair.power * 0.1, fair.gain * 10, np.ones(12), np.full(12, 4.0)
            ),
            "threshold": AgeBased().schedule(
                view_of(Uplink(uplink.gains, uplink.power_budget, 0.5), view.ages), rng
            ),
            "size": Allocation.of(Uplink(uplink.gains[:, :3], 1.0, 0.0), [-1] * 3, [0.0] * 3),
            "nothing": None,
        }[self.forge]


@pytest.mark.parametrize(
    ("forge", "said"),
    [
        ("gains", r"rate constraint \(3b\) violated: UE \d+ reaches"),
        ("threshold", r"rate constraint \(3b\) violated: UE \d+ reaches"),
        ("size", r"gains have shape \(12, 5\), the allocation is of 12 UEs and 3 subchannels"),
        ("nothing", "returned None instead of an Allocation"),
    ],
)
def test_an_allocation_is_proven_against_the_rounds_own_gains(forge, said):
    with pytest.raises(InfeasibleAllocation, match=f"forger:forge={forge} in round 2: {said}"):
        simulate(tiny(), Forger(forge))


def test_same_round_same_model_same_update_whatever_the_policy():
    """In round 0 all start from one model: a UE that two policies serve learns the same."""
    first = next(rounds(tiny(), AgeBased(), 9))
    second = next(rounds(tiny(), MaxPack(), 9))
    assert first.delivery.received.tolist() == second.delivery.received.tolist()
    assert first.evaluation.accuracy == second.evaluation.accuracy
    assert first.gradient_diversity == second.gradient_diversity


def history_bytes(tmp_path, name, **changes):
    path = tmp_path / f"{name}.parquet"
    simulate(tiny(**changes), "age-based", 3).save(path)
    return path.read_bytes()


def test_the_same_bytes_whatever_the_threads_and_the_process(tmp_path):
    wide = {"learn.batch_size": 40, "learn.local_steps": 60}
    made = []
    for threads in (1, 2, 2):
        set_threads(threads)
        made.append(history_bytes(tmp_path, "here", **wide))
    code = (
        "from tests.test_simulation import history_bytes; import pathlib, sys;"
        f"history_bytes(pathlib.Path(sys.argv[1]), 'there', **{wide!r})"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, cwd=".")
    made.append((tmp_path / "there.parquet").read_bytes())
    assert len(set(made)) == 1


@pytest.mark.parametrize("task", ["parity", "pair"])
@pytest.mark.parametrize("partition", ["iid", "shards", "dirichlet"])
def test_tasks_and_partitions_run(task, partition):
    tasks = {"parity": "parity", "pair": {"kind": "pair", "classes": (3, 8)}}
    partitions = {
        "iid": "iid",
        "shards": {"kind": "shards", "classes_per_ue": 1},
        "dirichlet": {"kind": "dirichlet", "concentration": 0.5},
    }
    changes = {"data.task": tasks[task], "data.partition": partitions[partition]}
    scenario = tiny(**changes, **{"devices.samples_sigma": 0.5})
    history = simulate(scenario, "round-robin")
    assert history.accuracy[-1] > 0.5


def test_learning_works_over_the_scheduled_channel():
    history = simulate(tiny(**{"run.rounds": 60}), "age-based")
    assert history.accuracy[-1] > 0.8 > history.accuracy[0]


def test_the_objective_of_the_mean_falls():
    scenario = tiny(**{"run.rounds": 60, "run.objective_every": 10, "data.partition": "iid"})
    objective = simulate(scenario, "round-robin").frame["objective"].drop_nulls().to_list()
    assert objective[-1] < 0.7 * objective[0]


def test_a_record_keeps_what_pictures_need():
    """Gains and rates of the allocation, places, who holds which class, accuracies of classes."""
    scenario, streams = tiny(), Streams(5)
    channel, records = scenario.make_channel(streams), list(rounds(scenario, "max-pack", 5))
    history = simulate(scenario, "max-pack", 5)
    for t, record in enumerate(records):
        uplink = Uplink(channel.block(t).true, 1.0, 4.0)
        allocation = Allocation.of(uplink, record.delivery.owner, record.delivery.power)
        np.testing.assert_array_equal(record.delivery.gain, allocation.gain)
        np.testing.assert_allclose(record.delivery.rate, allocation.rate[record.delivery.scheduled])
        assert (record.delivery.rate >= 4.0 * (1 - 1e-9)).all()
        weights = np.bincount(scenario.data.load().test.labels) / 1000
        assert record.evaluation.class_accuracy @ weights == pytest.approx(
            record.evaluation.accuracy
        )
    np.testing.assert_array_equal(history.info.positions_m, channel.block(0).positions_m)
    data = scenario.data.load()
    partition = scenario.data.divide(data, scenario.device_table(streams), streams)
    expected = partition.label_counts(data.train.labels, 10)
    np.testing.assert_array_equal(history.info.label_counts, expected)
    assert history.info.class_names == data.names


def test_one_round_keeps_what_its_policy_could_choose_from(monkeypatch):
    """The needs by the slow twin, on the gains as they are seen and with the margin."""
    blurred = {"kind": "estimated", "pilot_snr_db": 10.0}
    scenario = tiny(**{"channel.csi": blurred, "threshold.margin": 0.5})
    history = simulate(scenario, "max-pack", 3)
    assert history.frame["need"].is_not_null().to_list() == [t == 4 for t in range(8)]
    seen = scenario.make_channel(Streams(3)).block(4).seen
    found = [reference.candidate(gains, range(5), 1.0, 4.5) for gains in seen.tolist()]
    assert history.eligible.need.tolist() == [len(each[0]) if each else 0 for each in found]
    np.testing.assert_array_equal(history.eligible.gain, seen.astype(np.float32))
    monkeypatch.setattr(simulation, "MOST_GAINS", 12 * 5 - 1)
    larger = simulate(scenario, "max-pack", 3)
    assert larger.eligible.gain is None
    assert larger.eligible.need.tolist() == history.eligible.need.tolist()


def test_the_optimum_is_worked_out_where_it_is_asked_for():
    sampled = {"kind": "sampled", "every": 3, "work_limit": 100_000}
    scenario = tiny(**{"run.optimum": sampled})
    history, plain = simulate(scenario, "max-pack", 2), simulate(tiny(), "max-pack", 2)
    np.testing.assert_array_equal(history.accuracy, plain.accuracy)
    weight, optimum, bound = (history.numbers(n) for n in ("weight", "optimum", "optimum_bound"))
    assert np.flatnonzero(~np.isnan(weight)).tolist() == [2, 5]
    for t in (2, 5):
        before = history.ages[t - 1]
        assert weight[t] == pytest.approx(f_alpha(before, 0.5)[history.scheduled[t]].sum())
        assert weight[t] <= optimum[t] <= bound[t] * (1 + 1e-9)
