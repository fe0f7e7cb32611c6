"""The section ``learn`` of a scenario, and the learning half of a round.

`Federation.round` is the only place where a round of learning happens: the simulation, replays of
recorded runs and whatever else follows a round again call it.
"""

from collections.abc import Collection, Mapping
from typing import Annotated, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from agewise.core import aggregation as kernels
from agewise.data import Dataset, Partition
from agewise.learn import kmeans, linear, mlp, pytorch  # noqa: F401 - kinds of models
from agewise.learn.aggregation import Aggregation
from agewise.learn.compression import Compression, NoCompression
from agewise.learn.local import LocalObjective, PlainObjective
from agewise.learn.model import Learner, LocalRound, LocalSteps, Model, Penalty
from agewise.learn.staleness import ConstantStaleness, Staleness
from agewise.learn.updates import (
    ArraySpec,
    LocalModels,
    Params,
    State,
    Updates,
    is_finite,
    update_reports,
)
from agewise.part import LARGE, MOST, Kinds, Part
from agewise.random import Streams
from agewise.scheduling import Report


class Learn(Part):
    """The model, its objective (Eq. 1) and local learning (Algorithm 3)."""

    model: Annotated[Model, Kinds] = Field(description="what is learned")
    penalty: Annotated[Penalty, Kinds] = Field(description="what large weights cost: r(w)")
    aggregation: Annotated[Aggregation, Kinds] = Field(
        description="what the access point makes of the updates"
    )
    local: Annotated[LocalObjective, Kinds] = Field(
        default=PlainObjective(), description="what keeps a UE's local steps from drifting"
    )
    compression: Annotated[Compression, Kinds] = Field(
        default=NoCompression(), description="what becomes of an update before it is sent"
    )
    staleness: Annotated[Staleness, Kinds] = Field(
        default=ConstantStaleness(),
        description="what an update counts that started from an older model, where the pace is "
        "periodic",
    )
    local_steps: int = Field(ge=1, le=MOST, description="tau, steps of a scheduled UE in a round")
    batch_size: int = Field(ge=1, le=MOST, description="samples of one step; the paper has 1")
    step_size: float = Field(gt=0, le=LARGE, description="eta in round 0")
    step_decay: float = Field(
        ge=0,
        le=LARGE,
        description="the step of round t is eta / (1 + step_decay t); 0 keeps it constant",
    )

    @model_validator(mode="after")
    def _require_gradients(self) -> Self:
        if self.local.needs_gradients and not self.model.has_gradients:
            raise ValueError(
                f"local = {self.local.kind!r} corrects gradients, and {self.model.kind} moves "
                'centres: choose another model, or local = "none"'
            )
        if self.local.needs_plain_sgd:
            self.model.require_plain_sgd()
        return self

    @property
    def steps(self) -> LocalSteps:
        """Local learning as models do it."""
        return LocalSteps(
            self.local_steps, self.batch_size, self.step_size, self.step_decay, self.penalty,
            self.local.proximal_weight,
        )  # fmt: skip

    def learner(self, dataset: Dataset, partition: Partition) -> Learner:
        """Bring the model together with the samples of every UE."""
        return self.model.learner(dataset, partition, self.steps)

    def state_specs(self, ues: int, length: int) -> dict[str, dict[str, ArraySpec]]:
        """Describe the arrays that aggregation, compression and local objective keep."""
        parts = {"aggregation": self.aggregation, "compression": self.compression,
                 "local": self.local}  # fmt: skip
        return {name: dict(part.state_spec(ues, length)) for name, part in parts.items()}


class Diverged(ValueError):
    """The model is no longer finite."""


class FederationState(NamedTuple):
    """State of learning between rounds.

    ``params`` is the newest model; ``memory`` is kept by the aggregation, ``unsent`` by error
    feedback of the compression, and ``variates`` by the local objective. ``past[t]`` are models of
    earlier rounds from which UEs still learn. A round may work in these arrays, but for models:
    whoever hands a state over does not use it again, and copies it to go two ways from it.
    """

    params: Params
    memory: State
    unsent: State
    variates: State
    past: Mapping[int, Params]

    def copy(self) -> "FederationState":
        """Copy all arrays but models, which no round changes."""
        memory, unsent, variates = (
            {name: x.copy() for name, x in state.items()}
            for state in (self.memory, self.unsent, self.variates)
        )
        return FederationState(self.params, memory, unsent, variates, self.past)

    def keep(self, t: int, versions: Collection[int]) -> "FederationState":
        """Keep of the models up to that of round ``t``, the newest, those of these rounds."""
        known = {**self.past, t: self.params}
        return self._replace(past={version: known[version] for version in versions})


class Learned(NamedTuple):
    """A round of learning: the state after it, the updates that arrived, their diversity."""

    state: FederationState
    updates: Updates
    gradient_diversity: float | None


class Probe(NamedTuple):
    """Fresh numbers of UEs, ``float64[len(ues)]`` each.

    ``losses`` are those of the newest model on the samples of each UE, ``update_norms`` the lengths
    of the updates that each would send.
    """

    losses: NDArray[np.float64]
    update_norms: NDArray[np.float64]


class Federation:
    """The learning of one run: a model on the samples of every UE, and the rules of the scenario.

    ``learner`` has the samples; ``streams`` decide what is drawn.
    """

    def __init__(self, learner: Learner, settings: Learn, streams: Streams) -> None:
        self.learner, self.settings, self.streams = learner, settings, streams

    def init(self) -> FederationState:
        """The initial model w^0, with nothing remembered."""
        params = self.learner.init(self.streams)
        rules, shape = self.settings, (self.learner.sizes.size, params.size)
        return FederationState(
            params,
            rules.aggregation.init_state(*shape),
            rules.compression.init_state(*shape),
            rules.local.init_state(*shape),
            {},
        )

    def round(
        self,
        state: FederationState,
        ues: NDArray[np.int64],
        t: int,
        factors: NDArray[np.float64] | None = None,
        versions: NDArray[np.int64] | None = None,
    ) -> Learned:
        """Let these UEs, whose updates arrive in round ``t``, learn, and make the next model.

        ``factors[i]`` are the policy's own weights of the updates, if it has any. The update of
        ``ues[i]`` started from the model of round ``versions[i]``, by default the newest; what a UE
        does follows from that model, that round and the UE, whenever its update arrives. `Diverged`
        if the model does not stay finite.
        """
        rules, sizes, start = self.settings, self.learner.sizes, state.params
        if versions is None:
            sent = LocalModels(start, self.train(state, ues, t), ues, t)
            models, unsent = rules.compression.send(state.unsent, sent, self.streams.compression)
            step = self.learner.steps.relative_step_of(t)
            updates = Updates(start, models, ues, factors, step=step)
        else:
            weights, sizes, factors = rules.staleness.apply(t - versions, ues, sizes, factors)
            updates, unsent = self._late_updates(state, ues, t, factors, versions, weights)
        params, memory, diversity = rules.aggregation.combine(state.memory, updates, sizes)
        self._require_finite(params, updates, t)
        total_step = rules.local_steps * self.learner.steps.step_of(t)
        variates = rules.local.receive(state.variates, updates, sizes, total_step)
        state = FederationState(params, memory, unsent, variates, state.past)
        return Learned(state, updates, diversity)

    def _late_updates(
        self,
        state: FederationState,
        ues: NDArray[np.int64],
        t: int,
        factors: NDArray[np.float64] | None,
        versions: NDArray[np.int64],
        weights: NDArray[np.float64],
    ) -> tuple[Updates, State]:
        """Train UEs that started from different models: what arrives, and what is left unsent.

        Each update is shortened by its weight.
        """
        code, unsent = self.settings.compression, state.unsent
        known, found = {**state.past, t: state.params}, sorted(set(versions.tolist()))
        starts = np.array([known[version] for version in found] or [state.params])
        order, which = np.argsort(versions, kind="stable"), np.searchsorted(found, versions)
        step_of, steps_of = self.learner.steps.relative_step_of, self.learner.steps.steps_of
        trained = self.learner.train_from(
            LocalRound(
                starts, which[order], ues[order], versions[order], self.streams.sgd,
                steps_of(versions[order]),
                self.settings.local.corrections(state.variates, ues[order]),
            )
        )  # fmt: skip
        models = np.empty((ues.size, state.params.size), np.float32)
        ends = np.bincount(which, minlength=len(found)).cumsum().tolist()
        for start, first, end in zip(starts, [0, *ends], ends, strict=False):
            own = order[first:end]
            sent = LocalModels(start, trained[first:end], ues[own], t)
            arrived, unsent = code.send(unsent, sent, self.streams.compression)
            kernels.shorten(arrived, start, weights[own], own, models)
        steps = np.array([step_of(version) for version in found])[which]
        made = Updates(state.params, models, ues, factors, starts, which, step_of(t), steps)
        return made, unsent

    def train(
        self, state: FederationState, ues: NDArray[np.int64], t: int, streams: Streams | None = None
    ) -> Params:
        """``[len(ues), length]``: the model of each of these UEs after its local steps.

        Nothing is sent. Other ``streams`` draw other samples.
        """
        corrections = self.settings.local.corrections(state.variates, ues)
        return self.learner.train(state.params, ues, t, streams or self.streams, corrections)

    def probe(self, state: FederationState, ues: NDArray[np.int64], t: int) -> Probe:
        """Ask these UEs, before round ``t`` is scheduled, for fresh losses and update norms.

        Each UE takes the local steps of the round and sends two numbers: a probe costs the seconds
        and joules of local learning of all ``ues`` before the round, and 64 bits of each
        (`agewise.cost.CostModel.add_probe`). The state stays as it is.
        """
        models = self.train(state, ues, t)
        norms = update_reports({"update_norms"}, state.params, models)["update_norms"]
        return Probe(self.learner.losses(state.params, ues), norms)

    def reports(
        self, wanted: Collection[Report], updates: Updates
    ) -> dict[Report, NDArray[np.float64]]:
        """Measure what UEs report with these updates: ``float64[len(ues)]`` by ``wanted`` name.

        The loss is the mean over the UE's samples of what the model costs there that it started
        from. The norm is that of the update as it counts: after compression, and shortened by its
        staleness weight where these are normalised by ``data``.
        """
        found = {name: np.empty(updates.ues.size) for name in wanted}
        for i, start in enumerate(updates.starts if wanted else ()):
            own = updates.version == i if len(updates.starts) > 1 else slice(None)
            for name, values in update_reports(wanted, start, updates.models[own]).items():
                found[name][own] = values
            if "losses" in wanted:
                found["losses"][own] = self.learner.losses(start, updates.ues[own])
        return found

    def _require_finite(self, params: Params, updates: Updates, t: int) -> None:
        if is_finite(params):
            return
        settings = self.settings
        spoilt = [
            int(ue)
            for ue, model in zip(updates.ues, updates.models, strict=True)
            if not is_finite(model)
        ]
        pull = settings.steps.step_of(t) * settings.local.proximal_weight
        cause = f"is a step size that is too large: lower learn.step_size ({settings.step_size:g})"
        if pull > 1.0:
            cause = (
                f"is a proximal term that overshoots, for step size times mu is {pull:g}: lower "
                f"learn.local.mu ({settings.local.proximal_weight:g})"
            )
        elif not spoilt and updates.factors is not None:
            cause = f"are the policy's factors of the updates, up to {updates.factors.max():g}"
        where = f", first those of UE {spoilt[0]}" if spoilt else ""
        raise Diverged(
            f"the model diverged in round {t}: its weights are no longer finite{where}; the likely "
            f"cause {cause}"
        )
