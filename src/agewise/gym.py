"""A Gymnasium environment: an agent scores the UEs of every round of Algorithm 3.

``gymnasium.make("agewise.gym:Agewise/paper-v0", reward="age")`` makes that of a preset.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from agewise.age import f_alpha
from agewise.checks import one_of
from agewise.core.scorer import MOST_DB
from agewise.dependencies import require
from agewise.part import faults_named
from agewise.policies.learned import FEATURES, features_of
from agewise.random import Streams
from agewise.resources import require_cell, require_resources
from agewise.scenario import Scenario, presets, require_scenario
from agewise.scheduling import AccessPoint, Policy, Report, RoundView
from agewise.simulation import Transport, samples_of
from agewise.spectrum import Packing, Uplink

require("gymnasium", "gym")
import gymnasium  # noqa: E402 - after the sentence that says how to install it

_Reward = Literal["age", "weight", "loss", "accuracy"]
_Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class _Agent(Policy):
    """The policy that an agent is: the utility of a UE is the agent's score."""

    name: ClassVar[str] = "agent"
    scores: ClassVar[_Floats]

    def score(self, scores: _Floats) -> None:
        """Take the scores of a round."""
        object.__setattr__(self, "scores", scores)

    def utility(self, view: RoundView, rng: np.random.Generator) -> _Floats:
        """Return the agent's scores."""
        return self.scores


@dataclass(frozen=True, kw_only=True)
class _LearningAgent(_Agent):
    """An agent that is told the losses of updates."""

    reads: ClassVar[frozenset[Report]] = frozenset({"losses"})


class SchedulingEnv(gymnasium.Env[_Floats, _Floats]):
    """Rounds of a scenario in which an agent gives every UE a score; packing does the rest.

    An observation has a row per UE and a column per name in ``features``: those of learned policies
    (`agewise.policies.FEATURES`) and, where the scenario learns, the loss that came with the UE's
    last update, 0 before it. An action has a score of at least 0 per UE, which ``packing`` turns
    into subchannels and power, so that every action is feasible and proven: ``greedy`` serves the
    highest score per subchannel needed first (`agewise.spectrum.Packing`). An episode lasts
    ``run.rounds`` rounds. ``reset(seed=...)`` takes channels, devices, samples and ties from that
    seed, as `agewise.simulate` does: agents and policies meet the same.

    ``reward`` is ``age``, minus the mean age of the UEs after the round; ``weight``, the sum of
    f_alpha (``run.age_alpha``) of the ages of those that are scheduled, as in problem (3);
    ``loss``, minus the loss of the new model on the test samples; or ``accuracy``, its accuracy
    there. Only the last two learn: without learning all data sizes are 1.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}  # type: ignore[misc]

    @faults_named()
    def __init__(
        self,
        scenario: Scenario | str = "paper",
        reward: _Reward = "age",
        packing: Packing | str = "greedy",
    ) -> None:
        if isinstance(scenario, str):
            scenario = Scenario.preset(scenario)
        require_scenario(scenario)
        one_of("reward", reward, get_args(_Reward))
        self.scenario, self.reward = scenario.loaded(), reward
        self.learns = reward in ("loss", "accuracy")
        if self.learns:
            require_resources(self.scenario, kept_rounds=1)
        else:
            require_cell(self.scenario)
        self.features = (*FEATURES, *(["last loss"] if self.learns else []))
        ues, subchannels = scenario.cell.ues, float(scenario.cell.subchannels)
        ranges = [(0.0, np.inf), (0.0, subchannels), (-MOST_DB, MOST_DB), (0.0, np.inf)]
        ranges += [(0.0, 1.0), (0.0, np.inf), (-np.inf, np.inf)]
        low, high = np.array(ranges[: len(self.features)]).T
        self.observation_space = gymnasium.spaces.Box(
            np.tile(low, (ues, 1)), np.tile(high, (ues, 1)), dtype=np.float64
        )
        self.action_space = gymnasium.spaces.Box(0.0, np.inf, (ues,), np.float64)
        self._length = self.scenario.model_length if self.learns else None
        self._agent = (_LearningAgent if self.learns else _Agent)(packing=Packing.of(packing))
        self._access_point: AccessPoint | None = None

    @faults_named()
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[_Floats, dict[str, Any]]:
        """Begin an episode with this seed; without one the next is drawn from the last."""
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(2**31)) if seed is None else seed
        scenario, streams = self.scenario, Streams(drawn)
        channel = scenario.make_channel(streams)
        self._transport = Transport(scenario, self._agent, channel, streams, self._length)
        self._access_point = self._transport.access_point
        if self.learns:
            self._federation = samples_of(scenario, streams).federation(scenario)
            self._state = self._federation.init()
            self._access_point.describe(data_sizes=self._federation.learner.sizes)
        self._uplink = self._begin(self._access_point)
        return self._observe(self._access_point), {"seed": drawn}

    def step(self, action: _Floats) -> tuple[_Floats, float, bool, bool, dict[str, Any]]:
        """Schedule a round by the agent's scores, and begin the next."""
        try:
            return self._step(action)
        except Exception:
            with faults_named():  # only now, for it takes as long as a good part of a step
                raise

    def _step(self, action: _Floats) -> tuple[_Floats, float, bool, bool, dict[str, Any]]:
        access_point = self._access_point
        if access_point is None or access_point.t >= self.scenario.run.rounds:
            raise gymnasium.error.ResetNeeded("the episode is over: call reset() first")
        self._agent.score(self._checked(action))
        t, allocation = access_point.t, access_point.plan(self._uplink)
        transport = self._transport
        if transport.loses_nothing:  # whatever it cost
            received, versions = allocation.ues, None
        else:
            delivery, _ = transport.deliver(allocation)
            received, versions = delivery.received, delivery.received_versions
        reports = None
        if self.learns:
            self._state, updates, _ = self._federation.round(
                self._state, received, t, None, versions
            )
            reports = self._federation.reports(self._agent.reads, updates)
        reward = 0.0
        if self.reward == "weight":
            weights = f_alpha(access_point.ages, self.scenario.run.age_alpha)
            reward = float(weights[allocation.scheduled].sum())
        transport.receive(received, reports)
        if self.reward == "age":
            reward = -int(access_point.ages.sum()) / allocation.ue_count  # faster than mean()
        elif self.learns:
            quality = self._federation.learner.evaluate(self._state.params)
            reward = quality.accuracy if self.reward == "accuracy" else -quality.loss
        is_over = access_point.t >= self.scenario.run.rounds
        if not is_over:  # after the last round there is no further block to see
            self._uplink = self._begin(access_point)
        heard = np.zeros(allocation.ue_count, np.bool_)
        heard[received] = True
        return self._observe(access_point), reward, False, is_over, {"received": heard}

    def _begin(self, access_point: AccessPoint) -> Uplink:
        """Draw the channel of the next round, and say who may be scheduled."""
        uplink = self._transport.begin()
        if self.learns and self._transport.background is not None:
            self._state = self._state.keep(access_point.t, self._transport.background.versions)
        return uplink

    def _observe(self, access_point: AccessPoint) -> _Floats:
        view = access_point.view(access_point.mask_ineligible(self._uplink))
        seen = features_of(view)
        if not self.learns:
            return seen
        return np.column_stack((seen, np.nan_to_num(view.feedback.losses)))

    def _checked(self, action: _Floats) -> _Floats:
        """The scores as an array of their own; ``ValueError`` unless there is one for each UE."""
        ues = self.scenario.cell.ues
        try:
            scores = np.asarray(action)
        except ValueError as error:  # with a sentence of NumPy's own
            raise ValueError(
                f"an action must have one real score for each of the {ues} UEs, not rows of "
                "different lengths"
            ) from error
        if scores.dtype.kind not in "iuf" or scores.shape != (ues,):
            raise ValueError(
                f"an action must have one real score for each of the {ues} UEs, not {scores.dtype} "
                f"of shape {scores.shape}"
            )
        if not scores.min(initial=0.0) >= 0:
            bad = np.flatnonzero(~(scores >= 0))[0]
            raise ValueError(
                f"an action must have scores of at least 0: that of UE {bad} is {scores[bad]:g}"
            )
        return scores.astype(np.float64)


for _name in presets():
    gymnasium.register(
        f"Agewise/{_name}-v0", "agewise.gym:SchedulingEnv", kwargs={"scenario": _name}
    )
