"""Algorithm 3: federated learning over the scheduled channel."""

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agewise import data, learn
from agewise.accounting import (
    compute_slots,
    deadline_slots,
    offers_everyone,
    upload_slots,
)
from agewise.age import f_alpha
from agewise.files import fingerprint
from agewise.memory import bytes_text, require_memory
from agewise.policies import make_policy
from agewise.radio import Channel, make_channel
from agewise.random import Streams
from agewise.records import History, RoundRecord, RunInfo
from agewise.scenario import (
    Data,
    KMeans,
    Learn,
    Linear,
    Mlp,
    Proximal,
    SampledOptimum,
    Scenario,
    Torch,
    require_scenario,
)
from agewise.scheduling import AccessPoint, Policy
from agewise.sources import require_same, sources_of
from agewise.spectrum import Uplink, solve
from agewise.version import __version__

#: Models that a round has in memory besides those of the UEs: before and after, and work space.
_MODELS_BESIDE = 6
#: The digests of the files that samples are from.
_Digests = tuple[str | None, ...]


class Diverged(ValueError):
    """The model is no longer finite."""


@dataclass(frozen=True, eq=False)
class SeedSamples:
    """The samples of one seed on their UEs: policies are compared on the same."""

    learner: learn.Learner
    label_counts: NDArray[np.int64]
    class_names: tuple[str, ...]


@functools.lru_cache(maxsize=2)
def _load(source: Data, _: _Digests) -> data.Dataset:
    """Data sets do not depend on the seed: runs of one process share them."""
    return data.load(source)


def samples_of(scenario: Scenario, streams: Streams) -> SeedSamples:
    """The samples of a run, prepared once for all policies as long as their files stay the same."""
    digests = _digests(scenario)
    settings, source = scenario.learn, scenario.data
    return _divided(settings, source, scenario.cell.ues, streams, digests, _module_of(settings))


def _digests(scenario: Scenario) -> _Digests:
    return tuple(map(fingerprint, data.files_of(scenario.data).values()))


def _module_of(settings: Learn) -> object:
    """What a PyTorch module is made by, if it is not the package's own; others are ``None``."""
    model = settings.model
    if not isinstance(model, Torch):
        return None
    file = None if model.source is None else fingerprint(learn.source_file(model.source))
    return file or learn.added_maker(model)


@functools.lru_cache(maxsize=2)
def _divided(
    settings: Learn,
    source: Data,
    ues: int,
    streams: Streams,
    digests: _Digests,
    _: object,
) -> SeedSamples:
    dataset = _load(source, digests)
    partition = data.divide(dataset.train.labels, source, ues, streams, dataset.writers)
    return SeedSamples(
        learn.make_learner(dataset, partition, settings),
        partition.label_counts(dataset.train.labels, dataset.class_count),
        dataset.names,
    )


def simulate(
    scenario: Scenario,
    policy: Policy | str,
    seed: int = 0,
    on_round: Callable[[RoundRecord], object] | None = None,
    sources: Mapping[str, str] | None = None,
) -> History:
    """Run the scenario with this policy and seed, and return what happened in every round.

    The result is a pure function of (scenario, policy, seed, version) and of the files that the
    scenario names. ``on_round`` is called with the record of each round as it happens. ``sources``
    are the digests of these files and of the policy where they are known already
    (`agewise.sources`): ``ValueError`` if a file is another one here.
    """
    require_resources(scenario)
    chosen, streams = make_policy(policy), Streams(seed)
    known = sources_of(scenario, chosen) if sources is None else dict(sources)
    samples = samples_of(scenario, streams)
    channel = make_channel(scenario, streams)
    require_same(known, scenario)  # after reading them
    records = []
    for record in _rounds(scenario, chosen, streams, channel, samples.learner):
        records.append(record)
        if on_round is not None:
            on_round(record)
    info = RunInfo(
        scenario=scenario.resolved(),
        policy=chosen.key,
        seed=streams.seed,
        version=__version__,
        positions_m=channel.block(0).positions_m,
        label_counts=samples.label_counts,
        class_names=samples.class_names,
        sources=known,
    )
    return History.collect(info, records, scenario.run.age_alpha)


def require_resources(scenario: Scenario, kept_rounds: int | None = None) -> None:
    """Raise ``ValueError`` with the amount if a run would need more memory than there is.

    So many rounds are kept at a time, all of the run if not given.
    """
    require_scenario(scenario)
    cell, learning = scenario.cell, scenario.learn
    length = scenario.run.rounds if kept_rounds is None else kept_rounds
    size = f"cell.ues = {cell.ues:,} and cell.subchannels = {cell.subchannels:,}"
    steps, batch = learning.local_steps, learning.batch_size
    needs = {
        f"gains with {size}": 8.0 * cell.ues * cell.subchannels,
        f"records of run.rounds = {length:,} with {size}": length
        * (16.0 * cell.ues + 24.0 * cell.subchannels),
        # The samples that a UE draws, and the slopes of a batch.
        f"learn.local_steps = {steps:,} with learn.batch_size = {batch:,}": batch
        * (8.0 * steps + 64.0),
    }
    require_memory(sum(needs.values()), max(needs, key=lambda what: needs[what]))
    if not isinstance(learning.model, Linear | KMeans):
        length, models = _model_length(scenario), min(cell.ues, cell.subchannels) + _MODELS_BESIDE
        what = f"learn.model = {learning.model.kind!r} with {length:,} numbers for {models} models"
        require_memory(4.0 * length * models, what)
    for memory in kept_memory(scenario):
        require_memory(memory.bytes, memory.what)


class ModelMemory(NamedTuple):
    """What is kept from round to round that has a model's length of numbers for every UE."""

    section: str
    kind: str
    ues: int
    length: int
    bytes: int

    @property
    def what(self) -> str:
        """What the memory is for, with the names of the fields that decide it."""
        return (
            f"learn.{self.section} = {self.kind!r} with cell.ues = {self.ues:,} and models of "
            f"{self.length:,} numbers"
        )

    def __str__(self) -> str:
        """One line, such as: memory aggregation keeps 100 x 7,850 numbers: 3.2 MB."""
        who = "aggregation keeps" if self.section == "aggregation" else "keep"
        return f"{self.kind} {who} {self.ues:,} x {self.length:,} numbers: {bytes_text(self.bytes)}"


def kept_memory(scenario: Scenario) -> list[ModelMemory]:
    """What the scenario's aggregation and local objective will keep for every UE."""
    settings, ues = scenario.learn, scenario.cell.ues
    rules = (
        (learn.keeps_updates, learn.memory_bytes, "aggregation", settings.aggregation.kind),
        (learn.keeps_variates, learn.variates_bytes, "local", settings.local.kind),
    )
    kept = []
    for keeps, size, section, kind in rules:
        if keeps(settings):
            length = _model_length(scenario)
            kept.append(ModelMemory(section, kind, ues, length, size(settings, ues, length)))
    return kept


def _model_length(scenario: Scenario) -> int:
    return learn.model_length(_load(scenario.data, _digests(scenario)), scenario.learn)


def expected_seconds(scenario: Scenario) -> float:
    """Roughly how long a run takes one core: the right power of ten, on a machine of today."""
    cell, learning = scenario.cell, scenario.learn
    scheduled = min(cell.ues, cell.subchannels) / 2
    samples = scheduled * learning.local_steps * learning.batch_size
    learned = _seconds_of_sample(learning) * samples
    return scenario.run.rounds * (2e-4 + 2e-8 * cell.ues * cell.subchannels + learned)


def _seconds_of_sample(settings: Learn) -> float:
    """Roughly what a step on one sample takes, with some 200 features that are not 0."""
    if isinstance(settings.model, Mlp):
        widths = (200, *settings.model.hidden_widths, 10)
        return 1e-10 * sum(before * behind for before, behind in itertools.pairwise(widths))
    return 1e-4 if isinstance(settings.model, Torch) else 5e-7


def rounds(scenario: Scenario, policy: Policy | str, seed: int = 0) -> Iterator[RoundRecord]:
    """The rounds of `simulate`, one at a time as they happen."""
    require_resources(scenario, kept_rounds=1)
    streams = Streams(seed)
    samples = samples_of(scenario, streams)
    channel = make_channel(scenario, streams)
    return _rounds(scenario, make_policy(policy), streams, channel, samples.learner)


def _rounds(
    scenario: Scenario, policy: Policy, streams: Streams, channel: Channel, learner: learn.Learner
) -> Iterator[RoundRecord]:
    """Algorithm 3, a round at a time."""
    run, threshold = scenario.run, scenario.rate_threshold
    computing = compute_slots(scenario.timing, channel.ue_count, streams)
    deadline = deadline_slots(scenario.timing)
    everyone = offers_everyone(scenario.timing)
    access_point = AccessPoint(
        policy, channel.ue_count, streams, deadline_slots=deadline, offer_everyone=everyone
    )
    access_point.describe(data_sizes=learner.sizes, compute_slots=computing)
    aggregator, params = learn.make_aggregator(scenario.learn), learner.init(streams)
    memory = aggregator.start(channel.ue_count, params.size)
    local = learn.make_local_objective(scenario.learn)
    variates = local.start(channel.ue_count, params.size)
    for t in range(run.rounds):
        # The access point sees the channel and says who uploads (Algorithms 1 and 2).
        uplink = Uplink(channel.block(t).seen, channel.power_budget, threshold)
        offered, ages = access_point.offer(uplink), access_point.ages
        allocation = access_point.plan(offered)
        scheduled = np.flatnonzero(allocation.scheduled)
        rates = allocation.rate[scheduled]
        received = scheduled
        if deadline < math.inf:
            taken = computing[scheduled] + upload_slots(rates, threshold)
            received = scheduled[taken <= deadline]

        # They learn locally from the same model, and what arrives makes the next one.
        corrections = local.corrections(variates, received)
        start, models = params, learner.train(params, received, t, streams, corrections)
        updates = learn.Updates(start, models, received, allocation.factors_of(received))
        params, diversity, memory = aggregator.combine(memory, updates, learner.sizes)
        variates = local.receive(variates, updates, learner.sizes, t)
        _require_finite(params, updates, t, scenario.learn)

        # What arrived is young again, everything else grows older (Eq. 2).
        reports = learn.reports(policy.reads, learner, start, models, received)
        access_point.receive(received, reports)

        last = t + 1 == run.rounds
        evaluation = learner.evaluate(params) if last or _is_due(t, run.evaluate_every) else None
        weighed = run.objective_every > 0 and (last or _is_due(t, run.objective_every))
        weight, optimum, optimum_bound = _beside_optimum(scenario, t, offered, ages, scheduled)
        yield RoundRecord(
            t=t,
            scheduled=scheduled,
            received=received,
            owner=allocation.owner,
            power=allocation.power,
            gain=allocation.gain,
            rate=rates,
            ages=access_point.ages,
            participation=access_point.participation,
            gradient_diversity=diversity,
            accuracy=evaluation.accuracy if evaluation else None,
            class_accuracy=evaluation.class_accuracy if evaluation else None,
            test_loss=evaluation.loss if evaluation else None,
            objective=learner.objective(params) if weighed else None,
            weight=weight,
            optimum=optimum,
            optimum_bound=optimum_bound,
        )


def _is_due(t: int, every: int) -> bool:
    return (t + 1) % every == 0


def _beside_optimum(
    scenario: Scenario,
    t: int,
    uplink: Uplink,
    ages: NDArray[np.int64],
    scheduled: NDArray[np.int64],
) -> tuple[float | None, float | None, float | None]:
    """The weight that was scheduled, the optimum of problem (3) and its bound, where asked for.

    The search for the optimum has a limit, and the policy may have found better: then this is
    the best known.
    """
    wanted = scenario.run.optimum
    if not isinstance(wanted, SampledOptimum) or not _is_due(t, wanted.every):
        return None, None, None
    weights = f_alpha(ages, scenario.run.age_alpha)
    weight = float(weights[scheduled].sum())
    best = solve(uplink, weights, work_limit=wanted.work_limit)
    return weight, max(weight, best.value), max(weight, best.bound)


def _require_finite(params: learn.Params, updates: learn.Updates, t: int, settings: Learn) -> None:
    if learn.is_finite(params):
        return
    spoilt = [
        int(ue)
        for ue, model in zip(updates.ues, updates.models, strict=True)
        if not learn.is_finite(model)
    ]
    step = settings.step_of(t)
    cause = f"is a step size that is too large: lower learn.step_size ({settings.step_size:g})"
    if isinstance(settings.local, Proximal) and step * settings.local.mu > 1.0:
        cause = (
            f"is a proximal term that overshoots, for step size times mu is "
            f"{step * settings.local.mu:g}: lower learn.local.mu ({settings.local.mu:g})"
        )
    elif not spoilt and updates.factors is not None:
        cause = f"are the policy's factors of the updates, up to {updates.factors.max():g}"
    where = f", first those of UE {spoilt[0]}" if spoilt else ""
    raise Diverged(
        f"the model diverged in round {t}: its weights are no longer finite{where}; the likely "
        f"cause {cause}"
    )
