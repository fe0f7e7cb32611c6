"""What people look at: figures for papers. Plot functions draw numbers and compute none."""

from agewise.report.curves import accuracy_curves, gain_curve
from agewise.report.labels import label_distribution
from agewise.report.map import gain_map
from agewise.report.style import paper_style, save

__all__ = ["accuracy_curves", "gain_curve", "gain_map", "label_distribution", "paper_style", "save"]
