"""The clients of a live federation: their rows, who is to upload, whose update arrived.

Flower is not needed here: any server can ask a `RoundPlanner` whom to let upload over its `Links`,
and tell it who did.

>>> from agewise.flower.links import Slots
>>> planner = RoundPlanner(["round-robin"], Slots(2))
>>> for _ in range(2):
...     planned = planner.plan(planner.rows(["a", "b", "c"]))
...     print([planner.ids[row] for row in planned.chosen])
...     kept = planner.receive(planned, planned.chosen)
['a', 'b']
['a', 'c']
>>> planner.ages
array([0, 1, 0])
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agewise.checks import whole_number
from agewise.cost import CostModel
from agewise.flower.links import Arrays, FederationError, Gains, Links
from agewise.policies import Policy, make_policy
from agewise.random import Streams
from agewise.records import Delivery
from agewise.scheduling import AccessPoint, BackOffByTurns, Report, Retry
from agewise.spectrum import Allocation

Rows = NDArray[np.int64]
_NOBODY = np.empty(0, np.int64)
_BACK_OFF = BackOffByTurns()
#: What is known of a client by the last message to it that the links did not lose.
_UNKNOWN, _ANSWERED, _FAILED = -1, 0, 1


@dataclass(frozen=True)
class Clients:
    """Identification of clients.

    A client's id is the SHA-256 of its node's public key, which it keeps over restarts. In Flower's
    simulation nodes have new keys each time: with ``ask`` each new node is asked once for its id,
    and the ClientApp answers through `identify`. ``sizes`` has the numbers of samples of clients
    that are known beforehand, by id: they have the first rows, in this order. No reply is taken
    that says more than ``most_samples``. A client that was not there for ``forget_after`` rounds is
    forgotten: it keeps its row and comes back as it was, but no number of ages is over it.
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
    ask: bool = False
    most_samples: int = 10_000_000
    forget_after: int = 1_000

    def __post_init__(self) -> None:
        for name in ("most_samples", "forget_after"):
            whole_number(name, getattr(self, name), least=1)
        for id_, size in self.sizes.items():
            whole_number(f"the number of samples of client {id_}", size, least=1)


@dataclass(frozen=True, eq=False)
class PlannedRound:
    """A round before it happens: the gains of eligible clients, and what each choice meets.

    ``plans[0]`` and ``deliveries[0]`` are of the live policy, the others of those in its shadow;
    ``resting[0]`` are the rows that it was not offered, because they failed or would be late.
    ``true`` are the gains that uploads meet, ``None`` if they are those that the policies saw.
    """

    t: int
    gains: Gains
    true: Gains | None
    plans: list[Allocation]
    deliveries: list[Delivery]
    resting: list[Rows]

    @property
    def chosen(self) -> Rows:
        """The rows of the clients that are to upload, rising."""
        return self.deliveries[0].scheduled

    @property
    def lost(self) -> Rows:
        """The rows of those whose upload is in vain on these links."""
        return np.setdiff1d(self.chosen, self.deliveries[0].received)


class RoundPlanner:
    """Plans the rounds of a federation by the live policy, and those of the policies in its shadow.

    ``policies[0]`` is the live one. Every client that was ever known has a row. One that is not
    there, or still owes a reply, is not eligible: it has gains of 0 and ages. A client that joins
    before round t has the age t, as if it had been silent from the start. ``retry`` says when a
    client that was asked in vain is eligible again. What a policy in the shadow chooses is taken to
    arrive, unless the links lose it or the client failed when it was last asked; of clients that
    were never asked that is not known.
    """

    def __init__(
        self,
        policies: Sequence[Policy | str],
        links: Links,
        seed: int = 0,
        sizes: Mapping[str, int] | None = None,
        retry: Retry = _BACK_OFF,
        forget_after: int = Clients.forget_after,
    ) -> None:
        if not policies:
            raise ValueError("give at least one policy")
        self._forget_after = forget_after
        self.policies, self.links = [make_policy(each) for each in policies], links
        self.ids: list[str] = []
        self.sizes = np.zeros(0, np.int64)
        self._answers = np.zeros(0, np.int8)
        self._encoded = np.zeros(0, "S")
        self._seen = np.zeros(0, np.int64)  # the last round before which each was there
        self._row: dict[str, int] = {}
        self._there: tuple[list[str], Rows] = [], _NOBODY  # whom `rows` was asked for last
        self._points = [
            AccessPoint(
                policy,
                (),
                Streams(seed),
                deadline_slots=links.deadline_slots,
                everyone_eligible=links.everyone_eligible,
                margin=links.margin,
                retry=retry,
            )
            for policy in self.policies
        ]
        known = sizes or {}
        self._join(list(known), np.array(list(known.values()), np.int64))

    @property
    def t(self) -> int:
        """The round to come, from 0."""
        return self._points[0].t

    @property
    def ages(self) -> NDArray[np.int64]:
        """``[client]``: the rounds since the last update of each client that was ever known."""
        return self._points[0].ages

    @property
    def forgotten(self) -> Rows:
        """The rows of the clients that were not there for long."""
        return np.flatnonzero(self._seen + self._forget_after < self.t)

    def rows(self, ids: Sequence[str]) -> Rows:
        """The rows of the clients that are there; new ones get the next, in the order of ids."""
        if ids != self._there[0]:
            new = sorted(id_ for id_ in ids if id_ not in self._row)
            if new:
                self._join(new, np.ones(len(new), np.int64))
            self._there = list(ids), np.array([self._row[id_] for id_ in ids], np.int64)
        rows = self._there[1]
        self._seen[rows] = self.t
        return rows.copy()

    def _join(self, ids: Sequence[str], sizes: NDArray[np.int64]) -> None:
        self._row |= {id_: len(self.ids) + i for i, id_ in enumerate(ids)}
        self.ids.extend(ids)
        self.sizes = np.concatenate((self.sizes, sizes))
        self._answers = np.append(self._answers, np.full(len(ids), _UNKNOWN, np.int8))
        self._seen = np.append(self._seen, np.full(len(ids), self.t))
        count = len(self.ids)
        computing, slots = self.links.compute_slots(count), self.links.threshold_slots(count)
        for point in self._points:
            point.set_present(self.ids)
            ages = point.ages.copy()
            ages[len(ages) - len(ids) :] = point.t
            point.describe(
                ages=ages,
                data_sizes=self.sizes,
                compute_slots=computing,
                threshold_slots=slots,
            )

    def plan(self, eligible: Rows) -> PlannedRound:
        """Choose who uploads in the next round, of the clients in these rows."""
        if not self.ids:
            raise FederationError("no client is known yet")
        links, there = self.links, np.zeros(len(self.ids), np.bool_)
        there[eligible] = True
        gains, true = links.gains(self.t, self.ids), links.true_gains(self.t, self.ids)
        if not there.all():
            gains = np.where(there[:, np.newaxis], gains, 0.0)
            true = None if true is None else np.where(there[:, np.newaxis], true, 0.0)
        uplink = links.uplink(gains)
        # Which uploads the links lose; costs are not counted here.
        computing = links.compute_slots(len(self.ids))
        ones, limits = np.ones(len(self.ids)), (uplink.power_budget, uplink.rate_threshold)
        slots = links.threshold_slots(len(self.ids))
        costs = CostModel(ones, *limits, slots, computing, links.deadline_slots, None)
        outs = [point.sitting_out for point in self._points]
        resting = [_NOBODY if out is None else np.flatnonzero(out) for out in outs]
        plans = [point.plan(uplink) for point in self._points]
        deliveries = [costs.deliver(plan, true, None)[0] for plan in plans]
        return PlannedRound(self.t, gains, true, plans, deliveries, resting)

    def set_sizes(self, rows: Rows, sizes: NDArray[np.int64]) -> None:
        """Take in how many samples these clients say that they have."""
        self.sizes = self.sizes.copy()
        self.sizes[rows] = sizes
        for point in self._points:
            point.describe(data_sizes=self.sizes)

    def receive(
        self,
        planned: PlannedRound,
        received: Rows,
        reports: Mapping[Report, NDArray[np.float64]] | None = None,
        unused: Rows = _NOBODY,
        pending: Rows = _NOBODY,
        versions: Rows | None = None,
    ) -> Arrays:
        """Take the updates that arrived and go on; returns the arrays that a record keeps.

        ``reports`` are of those ``received``, in their order. Updates that are ``unused`` arrived
        and got into no model: their clients age, and have not failed. Those that are ``pending``
        may still arrive in a later round; then ``versions`` are the rounds in which those
        ``received`` were asked.
        """
        kept: Arrays = {"gains": planned.gains, "forgotten": self.forgotten}
        if planned.true is not None:
            kept["true"] = planned.true
        over = np.setdiff1d(planned.chosen, np.append(planned.lost, pending))
        self._answers[over] = _FAILED
        self._answers[received] = self._answers[unused] = _ANSWERED
        live, rounds = self._points[0], zip(self._points, planned.deliveries, strict=True)
        for number, (point, delivery) in enumerate(rounds):
            arrived, known, answers = received, reports, self._answers[delivery.received]
            if point is not live:
                arrived = delivery.received[answers != _FAILED]
                known = {name: getattr(live.feedback, name)[arrived] for name in point.policy.reads}
            if point is live:
                point.receive(arrived, known, unused=unused, pending=pending)
            else:
                point.receive(arrived, known)
            # An update that failed counts as late.
            missed = (delivery.outcome == "received") & ~np.isin(delivery.scheduled, arrived)
            outcome = np.where(missed, "late", delivery.outcome)
            ended = delivery._replace(received=arrived, outcome=outcome)
            if point is live and versions is not None:
                ended = _with_late(ended, planned.t, versions)
            arrays = {name: x for name, x in ended._asdict().items() if x is not None}
            arrays |= {"ages": point.ages, "participation": point.participation}
            arrays["resting"] = planned.resting[number]
            arrays["unknown"] = delivery.received[answers == _UNKNOWN]
            kept |= {f"policy{number}.{name}": array for name, array in arrays.items()}
        return kept

    def _encoded_ids(self) -> NDArray[np.bytes_]:
        if len(self._encoded) < len(self.ids):
            self._encoded = np.array([id_.encode() for id_ in self.ids], "S")
        return self._encoded

    def snapshot(self) -> Arrays:
        """Save all that is remembered, as arrays; a column of equal numbers is one of them."""
        return {name: _compact(array) for name, array in self._columns().items()}

    def _columns(self) -> Arrays:
        arrays: Arrays = {
            "ids": self._encoded_ids(),
            "sizes": self.sizes,
            "answers": self._answers,
            "seen": self._seen,
        }
        for number, point in enumerate(self._points):
            arrays |= {f"policy{number}.{name}": x for name, x in point.snapshot().items()}
        return arrays | {f"links.{name}": x for name, x in self.links.state().items()}

    def restore(self, arrays: Arrays) -> None:
        """Restore what `snapshot` saved."""
        ids = [id_.decode() for id_ in arrays["ids"].tolist()]
        if ids[: len(self.ids)] != self.ids:
            raise FederationError(
                "the state is of a federation with other clients: give another folder"
            )
        new = len(self.ids)
        if len(set(ids)) != len(ids) or not ids:
            raise ValueError("its clients are not told apart")
        self._join(ids[new:], np.ones(len(ids) - new, np.int64))
        arrays = dict(arrays)
        for name, ours in self._columns().items():
            saved = arrays.get(name, np.empty(0, "O"))
            fits = np.can_cast(saved.dtype, ours.dtype, "same_kind")
            shapes = (ours.shape, (1,) * ours.ndim)
            if (saved.shape not in shapes and not name.startswith("links.")) or not fits:
                raise ValueError(f"{name!r} is missing, or {saved.dtype} of shape {saved.shape}")
            least = -1 if name == "answers" else 0
            if ours.dtype.kind == "i" and (saved < least).any():
                raise ValueError(f"{name!r} is negative")
            if saved.shape in shapes and name != "ids":
                arrays[name] = np.array(np.broadcast_to(saved, ours.shape), ours.dtype)
        self.sizes, self._answers, self._seen = (arrays[x] for x in ("sizes", "answers", "seen"))
        parts: dict[str, Arrays] = {}
        for name, array in arrays.items():
            part, _, rest = name.partition(".")
            parts.setdefault(part, {})[rest] = array
        for number, point in enumerate(self._points):
            point.restore(parts[f"policy{number}"])
        self.links.restore(parts.get("links", {}))


def _compact(column: NDArray[Any]) -> NDArray[Any]:
    """A column in a smaller type, or one number where all are the same."""
    if column.ndim != 1 or column.dtype.kind not in "if":
        return column
    first, is_real = column[:1], column.dtype.kind == "f"
    if np.array_equal(column, np.broadcast_to(first, column.shape), equal_nan=is_real):
        return first
    if is_real or column.min() < 0:
        return column
    return column.astype(np.min_scalar_type(column.max()))


def _with_late(delivery: Delivery, t: int, versions: Rows) -> Delivery:
    """Add updates of those who were asked in earlier rounds; they hold no part of the uplink."""
    late = np.setdiff1d(delivery.received, delivery.scheduled)
    scheduled = np.append(delivery.scheduled, late)
    order = np.argsort(scheduled)
    outcome = np.append(delivery.outcome, np.full(late.size, "received"))[order]
    version = np.full(scheduled.size, t)
    version[outcome == "received"] = versions
    rate = np.append(delivery.rate, np.zeros(late.size))[order]
    return delivery._replace(
        scheduled=scheduled[order], outcome=outcome, rate=rate, version=version
    )
