"""The rounds of a live federation: who is there, who is chosen, who arrived."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agewise.cost import CostModel
from agewise.flower.api import FederationError
from agewise.flower.links import Gains, Links
from agewise.random import Streams
from agewise.records import Delivery
from agewise.scheduling import AccessPoint, Policy, Report
from agewise.spectrum import Allocation, Uplink

Rows = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Planned:
    """A round before it happens: what was offered, and what the choice of each policy meets.

    ``plans[0]`` and ``deliveries[0]`` are of the live policy, the others of those in its shadow.
    ``true`` are the gains that uploads meet, ``None`` if they are those that were offered.
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


class Federation:
    """The access points of the live policy and of those in its shadow, on the same links.

    Every client that was ever known has a row. One that is not there, or still owes a reply, is
    offered with gains of 0: it ages. A client that joins before round t has the age t, as if it had
    been silent from the start. What a policy in the shadow chooses is taken to arrive, unless the
    client failed in that round or the links lose it.
    """

    def __init__(
        self, policies: Sequence[Policy], links: Links, seed: int, sizes: Mapping[str, int]
    ) -> None:
        self.policies, self.links = list(policies), links
        self.ids: list[str] = []
        self.sizes = np.zeros(0, np.int64)
        self._row: dict[str, int] = {}
        self.points = [
            AccessPoint(
                policy,
                (),
                Streams(seed),
                deadline_slots=links.deadline_slots,
                offer_everyone=links.offer_everyone,
                margin=links.margin,
            )
            for policy in policies
        ]
        self.join(list(sizes), np.array(list(sizes.values()), np.int64))

    @property
    def t(self) -> int:
        """The round to come, from 0."""
        return self.points[0].t

    def rows(self, ids: Sequence[str]) -> Rows:
        """The rows of these clients; those that are new get the next ones, in the order of ids."""
        new = sorted(id_ for id_ in ids if id_ not in self._row)
        if new:
            self.join(new, np.ones(len(new), np.int64))
        return np.array([self._row[id_] for id_ in ids], np.int64)

    def join(self, ids: Sequence[str], sizes: NDArray[np.int64]) -> None:
        """Take in new clients with these numbers of samples."""
        self._row |= {id_: len(self.ids) + i for i, id_ in enumerate(ids)}
        self.ids.extend(ids)
        self.sizes = np.concatenate((self.sizes, sizes))
        computing = self.links.compute_slots(len(self.ids))
        for point in self.points:
            point.set_present(self.ids)
            ages = point.ages.copy()
            ages[len(ages) - len(ids) :] = point.t
            point.describe(ages=ages, data_sizes=self.sizes, compute_slots=computing)

    def plan(self, present: Rows) -> Planned:
        """Who uploads in the next round, of the clients in these rows."""
        if not self.ids:
            raise FederationError("no client is known yet")
        links, true = self.links, self.links.true_gains(self.t, self.ids)
        gains = _of_those(links.gains(self.t, self.ids), present)
        true = None if true is None else _of_those(true, present)
        uplink = Uplink(gains, links.power_budget, links.rate_threshold)
        plans = [point.plan(uplink) for point in self.points]
        # Which uploads the links lose; costs are not counted here.
        computing = links.compute_slots(len(self.ids))
        costs = CostModel(1.0, links.rate_threshold, computing, links.deadline_slots, None)
        deliveries = [costs.deliver(plan, true, None)[0] for plan in plans]
        return Planned(self.t, gains, true, plans, deliveries)

    def learn_sizes(self, rows: Rows, sizes: NDArray[np.int64]) -> None:
        """Take in how many samples these clients say that they have."""
        if np.array_equal(self.sizes[rows], sizes):
            return
        self.sizes = self.sizes.copy()
        self.sizes[rows] = sizes
        for point in self.points:
            point.describe(data_sizes=self.sizes)

    def receive(
        self,
        planned: Planned,
        received: Rows,
        failed: Rows,
        reports: Mapping[Report, NDArray[np.float64]],
    ) -> list[Arrays]:
        """Go on to the next round; what this one was to each policy, as arrays."""
        live, *shadows = self.points
        live.receive(received, reports)
        kept = [_kept(live, planned.deliveries[0], received)]
        feedback = live.feedback
        for point, delivery in zip(shadows, planned.deliveries[1:], strict=True):
            arrived = np.setdiff1d(delivery.received, failed)
            known = {name: getattr(feedback, name)[arrived] for name in point.policy.reads}
            point.receive(arrived, known)
            kept.append(_kept(point, delivery, arrived))
        return kept

    def snapshot(self) -> Arrays:
        """All that is remembered, as arrays."""
        arrays: Arrays = {
            "ids": np.array([id_.encode() for id_ in self.ids], "S"),
            "sizes": self.sizes,
        }
        for number, point in enumerate(self.points):
            arrays |= {f"policy{number}.{name}": x for name, x in point.snapshot().items()}
        return arrays | {f"links.{name}": x for name, x in self.links.state().items()}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on where `snapshot` was taken."""
        ids = [id_.decode() for id_ in arrays["ids"].tolist()]
        if ids[: len(self.ids)] != self.ids:
            raise FederationError(
                "the state is of a federation with other clients: give another folder"
            )
        new = len(self.ids)
        self.join(ids[new:], np.array(arrays["sizes"][new:], np.int64))
        self.sizes = np.array(arrays["sizes"], np.int64)
        for number, point in enumerate(self.points):
            point.restore(_below(arrays, f"policy{number}."))
        self.links.restore(_below(arrays, "links."))


def _below(arrays: Mapping[str, NDArray[Any]], start: str) -> Arrays:
    return {name.removeprefix(start): x for name, x in arrays.items() if name.startswith(start)}


def _of_those(gains: Gains, present: Rows) -> Gains:
    """The gains of those who are there; 0 for the others."""
    there = np.zeros_like(gains)
    there[present] = gains[present]
    return there


def _kept(point: AccessPoint, delivery: Delivery, received: Rows) -> Arrays:
    """What a round leaves in the record of a policy; an update that failed counts as late."""
    missed = delivery.outcome == "received"
    missed &= ~np.isin(delivery.scheduled, received)
    return {
        **delivery._asdict(),
        "received": received,
        "outcome": np.where(missed, "late", delivery.outcome),
        "ages": point.ages,
        "participation": point.participation,
    }
