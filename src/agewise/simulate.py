"""Algorithm 3: federated learning over the scheduled channel."""

import functools
import math
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agewise import data, learn
from agewise.age import next_ages
from agewise.policies import Lessons, Policy, RoundView, make_policy
from agewise.policies.proof import prove
from agewise.radio import CellChannel, power_budget
from agewise.random import Streams
from agewise.records import History, RoundRecord, RunInfo
from agewise.spectrum import Allocation, Uplink
from agewise.timing import compute_slots, upload_slots
from agewise.version import __version__

if TYPE_CHECKING:
    from agewise.scenario import Data, Learn, Scenario

#: Data sets do not depend on the seed: runs of one process share them.
_load = functools.lru_cache(maxsize=2)(data.load)


@functools.lru_cache(maxsize=2)
def _partition(source: "Data", ues: int, streams: Streams) -> data.Partition:
    """The samples of one seed on their UEs: policies are compared on the same."""
    return data.divide(_load(source).train.labels, source, ues, streams)


@functools.lru_cache(maxsize=2)
def _learner(settings: "Learn", source: "Data", ues: int, streams: Streams) -> learn.Learner:
    return learn.make_learner(_load(source), _partition(source, ues, streams), settings)


class Diverged(ValueError):
    """The model is no longer finite."""


def simulate(
    scenario: "Scenario",
    policy: Policy | str,
    seed: int = 0,
    on_round: Callable[[RoundRecord], object] | None = None,
) -> History:
    """Run the scenario with this policy and seed, and return what happened in every round.

    The result is a pure function of (scenario, policy, seed, version). ``on_round`` is called with
    the record of every round as soon as it is over.
    """
    chosen = make_policy(policy)
    records = []
    for record in rounds(scenario, chosen, seed):
        records.append(record)
        if on_round is not None:
            on_round(record)
    return History.collect(_info(scenario, chosen, seed), records, scenario.run.age_alpha)


def _info(scenario: "Scenario", policy: Policy, seed: int) -> RunInfo:
    """What the run follows from, and what stays the same in all its rounds."""
    streams = Streams(seed)
    dataset = _load(scenario.data)
    counts = _partition(scenario.data, scenario.cell.ues, streams).label_counts(
        dataset.train.labels, dataset.class_count
    )
    return RunInfo(
        scenario=scenario.resolved(),
        policy=policy.key,
        seed=seed,
        version=__version__,
        positions_m=CellChannel.of(scenario.cell, scenario.channel, streams).positions_m,
        label_counts=counts,
        class_names=dataset.names,
    )


def rounds(scenario: "Scenario", policy: Policy | str, seed: int = 0) -> Iterator[RoundRecord]:
    """The rounds of `simulate`, one at a time as they happen."""
    policy, streams = make_policy(policy), Streams(seed)
    cell, run, threshold = scenario.cell, scenario.run, scenario.channel.threshold_bits
    channel = CellChannel.of(cell, scenario.channel, streams)
    budget = power_budget(scenario.channel)
    learner = _learner(scenario.learn, scenario.data, cell.ues, streams)
    computing = compute_slots(scenario.timing, cell.ues, streams)
    deadline = scenario.timing.deadline_slots if scenario.timing else math.inf

    ages = np.zeros(cell.ues, dtype=np.int64)
    participation = np.zeros(cell.ues, dtype=np.int64)
    memory: dict[str, np.ndarray] = {}
    lessons = Lessons.none(cell.ues)
    params = learner.init(streams)
    for t in range(run.rounds):
        uplink = Uplink(channel.gains(t), budget, threshold)
        view = RoundView(uplink, ages, memory, learner.sizes, lessons, computing, deadline)
        allocation = policy.schedule(view, streams.policy(t))
        prove(allocation, uplink, f"{policy} in round {t}")
        scheduled = np.flatnonzero(allocation.scheduled)
        received = scheduled[_in_time(scheduled, allocation, view)]
        start, models = params, learner.train(params, received, t, streams)
        params, diversity = learn.average(
            models, learner.sizes[received], start, allocation.factors_of(received)
        )
        _require_finite(params, t, scenario, allocation)
        if policy.lessons:
            heard = learn.lessons(policy.lessons, learner, start, models, received)
            lessons = lessons.after(received, heard)
        ages = next_ages(ages, received)
        participation[received] += 1
        last = t + 1 == run.rounds
        measured = learner.evaluate(params) if last or _due(t, run.evaluate_every) else None
        weighed = run.objective_every is not None and (last or _due(t, run.objective_every))
        yield RoundRecord(
            t=t,
            scheduled=scheduled,
            received=received,
            owner=allocation.owner,
            power=allocation.power,
            gain=allocation.gain,
            rate=allocation.rate[scheduled],
            ages=ages,
            participation=participation.copy(),
            gradient_diversity=diversity,
            accuracy=measured.accuracy if measured else None,
            class_accuracy=None,
            test_loss=measured.loss if measured else None,
            objective=learner.objective(params) if weighed else None,
            weight=None,
            optimum=None,
            optimum_bound=None,
        )


def _due(t: int, every: int) -> bool:
    return (t + 1) % every == 0


def _in_time(
    scheduled: NDArray[np.int64], allocation: Allocation, view: RoundView
) -> NDArray[np.bool_] | slice:
    """Which of the scheduled UEs compute and upload their update before the deadline."""
    if view.deadline_slots == math.inf:
        return slice(None)
    uploading = upload_slots(allocation.rate[scheduled], allocation.rate_threshold)
    return view.compute_slots[scheduled] + uploading <= view.deadline_slots


def _require_finite(
    params: learn.Params, t: int, scenario: "Scenario", allocation: Allocation
) -> None:
    if np.isfinite(params).all():
        return
    settings = scenario.learn
    cause = (
        f"is a step size too large for the loss {settings.loss}: lower learn.step_size "
        f"({settings.step_size:g})"
    )
    if allocation.aggregation is not None:
        cause = f"are the policy's factors of the updates, up to {allocation.aggregation.max():g}"
    raise Diverged(
        f"the model diverged in round {t}: its weights are no longer finite; the likely cause "
        f"{cause}"
    )


class _CallableModule(ModuleType):
    """``agewise.simulate`` names this module and the function in it: calling either runs it."""

    def __call__(
        self,
        scenario: "Scenario",
        policy: Policy | str,
        seed: int = 0,
        on_round: Callable[[RoundRecord], object] | None = None,
    ) -> History:
        return simulate(scenario, policy, seed, on_round)


sys.modules[__name__].__class__ = _CallableModule
