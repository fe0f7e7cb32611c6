"""What all printed tables share."""

import json
import math
from typing import Any

import typer


def print_json(value: Any) -> None:
    """For machines."""
    typer.echo(json.dumps(value, indent=2, default=str))


def table(title: str) -> Any:
    """An empty table that reads well without colours."""
    from rich import box
    from rich.table import Table

    return Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD,
                 pad_edge=False, padding=(0, 2, 0, 0), collapse_padding=True)  # fmt: skip


def console() -> Any:
    """Where tables are printed."""
    from rich.console import Console

    return Console(highlight=False, markup=False)


def number(value: float | None, form: str) -> str:
    """The number in this form, or a dash if there is none."""
    return "-" if value is None or math.isnan(value) else form.format(value)


def stars(p: float) -> str:
    """How sure a difference is: * p < 0.05, ** p < 0.01, *** p < 0.001."""
    return "*" * sum(p < level for level in (0.05, 0.01, 0.001))
