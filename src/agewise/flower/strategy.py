"""Any Flower strategy, with a policy that decides who trains."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from logging import ERROR, INFO, WARNING
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy
from flwr.supercore import log
from numpy.typing import NDArray

from agewise.checks import number_within, one_of
from agewise.flower.clients import Clients, RoundPlanner
from agewise.flower.grid import DeadlineGrid, Directory, SubsetGrid, Timeouts, frequent_looks
from agewise.flower.links import Arrays, FederationError, Links
from agewise.flower.record import LiveRecord, LiveRound
from agewise.flower.round import InnerStrategy, OpenRound, Sent
from agewise.flower.state import StateFolder
from agewise.learn import Aggregation, PolynomialStaleness, Staleness
from agewise.policies import Policy
from agewise.records import History
from agewise.scheduling import BackOffByTurns, Retry

_Evaluate = Callable[[int, ArrayRecord], MetricRecord | None]


class _Run(NamedTuple):
    """Arguments of one `Scheduled.start`; ``timeout_s`` is of evaluation by clients."""

    grid: DeadlineGrid
    deadline_s: float
    timeout_s: float
    train_config: ConfigRecord
    evaluate_config: ConfigRecord
    evaluate: _Evaluate | None
    result: Result


@dataclass(eq=False)
class Scheduled(Strategy):
    """Wraps any Flower strategy: a policy chooses who trains, by age and by link.

    >>> from flwr.serverapp.strategy import FedAvg
    >>> from agewise.flower import Slots
    >>> strategy = Scheduled(FedAvg(), policy="age-based", links=Slots(8))

    ``policy`` is a name of the registry or a policy; policies that read losses need the name of the
    metric, ``losses``, under which clients report the mean loss of the model that they were given.
    ``shadow`` are policies whose choice on the same links is recorded beside it. ``aggregation`` is
    a rule of the simulator (`agewise.learn.UpdateMemory`) that combines updates in the place of the
    inner strategy's average. With a ``folder``, state is written there after every round, a start
    goes on where the last one ended, and at the end it is a results folder for `agewise report`,
    with the links as a trace. ``accuracy`` is the name of the metric to record. ``retry`` says for
    how many rounds a client that was asked in vain is left alone. A reply that comes after the
    deadline is dropped, or, with ``late="weigh"``, counts in the round in which it comes with a
    weight by its ``staleness``.
    """

    inner: Strategy
    policy: Policy | str = "age-based"
    links: Links = field(kw_only=True)
    losses: str | None = None
    shadow: Sequence[Policy | str] = ()
    aggregation: Aggregation | None = None
    timeouts: Timeouts = field(default_factory=Timeouts)
    clients: Clients = field(default_factory=Clients)
    folder: Path | str | None = None
    seed: int = 0
    accuracy: str = "accuracy"
    retry: Retry = field(default_factory=BackOffByTurns)
    norm_cap: float | None = None
    late: Literal["drop", "weigh"] = "drop"
    staleness: Staleness = field(default_factory=lambda: PolynomialStaleness(exponent=0.5))
    on_round: Callable[[LiveRound], None] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.shadow, str | Policy):
            raise ValueError(f"shadow must be a list of policies: shadow=[{self.shadow!r}]")
        for name, kind, said in (
            ("inner", Strategy, "a strategy of flwr.serverapp, not of Flower's old API"),
            ("links", Links, "Slots, Rates, Airtime, Modelled or Reported"),
            ("timeouts", Timeouts, "Timeouts(...)"),
            ("clients", Clients, "Clients(...)"),
            ("retry", Retry, "BackOffByTurns(...), BackOff(...) or NoPause()"),
            ("staleness", Staleness, "a kind of agewise.learn, such as PolynomialStaleness(...)"),
        ):
            if not isinstance(value := getattr(self, name), kind) or type(value) is Scheduled:
                raise ValueError(f"{name} must be {said}, not {value!r}")
        one_of("late", self.late, ("drop", "weigh"))
        if self.norm_cap is not None:
            number_within("norm_cap", self.norm_cap, 1.0)
        folder = None if self.folder is None else Path(self.folder)
        self._planner = RoundPlanner(
            (self.policy, *self.shadow),
            self.links,
            self.seed,
            self.clients.sizes,
            self.retry,
            self.clients.forget_after,
        )
        policies = self._planner.policies
        self._inner = InnerStrategy(
            self.inner,
            self.links.subchannels,
            policies,
            self.losses,
            self.aggregation,
            self.staleness if self._weighs else None,
        )
        self._check, self._check_evaluation = (
            self._inner.check(self.clients.most_samples, self.norm_cap) for _ in range(2)
        )
        self._directory = Directory(self.clients.ask)
        self._record = LiveRecord(folder, self.links, policies, self.seed, self.retry)
        self._state = StateFolder(folder, self._inner, self._planner)
        self._open: OpenRound | None = None
        self._pending: Arrays | None = None  # the record of the round that was trained last
        self._refused: dict[int, str] = {}  # replies to that round, with the reasons
        self._under_way: Mapping[str, Sent] = {}  # whose replies count when they come
        self._silent = 0  # rounds in a row in which no update arrived
        self._why: str | None = None  # why none did
        self._started_here = False
        self._assembling = True  # before the first round, also of a server that goes on

    def summary(self) -> None:
        """Log what decides who trains, then the settings of the inner strategy."""
        log(INFO, "\t├──> Scheduled by %s over %s", self._planner.policies[0], self.links)
        self.inner.summary()

    @property
    def _weighs(self) -> bool:
        return self.late == "weigh"

    @property
    def ages(self) -> NDArray[np.int64]:
        """``[client]``: the rounds since the last update of each client that was ever known."""
        return self._planner.ages

    @property
    def client_ids(self) -> list[str]:
        """The ids of all clients that were ever known, by row."""
        return list(self._planner.ids)

    def history(self) -> History:
        """The rounds so far as the project's `History`, of the live policy."""
        return self._record.histories()[0]

    def shadow_histories(self) -> list[History]:
        """The rounds so far as the policies in the shadow would have had them."""
        return self._record.histories()[1:]

    # Flower calls the following for every round.

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Make the messages to the clients that the policy chose."""
        ours = isinstance(grid, DeadlineGrid)
        if not ours and (self.links.measures or self.folder is not None):
            raise FederationError(
                "measured links and a folder need the rounds of Scheduled.start: let Scheduled be "
                "the outermost strategy"
            )
        self._close_round()
        self._finish_round([])
        started = time.monotonic()
        least = self._inner.least_available if self._assembling else 1
        content = self._inner.content(server_round, config)
        nodes = self._directory.wait_for(least, grid, self.timeouts, content)
        self._assembling = False
        rows = self._planner.rows(list(nodes)).tolist()
        row_of = dict(zip(nodes.values(), rows, strict=True))
        if ours and not self._weighs:
            for reply in grid.late():  # dropped, but it tells how fast its link is
                log(INFO, "dropped a reply of node %s that came after the deadline", reply.node)
                if reply.node in row_of and reply.timing.payload_bits > 0:  # no error, no metrics
                    self.links.observe(self._planner.t, row_of[reply.node], reply.timing)
        busy = getattr(grid, "busy", ())
        node_of = {row: node for node, row in row_of.items() if node not in busy}
        there = np.array(sorted(node_of), np.int64)
        planned = self._planner.plan(there)
        chosen = [node_of[row] for row in planned.chosen.tolist()]
        eligible = there.size - int(np.isin(planned.resting[0], there).sum())
        log(INFO, "configure_train: chose %s of %s clients", len(chosen), eligible)
        messages = self._inner.messages(server_round, arrays, config, grid, chosen)
        self._open = OpenRound(
            planned, arrays, messages, row_of, eligible, started, self._under_way
        )
        return messages

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord]:
        """Make the next model of the updates that arrived, and let the others age."""
        if self._open is None:
            raise FederationError("aggregate_train was called before configure_train")
        opened, self._open = self._open, None
        answers, planner = opened.answers(replies, self._check), self._planner
        self._refused = answers.refused
        for row, reason in self._refused.items():
            log(WARNING, "refused the reply of client %s: %s", planner.ids[row], reason)
        if answers.lost.size:
            log(INFO, "aggregate_train: the modelled channel lost %s updates", answers.lost.size)
        arrived = answers.arrived
        sizes = self._inner.sizes(answers.updates, planner.sizes[arrived])
        planner.set_sizes(arrived, sizes)
        combined = self._inner.combine(server_round, opened, answers, planner.sizes)
        self._why, reports, unused = answers.why_none(), combined.reports, arrived[:0]
        if combined.arrays is None and arrived.size:  # nobody is younger for what was let go of
            unused, arrived = arrived, arrived[:0]
            reports = {name: x[:0] for name, x in reports.items()}
            self._why = (
                f"{self._inner.name} makes no model of those that arrive, because they are too "
                "few for it or a client failed"
            )
            log(INFO, "aggregate_train: %s", self._why)
        self._silent = 0 if arrived.size else self._silent + 1
        pending, versions = arrived[:0], None
        if self._weighs:
            self._under_way = answers.under_way
            pending = np.array([sent.row for sent in self._under_way.values()], np.int64)
            versions = answers.versions[: arrived.size]
        kept = planner.receive(opened.planned, arrived, reports, unused, pending, versions)
        self._pending = kept | {
            "late": answers.late,
            "failed": answers.failed,
            "lost": answers.lost,
            "seconds": np.array(time.monotonic() - opened.started),
            "diversity": np.array(combined.diversity or np.nan),
        }
        combined.metrics.update(opened.metrics(self._pending))
        return combined.arrays, combined.metrics

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Make what the inner strategy asks of the nodes that are there and owe no reply."""
        self._close_round()
        self._started_here, busy = isinstance(grid, DeadlineGrid), getattr(grid, "busy", ())
        nodes = [node for node in grid.get_node_ids() if node not in busy]
        if not nodes:
            return []
        with self._inner.allow_single_node():
            subset = SubsetGrid(grid, nodes)
            return list(self.inner.configure_evaluate(server_round, arrays, config, subset))

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """Sum up evaluation by clients as the inner strategy does."""
        whole = dict(enumerate(replies))
        answered = {i: reply for i, reply in whole.items() if not reply.has_error()}
        for i, reason in self._check_evaluation.refusals(answered).items():
            node = whole.pop(i).metadata.src_node_id
            log(WARNING, "refused the evaluation of node %s: %s", node, reason)
        metrics = self.inner.aggregate_evaluate(server_round, list(whole.values()))
        if not self._started_here:  # the round is over: `start` is that of a strategy around this
            self._finish_round([metrics])
        return metrics

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        timeout: float = 3600,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: _Evaluate | None = None,
    ) -> Result:
        """Train as Flower's `Strategy.start`, with deadlines that hold and a state to go on from.

        What the rounds leave is written, whatever ends them.
        """
        log(INFO, "Starting %s strategy:", self._inner.name)
        self.summary()
        run = _Run(
            grid=DeadlineGrid(grid, self.timeouts.poll_s),
            deadline_s=self.timeouts.deadline_s or self.links.deadline_s or timeout,
            timeout_s=timeout,
            train_config=train_config or ConfigRecord(),
            evaluate_config=evaluate_config or ConfigRecord(),
            evaluate=evaluate_fn,
            result=Result(),
        )
        try:
            looks = frequent_looks(self.timeouts.poll_s) if self.links.measures else nullcontext()
            with looks, self._state.claimed():
                self._train_rounds(run, initial_arrays, num_rounds)
        except (FederationError, ValueError) as error:
            log(ERROR, "%s", error)
            raise
        finally:
            run.grid.close()
        return run.result

    def _train_rounds(self, run: _Run, initial_arrays: ArrayRecord, num_rounds: int) -> None:
        """Train the rounds that are still to come."""
        identity, result = self._identity(initial_arrays), run.result
        done, self._silent = self._state.resume(identity, result)
        if done:
            log(INFO, "going on after round %s of %s", done, self.folder)
        else:
            result.arrays = initial_arrays
        self._record.resume(done)
        try:
            found = run.evaluate(0, initial_arrays) if run.evaluate and not done else None
            if found is not None:
                log(INFO, "Initial global evaluation results: %s", found)
                result.evaluate_metrics_serverapp[0] = found
            for server_round in range(done + 1, num_rounds + 1):
                log(INFO, "[ROUND %s/%s]", server_round, num_rounds)
                began = time.monotonic()
                self._train(run, server_round)
                self._finish_round(self._evaluate(run, server_round))
                self._state.save(identity, server_round, self._silent, result)
                self._write(self._record.write_now_and_then)
                self._require_progress(run.deadline_s)
                if server_round < num_rounds:
                    left = began + self.timeouts.least_round_s - time.monotonic()
                    time.sleep(max(left, 0.0))
        finally:
            self._write(self._record.write)

    def _write(self, results: Callable[[], None]) -> None:
        try:
            results()
        except Exception as error:  # the model is worth more
            log(ERROR, "%s: the results are not written: %s", self.folder, error)

    def _train(self, run: _Run, server_round: int) -> None:
        """Train one round; the model after it is in the result."""
        result = run.result
        messages = self.configure_train(server_round, result.arrays, run.train_config, run.grid)
        opened = self._open
        replies = run.grid.exchange(asked := list(messages), run.deadline_s)
        if self._weighs:  # where nobody can be asked, somebody is waited for
            replies += run.grid.late(0.0 if asked else run.deadline_s)
        if opened is not None and self.links.measures:
            opened.teach(self.links, replies)
        arrays, metrics = self.aggregate_train(server_round, [reply.message for reply in replies])
        log(INFO, "\t└──> Aggregated MetricRecord: %s", metrics)
        result.train_metrics_clientapp[server_round] = metrics
        if arrays is not None:
            result.arrays = arrays

    def _evaluate(self, run: _Run, server_round: int) -> list[MetricRecord | None]:
        """Evaluate the model after a round: the metrics of the server, then of the clients."""
        result, grid = run.result, run.grid
        asked = self.configure_evaluate(server_round, result.arrays, run.evaluate_config, grid)
        replies = grid.send_and_receive(list(asked), timeout=run.timeout_s)
        by_clients = self.aggregate_evaluate(server_round, replies)
        if by_clients is not None:
            log(INFO, "\t└──> Aggregated MetricRecord: %s", by_clients)
            result.evaluate_metrics_clientapp[server_round] = by_clients
        by_server = run.evaluate(server_round, result.arrays) if run.evaluate else None
        if by_server is not None:
            log(INFO, "\t└──> Global evaluation: %s", by_server)
            result.evaluate_metrics_serverapp[server_round] = by_server
        return [by_server, by_clients]

    def _close_round(self) -> None:
        """End a round of which a strategy around this one handed over no replies."""
        if self._open is not None:
            self.aggregate_train(0, ())

    def _finish_round(self, measured: Sequence[MetricRecord | None]) -> None:
        """Put the round that is over into the record, with what was measured after it."""
        if self._pending is None:
            return
        for name, key in (("accuracy", self.accuracy), ("loss", "loss")):
            values = [float(record[key]) for record in measured if record and key in record]
            self._pending[name] = np.array(values[0] if values else np.nan, np.float64)
        self._record.keep(self._pending)
        planner = self._planner
        done = LiveRound.of(planner.t, self._pending, self._refused, planner.ids)
        log(INFO, "agewise %s", done.to_json())
        try:
            if self.on_round is not None:
                self.on_round(done)
        except Exception as error:  # whoever watches must not stop what is watched
            log(ERROR, "on_round failed: %s: %s", type(error).__name__, error)
        self._pending = None

    def _require_progress(self, deadline_s: float) -> None:
        if self._silent >= self.timeouts.patience:
            why = self._why or (
                f"nobody meets the deadline of {deadline_s:g} s, or nobody can be reached over "
                "these links"
            )
            raise FederationError(
                f"no update got into the model in {self._silent} rounds in a row: {why}"
            )

    def _identity(self, arrays: ArrayRecord) -> dict[str, Any]:
        """Values by which a state is known to be of this federation, with its first model."""
        return {
            "policies": [str(policy) for policy in self._planner.policies],
            "links": str(self.links),
            "seed": self.seed,
            "retry": str(self.retry),
            "late": f"{self.late} {self.staleness}",
            "inner": [type(each).__name__ for each in self._inner.chain],
            "accountants": len(self._inner.accountants),
            "aggregation": str(self.aggregation),
            "model": [[name, list(array.shape)] for name, array in arrays.items()],
        }
