"""What people look at: figures for papers."""

from agewise.report.labels import label_distribution

__all__ = ["label_distribution"]
