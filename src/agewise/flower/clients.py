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

import numpy as np
from numpy.typing import NDArray

from agewise.checks import whole_number
from agewise.cost import CostModel
from agewise.flower.links import Arrays, FederationError, Gains, Links
from agewise.policies import Policy, make_policy
from agewise.random import Streams
from agewise.records import Delivery
from agewise.scheduling import AccessPoint, Report
from agewise.spectrum import Allocation, Uplink

Rows = NDArray[np.int64]
_NOBODY = np.empty(0, np.int64)


@dataclass(frozen=True)
class Clients:
    """Identification of clients.

    A client's id is the SHA-256 of its node's public key, which it keeps over restarts. In Flower's
    simulation nodes have new keys each time: with ``ask`` each new node is asked once for its id,
    and the ClientApp answers through `identify`. ``sizes`` has the numbers of samples of clients
    that are known beforehand, by id: they have the first rows, in this order.
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
    ask: bool = False

    def __post_init__(self) -> None:
        for id_, size in self.sizes.items():
            whole_number(f"the number of samples of client {id_}", size, least=1)


@dataclass(frozen=True, eq=False)
class PlannedRound:
    """A round before it happens: the gains of eligible clients, and what each choice meets.

    ``plans[0]`` and ``deliveries[0]`` are of the live policy, the others of those in its shadow.
    ``true`` are the gains that uploads meet, ``None`` if they are those that the policies saw.
    """

    t: int
    gains: Gains
    true: Gains | None
    plans: list[Allocation]
    deliveries: list[Delivery]

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
    before round t has the age t, as if it had been silent from the start. What a policy in the
    shadow chooses is taken to arrive, unless the client failed in that round or the links lose it.
    """

    def __init__(
        self,
        policies: Sequence[Policy | str],
        links: Links,
        seed: int = 0,
        sizes: Mapping[str, int] | None = None,
    ) -> None:
        self.policies, self.links = [make_policy(each) for each in policies], links
        self.ids: list[str] = []
        self.sizes = np.zeros(0, np.int64)
        self._row: dict[str, int] = {}
        self._points = [
            AccessPoint(
                policy,
                (),
                Streams(seed),
                deadline_slots=links.deadline_slots,
                everyone_eligible=links.everyone_eligible,
                margin=links.margin,
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

    def rows(self, ids: Sequence[str]) -> Rows:
        """The rows of these clients; those that are new get the next ones, in the order of ids."""
        new = sorted(id_ for id_ in ids if id_ not in self._row)
        if new:
            self._join(new, np.ones(len(new), np.int64))
        return np.array([self._row[id_] for id_ in ids], np.int64)

    def _join(self, ids: Sequence[str], sizes: NDArray[np.int64]) -> None:
        self._row |= {id_: len(self.ids) + i for i, id_ in enumerate(ids)}
        self.ids.extend(ids)
        self.sizes = np.concatenate((self.sizes, sizes))
        computing = self.links.compute_slots(len(self.ids))
        for point in self._points:
            point.set_present(self.ids)
            ages = point.ages.copy()
            ages[len(ages) - len(ids) :] = point.t
            point.describe(ages=ages, data_sizes=self.sizes, compute_slots=computing)

    def plan(self, eligible: Rows) -> PlannedRound:
        """Choose who uploads in the next round, of the clients in these rows."""
        if not self.ids:
            raise FederationError("no client is known yet")
        links, absent = self.links, np.ones(len(self.ids), np.bool_)
        absent[eligible] = False
        gains, true = links.gains(self.t, self.ids).copy(), links.true_gains(self.t, self.ids)
        gains[absent] = 0.0
        if true is not None:
            true = np.where(absent[:, np.newaxis], 0.0, true)
        uplink = Uplink(gains, links.power_budget, links.rate_threshold)
        # Which uploads the links lose; costs are not counted here.
        computing = links.compute_slots(len(self.ids))
        costs = CostModel(1.0, links.rate_threshold, computing, links.deadline_slots, None)
        plans = [point.plan(uplink) for point in self._points]
        deliveries = [costs.deliver(plan, true, None)[0] for plan in plans]
        return PlannedRound(self.t, gains, true, plans, deliveries)

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
        failed: Rows = _NOBODY,
        reports: Mapping[Report, NDArray[np.float64]] | None = None,
    ) -> Arrays:
        """Take the updates that arrived and go on; returns the arrays that a record keeps.

        ``reports`` are of those ``received``, in their order; ``failed`` answered with an error.
        """
        kept: Arrays = {"gains": planned.gains}
        if planned.true is not None:
            kept["true"] = planned.true
        live, rounds = self._points[0], zip(self._points, planned.deliveries, strict=True)
        for number, (point, delivery) in enumerate(rounds):
            arrived, known = received, reports
            if point is not live:
                arrived = np.setdiff1d(delivery.received, failed)
                known = {name: getattr(live.feedback, name)[arrived] for name in point.policy.reads}
            point.receive(arrived, known)
            # An update that failed counts as late.
            missed = (delivery.outcome == "received") & ~np.isin(delivery.scheduled, arrived)
            outcome = np.where(missed, "late", delivery.outcome)
            arrays = delivery._replace(received=arrived, outcome=outcome)._asdict()
            arrays |= {"ages": point.ages, "participation": point.participation}
            kept |= {f"policy{number}.{name}": array for name, array in arrays.items()}
        return kept

    def snapshot(self) -> Arrays:
        """Save all that is remembered, as arrays."""
        arrays: Arrays = {
            "ids": np.array([id_.encode() for id_ in self.ids], "S"),
            "sizes": self.sizes,
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

        def below(start: str) -> Arrays:
            return {
                name.removeprefix(start): x for name, x in arrays.items() if name.startswith(start)
            }

        new = len(self.ids)
        self._join(ids[new:], np.array(arrays["sizes"][new:], np.int64))
        self.sizes = np.array(arrays["sizes"], np.int64)
        for number, point in enumerate(self._points):
            point.restore(below(f"policy{number}."))
        self.links.restore(below("links."))
