"""What the gain of a policy is made of: sets of UEs are replayed through the same learner.

From stage to stage one thing changes in who is heard, until the baseline has become its rival.
Channels, data and learning stay the same, so the steps add up to the gain. The stages between the
two runs are drawn anew for every round: by how often a policy hears each UE, or evenly.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from agewise.engines import Engine
from agewise.experiment import Result, RunOptions, progress
from agewise.files import fingerprint, json_with_checksum, read_verified_json, write_whole
from agewise.learn import Federation
from agewise.policies import Policy
from agewise.random import Streams
from agewise.records import PolicyKey
from agewise.report import draw_figure
from agewise.report._setting import open_result
from agewise.resources import expected_seconds
from agewise.scenario import Scenario
from agewise.simulation import samples_of
from agewise.tables import Explanation
from agewise.version import __version__

_Floats = NDArray[np.float64]
_Sets = Sequence[NDArray[np.int64]]
#: Files of a results folder: one per seed and pair, and the pictures of the pair explained last.
_SEEDS: Final = "explanation"
FIGURES: Final = ("explanation.png", "explanation.pdf")
#: Replays of a seed, each about as long as a run.
_REPLAYS: Final = 7


@dataclass(frozen=True, eq=False)
class _Task:
    """What two runs of a seed heard and reached, and the file that keeps the scores.

    ``runs`` are the digests of both runs, by which the file knows what it was computed from.
    """

    scenario: Scenario
    seed: int
    received: tuple[_Sets, _Sets]
    accuracies: tuple[_Floats, _Floats]
    runs: list[str | None]
    file: Path

    @property
    def identity(self) -> dict[str, object]:
        """All that the scores depend on."""
        return {"version": __version__, "seed": self.seed, "runs": self.runs}


def explain(
    result: Result | Path | str,
    policy: Policy | PolicyKey | str | None = None,
    baseline: Policy | PolicyKey | str | None = None,
    *,
    engine: str | Engine = "auto",
    workers: int | None = None,
    address: str | None = None,
    quiet: bool = False,
) -> Explanation:
    """Replay what the gain of a policy over a baseline is made of, on the seeds that both have.

    They are those that the result compares, unless others are given. The scores of each seed are
    kept in a file of the results folder and not measured again; the picture is drawn there too.
    The other options are those of `agewise.compare`.
    """
    opened = open_result(result, baseline)
    path, scenario, base = opened.path, opened.scenario, opened.baseline
    rival = opened.compared[0] if policy is None else opened.key(policy)
    if scenario.pace.kind != "rounds":
        raise ValueError(
            f"{path}: who is heard is replayed in synchronous rounds, where all updates start from "
            'the newest model: explain runs with pace = "rounds"'
        )
    if opened.variations != [{}]:
        raise ValueError(f"{path} is a sweep: run the setting to explain in a folder of its own")
    if base is None or rival == base:
        raise ValueError(f"{path}: a gain is that of two policies, not of {rival} alone")
    tasks = list(_tasks(opened, rival, base))
    if not tasks:
        raise ValueError(f"{path}: {rival} and {base} have no finished seed in common")
    scores = _measured(tasks, RunOptions(engine, workers, address, quiet))
    made = Explanation(str(rival), str(base), [task.seed for task in tasks], np.array(scores))
    made.write(path)
    for name in FIGURES:
        draw_figure(opened, "waterfall", path / name)
    return made


def _tasks(result: Result, *pair: PolicyKey) -> Iterator[_Task]:
    """The seeds that both policies finished."""
    first, second = (result.histories(key) for key in pair)
    files = {(each.policy, each.seed): each.file for each in result.entries}
    which = hashlib.sha256(repr(pair).encode()).hexdigest()[:12]
    for seed in (seed for seed in first if seed in second):
        one, other = first[seed], second[seed]
        received, accuracies = (one.received, other.received), (one.accuracy, other.accuracy)
        digests = [fingerprint(files[key, seed]) for key in pair]
        file = result.path / _SEEDS / f"seed-{seed:04d}--{which}.json"
        yield _Task(result.scenario, seed, received, accuracies, digests, file)


def _measured(tasks: Sequence[_Task], options: RunOptions) -> list[list[float]]:
    """The scores of every task, from its file or measured now."""
    found: dict[int, list[float]] = {}
    for task in tasks:
        kept = read_verified_json(task.file)
        if kept is not None and kept.items() >= task.identity.items():
            found[task.seed] = kept["scores"]
    missing = [task for task in tasks if task.seed not in found]
    rounds = _REPLAYS * tasks[0].scenario.run.rounds
    seconds = len(missing) * _REPLAYS * expected_seconds(tasks[0].scenario)
    tasks[0].file.parent.mkdir(exist_ok=True)
    with progress(len(missing), len(missing) * rounds, quiet=options.quiet, what="seed") as shown:
        for task, scores in options.engine_for(seconds).run(_replay, missing):
            write_whole(task.file, json_with_checksum(task.identity | {"scores": scores}))
            found[task.seed] = scores
            shown.advance(rounds)
    return [found[task.seed] for task in tasks]


def _replay(task: _Task) -> list[float]:
    """``[stage]``: the mean accuracy over the evaluated rounds; those of both runs are recorded."""
    streams, scenario = Streams(task.seed), task.scenario.loaded()
    federation = samples_of(scenario, streams).federation(scenario)
    recorded = np.array(task.accuracies)
    at = np.flatnonzero(~np.isnan(recorded).any(axis=0))
    if not at.size:
        raise ValueError(f"seed {task.seed}: no accuracy was measured, so there is none to explain")
    again = [_follow(federation, sets, at[-1:]) for sets in task.received]
    if not np.array_equal(again, recorded[:, at[-1:]]):
        raise ValueError(
            f"seed {task.seed}: the UEs of both runs do not give their accuracies again: a policy "
            "weighs updates, which who is heard does not explain, or a file of the scenario has "
            "changed and the runs are to be repeated in another folder"
        )
    drawn = _drawn_stages(streams, *task.received, scenario.cell.ues)
    between = [_follow(federation, sets, at) for sets in drawn]
    return [float(np.mean(each)) for each in (recorded[1, at], *between, recorded[0, at])]


def _follow(federation: Federation, sets: _Sets, at: NDArray[np.int64]) -> list[float]:
    """The accuracies in these rounds if these sets of UEs are heard."""
    state, reached = federation.init(), []
    for t, ues in enumerate(sets):
        state = federation.round(state, ues, t).state
        if t in at:
            reached.append(federation.learner.evaluate(state.params).accuracy)
    return reached


def _drawn_stages(streams: Streams, rival: _Sets, baseline: _Sets, ues: int) -> list[_Sets]:
    """``[stage][round]``: who is heard at the stages between the two runs, as `Explanation` says.

    Stages draw with the same numbers, so that one differs from the next in nothing by chance that
    is not in what changes.
    """
    often, by_baseline = (np.bincount(np.concatenate(x), minlength=ues) for x in (rival, baseline))
    numbers = [streams.replay(t).random(ues) for t in range(len(rival))]

    def drawn(weights: NDArray[np.int64], like: _Sets) -> _Sets:
        return [_draw(weights, s.size, u) for s, u in zip(like, numbers, strict=True)]

    everyone = np.ones(ues, np.int64)
    return [
        drawn(by_baseline, baseline),
        drawn(np.sign(by_baseline), baseline),
        drawn(everyone, baseline),
        drawn(everyone, rival),
        drawn(often, rival),
    ]


def _draw(weights: NDArray[np.int64], count: int, numbers: _Floats) -> NDArray[np.int64]:
    """Draw so many UEs, each with a probability in proportion to its weight, but at most 1.

    By Pareto sampling (Rosen 1997), from one uniform number of each UE: the number of UEs is exact,
    the probabilities are very nearly.
    """
    if count == 0:
        return np.empty(0, np.int64)
    heaviest = np.sort(weights)[::-1].astype(np.float64)
    # Those that would have a probability above 1 are certain; the others share what is left.
    rest = np.maximum(heaviest[::-1].cumsum()[::-1], 1e-9)
    scales = (count - np.arange(weights.size)) / rest
    chances = np.minimum(1.0, scales[np.argmax(scales * heaviest <= 1.0 + 1e-9)] * weights)
    with np.errstate(divide="ignore", invalid="ignore"):  # those without a chance come last
        ranks = numbers / (1.0 - numbers) * (1.0 - chances) / chances
    return np.sort(np.argsort(ranks, kind="stable")[:count])
