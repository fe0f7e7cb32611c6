"""What a wrapped strategy needs to be told, and what it must not do by itself."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from agewise.flower.api import (
    Bulyan,
    FedAvg,
    FedAvgM,
    FederationError,
    FedOpt,
    FedXgbCyclic,
    Message,
    Strategy,
)

#: Numbers of nodes below which Flower's strategies wait for more.
_LEAST = ("min_train_nodes", "min_evaluate_nodes", "min_available_nodes")


def chain(strategy: Strategy) -> Iterator[Strategy]:
    """The strategy, the one that it wraps, and so on."""
    while isinstance(strategy, Strategy):
        yield strategy
        strategy = getattr(strategy, "strategy", None)


def require_schedulable(strategy: Strategy, subchannels: int) -> None:
    """``ValueError`` if the strategy cannot work with what is chosen on this many subchannels."""
    for each in chain(strategy):
        name, fraction = type(each).__name__, getattr(each, "fraction_train", 1.0)
        if fraction != 1.0:
            raise ValueError(
                f"{name} has fraction_train={fraction:g} and would sample on its own among the "
                "clients that the policy chose: set fraction_train=1.0, and give the links as many "
                "places as should be chosen"
            )
        if isinstance(each, FedXgbCyclic) and subchannels > 1:
            raise ValueError(
                f"{name} trains one client a round and would sample it on its own: give it links "
                f"with one place, Slots(1), not {subchannels}"
            )
        least = 4 * each.num_malicious_nodes + 3 if isinstance(each, Bulyan) else 1
        if subchannels < least:
            raise ValueError(
                f"{name} needs {least} updates a round with "
                f"num_malicious_nodes={each.num_malicious_nodes}, and {subchannels} places bring "
                "fewer: give the links more places"
            )


def least_available(strategy: Strategy) -> int:
    """How many connected nodes the strategy insists on."""
    return max((getattr(each, "min_available_nodes", 1) for each in chain(strategy)), default=1)


def weight_key(strategy: Strategy) -> str:
    """The metric by which the strategy weighs updates: the number of samples."""
    keys = [each.weighted_by_key for each in chain(strategy) if hasattr(each, "weighted_by_key")]
    return keys[0] if keys else "num-examples"


def accountants(strategy: Strategy) -> list[Any]:
    """What keeps account of the privacy that was spent, for each wrapper that has such."""
    found = [getattr(each, "accountant", None) for each in chain(strategy)]
    return [accountant for accountant in found if accountant is not None]


@contextlib.contextmanager
def content_with_one(strategy: Strategy) -> Iterator[None]:
    """The policy decides how many: meanwhile the strategy is content with one node."""
    before = [
        (each, name, getattr(each, name))
        for each in chain(strategy)
        for name in _LEAST
        if getattr(each, name, 0) > 1
    ]
    try:
        for each, name, _ in before:
            setattr(each, name, 1)
        yield
    finally:
        for each, name, value in before:
            setattr(each, name, value)


def require_addressed(
    strategy: Strategy, messages: Iterable[Message], nodes: Sequence[int]
) -> None:
    """`FederationError` unless each of these nodes, and no other, gets one message."""
    addressed = sorted(message.metadata.dst_node_id for message in messages)
    if addressed != sorted(nodes):
        raise FederationError(
            f"{type(strategy).__name__} addresses {len(addressed)} nodes where the policy chose "
            f"{len(nodes)}: a strategy that samples on its own cannot be scheduled"
        )


def averages(strategy: Strategy) -> bool:
    """Whether what the strategy gives back is the weighted average of what it is given."""
    return isinstance(strategy, FedAvg) and type(strategy).aggregate_train is FedAvg.aggregate_train


def require_average(strategy: Strategy, why: str) -> None:
    """``ValueError`` if the strategy looks at single updates, which are combined before it."""
    if not averages(strategy) and not isinstance(strategy, FedOpt | FedAvgM):
        raise ValueError(
            f"{why} combines the updates before {type(strategy).__name__} sees them, which looks "
            "at single updates: give FedAvg, FedProx, FedAvgM, FedAdam, FedYogi or FedAdagrad"
        )
