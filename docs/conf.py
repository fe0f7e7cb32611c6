"""How the documentation site is built: ``make docs``, offline, with warnings as errors."""

import logging
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import stand_ins

from agewise.version import __version__

stand_ins.install()
logging.getLogger("fontTools").setLevel(logging.WARNING)  # a word for every table of every font

project = "Agewise"
copyright = "the Agewise developers"  # noqa: A001 (Sphinx's name)
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "site_pages"]
exclude_patterns = ["_build", "_ext"]
html_theme = "furo"
html_title = f"Agewise {__version__}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False

html_math_renderer = "mathml"

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4

# Everything in __all__, in the order of the source.
autodoc_default_options = {"members": True, "member-order": "bysource", "show-inheritance": True}
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
default_role = "py:obj"
python_use_unqualified_type_names = True
# A name that several rooms hand on, such as Scenario, has a place in each of them.
suppress_warnings = ["ref.python"]
