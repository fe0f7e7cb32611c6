from ._claims import Claim
from ._gains import gain_map
from .figures import draw_figure
from .page import write_page
from .pictures import PICTURES, Picture
from .style import COLUMN_IN, PAGE_IN, new_figure, paper_style, save

__all__ = [
    "COLUMN_IN",
    "PAGE_IN",
    "PICTURES",
    "Claim",
    "Picture",
    "draw_figure",
    "gain_map",
    "new_figure",
    "paper_style",
    "save",
    "write_page",
]
