"""A Ray cluster."""

import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType

from agewise.engines.base import Item, Result, use_one_thread
from agewise.extras import require


@dataclass(frozen=True)
class Ray:
    """One task per item on the cluster at ``address``.

    Without an address Ray looks for a running cluster (``RAY_ADDRESS``, then this machine) and
    otherwise starts one here for as long as the run lasts. A task whose node dies is run again on
    another, as often as it takes.
    """

    address: str | None = None

    def run(
        self, work: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[tuple[Item, Result]]:
        """Each item with its result, as they finish."""
        ray = require("ray", "ray")
        started = not ray.is_initialized()
        if started:
            _require_answer(self.address)
            ray.init(address=self.address, log_to_driver=False, include_dashboard=False)
        try:
            yield from _as_finished(ray, work, items)
        finally:
            if started:
                ray.shutdown()


def _as_finished(
    ray: ModuleType, work: Callable[[Item], Result], items: Sequence[Item]
) -> Iterator[tuple[Item, Result]]:
    task = ray.remote(num_cpus=1, max_retries=-1)(_on_one_thread)
    shared = ray.put(work)
    pending = {task.remote(shared, item): item for item in items}
    try:
        while pending:
            (done,), _ = ray.wait(list(pending), num_returns=1)
            item = pending.pop(done)
            try:
                result = ray.get(done)
            except ray.exceptions.RayTaskError as error:
                raise error.cause from error  # what the work raised, as the other engines do
            yield item, result
    finally:
        for reference in pending:
            ray.cancel(reference, force=True)


def _on_one_thread(work: Callable[[Item], Result], item: Item) -> Result:
    use_one_thread()
    return work(item)


def _require_answer(address: str | None) -> None:
    """Ray tries for minutes before it says that nobody is there."""
    host, _, port = (address or "").rpartition("/")[2].rpartition(":")
    if not port.isdigit():  # no address, or a word such as "auto" that Ray knows
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except OSError as error:
        raise ConnectionError(f"no Ray cluster answers at {address}: {error}") from error
