"""A race: who is dropped, what the budget leaves room for, and what is said in the end."""

import json
import os
from dataclasses import dataclass

import numpy as np
import pytest

import agewise
from agewise.experiment import DryRun, Folder
from agewise.policies import make_policy
from agewise.scheduling import Policy
from agewise.studies import racing as study
from agewise.studies.racing import _FRESH, _Course, _plan, _surely_behind
from agewise.tables import Racer, RaceTable
from tests.scenarios import tiny

QUIET = {"engine": "inline", "quiet": True}
SCENARIO = tiny(**{"run.rounds": 4})
PAIR = ["age-based", "max-pack"]


def test_those_surely_behind_are_dropped_and_no_others():
    rng = np.random.default_rng(0)
    noise = rng.normal(0.0, 0.01, (4, 20))
    scores = np.array([[0.80], [0.80], [0.795], [0.70]]) + rng.normal(0.0, 0.05, 20) + noise
    assert _surely_behind(scores, 4).tolist() == [False, False, False, True]
    assert not _surely_behind(scores[:, :4], 4).any(), "too few seeds"


@pytest.mark.parametrize("seeds", [8, 20])
def test_the_best_is_seldom_dropped(seeds, monkeypatch):
    """Ten forms of which nine are just as good: over four looks in at most 5% of the races."""
    monkeypatch.setattr("agewise.statistics._DRAWS", 5000)
    rng, dropped = np.random.default_rng(1), 0
    for _ in range(200):
        dropped += _surely_behind(rng.normal(0.0, 1.0, (10, seeds)), 4)[0]
    assert dropped <= 0.05 / 4 * 200


class Drawn(_Course):
    """A race over given means of forms, with noise that follows from the seed."""

    def run(self, forms, seeds):
        self.spent |= {(form, seed) for form in forms for seed in seeds}
        for form in forms:
            noise = [np.random.default_rng([seed, *map(ord, str(form.policy))]) for seed in seeds]
            drawn = [self.means[str(form.policy)] + 0.005 * rng.normal() for rng in noise]
            self.scores.setdefault(form, {}).update(zip(seeds, drawn, strict=True))


def drawn(means, limit):
    course = Drawn(_plan(SCENARIO, list(means), ["average"]), None, None, limit)
    course.means = means
    return course, sorted(course.plan.forms, key=course.name)


MEANS = {
    str(make_policy(f"age-based:packing=auction,alpha={-n}")): 0.7 + 0.02 * n for n in range(1, 9)
}


def test_the_best_reach_the_end():
    course, entered = drawn(MEANS, 8 * 3 + 1000)
    last = course.race(entered)
    assert [str(form.policy) for form in last] == [list(MEANS)[7], list(MEANS)[6]]
    assert len(course.scores[last[0]]) == 8, "it leads alone as soon as one can tell"
    assert set(course.fates.values()) == {"surely behind after 8 seeds"}


@pytest.mark.parametrize("limit", [64, 65, 90, 150, 300, 1000])
def test_the_budget_is_kept(limit):
    alike = dict.fromkeys(MEANS, 0.8)
    course, entered = drawn(alike, limit)
    last = course.race(entered)
    assert 2 <= len(last) <= 5
    assert len(course.spent) + 20 * len(last) <= limit
    raced = {seed for _, seed in course.spent}
    assert not raced & set(_FRESH)
    assert limit < 1000 or raced == set(range(40)), "room for all heats"


def small(out, **options):
    return agewise.race(SCENARIO, PAIR, out, aggregations=["average"], **QUIET | options)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("race") / "out"
    return small(out, budget=60)


def test_a_race_measures_and_says_what_to_take(finished):
    table = finished.table
    assert table.runs == len(finished.result.entries) <= table.limit == 60
    assert len(table.racers) == 4, "two policies in two packings"
    assert f"Take {table.winner}: " in table.answer
    assert f"on {len(table.fresh_seeds)} fresh seeds" in table.answer
    seeds = {one.seed for one in finished.result.entries}
    assert seeds == {0, 1, 2} | set(table.fresh_seeds)
    best = table.last[0]
    runs = finished.result.histories(best.policy, {"learn.aggregation": {"kind": "average"}})
    assert best.fresh == [np.nanmean(runs[seed].accuracy) for seed in table.fresh_seeds]
    assert "Tried: 4 forms: 2 policies" in table.tried


def test_a_race_resumes_to_the_same_bytes(finished, tmp_path, monkeypatch):
    calls = []

    def interrupted(*given):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return execute(*given)

    execute = study.execute
    monkeypatch.setattr(study, "execute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        small(tmp_path / "out", budget=60)
    next((tmp_path / "out" / "runs").iterdir()).unlink()
    small(tmp_path / "out", budget=60)
    assert content(tmp_path / "out") == content(finished.result.path)


def content(folder):
    files = [file for file in folder.rglob("*") if file.is_file() and file.name != "log.txt"]
    return {file.relative_to(folder): file.read_bytes() for file in files}


@pytest.fixture
def clocked(monkeypatch):
    """Files of runs come half a second after each other, and long after the race began."""

    def runs(plan, out, options):
        before = set(Folder(out).file_names())
        result = execute(plan, out, options)
        for place, name in enumerate(sorted(Folder(out).file_names() - before)):
            os.utime(result.path / "runs" / name, (time := 2e9 + 0.5 * place, time))
        return result

    execute = study.execute
    monkeypatch.setattr(study, "execute", runs)


@pytest.mark.usefixtures("clocked")
def test_a_time_becomes_a_number_of_runs_once(tmp_path, monkeypatch):
    """A run takes half a second, so that half a minute is 60; workers' start does not count."""
    assert small(tmp_path, budget="0.5 min").table.limit == 60
    monkeypatch.undo()
    assert small(tmp_path, budget="0.5 min").table.limit == 60, "without a look at the clock"
    assert small(tmp_path, budget="1 min").table.limit == 120
    assert json.loads((tmp_path / "race.json").read_bytes())["seconds_a_run"] == 0.5


@pytest.mark.usefixtures("clocked")
def test_a_short_time_leaves_out_aggregations_and_then_packing_in_order(tmp_path):
    """62 runs: four forms with three seeds and the last comparison, beside four tried once."""
    both = ["average", study._AGGREGATIONS[0]]
    found = agewise.race(SCENARIO, PAIR, tmp_path / "a", aggregations=both, budget="31s", **QUIET)
    assert {one.aggregation for one in found.table.last} == {"average"}
    assert "4 with memory left out for lack of time" in found.table.tried
    assert found.table.runs <= found.table.limit == 62
    found = small(tmp_path / "b", budget="25s")
    assert "2 packed in order left out for lack of time" in found.table.tried
    assert found.table.runs <= found.table.limit == 50


@pytest.mark.usefixtures("clocked")
def test_a_time_that_turns_out_too_short_is_not_remembered(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"a budget of 40 runs \(20s\) is too small: 2 forms"):
        small(tmp_path, budget="20s")
    assert not (tmp_path / "race.json").exists()
    monkeypatch.undo()
    assert small(tmp_path, budget="20s").table.limit > 40


def test_forms_that_are_the_same_go_on_once(tmp_path):
    """In rounds the reduction of age is the age, and the freshest are those of max-pack."""
    given = {"aggregations": ["average"], "budget": 80} | QUIET
    found = agewise.race(SCENARIO, [*PAIR, "age-reduction", "freshest"], tmp_path, **given)
    same = [
        one for one in found.table.racers if one.fate == "equal to another on the first 3 seeds"
    ]
    assert len(same) == 4
    others = [one for one in found.table.racers if one not in same]
    for one in same:
        assert [one.scores] == [each.scores[:3] for each in others if each.scores[:3] == one.scores]
    assert "4 equal to another on the first 3 seeds" in found.table.tried


def test_what_differs_only_where_updates_are_late_races_only_there():
    late = {"age-reduction", "freshest", "version-age"}
    in_rounds = {form.policy.name for form in _plan(SCENARIO, None, None).forms}
    in_periods = {
        form.policy.name for form in _plan(agewise.Scenario.preset("periodic"), None, None).forms
    }
    assert in_periods - in_rounds == late


@dataclass(frozen=True)
class Broken(Policy):
    name = "broken"

    def utility(self, view, rng):
        raise ValueError("it cannot")


def test_forms_that_fail_are_told_and_left_out(tmp_path):
    found = agewise.race(
        SCENARIO, ["round-robin", "fed-cs", Broken()], tmp_path, aggregations=["average"],
        budget=60, **QUIET,
    )  # fmt: skip
    assert len(found.table.racers) == 2
    assert found.table.failed == ["broken with average: it cannot"]


def test_a_dry_run_says_what_it_takes(tmp_path):
    with pytest.raises(DryRun, match=r"^60 runs; 240 rounds to go"):
        small(tmp_path / "none", budget=60, dry_run=True)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0}, "budget must be a number of runs"),
        ({"budget": "0s"}, "above 0"),
        ({"budget": "soon"}, "'soon'"),
        ({"budget": 51}, "a budget of 51 runs is too small: 4 forms with 3 seeds each"),
        ({"budget": "0.1s"}, r"a budget of \d run.* \(0.1s\) is too small: 2 forms with 3 seeds"),
        ({"policies": ["round-robin"]}, "a race takes two forms at least"),
        ({"policies": ["no-such"]}, "unknown policy 'no-such'"),
        ({"aggregations": ["no-such"]}, "learn.aggregation"),
        ({"engine": "no-such"}, "no-such"),
    ],
)
def test_mistakes_are_told_before_anything_runs(tmp_path, options, message):
    given = {"policies": PAIR, "aggregations": ["average"], **QUIET, **options}
    with pytest.raises(ValueError, match=message) as told:
        agewise.race(SCENARIO, out=tmp_path / "none", **given)
    assert "\n" not in str(told.value) or "learn.aggregation" in message
    assert not (tmp_path / "none").exists()


def table(*fresh):
    racers = [
        Racer(name, "average", [0.8, 0.8], scores)
        for name, scores in zip(("a", "b", "c"), fresh, strict=False)
    ]
    left = [Racer("d", "average", [0.5], fate="surely behind after 8 seeds")] * 2
    return RaceTable([*racers, *left], len(racers), range(20), ["average"], 80, 90, ["e: no"])


def test_what_is_said():
    rng = np.random.default_rng(0)
    first, noise = 0.8 + 0.01 * rng.normal(size=20), 0.001 * rng.normal(size=20)
    same = first + noise - noise.mean()
    better, worse, equal = first - 0.05 + noise, first + 0.05 + noise, same
    said = table(first, better, equal)
    assert said.winner is said.racers[0]
    assert "it is better than b with average (+5.0)" in said.answer
    assert "a difference from c with average (-0.00) is not shown with 20 seeds" in said.answer
    assert "in 80 of 90 runs: 2 surely behind after 8 seeds." in said.tried
    assert "Left out: e: no." in said.tried
    assert table(first, equal, worse).answer.startswith("Take c with average: the first of the")
    assert len(said.table().rows) == 3
    assert said.to_json()["winner"] == "a with average"
