"""What explains the gain of age-based scheduling over max-pack: both policies on the same models.

Neither policy looks at models, so the UEs that each heard in its own run are also those that it
would have heard on the other's models. Runs are followed again from their records, in blocks of
some rounds. At the start of a block all UEs learn from the model of the moment, and what either
policy hears in the rounds of the block is compared with that; then both policies go on from this
very model to the end of the block, and the difference in accuracy is the gain of the block.
"""

import copy
import functools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from agewise import learn, statistics
from agewise.engines import Engine
from agewise.experiment import Result
from agewise.experiment.progress import progress
from agewise.files import NO_CHECKSUM, seal, seal_holds, write_whole
from agewise.policies import AgeBased, MaxPack
from agewise.random import Streams
from agewise.records import History
from agewise.report import explanation_chart, paper_style, save
from agewise.report.figures import PAGE_IN
from agewise.report.text import FEWEST_SEEDS, and_list, is_sure, p_text, points_text, with_interval
from agewise.scenario import Scenario
from agewise.simulation import samples_of
from agewise.studies.documents import markdown_table, write_part
from agewise.version import __version__

#: Age-based first, in all that is kept of the two.
POLICIES: Final = (AgeBased(), MaxPack())
#: Rounds of a block.
EVERY: Final = 5
#: How often all UEs learn from the same model, each time with other samples.
DRAWS: Final = 3
FOLDER: Final = "explanation"
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
_OTHER_DRAW: Final = 1 << 64  # no seed of a run is this large

Floats = NDArray[np.float64]
Sets = Sequence[NDArray[np.int64]]


class SeedBlocks(NamedTuple):
    """The blocks of one seed.

    ``starts[block]`` are rounds, ``gains[models, block]`` accuracies of age-based less max-pack,
    and ``values[models, block, policy, measure]`` what was measured; models and policies are in
    the order of `POLICIES`.
    """

    starts: NDArray[np.int64]
    gains: Floats
    values: Floats


@dataclass(frozen=True, eq=False)
class Task:
    """One seed to follow again: the UEs heard and the accuracies of both runs."""

    scenario: Scenario
    seed: int
    received: tuple[Sets, Sets]
    accuracies: tuple[Floats, Floats]
    sources: Mapping[str, str]
    every: int
    draws: int

    @classmethod
    def of(
        cls, scenario: Scenario, seed: int, runs: Sequence[History], every: int, draws: int
    ) -> "Task":
        """The task of these runs of age-based and max-pack."""
        first, second = runs
        return cls(
            scenario,
            seed,
            (first.received, second.received),
            (first.accuracy, second.accuracy),
            {**first.info.sources, **second.info.sources},
            every,
            draws,
        )

    @property
    def identity(self) -> dict[str, Any]:
        """What the result depends on."""
        return {
            "version": __version__,
            "scenario": self.scenario.resolved(),
            "policies": [str(policy.key) for policy in POLICIES],
            "sources": dict(self.sources),
            "seed": self.seed,
            "every": self.every,
            "draws": self.draws,
        }

    def starts(self) -> NDArray[np.int64]:
        """The first rounds of whole blocks; a run that is shorter than one is a block."""
        rounds = self.scenario.run.rounds
        return np.arange(0, max(1, rounds - self.every + 1), self.every)


@dataclass(frozen=True, eq=False)
class Explanation:
    """A row per measure, what they say in two sentences, and the figure.

    ``gain`` is that of a block, the mean over both kinds of models, with its interval over seeds.
    """

    table: pl.DataFrame
    sentences: list[str]
    gain: statistics.Paired
    seeds: int
    blocks: int
    every: int
    figures: list[Path]


def explain(
    result: Result, engine: Engine, *, every: int = EVERY, draws: int = DRAWS, quiet: bool = False
) -> Explanation:
    """Measure the explanations on the seeds that both policies have, and draw them.

    Each seed is kept in a file of the results folder and is not measured again.
    """
    runs = [result.histories(policy) for policy in POLICIES]
    seeds = [seed for seed in runs[0] if seed in runs[1]]
    if not seeds:
        raise ValueError(f"{result.path}: age-based and max-pack have no finished seed in common")
    tasks = [
        Task.of(result.scenario, seed, [one[seed] for one in runs], every, draws) for seed in seeds
    ]
    blocks = _measured(result.path / FOLDER, tasks, engine, quiet=quiet)
    made = summarise(blocks, seeds, every)
    figures = [result.path / f"explanation.{kind}" for kind in ("png", "pdf")]
    _draw(made, figures)
    _keep(result.path / "explanation.json", made)
    write_part(result.path, "explanation.md", explanation_markdown(made))
    return Explanation(**made._asdict(), figures=figures)


# Measuring


def follow(task: Task) -> SeedBlocks:
    """Measure all blocks of a seed, on the models of either run."""
    streams = Streams(task.seed)
    samples = samples_of(task.scenario, streams)
    both = [_follow_one(task, own, samples.learner, samples.label_counts) for own in (0, 1)]
    gains, values = (np.array(parts) for parts in zip(*both, strict=True))
    return SeedBlocks(task.starts(), gains, values)


def _follow_one(
    task: Task, own: int, learner: learn.Learner, counts: NDArray[np.int64]
) -> tuple[list[float], list[Floats]]:
    """The gain and ``[policy, measure]`` of every block on the models of one of the runs."""
    streams, rounds = Streams(task.seed), len(task.received[own])
    aggregator, params = learn.make_aggregator(task.scenario.learn), learner.init(streams)
    local = learn.make_local_objective(task.scenario.learn)
    state = tuple(rule.start(learner.sizes.size, params.size) for rule in (aggregator, local))
    gains, values = [], []

    def step(
        params: learn.Params, state: tuple[learn.State, ...], ues: NDArray[np.int64], t: int
    ) -> tuple[learn.Params, tuple[learn.State, ...]]:
        memory, variates = state
        models = learner.train(params, ues, t, streams, local.corrections(variates, ues))
        updates = learn.Updates(params, models, ues)
        made = aggregator.combine(memory, updates, learner.sizes)
        return made.params, (made.state, local.receive(variates, updates, learner.sizes, t))

    last = 0
    for start in task.starts().tolist():
        block = range(start, min(start + task.every, rounds))
        for t in range(last, start):
            params, state = step(params, state, task.received[own][t], t)
        values.append(_compare(task, learner, counts, params, block))
        reached: list[list[float]] = [[], []]
        other, other_state = params, copy.deepcopy(state)
        for t in block:
            params, state = step(params, state, task.received[own][t], t)
            known = float(task.accuracies[own][t])
            reached[own].append(learner.evaluate(params).accuracy if math.isnan(known) else known)
            other, other_state = step(other, other_state, task.received[1 - own][t], t)
            reached[1 - own].append(learner.evaluate(other).accuracy)
        gains.append(float(np.mean(reached[0]) - np.mean(reached[1])))
        last = block.stop
    _require_same(task, own, last - 1, learner.evaluate(params).accuracy)
    return gains, values


def _require_same(task: Task, own: int, t: int, accuracy: float) -> None:
    """The run was followed rightly if it reaches the accuracy that was recorded."""
    recorded = float(task.accuracies[own][t])
    if not math.isnan(recorded) and recorded != accuracy:
        raise ValueError(
            f"the run of {POLICIES[own].key} with seed {task.seed} reached {recorded:.4f} in round "
            f"{t} and {accuracy:.4f} when it was followed again: run it again in another folder"
        )


def _compare(
    task: Task,
    learner: learn.Learner,
    counts: NDArray[np.int64],
    params: learn.Params,
    block: range,
) -> Floats:
    """``[policy, measure]``: what each policy hears in the rounds of a block, on one model."""
    sizes, everyone = learner.sizes, np.arange(learner.sizes.size)
    draws = [Streams(task.seed + draw * _OTHER_DRAW) for draw in range(task.draws)]
    models = [learner.train(params, everyone, block.start, draw) for draw in draws]
    found = np.empty((2, len(_NAMES)))
    for policy, received in enumerate(task.received):
        sets = received[block.start : block.stop]
        ever = membership([np.concatenate(received[: t + 1]) for t in block], everyone.size)
        share = float((ever @ sizes).mean() / sizes.sum())
        of_updates = compare_updates(models, params, sets, sizes)
        found[policy] = *of_updates, *compare_labels(sets, counts), share
    return found


def membership(sets: Sets, ues: int) -> Floats:
    """``[set, ue]``: 1 where the UE is in the set."""
    members = np.zeros((len(sets), ues))
    for row, ues_heard in zip(members, sets, strict=True):
        row[ues_heard] = 1.0
    return members


def compare_updates(
    models: Sequence[learn.Params], start: learn.Params, sets: Sets, sizes: NDArray[np.int64]
) -> tuple[float, float, float, float]:
    """Diversity, relative bias, that of all sets together, and relative variance.

    ``models[draw][ue]`` is what a UE made of ``start``. The bias is the length of the expected
    difference between the average update of a set and that of all UEs, over the length of the
    latter; expectations are over the draws, and what their small number adds to squared lengths is
    taken off. All but the second bias are means over the sets.
    """
    of_all = np.array([learn.average(each, sizes, start)[0] - start for each in models], float)
    made = [[learn.average(each[s], sizes[s], start) for s in sets] for each in models]
    of_sets = np.array([[mean - start for mean, _ in each] for each in made], float)
    whole = squared_mean(of_all)
    if not whole > 0:
        return math.nan, math.nan, math.nan, math.nan
    apart = of_sets - of_all[:, np.newaxis]  # [draw, set, weight]
    bias = [_length(apart[:, i], whole) for i in range(len(sets))]
    variance = np.var(of_sets, axis=0, ddof=1).sum() / (len(sets) * whole)
    known = [found for each in made for _, found in each if found is not None]
    diversity = float(np.mean(known)) if known else math.nan
    return diversity, float(np.mean(bias)), _length(apart.mean(axis=1), whole), float(variance)


def _length(draws: Floats, whole: float) -> float:
    """The length of the mean that the draws come from, in the root of ``whole``."""
    return math.sqrt(max(0.0, squared_mean(draws)) / whole)


def squared_mean(draws: Floats) -> float:
    """The squared length of the mean that ``draws[draw, weight]`` come from, without bias.

    >>> squared_mean(np.array([[1.0, 0.5], [1.0, -0.5]]))
    0.75
    """
    count, total = len(draws), draws.sum(axis=0)
    return float((total @ total - (draws * draws).sum()) / (count * (count - 1)))


def compare_labels(sets: Sets, counts: NDArray[np.int64]) -> tuple[float, float]:
    """The share of classes that a set holds, and how far its labels are from those of all.

    ``counts[ue, class]``; the distance is in total variation, 1 for an empty set. Both are means
    over the sets.
    """
    held, whole = membership(sets, len(counts)) @ counts, counts.sum(axis=0)
    totals = held.sum(axis=1, keepdims=True)
    shares = np.divide(held, totals, out=np.zeros_like(held), where=totals > 0)
    distance = 0.5 * np.abs(shares - whole / whole.sum()).sum(axis=1)
    distance[totals[:, 0] == 0] = 1.0
    covered = (held > 0).sum(axis=1) / np.count_nonzero(whole)
    return float(covered.mean()), float(distance.mean())


# Files


def _measured(
    folder: Path, tasks: Sequence[Task], engine: Engine, *, quiet: bool
) -> list[SeedBlocks]:
    """The blocks of every task, from files or measured now."""
    folder.mkdir(exist_ok=True)
    files = {task.seed: folder / f"seed-{task.seed:04d}.json" for task in tasks}
    found = {task.seed: _stored(files[task.seed], task) for task in tasks}
    missing = [task for task in tasks if found[task.seed] is None]
    with progress(len(missing), quiet=quiet, what="seeds explained") as counted:
        for task, blocks in engine.run(follow, missing):
            content = task.identity | {
                "starts": blocks.starts.tolist(),
                "gains": blocks.gains.tolist(),
                "values": blocks.values.tolist(),
            }
            _write_sealed(files[task.seed], content)
            found[task.seed] = blocks
            counted.advance(2 * task.scenario.run.rounds)
    return [blocks for blocks in found.values() if blocks is not None]


def _stored(file: Path, task: Task) -> SeedBlocks | None:
    """What the file holds, if it is whole and of this very task."""
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return None
    if not seal_holds(content):
        return None
    values = json.loads(content)
    if {name: values.get(name) for name in task.identity} != task.identity:
        return None
    return SeedBlocks(*(np.array(values[name]) for name in SeedBlocks._fields))


def _write_sealed(file: Path, values: Mapping[str, Any]) -> None:
    text = json.dumps({**values, "checksum": NO_CHECKSUM}, indent=1)
    with write_whole(file) as temporary:
        temporary.write_bytes(seal(text.encode()))


def _keep(file: Path, made: "Summary") -> None:
    """The table and the sentences, for the page and for machines."""
    rows = made.table.fill_nan(None).to_dicts()
    values = {"version": __version__, "sentences": made.sentences, "rows": rows}
    _write_sealed(file, values | {"seeds": made.seeds, "blocks": made.blocks, "every": made.every})


# Judging


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


def _draw(made: Summary, files: Sequence[Path]) -> None:
    with paper_style() as plt:
        figure, axes = plt.subplots(1, 2, figsize=(PAGE_IN, 2.6), layout="constrained", sharey=True)
        explanation_chart(made.table.to_dicts(), axes)
        for file in files:
            save(figure, file)
        plt.close(figure)
