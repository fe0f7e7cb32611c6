"""A table of numbers and names, and how it is shown: terminal, HTML, Markdown, LaTeX."""

import io
import math
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal, NamedTuple

from agewise.checks import visible
from agewise.statistics import Contrast, Estimate
from agewise.tables._words import NOTHING, contrast_text, estimate_text, relabelled

if TYPE_CHECKING:
    from rich.table import Table as RichTable

#: From how many columns on a terminal is wide; the longest name on one line if it is not.
_WIDE, _NAME_WIDTH = 110, 20
#: The longest line of a cell of numbers where the terminal is not wide.
_NUMBER_WIDTH = 12
#: What LaTeX reads as a command, or does not have in its fonts.
_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": "$<$", ">": "$>$", "±": r"$\pm$", "–": "--", "−": "$-$", "α": r"$\alpha$",
}  # fmt: skip


class PolicyName(NamedTuple):
    """A policy in a table, and its place among the policies."""

    name: str
    place: int


class Line(NamedTuple):
    """One line of a cell; ``kind`` is a class of the page."""

    text: str
    kind: str = ""


Cell = str | float | Estimate | Contrast | PolicyName | Sequence[Line] | None


@dataclass(frozen=True)
class Column:
    """A column: its head, what stands in it, and the form and scale of its numbers.

    A ``setting`` is what a sweep varies: a heading above its rows on a terminal, a column
    elsewhere.
    """

    head: str
    form: str = ""
    scale: float = 1.0
    kind: Literal["number", "words", "policy", "setting"] = "number"

    def lines(self, cell: Cell, *, narrow: int = 0) -> list[Line]:
        """The cell in words: the one place where a number of a table becomes text.

        ``narrow`` is the longest line of numbers if their parts stand below each other, else 0.
        """
        match cell:
            case None:
                return [Line(NOTHING)]
            case str():
                return [Line(cell or NOTHING)]
            case PolicyName():
                return [Line(part) for part in _in_lines(cell.name, narrow=narrow)]
            case Contrast():
                return self._gain_lines(cell, narrow=narrow)
            case Estimate():
                mean = _stacked(estimate_text(cell, self.form, self.scale), narrow=narrow)
                gain = [] if cell.gain is None else self._gain_lines(cell.gain, narrow=narrow)
                return [*map(Line, mean), *gain]
            case float() | int():
                number = cell if self.scale == 1.0 else self.scale * cell
                return [Line(NOTHING if math.isnan(number) else f"{number:{self.form}}")]
        return list(cell)

    def _gain_lines(self, gain: Contrast, *, narrow: int) -> list[Line]:
        if not gain.known:
            return []
        kind = "gain sure" if gain.shown else "gain"
        text = contrast_text(gain, self.scale, int(self.form.strip("+.f") or 1))
        return [Line(text, kind) for text in _stacked(text, narrow=narrow)]


def _stacked(text: str, *, narrow: int) -> list[str]:
    """A number, what stands in brackets behind it and its p-value, below each other if narrow."""
    parts = re.split(r" \(|\)(?:, )?", text) if narrow else [text]
    return [line for part in parts for line in textwrap.wrap(part, narrow or 99)]


def _in_lines(name: str, *, narrow: int) -> list[str]:
    """A name with its parameters below it, a line each, if it is long and the place is narrow."""
    if not narrow or len(name) <= _NAME_WIDTH:
        return [name]
    return name.replace(":", ":\n", 1).replace(",", ",\n").split("\n")


@dataclass(frozen=True)
class Table:
    """Columns and rows under a title, with a note below."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    note: str = ""

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_text(self, width: int = 80) -> str:
        """Plain text of this width, as on a terminal."""
        from rich.console import Console

        console = Console(file=io.StringIO(), width=width, highlight=False, markup=False)
        with console.capture() as capture:
            console.print(self.to_rich(width), crop=False)
        lines = "\n".join(line.rstrip() for line in capture.get().splitlines())
        return "\n".join(filter(None, (self.title_lines(width), lines, visible(self.note))))

    def title_lines(self, width: int) -> str:
        """The title, broken between words."""
        return visible(
            "\n".join(textwrap.wrap(self.title, width, break_on_hyphens=False)), lines=True
        )

    def to_rich(self, width: int) -> "RichTable":
        """For a terminal of this width; nothing in the cells steers it."""
        from rich import box
        from rich.console import Console
        from rich.table import Table as RichTable

        made = RichTable(
            box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), collapse_padding=True
        )
        narrow, shown = (
            _NUMBER_WIDTH if width < _WIDE else 0,
            [c for c in self.columns if c.kind != "setting"],
        )
        for column in shown:
            head = visible(column.head, lines=True)
            if column.kind == "number":
                made.add_column(head, justify="right", no_wrap=True)
            else:
                made.add_column(head, overflow="fold", min_width=_NAME_WIDTH)
        before = ""
        for row in self.rows:
            setting = self._setting(row)
            if setting != before:  # a heading takes less room than columns
                made.add_row(visible(f"{setting}:"))
                before = setting
            cells = (
                "\n".join(line.text for line in column.lines(cell, narrow=narrow))
                for column, cell in zip(self.columns, row, strict=True)
                if column in shown
            )
            made.add_row(*(visible(cell, lines=True) for cell in cells))
        console = Console(width=width, highlight=False, markup=False)
        endless = console.options.update(width=10_000)
        wide = console.measure(made, options=endless).maximum > width
        for each in made.columns:
            text = "\n".join((str(each.header), *map(str, each.cells)))
            if each.no_wrap:
                each.min_width = max(map(len, text.split("\n")))
            elif wide:  # names break between words before a line gets too long
                each.min_width = max(map(len, text.split()), default=0)
        needed = console.measure(made, options=endless).minimum
        made.width = needed if needed > width else None  # numbers are never cut off
        return made

    def to_markdown(self) -> str:
        """As Markdown, without title and note."""
        ends = ("---:|" if column.kind == "number" else "---|" for column in self.columns)
        heads = [column.head.replace("\n", " ") for column in self.columns]
        lines = [f"| {' | '.join(map(_markdown, heads))} |", f"|{''.join(ends)}"]
        for row in self._texts():
            cells = ("<br>".join(_markdown(line.text) for line in cell) for cell in row)
            lines.append(f"| {' | '.join(cells)} |")
        return "\n".join(lines) + "\n"

    def to_latex(self, labels: Mapping[str, str] | None = None) -> str:
        """For a paper, with the package booktabs; a gain, its interval and p below each other.

        ``labels`` stand in the place of policies' names.
        """

        def words(text: str) -> str:
            text = latex_text(relabelled(text, labels or {}).replace("alpha=", "α="))
            return re.sub(r"\bp(?=-values| = | \$<\$ )", "$p$", text)

        def number(text: str) -> str:
            return words(re.sub(r"(?<!\w)-(?=\d)", "−", text))

        ends = "".join("r" if column.kind == "number" else "l" for column in self.columns)
        heads = [list(map(words, column.head.split("\n"))) for column in self.columns]
        most = max(map(len, heads))
        heads = [(most - len(head)) * [""] + head for head in heads]  # they end in one line
        forms = [number if column.kind == "number" else words for column in self.columns]
        body = [
            [[form(line.text) for line in cell] for form, cell in zip(forms, row, strict=True)]
            for row in self._texts(narrow=99)
        ]
        return "\n".join(
            [
                r"\begin{table}",
                r"\centering",
                rf"\caption{{{words(' '.join(filter(None, (self.title + '.', self.note))))}}}",
                rf"\begin{{tabular}}{{{ends}}}",
                r"\toprule",
                *_latex_lines(heads),
                r"\midrule",
                *(line for row in body for line in _latex_lines(row)),
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{table}",
                "",
            ]
        )

    def to_html(self, mark: Callable[[int], str] | None = None) -> str:
        """For the page; ``mark`` gives what stands before the policy at a place, as HTML."""
        heads = (escape(column.head).replace("\n", "<br>") for column in self.columns)
        top = "".join(
            f'<th scope="col"{_aligned(column)}>{head}</th>'
            for column, head in zip(self.columns, heads, strict=True)
        )
        body = "".join(f"<tr>{''.join(self._html(row, mark))}</tr>" for row in self.rows)
        note = f'<p class="family"><small>{escape(self.note)}</small></p>' if self.note else ""
        return (
            f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(self.title)}">'
            f"<table><caption>{escape(self.title)}</caption><thead><tr>{top}</tr></thead>"
            f"<tbody>{body}</tbody></table></div>{note}"
        )

    def _html(self, row: Sequence[Cell], mark: Callable[[int], str] | None) -> Iterator[str]:
        for column, cell in zip(self.columns, row, strict=True):
            inside = "<br>".join(
                f'<span class="{kind}">{_unbroken(escape(text))}</span>' if kind else escape(text)
                for text, kind in column.lines(cell)
            )
            match cell:
                case PolicyName():
                    before = mark(cell.place) if mark is not None else ""
                    yield f'<th scope="row">{before}{inside}</th>'
                case _:
                    yield f"<td{_aligned(column)}>{inside}</td>"

    def _texts(self, *, narrow: int = 0) -> Iterator[list[list[Line]]]:
        """The lines of every cell; those of numbers may be narrow."""
        for row in self.rows:
            yield [
                column.lines(cell, narrow=narrow if column.kind == "number" else 0)
                for column, cell in zip(self.columns, row, strict=True)
            ]

    def _setting(self, row: Sequence[Cell]) -> str:
        found = (
            f"{column.head}={column.lines(cell)[0].text}"
            for column, cell in zip(self.columns, row, strict=True)
            if column.kind == "setting" and cell is not None
        )
        return ", ".join(found)


def _unbroken(text: str) -> str:
    """A gain, whose p-value may stand below it but in one piece."""
    return re.sub(r"p (=|&lt;) \S+$", r'<span class="name">\g<0></span>', text)


def _aligned(column: Column) -> str:
    return ' class="words"' if column.kind == "words" else ""


def _latex_lines(row: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of a row, each of which has one of every cell."""
    for cells in zip_longest(*row, fillvalue=""):
        yield rf"{' & '.join(cells)} \\"


def _markdown(text: str) -> str:
    return text.replace("|", r"\|")


def latex_text(text: str) -> str:
    r"""Text with what LaTeX would read as commands escaped.

    >>> print(latex_text(r"50% of \input{x}, 1 ± 2"))
    50\% of \textbackslash{}input\{x\}, 1 $\pm$ 2
    """
    escaped = re.sub(
        "|".join(map(re.escape, _LATEX)), lambda found: _LATEX[found[0]], visible(text)
    )
    # Behind the end of a row these would be an option of it.
    return f"{{}}{escaped}" if escaped.startswith(("[", "*")) else escaped
