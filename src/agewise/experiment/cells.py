"""Cells: one run each, of a policy, a seed and a variation of the scenario."""

import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agewise.checks import whole_number
from agewise.policies import Policy, make_policy
from agewise.scenario import Scenario
from agewise.simulate import simulate

#: What a variation changes: dotted names of the scenario with their values.
Variation = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Cell:
    """One run: the base scenario with a variation, under a policy, from a seed."""

    scenario: Scenario
    policy: Policy
    seed: int
    variation: Variation

    @property
    def file_name(self) -> str:
        """Readable, and different for different cells whatever their texts hold."""
        varied = ",".join(f"{key.split('.')[-1]}={value}" for key, value in self.variation.items())
        words = [_plain(varied)] if varied else []
        words += [_plain(str(self.policy)), f"seed-{self.seed:04d}"]
        exact = json.dumps([dict(self.variation), str(self.policy)], sort_keys=True, default=str)
        mark = hashlib.sha256(exact.encode()).hexdigest()[:8]
        return f"{'--'.join(words)}--{mark}.parquet"


def compute(cell: Cell) -> bytes:
    """Run the cell: the content of its file."""
    return simulate(cell.scenario, cell.policy, cell.seed).to_bytes()


def compute_all(cells: Sequence[Cell]) -> tuple[list[bytes], Exception | None]:
    """Run cells one after the other; what was done before one failed, and how it failed."""
    contents: list[bytes] = []
    for cell in cells:
        try:
            contents.append(compute(cell))
        except Exception as error:
            return contents, error
    return contents, None


def with_same_samples(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Cells of one seed and variation together: one worker prepares their samples once."""
    alike = itertools.groupby(cells, key=lambda cell: (cell.seed, cell.scenario))
    return [list(group) for _, group in alike]


def make_cells(
    scenario: Scenario,
    policies: Iterable[Policy],
    seeds: Iterable[int],
    variations: Sequence[Variation],
) -> list[Cell]:
    """All combinations; those that share their samples stand together, to be prepared once."""
    varied = [(dict(v), scenario.with_(**v) if v else scenario) for v in variations]
    listed = list(policies)
    return [
        Cell(changed, policy, seed, variation)
        for variation, changed in varied
        for seed in seeds
        for policy in listed
    ]


def as_policies(policies: Sequence[Policy | str] | Policy | str) -> list[Policy]:
    """Policies by name or as objects; each once."""
    given = [policies] if isinstance(policies, Policy | str) else list(policies)
    made = [make_policy(policy) for policy in given]
    if not made:
        raise ValueError("give at least one policy")
    repeated = [str(policy) for i, policy in enumerate(made) if policy in made[:i]]
    if repeated:
        raise ValueError(f"the policy {repeated[0]} is given twice")
    return made


def as_seeds(seeds: int | Iterable[int]) -> list[int]:
    """So many seeds from 0 on, or these."""
    if isinstance(seeds, int):
        return list(range(whole_number("seeds", seeds, least=1)))
    return [whole_number("seed", seed) for seed in seeds]


def product(vary: Mapping[str, Sequence[Any]]) -> list[Variation]:
    """Every combination of the values."""
    for name, values in vary.items():
        if not values:
            raise ValueError(f"{name} needs at least one value")
    return [
        dict(zip(vary, combination, strict=True))
        for combination in itertools.product(*vary.values())
    ]


def _plain(text: str) -> str:
    """Text that any file system takes."""
    return re.sub(r"[^A-Za-z0-9.=_]+", "-", text).strip("-")[:80]
