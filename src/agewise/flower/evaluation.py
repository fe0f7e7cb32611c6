"""Evaluation before the first and after every round, by clients and by the server."""

from collections.abc import Callable
from dataclasses import dataclass
from logging import INFO

from agewise.flower.api import ArrayRecord, ConfigRecord, MetricRecord, Result, Strategy, log
from agewise.flower.grid import PromptGrid

Evaluate = Callable[[int, ArrayRecord], MetricRecord | None]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """How models are evaluated: as the strategy asks clients, and by a function of the server."""

    strategy: Strategy
    grid: PromptGrid
    timeout_s: float
    config: ConfigRecord
    function: Evaluate | None

    def before(self, arrays: ArrayRecord, result: Result) -> None:
        """The initial model, by the server."""
        found = self.function(0, arrays) if self.function else None
        if found is not None:
            log(INFO, "Initial global evaluation results: %s", found)
            result.evaluate_metrics_serverapp[0] = found

    def after(self, server_round: int, arrays: ArrayRecord, result: Result) -> list[MetricRecord]:
        """The metrics after a round, those of the server first."""
        asked = self.strategy.configure_evaluate(server_round, arrays, self.config, self.grid)
        replies = self.grid.send_and_receive(list(asked), timeout=self.timeout_s)
        by_clients = self.strategy.aggregate_evaluate(server_round, replies)
        if by_clients is not None:
            log(INFO, "\t└──> Aggregated MetricRecord: %s", by_clients)
            result.evaluate_metrics_clientapp[server_round] = by_clients
        by_server = self.function(server_round, arrays) if self.function else None
        if by_server is not None:
            log(INFO, "\t└──> Global evaluation: %s", by_server)
            result.evaluate_metrics_serverapp[server_round] = by_server
        return [found for found in (by_server, by_clients) if found is not None]


def first_number(name: str, records: list[MetricRecord]) -> float | None:
    """The number of this name in the first of the records that has it."""
    return next((float(record[name]) for record in records if name in record), None)
