"""Markdown made of results: each study writes its part, and docs/results.md is put together."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from agewise.files import write_whole

_TOP = """\
# Results

Put together by `make results` from what the studies wrote into their folders; no number here is \
written by hand. They are measured on the presets, which were fixed beforehand for the reasons in \
[scenarios](scenarios.md).
"""
#: The parts of the document: the file that a study writes, and the command that makes it.
PARTS: dict[str, str] = {
    "reproduce-paper/claims.md": "agewise reproduce",
    "reproduce-paper/explanation.md": "agewise reproduce --explain",
    "map-paper/map.md": "agewise reproduce --map",
    "gap-paper/gap.md": "agewise gap",
    "radio-paper/radio.md": "make radio",
    "benchmark/headline.md": "agewise benchmark",
    "neural-mlp-mnist/neural.md": "make neural",
    "neural-lenet-fashion/neural.md": "make neural NEURAL=lenet-fashion NEURAL_SEEDS=6",
}


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1) -> str:
    """A table whose first ``words`` columns are words and whose others are numbers.

    >>> print(markdown_table(["policy", "age"], [["random", "7.5"]]), end="")
    | policy | age |
    |---|---:|
    | random | 7.5 |
    """
    lines = ["| " + " | ".join(heads) + " |"]
    lines.append("|" + "---|" * words + "---:|" * (len(heads) - words))
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def write_part(folder: Path, name: str, text: str) -> Path:
    """Write the part of a study into its folder."""
    return _write(folder / name, text)


def write_results(runs: Path | str, path: Path | str, parts: Mapping[str, str] = PARTS) -> Path:
    """Put the parts in the folder of runs together; ``ValueError`` if one is missing."""
    for name, command in parts.items():
        if not (Path(runs) / name).is_file():
            raise ValueError(f"{Path(runs) / name} is not there: run {command!r} first")
    texts = [(Path(runs) / name).read_text(encoding="utf-8") for name in parts]
    return _write(Path(path), "\n".join([_TOP, *texts]))


def _write(path: Path, text: str) -> Path:
    with write_whole(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path
