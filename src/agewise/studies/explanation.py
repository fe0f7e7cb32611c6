"""Explanations of the gain of age-based over max-pack: both policies on the same models.

Neither policy looks at models, so the UEs that each heard in its own run are also those that it
would have heard on the other's models. Runs are followed again from their records, in blocks of
some rounds. At the start of a block all UEs learn from the model of the moment, and what either
policy hears in the rounds of the block is compared with that; then both policies go on from this
very model to the end of the block, and the difference in accuracy is the gain of the block.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agewise import learn, statistics
from agewise.dependencies import pl
from agewise.experiment import Result, RunOptions, progress
from agewise.files import json_with_checksum, read_verified_json, write_whole
from agewise.policies import AgeBased, MaxPack
from agewise.random import Streams
from agewise.records import History
from agewise.report import draw_figure
from agewise.report._claims import EXPLANATION
from agewise.resources import expected_seconds
from agewise.scenario import Scenario
from agewise.simulation import samples_of
from agewise.tables._words import and_list, counted, limits_text, p_text, points_text
from agewise.version import __version__

_Floats = NDArray[np.float64]
_Sets = Sequence[NDArray[np.int64]]

#: What is measured, by the names of tables; docs/explanation.md defines each.
_MEASURES: Final = {
    "diversity": "gradient diversity",
    "bias": "bias of a round",
    "block_bias": "bias of a block",
    "variance": "variance over draws",
    "classes": "classes covered",
    "labels": "distance of labels",
    "heard": "data ever heard",
}

#: What the difference in gradient diversity says of the paper's explanation.
_VERDICTS: Final = {
    "better": "Gradient diversity may explain the gain",
    "worse": "Gradient diversity does not explain the gain",
    "not shown": "That gradient diversity explains the gain is not shown",
}
#: Age-based first, in all that is kept of the two.
_POLICIES: Final = (AgeBased(), MaxPack())
#: Rounds of a block.
_EVERY: Final = 5
#: How often all UEs learn from the same model, each time with other samples.
_DRAWS: Final = 3
_FOLDER: Final = "explanation"
#: To follow the two runs of a seed takes about as long as so many runs: all UEs learn, repeatedly.
_TIMES_A_RUN: Final = 10
_OTHER_DRAW: Final = 1 << 64  # no seed of a run is this large


class _SeedBlocks(NamedTuple):
    """Blocks of one seed.

    ``starts[block]`` are rounds, ``gains[models, block]`` accuracies of age-based minus max-pack,
    and ``values[models, block, policy, measure]`` what was measured; models and policies are in
    the order age-based, max-pack.
    """

    starts: NDArray[np.int64]
    gains: _Floats
    values: _Floats


@dataclass(frozen=True, eq=False)
class _Task:
    """One seed to follow again: the UEs heard and the accuracies of both runs."""

    scenario: Scenario
    seed: int
    every: int
    received: Sequence[_Sets]
    accuracies: list[_Floats]
    sources: dict[str, str]

    @classmethod
    def of(
        cls, scenario: Scenario, seed: int, runs: Sequence[History], every: int = _EVERY
    ) -> "_Task":
        """Make the task of these runs of age-based and max-pack."""
        received, accuracies = [run.received for run in runs], [run.accuracy for run in runs]
        sources = {name: digest for run in runs for name, digest in run.info.sources.items()}
        return cls(scenario, seed, every, received, accuracies, sources)

    @property
    def identity(self) -> dict[str, object]:
        """All that the result depends on."""
        return {
            "version": __version__,
            "scenario": self.scenario.resolved(),
            "policies": [str(policy.key) for policy in _POLICIES],
            "sources": self.sources,
            "seed": self.seed,
            "every": self.every,
            "draws": _DRAWS,
        }

    def starts(self) -> NDArray[np.int64]:
        """List the first rounds of whole blocks; a run that is shorter than one is a block."""
        rounds = self.scenario.run.rounds
        return np.arange(0, max(1, rounds - self.every + 1), self.every)


@dataclass(frozen=True, eq=False)
class Explanation:
    """Table with a row per measure, what it says in two sentences, and the figure."""

    table: pl.DataFrame
    sentences: list[str]
    seeds: int
    blocks: int
    figures: list[Path]


def explain(result: Result, options: RunOptions | None = None) -> Explanation:
    """Measure the explanations on the seeds that both policies have, and draw them.

    Each seed is kept in a file of the results folder and is not measured again.
    """
    aged, packed = (result.histories(policy) for policy in _POLICIES)
    tasks = [
        _Task.of(result.scenario, seed, (aged[seed], packed[seed]))
        for seed in aged
        if seed in packed
    ]
    if not tasks:
        raise ValueError(f"{result.path}: age-based and max-pack have no finished seed in common")
    made = _summarise(_measured(result.path / _FOLDER, tasks, options or RunOptions()))
    kept = {
        "version": __version__,
        "sentences": made.sentences,
        "rows": made.table.fill_nan(None).to_dicts(),
        "seeds": made.seeds,
        "blocks": made.blocks,
    }
    # For the page and for machines.
    write_whole(result.path / EXPLANATION, json_with_checksum(kept))
    files = [result.path / f"explanation.{kind}" for kind in ("png", "pdf")]
    return replace(made, figures=[draw_figure(result, "explained", file) for file in files])


# What the measures say


def _summarise(blocks: Sequence[_SeedBlocks]) -> Explanation:
    """Compare the policies in each measure, paired over the seeds."""
    values = np.array([one.values for one in blocks])  # [seed, models, block, policy, measure]
    gains = np.array([one.gains for one in blocks])
    of_seeds = np.nanmean(values, axis=(1, 2))  # [seed, policy, measure]
    tested = len(blocks) >= statistics.FEWEST_SEEDS
    pairs = [statistics.contrast(first, second) for first, second in of_seeds.T]
    paired = statistics.correct([one if tested else replace(one, p=math.nan) for one in pairs])
    apart = values[..., 0, :] - values[..., 1, :]
    deviations = np.sqrt(((apart - apart.mean(axis=0)) ** 2).mean(axis=(0, 1, 2)))
    means = np.nanmean(values, axis=(0, 2)).mean(axis=0)  # [policy, measure]
    rows = [
        {
            "measure": name,
            "label": _MEASURES[name],
            "age_based": means[0, i],
            "max_pack": means[1, i],
            "difference": paired[i].mean,
            "difference_low": paired[i].low,
            "difference_high": paired[i].high,
            "difference_p": paired[i].p,
            "deviation": deviations[i],
        }
        for i, name in enumerate(_MEASURES)
    ]
    gain = statistics.contrast(gains.mean(axis=(1, 2)), np.zeros(len(blocks)))
    size = f"{counted(len(blocks), 'seed')} with {gains[0].size} blocks of {_EVERY} rounds each"
    table = pl.DataFrame(rows, infer_schema_length=None)
    sentences = _sentences(rows, paired, gain, size)
    return Explanation(table, sentences, len(blocks), gains.size, [])


def _sentences(
    rows: Sequence[Mapping[str, Any]],
    paired: Sequence[statistics.Contrast],
    gain: statistics.Contrast,
    size: str,
) -> list[str]:
    """Say what the paper's explanation is worth, and in what else the policies differ."""
    diversity, *others = map(_told, rows)
    verdict = paired[0].verdict
    if verdict == "too few seeds":
        few = f"{size.partition(' with')[0]} are too few to say in what the policies differ."
        return [f"On the same models: {diversity}.", few]
    apart = [told for told, one in zip(others, paired[1:], strict=True) if one.shown]
    found = f"in {and_list(apart)}" if apart else "in no other measure"
    rest = (
        f"The policies are shown to differ {found}; what differs need not be the cause of the gain "
        f"({points_text(gain.mean)} points per block, {limits_text(gain)}; {size}; p-values "
        f"corrected (Holm) for all {len(rows)} tests)."
    )
    return [f"{_VERDICTS[verdict]}: on the same models {diversity}.", rest]


def _told(row: Mapping[str, Any]) -> str:
    p = f", {p_text(row['difference_p'])}" if p_text(row["difference_p"]) else ""
    both = f"{row['age_based']:.2f} for age-based, {row['max_pack']:.2f} for max-pack"
    return f"{row['label']} ({both}{p})"


# Measuring


def _follow(task: _Task) -> _SeedBlocks:
    """Measure all blocks of a seed, on the models of either run."""
    samples = samples_of(task.scenario, Streams(task.seed))
    federation = samples.federation(task.scenario)
    both = [_follow_one(task, own, federation, samples.label_counts) for own in (0, 1)]
    gains, values = (np.array(parts) for parts in zip(*both, strict=True))
    return _SeedBlocks(task.starts(), gains, values)


def _follow_one(
    task: _Task, own: int, federation: learn.Federation, counts: NDArray[np.int64]
) -> tuple[list[float], list[_Floats]]:
    """Measure the gain and ``[policy, measure]`` of every block on the models of a run."""
    learner, rounds = federation.learner, len(task.received[own])
    state, gains, values, last = federation.init(), [], [], 0
    for start in task.starts().tolist():
        block = range(start, min(start + task.every, rounds))
        for t in range(last, start):
            state = federation.round(state, task.received[own][t], t).state
        values.append(_compare(task, federation, counts, state, block))
        reached: list[list[float]] = [[], []]
        other = state.copy()
        for t in block:
            state = federation.round(state, task.received[own][t], t).state
            known = float(task.accuracies[own][t])
            own_accuracy = learner.evaluate(state.params).accuracy if math.isnan(known) else known
            other = federation.round(other, task.received[1 - own][t], t).state
            reached[own].append(own_accuracy)
            reached[1 - own].append(learner.evaluate(other.params).accuracy)
        gains.append(float(np.mean(reached[0]) - np.mean(reached[1])))
        last = block.stop
    recorded = float(task.accuracies[own][last - 1])
    accuracy = learner.evaluate(state.params).accuracy
    if not math.isnan(recorded) and recorded != accuracy:
        raise ValueError(
            f"the run of {_POLICIES[own].key} with seed {task.seed} reached {recorded:.4f} in "
            f"round {last - 1} and {accuracy:.4f} when it was followed again: run it again in "
            "another folder"
        )
    return gains, values


def _compare(
    task: _Task,
    federation: learn.Federation,
    counts: NDArray[np.int64],
    state: learn.FederationState,
    block: range,
) -> _Floats:
    """Compare what policies hear in the rounds of a block on one model, ``[policy, measure]``."""
    sizes = federation.learner.sizes
    everyone = np.arange(sizes.size)
    draws = [Streams(task.seed + draw * _OTHER_DRAW) for draw in range(_DRAWS)]
    models = [federation.train(state, everyone, block.start, draw) for draw in draws]
    found = np.empty((2, len(_MEASURES)))
    for policy, received in enumerate(task.received):
        sets = received[block.start : block.stop]
        ever = _membership([np.concatenate(received[: t + 1]) for t in block], everyone.size)
        share = float((ever @ sizes).mean() / sizes.sum())
        of_updates = _compare_updates(models, state.params, sets, sizes)
        found[policy] = *of_updates, *_compare_labels(sets, counts), share
    return found


def _membership(sets: _Sets, ues: int) -> _Floats:
    """Return ``[set, ue]``: 1 where the UE is in the set."""
    members = np.zeros((len(sets), ues))
    for row, ues_heard in zip(members, sets, strict=True):
        row[ues_heard] = 1.0
    return members


def _compare_updates(
    models: Sequence[learn.Params], start: learn.Params, sets: _Sets, sizes: NDArray[np.int64]
) -> tuple[float, float, float, float]:
    """Diversity, relative bias, that of all sets together, and relative variance.

    ``models[draw][ue]`` is what a UE made of ``start``. The bias is the length of the expected
    difference between the average update of a set and that of all UEs, over the length of the
    latter; expectations are over the draws, and what their small number adds to squared lengths is
    taken off. All but the second bias are means over the sets.
    """
    moves = [np.asarray(each - start, np.float64) for each in models]
    of_all = np.array([_mean_update(each, sizes) for each in moves])
    of_sets = np.array([[_mean_update(each[s], sizes[s]) for s in sets] for each in moves])
    whole = _squared_mean(of_all)
    if not whole > 0:
        return math.nan, math.nan, math.nan, math.nan
    apart = of_sets - of_all[:, np.newaxis]  # [draw, set, weight]
    bias = [_length(apart[:, i], whole) for i in range(len(sets))]
    variance = np.var(of_sets, axis=0, ddof=1).sum() / (len(sets) * whole)
    found = [_diversity(each[s]) for each in moves for s in sets]
    known = [each for each in found if math.isfinite(each)]
    diversity = float(np.mean(known)) if known else math.nan
    return diversity, float(np.mean(bias)), _length(apart.mean(axis=1), whole), float(variance)


def _mean_update(moves: _Floats, sizes: NDArray[np.int64]) -> _Floats:
    """Average ``moves[ue, weight]`` by numbers of samples; 0 of nobody's."""
    return np.asarray(sizes @ moves / max(1, int(sizes.sum())))


def _diversity(moves: _Floats) -> float:
    """Squared lengths of the updates over the squared length of their sum; NaN of nobody's."""
    together = float((moves.sum(axis=0) ** 2).sum())
    return float((moves * moves).sum()) / together if together > 0 else math.nan


def _length(draws: _Floats, whole: float) -> float:
    """Estimate the length of the mean that the draws come from, in the root of ``whole``."""
    return math.sqrt(max(0.0, _squared_mean(draws)) / whole)


def _squared_mean(draws: _Floats) -> float:
    """Estimate the squared length of the mean that ``draws[draw, weight]`` come from, without bias.

    >>> _squared_mean(np.array([[1.0, 0.5], [1.0, -0.5]]))
    0.75
    """
    count, total = len(draws), draws.sum(axis=0)
    return float((total @ total - (draws * draws).sum()) / (count * (count - 1)))


def _compare_labels(sets: _Sets, counts: NDArray[np.int64]) -> tuple[float, float]:
    """Return the share of classes that a set holds, and how far its labels are from those of all.

    ``counts[ue, class]``; the distance is in total variation, 1 for an empty set. Both are means
    over the sets.
    """
    held, whole = _membership(sets, len(counts)) @ counts, counts.sum(axis=0)
    totals = held.sum(axis=1, keepdims=True)
    shares = np.divide(held, totals, out=np.zeros_like(held), where=totals > 0)
    distance = 0.5 * np.abs(shares - whole / whole.sum()).sum(axis=1)
    distance[totals[:, 0] == 0] = 1.0
    covered = (held > 0).sum(axis=1) / np.count_nonzero(whole)
    return float(covered.mean()), float(distance.mean())


# Files


def _measured(folder: Path, tasks: Sequence[_Task], options: RunOptions) -> list[_SeedBlocks]:
    """Return the blocks of every task, from files or measured now."""
    folder.mkdir(exist_ok=True)
    files = {task.seed: folder / f"seed-{task.seed:04d}.json" for task in tasks}
    found: dict[int, _SeedBlocks] = {}
    for task in tasks:
        kept = read_verified_json(files[task.seed])
        if kept is not None and kept.items() >= task.identity.items():
            found[task.seed] = _SeedBlocks(*(np.array(kept[name]) for name in _SeedBlocks._fields))
    missing = [task for task in tasks if task.seed not in found]
    rounds = sum(2 * task.scenario.run.rounds for task in missing)
    seconds = sum(_TIMES_A_RUN * expected_seconds(task.scenario) for task in missing)
    with progress(len(missing), rounds, quiet=options.quiet, what="seeds") as counted:
        for task, blocks in options.engine_for(seconds).run(_follow, missing):
            numbers = {name: each.tolist() for name, each in blocks._asdict().items()}
            write_whole(files[task.seed], json_with_checksum(task.identity | numbers))
            found[task.seed] = blocks
            counted.advance(2 * task.scenario.run.rounds)
    return [found[task.seed] for task in tasks]
