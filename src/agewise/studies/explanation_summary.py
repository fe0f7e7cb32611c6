"""What the measured explanations of the gain say: a table, two sentences, and a figure."""

import functools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from agewise import statistics
from agewise.report import PAGE_IN, explanation_chart, new_figure, paper_style, save
from agewise.report.text import FEWEST_SEEDS, and_list, is_sure, p_text, points_text, with_interval
from agewise.studies.documents import markdown_table

#: What is measured, by the names of tables; docs/explanation.md defines each.
MEASURES: Final = {
    "diversity": "gradient diversity",
    "bias": "bias of a round",
    "block_bias": "bias of a block",
    "variance": "variance over draws",
    "classes": "classes covered",
    "labels": "distance of labels",
    "heard": "data ever heard",
}
_NAMES: Final = tuple(MEASURES)

Floats = NDArray[np.float64]


class SeedBlocks(NamedTuple):
    """The blocks of one seed.

    ``starts[block]`` are rounds, ``gains[models, block]`` accuracies of age-based less max-pack,
    and ``values[models, block, policy, measure]`` what was measured; models and policies are in
    the order age-based, max-pack.
    """

    starts: NDArray[np.int64]
    gains: Floats
    values: Floats


class Summary(NamedTuple):
    """The fields of `Explanation` that are numbers and words."""

    table: pl.DataFrame
    sentences: list[str]
    gain: statistics.Paired
    seeds: int
    blocks: int
    every: int


def summarise(blocks: Sequence[SeedBlocks], seeds: Sequence[int], every: int) -> Summary:
    """The table and the sentences.

    Differences between the policies are tested over seeds. Slopes are those of the gain of a block
    on the difference, in standard deviations, among the blocks of the same round and models over
    all seeds, each measure alone and all together.
    """
    values = np.array([one.values for one in blocks])  # [seed, models, block, policy, measure]
    gains = np.array([one.gains for one in blocks])
    of_seeds = np.nanmean(values, axis=(1, 2))  # [seed, policy, measure]
    tested = len(seeds) >= FEWEST_SEEDS
    differences = [
        statistics.paired_difference(of_seeds[:, 0, i], of_seeds[:, 1, i])
        for i in range(len(_NAMES))
    ]
    deviations, alone, joint = _slopes(values[..., 0, :] - values[..., 1, :], gains)
    p_values = np.concatenate(
        [[one.p_value for one in differences], alone.p_values, joint.p_values]
    )
    corrected = statistics.holm(p_values if tested else np.full(p_values.size, math.nan))
    p_difference, p_alone, p_joint = corrected.reshape(3, -1)
    means = np.nanmean(values, axis=(0, 2))  # [models, policy, measure]
    rows = [
        {
            "measure": name,
            "label": MEASURES[name],
            "age_based@age_based": means[0, 0, i],
            "max_pack@age_based": means[0, 1, i],
            "age_based@max_pack": means[1, 0, i],
            "max_pack@max_pack": means[1, 1, i],
            "difference": differences[i].difference,
            "difference_low": differences[i].low,
            "difference_high": differences[i].high,
            "difference_p": p_difference[i],
            "deviation": deviations[i],
        }
        | _slope("slope", alone, p_alone, i, tested=tested)
        | _slope("joint", joint, p_joint, i, tested=tested)
        for i, name in enumerate(_NAMES)
    ]
    table = pl.DataFrame(rows, infer_schema_length=None)
    gain = statistics.paired_difference(gains.mean(axis=(1, 2)), np.zeros(len(seeds)))
    tests = int(np.sum(~np.isnan(corrected)))
    counts = _Counts(len(seeds), gains[0].size, every, tests)
    return Summary(table, sentences_of(rows, gain, counts), gain, len(seeds), gains.size, every)


def _slopes(
    differences: Floats, gains: Floats
) -> tuple[Floats, statistics.Slopes, statistics.Slopes]:
    """The deviations of ``differences[seed, models, block, measure]``, slopes alone and jointly.

    A measure that does not vary, or is not known in some block, has none.
    """
    seeds, models, blocks, measures = differences.shape
    causes = differences.reshape(-1, measures)
    of_round = differences - differences.mean(axis=0)
    deviations = np.sqrt((of_round**2).mean(axis=(0, 1, 2)))
    usable = np.flatnonzero(deviations > 1e-9)  # not NaN either
    scaled = causes[:, usable] / deviations[usable]
    group = np.tile(np.arange(models * blocks), seeds)
    cluster = np.repeat(np.arange(seeds), models * blocks)
    fit = functools.partial(
        statistics.clustered_regression, gains.ravel(), groups=group, clusters=cluster
    )
    singles = [fit(causes=scaled[:, [i]]) for i in range(usable.size)]
    joint = fit(causes=scaled)

    def all_measures(found: Sequence[statistics.Slopes]) -> statistics.Slopes:
        slopes, low, high, p_values = (
            _filled([x for one in found for x in getattr(one, field)], usable, measures)
            for field in ("slopes", "low", "high", "p_values")
        )
        return statistics.Slopes(slopes, low, high, p_values, seeds)

    return deviations, all_measures(singles), all_measures([joint])


def _filled(values: Sequence[float], places: NDArray[np.int64], size: int) -> Floats:
    whole = np.full(size, math.nan)
    whole[places] = values
    return whole


def _slope(
    name: str, slopes: statistics.Slopes, p_values: Floats, i: int, *, tested: bool
) -> dict[str, float]:
    numbers = (slopes.slopes[i], slopes.low[i], slopes.high[i])
    slope, low, high = numbers if tested else (math.nan,) * 3
    return {name: slope, f"{name}_low": low, f"{name}_high": high, f"{name}_p": p_values[i]}


class _Counts(NamedTuple):
    seeds: int
    blocks: int
    every: int
    tests: int


_Row = Mapping[str, Any]


def sentences_of(rows: Sequence[_Row], gain: statistics.Paired, counts: _Counts) -> list[str]:
    """What the paper's explanation is worth, and what is to be said of the others."""
    diversity, *others = rows
    measured = (
        f"age-based's sets have {_number(_both(diversity, 'age_based'))} and max-pack's "
        f"{_number(_both(diversity, 'max_pack'))}"
    )
    if counts.seeds < FEWEST_SEEDS:
        few = f"{counts.seeds} seeds are too few to say what explains the gain"
        return [f"Gradient diversity on the same models: {measured}.", f"{few.capitalize()}."]
    first = (
        f"{_of_diversity(diversity)}: on the same models {measured} (difference "
        f"{_difference(diversity)}), and where age-based's are the more diverse by one standard "
        f"deviation the gain of a block changes by {_points(diversity, 'slope')}."
    )
    size = f"{counts.seeds} seeds with {counts.blocks} blocks of {counts.every} rounds each"
    second = (
        f"{_of_others(others)}; what goes with the gain ({points_text(gain.difference)} points a "
        f"block, {points_text(gain.low)} to {points_text(gain.high)}) need not be its cause "
        f"({size}; p-values corrected (Holm) for all {counts.tests} tests of the table)."
    )
    return [first, second]


def supports(row: _Row) -> bool:
    """Whether the policies surely differ in it, it surely goes with the gain, and the signs fit."""
    return _is_linked(row) and row["difference"] * row["slope"] > 0


def _is_linked(row: _Row) -> bool:
    return is_sure(row["difference_p"]) and is_sure(row["slope_p"])


def _of_diversity(row: _Row) -> str:
    if supports(row):
        return "Gradient diversity may explain the gain"
    if is_sure(row["difference_p"]) and row["difference"] < 0:
        return "Gradient diversity does not explain the gain"
    return "That gradient diversity explains the gain is not shown"


def _of_others(rows: Sequence[_Row]) -> str:
    linked = sorted(filter(_is_linked, rows), key=lambda row: -abs(row["slope"]))
    for_it = [row for row in linked if supports(row)]
    against = [row for row in linked if not supports(row)]
    if for_it:
        text = f"In age-based's favour, and with the gain, goes {and_list(map(_told, for_it))}"
    else:
        text = "No other measure surely differs in age-based's favour and goes with the gain"
    if against:
        text += f"; with the gain, but in max-pack's favour, goes {and_list(map(_told, against))}"
    if linked:
        lasting = [row["label"] for row in linked if is_sure(row["joint_p"])]
        text += f"; with all measures in one regression {and_list(lasting) or 'none'} surely does"
    return text


def _told(row: _Row) -> str:
    means = f"{_number(_both(row, 'age_based'))} against {_number(_both(row, 'max_pack'))}"
    return f"{row['label']} ({means}; {_points(row, 'slope')} per standard deviation)"


def _both(row: _Row, policy: str) -> float:
    """The mean over both kinds of models."""
    return float((row[f"{policy}@age_based"] + row[f"{policy}@max_pack"]) / 2)


def _number(value: float) -> str:
    return f"{value:.2f}"


def _difference(row: _Row) -> str:
    low, high = row["difference_low"], row["difference_high"]
    return f"{row['difference']:+.2f}, {low:+.2f} to {high:+.2f}, {p_text(row['difference_p'])}"


def _points(row: _Row, name: str) -> str:
    if math.isnan(row[name]):
        return "an unknown amount"
    low, high = (points_text_2(row[f"{name}_{end}"]) for end in ("low", "high"))
    return f"{points_text_2(row[name])} points ({low} to {high}, {p_text(row[f'{name}_p'])})"


def points_text_2(gain: float) -> str:
    """A small gain in percentage points, with its sign and two digits.

    >>> points_text_2(0.00123), points_text_2(-0.00001)
    ('+0.12', '+0.00')
    """
    return f"{round(100 * gain, 2) or 0.0:+.2f}"


def explanation_markdown(made: Summary) -> str:
    """The table and the sentences as a part of docs/results.md."""
    heads = ["measure", "age-based", "max-pack", "difference", "gain, alone", "gain, all together"]
    rows = [
        [
            row["label"],
            _number(_both(row, "age_based")),
            _number(_both(row, "max_pack")),
            *(_entry(row, name, scale) for name, scale in _COLUMNS.items()),
        ]
        for row in made.table.to_dicts()
    ]
    text = (
        "What both policies hear, compared on the same models ([how](explanation.md)); gains are "
        "in percentage points per standard deviation of the difference.\n"
    )
    parts = ["## What explains the gain\n", text, markdown_table(heads, rows)]
    return "\n".join([*parts, " ".join(made.sentences) + "\n"])


#: Columns with intervals and p-values, and what makes them readable numbers.
_COLUMNS: Final = {"difference": 1.0, "slope": 100.0, "joint": 100.0}


def _entry(row: _Row, name: str, scale: float) -> str:
    number = with_interval(row, name, ".2f", scale)
    return ", ".join(filter(None, (number, p_text(row[f"{name}_p"]))))


def draw(made: Summary, files: Sequence[Path]) -> None:
    """Draw the table into these files."""
    with paper_style():
        figure = new_figure(PAGE_IN, 2.6)
        axes = figure.subplots(1, 2, sharey=True)
        explanation_chart(made.table.to_dicts(), axes)
        for file in files:
            save(figure, file)
