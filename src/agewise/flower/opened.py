"""A round that is under way: who was asked, for what, since when."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from agewise.flower.api import ArrayRecord, Message
from agewise.flower.federation import Arrays, Planned, Rows
from agewise.flower.grid import Reply
from agewise.flower.links import Links


class Answers(NamedTuple):
    """What came of a round's messages, by the rows of the clients, each rising.

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
        """Why no update arrived, where the answers say it."""
        errors = [reply.error.reason for reply in self.replies if reply.has_error()]
        if errors:
            last = (errors[-1] or "no reason given").strip().splitlines()[-1]
            return f"the clients that were asked failed, the last with {last!r}"
        return "the modelled channel loses the uploads" if self.lost.size else None


@dataclass(frozen=True, eq=False)
class OpenRound:
    """The plan, the model that was sent, the messages, and the row of every connected node.

    ``offered`` is how many clients the policy could choose from, ``started`` a monotonic time.
    """

    planned: Planned
    arrays: ArrayRecord
    messages: list[Message]
    row_of: dict[int, int]
    offered: int
    started: float

    def answers(self, replies: Iterable[Message]) -> Answers:
        """What these replies are to the round."""
        answered = self._by_row(replies)
        failed = _rows(row for row, reply in answered.items() if reply.has_error())
        lost = np.setdiff1d(self.planned.lost, failed)
        late = np.setdiff1d(self.planned.chosen, [*answered, *lost])
        handed = {row: reply for row, reply in answered.items() if row not in lost}
        whole = {row: reply for row, reply in handed.items() if not reply.has_error()}
        updates = list(whole.values())
        return Answers(list(handed.values()), updates, _rows(whole), failed, late, lost)

    def _by_row(self, replies: Iterable[Message]) -> dict[int, Message]:
        """The replies by the rows of those who were asked, in rising order.

        An error that the SuperLink made comes from a node of its own, so that replies are known by
        the message that they answer.
        """
        asked = {m.metadata.message_id: m.metadata.dst_node_id for m in self.messages}
        found = {}
        for reply in replies:
            meta = reply.metadata
            node = asked.get(meta.reply_to_message_id, meta.src_node_id)
            if node in self.row_of:
                found[self.row_of[node]] = reply
        return dict(sorted(found.items()))

    def teach(self, links: Links, replies: Iterable[Reply]) -> None:
        """Tell the links what was measured of these replies, and whose are missing."""
        heard = set()
        for reply in replies:
            row = self.row_of[reply.node]
            heard.add(row)
            if not reply.message.has_error():
                links.observe(self.planned.t, row, reply.delivery)
        for row in self.planned.chosen.tolist():
            if row not in heard:
                links.miss(self.planned.t, row)

    def kept(self, answers: Answers, of_policies: Sequence[Arrays]) -> Arrays:
        """What the record of the round keeps, with what each policy left of it."""
        gains, true = self.planned.gains, self.planned.true
        kept: Arrays = {"gains": gains} if true is None else {"gains": gains, "true": true}
        kept |= {"late": answers.late, "failed": answers.failed, "lost": answers.lost}
        for number, each in enumerate(of_policies):
            kept |= {f"policy{number}.{name}": x for name, x in each.items()}
        return kept | {"seconds": np.array(time.monotonic() - self.started)}

    def metrics(self, kept: Arrays) -> dict[str, Any]:
        """What Flower's result says of the round; lists are of rows of clients."""
        ages = kept["policy0.ages"]
        return {
            "agewise-offered": self.offered,
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
