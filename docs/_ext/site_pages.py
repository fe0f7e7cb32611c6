"""The site's own extension: cells run, generated blocks are filled, formulas become MathML."""

import re

from cells import CELL, CellError, notebook, with_output
from docutils import nodes
from gallery import gallery
from latex2mathml.converter import convert
from reference import generated
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

_GENERATED = re.compile(r"^```\{generated\} (\w+)\n```$", re.MULTILINE)
#: Files above this folder, and the pages that include them.
_PAGES = {
    "](../SECURITY.md)": "](security.md)",
    "](../CHANGELOG.md)": "](changes.md)",
    "](../CONTRIBUTING.md)": "](contributing.md)",
}
_NOTEBOOKS = "_notebooks"
_logger = logging.getLogger(__name__)


def _complete(app: Sphinx, name: str, source: list[str]) -> None:
    """Put output and generated parts into the text of a page, and write its notebook."""
    for outside, page in _PAGES.items():
        source[0] = source[0].replace(outside, page)
    source[0] = _GENERATED.sub(
        lambda found: gallery() if found[1] == "gallery" else generated(found[1]), source[0]
    )
    if CELL.search(source[0]):
        file = app.outdir / _NOTEBOOKS / f"{name.rpartition('/')[2]}.ipynb"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(notebook(source[0]), encoding="utf-8")
        link = f"{'../' * name.count('/')}{_NOTEBOOKS}/{file.name}"
        try:
            source[0] = with_output(source[0], name)
        except CellError as error:
            _logger.warning("%s", error, location=name)
        source[0] += (
            f"\n\n```{{raw}} html\n"
            f'<p class="notebook"><a href="{link}" download>This page as a notebook</a></p>\n```\n'
        )


def _visit_math(self: HTML5Translator, node: nodes.Element) -> None:
    """Write a formula as MathML, which browsers show without a script."""
    block, text = isinstance(node, nodes.math_block), node.astext()
    if block:  # what is minimised over stands below
        text = re.sub(r"\\(min|max)_", r"\\\1\\limits_", text)
    try:
        formula = convert(text, display="block" if block else "inline")
    except Exception as error:
        raise ExtensionError(f"{node.source}: no MathML for {node.astext()}") from error
    self.body.append(f'<div class="formula">{formula}</div>' if block else formula)
    raise nodes.SkipNode


def _without_empty_bases(_app: Sphinx, document: nodes.document) -> None:
    """Take out the line of each class which says only that it is an object."""
    for line in list(document.findall(nodes.paragraph)):
        if line.astext() == "Bases: object":
            line.parent.remove(line)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (_visit_math, None), (_visit_math, None))
    app.connect("source-read", _complete)
    app.connect("doctree-read", _without_empty_bases)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
