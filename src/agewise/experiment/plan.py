"""Plans: every policy from every seed under every variation of a scenario."""

import functools
import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from agewise.checks import require_memory, short, text_parameters, whole_number
from agewise.policies import AgeBased, MaxPack, Policy, make_policy
from agewise.provenance import sources_of
from agewise.records import PolicyKey, plain_value
from agewise.resources import require_resources
from agewise.scenario import Scenario, require_scenario
from agewise.tables import Variation

#: What a seed and a run take in a list of them, at least.
_SEED_BYTES, _RUN_BYTES = 40.0, 400.0
_MOST_SEEDS = 2**53
#: Those that are listed one by one: a list without an end is refused there.
_MOST_LISTED = 10**6


@dataclass(frozen=True, eq=False)
class Run:
    """One run: the scenario with its variation already made, under a policy, from a seed.

    ``sources`` are the digests of what it is computed from (`agewise.provenance`).
    """

    scenario: Scenario
    policy: Policy
    seed: int
    variation: Variation
    sources: Mapping[str, str]

    @property
    def file_name(self) -> str:
        """The name of the file that keeps it."""
        return file_name(self.variation, self.policy.key, self.seed)


@dataclass(frozen=True, eq=False)
class Plan:
    """What an experiment is to run: every policy from every seed under every variation."""

    scenario: Scenario
    policies: list[Policy]
    seeds: list[int]
    variations: list[Variation]
    baseline: Policy | PolicyKey | str | None

    @classmethod
    def of(
        cls,
        scenario: Scenario,
        policies: Sequence[Policy | str] | Policy | str,
        seeds: int | Iterable[int],
        variations: Iterable[Variation] = ({},),
        baseline: Policy | PolicyKey | str | None = None,
    ) -> "Plan":
        """Policies by name or as objects; a number of seeds, counted from 0, or a list of them."""
        require_scenario(scenario)
        plain: list[Variation] = [
            {name: plain_value(value) for name, value in varied.items()} for varied in variations
        ]
        distinct = list({variation_key(varied): varied for varied in plain}.values())
        return cls(scenario, _as_policies(policies), _as_seeds(seeds), distinct, baseline)

    @property
    def keys(self) -> list[PolicyKey]:
        """Which policies these are."""
        return [policy.key for policy in self.policies]

    def runs(self) -> list[Run]:
        """All combinations; those that share their samples stand together, to be prepared once."""
        for _, scenario, _ in self._varied:
            require_resources(scenario)
        count = len(self._varied) * len(self.seeds) * len(self.policies)
        require_memory(_RUN_BYTES * count, f"the list of {count:,} runs")
        return [
            Run(scenario, policy, seed, variation, sources[policy.key])
            for variation, scenario, sources in self._varied
            for seed in self.seeds
            for policy in self.policies
        ]

    @property
    def sources(self) -> dict[str, str]:
        """The digests of all that the runs are computed from."""
        each = [own for _, _, sources in self._varied for own in sources.values()]
        return {name: digest for own in each for name, digest in own.items()}

    @functools.cached_property
    def _varied(self) -> list[tuple[Variation, Scenario, dict[PolicyKey, dict[str, str]]]]:
        """Each variation with its scenario, and the sources of its runs by policy."""
        base = self.scenario
        varied = [(v, (base.with_(**v) if v else base).loaded()) for v in self.variations]
        return [
            (variation, scenario, {p.key: sources_of(scenario, p) for p in self.policies})
            for variation, scenario in varied
        ]


def file_name(variation: Variation, policy: PolicyKey, seed: int) -> str:
    """Readable, the same for the same run, and different for others whatever their texts hold."""
    given = {name: x for name, x in policy.parameters.items() if name not in policy.usual}
    words = [_readable(_written(variation)), _readable(policy.name, _written(given))]
    which = {"name": policy.name, "parameters": policy.parameters}
    exact = json.dumps([_same(variation), _same(which), seed], sort_keys=True)
    digest = hashlib.sha256(exact.encode()).hexdigest()[:12]
    return "--".join([*filter(None, words), f"seed-{seed:04d}"[:40], f"{digest}.parquet"])


def variation_key(variation: Variation) -> str:
    """The same text for the same variation, whatever the order and spelling of its values."""
    return json.dumps(_same(variation), sort_keys=True)


def _as_policies(policies: Sequence[Policy | str] | Policy | str) -> list[Policy]:
    """Policies by name or as objects; each once."""
    if isinstance(policies, str) or not isinstance(policies, Iterable):
        policies = [policies]
    made: dict[PolicyKey, Policy] = {}
    for policy in map(make_policy, policies):
        if policy.key in made:
            raise ValueError(f"the policy {policy} is given twice")
        made[policy.key] = policy
    if not made:
        raise ValueError("give at least one policy")
    return list(made.values())


def _as_seeds(seeds: int | Iterable[int]) -> list[int]:
    """The seeds 0 to this number, exclusive, or the given ones, each once."""
    if not isinstance(seeds, Iterable):
        count = whole_number("seeds", seeds, 1, _MOST_SEEDS)
        require_memory(_SEED_BYTES * count, f"the list of {count:,} seeds")
        return list(range(count))
    listed = [whole_number("seed", seed) for seed in itertools.islice(seeds, _MOST_LISTED + 1)]
    if not listed:
        raise ValueError("give at least one seed")
    if len(listed) > _MOST_LISTED:
        raise ValueError(f"seeds has no end, or more than {_MOST_LISTED:,}: give their number")
    return list(dict.fromkeys(listed))


def product(vary: Mapping[str, Sequence[Any]]) -> list[Variation]:
    """Every combination of the values."""
    if not isinstance(vary, Mapping):
        raise ValueError(
            f"vary must be lists of values by names of fields, not {short(repr(vary))}"
        )
    for name, values in vary.items():
        if isinstance(values, str) or not isinstance(values, Sized) or len(values) == 0:
            raise ValueError(f"{name} needs a list of at least one value, not {values!r}")
    return [
        dict(zip(vary, combination, strict=True))
        for combination in itertools.product(*vary.values())
    ]


def find_policy(policy: Policy | PolicyKey | str, policies: Sequence[PolicyKey]) -> PolicyKey:
    """Which of the policies is meant; ``ValueError`` if it is none or may be several.

    A text is what `str` gives, a name with as many parameters as tell it from the others, or what
    makes the policy.
    """
    text = str(policy)
    if isinstance(policy, str):
        found = [key for key in policies if str(key) == policy] or _by_text(policy, policies)
        text = repr(policy)
    else:
        wanted = policy.key if isinstance(policy, Policy) else policy
        found = [key for key in policies if key == wanted]
    if len(found) == 1:
        return found[0]
    problem = "means several" if found else "is not one"
    raise ValueError(f"{text} {problem} of the policies: {', '.join(map(str, policies))}")


def _by_text(text: str, policies: Sequence[PolicyKey]) -> list[PolicyKey]:
    """The policies of this name with these parameters; a new one if no other has the name."""
    name, _, written = text.partition(":")
    named = [key for key in policies if key.name == name]
    if named:
        given = text_parameters(f"policy {name!r}", written, list(named[0].parameters))
        return [key for key in named if given.items() <= key.parameters.items()]
    return [key for key in policies if written and key == make_policy(text).key]


def default_rival(policies: Sequence[PolicyKey], baseline: PolicyKey | None) -> PolicyKey | None:
    """The policy whose last accuracy against the baseline's is a result's primary comparison.

    Age-based, the one with the parameters nearest to the default if there are several, else
    the first policy that is not the baseline.
    """
    others = [policy for policy in policies if policy != baseline]
    usual = AgeBased().key
    aged = [policy for policy in others if policy.name == usual.name]

    def differences(policy: PolicyKey) -> int:
        return len(set(policy.parameters.items()) ^ set(usual.parameters.items()))

    return min(aged, key=differences) if aged else next(iter(others), None)


def default_baseline(policies: Sequence[PolicyKey]) -> PolicyKey | None:
    """What the others are compared with if nobody says: max-pack, else the first of several."""
    if len(policies) < 2:
        return None
    usual = MaxPack().key
    packs = [key for key in policies if key.name == usual.name]
    return usual if usual in packs else (packs or policies)[0]


def _same(value: object) -> object:
    """Data as JSON has it, with 2.0 and true as whole numbers: equal data is the same text."""
    match value:
        case Mapping():
            return {name: _same(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_same(inner) for inner in value]
        case bool():
            return int(value)
        case float() if value.is_integer():
            return int(value)
    return value


def _written(values: Variation) -> str:
    """Names, without the sections they are in, and values, in the order of the names.

    Of a path only its last part: where files are is nobody's business who gets the results.
    """
    written = ((name.split(".")[-1], str(_same(values[name]))) for name in sorted(values))
    return ",".join(
        f"{name}={PurePath(text).name if text.startswith('/') else text}" for name, text in written
    )


def _readable(*texts: str) -> str:
    """Text that any file system takes, and short."""
    return re.sub(r"[^A-Za-z0-9.=_]+", "-", ",".join(texts)).strip("-")[:60]
