"""Tries cases one after the other in this process, and notes what came of them.

The note says at any time which case is being tried, so that whoever started the process knows
what it died of.
"""

import dataclasses
import json
import random
import shutil
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

from tests.fuzz.oracle import judge, keep

#: At most so many changes are made to a seed.
MOST_CHANGES = 4
#: A target that fails more often is left alone.
MOST_FAILURES = 20


@dataclasses.dataclass
class Chance:
    """All that is drawn for one case: it follows from the seed, the target and the number.

    ``only`` leaves out all but these changes.
    """

    seed: int
    target: str
    number: int
    only: tuple[int, ...] | None = None

    def __post_init__(self):
        self.rng = self._source("case")
        self.count = self._source("count").choice((1, 1, 1, 2, 2, 3, MOST_CHANGES))

    def changes(self):
        """A source of chance for each change."""
        for index in range(self.count):
            if self.only is None or index in self.only:
                yield self._source(index)

    def _source(self, what):
        return random.Random(f"{self.seed}/{self.target}/{self.number}/{what}")  # noqa: S311


@dataclasses.dataclass
class Tally:
    """What came of the cases of a target so far, and where to stop.

    Case ``next`` is being tried unless this is ``done``. With a ``last`` case the time does not
    matter. ``failures`` describes each case that failed.
    """

    target: str
    module: str
    seed: int
    last: int | None
    seconds: float
    next: int = 0
    valid: int = 0
    errors: int = 0
    taken: float = 0.0
    done: bool = False
    failures: list = dataclasses.field(default_factory=list)

    @property
    def cases(self):
        return self.valid + self.errors + len(self.failures)

    @property
    def goes_on(self):
        if len(self.failures) >= MOST_FAILURES:
            return False
        return self.next < self.last if self.last is not None else self.taken < self.seconds

    @classmethod
    def read(cls, file):
        return cls(**json.loads(file.read_text()))

    def write(self, file):
        file.write_text(json.dumps(dataclasses.asdict(self)))


def targets_of(module):
    """The targets that a module lists, by name."""
    return {target.name: target for target in import_module(module).TARGETS}


class Trial:
    """One target with a room to work in."""

    def __init__(self, kind, seed, kept):
        self.seed, self.kept = seed, kept
        self.room = Path(tempfile.mkdtemp(prefix="agewise-fuzz-"))
        self.target = kind(self.room)

    def close(self):
        shutil.rmtree(self.room, ignore_errors=True)

    def try_case(self, number, only=None):
        """The verdict on one case, and the case."""
        folder = self.room / "case"
        folder.mkdir()
        try:
            case = self.target.make(Chance(self.seed, self.target.name, number, only))
            verdict = judge(case, folder)
        finally:
            shutil.rmtree(folder)
        if self.target.trap.exists():
            self.target.trap.rmdir()
            verdict = f"it unpickled what was planted ({verdict})"
        return verdict, case

    def failure(self, number, verdict):
        """What to say of a failed case, of which only the changes that matter are kept."""
        chance = Chance(self.seed, self.target.name, number)
        changes = tuple(range(chance.count))
        for index in () if verdict.startswith("no end") else changes:
            fewer = tuple(kept for kept in changes if kept != index)
            if fewer and _same(self.try_case(number, fewer)[0], verdict):
                changes = fewer
        case = self.target.make(Chance(self.seed, self.target.name, number, changes))
        place = self.kept / f"{self.target.name}-{self.seed}-{number}"
        keep(case, place)
        (place / "verdict.txt").write_text(verdict, errors="backslashreplace")
        only = ",".join(map(str, changes))
        which = f"--target {self.target.name} --seed {self.seed} --case {number}"
        return {
            "case": number,
            "verdict": verdict,
            "input": case.shown[:2000],
            "kept": str(place),
            "again": f"{which} --only {only}",
        }


def _same(verdict, other):
    return verdict.partition(":")[0] == other.partition(":")[0]


def work(notes, kept):
    """Go on with every tally in a folder of notes that is not done."""
    for note in sorted(notes.glob("*.json")):
        tally = Tally.read(note)
        if tally.done:
            continue
        trial = Trial(targets_of(tally.module)[tally.target], tally.seed, kept)
        try:
            _try_all(tally, trial, note)
        finally:
            trial.close()


def _try_all(tally, trial, note):
    while tally.goes_on:
        tally.write(note)
        begun = time.monotonic()
        verdict, _ = trial.try_case(tally.next)
        if verdict == "valid":
            tally.valid += 1
        elif verdict == "error":
            tally.errors += 1
        else:
            tally.failures.append(trial.failure(tally.next, verdict))
        tally.next += 1
        tally.taken += time.monotonic() - begun
    tally.done = True
    tally.write(note)


if __name__ == "__main__":
    work(Path(sys.argv[1]), Path(sys.argv[2]))
