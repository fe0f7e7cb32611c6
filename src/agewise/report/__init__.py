"""What people look at, made from records alone: one page, figures for papers, words of numbers."""

from agewise.report.draw.ages import age_distribution, age_heat_map, cell_map
from agewise.report.draw.comparison import (
    class_gains,
    explanation_chart,
    forest,
    gains_by_axis,
    trade_off,
)
from agewise.report.draw.curves import (
    accuracy_curves,
    gain_curve,
    label_distribution,
    over_rounds,
    policy_lines,
)
from agewise.report.draw.idea import chosen_ages, water_filling
from agewise.report.draw.maps import gain_map, loss_map
from agewise.report.figures import draw_figure
from agewise.report.page import write_page
from agewise.report.style import COLUMN_IN, PAGE_IN, new_figure, paper_style, save

__all__ = [
    "COLUMN_IN",
    "PAGE_IN",
    "accuracy_curves",
    "age_distribution",
    "age_heat_map",
    "cell_map",
    "chosen_ages",
    "class_gains",
    "draw_figure",
    "explanation_chart",
    "forest",
    "gain_curve",
    "gain_map",
    "gains_by_axis",
    "label_distribution",
    "loss_map",
    "new_figure",
    "over_rounds",
    "paper_style",
    "policy_lines",
    "save",
    "trade_off",
    "water_filling",
    "write_page",
]
