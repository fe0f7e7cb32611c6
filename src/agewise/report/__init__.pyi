from ._claims import Claim, claims_note, claims_of
from ._gains import gain_map
from ._style import COLUMN_IN, PAGE_IN, new_figure, paper_style, save
from ._verdict import failed_runs, verdict
from .figures import draw_figure
from .page import write_page
from .pictures import PICTURES, Picture

__all__ = [
    "COLUMN_IN",
    "PAGE_IN",
    "PICTURES",
    "Claim",
    "Picture",
    "claims_note",
    "claims_of",
    "draw_figure",
    "failed_runs",
    "gain_map",
    "new_figure",
    "paper_style",
    "save",
    "verdict",
    "write_page",
]
