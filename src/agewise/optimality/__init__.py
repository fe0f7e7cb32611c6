"""How far schedules are from the optimum of problem (3)."""

from agewise.optimality.gaps import Gap, gap
from agewise.optimality.losses import Losses, losses_of, losses_of_run

__all__ = ["Gap", "Losses", "gap", "losses_of", "losses_of_run"]
