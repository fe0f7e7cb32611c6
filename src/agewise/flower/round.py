"""A round under way: messages of the inner strategy, their replies, and the model after it."""

import contextlib
import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import (
    Bulyan,
    FedAvg,
    FedAvgM,
    FedXgbBagging,
    FedXgbCyclic,
    Strategy,
)
from flwr.serverapp.strategy.fedopt import FedOpt
from numpy.typing import NDArray

from agewise.flower.clients import PlannedRound, Rows
from agewise.flower.grid import Reply, SubsetGrid, UnreadableReply
from agewise.flower.links import Arrays, FederationError, Links
from agewise.flower.replies import ReplyCheck
from agewise.learn import (
    Aggregation,
    Params,
    Staleness,
    State,
    Updates,
    WeightedAverage,
    update_reports,
)
from agewise.policies import Policy
from agewise.scheduling import Report

#: Numbers of nodes below which Flower's strategies wait for more.
_LEAST_NODES = ("min_train_nodes", "min_evaluate_nodes", "min_available_nodes")
#: The metric that is a client's number of samples, where the strategy names none.
_SAMPLES = "num-examples"


class Sent(NamedTuple):
    """A message to the client of a row, and the model of round ``t`` that it carries.

    ``factor`` is what the policy of that round gave the update, if it sets the factors.
    """

    message: Message
    row: int
    t: int
    arrays: ArrayRecord
    factor: float | None


class _Answers(NamedTuple):
    """Replies to a round's messages, and to earlier ones, sorted by the rows of the clients.

    ``replies`` are those that the inner strategy gets, with errors among them, and ``updates`` the
    whole ones of the rows ``arrived``, which answer what was ``sent``. Clients
    that ``failed`` answered with an error, or with what is ``refused`` for the reason given; those
    that are ``late`` not in time. What is ``lost`` the links lose, whatever was answered. Messages
    ``under_way`` have no answer yet.
    """

    replies: list[Message]
    updates: list[Message]
    sent: list[Sent]
    arrived: Rows
    failed: Rows
    late: Rows
    lost: Rows
    refused: dict[int, str]
    under_way: dict[str, Sent]

    @property
    def versions(self) -> Rows:
        """The rounds of the models that the updates started from."""
        return _rows(sent.t for sent in self.sent)

    @property
    def factors(self) -> NDArray[np.float64] | None:
        """The policy's factors of the updates, of the rounds in which they were asked for."""
        factors = [sent.factor for sent in self.sent if sent.factor is not None]
        return np.array(factors) if len(factors) == self.arrived.size > 0 else None

    def why_none(self) -> str | None:
        """Explain why no update arrived, where the answers say it."""
        for reason in reversed(self.refused.values()):
            return f"the replies of clients are refused, the last because {reason}"
        errors = [reply.error.reason for reply in self.replies if reply.has_error()]
        if errors:
            last = (errors[-1] or "no reason given").strip().splitlines()[-1]
            return f"the clients that were asked failed, the last with {last!r:.300}"
        return "the modelled channel loses the uploads" if self.lost.size else None


@dataclass(frozen=True, eq=False)
class OpenRound:
    """Plan of a round, the model that was sent, the messages, and the row of each connected node.

    ``eligible`` is how many clients the policy could choose from, ``started`` a monotonic time, and
    ``earlier`` are messages of earlier rounds whose replies count when they come.
    """

    planned: PlannedRound
    arrays: ArrayRecord
    messages: list[Message]
    row_of: dict[int, int]
    eligible: int
    started: float
    earlier: Mapping[str, Sent]

    def sent(self) -> dict[str, Sent]:
        """The messages, with those of earlier rounds that have no answer yet, by their ids."""
        t, found = self.planned.t, dict(self.earlier)
        aggregation = self.planned.plans[0].aggregation
        for message in self.messages:
            row = self.row_of[message.metadata.dst_node_id]
            factor = None if aggregation is None else float(aggregation[row])
            found[message.metadata.message_id] = Sent(message, row, t, self.arrays, factor)
        return found

    def answers(self, replies: Iterable[Message], check: ReplyCheck) -> _Answers:
        """Sort these replies by what they are to the round; those refused become errors."""
        # An error that the SuperLink made comes from a node of its own, so that replies are known
        # by the message that they answer.
        under_way = self.sent()
        by_node = {x.message.metadata.dst_node_id: id_ for id_, x in under_way.items()}
        by_row: dict[int, tuple[Message, Sent]] = {}
        for reply in replies:
            id_ = reply.metadata.reply_to_message_id
            id_ = id_ if id_ in under_way else by_node.get(reply.metadata.src_node_id, "")
            if (sent := under_way.pop(id_, None)) is not None:
                by_row[sent.row] = reply, sent
        answered, sent_to = {}, {}
        for row, (reply, sent) in sorted(by_row.items()):
            answered[row], sent_to[row] = reply, sent
        whole = {row: x for row, x in answered.items() if not x.has_error()}
        refused = check.refusals(whole, {row: sent.arrays for row, sent in sent_to.items()})
        for row in refused:
            error = Error(0, "refused by the check of replies")
            answered[row] = Message(error, reply_to=sent_to[row].message)
            del whole[row]
        refused |= {
            row: reply.error.reason
            for row, reply in answered.items()
            if reply.has_error() and isinstance(reply.error, UnreadableReply)
        }
        failed = _rows(row for row in answered if row not in whole)
        lost = np.setdiff1d(self.planned.lost, failed)
        late = np.setdiff1d(self.planned.chosen, [*answered, *lost])
        handed = [reply for row, reply in answered.items() if row not in lost]
        updates = {row: reply for row, reply in whole.items() if row not in lost}
        under_way = {id_: x for id_, x in under_way.items() if x.row not in lost}
        return _Answers(
            handed, list(updates.values()), [sent_to[row] for row in updates], _rows(updates),
            failed, late, lost, refused, under_way,
        )  # fmt: skip

    def teach(self, links: Links, replies: Iterable[Reply]) -> None:
        """Tell the links what was measured of these replies, and whose are missing."""
        missing = set(self.planned.chosen.tolist())
        row_of = {x.message.metadata.dst_node_id: x.row for x in self.sent().values()}
        for reply in replies:
            if (row := row_of.get(reply.node)) is None:
                continue  # what the links lost in an earlier round
            missing.discard(row)
            if not reply.message.has_error():
                links.observe(self.planned.t, row, reply.timing)
        for row in sorted(missing):
            links.miss(self.planned.t, row)

    def metrics(self, kept: Arrays) -> dict[str, Any]:
        """Metrics of the round in Flower's result; lists are of rows of clients."""
        ages = np.delete(kept["policy0.ages"], kept["forgotten"])
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
            "agewise-shadow-unknown": [
                kept[f"policy{number}.unknown"].size for number in range(1, len(self.planned.plans))
            ],
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
    policies read as the loss. With a ``staleness``, updates of earlier models count by its weights:
    the strategy is handed them as updates of the newest.
    """

    def __init__(
        self,
        strategy: Strategy,
        subchannels: int,
        policies: Sequence[Policy] = (),
        losses: str | None = None,
        aggregation: Aggregation | None = None,
        staleness: Staleness | None = None,
    ) -> None:
        self.strategy, self.name = strategy, type(strategy).__name__
        self.chain: list[Strategy] = []
        while isinstance(strategy, Strategy):
            self.chain.append(strategy)
            strategy = getattr(strategy, "strategy", None)
        self._settings = [inspect.signature(type(each)).parameters for each in self.chain]
        for each in self.chain:
            _require_schedulable(each, subchannels)
        keys = [getattr(each, "weighted_by_key", None) for each in self.chain]
        self._weighted_by = next(filter(None, keys), None)
        self.samples = self._weighted_by or _SAMPLES
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
        self._staleness = staleness
        self._policies, self._losses, self._always = policies, losses, aggregation is not None
        self._reads: frozenset[Report] = frozenset().union(*(each.reads for each in policies))
        self._rule: Aggregation = aggregation or WeightedAverage()
        self._rule_state: State = {}

    @property
    def least_available(self) -> int:
        """Number of connected nodes that the strategy insists on."""
        return max(getattr(each, "min_available_nodes", 1) for each in self.chain)

    def check(self, most_samples: int, norm_cap: float | None) -> ReplyCheck:
        """The check of replies that fits the strategies, and the policies."""
        trees = any(isinstance(each, FedXgbBagging | FedXgbCyclic) for each in self.chain)
        needed = [self._losses or ""] if "losses" in self._reads else []
        return ReplyCheck(
            [*needed, self.samples] if self._weighted_by else needed,
            self.samples,
            most_samples,
            norm_cap,
            trees,
        )

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

    def content(self, server_round: int, config: ConfigRecord) -> RecordDict:
        """What a message carries beside the model: the configuration, where clients look for it."""
        keys = [getattr(each, "configrecord_key", None) for each in self.chain]
        sent = ConfigRecord(dict(config) | {"server-round": server_round})
        return RecordDict({next(filter(None, keys), "config"): sent})

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
        found = zip(replies, known.tolist(), strict=True)
        return np.array([round(_metric(x, self.samples, size)) for x, size in found], np.int64)

    def combine(
        self, server_round: int, opened: OpenRound, answers: _Answers, sizes: NDArray[np.int64]
    ) -> _Combined:
        """Make the model after a round; ``sizes`` has the numbers of samples of all clients."""
        reports: dict[Report, NDArray[np.float64]] = {}
        if "losses" in self._reads:
            losses = [_metric(reply, self._losses or "", np.nan) for reply in answers.updates]
            reports["losses"] = np.array(losses, float)
        sizes, factors = self._rebase(opened, answers, sizes)
        if factors is not None:
            self._require_average(f"the policy {self._policies[0].name}")
        model, diversity, here = None, None, factors is not None or self._always
        if here or self._reads - {"losses"}:
            start = _flatten(opened.arrays, opened.arrays)
            models = np.empty((len(answers.updates), start.size), np.float32)
            for row, reply in zip(models, answers.updates, strict=True):
                (model_of_client,) = reply.content.array_records.values()
                row[:] = _flatten(model_of_client, opened.arrays)
            reports |= update_reports(self._reads, start, models)
            if here:
                state = self._rule.init_state(sizes.size, start.size)
                for name, kept in self._rule_state.items():  # clients may have become more
                    state[name][tuple(slice(0, size) for size in kept.shape)] = kept
                updates = Updates(start, models, answers.arrived, factors)
                found = self._rule.combine(state, updates, sizes)
                self._rule_state, diversity = found.state, found.diversity
                model = _unflatten(opened.arrays, found.params)
        arrays, metrics = model, None
        if answers.replies:  # the inner strategy may refuse rounds that it did not configure
            for reply in answers.updates if model is not None else ():
                (name,) = reply.content.array_records
                reply.content[name] = model
            arrays, metrics = self.strategy.aggregate_train(server_round, answers.replies)
        if arrays is not None:
            arrays = _typed_as(opened.arrays, arrays)
        if model is not None and (arrays is None or self._averages):
            arrays = model  # to the bit, without the rounding of an average of equals
        return _Combined(arrays, metrics or MetricRecord(), reports, diversity)

    def _rebase(
        self, opened: OpenRound, answers: _Answers, sizes: NDArray[np.int64]
    ) -> tuple[NDArray[Any], NDArray[np.float64] | None]:
        """Make updates of earlier models ones of the newest, and count them by their weights.

        Gives the numbers of samples of all clients, and a policy's factors of those that arrived.
        """
        rows, staleness = answers.arrived, opened.planned.t - answers.versions
        if self._staleness is None or not staleness.any():
            return sizes, answers.factors
        weights, sizes, factors = self._staleness.apply(staleness, rows, sizes, answers.factors)
        for i in np.flatnonzero(staleness).tolist():
            content, old = answers.updates[i].content, answers.sent[i].arrays
            ((name, arrays),) = content.array_records.items()
            content[name] = _moved(arrays, old, opened.arrays, float(weights[i]))
            (metrics,) = content.metric_records.values()
            if self.samples in metrics:
                metrics[self.samples] = sizes[rows[i]].item()
        return sizes, factors

    def state(self) -> Arrays:
        """Save what the strategies keep in arrays, such as momentum, and what the rule keeps.

        Of a strategy these are attributes that are arrays, lists, dictionaries or records of
        arrays, or float numbers. Parameters of the constructor are settings, no state.
        """
        kept = {f"rule.{name}": array for name, array in self._rule_state.items()}
        for depth, (strategy, settings) in enumerate(zip(self.chain, self._settings, strict=True)):
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
        self._rule_state = attributes.pop(("rule",), {})
        for (depth, name, kind), arrays in attributes.items():
            value: object = arrays
            if kind == "single":
                value = float(arrays[""]) if arrays[""].ndim == 0 else arrays[""]
            elif kind == "list":
                value = list(arrays.values())
            elif kind == "record":
                value = ArrayRecord({key: Array(array) for key, array in arrays.items()})
            if callable(getattr(self.chain[int(depth)], name, None)):
                raise ValueError(f"{name!r} is no array of the inner strategy")
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
    if type(strategy).start is not Strategy.start:
        raise ValueError(
            f"{name} has a start of its own, which Scheduled would not call: give a strategy "
            "without, and put what it does there into evaluate_fn or aggregate_train"
        )
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


def _metric(reply: Message, name: str, otherwise: float) -> float:
    """The number that a checked reply carries under this name, or else another one."""
    (metrics,) = reply.content.metric_records.values()
    value = metrics.get(name)
    return value if isinstance(value, int | float) else otherwise


def _flatten(record: ArrayRecord, names: Iterable[str]) -> Params:
    """The numbers of all arrays of a model, one after the other in the order of these names."""
    arrays = [record[name].numpy() for name in names]
    parts = [array.reshape(-1).astype(np.float32, copy=False) for array in arrays]
    return np.concatenate([np.zeros(0, np.float32), *parts])


def _moved(model: ArrayRecord, old: ArrayRecord, new: ArrayRecord, weight: float) -> ArrayRecord:
    """What the update from an ``old`` model to this one makes of the ``new``; counters stay."""
    moved = {}
    for name, array in model.items():
        values, start = array.numpy(), new[name].numpy()
        if values.dtype.kind in "fc":
            values = (start + weight * (values - old[name].numpy())).astype(values.dtype)
        moved[name] = Array(values)
    return ArrayRecord(moved)


def _typed_as(record: ArrayRecord, arrays: ArrayRecord) -> ArrayRecord:
    """The arrays in the types of another record: averages of whole numbers are made whole."""
    made = {}
    for name, array in arrays.items():
        dtype = np.dtype(record[name].dtype) if name in record else np.dtype(array.dtype)
        made[name] = array if np.dtype(array.dtype) == dtype else _typed(array.numpy(), dtype)
    return ArrayRecord(made)


def _unflatten(record: ArrayRecord, vector: Params) -> ArrayRecord:
    """The model of this vector, with the names, shapes and types of another one."""
    arrays, at = {}, 0
    for name, array in record.items():
        old = array.numpy()
        arrays[name] = _typed(vector[at : at + old.size].reshape(old.shape), old.dtype)
        at += old.size
    return ArrayRecord(arrays)


def _typed(values: NDArray[np.number], dtype: np.dtype[np.generic]) -> Array:
    return Array(np.array(np.rint(values) if dtype.kind in "iub" else values, dtype, order="C"))
