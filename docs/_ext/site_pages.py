"""The site's own extension: cells run, and generated blocks are filled, when a page is read."""

import re

from cells import CELL, CellError, with_output
from docutils import nodes
from reference import generated
from sphinx.application import Sphinx
from sphinx.util import logging

_GENERATED = re.compile(r"^```\{generated\} (\w+)\n```$", re.MULTILINE)
#: Files above this folder, and the pages that include them.
_PAGES = {"](../SECURITY.md)": "](security.md)", "](../CHANGELOG.md)": "](changes.md)"}
_logger = logging.getLogger(__name__)


def _complete(_app: Sphinx, name: str, source: list[str]) -> None:
    """Put output and generated parts into the text of a page."""
    for outside, page in _PAGES.items():
        source[0] = source[0].replace(outside, page)
    source[0] = _GENERATED.sub(lambda found: generated(found[1]), source[0])
    if CELL.search(source[0]):
        try:
            source[0] = with_output(source[0], name)
        except CellError as error:
            _logger.warning("%s", error, location=name)


def _without_empty_bases(_app: Sphinx, document: nodes.document) -> None:
    """Take out the line of each class which says only that it is an object."""
    for line in list(document.findall(nodes.paragraph)):
        if line.astext() == "Bases: object":
            line.parent.remove(line)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("source-read", _complete)
    app.connect("doctree-read", _without_empty_bases)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
