"""What the measurements favour in settings like a given one.

`features_of` says what a setting is like. The package holds a file of settings that were measured
(`benchmarks/evidence.py` makes it of results folders), and `advise` looks up the nearest of them.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agewise import data
from agewise.cost import compute_slots, deadline_slots, offers_everyone
from agewise.files import seal_holds
from agewise.learn import rate_threshold
from agewise.radio import make_channel
from agewise.random import Streams
from agewise.report.text import and_list, is_sure, p_text, percent_text, points_text
from agewise.scenario import Scenario
from agewise.spectrum import Uplink
from agewise.spectrum.reach import needs

FILE: Final = "evidence.json"
#: Seeds and blocks of each that are looked at.
SEEDS, BLOCKS = 3, 20
#: A measured setting that is not farther away than this is near.
NEAR: Final = 1.0
#: The most near settings that are shown.
MOST: Final = 3
#: How much of each feature is one step apart.
STEPS: Final = {
    "doublings of the subchannels that a UE needs": 1.0,
    "share of UEs out of reach": 0.25,
    "doublings of the UEs per subchannel": 1.0,
    "unlikeness of the data": 0.2,
    "unevenness of the amounts of data": 1.0,
    "share of UEs in time": 0.25,
}


@dataclass(frozen=True)
class Features:
    """What a setting is like for a scheduler.

    ``needs[n - 1]`` is the share of UEs, over blocks and seeds, that need n subchannels to reach
    the rate threshold when all are free, and ``unserved`` of those that no number is enough for,
    both among the UEs that can be in time, ``in_time`` of all; ``never`` is the share of UEs out of
    reach in every block. ``unlike`` is the mean distance, in total variation, of the labels of a UE
    from those of all data; ``uneven`` the deviation of the amounts of data over their mean.
    """

    ues: int
    subchannels: int
    needs: tuple[float, ...]
    unserved: float
    never: float
    in_time: float
    unlike: float
    uneven: float

    @property
    def mean_need(self) -> float:
        """Subchannels that a UE within reach needs, on average; NaN if none is."""
        served = sum(self.needs)
        counts = range(1, len(self.needs) + 1)
        return sum(n * share for n, share in zip(counts, self.needs, strict=True)) / (
            served or math.nan
        )

    def steps(self) -> NDArray[np.float64]:
        """The features in the order of `STEPS`, in steps."""
        need = self.mean_need
        values = (
            math.log2(self.subchannels + 1 if math.isnan(need) else need),
            self.unserved,
            math.log2(self.ues / self.subchannels),
            self.unlike,
            self.uneven,
            self.in_time,
        )
        return np.asarray(np.array(values) / np.array(list(STEPS.values())))

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Features":
        """What `dataclasses.asdict` made of one."""
        return cls(**{**values, "needs": tuple(values["needs"])})


@dataclass(frozen=True)
class Choice:
    """A policy with an aggregation, and how it did in a measured setting.

    ``score`` is the mean accuracy over the rounds of a run; ``behind`` is how far it is below the
    best of the setting, paired over seeds, with a p-value corrected (Holm) over the choices there;
    both with 95% limits. The best itself has no p-value.
    """

    policy: str
    aggregation: str
    seeds: int
    score: float
    score_low: float
    score_high: float
    behind: float
    behind_low: float
    behind_high: float
    p: float | None

    @property
    def name(self) -> str:
        """Both names."""
        return f"{self.policy} with {self.aggregation}"

    @property
    def ties(self) -> bool:
        """Whether it is not surely behind the best."""
        return not is_sure(self.p)


@dataclass(frozen=True)
class Measured:
    """A setting that was measured; ``choices`` begin with the best."""

    name: str
    learned: str
    rounds: int
    features: Features
    choices: tuple[Choice, ...]


@dataclass(frozen=True)
class Evidence:
    """All settings that were measured, with this version."""

    version: str
    settings: tuple[Measured, ...]

    @classmethod
    def read(cls) -> "Evidence":
        """The file of the package."""
        return cls.from_bytes(files("agewise.studies").joinpath(FILE).read_bytes())

    @classmethod
    def from_bytes(cls, content: bytes) -> "Evidence":
        """The content of such a file."""
        if not seal_holds(content):
            raise ValueError(f"{FILE} of the package was changed: install agewise again")
        values = json.loads(content)
        settings = (
            Measured(
                name=one["name"],
                learned=one["learned"],
                rounds=one["rounds"],
                features=Features.from_json(one["features"]),
                choices=tuple(Choice(**choice) for choice in one["choices"]),
            )
            for one in values["settings"]
        )
        return cls(values["version"], tuple(settings))


@dataclass(frozen=True)
class Advice:
    """What a setting is like, the measured ones near it with their distances, and what to do.

    Without a near setting, ``nearest`` holds the one that is least far, and nothing is favoured.
    """

    features: Features
    nearest: tuple[tuple[float, Measured], ...]
    favoured: Choice | None
    sentences: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        near = [{"distance": distance} | asdict(setting) for distance, setting in self.nearest]
        return {
            "features": asdict(self.features) | {"mean_need": self.features.mean_need},
            "favoured": None if self.favoured is None else asdict(self.favoured),
            "sentences": list(self.sentences),
            "nearest": near,
        }


def advise(scenario: Scenario, *, evidence: Evidence | None = None) -> Advice:
    """Which policy and aggregation the measurements favour in settings like this scenario.

    ``evidence`` is that of the package by default.
    """
    known = Evidence.read() if evidence is None else evidence
    if not known.settings:
        raise ValueError("the evidence holds no settings: make it again from results folders")
    features = features_of(scenario)
    here = features.steps()
    ordered = sorted(
        ((float(np.linalg.norm(here - each.features.steps())), each) for each in known.settings),
        key=lambda pair: pair[0],
    )
    near = tuple(pair for pair in ordered if pair[0] <= NEAR)[:MOST]
    if not near:
        distance, setting = ordered[0]
        return Advice(features, ((distance, setting),), None, _nothing_near(features, setting))
    words = [_of_setting(*near[0], known.version), *_others(near), *_different(scenario, near)]
    return Advice(features, near, near[0][1].choices[0], tuple(words))


def features_of(scenario: Scenario) -> Features:
    """What the scenario is like, from some blocks of some seeds."""
    looks = [_look(scenario, Streams(seed)) for seed in range(SEEDS)]
    found = np.concatenate([look[0] for look in looks])  # [block, UE in time] -> need
    never = float(np.mean(np.concatenate([look[1] for look in looks])))
    subchannels = scenario.cell.subchannels
    counts = np.bincount(found, minlength=subchannels + 1) / max(1, found.size)
    labels = [_labels(scenario, Streams(seed)) for seed in range(SEEDS)]
    return Features(
        ues=scenario.cell.ues,
        subchannels=subchannels,
        needs=tuple(float(share) for share in counts[1:]),
        unserved=float(counts[0]),
        never=never,
        in_time=float(np.mean([look[2] for look in looks])),
        unlike=float(np.mean([one[0] for one in labels])),
        uneven=float(np.mean([one[1] for one in labels])),
    )


def _look(
    scenario: Scenario, streams: Streams
) -> tuple[NDArray[np.int64], NDArray[np.bool_], float]:
    """The needs of the UEs in time, 0 if out of reach; who never is served; the share in time."""
    channel, rounds = make_channel(scenario, streams), scenario.run.rounds
    in_time = np.ones(channel.ue_count, np.bool_)
    if not offers_everyone(scenario):
        in_time = compute_slots(scenario, streams) + 1.0 <= deadline_slots(scenario)
    free = np.arange(channel.subchannel_count)
    threshold = rate_threshold(scenario) + scenario.threshold.margin
    found = []
    for t in np.unique(np.linspace(0, rounds - 1, min(BLOCKS, rounds)).astype(int)).tolist():
        uplink = Uplink(channel.block(t).seen, channel.power_budget, threshold)
        found.append(needs(uplink, free)[0])
    all_needs = np.array(found)
    reached = (all_needs > 0).any(axis=0)
    return all_needs[:, in_time].ravel(), ~(reached & in_time), float(in_time.mean())


def _labels(scenario: Scenario, streams: Streams) -> tuple[float, float]:
    """How unlike the data of the UEs are, and how uneven their amounts."""
    dataset = data.load(scenario.data)
    partition = data.divide(dataset.train.labels, scenario.data, scenario.cell.ues, streams)
    counts = partition.label_counts(dataset.train.labels, dataset.class_count)
    sizes = counts.sum(axis=1)
    whole = counts.sum(axis=0) / counts.sum()
    distances = 0.5 * np.abs(counts / sizes[:, np.newaxis] - whole).sum(axis=1)
    return float(distances.mean()), float(sizes.std() / sizes.mean())


def learned_of(scenario: Scenario) -> str:
    """What is learned, in words: the data set, the task and the model."""
    return f"{scenario.data.dataset.kind} ({scenario.data.task.kind}), {scenario.learn.model.kind}"


# Words


def _of_setting(distance: float, setting: Measured, version: str) -> str:
    best, *rest = setting.choices
    seeds = f"{best.seeds} seeds, {setting.rounds} rounds, version {version}"
    text = (
        f"In the nearest measured setting, {setting.name} ({distance:.1f} steps away; {seeds}), "
        f"{best.name} has the highest mean accuracy over the rounds, {_score(best)}"
    )
    ties = [choice for choice in rest if choice.ties]
    behind = [choice for choice in rest if not choice.ties]
    if ties:
        text += f"; not surely behind it: {and_list(map(_behind, ties))}"
    if behind:
        text += f"; surely behind it: {and_list(map(_behind, behind))}"
    return f"{text}; p-values are corrected (Holm) for the {len(rest)} others there."


def _others(near: Sequence[tuple[float, Measured]]) -> list[str]:
    return [
        f"In {setting.name} ({distance:.1f} steps away) {setting.choices[0].name} is best, "
        f"{_score(setting.choices[0])}; {_tied(setting)}."
        for distance, setting in near[1:]
    ]


def _tied(setting: Measured) -> str:
    rest = setting.choices[1:]
    return f"{sum(choice.ties for choice in rest)} of {len(rest)} others are not surely behind"


def _different(scenario: Scenario, near: Sequence[tuple[float, Measured]]) -> list[str]:
    """A warning where something else is learned than in the settings that were measured."""
    here, there = learned_of(scenario), near[0][1].learned
    if here == there:
        return []
    return [f"What is learned differs: {here} here, {there} there; measure to be sure."]


def _nothing_near(features: Features, setting: Measured) -> tuple[str, ...]:
    apart = np.abs(features.steps() - setting.features.steps())
    most = list(STEPS)[int(apart.argmax())]
    far = (
        f"No measured setting is near: the nearest, {setting.name}, differs most in {most} "
        f"({apart.max():.1f} steps)."
    )
    todo = (
        "Measure it: agewise compare SCENARIO --policy age-based --policy max-pack --policy "
        "round-robin --seeds 20."
    )
    return far, todo


def _score(choice: Choice) -> str:
    half = (choice.score_high - choice.score_low) / 2
    return f"{percent_text(choice.score)} ± {percent_text(half)}%"


def _behind(choice: Choice) -> str:
    low, high = points_text(-choice.behind_high), points_text(-choice.behind_low)
    facts = ", ".join(filter(None, (f"{low} to {high}", p_text(choice.p))))
    return f"{choice.name} ({points_text(-choice.behind)} points, {facts})"
