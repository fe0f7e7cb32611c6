"""The results in a folder, finished or not."""

import functools
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agewise import display
from agewise.checks import path_of, real_number
from agewise.dependencies import pl, refuse_after_fork
from agewise.experiment._description import Description, FolderError
from agewise.experiment._folder import Folder, run_text, unexpected_files
from agewise.experiment._summary import result_table, target_table
from agewise.experiment.plan import (
    Plan,
    default_baseline,
    default_rival,
    file_name,
    find_policy,
    variation_key,
)
from agewise.files import fingerprint
from agewise.policies import Policy
from agewise.provenance import source_files, source_text
from agewise.records import History, PolicyKey, RunInfo, as_pandas
from agewise.scenario import Scenario
from agewise.statistics import Axis, axis_of
from agewise.tables import GainMap, ResultTable, TargetTable, Variation, column_entries

if TYPE_CHECKING:
    import pandas

#: Memory that histories which were read may take before the oldest make way.
_CACHE_BYTES = 512 * 2**20


@dataclass(frozen=True, eq=False)
class Entry:
    """One finished run: what it was, and where it is."""

    variation: Variation
    policy: PolicyKey
    seed: int
    file: Path


@dataclass(frozen=True, eq=False)
class FailedRun:
    """A run that did not come to its end: what it was, and why."""

    variation: Variation
    policy: PolicyKey
    seed: int
    reason: str

    def __str__(self) -> str:
        return f"{run_text(self.variation, self.policy, self.seed)}: {self.reason}"


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """All finished runs of a folder.

    ``damaged`` has a sentence on each file that is not what its name says, which is left out, or
    that is lost; ``failed`` has the runs that did not come to their end.
    ``baseline`` is the policy that the others are compared with, ``None`` if there is one only.
    """

    path: Path
    scenario: Scenario
    variations: list[Variation]
    policies: list[PolicyKey]
    seeds: list[int]
    baseline: PolicyKey | None
    entries: list[Entry]
    damaged: list[str]
    failed: list[FailedRun]

    def __repr__(self) -> str:
        policies = ", ".join(map(str, self.policies))
        return f"<Result {self.path}: {policies}; {len(self.entries):,} of {self.expected:,} runs>"

    def _repr_html_(self) -> str:
        """The table, and the mean accuracy of every policy over the rounds."""
        if not self.entries:
            return display.facts("Result", {"path": self.path, "runs": f"0 of {self.expected:,}"})
        curves = {}
        for policy in self.policies:
            if (runs := self.accuracy(policy, self.variations[0])).size:
                curves[str(policy)] = runs.mean(axis=0)
        picture = display.lines(curves, "mean test accuracy over rounds")
        said = {"path": self.path, "runs": f"{len(self.entries):,} of {self.expected:,}"}
        return display.facts("Result", said, picture) + self.table().accuracy().to_html()

    @classmethod
    def open(cls, path: Path | str, baseline: Policy | PolicyKey | str | None = None) -> "Result":
        """What is whole in this folder, while it is still being filled or after.

        ``baseline`` is used in the place of the one that the folder keeps. Only the folder itself
        is read, not the files that its scenario names: `changed_sources` looks at those.
        """
        folder = Folder(path_of("the results folder", path))
        # Before the description, which never loses a run; a run that failed may be finished since.
        tried, present = folder.failed_names(), folder.file_names()
        described = folder.description()
        seeds = sorted(described.seeds)
        entries, damaged, failed, expected = [], list[str](), [], set()
        for variation, expected_run in _described_runs(described):
            policy, seed = expected_run.policy, expected_run.seed
            name = file_name(variation, policy, seed)
            expected.add(name)
            try:
                if name in present:
                    folder.require(name, expected_run)
                    entries.append(Entry(variation, policy, seed, folder.runs / name))
                elif name in tried:
                    reason = folder.failure(name, expected_run)
                    failed.append(FailedRun(variation, policy, seed, reason))
            except ValueError as error:
                damaged.append(str(error))
        return cls(
            folder.path,
            described.scenario,
            list(described.variations),
            described.policies,
            seeds,
            _baseline(baseline, described.baseline, described.policies),
            entries,
            damaged
            + unexpected_files(folder, present - expected, tried - expected)
            + folder.lost(),
            failed,
        )

    @property
    def compared(self) -> list[PolicyKey]:
        """A rival and the baseline: their accuracies at the end are the primary comparison."""
        rival = default_rival(self.policies, self.baseline)
        return [policy for policy in (rival, self.baseline) if policy is not None]

    def changed_sources(self) -> list[str]:
        """A sentence on each file that the scenarios name and that is not what it was.

        The results are of the old file, and going on with the experiment computes them again.
        """
        described = Folder(self.path).description()
        files = dict[str, Path]()
        for scenario in described.scenarios:
            files |= source_files(scenario)
        return [
            f"{source_text(name)} has changed since: the results are of the file as it was"
            for name, file in files.items()
            if fingerprint(file) not in (None, described.sources.get(name))
        ]

    @property
    def expected(self) -> int:
        """How many runs there are when all are finished."""
        return len(self.variations) * len(self.policies) * len(self.seeds)

    def key(self, policy: Policy | PolicyKey | str) -> PolicyKey:
        """Which policy of this result is meant; a bare name is enough where only one has it."""
        return find_policy(policy, self.policies)

    def history(
        self, policy: Policy | PolicyKey | str, seed: int = 0, variation: Variation | None = None
    ) -> History:
        """The rounds of one run."""
        key = self.key(policy)
        entry = self._finished(key, variation or {}).get(seed)
        if entry is None:
            raise ValueError(f"{self.path}: no finished run of {key} with seed {seed}")
        return _histories.load(entry.file)

    def histories(
        self, policy: Policy | PolicyKey | str, variation: Variation | None = None
    ) -> dict[int, History]:
        """All finished seeds of a policy under a variation, in rising order."""
        finished = self._finished(self.key(policy), variation or {})
        return {seed: _histories.load(entry.file) for seed, entry in finished.items()}

    def accuracy(
        self, policy: Policy | PolicyKey | str, variation: Variation | None = None
    ) -> NDArray[np.float64]:
        """``[seed, round]`` of the finished seeds, in rising order."""
        histories = self.histories(policy, variation)
        return np.array([history.accuracy for history in histories.values()])

    def table(self, over: str | Axis = "rounds", at: Sequence[float] | None = None) -> ResultTable:
        """A row per policy and variation: intervals over seeds and paired differences.

        Accuracies are those ``at`` points of the x axis: rounds, or ``over`` seconds, joules,
        channel-uses or bits. Left out, these are some rounds, or parts of the cost of the cheapest
        run. NaN where a run has ended before. ``cost`` is that of whole runs.
        """
        axis = self._axis(over)
        if at is not None:
            given, at = at, sorted({real_number("a point", point) for point in at})
            if not at or at[0] <= 0.0:
                raise ValueError(f"points must be numbers above 0, not {list(given)}")
        return result_table(self, axis, at)

    def to_target(self, target: float, over: str | Axis = "rounds") -> TargetTable:
        """A row per policy and variation: what it took until the accuracy was at least ``target``.

        In rounds, or ``over`` seconds, joules, channel-uses or bits: the median over seeds with
        its 95% limits, how many seeds got there, and the mean up to the same horizon for all.
        """
        return target_table(self, target, self._axis(over))

    def map(self, over: str | Axis = "rounds", at: Sequence[float] | None = None) -> GainMap:
        """The gains of `table` at its last point, for each policy and setting of a sweep.

        ``ValueError`` unless there are at least two settings and two policies.
        """
        return self.table(over, at).map()

    def only(self, plan: Plan) -> "Result":
        """What a plan asked for; the folder may hold more from before."""
        policies, seeds = set(plan.keys), set(plan.seeds)
        wanted = {variation_key(variation) for variation in plan.variations}
        entries = [
            each
            for each in self.entries
            if each.policy in policies
            and each.seed in seeds
            and variation_key(each.variation) in wanted
        ]
        return replace(
            self,
            variations=plan.variations,
            policies=plan.keys,
            seeds=plan.seeds,
            baseline=_baseline(
                plan.baseline, self.baseline if self.baseline in policies else None, plan.keys
            ),
            entries=entries,
        )

    def _axis(self, over: str | Axis) -> Axis:
        """The axis of this name, if all runs know it."""
        axis = axis_of(over)
        for variation in self.variations:
            axis.require(self.scenario.with_(**variation).resolved())
        return axis

    def to_polars(self) -> pl.DataFrame:
        """All rounds of all finished runs, with their policy, seed and variation."""
        refuse_after_fork()
        if not self.entries:
            raise FolderError(f"{self.path}: no run is finished yet")
        names = list(dict.fromkeys(name for varied in self.variations for name in varied))
        frames = []
        for entry in self.entries:
            run = {"policy": str(entry.policy), "seed": entry.seed}
            run |= column_entries(entry.variation, names)
            constant = [pl.lit(value).alias(name) for name, value in run.items()]
            frames.append(_histories.load(entry.file).frame.select(*constant, pl.all()))
        return pl.concat(frames, how="vertical_relaxed")

    def to_pandas(self) -> "pandas.DataFrame":
        """`to_polars` for those who want pandas (``pip install 'agewise[pandas]'``)."""
        return as_pandas(self.to_polars())

    def _finished(self, policy: PolicyKey, variation: Variation) -> Mapping[int, Entry]:
        return self._index.get((policy, variation_key(variation)), {})

    @functools.cached_property
    def _index(self) -> dict[tuple[PolicyKey, str], dict[int, Entry]]:
        """The entries by policy and variation, then by seed."""
        index: dict[tuple[PolicyKey, str], dict[int, Entry]] = {}
        for entry in self.entries:
            index.setdefault((entry.policy, variation_key(entry.variation)), {})[entry.seed] = entry
        return index


class _HistoryCache:
    """Histories by file, read once as long as the file stays what it is.

    Those that were used last are kept, up to a limit in bytes.
    """

    def __init__(self, limit: int) -> None:
        self.limit, self.bytes = limit, 0
        self._kept: OrderedDict[tuple[Path, int, int, int], tuple[History, int]] = OrderedDict()
        self._lock = threading.Lock()

    def load(self, file: Path) -> History:
        """The history in this file."""
        state = file.stat()
        key = (file, state.st_mtime_ns, state.st_size, state.st_ino)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]
        history = History.load(file)
        size = int(history.frame.estimated_size()) + state.st_size
        with self._lock:
            if key not in self._kept:
                self._kept[key] = history, size
                self.bytes += size
            while self.bytes > self.limit and len(self._kept) > 1:
                self.bytes -= self._kept.popitem(last=False)[1][1]
        return history


_histories = _HistoryCache(_CACHE_BYTES)


def _described_runs(described: Description) -> Iterator[tuple[Variation, RunInfo]]:
    """What the file of every run that is described must say, with the run's variation."""
    for variation, scenario in zip(described.variations, described.scenarios, strict=True):
        resolved = scenario.resolved()
        for policy in described.policies:
            info = described.run(scenario, resolved, policy, 0)
            for seed in sorted(described.seeds):
                yield variation, replace(info, seed=seed)


def _baseline(
    given: Policy | PolicyKey | str | None, kept: PolicyKey | None, policies: list[PolicyKey]
) -> PolicyKey | None:
    if given is not None:
        return find_policy(given, policies)
    return kept or default_baseline(policies)
