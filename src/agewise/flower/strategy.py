"""Any Flower strategy, with a policy that decides who trains."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from logging import ERROR, INFO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agewise.flower import inner as inside
from agewise.flower.api import (
    ArrayRecord,
    ConfigRecord,
    FederationError,
    Grid,
    Message,
    MetricRecord,
    Result,
    Strategy,
    log,
)
from agewise.flower.clients import Clients, Directory
from agewise.flower.evaluation import Evaluate, Evaluation, first_number
from agewise.flower.federation import Arrays, Federation
from agewise.flower.grid import OfferedGrid, Pace, PromptGrid
from agewise.flower.links import Links
from agewise.flower.opened import OpenRound
from agewise.flower.record import TRACE, Rounds, histories, live_scenario, write_if_any
from agewise.flower.storage import Storage
from agewise.flower.updates import Combiner
from agewise.learn import Aggregator
from agewise.policies import Policy, make_policy
from agewise.records import History


@dataclass(eq=False)
class Scheduled(Strategy):
    """Wraps any Flower strategy: a policy chooses who trains, by age and by link.

    >>> from flwr.serverapp.strategy import FedAvg
    >>> from agewise.flower import Slots
    >>> strategy = Scheduled(FedAvg(), policy="age-based", links=Slots(8))

    ``policy`` is a name of the registry or a policy; policies that read losses need the name of the
    metric, ``losses``, under which clients report the mean loss of the model that they were given.
    ``shadow`` are policies whose choice on the same links is recorded beside it. ``aggregation`` is
    a rule of the simulator (`agewise.learn.Memory`) that combines the updates in the place of the
    inner strategy's average. With a ``folder``, state is written there after every round, a start
    goes on where the last one ended, and at the end it is a results folder for `agewise report`,
    with the links as a trace. ``accuracy`` is the name of the metric to record.
    """

    inner: Strategy
    policy: Policy | str = "age-based"
    links: Links = field(kw_only=True)
    losses: str | None = None
    shadow: Sequence[Policy | str] = ()
    aggregation: Aggregator | None = None
    pace: Pace = field(default_factory=Pace)
    clients: Clients = field(default_factory=Clients)
    folder: Path | str | None = None
    seed: int = 0
    accuracy: str = "accuracy"

    def __post_init__(self) -> None:
        if not isinstance(self.inner, Strategy) or isinstance(self.inner, Scheduled):
            raise ValueError(f"the inner strategy must be one of Flower's, not {self.inner!r}")
        if not isinstance(self.links, Links):
            raise ValueError(f"links must be Slots, Airtime, Modelled or Reported: {self.links!r}")
        if isinstance(self.shadow, str | Policy):
            raise ValueError(f"shadow must be a list of policies: shadow=[{self.shadow!r}]")
        for value, kind in ((self.pace, Pace), (self.clients, Clients)):
            if not isinstance(value, kind):
                name = kind.__name__
                raise ValueError(f"{name.lower()} must be {name}(...), not {value!r}")
        policies = [make_policy(each) for each in (self.policy, *self.shadow)]
        inside.require_schedulable(self.inner, self.links.subchannels)
        self._folder = None if self.folder is None else Path(self.folder)
        self._federation = Federation(policies, self.links, self.seed, self.clients.sizes)
        self._directory = Directory(self.clients)
        self._rounds = Rounds(self._folder)
        self._combiner = Combiner(self.inner, policies, self.losses, self.aggregation)
        self._storage = Storage(self._folder, self.inner, self._federation, self._combiner.rule)
        self._open: OpenRound | None = None
        self._pending: Arrays | None = None
        self._silent, self._started_here = 0, False
        self._assembling = True  # before the first round, also of a server that goes on
        self._why: str | None = None

    def summary(self) -> None:
        """Log what decides who trains, then the settings of the inner strategy."""
        log(INFO, "\t├──> Scheduled by %s over %s", self._federation.policies[0], self.links)
        self.inner.summary()

    @property
    def ages(self) -> NDArray[np.int64]:
        """``[client]``: the rounds since the last update of each client that was ever known."""
        return self._federation.points[0].ages

    @property
    def client_ids(self) -> list[str]:
        """The ids of all clients that were ever known, by row."""
        return list(self._federation.ids)

    def history(self) -> History:
        """The rounds so far as the project's `History`, of the live policy."""
        return self._histories()[0]

    def shadow_histories(self) -> list[History]:
        """The rounds so far as the policies in the shadow would have had them."""
        return self._histories()[1:]

    def _histories(self) -> list[History]:
        if not len(self._rounds):
            raise ValueError("no round has been finished yet")
        trace = (self._folder or Path()).resolve() / TRACE
        clients, rounds = self._rounds.client_count, len(self._rounds)
        scenario = live_scenario(self.links, clients, rounds, trace)
        policies = self._federation.policies
        return histories(scenario, self.links, policies, self.seed, self._rounds)

    # Flower calls the following for every round.

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """The messages to the clients that the policy chose."""
        if not isinstance(grid, PromptGrid) and (self.links.measures or self._folder is not None):
            raise FederationError(
                "measured links and a folder need the rounds of Scheduled.start: let Scheduled be "
                "the outermost strategy"
            )
        self._close_round()
        self._finish_round()
        started = time.monotonic()
        least = inside.least_available(self.inner) if self._assembling else 1
        nodes = self._directory.wait_for(least, grid, self.pace)
        self._assembling = False
        federation = self._federation
        rows = federation.rows(list(nodes))
        row_of = dict(zip(nodes.values(), rows.tolist(), strict=True))
        busy: frozenset[int] = frozenset()
        if isinstance(grid, PromptGrid):
            self._learn_from_late(grid, row_of)
            busy = grid.busy
        free = {node: row for node, row in row_of.items() if node not in busy}
        planned = federation.plan(np.array(sorted(free.values()), np.int64))
        node_of = {row: node for node, row in free.items()}
        chosen = [node_of[row] for row in planned.chosen.tolist()]
        log(INFO, "configure_train: chose %s of %s clients", len(chosen), len(free))
        messages: list[Message] = []
        if chosen:  # Flower's strategies wait for ever where they are offered none
            with inside.content_with_one(self.inner):
                offered = OfferedGrid(grid, chosen)
                made = self.inner.configure_train(server_round, arrays, config, offered)
                messages = sorted(made, key=lambda m: row_of.get(m.metadata.dst_node_id, -1))
            inside.require_addressed(self.inner, messages, chosen)
        self._open = OpenRound(planned, arrays, messages, row_of, len(free), started)
        return messages

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """What the inner strategy makes of the updates that arrived, and who is how old now."""
        if self._open is None:
            raise FederationError("aggregate_train was called before configure_train")
        opened, self._open = self._open, None
        planned, answers = opened.planned, opened.answers(replies)
        if answers.lost.size:
            log(INFO, "aggregate_train: the modelled channel lost %s updates", answers.lost.size)
        federation, arrived = self._federation, answers.arrived
        sizes = self._combiner.sizes(answers.updates, federation.sizes[arrived])
        federation.learn_sizes(arrived, sizes)
        combined = self._combiner.combine(
            planned, opened.arrays, arrived, answers.updates, federation.sizes
        )
        arrays, metrics = self._combiner.aggregate(server_round, answers.replies, combined.model)
        self._why, reports = answers.why_none(), combined.reports
        if arrays is None and arrived.size:  # nobody is younger for what was let go of
            arrived, reports = arrived[:0], {name: x[:0] for name, x in reports.items()}
            self._why = (
                f"{type(self.inner).__name__} makes no model of those that arrive, because they "
                "are too few for it or a client failed"
            )
            log(INFO, "aggregate_train: %s", self._why)
        self._silent = 0 if arrived.size else self._silent + 1
        kept = federation.receive(planned, arrived, answers.failed, reports)
        self._pending = opened.kept(answers, kept)
        self._pending["diversity"] = np.array(combined.diversity or np.nan)
        metrics = MetricRecord() if metrics is None else metrics
        metrics.update(opened.metrics(self._pending))
        return arrays, metrics

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """What the inner strategy asks of the nodes that are there and owe no reply."""
        self._close_round()
        self._started_here = isinstance(grid, PromptGrid)
        busy = grid.busy if isinstance(grid, PromptGrid) else frozenset()
        nodes = [node for node in grid.get_node_ids() if node not in busy]
        if not nodes:
            return []
        with inside.content_with_one(self.inner):
            offered = OfferedGrid(grid, nodes)
            return list(self.inner.configure_evaluate(server_round, arrays, config, offered))

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """What the inner strategy makes of it."""
        metrics = self.inner.aggregate_evaluate(server_round, replies)
        if not self._started_here:  # the round is over: `start` is that of a strategy around this
            self._finish_round([] if metrics is None else [metrics])
        return metrics

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        timeout: float = 3600,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Evaluate | None = None,
    ) -> Result:
        """Flower's `Strategy.start`, with deadlines that hold and a state to go on from."""
        log(INFO, "Starting %s strategy:", type(self.inner).__name__)
        self.summary()
        prompt = PromptGrid(grid, self.pace.poll_s)
        deadline_s = self.pace.deadline_s or self.links.deadline_s or timeout
        config = ConfigRecord() if train_config is None else train_config
        asked = ConfigRecord() if evaluate_config is None else evaluate_config
        evaluation = Evaluation(self, prompt, timeout, asked, evaluate_fn)
        try:
            with self._storage.claimed():
                return self._run(evaluation, initial_arrays, num_rounds, config, deadline_s)
        except (FederationError, ValueError) as error:
            log(ERROR, "%s", error)
            raise
        finally:
            prompt.close()

    def _run(
        self,
        evaluation: Evaluation,
        initial_arrays: ArrayRecord,
        num_rounds: int,
        config: ConfigRecord,
        deadline_s: float,
    ) -> Result:
        """The rounds that are still to come; what they leave is written, whatever happens."""
        identity, result = self._identity(initial_arrays), Result()
        done, self._silent = self._storage.resume(identity, result)
        self._rounds.resume(done)
        arrays = result.arrays if done else initial_arrays
        try:
            if done == 0:
                evaluation.before(arrays, result)
            for server_round in range(done + 1, num_rounds + 1):
                log(INFO, "[ROUND %s/%s]", server_round, num_rounds)
                began, grid = time.monotonic(), evaluation.grid
                arrays = self._train(server_round, arrays, config, grid, deadline_s, result)
                self._finish_round(evaluation.after(server_round, arrays, result))
                result.arrays = arrays
                self._storage.save(identity, server_round, self._silent, result)
                self._require_progress(deadline_s)
                if server_round < num_rounds:
                    left = began + self.pace.least_round_s - time.monotonic()
                    time.sleep(max(left, 0.0))
        finally:
            policies = self._federation.policies
            write_if_any(self._folder, self.links, policies, self.seed, self._rounds)
        return result

    def _train(
        self,
        server_round: int,
        arrays: ArrayRecord,
        config: ConfigRecord,
        prompt: PromptGrid,
        deadline_s: float,
        result: Result,
    ) -> ArrayRecord:
        """One round of training: the model after it."""
        messages = list(self.configure_train(server_round, arrays, config, prompt))
        opened = self._open
        replies = prompt.exchange(messages, deadline_s)
        if opened is not None and self.links.measures:
            opened.teach(self.links, replies)
        made, metrics = self.aggregate_train(server_round, [reply.message for reply in replies])
        if metrics is not None:
            log(INFO, "\t└──> Aggregated MetricRecord: %s", metrics)
            result.train_metrics_clientapp[server_round] = metrics
        return arrays if made is None else made

    def _learn_from_late(self, grid: PromptGrid, row_of: dict[int, int]) -> None:
        """A reply that came too late is dropped, but tells how fast its link is."""
        for reply in grid.late():
            log(INFO, "dropped a reply of node %s that came after the deadline", reply.node)
            if reply.node in row_of and reply.delivery.payload_bits > 0:  # no error, and no metrics
                row = row_of[reply.node]
                self.links.observe(self._federation.t, row, reply.delivery)

    def _close_round(self) -> None:
        """A strategy around this one may not hand over the replies of a round: nobody arrived."""
        if self._open is not None:
            self.aggregate_train(0, ())

    def _finish_round(self, measured: Sequence[MetricRecord] = ()) -> None:
        """Put the round that is over into the record, with what was measured after it."""
        if self._pending is None:
            return
        for name, key in (("accuracy", self.accuracy), ("loss", "loss")):
            value = first_number(key, list(measured))
            self._pending[name] = np.array(np.nan if value is None else value, np.float64)
        self._rounds.keep(self._pending)
        self._pending = None

    def _require_progress(self, deadline_s: float) -> None:
        if self._silent >= self.pace.patience:
            why = self._why or (
                f"nobody meets the deadline of {deadline_s:g} s, or nobody can be reached over "
                "these links"
            )
            raise FederationError(
                f"no update got into the model in {self._silent} rounds in a row: {why}"
            )

    def _identity(self, arrays: ArrayRecord) -> dict[str, Any]:
        """By what a state is known to be of this federation: also the model that it began with."""
        return {
            "policies": [str(policy) for policy in self._federation.policies],
            "links": str(self.links),
            "seed": self.seed,
            "inner": [type(each).__name__ for each in inside.chain(self.inner)],
            "aggregation": str(self.aggregation),
            "model": [[name, list(array.shape)] for name, array in arrays.items()],
        }
