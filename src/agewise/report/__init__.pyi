from ._claims import Claim
from ._gains import explanation_chart, gain_map
from .figures import draw_figure
from .page import write_page
from .pictures import PICTURES, Need, Picture
from .style import COLUMN_IN, PAGE_IN, new_figure, paper_style, save

__all__ = [
    "COLUMN_IN",
    "PAGE_IN",
    "PICTURES",
    "Claim",
    "Need",
    "Picture",
    "draw_figure",
    "explanation_chart",
    "gain_map",
    "new_figure",
    "paper_style",
    "save",
    "write_page",
]
