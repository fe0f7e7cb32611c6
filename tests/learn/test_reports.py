"""What UEs report with their updates, and updates with factors of a policy's own."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from agewise import Streams, Uplink
from agewise.data import Dataset, Samples
from agewise.learn import Federation, Updates
from agewise.learn.linear import LOSSES
from agewise.policies import RoundRobin
from agewise.scheduling import AccessPoint, Policy
from agewise.simulation import rounds
from agewise.spectrum import Allocation, fill
from tests.samples import average, equal_shares, iid
from tests.scenarios import tiny

ALL = ("losses", "update_norms")


def learner_of(ues, **settings):
    """A learner of three noisy classes, 20 samples a UE."""
    rng = np.random.default_rng(0)
    labels = np.arange(20 * ues) % 3
    x = (rng.normal(size=(3, 6))[labels] + rng.normal(size=(20 * ues, 6))).astype(np.float32)
    samples = Samples(x, labels)
    data = Dataset("noisy", samples, samples, ("a", "b", "c"))
    partition = iid(labels, equal_shares(ues), np.random.default_rng(1))
    changes = {f"learn.{name}": value for name, value in settings.items()}
    return tiny(**changes).learn.learner(data, partition)


def model_of(loss):
    """The settings of a linear model with this loss, or of k-means."""
    if loss == "k-means":
        return {"kind": "k-means", "clusters": 3, "initial_deviation": 0.01}
    return {"kind": "linear", "loss": loss, "initial_deviation": 0.01}


def reported(wanted, learner, start, models, ues):
    federation = Federation(learner, tiny().learn, Streams(0))
    return federation.reports(wanted, Updates(start, models, ues))


def some_model(learner):
    start = learner.init(Streams(0))
    return (start + np.random.default_rng(2).normal(size=start.size)).astype(np.float32)


# ----------------------------------------------------------------------------- what is reported
@pytest.mark.parametrize("loss", [*LOSSES, "k-means"])
def test_the_loss_of_a_single_ue_is_the_objective(loss):
    learner = learner_of(1, model=model_of(loss), penalty="none")
    model = some_model(learner)
    found = reported(["losses"], learner, model, model[None], np.array([0]))
    assert found["losses"] == pytest.approx([learner.objective(model)], rel=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "k-means"])
def test_losses_of_all_ues_make_up_the_objective(loss):
    learner = learner_of(4, model=model_of(loss), penalty="none")
    model, ues = some_model(learner), np.arange(4)
    losses = reported(["losses"], learner, model, np.stack([model] * 4), ues)["losses"]
    mean = np.average(losses, weights=learner.sizes[ues])
    assert mean == pytest.approx(learner.objective(model), rel=1e-6)
    assert losses[0] == pytest.approx(learner.losses(model, np.array([0]))[0])


def test_norms_by_numpy():
    learner, rng = learner_of(5), np.random.default_rng(3)
    start = some_model(learner)
    models = (start + rng.normal(size=(5, start.size))).astype(np.float32)
    models[3] = start
    norms = reported(ALL, learner, start, models, np.arange(5))["update_norms"]
    np.testing.assert_allclose(norms, np.linalg.norm(models.astype(float) - start, axis=1))
    assert norms[3] == 0.0


@pytest.mark.parametrize("wanted", [(), ("losses",), ("update_norms",), ALL])
def test_only_what_is_wanted_is_measured(wanted):
    learner = learner_of(2)
    start = some_model(learner)
    assert set(reported(wanted, learner, start, start[None], np.array([1]))) == set(wanted)
    nobody = reported(wanted, learner, start, np.empty((0, start.size), np.float32), np.arange(0))
    assert all(values.size == 0 for values in nobody.values())


def test_feedback_keeps_the_last_report():
    access_point = AccessPoint(RoundRobin(), 4, Streams(0))
    none = access_point.feedback
    access_point.receive(np.array([3, 1]), {"losses": np.array([0.3, 0.1])})
    first = access_point.feedback
    access_point.receive(
        np.array([1]), {"losses": np.array([0.9]), "update_norms": np.array([2.0])}
    )
    later = access_point.feedback
    np.testing.assert_array_equal(none.losses, [np.nan] * 4)
    np.testing.assert_array_equal(first.losses, [np.nan, 0.1, np.nan, 0.3])
    np.testing.assert_array_equal(later.losses, [np.nan, 0.9, np.nan, 0.3])
    np.testing.assert_array_equal(later.update_norms, [np.nan, 2.0, np.nan, np.nan])


@dataclass(frozen=True)
class Listening(Policy):
    """Everyone in turn, keeping the feedback that it saw."""

    name = "listening"
    reads = frozenset({"losses", "update_norms"})
    state_per_ue = RoundRobin.state_per_ue
    state_scalars = RoundRobin.state_scalars
    seen: list = field(default_factory=list, hash=False)

    def schedule(self, view, rng):
        self.seen.append(view.feedback)
        return RoundRobin().schedule(view, rng)


def test_a_run_reports_what_a_policy_reads():
    scenario, policy, streams = tiny(**{"run.rounds": 2}), Listening(), Streams(3)
    first = next(rounds(scenario, policy, 3)).delivery.received
    policy.seen.clear()
    list(rounds(scenario, policy, 3))
    before, after = policy.seen
    assert all(np.isnan(getattr(before, name)).all() for name in ALL)
    data = scenario.data.load()
    learner = scenario.learn.learner(
        data, scenario.data.divide(data, scenario.device_table(streams), streams)
    )
    start = learner.init(streams)
    models = learner.train(start, first, 0, streams)
    known = np.isin(np.arange(12), first)
    assert np.isnan(after.losses[~known]).all()
    np.testing.assert_allclose(after.losses[known], learner.losses(start, first))
    norms = np.linalg.norm(models.astype(float) - start, axis=1)
    np.testing.assert_allclose(after.update_norms[known], norms)


# -------------------------------------------------------------------------------------- factors
def test_an_average_with_factors_by_numpy():
    rng = np.random.default_rng(4)
    models = rng.normal(size=(5, 33)).astype(np.float32)
    start = rng.normal(size=33).astype(np.float32)
    sizes, factors = np.arange(1, 6), np.array([0.5, 0.0, 1.7, 0.01, 3.0])
    result, diversity = average(models, sizes, start, factors)
    updates = models.astype(float) - start
    np.testing.assert_allclose(result, start + factors @ updates, rtol=1e-5, atol=1e-5)
    expected = (updates**2).sum() / (updates.sum(axis=0) ** 2).sum()
    assert diversity == pytest.approx(expected, rel=1e-4)


def test_factors_that_are_shares_make_the_plain_average():
    rng = np.random.default_rng(5)
    models = rng.normal(size=(4, 33)).astype(np.float32)
    start, sizes = rng.normal(size=33).astype(np.float32), np.array([1, 5, 2, 2])
    plain, _ = average(models, sizes, start)
    weighed, _ = average(models, sizes, start, sizes / sizes.sum())
    np.testing.assert_allclose(weighed, plain, rtol=1e-5, atol=1e-6)
    unmoved, _ = average(models, sizes, start, np.zeros(4))
    np.testing.assert_array_equal(unmoved, start)


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ([1.0, 1.0], r"one factor for each of the 3 UEs, not shape \(2,\)"),
        ([[1.0, 1.0, 1.0]], r"not shape \(1, 3\)"),
        ([1.0, -0.5, 1.0], "that of UE 1 is -0.5"),
        ([1.0, 1.0, np.inf], "that of UE 2 is inf"),
        ([np.nan, 1.0, 1.0], "that of UE 0 is nan"),
    ],
)
def test_factors_that_cannot_be(factors, message):
    allocation = fill(Uplink(np.ones((3, 3)), 1.0, 0.0), [0, 1])
    with pytest.raises(ValueError, match=message):
        allocation.weighing(factors)


def test_weighing_changes_nothing_else():
    allocation = fill(Uplink(np.ones((3, 3)), 1.0, 0.0), [0, 1])
    factors = np.array([0.5, 2.0, 0.0])
    weighed = allocation.weighing(factors)
    factors[:] = 9.0
    assert weighed.aggregation.tolist() == [0.5, 2.0, 0.0]
    assert not weighed.aggregation.flags.writeable
    assert allocation.aggregation is None
    assert weighed.owner.tolist() == allocation.owner.tolist()
    weighed.validate()


@dataclass(frozen=True)
class Weighing(Policy):
    """Everyone in turn, each update with ``times`` its share of the samples."""

    name = "weighing"
    state_per_ue = RoundRobin.state_per_ue
    state_scalars = RoundRobin.state_scalars
    times: float = 1.0

    def schedule(self, view, rng) -> Allocation:
        allocation = RoundRobin().schedule(view, rng)
        sizes = np.where(allocation.scheduled, view.data_sizes, 0)
        return allocation.weighing(self.times * sizes / max(sizes.sum(), 1))


def test_a_run_with_factors_of_shares_is_federated_averaging():
    scenario = tiny(**{"devices.samples_sigma": 0.5})
    for plain, weighed in zip(
        rounds(scenario, RoundRobin(), 1), rounds(scenario, Weighing(), 1), strict=True
    ):
        assert weighed.delivery.received.tolist() == plain.delivery.received.tolist()
        assert weighed.evaluation.loss == pytest.approx(plain.evaluation.loss, rel=1e-4)
        assert weighed.gradient_diversity == pytest.approx(plain.gradient_diversity, rel=1e-3)


def test_a_run_with_factors_of_zero_learns_nothing():
    records = list(rounds(tiny(), Weighing(times=0.0), 1))
    assert len({(record.evaluation.accuracy, record.evaluation.loss) for record in records}) == 1
    assert sum(record.delivery.received.size for record in records) > 0
