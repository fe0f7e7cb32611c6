"""The gain of a policy over another as a chain of steps, each of which changes one thing."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agewise.files import json_with_checksum, read_verified_json, write_whole
from agewise.statistics import Contrast, Verdict, contrast, correct, estimate
from agewise.tables._words import (
    and_list,
    contrast_text,
    counted,
    family_text,
    points_text,
    sentence_case,
    too_few,
)
from agewise.tables.table import Cell, Column, Table

#: Who is heard at each stage from the baseline to its rival, and what differs from the one before.
_CHAIN = (
    ("{baseline}", ""),
    ("drawn, each UE as often as by {baseline}", "order in time"),
    ("drawn evenly from those that {baseline} hears", "evenness among those heard"),
    ("drawn evenly from all UEs", "coverage"),
    ("drawn evenly, as many per round as by {rival}", "number of uploads"),
    ("drawn, each UE as often as by {rival}", "unevenness of {rival}"),
    ("{rival}", "regular turns"),
)
#: What is said of the steps with each verdict.
_EFFECTS: Mapping[Verdict, str] = {
    "better": "gains are shown of",
    "worse": "losses are shown of",
    "not shown": "no effect is shown of",
    "too few seeds": "the steps are",
}
#: In a results folder.
_FILE = "explanation.json"


@dataclass(frozen=True, eq=False)
class Explanation:
    """What the gain of ``rival`` over ``baseline`` is made of.

    ``scores[seed, stage]`` are means of the test accuracy over the evaluated rounds, with those
    UEs heard that the stage says.
    """

    rival: str
    baseline: str
    seeds: Sequence[int]
    scores: NDArray[np.float64]

    @classmethod
    def read(cls, folder: Path) -> "Explanation | None":
        """Read what `write` left in a results folder; ``None`` if nothing whole is there."""
        found = read_verified_json(folder / _FILE)
        if found is None or "scores" not in found:
            return None
        scores = np.array(found["scores"], dtype=np.float64)
        return cls(found["rival"], found["baseline"], found["seeds"], scores)

    def write(self, folder: Path) -> None:
        """Keep the scores in a results folder, for the page and for machines."""
        kept = {"rival": self.rival, "baseline": self.baseline, "seeds": list(self.seeds)}
        write_whole(folder / _FILE, json_with_checksum(kept | {"scores": self.scores.tolist()}))

    @functools.cached_property
    def stages(self) -> list[tuple[str, str]]:
        """Who is heard at each stage, and what differs from the stage before."""
        names = {"rival": self.rival, "baseline": self.baseline}
        return [(heard.format(**names), changes.format(**names)) for heard, changes in _CHAIN]

    @functools.cached_property
    def steps(self) -> list[Contrast]:
        """The gain of every stage but the first over the one before, judged together."""
        pairs = pairwise(self.scores.T)
        return correct([contrast(after, before, self.seeds) for before, after in pairs])

    @property
    def coverage(self) -> Contrast:
        """What it is worth to hear all UEs evenly and not those alone that the baseline hears."""
        return self.steps[2]

    @property
    def total(self) -> Contrast:
        """The gain of the rival over the baseline, which the steps add up to."""
        return contrast(self.scores[:, -1], self.scores[:, 0], self.seeds)

    def table(self) -> Table:
        """A row per stage: what changes, who is heard, the accuracy and the step."""
        columns = [
            Column("what changes", kind="words"),
            Column("who is heard", kind="words"),
            Column("accuracy", ".1f", 100.0),
            Column("step", ".1f", 100.0),
        ]
        rows: list[list[Cell]] = [
            [changes, heard, estimate(score), gain]
            for (heard, changes), score, gain in zip(
                self.stages, self.scores.T, [None, *self.steps], strict=True
            )
        ]
        rows.append(["all of it", f"{self.rival} minus {self.baseline}", None, self.total])
        title = f"What the gain of {self.rival} over {self.baseline} is made of"
        note = family_text(self.steps, "the row above", "steps")
        seeds = counted(len(self.seeds), "seed")
        return Table(f"{title}: mean accuracy in %, steps in points ({seeds})", columns, rows, note)

    @property
    def sentences(self) -> list[str]:
        """Say whether there is a gain, and which steps are shown to make it up."""
        rival, baseline, gain = self.rival, self.baseline, self.total
        seeds, few = counted(gain.pairs, "seed"), sentence_case(too_few(gain.pairs))
        head = {
            "better": f"{rival} learns better than {baseline}",
            "worse": f"{rival} learns worse than {baseline}",
            "not shown": f"No difference between {rival} and {baseline} is shown",
            "too few seeds": f"{few}; {rival} minus {baseline}",
        }[gain.verdict]
        told: dict[Verdict, list[str]] = {verdict: [] for verdict in _EFFECTS}
        for (_, changes), step in zip(self.stages[1:], self.steps, strict=True):
            told[step.verdict].append(f"{changes} ({points_text(step.mean)})")
        said = [f"{_EFFECTS[verdict]} {and_list(x)}" for verdict, x in told.items() if x]
        return [
            f"{head}: {contrast_text(gain)}, in points of mean accuracy over {seeds}.",
            f"{sentence_case('; '.join(said))}.",
        ]

    def to_json(self) -> dict[str, object]:
        """All that was measured and what it says, for machines."""
        said = {name: getattr(self, name) for name in ("rival", "baseline", "seeds", "sentences")}
        steps = [
            {"heard": heard, "changes": changes, "accuracy": accuracy, **step}
            for (heard, changes), accuracy, step in zip(
                self.stages, self.scores.mean(axis=0), [{}, *map(asdict, self.steps)], strict=True
            )
        ]
        return said | {"steps": steps, "total": asdict(self.total)}
