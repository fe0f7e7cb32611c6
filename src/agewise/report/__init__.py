"""What people look at, made from records alone: one page, figures for papers, words of numbers."""

from agewise.report.figures import (
    COLUMN_IN,
    PAGE_IN,
    accuracy_curves,
    draw_figure,
    explanation_chart,
    gain_curve,
    gain_map,
    label_distribution,
    loss_map,
    paper_style,
    save,
)
from agewise.report.page import write_page

__all__ = [
    "COLUMN_IN",
    "PAGE_IN",
    "accuracy_curves",
    "draw_figure",
    "explanation_chart",
    "gain_curve",
    "gain_map",
    "label_distribution",
    "loss_map",
    "paper_style",
    "save",
    "write_page",
]
