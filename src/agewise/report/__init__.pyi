from . import claims, explained, verdict
from ._gains import gain_map
from .figures import draw_figure
from .page import write_page
from .pictures import PICTURES, Picture
from .style import COLUMN_IN, PAGE_IN, new_figure, paper_style, save

__all__ = [
    "COLUMN_IN",
    "PAGE_IN",
    "PICTURES",
    "Picture",
    "claims",
    "draw_figure",
    "explained",
    "gain_map",
    "new_figure",
    "paper_style",
    "save",
    "verdict",
    "write_page",
]
