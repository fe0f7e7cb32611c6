"""The short form of ``make fuzz``, and that the fuzzer notices what must not happen."""

import dataclasses

import pytest

from tests.fuzz import oracle
from tests.fuzz.__main__ import USUAL, fuzz
from tests.fuzz.mutate import mutate_bytes, mutate_tree
from tests.fuzz.worker import Chance, Tally, Trial, targets_of

#: Half a second each; numbers of cases, not seconds, so that every machine tries the same.
CASES = {
    "scenario": 30, "round-files": 30, "round-arrays": 120, "data": 150, "trace": 200,
    "overrides": 500, "policy": 120, "folder": 15, "command": 15, "call": 100,
}  # fmt: skip
BROKEN = "tests.fuzz.broken"


@pytest.fixture(scope="module")
def tallies(tmp_path_factory):
    """All targets, in a process of their own that may hang or die."""
    wanted = [Tally(name, USUAL, 0, count, 0.0) for name, count in CASES.items()]
    return {tally.target: tally for tally in fuzz(wanted, tmp_path_factory.mktemp("failures"))}


@pytest.mark.parametrize("name", CASES)
def test_a_clean_error_or_a_valid_result(name, tallies):
    tally = tallies[name]
    assert tally.failures == []
    assert tally.cases == CASES[name]
    assert tally.valid > 0, "no case was valid: the changes are too coarse"
    assert tally.errors > 0, "no case was refused: the changes are too fine"


def test_every_target_is_tried():
    assert list(targets_of(USUAL)) == list(CASES)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sound", "valid"),
        ("clean", "error"),
        ("traceback", "KeyError: 'input'"),
        ("nameless", "an error that names none of input: ValueError: not valid"),
        ("lines", "an error of several lines: "),
        ("pickle", "it unpickled what was planted"),
        ("program", "it did subprocess.Popen"),
        ("memory", "MemoryError"),
        ("hang", "no end after"),
        ("sleep", "no end after"),
    ],
)
def test_what_must_not_happen_is_noticed(name, said, tmp_path, monkeypatch):
    monkeypatch.setattr(oracle, "SECONDS", 0.2)
    trial = Trial(targets_of(BROKEN)[name], 0, tmp_path)
    try:
        verdict, _ = trial.try_case(0)
        assert verdict.startswith(said)
        assert trial.try_case(1)[0].partition("\n")[0] == verdict.partition("\n")[0]
    finally:
        trial.close()


def test_a_case_that_ends_the_process_is_named_and_the_others_go_on(tmp_path):
    wanted = [Tally("abort", BROKEN, 3, 2, 0.0), Tally("sound", BROKEN, 3, 5, 0.0)]
    abort, sound = fuzz(wanted, tmp_path)
    assert [failure["case"] for failure in abort.failures] == [0, 1]
    assert abort.failures[0]["verdict"].startswith("the process ended with -6")
    assert abort.failures[1]["again"] == "--target abort --seed 3 --case 1"
    assert (sound.valid, sound.failures) == (5, [])


class Planted:
    """Fails if the second of its changes is made."""

    name = "planted"

    def __init__(self, room):
        self.trap = room / "trap"

    def make(self, chance):
        made = list(chance.changes())
        guilty = Chance(chance.seed, self.name, chance.number, (1,))
        bad = {rng.random() for rng in guilty.changes()} & {rng.random() for rng in made}

        def attempt(_folder):
            assert not bad

        return oracle.Case(attempt, ("x",), {"x": b"1"}, f"{len(made)} changes")


def test_a_failure_is_reduced_to_the_changes_that_matter_and_kept(tmp_path):
    trial = Trial(Planted, 0, tmp_path)
    number = next(n for n in range(100) if Chance(0, "planted", n).count == 4)
    verdict, _ = trial.try_case(number)
    assert verdict.startswith("AssertionError")
    failure = trial.failure(number, verdict)
    trial.close()
    assert failure["again"] == f"--target planted --seed 0 --case {number} --only 1"
    assert failure["input"] == "1 changes"
    kept = tmp_path / f"planted-0-{number}"
    assert {file.name for file in kept.iterdir()} == {"x", "input.txt", "verdict.txt"}


def test_the_same_seed_gives_the_same_cases():
    def drawn(seed):
        chance = Chance(seed, "data", 7)
        first = chance.rng.random()
        trees = [mutate_tree({"a": [1, {"b": "c"}]}, rng) for rng in chance.changes()]
        return first, repr(trees), [mutate_bytes(b"0123456789", r) for r in chance.changes()]

    assert drawn(0) == drawn(0)
    assert drawn(0) != drawn(1)


def test_tallies_survive_a_process(tmp_path):
    tally = Tally("data", USUAL, 1, None, 2.5, next=7, valid=3, failures=[{"case": 1}])
    tally.write(tmp_path / "0.json")
    assert dataclasses.asdict(Tally.read(tmp_path / "0.json")) == dataclasses.asdict(tally)
