"""The learning half of a round: local learning, compression, aggregation, control variates.

`Federation.round` is the only place where a round of learning happens: the simulation, replays of
recorded runs and whatever else follows a round again call it.
"""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agewise.learn.aggregation import State, Updates, is_finite, make_aggregator
from agewise.learn.base import Learner, Params
from agewise.learn.compression import Trained, compression_state, make_compressor
from agewise.learn.local import make_local_objective
from agewise.learn.reports import update_reports
from agewise.random import Streams
from agewise.scenario import Learn, Proximal
from agewise.scheduling import Report


class Diverged(ValueError):
    """The model is no longer finite."""


class FederationState(NamedTuple):
    """All that learning carries from round to round.

    ``params`` is the newest model; ``memory`` is kept by the aggregation, ``unsent`` by error
    feedback of the compression, and ``variates`` by the local objective. A round may work in these
    arrays: whoever hands a state over does not use it again, and copies it to go two ways from it.
    """

    params: Params
    memory: State
    unsent: State
    variates: State

    def copy(self) -> "FederationState":
        """Copy all arrays."""
        kept = ({name: x.copy() for name, x in state.items()} for state in self[1:])
        return FederationState(self.params.copy(), *kept)


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
        self._aggregation = make_aggregator(settings)
        self._compression = make_compressor(settings)
        self._local = make_local_objective(settings)

    def init(self) -> FederationState:
        """The initial model w^0, with nothing remembered."""
        params = self.learner.init(self.streams)
        shape = self.learner.sizes.size, params.size
        return FederationState(
            params,
            self._aggregation.start(*shape),
            compression_state(self._compression, *shape),
            self._local.start(*shape),
        )

    def round(
        self,
        state: FederationState,
        ues: NDArray[np.int64],
        t: int,
        factors: NDArray[np.float64] | None = None,
    ) -> Learned:
        """Let these UEs, whose updates arrive in round ``t``, learn, and make the next model.

        ``factors[i]`` are the policy's own weights of the updates, if it has any. `Diverged` if the
        model does not stay finite.
        """
        start, sizes = state.params, self.learner.sizes
        models = self.train(state, ues, t)
        trained = Trained(start, models, ues, t)
        models, unsent = self._compression.send(state.unsent, trained, self.streams.compression)
        updates = Updates(start, models, ues, factors)
        params, diversity, memory = self._aggregation.combine(state.memory, updates, sizes)
        self._require_finite(params, updates, t)
        variates = self._local.receive(state.variates, updates, sizes, t)
        return Learned(FederationState(params, memory, unsent, variates), updates, diversity)

    def train(
        self,
        state: FederationState,
        ues: NDArray[np.int64],
        t: int,
        streams: Streams | None = None,
    ) -> Params:
        """``[len(ues), length]``: the model of each of these UEs after its local steps.

        Nothing is sent. Other ``streams`` draw other samples.
        """
        corrections = self._local.corrections(state.variates, ues)
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
        """What UEs report with these updates, of what is ``wanted``: ``float64[len(ues)]`` each.

        The loss is the mean over the UE's samples of what the model costs there that it started
        from.
        """
        found = update_reports(wanted, updates.start, updates.models)
        if "losses" in wanted:
            found["losses"] = self.learner.losses(updates.start, updates.ues)
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
