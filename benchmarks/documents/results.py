"""Put docs/results.md together from the folders of the studies: ``make study NAME=results``."""

from collections.abc import Callable
from pathlib import Path

from agewise import Result, gap, reproduce, reproduce_map
from agewise.files import atomic_write
from agewise.report import claims_note
from agewise.studies import Gap, MapReproduction, Reproduction
from agewise.tables import Cell, Column, Explanation, Table
from agewise.tables._words import STARS_NOTE, counted, last_part, value_text

_TOP = """\
# Results

Put together by `make study NAME=results` from the folders of the studies; no number here \
is written by hand. \
They are measured on the presets, which were fixed beforehand for the reasons in \
[scenarios](scenarios.md).
"""


def write_document(path: Path, text: str) -> Path:
    """Write a document, or a part of one, whole."""
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


def claims_markdown(study: Reproduction) -> str:
    """The tables of the reproduction and the paper's claims."""
    result, table = study.result, study.table()
    text = (
        f"{counted(len(result.seeds), 'seed')}, {counted(result.scenario.run.rounds, 'round')}; "
        "accuracies in percent with 95% intervals, below them the gains over the baseline.\n"
    )
    claims = [
        f"{number}. **{claim.claim}: {claim.verdict}.** {claim.evidence}."
        for number, claim in enumerate(study.claims, start=1)
    ]
    parts = ["## The figure\n", text, table.to_markdown(), f"{table.family}\n", *claims]
    return "\n".join([*parts, f"\n{claims_note(study.axis)}\n"])


def explanation_markdown(made: Explanation) -> str:
    """The steps from max-pack to age-based."""
    table = made.table()
    text = f"{table.title} ([how](explanation.md)).\n"
    parts = ["## What the gain is made of\n", text, table.to_markdown(), table.note, ""]
    return "\n".join([*parts, " ".join(made.sentences), ""])


def map_markdown(study: MapReproduction) -> str:
    """The map, a table for each alpha."""
    squares = study.map
    text = (
        f"What age-based scheduling gains over max-pack in accuracy {squares.where} ("
        f"percentage points, {counted(len(study.result.seeds), 'seed')}), by rate threshold, data "
        f"of a UE and alpha: {squares.summary('age-based', 'squares')}. {squares.family} "
        f"{STARS_NOTE}.\n"
    )
    parts = ["## The map\n", text]
    for layer, policy in enumerate(squares.policies):
        parts += [f"{policy}:\n", squares.table(layer).to_markdown()]
    return "\n".join(parts)


def gap_markdown(study: Gap) -> str:
    """The losses against the optimum: a row per regime, a column per policy."""
    table, count = study.table, len(study.table.policies)  # regime by regime, all policies
    lines: list[list[Cell]] = []
    for i, variation in enumerate(table.variations):
        shown = table.rows[i * count : (i + 1) * count]
        regime = [value_text(value) for value in variation.values()]
        lines.append([*regime, *(row.loss_per_round for row in shown)])
    heads = [*map(last_part, table.varied), *map(str, table.policies)]
    columns = [Column(head, ".2f", 100.0) for head in heads]
    text = (
        "What a round loses of the largest sum of f(age) that its ages and gains allow, in "
        f"percent with 95% intervals over {counted(len(study.result.seeds), 'seed')}. "
        f"{table.proven}\n"
    )
    return "\n".join(["## Against the optimum\n", text, Table("", columns, lines).to_markdown()])


def _reproduction(folder: Path) -> str:
    result = Result.open(folder)
    study = reproduce(result.scenario, result.seeds, folder, explain=True)
    assert study.explanation is not None
    return f"{claims_markdown(study)}\n{explanation_markdown(study.explanation)}"


def _map(folder: Path) -> str:
    result = Result.open(folder)
    return map_markdown(reproduce_map(result.scenario, result.seeds, folder))


def _gap(folder: Path) -> str:
    return gap_markdown(gap(seeds=Result.open(folder).seeds, out=folder))


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


#: The parts of the document: what a study leaves, the command that makes it, and how it is told.
#: Folders that are finished are read and not run again.
PARTS: dict[str, tuple[str, Callable[[Path], str]]] = {
    "reproduce-paper": ("make reproduce", _reproduction),
    "map-paper": ("agewise reproduce --map", _map),
    "gap-paper": ("agewise gap", _gap),
    "radio-paper/radio.md": ("make study NAME=radio", _text),
    "paces.md": ("make study NAME=paces", _text),
    "benchmark/headline.md": ("make study NAME=benchmark", _text),
    "neural-mlp-mnist/neural.md": ("make study NAME=neural", _text),
    "neural-lenet-fashion/neural.md": (
        ".venv-flower/bin/python -m benchmarks.documents.neural lenet-fashion 6",
        _text,
    ),
}


def write_results(runs: Path, path: Path) -> Path:
    """Put the parts in the folder of runs together; ``ValueError`` if one is missing."""
    for name, (command, _) in PARTS.items():
        if not (runs / name).exists():
            raise ValueError(f"{runs / name} is not there: run {command!r} first")
    texts = [told(runs / name) for name, (_, told) in PARTS.items()]
    return write_document(path, "\n".join([_TOP, *texts]))


if __name__ == "__main__":
    try:
        print(f"Page: {write_results(Path('runs'), Path('docs/results.md'))}")
    except ValueError as error:
        raise SystemExit(str(error)) from None
