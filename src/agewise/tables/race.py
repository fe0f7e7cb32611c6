"""What a race found: those that came to its last comparison, and what became of the others."""

import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from agewise.statistics import Contrast, Verdict, contrast, correct, estimate
from agewise.tables._words import (
    and_list,
    counted,
    estimate_text,
    family_text,
    not_shown,
    points_text,
    sentence_case,
)
from agewise.tables.table import Cell, Column, PolicyName, Table

#: What is said of the others, by what the winner is shown to be beside them.
_TOLD: dict[Verdict, str] = {
    "better": "it is better than {names}",
    "not shown": "a difference from {names} is {not_shown}",
    "worse": "{names} is shown to be better",
    "too few seeds": "there are too few seeds to tell it from {names}",
}


@dataclass(frozen=True, eq=False)
class Racer:
    """One policy in one packing under one aggregation: its scores by seed, and what became of it.

    ``scores`` are those of the race, ``fresh`` those of the last comparison, which other seeds
    decide; both are means of the test accuracy over the evaluated rounds.
    """

    policy: str
    aggregation: str
    scores: Sequence[float]
    fresh: Sequence[float] = ()
    fate: str = ""

    def __str__(self) -> str:
        return f"{self.policy} with {self.aggregation}"


@dataclass(frozen=True, eq=False, repr=False)
class RaceTable:
    """All that raced, by rank; the first ``finalists`` met again on ``fresh_seeds``.

    ``aggregations`` have their parameters; ``runs`` of at most ``limit`` were spent; ``failed``
    says which could not run, and why.
    """

    racers: Sequence[Racer]
    finalists: int
    fresh_seeds: Sequence[int]
    aggregations: Sequence[str]
    runs: int
    limit: int
    failed: Sequence[str]

    def __repr__(self) -> str:
        return "\n".join([self.answer, self.table().to_text(), self.tried])

    @property
    def last(self) -> Sequence[Racer]:
        """Those of the last comparison, the first of the race before the others."""
        return self.racers[: self.finalists]

    @functools.cached_property
    def gains(self) -> list[Contrast]:
        """What the first of the race gains over each other finalist on fresh seeds, together."""
        first, *others = self.last
        return correct([contrast(first.fresh, one.fresh, self.fresh_seeds) for one in others])

    @property
    def winner(self) -> Racer:
        """The first of the race, unless fresh seeds show another to be better."""
        better = [
            (gain.mean, place)
            for place, gain in enumerate(self.gains, start=1)
            if gain.verdict == "worse"
        ]
        return self.last[min(better)[1]] if better else self.last[0]

    @property
    def answer(self) -> str:
        """One sentence: what to take, its accuracy, and how it compares on fresh seeds."""
        first, *others = self.last
        seeds = len(self.fresh_seeds)
        told: dict[Verdict, list[str]] = {verdict: [] for verdict in _TOLD}
        for one, gain in zip(others, self.gains, strict=True):
            told[gain.verdict].append(f"{one} ({points_text(gain.mean)})")
        parts = [
            _TOLD[verdict].format(names=and_list(names), not_shown=not_shown(seeds))
            for verdict, names in told.items()
            if names
        ]
        mean = f"{estimate_text(estimate(first.fresh))} % mean accuracy on {seeds} fresh seeds"
        if self.winner is not first:
            return f"Take {self.winner}: the first of the race, {first}, has {mean}; {parts[-1]}."
        return f"Take {first}: {mean}; {'; '.join(parts)}."

    @property
    def tried(self) -> str:
        """What was tried, and what became of it."""
        fates = Counter(racer.fate for racer in self.racers[self.finalists :])
        policies = {racer.policy.partition(":")[0] for racer in self.racers}
        count = f"{len(policies)} {'policy' if len(policies) == 1 else 'policies'}"
        among = f"{count} in their packings with {and_list(self.aggregations)}"
        ends = "; ".join(f"{number} {fate}" for fate, number in fates.items())
        forms, spent = counted(len(self.racers), "form"), f"{self.runs:,} of {self.limit:,} runs"
        said = f"Tried: {forms}: {among}, in {spent}{f': {ends}' if ends else ''}."
        return "\n".join([said, *(f"Left out: {sentence}." for sentence in self.failed)])

    def table(self) -> Table:
        """Those of the last comparison: accuracy in the race and on fresh seeds, first minus it."""
        columns = [
            Column("policy", kind="policy"),
            Column("aggregation", kind="words"),
            Column("in the\nrace", ".1f", 100.0),
            Column("seeds"),
            Column("on fresh\nseeds", ".1f", 100.0),
            Column("the first\nminus it", ".1f", 100.0),
        ]
        rows: list[list[Cell]] = []
        for place, (one, gain) in enumerate(zip(self.last, [None, *self.gains], strict=True)):
            race = estimate(one.scores).mean
            name = PolicyName(one.policy, place)
            rows.append([name, one.aggregation, race, len(one.scores), estimate(one.fresh), gain])
        title = f"Mean test accuracy in %: the last {len(rows)}"
        note = family_text(self.gains, "the first", "finalists")
        return Table(
            f"{title}, on {counted(len(self.fresh_seeds), 'fresh seed')}", columns, rows, note
        )

    def to_json(self) -> dict[str, object]:
        """All that was measured and what it says, for machines."""
        racers = [
            {
                "policy": one.policy,
                "aggregation": one.aggregation,
                "scores": list(one.scores),
                "fresh": list(one.fresh),
                "fate": sentence_case(one.fate) or "in the last comparison",
            }
            for one in self.racers
        ]
        gains = [{"mean": x.mean, "low": x.low, "high": x.high, "p": x.p} for x in self.gains]
        return {
            "answer": self.answer,
            "winner": str(self.winner),
            "aggregations": list(self.aggregations),
            "runs": self.runs,
            "limit": self.limit,
            "fresh_seeds": list(self.fresh_seeds),
            "first_minus": gains,
            "racers": racers,
            "failed": list(self.failed),
        }
