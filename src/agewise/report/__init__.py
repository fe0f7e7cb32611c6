"""What people look at: figures for papers and the page. Plot functions compute nothing."""

from agewise.report.curves import accuracy_curves, gain_curve
from agewise.report.figures import draw_figure
from agewise.report.labels import label_distribution
from agewise.report.map import gain_map, loss_map
from agewise.report.page import write_page
from agewise.report.style import paper_style, save

__all__ = [
    "accuracy_curves",
    "draw_figure",
    "gain_curve",
    "gain_map",
    "label_distribution",
    "loss_map",
    "paper_style",
    "save",
    "write_page",
]
