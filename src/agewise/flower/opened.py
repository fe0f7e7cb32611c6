"""A round that is under way: who was asked, for what, since when."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from agewise.flower.api import ArrayRecord, Message
from agewise.flower.federation import Arrays, Planned


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

    def by_row(self, replies: Iterable[Message]) -> dict[int, Message]:
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

    def metrics(self, kept: Arrays) -> dict[str, Any]:
        """What Flower's result says of the round; lists are of rows of clients."""
        ages = kept["policy0.ages"]
        return {
            "agewise-offered": self.offered,
            "agewise-chosen": kept["policy0.scheduled"].tolist(),
            "agewise-arrived": kept["policy0.received"].tolist(),
            "agewise-late": kept["late"].tolist(),
            "agewise-failed": kept["failed"].tolist(),
            "agewise-age-mean": float(ages.mean()),
            "agewise-age-largest": int(ages.max()),
            "agewise-seconds": float(kept["seconds"]),
        }
