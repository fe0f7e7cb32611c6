"""Parts of a channel that do not go together, each told in one sentence."""

from agewise.scenario.channel import EdgeSnr, LinkBudget, ModelledChannel
from agewise.scenario.geometry import Annulus, MobilityFile, NoMobility, RandomWaypoint
from agewise.scenario.propagation import (
    CellInterference,
    LogNormalShadowing,
    PowerLaw,
    StandardPathLoss,
)

#: A UE that would cross the cell more often in a round is a mistake in the units.
_MOST_CROSSINGS = 1000.0
#: Straight ways around the middle of a thinner ring would hardly be found.
_THINNEST = 0.99


def require_consistent(channel: ModelledChannel) -> None:
    """``ValueError`` if the parts of a channel do not go together."""
    _require_scale(channel)
    _require_range(channel)
    _require_shadowing(channel)
    _require_movement(channel)


def _require_scale(channel: ModelledChannel) -> None:
    loss = channel.path_loss
    if isinstance(channel.link, LinkBudget) and isinstance(loss, PowerLaw):
        raise ValueError(
            "channel.link: a budget needs a path loss with a scale, and power-law has only "
            'a shape: set channel.path_loss to kind = "log-distance" with reference_loss_db'
        )
    if isinstance(channel.link, EdgeSnr) and isinstance(loss, StandardPathLoss):
        raise ValueError(
            f"channel.link: {loss.kind} gives path loss in physical units, which an SNR at the "
            'edge would override: set channel.link to kind = "budget"'
        )


def _require_range(channel: ModelledChannel) -> None:
    loss = channel.path_loss
    if not isinstance(loss, StandardPathLoss):
        return
    most_m = loss.most_distance_m
    if channel.placement.reach_m > most_m:
        raise ValueError(
            f"channel.placement: UEs are up to {channel.placement.reach_m:g} m away, and "
            f"{loss.kind} holds to {most_m:g} m: make it smaller by a factor of "
            f"{channel.placement.reach_m / most_m:.4g}"
        )
    neighbours = channel.interference
    if isinstance(neighbours, CellInterference) and neighbours.reach_m > most_m:
        largest = most_m / (neighbours.reach_m / neighbours.inter_site_distance_m)
        raise ValueError(
            f"channel.interference.inter_site_distance_m = {neighbours.inter_site_distance_m:g}: "
            f"must be from 0.001 to {largest:.5g} with tiers = {neighbours.tiers}, because "
            f"{loss.kind} holds to {most_m:g} m; the nearest is {largest:.5g}"
        )


def _require_shadowing(channel: ModelledChannel) -> None:
    shadowing = channel.shadowing
    if not isinstance(shadowing, LogNormalShadowing):
        return
    if isinstance(channel.path_loss, StandardPathLoss):
        return
    for name in ("sigma_db", "decorrelation_m"):
        if getattr(shadowing, name) is None:
            raise ValueError(
                f"channel.shadowing.{name} is missing: {channel.path_loss.kind} has none of its "
                "own, as uma, umi, inh and inf do"
            )


def _require_movement(channel: ModelledChannel) -> None:
    mobility, placement = channel.mobility, channel.placement
    if isinstance(mobility, NoMobility):
        return
    if channel.round_s is None:
        raise ValueError(
            f"channel.round_s is missing: with mobility.kind = {mobility.kind} it says how far UEs "
            "move from round to round"
        )
    if isinstance(mobility, MobilityFile):
        return
    most_s = _MOST_CROSSINGS * placement.reach_m / max(mobility.top_speed_m_s, 1e-3)
    if channel.round_s > most_s:
        raise ValueError(
            f"channel.round_s = {channel.round_s:g}: must be from 1e-06 to {most_s:g} at "
            f"{mobility.top_speed_m_s:g} m/s, or UEs cross the cell {_MOST_CROSSINGS:g} times in a "
            "round"
        )
    if isinstance(mobility, RandomWaypoint) and isinstance(placement, Annulus):
        most_m = _THINNEST * placement.radius_m
        if placement.least_distance_m > most_m:
            raise ValueError(
                f"channel.placement.least_distance_m = {placement.least_distance_m:g}: must be "
                f"from 0 to {most_m:g} with mobility.kind = random-waypoint, which needs room to "
                "walk around the access point"
            )
