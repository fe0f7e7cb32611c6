"""``python -m tests.fuzz``: all targets for some seconds, and what came of it."""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fuzz.worker import Tally, Trial, targets_of

ROOT = Path(__file__).parents[2]
USUAL = "tests.fuzz.all_targets"


def fuzz(tallies, kept, most_deaths=20):
    """Carry out the tallies in processes of their own; a new one where one died."""
    with tempfile.TemporaryDirectory(prefix="agewise-fuzz-") as folder:
        notes = {tally.target: Path(folder) / f"{i:02}.json" for i, tally in enumerate(tallies)}
        for tally in tallies:
            tally.write(notes[tally.target])
        for _ in range(most_deaths):
            died = _work(folder, kept)
            left = [tally for tally in map(Tally.read, notes.values()) if not tally.done]
            if not left:
                break
            _count_death(left[0], died, kept)
            left[0].write(notes[left[0].target])
        return [Tally.read(note) for note in notes.values()]


def _work(notes, kept):
    """How the worker ended, with its last words."""
    command = [sys.executable, "-m", "tests.fuzz.worker", str(notes), str(kept)]
    environment = {**os.environ, "POLARS_MAX_THREADS": "2", "RUST_BACKTRACE": "0"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True, check=False
    )
    return f"the process ended with {done.returncode}: {done.stderr[-3000:]}"


def _count_death(tally, died, kept):
    """The case that was being tried ended the whole process."""
    again = f"--target {tally.target} --seed {tally.seed} --case {tally.next}"
    place = kept / f"{tally.target}-{tally.seed}-{tally.next}"
    place.mkdir(parents=True, exist_ok=True)
    (place / "verdict.txt").write_text(died, errors="backslashreplace")
    failure = {"case": tally.next, "verdict": died, "input": "", "kept": str(place), "again": again}
    tally.failures.append(failure)
    tally.next += 1


def show(tallies):
    """Failures, then the counts."""
    for tally in tallies:
        for failure in tally.failures:
            print(f"{tally.target}, case {failure['case']}: {failure['verdict'].rstrip()}")
            if failure["input"]:
                print(f"  input: {failure['input']}")
            print(f"  kept in {failure['kept']}")
            print(f"  again: python -m tests.fuzz {failure['again']}\n")
    print(f"{'target':14}{'cases':>9}{'valid':>9}{'errors':>9}{'failures':>10}{'seconds':>9}")
    for tally in tallies:
        counts = f"{tally.cases:9}{tally.valid:9}{tally.errors:9}{len(tally.failures):10}"
        print(f"{tally.target:14}{counts}{tally.taken:9.1f}")
    failures = sum(len(tally.failures) for tally in tallies)
    print(f"{sum(tally.cases for tally in tallies)} cases, {failures} failures")


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0, help="for all targets together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", action="append", help="only this one; may be repeated")
    parser.add_argument("--cases", type=int, help="cases of each target, whatever time they take")
    parser.add_argument("--case", type=int, help="only this case of one target, in this process")
    parser.add_argument("--only", help="only these changes of the case: 0,2")
    parser.add_argument("--kept", type=Path, default=Path("fuzz-failures"), help="for failed input")
    parser.add_argument("--targets-from", default=USUAL, help="the module that lists the targets")
    given = parser.parse_args()
    known = targets_of(given.targets_from)
    names = given.target or list(known)
    for name in names:
        if name not in known:
            parser.error(f"there is no target {name}; there are {', '.join(known)}")
    kept = given.kept.resolve()
    if given.case is not None:
        return _one(known[names[0]], given, kept)
    unit = given.seconds / sum(known[name].share for name in names)
    tallies = fuzz(
        [
            Tally(name, given.targets_from, given.seed, given.cases, unit * known[name].share)
            for name in names
        ],
        kept,
    )
    show(tallies)
    return int(any(tally.failures for tally in tallies))


def _one(kind, given, kept):
    """One case again, with its input kept."""
    only = None if given.only is None else tuple(map(int, given.only.split(",")))
    trial = Trial(kind, given.seed, kept)
    try:
        verdict, case = trial.try_case(given.case, only)
    finally:
        trial.close()
    print(f"{case.shown}\n{verdict}")
    return int(verdict not in ("valid", "error"))


if __name__ == "__main__":
    sys.exit(main())
