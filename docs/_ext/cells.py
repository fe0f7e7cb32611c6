"""Code cells of text notebooks: they run when the site is built and are shown with their output.

A tutorial is a MyST Markdown notebook, which Jupyter opens through jupytext. Its cells run one
after the other in one namespace and in an empty folder of their own. Besides Python, a cell may
hold what a notebook has for the shell: lines that begin with ``!`` (a backslash at the end goes on
in the next line), or ``%%writefile NAME``.
"""

import ast
import base64
import contextlib
import html
import io
import itertools
import json
import linecache
import os
import re
import shlex
import subprocess
import sys
import tempfile
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import polars as pl
from matplotlib.figure import Figure

CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: Tables of the command line are this wide.
_COLUMNS = "80"
#: Tables of Polars name whole policies and leave out types, which readers do not look for here.
_TABLES = {
    "fmt_str_lengths": 80,
    "tbl_hide_dataframe_shape": True,
    "tbl_hide_column_data_types": True,
}
_ENDINGS = {".svg": "svg+xml", ".png": "png"}
_numbers = itertools.count()


class CellError(Exception):
    """A cell that did not run: which one, and why."""


@dataclass
class Shown:
    """What a cell shows: printed text, and tables and pictures as HTML."""

    text: str = ""
    rich: list[str] = field(default_factory=list)

    def markdown(self) -> str:
        """As MyST Markdown, behind the code of the cell."""
        parts = []
        if self.text.strip():
            parts.append(f"```text\n{self.text.rstrip()}\n```\n")
        parts += [f"```{{raw}} html\n{part}\n```\n" for part in self.rich]
        return "\n".join(parts)


def with_output(page: str, name: str) -> str:
    """The text of a page in which every cell is followed by what it showed."""
    outputs = iter(run_cells([found[1] for found in CELL.finditer(page)], name))

    def replaced(found: re.Match[str]) -> str:
        return f"{_block(found[1])}\n\n{next(outputs).markdown()}"

    return CELL.sub(replaced, page)


def _block(code: str) -> str:
    """The code of a cell as a reader would copy it: a file by its name, a command as in a shell."""
    if code.startswith("%%writefile "):
        first, _, text = code.partition("\n")
        name = first.split()[1]
        language = {".py": "python", ".toml": "toml"}.get(Path(name).suffix, "text")
        return f"In the file `{name}`:\n\n```{language}\n{text}```"
    if code.startswith("!"):
        return f"```sh\n{re.sub('^!', '', code, flags=re.MULTILINE)}```"
    return f"```python\n{code}```"


def notebook(page: str) -> str:
    """The page as a Jupyter notebook: its cells, and its text without links and pictures."""
    body, cells, at = page.split("---\n", 2)[2], [], 0
    for found in CELL.finditer(body):
        cells += [_text_cell(body[at : found.start()]), _code_cell(found[1])]
        at = found.end()
    cells.append(_text_cell(body[at:]))
    written = {
        "cells": [cell for cell in cells if cell["source"]],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}
        },
        "nbformat": 4,
        "nbformat_minor": 4,
    }
    return json.dumps(written, ensure_ascii=False, indent=1)


def _text_cell(text: str) -> dict[str, Any]:
    text = re.sub(r"!\[[^\]]*\]\([^):]+\)", "", text)
    text = re.sub(r"\[([^\]]+)\]\([^):]+\)", r"\1", text)
    return {"cell_type": "markdown", "metadata": {}, "source": text.strip()}


def _code_cell(code: str) -> dict[str, Any]:
    return {
        "cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [],
        "source": code.rstrip("\n"),
    }  # fmt: skip


def run_cells(cells: list[str], name: str) -> list[Shown]:
    """What each cell shows; `CellError` for the first that does not run."""
    module = types.ModuleType(f"tutorial_{re.sub(r'[^a-z0-9]', '_', name)}")
    shown = []
    with _own_folder(module):
        for number, code in enumerate(cells, 1):
            try:
                shown.append(_run(code, module))
            except (Exception, SystemExit) as error:
                raise CellError(
                    f"{name}: cell {number} ended with {type(error).__name__}: {error}"
                ) from error
    return shown


def _run(code: str, module: types.ModuleType) -> Shown:
    if code.startswith("%%writefile "):
        first, _, text = code.partition("\n")
        Path(first.split()[1]).write_text(text, encoding="utf-8")
        return Shown()
    if code.startswith("!"):
        lines = code.strip().replace("\\\n", " ").split("\n")
        return Shown("".join(map(_run_command, lines)))
    return _run_python(code, module)


def _run_python(code: str, module: types.ModuleType) -> Shown:
    file = f"<cell {next(_numbers)}>"
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, file, "exec"), vars(module))  # noqa: S102 (pages of this folder)
        value = None
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), file, "eval"), vars(module))  # noqa: S307
    shown = Shown(printed.getvalue())
    _display(value, shown)
    return shown


def _display(value: Any, shown: Shown) -> None:
    """The value of a cell's last line, as a notebook shows it; of a picture's path, the picture."""
    if isinstance(value, Figure):
        buffer = io.BytesIO()
        value.savefig(buffer, format="svg", metadata={"Date": None})
        shown.rich.append(_picture(buffer.getvalue(), "svg+xml", "Figure"))
    elif isinstance(value, Path) and value.suffix in _ENDINGS:
        shown.rich.append(_picture(value.read_bytes(), _ENDINGS[value.suffix], value.stem))
    elif hasattr(value, "_repr_html_"):
        with pl.Config(**_TABLES):
            shown.rich.append(f'<div class="table-wrapper">{value._repr_html_()}</div>')
    elif value is not None:
        shown.text += f"{value!r}\n"


def _picture(content: bytes, kind: str, title: str) -> str:
    data = base64.b64encode(content).decode()
    return f'<img alt="{html.escape(title)}" src="data:image/{kind};base64,{data}">'


def _run_command(line: str) -> str:
    """What one command prints; ``agewise`` runs in this process, where its kernels are loaded."""
    words = shlex.split(line.removeprefix("!"), comments=True)
    if words[0] == "agewise":
        return _run_agewise(words)
    finished = subprocess.run(words, capture_output=True, text=True, check=True)  # noqa: S603
    return finished.stdout


def _run_agewise(words: list[str]) -> str:
    from agewise.cli import main

    printed, errors = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    code: object = 0
    with (
        mock.patch.object(sys, "argv", words),
        mock.patch.dict(os.environ, {"COLUMNS": _COLUMNS, "NO_COLOR": "1"}),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(errors),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code
    if code not in (0, None):
        raise CellError(_text_in(errors).strip() or f"exit code {code}")
    return _text_in(printed)


def _text_in(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


@contextlib.contextmanager
def _own_folder(module: types.ModuleType) -> Iterator[None]:
    """An empty folder to work in, whose modules can be imported and are forgotten afterwards."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        sys.modules[module.__name__] = module
        sys.path.insert(0, folder)
        try:
            yield
        finally:
            sys.path.remove(folder)
            for name in [module.__name__, *(file.stem for file in Path(folder).glob("*.py"))]:
                sys.modules.pop(name, None)
