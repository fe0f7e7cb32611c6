"""A round under way: messages of the inner strategy, their replies, and the model after it."""

import contextlib
import inspect
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Bulyan, FedAvg, FedAvgM, FedXgbCyclic, Strategy
from flwr.serverapp.strategy.fedopt import FedOpt
from numpy.typing import NDArray

from agewise.flower.clients import PlannedRound, Rows
from agewise.flower.grid import Reply, SubsetGrid
from agewise.flower.links import Arrays, FederationError, Links
from agewise.learn import (
    Aggregated,
    Aggregation,
    Params,
    State,
    Updates,
    WeightedAverage,
    update_reports,
)
from agewise.policies import Policy
from agewise.scheduling import Report

#: Numbers of nodes below which Flower's strategies wait for more.
_LEAST_NODES = ("min_train_nodes", "min_evaluate_nodes", "min_available_nodes")
#: No client has more samples than this: numbers up to it are exact in a float.
_MOST_SAMPLES = 2.0**53


class _Answers(NamedTuple):
    """Replies to a round's messages, sorted by the rows of the clients.

    ``replies`` are those that the inner strategy gets, with errors among them, and ``updates`` the
    whole ones of the rows ``arrived``. Clients that ``failed`` answered with an error, those that
    are ``late`` not in time; what is ``lost`` the links lose, whatever was answered.
    """

    replies: list[Message]
    updates: list[Message]
    arrived: Rows
    failed: Rows
    late: Rows
    lost: Rows

    def why_none(self) -> str | None:
        """Explain why no update arrived, where the answers say it."""
        errors = [reply.error.reason for reply in self.replies if reply.has_error()]
        if errors:
            last = (errors[-1] or "no reason given").strip().splitlines()[-1]
            return f"the clients that were asked failed, the last with {last!r}"
        return "the modelled channel loses the uploads" if self.lost.size else None


@dataclass(frozen=True, eq=False)
class OpenRound:
    """Plan of a round, the model that was sent, the messages, and the row of each connected node.

    ``eligible`` is how many clients the policy could choose from, ``started`` a monotonic time.
    """

    planned: PlannedRound
    arrays: ArrayRecord
    messages: list[Message]
    row_of: dict[int, int]
    eligible: int
    started: float

    def answers(self, replies: Iterable[Message]) -> _Answers:
        """Sort these replies by what they are to the round."""
        # An error that the SuperLink made comes from a node of its own, so that replies are known
        # by the message that they answer.
        asked = {m.metadata.message_id: m.metadata.dst_node_id for m in self.messages}
        by_row: dict[int, Message] = {}
        for reply in replies:
            meta = reply.metadata
            node = asked.get(meta.reply_to_message_id, meta.src_node_id)
            if node in self.row_of:
                by_row[self.row_of[node]] = reply
        answered = dict(sorted(by_row.items()))
        failed = _rows(row for row, reply in answered.items() if reply.has_error())
        lost = np.setdiff1d(self.planned.lost, failed)
        late = np.setdiff1d(self.planned.chosen, [*answered, *lost])
        handed = {row: reply for row, reply in answered.items() if row not in lost}
        whole = {row: reply for row, reply in handed.items() if not reply.has_error()}
        updates = list(whole.values())
        return _Answers(list(handed.values()), updates, _rows(whole), failed, late, lost)

    def teach(self, links: Links, replies: Iterable[Reply]) -> None:
        """Tell the links what was measured of these replies, and whose are missing."""
        missing = set(self.planned.chosen.tolist())
        for reply in replies:
            row = self.row_of[reply.node]
            missing.discard(row)
            if not reply.message.has_error():
                links.observe(self.planned.t, row, reply.timing)
        for row in sorted(missing):
            links.miss(self.planned.t, row)

    def kept(self, answers: _Answers, arrays: Arrays) -> Arrays:
        """Add to the arrays of a record who was missing, and the seconds that the round took."""
        who = {"late": answers.late, "failed": answers.failed, "lost": answers.lost}
        return arrays | who | {"seconds": np.array(time.monotonic() - self.started)}

    def metrics(self, kept: Arrays) -> dict[str, Any]:
        """Metrics of the round in Flower's result; lists are of rows of clients."""
        ages = kept["policy0.ages"]
        return {
            "agewise-eligible": self.eligible,
            "agewise-chosen": kept["policy0.scheduled"].tolist(),
            "agewise-arrived": kept["policy0.received"].tolist(),
            "agewise-late": kept["late"].tolist(),
            "agewise-failed": kept["failed"].tolist(),
            "agewise-lost": kept["lost"].tolist(),
            "agewise-age-mean": float(ages.mean()),
            "agewise-age-largest": int(ages.max()),
            "agewise-seconds": float(kept["seconds"]),
        }


def _rows(rows: Iterable[int]) -> Rows:
    return np.array(list(rows), np.int64)


class _Combined(NamedTuple):
    """The model after a round, ``None`` if it stays; metrics, reports and gradient diversity."""

    arrays: ArrayRecord | None
    metrics: MetricRecord
    reports: dict[Report, NDArray[np.float64]]
    diversity: float | None


class InnerStrategy:
    """Strategy that is scheduled, with those that it wraps; it makes the next model.

    The policy decides how many clients train, so a strategy that samples on its own is refused.
    Where the policy sets the factors of the updates, or an ``aggregation`` rule is given, they are
    combined here, and the strategy is handed replies that all carry the combined model: what it
    does to an average, such as a step of Adam, it does to that. ``losses`` is the metric that
    policies read as the loss.
    """

    def __init__(
        self,
        strategy: Strategy,
        subchannels: int,
        policies: Sequence[Policy] = (),
        losses: str | None = None,
        aggregation: Aggregation | None = None,
    ) -> None:
        self.strategy, self.name = strategy, type(strategy).__name__
        self.chain: list[Strategy] = []
        while isinstance(strategy, Strategy):
            self.chain.append(strategy)
            strategy = getattr(strategy, "strategy", None)
        for each in self.chain:
            _require_schedulable(each, subchannels)
        for policy in policies:
            if "losses" in policy.reads and losses is None:
                raise ValueError(
                    f"the policy {policy.name} needs losses: say under which metric clients report "
                    "the mean loss of the model that they were given, losses='...'"
                )
        if isinstance(aggregation, str | type):
            raise ValueError(
                "aggregation must be a rule such as agewise.learn.VarianceReduced(), not "
                f"{aggregation!r}"
            )
        if aggregation is not None:
            self._require_average("aggregation")
        self._policies, self._losses = policies, losses
        self._always = aggregation is not None
        self._reads: frozenset[Report] = frozenset().union(*(each.reads for each in policies))
        self._rule = _ElasticAggregator(aggregation or WeightedAverage())

    @property
    def least_available(self) -> int:
        """Number of connected nodes that the strategy insists on."""
        return max(getattr(each, "min_available_nodes", 1) for each in self.chain)

    @property
    def accountants(self) -> list[Any]:
        """Accountants of the privacy that was spent, of the wrappers that have one."""
        found = [getattr(each, "accountant", None) for each in self.chain]
        return [accountant for accountant in found if accountant is not None]

    @property
    def _averages(self) -> bool:
        """Tell whether the strategy gives back the plain weighted average."""
        method = type(self.strategy).aggregate_train
        return isinstance(self.strategy, FedAvg) and method is FedAvg.aggregate_train

    def _require_average(self, why: str) -> None:
        """``ValueError`` if the strategy looks at single updates, which are combined before it."""
        if not self._averages and not isinstance(self.strategy, FedOpt | FedAvgM):
            raise ValueError(
                f"{why} combines the updates before {self.name} sees them, which looks at single "
                "updates: give FedAvg, FedProx, FedAvgM, FedAdam, FedYogi or FedAdagrad"
            )

    @contextlib.contextmanager
    def allow_single_node(self) -> Iterator[None]:
        """Let the strategy be content with one node, for the policy decides how many."""
        before = [
            (each, name, getattr(each, name))
            for each in self.chain
            for name in _LEAST_NODES
            if getattr(each, name, 0) > 1
        ]
        try:
            for each, name, _ in before:
                setattr(each, name, 1)
            yield
        finally:
            for each, name, value in before:
                setattr(each, name, value)

    def messages(
        self,
        server_round: int,
        arrays: ArrayRecord,
        config: ConfigRecord,
        grid: Grid,
        nodes: Sequence[int],
    ) -> list[Message]:
        """Make the messages to these nodes, in their order; each must get one."""
        if not nodes:  # Flower's strategies wait for ever where there are none
            return []
        with self.allow_single_node():
            subset = SubsetGrid(grid, nodes)
            made = list(self.strategy.configure_train(server_round, arrays, config, subset))
        by_node = {message.metadata.dst_node_id: message for message in made}
        if len(made) != len(nodes) or by_node.keys() != set(nodes):
            raise FederationError(
                f"{self.name} addresses {len(made)} nodes where the policy chose {len(nodes)}: "
                "a strategy that samples on its own cannot be scheduled"
            )
        return [by_node[node] for node in nodes]

    def sizes(self, replies: Sequence[Message], known: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of samples that replies name; those ``known`` where they name none."""
        keys = [getattr(each, "weighted_by_key", None) for each in self.chain]
        key, sizes = next(filter(None, keys), "num-examples"), known.copy()
        for i, reply in enumerate(replies):
            size = _metric(reply, key)
            if size is None:
                continue
            if not 0 <= size <= _MOST_SAMPLES:
                raise FederationError(
                    f"a client reports {size:g} as {key!r}, which must be its number of samples"
                )
            sizes[i] = max(round(size), 1)
        return sizes

    def combine(
        self, server_round: int, opened: OpenRound, answers: _Answers, sizes: NDArray[np.int64]
    ) -> _Combined:
        """Make the model after a round; ``sizes`` has the numbers of samples of all clients."""
        reports: dict[Report, NDArray[np.float64]] = {}
        if "losses" in self._reads:
            reports["losses"] = np.array([self._loss(reply) for reply in answers.updates], float)
        factors = opened.planned.plans[0].factors_of(answers.arrived)
        if factors is not None:
            self._require_average(f"the policy {self._policies[0].name}")
        model, diversity, here = None, None, factors is not None or self._always
        if here or self._reads - {"losses"}:
            start = _flatten(opened.arrays)
            models = np.empty((len(answers.updates), start.size), np.float32)
            for row, reply in zip(models, answers.updates, strict=True):
                row[:] = _only_model(reply, start.size)
            reports |= update_reports(self._reads, start, models)
            if here:
                updates = Updates(start, models, answers.arrived, factors)
                found = self._rule.combine(updates, sizes)
                model, diversity = _unflatten(opened.arrays, found.params), found.diversity
        arrays, metrics = self._aggregate(server_round, answers.replies, model)
        return _Combined(arrays, metrics or MetricRecord(), reports, diversity)

    def _aggregate(
        self, server_round: int, replies: Sequence[Message], model: ArrayRecord | None
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Let the inner strategy aggregate the replies, or the ``model`` that was made here."""
        if not replies:  # it may refuse rounds that it did not configure
            return model, None
        for reply in replies if model is not None else ():
            if reply.has_content():
                (name,) = reply.content.array_records
                reply.content[name] = model
        arrays, metrics = self.strategy.aggregate_train(server_round, replies)
        if model is not None and (arrays is None or self._averages):
            return model, metrics  # to the bit, without the rounding of an average of equals
        return arrays, metrics

    def _loss(self, reply: Message) -> float:
        loss = _metric(reply, self._losses or "")
        if loss is None:
            records = reply.content.metric_records.values()
            have = sorted(name for record in records for name in record)
            raise FederationError(
                f"the policy needs losses, and a client reports no metric {self._losses!r}; it "
                f"reports {', '.join(have) or 'none'}"
            )
        return loss

    def state(self) -> Arrays:
        """Save what the strategies keep in arrays, such as momentum, and what the rule keeps.

        Of a strategy these are attributes that are arrays, lists, dictionaries or records of
        arrays, or float numbers. Parameters of the constructor are settings, no state.
        """
        kept = {f"rule.{name}": array for name, array in self._rule.state.items()}
        for depth, strategy in enumerate(self.chain):
            settings = inspect.signature(type(strategy)).parameters
            for name, value in vars(strategy).items():
                kind, arrays = _arrays_of(value) if name not in settings else ("", {})
                kept |= {f"{depth}.{name}.{kind}.{key}": array for key, array in arrays.items()}
        return kept

    def restore(self, kept: Arrays) -> None:
        """Restore what `state` saved."""
        attributes: dict[tuple[str, ...], Arrays] = {}
        for path, array in kept.items():
            *attribute, key = path.split(".", 3)
            attributes.setdefault(tuple(attribute), {})[key] = array
        self._rule.state = attributes.pop(("rule",), {})
        for (depth, name, kind), arrays in attributes.items():
            value: object = arrays
            if kind == "single":
                value = float(arrays[""]) if arrays[""].ndim == 0 else arrays[""]
            elif kind == "list":
                value = list(arrays.values())
            elif kind == "record":
                value = ArrayRecord({key: Array(array) for key, array in arrays.items()})
            setattr(self.chain[int(depth)], name, value)


def _arrays_of(value: object) -> tuple[str, Arrays]:
    """The kind of an attribute that holds arrays, with its arrays in their order."""
    match value:
        case np.ndarray() | float():
            return "single", {"": np.asarray(value)}
        case ArrayRecord():
            return "record", {name: array.numpy() for name, array in value.items()}
        case list() if all(isinstance(each, np.ndarray) for each in value):
            return "list", {str(i): each for i, each in enumerate(value)}
        case dict() if all(isinstance(each, np.ndarray) for each in value.values()):
            return "dict", value
        case _:
            return "", {}


def _require_schedulable(strategy: Strategy, subchannels: int) -> None:
    """``ValueError`` if a strategy cannot work with what is chosen on this many subchannels."""
    name, fraction = type(strategy).__name__, getattr(strategy, "fraction_train", 1.0)
    if fraction != 1.0:
        raise ValueError(
            f"{name} has fraction_train={fraction:g} and would sample on its own among the "
            "clients that the policy chose: set fraction_train=1.0, and give the links as many "
            "places as should be chosen"
        )
    if isinstance(strategy, FedXgbCyclic) and subchannels > 1:
        raise ValueError(
            f"{name} trains one client a round and would sample it on its own: give it links "
            f"with one place, Slots(1), not {subchannels}"
        )
    least = 4 * strategy.num_malicious_nodes + 3 if isinstance(strategy, Bulyan) else 1
    if subchannels < least:
        raise ValueError(
            f"{name} needs {least} updates a round with "
            f"num_malicious_nodes={strategy.num_malicious_nodes}, and {subchannels} places bring "
            "fewer: give the links more places"
        )


def _metric(reply: Message, name: str) -> float | None:
    """A number that a reply carries under this name, in any of its metric records."""
    for record in reply.content.metric_records.values():
        if name in record and not isinstance(record[name], list):
            return float(record[name])
    return None


def _only_model(reply: Message, length: int) -> Params:
    """The model that a reply carries, which must be one of this length."""
    records = list(reply.content.array_records.values())
    if len(records) != 1:
        raise FederationError(
            f"a client sent {len(records)} records of arrays in the place of one model"
        )
    model = _flatten(records[0])
    if model.size != length:
        raise FederationError(
            f"a client sent a model of {model.size:,} numbers for one of {length:,}"
        )
    return model


def _flatten(record: ArrayRecord) -> Params:
    """The numbers of all arrays of a model, one after the other."""
    parts = [array.numpy().reshape(-1).astype(np.float32, copy=False) for array in record.values()]
    return np.concatenate([np.zeros(0, np.float32), *parts])


def _unflatten(record: ArrayRecord, vector: Params) -> ArrayRecord:
    """The model of this vector, with the names, shapes and types of another one."""
    arrays, at = {}, 0
    for name, array in record.items():
        old = array.numpy()
        part = vector[at : at + old.size].reshape(old.shape)
        whole = old.dtype.kind in "iub"
        arrays[name] = Array(np.array(np.rint(part) if whole else part, old.dtype, order="C"))
        at += old.size
    return ArrayRecord(arrays)


class _ElasticAggregator:
    """An aggregation rule of the simulator for clients that may become more."""

    def __init__(self, rule: Aggregation) -> None:
        self._rule = rule
        self.state: State = {}

    def combine(self, updates: Updates, sizes: NDArray[np.int64]) -> Aggregated:
        """The model after these updates, of clients that have these numbers of samples."""
        state = self._rule.init_state(sizes.size, updates.params.size)
        for name, kept in self.state.items():
            if kept.shape == state[name].shape:
                state[name] = kept
            else:
                state[name][tuple(slice(0, size) for size in kept.shape)] = kept
        found = self._rule.combine(state, updates, sizes)
        self.state = found.state
        return found
