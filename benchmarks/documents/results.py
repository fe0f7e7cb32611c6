"""Put docs/results.md together from the folders of the studies: ``make study NAME=results``."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from agewise import Result, gap, reproduce, reproduce_map
from agewise.experiment import as_columns
from agewise.files import write_whole
from agewise.report.amounts import point_text
from agewise.report.claims import claims_note
from agewise.report.text import (
    STARS_NOTE,
    last_part,
    p_text,
    points_text,
    short_names,
    squares_text,
    stars,
    table_family,
    value_text,
    with_interval,
)
from agewise.studies import Explanation, Gap, MapResult, Reproduction

_TOP = """\
# Results

Put together by `make study NAME=results` from the folders of the studies; no number here \
is written by hand. \
They are measured on the presets, which were fixed beforehand for the reasons in \
[scenarios](scenarios.md).
"""
#: Columns of the first table, with those of the table of a result.
_SERVICE = {
    "UEs a round": "ues_per_round",
    "distinct UEs": "distinct_ues",
    "mean age": "age_mean",
    "mean peak age": "age_mean_peak",
    "largest age": "age_largest",
    "diversity": "diversity",
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


def write_document(path: Path, text: str) -> Path:
    """Write a document, or a part of one, whole."""
    with write_whole(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


def claims_markdown(study: Reproduction) -> str:
    """The table of the reproduction and the paper's claims."""
    result, rows, axis = study.result, study.table().to_dicts(), study.axis
    names = {str(policy): name for policy, name in short_names(result.policies).items()}
    points = [name.removeprefix("accuracy@") for name in rows[0] if name.startswith("accuracy@")]
    lines = [
        [
            names[row["policy"]],
            *("-" if row[column] is None else f"{row[column]:.2f}" for column in _SERVICE.values()),
            *(_accuracy(row, point) for point in points),
        ]
        for row in rows
    ]
    heads = ["policy", *_SERVICE, *(point_text(point, axis) for point in points)]
    claims = [
        f"{number}. **{claim.claim}: {claim.verdict}.** {claim.evidence}."
        for number, claim in enumerate(study.claims, start=1)
    ]
    text = (
        f"{len(result.seeds)} seeds, {result.scenario.run.rounds} rounds; accuracies in percent "
        "with 95% intervals, below them the gains over the baseline.\n"
    )
    family = table_family(rows, names[str(result.baseline)], swept=False, over=axis.name)
    parts = ["## The figure\n", text, markdown_table(heads, lines), f"{family}\n", *claims]
    return "\n".join([*parts, f"\n{claims_note(axis)}\n"])


def _accuracy(row: dict[str, Any], point: str) -> str:
    """The accuracy with its interval, and the gain over the baseline with its p-value."""
    values = {"at": row[f"accuracy@{point}"]}
    values |= {"at_low": row[f"low@{point}"], "at_high": row[f"high@{point}"]}
    gain = row[f"gain@{point}"]
    if gain is None:
        return with_interval(values, "at")
    said = ", ".join(filter(None, (points_text(gain), p_text(row[f"p@{point}"]))))
    return f"{with_interval(values, 'at')}<br>{said}"


def explanation_markdown(made: Explanation) -> str:
    """What both policies hear on the same models."""
    rows = []
    for row in made.table.to_dicts():
        means = [
            f"{(row[f'{policy}@age_based'] + row[f'{policy}@max_pack']) / 2:.2f}"
            for policy in ("age_based", "max_pack")
        ]
        number = with_interval(row, "difference", ".2f", 1)
        difference = ", ".join(filter(None, (number, p_text(row["difference_p"]))))
        rows.append([row["label"], *means, difference])
    heads = ["measure", "age-based", "max-pack", "difference"]
    text = "What both policies hear, compared on the same models ([how](explanation.md)).\n"
    parts = ["## What explains the gain\n", text, markdown_table(heads, rows)]
    return "\n".join([*parts, " ".join(made.sentences) + "\n"])


def map_markdown(study: MapResult) -> str:
    """The map, a table for each alpha."""
    counted = squares_text("age-based", study.counts(), "squares", study.pairs)
    text = (
        f"What age-based scheduling gains over max-pack in accuracy ({study.measured}, "
        f"percentage points, {study.pairs} seeds), by rate threshold, data of a UE and alpha: "
        f"{counted}. {study.family} {STARS_NOTE}.\n"
    )
    parts = ["## The map\n", text]
    for layer, alpha in enumerate(study.alphas):
        heads = [f"alpha = {alpha:g}", *(f"{rate:g} bit" for rate in study.thresholds)]
        rows = []
        for row, likeness in enumerate(study.likeness):
            squares = zip(study.gains[layer, row], study.p_values[layer, row], strict=True)
            rows.append([likeness, *(points_text(gain) + stars(p) for gain, p in squares)])
        parts.append(markdown_table(heads, rows))
    return "\n".join(parts)


def gap_markdown(study: Gap) -> str:
    """The losses against the optimum: a row per regime, a column per policy."""
    result = study.result
    rows, count = study.table.to_dicts(), len(result.policies)  # regime by regime, all policies
    lines = []
    for i, variation in enumerate(result.variations):
        shown = rows[i * count : (i + 1) * count]
        regime = [value_text(value) for value in as_columns(variation).values()]
        lines.append(regime + [with_interval(row, "loss_per_round", ".2f") for row in shown])
    heads = [*map(last_part, result.variations[0]), *short_names(result.policies).values()]
    unproven, rounds = (int(study.table[name].sum()) for name in ("unproven", "rounds"))
    text = (
        "What a round loses of the largest sum of f(age) that its ages and gains allow, in "
        f"percent with 95% intervals over {len(result.seeds)} seeds; the optimum is proven in "
        f"{rounds - unproven:,} of {rounds:,} rounds.\n"
    )
    return "\n".join(["## Against the optimum\n", text, markdown_table(heads, lines, words=0)])


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
