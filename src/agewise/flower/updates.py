"""What is made of the replies of a round: sizes, reports, and the model where it is made here."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agewise.flower import inner as inside
from agewise.flower.api import ArrayRecord, FederationError, Message, MetricRecord, Strategy
from agewise.flower.federation import Planned, Rows
from agewise.flower.models import Growing, flat, like, stacked
from agewise.learn import Aggregator, Average, Updates, update_reports
from agewise.policies import Policy
from agewise.scheduling import Report

#: No client has more samples than this: numbers up to it are exact in a float.
_MOST_SAMPLES = 2.0**53


class Combined(NamedTuple):
    """The model if it is made here and not by the inner strategy, reports, gradient diversity."""

    model: ArrayRecord | None
    reports: dict[Report, NDArray[np.float64]]
    diversity: float | None


class Combiner:
    """Makes the next model of updates, with the inner strategy or before it.

    Where a policy sets the factors of the updates, or an aggregation rule is given, the updates are
    combined here, and the inner strategy is handed replies that all carry the combined model: what
    it does to an average, such as a step of Adam, it does to that.
    """

    def __init__(
        self,
        inner: Strategy,
        policies: Sequence[Policy],
        losses: str | None,
        aggregation: Aggregator | None,
    ) -> None:
        for policy in policies:
            if "losses" in policy.reads and losses is None:
                raise ValueError(
                    f"the policy {policy.name} needs losses: say under which metric clients report "
                    "the mean loss of the model that they were given, losses='...'"
                )
        if aggregation is not None:
            if isinstance(aggregation, str | type):
                raise ValueError(
                    "aggregation must be a rule such as agewise.learn.Memory(0.0), not "
                    f"{aggregation!r}"
                )
            inside.require_average(inner, "aggregation")
        self._inner, self._policy, self._losses = inner, policies[0], losses
        self._always = aggregation is not None
        self._reads: frozenset[Report] = frozenset().union(*(each.reads for each in policies))
        self.rule = Growing(aggregation or Average())

    def sizes(self, replies: Sequence[Message], known: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of samples that replies name; those ``known`` where they name none."""
        key = inside.weight_key(self._inner)
        named = [metric(reply, key) for reply in replies]
        for size in named:
            if size is not None and not 0 <= size <= _MOST_SAMPLES:
                raise FederationError(
                    f"a client reports {size:g} as {key!r}, which must be its number of samples"
                )
        sizes = [
            int(old) if new is None else max(round(new), 1)
            for new, old in zip(named, known, strict=True)
        ]
        return np.array(sizes, np.int64)

    def combine(
        self,
        planned: Planned,
        arrays: ArrayRecord,
        received: Rows,
        replies: Sequence[Message],
        sizes: NDArray[np.int64],
    ) -> Combined:
        """What these replies report, and the model of ``arrays`` after them if it is made here.

        ``received`` has the rows of those who replied, ``sizes`` the numbers of samples of all.
        """
        reports: dict[Report, NDArray[np.float64]] = {}
        if "losses" in self._reads:
            reports["losses"] = np.array([self._loss(reply) for reply in replies], np.float64)
        factors = planned.plans[0].factors_of(received)
        if factors is not None:
            inside.require_average(self._inner, f"the policy {self._policy.name}")
        here = factors is not None or self._always
        if not here and not self._reads - {"losses"}:
            return Combined(None, reports, None)
        start = flat(arrays)
        models = stacked([_only_record(reply) for reply in replies], start.size)
        reports |= update_reports(self._reads, start, models)
        if not here:
            return Combined(None, reports, None)
        found = self.rule.combine(Updates(start, models, received, factors), sizes)
        return Combined(like(arrays, found.params), reports, found.diversity)

    def aggregate(
        self, server_round: int, replies: Sequence[Message], model: ArrayRecord | None
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """What the inner strategy gives, of the replies or of the ``model`` that was made here."""
        if not replies:  # it may refuse rounds that it did not configure
            return model, None
        for reply in replies if model is not None else ():
            if reply.has_content():
                (name,) = reply.content.array_records
                reply.content[name] = model
        arrays, metrics = self._inner.aggregate_train(server_round, replies)
        if model is not None and (arrays is None or inside.averages(self._inner)):
            return model, metrics  # to the bit, without the rounding of an average of equals
        return arrays, metrics

    def _loss(self, reply: Message) -> float:
        loss = metric(reply, self._losses or "")
        if loss is None:
            records: Any = reply.content.metric_records.values()
            have = sorted(name for record in records for name in record)
            raise FederationError(
                f"the policy needs losses, and a client reports no metric {self._losses!r}; it "
                f"reports {', '.join(have) or 'none'}"
            )
        return loss


def _only_record(reply: Message) -> ArrayRecord:
    records = list(reply.content.array_records.values())
    if len(records) != 1:
        raise FederationError(
            f"a client sent {len(records)} records of arrays in the place of one model"
        )
    return records[0]


def metric(reply: Message, name: str) -> float | None:
    """A number that a reply carries under this name, in any of its metric records."""
    for record in reply.content.metric_records.values():
        if name in record and not isinstance(record[name], list):
            return float(record[name])
    return None
