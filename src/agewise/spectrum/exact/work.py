"""How much more the search for the optimum may do."""

import time
from dataclasses import dataclass, field

#: Nodes of a search that a machine gets through in a second, on the low side: this many times
#: 1 / subchannels. It turns seconds that are left into nodes, and nothing else depends on it.
_NODES_PER_SECOND = 4e6
_UNLIMITED = 2**62


@dataclass
class Work:
    """Counts nodes searched and columns of linear programs, and watches the clock."""

    subchannels: int
    work_limit: int | None
    time_limit_s: float | None
    done: int = 0
    _started: float = field(default_factory=time.monotonic)

    def spend(self, units: int) -> None:
        """Note that this much was done."""
        self.done += units

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the time limit, or ``None`` if there is none."""
        if self.time_limit_s is None:
            return None
        return max(0.0, self.time_limit_s - (time.monotonic() - self._started))

    @property
    def nodes_left(self) -> int:
        """Nodes that the next search may use."""
        left = _UNLIMITED if self.work_limit is None else max(0, self.work_limit - self.done)
        seconds = self.seconds_left
        if seconds is not None:
            left = min(left, int(seconds * _NODES_PER_SECOND / max(self.subchannels, 1)))
        return left

    @property
    def over(self) -> bool:
        """Whether a limit is reached."""
        return self.nodes_left == 0
