"""The paper's figure and its claims, measured."""

from agewise.reproduction.claims import Claim, judge
from agewise.reproduction.map import MapResult, reproduce_map
from agewise.reproduction.paper import Reproduction, reproduce

__all__ = ["Claim", "MapResult", "Reproduction", "judge", "reproduce", "reproduce_map"]
