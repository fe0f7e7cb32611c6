"""The optimum of problem (3), with the proof that nothing is better."""

from agewise.spectrum.exact.solve import Optimum, solve

__all__ = ["Optimum", "solve"]
