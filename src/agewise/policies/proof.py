"""No policy is trusted: what it returns is proven against the round that it was asked about."""

from typing import Any

from agewise.spectrum import Allocation, InfeasibleAllocation, Uplink


def prove(allocation: Any, uplink: Uplink, who: str) -> None:
    """Raise `InfeasibleAllocation`, beginning with ``who``, unless every constraint is kept."""
    if not isinstance(allocation, Allocation):
        raise InfeasibleAllocation(f"{who}: returned {allocation!r} instead of an Allocation")
    try:
        allocation.validate(uplink)
    except InfeasibleAllocation as error:
        raise InfeasibleAllocation(f"{who}: {error}") from error
