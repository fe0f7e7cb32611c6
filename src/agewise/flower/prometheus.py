"""Metrics of the rounds for Prometheus; Flower is not needed here."""

from collections import Counter
from collections.abc import Callable

from agewise.dependencies import require
from agewise.flower.record import LiveRound

#: Names of gauges, what they are, and their values after a round.
_GAUGES: tuple[tuple[str, str, Callable[[LiveRound], float]], ...] = (
    ("round", "Number of the last round, from 1", lambda done: done.number),
    ("accuracy", "Accuracy after the last round", lambda done: done.accuracy),
    ("loss", "Loss after the last round", lambda done: done.loss),
    ("round_seconds", "Seconds of the last round, without evaluation", lambda done: done.seconds),
    ("known_clients", "Clients that are known and not forgotten", lambda done: done.ages.size),
    (
        "mean_age_rounds", "Mean rounds since the last update, over the known clients",
        lambda done: done.ages.mean(),
    ),
)  # fmt: skip


class PrometheusMetrics:
    """A hook that serves what the rounds brought at ``http://address:port/metrics``.

    It listens on the loopback address, for the metrics name no client but are nobody else's.
    """

    def __init__(self, port: int = 9464, address: str = "127.0.0.1") -> None:
        client = require("prometheus_client", "prometheus")
        registry = client.CollectorRegistry()
        self._gauges = [
            (client.Gauge(f"agewise_{name}", said, registry=registry), value_after)
            for name, said, value_after in _GAUGES
        ]
        said = "Clients that were asked, by what became of it"
        self._asked = client.Counter("agewise_asked", said, ["outcome"], registry=registry)
        try:
            self.server, _ = client.start_http_server(port, address, registry)
        except (OSError, OverflowError) as error:
            raise ValueError(
                f"metrics cannot be served on port {port} of {address} ({error}): give another "
                "port or address; port=0 is any port that is free"
            ) from error

    def __call__(self, done: LiveRound) -> None:
        """Take in a round."""
        for gauge, value_after in self._gauges:
            gauge.set(value_after(done))
        for outcome, count in Counter(done.outcomes.values()).items():
            self._asked.labels(outcome).inc(count)
