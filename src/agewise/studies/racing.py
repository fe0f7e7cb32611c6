"""A race on the user's own scenario: every policy, packing and aggregation, measured.

All start with a few seeds. Paired tests, corrected for all that run and for every time one looks,
drop those that are surely behind; of the others as many get more seeds, best first, as the budget
has room for. The last of them meet again on seeds that the race has not seen, for on the old ones
the first of many is partly the luckiest.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agewise.checks import path_of, require_list, short
from agewise.experiment import DryRun, Folder, Plan, Result, Run, RunOptions, execute, forecast
from agewise.experiment._progress import say
from agewise.files import json_with_checksum, read_verified_json, write_whole
from agewise.policies import make_policy, names
from agewise.records import PolicyKey
from agewise.resources import expected_seconds
from agewise.scenario import Scenario, require_scenario, short_hash
from agewise.scheduling import Policy
from agewise.spectrum import Greedy, InOrder
from agewise.statistics import LEVELS, contrast, correct
from agewise.tables import Racer, RaceTable, Variation
from agewise.tables._words import counted, value_text

#: Seeds that those who still run have after each heat, counted from 0.
_HEATS: Final = (3, 8, 20, 40)
#: Seeds of the last comparison: the first of these, at least so many, for at most so many forms.
_FRESH: Final = range(1000, 1100)
_FEWEST_FRESH, _MOST_LAST = 20, 5
#: Runs for each form by default.
_RUNS_EACH: Final = 6
#: Evaluations in a run: more say hardly anything about its mean accuracy, and take half the time.
_EVALUATIONS: Final = 20
_PACKINGS: Final = (Greedy(), InOrder())
#: What these differ in from age-based and max-pack shows only where updates arrive late.
LATE: Final = ("age-reduction", "freshest", "version-age")
_FIELD: Final = "learn.aggregation"
#: What runs beside the scenario's own aggregation.
_AGGREGATIONS: Final[tuple[Variation, ...]] = (
    {"kind": "memory", "discount": {"kind": "fixed", "rate": 0.1}},
    {"kind": "adam", "server_step": 0.03, "beta_1": 0.9, "beta_2": 0.99, "tau": 0.001},
)
_TIME: Final = re.compile(r"(\d+(?:\.\d+)?) ?(s|min|h)")
_UNITS: Final = {"s": 1.0, "min": 60.0, "h": 3600.0}
#: In the results folder.
_FILE: Final = "race.json"


class _Form(NamedTuple):
    """One policy in one packing, under the aggregation of this number."""

    policy: PolicyKey
    aggregation: int


@dataclass(frozen=True, eq=False)
class _Heat(Plan):
    """A plan of some of the combinations of its policies and aggregations."""

    forms: frozenset[_Form] = frozenset()

    def runs(self) -> list[Run]:
        """Return the runs of those that are still in the race."""
        found = super().runs()
        return [one for one in found if self.form(one.policy.key, one.variation) in self.forms]

    def form(self, policy: PolicyKey, variation: Variation) -> _Form:
        """Return the form that a run is of."""
        return _Form(policy, self.variations.index(variation))


@dataclass(frozen=True, eq=False)
class Race:
    """Runs of a race, and what they say."""

    result: Result
    table: RaceTable


def race(
    scenario: Scenario,
    policies: Sequence[Policy | str] | None = None,
    out: Path | str = "runs/race",
    *,
    aggregations: Sequence[str | Variation] | None = None,
    budget: int | str | None = None,
    **options: Any,
) -> Race:
    """Measure which policy, packing and aggregation learn best on this scenario.

    These policies, or by default all that can differ in its pace; one that is given by name without
    a packing runs greedily packed and in order, where it can. ``aggregations`` are the scenario's
    own, memory and Adam by default. ``budget`` is the largest number of runs, six for each form by
    default, or a time such as "90s", which is made a number of runs by how long the first runs
    take; one too short for all forms leaves out the last aggregations, and then packing in order.
    The folder ``out`` resumes. The other options are those of `agewise.compare`.
    """
    chosen = RunOptions.of(options)
    course = _Course(_plan(scenario, policies, aggregations), path_of("out", out), chosen)
    entered = course.prepare(sorted(course.plan.forms, key=course.name), budget)
    finalists = course.race(entered)
    room = (course.limit - len(course.spent)) // len(finalists)
    fresh = _FRESH[: min(max(room, _FEWEST_FRESH), len(_FRESH))]
    course.run(finalists, fresh)
    course.require_two(finalists)
    finalists = [form for form in finalists if form not in course.failed]
    table = course.table(finalists, fresh)
    course.keep(table.to_json())
    return Race(Result.open(course.out), table)


@dataclass(eq=False)
class _Course:
    """A race underway: ``scores[form]`` by seed, who is out and why, and the runs it took."""

    plan: _Heat
    out: Path
    options: RunOptions
    limit: int = 0
    scores: dict[_Form, dict[int, float]] = field(default_factory=dict)
    fates: dict[_Form, str] = field(default_factory=dict)
    failed: dict[_Form, str] = field(default_factory=dict)
    spent: set[tuple[_Form, int]] = field(default_factory=set)
    about: dict[str, Any] = field(default_factory=dict)

    def prepare(self, entered: Sequence[_Form], budget: int | str | None) -> list[_Form]:
        """Return who has room in the budget, as a number of runs, and say what the race takes."""
        self.about["scenario"] = short_hash(self.plan.scenario)
        self.about["forms"] = [self.name(form) for form in entered]
        first = self.heat(entered, range(_HEATS[0]))
        told = forecast({self.out: first}, self.out, self.options)
        kept = read_verified_json(self.out / _FILE) or {}
        known = kept.items() >= self.about.items() and "seconds_a_run" in kept
        a_run = expected_seconds(self.plan.scenario) / told.processes
        a_run = kept["seconds_a_run"] if known else a_run
        runs, seconds = _budget(budget)
        self.limit = int(seconds / a_run) if seconds else runs or _RUNS_EACH * len(entered)
        racing = self.fitting(entered, budget)
        if seconds is not None and not self.options.dry_run:
            measured = self._measured_run(entered)
            a_run = a_run if known else measured or a_run
            self.limit = int(seconds / a_run)
            racing = self.fitting(entered, budget)
            self.about["seconds_a_run"] = a_run
            self.keep({})
        self.fates |= {form: self._untried(form, racing) for form in entered if form not in racing}
        to_go = self.limit - told.finished
        rounds = to_go * self.plan.scenario.run.rounds
        told = replace(told, runs=self.limit, rounds=rounds, seconds=to_go * a_run)
        if self.options.dry_run:
            raise DryRun(told)
        say(f"{counted(len(racing), 'form')}, at most {told}", quiet=self.options.quiet)
        return racing

    def fitting(self, entered: Sequence[_Form], budget: int | str | None) -> list[_Form]:
        """Return as many of these as a time has room for; ``ValueError`` if that is too few."""
        racing, timed = list(entered), _budget(budget)[1] is not None
        while (least := self.first_runs(racing) + 2 * _FEWEST_FRESH) > self.limit:
            fewer = _fewer(racing) if timed else []
            if not 2 <= len(fewer) < len(racing):
                within = f" ({budget})" if timed else ""
                raise ValueError(
                    f"a budget of {counted(self.limit, 'run')}{within} is too small: {len(racing)} "
                    f"forms with {_HEATS[0]} seeds each and a last comparison of two take "
                    f"{least:,} runs: give more, or fewer policies"
                )
            racing = fewer
        return racing

    def first_runs(self, racing: Sequence[_Form]) -> int:
        """Return how many runs are spent once these have the seeds of the first heat."""
        return len(self.spent | {(form, seed) for form in racing for seed in range(_HEATS[0])})

    def _untried(self, form: _Form, racing: Sequence[_Form]) -> str:
        """Return why a form does not race."""
        with_it = any(one.aggregation == form.aggregation for one in racing)
        what = "packed in order" if with_it else f"with {self._aggregation(form)}"
        return f"{what} left out for lack of time"

    def _measured_run(self, entered: Sequence[_Form]) -> float:
        """Return how many seconds one run takes, by when those of the first seed came.

        Workers start before the first of them came. It is 0 if fewer than two are new.
        """
        folder = Folder(self.out)
        before = folder.file_names()
        self.run(entered, [0])
        new = folder.file_names() - before
        times = [(folder.runs / name).stat().st_mtime for name in new]
        return (max(times) - min(times)) / (len(times) - 1) if len(times) > 1 else 0.0

    def keep(self, found: Mapping[str, object]) -> None:
        """Write what the race is of, and what was found, into the results folder."""
        write_whole(self.out / _FILE, json_with_checksum({**self.about, **found}))

    def heat(self, forms: Sequence[_Form], seeds: Sequence[int]) -> _Heat:
        """Return the plan of these forms on these seeds."""
        used = {form.policy for form in forms}
        policies = [policy for policy in self.plan.policies if policy.key in used]
        return replace(self.plan, policies=policies, seeds=list(seeds), forms=frozenset(forms))

    def run(self, forms: Sequence[_Form], seeds: Sequence[int]) -> None:
        """Run these forms on these seeds, as far as that is not done; those that fail are out."""
        heat = self.heat(forms, seeds)
        result = execute(heat, self.out, self.options)
        self.spent |= {(form, seed) for form in forms for seed in seeds}
        for one in result.failed:
            form = heat.form(one.policy, one.variation)
            self.failed.setdefault(form, f"{self.name(form)}: {one.reason}")
        for form in forms:
            runs = result.histories(form.policy, heat.variations[form.aggregation])
            found = {seed: _score(runs[seed].accuracy) for seed in seeds if seed in runs}
            self.scores.setdefault(form, {}).update(found)

    def race(self, entered: Sequence[_Form]) -> list[_Form]:
        """Return those of the last comparison, best first, after as many heats as there is room.

        What is left for heats is divided evenly among them; the last comparison has its own part.
        """
        beyond = self.limit - self.first_runs(entered)
        places = min(max(beyond // (2 * _FEWEST_FRESH), 2), _MOST_LAST)
        running, order, held = list(entered), list[_Form](), 0
        twins = list[_Form]()
        for look, seeds in enumerate(_HEATS, start=1):
            if look > 1:
                room = self.limit - len(self.spent) - places * _FEWEST_FRESH
                more, heats = seeds - held, len(_HEATS) - look + 1
                follow = max(room, 0) // (more * heats)
                if min(follow, len(running)) < 2:
                    break
                self.fates |= dict.fromkeys(running[follow:], f"left aside after {held} seeds")
                running = running[:follow]
            self.run(running, range(seeds))
            running = [form for form in running if form not in self.failed]
            self.require_two(running)
            scores = np.array([[self.scores[form][s] for s in range(seeds)] for form in running])
            if look == 1:
                _, firsts = np.unique(scores, axis=0, return_index=True)
                firsts.sort()
                twins = [form for place, form in enumerate(running) if place not in firsts]
                self.fates |= dict.fromkeys(twins, f"equal to another on the first {seeds} seeds")
                running, scores = [running[place] for place in firsts], scores[firsts]
            behind = _surely_behind(scores, len(_HEATS))
            ranks = np.argsort(-scores.mean(axis=1), kind="stable").tolist()
            out = [running[rank] for rank in ranks if behind[rank]]
            running = [running[rank] for rank in ranks if not behind[rank]]
            held, order = seeds, running + out + twins
            self.fates |= dict.fromkeys(out, f"surely behind after {seeds} seeds")
        # One that leads alone meets the next best, so that there is something to compare it with.
        return order[: max(2, min(places, len(running)))]

    def require_two(self, forms: Sequence[_Form]) -> None:
        """Raise ``ValueError`` unless two of these can run."""
        if len([form for form in forms if form not in self.failed]) < 2:
            raise ValueError(f"fewer than two forms can run: {next(iter(self.failed.values()))}")

    def table(self, finalists: Sequence[_Form], fresh: Sequence[int]) -> RaceTable:
        """Return what the race says: finalists first, then the others by how far they came."""
        others = [form for form in self.scores if form not in finalists and form not in self.failed]
        others.sort(key=lambda form: (-len(self.scores[form]), -self._mean(form)))
        racers = [
            Racer(
                str(form.policy),
                self._aggregation(form),
                [score for seed, score in self.scores[form].items() if seed < _FRESH[0]],
                [self.scores[form][seed] for seed in fresh] if form in finalists else [],
                "" if form in finalists else self.fates.get(form, "not among the last"),
            )
            for form in [*finalists, *others]
        ]
        spent, failed = len(self.spent), list(self.failed.values())
        return RaceTable(
            racers, len(finalists), list(fresh), self.aggregations, spent, self.limit, failed
        )

    def name(self, form: _Form) -> str:
        """Return what a form is called."""
        return f"{form.policy} with {self._aggregation(form)}"

    def _aggregation(self, form: _Form) -> str:
        """Return the kind of its aggregation; with its parameters where that names several."""
        kinds = [variation[_FIELD]["kind"] for variation in self.plan.variations]
        kind = kinds[form.aggregation]
        return kind if kinds.count(kind) == 1 else self.aggregations[form.aggregation]

    @property
    def aggregations(self) -> list[str]:
        """The aggregations with their parameters."""
        return [value_text(variation[_FIELD]) for variation in self.plan.variations]

    def _mean(self, form: _Form) -> float:
        return float(np.mean(list(self.scores[form].values())))


def _fewer(racing: Sequence[_Form]) -> list[_Form]:
    """Return these without the last aggregation; if there is one alone, without those in order."""
    last = max(form.aggregation for form in racing)
    if last > min(form.aggregation for form in racing):
        return [form for form in racing if form.aggregation < last]
    return [form for form in racing if form.policy.parameters.get("packing") != "in-order"]


def _surely_behind(scores: NDArray[np.float64], looks: int) -> NDArray[np.bool_]:
    """``[form]``: whether ``scores[form, seed]`` are shown to be lower than those of the best mean.

    Paired tests, corrected for all forms, and again for the ``looks`` of a race. The best of all
    is then dropped with a chance of at most 5%, for whichever leads by luck is one of the forms.
    """
    best = scores[scores.mean(axis=1).argmax()]
    judged = correct([contrast(one, best) for one in scores])
    return np.array([x.verdict == "worse" and looks * x.p < LEVELS[0] for x in judged])


def _score(accuracy: NDArray[np.float64]) -> float:
    """Mean test accuracy over the evaluated rounds."""
    return float(accuracy[~np.isnan(accuracy)].mean())


def _budget(given: int | str | None) -> tuple[int | None, float | None]:
    """Return runs or seconds, whichever is meant.

    >>> _budget("300"), _budget("1.5 min"), _budget(None)
    ((300, None), (None, 90.0), (None, None))
    """
    if given is None:
        return None, None
    if isinstance(given, str) and (found := _TIME.fullmatch(given.strip())):
        seconds = float(found[1]) * _UNITS[found[2]]
        if seconds > 0:
            return None, seconds
    written = int(given) if isinstance(given, str) and given.strip().isdigit() else given
    if type(written) is int and written > 0:
        return written, None
    raise ValueError(
        f"budget must be a number of runs, as 600, or a time, as 90s, 10min or 2h, above 0, not "
        f"{short(repr(given))}"
    )


def _plan(
    scenario: Scenario,
    policies: Sequence[Policy | str] | None,
    aggregations: Sequence[str | Variation] | None,
) -> _Heat:
    """Plan what enters the race; ``ValueError`` unless there are two forms."""
    require_scenario(scenario)
    seldom = max(scenario.run.evaluate_every, scenario.run.rounds // _EVALUATIONS)
    scenario = scenario.with_(**{"run.evaluate_every": seldom})
    for name, listed in {"policies": policies, "aggregations": aggregations}.items():
        require_list(name, listed or ())
    given: Sequence[str | Variation] = aggregations or ({}, *_AGGREGATIONS)
    changed = [scenario.with_(**{_FIELD: each}) if each else scenario for each in given]
    variations = [{_FIELD: each.resolved()["learn"]["aggregation"]} for each in changed]
    late = scenario.pace.kind != "rounds"
    usual = [name for name in names() if late or name not in LATE]
    entered = [form for policy in policies or usual for form in _packed(policy)]
    plan = Plan.of(scenario, entered, range(_HEATS[0]), variations)
    forms = frozenset(
        _Form(key, number) for key in plan.keys for number in range(len(plan.variations))
    )
    if len(forms) < 2:
        raise ValueError(
            f"a race takes two forms at least, and {plan.policies[0]} with one aggregation is one: "
            "give more policies or aggregations"
        )
    return _Heat(scenario, plan.policies, plan.seeds, plan.variations, None, forms)


def _packed(policy: Policy | str) -> list[Policy]:
    """Return a policy in the packings of a race; as it is where it has none, or one was given."""
    made = make_policy(policy)
    if policy is made or "packing" not in made.parameters or "packing=" in str(policy):
        return [made]
    return [replace(made, packing=packing) for packing in _PACKINGS]
