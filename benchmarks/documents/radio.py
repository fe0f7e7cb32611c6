"""Policies on channels that are more like those in the field: ``make study NAME=radio``.

It goes on where it stopped. ``make study NAME=results`` puts what it writes into docs/results.md.
"""

import argparse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from agewise import statistics
from agewise.experiment import Plan, Result, RunOptions, execute
from agewise.policies import make_policy
from agewise.scenario import Scenario
from agewise.tables import Cell, Column, Table
from agewise.tables._words import (
    and_list,
    contrast_text,
    counted,
    family_text,
    not_shown,
    sentence_case,
    too_few,
)
from benchmarks.documents.pages import write_document

POLICIES: Final = (
    "age-based", "max-pack", "age-based:packing=auction", "proportional-fair", "round-robin",
    "random",
)  # fmt: skip
ABS, MAX_PACK = POLICIES[:2]
#: Extended Vehicular A (3GPP TS 36.104): neighbouring subchannels of 180 kHz correlate by 0.93.
_CORRELATED = {
    "channel.fading": {"kind": "rayleigh", "frequency": {"kind": "taps", "profile": "eva"}}
}
#: 8 dB over 50 m, as where path loss is 128.1 + 37.6 lg d_km (3GPP TR 36.814).
_SHADOWED = {"channel.shadowing": {"kind": "log-normal", "sigma_db": 8.0, "decorrelation_m": 50.0}}
#: ns-3's random waypoint, a round a second.
_MOVING = {
    "channel.mobility": {
        "kind": "random-waypoint", "slowest_m_s": 0.3, "fastest_m_s": 0.7, "pause_s": 2.0,
    },
    "channel.round_s": 1.0,
}  # fmt: skip
#: 3 km/h at 3.5 GHz, measured 5 ms before the upload: amplitudes correlate by 0.98.
_DELAYED = {
    "channel.csi": {
        "kind": "delayed", "delay_s": 0.005, "carrier_hz": 3.5e9, "speed_m_s": 3.0 / 3.6,
    }
}  # fmt: skip
PAPER, CORRELATED = "the paper's", "correlated subchannels"
#: What is changed of the paper's channel, by what it is called in the table; the first is none.
CHANNELS: Final[dict[str, dict[str, Any]]] = {
    PAPER: {},
    CORRELATED: _CORRELATED,
    "shadowing": _SHADOWED,
    "mobility": _MOVING,
    "delayed knowledge": _DELAYED,
    "all of these": {**_CORRELATED, **_SHADOWED, **_MOVING, **_DELAYED},
}


@dataclass(frozen=True, eq=False)
class RadioStudy:
    """``scores[channel][policy]`` by seed: the mean accuracy over the rounds of a run."""

    result: Result
    scores: Mapping[str, Mapping[str, NDArray[np.float64]]]
    seeds: int

    def gains(self) -> list[statistics.Contrast]:
        """What age-based gains over max-pack on each channel, corrected together."""
        return statistics.correct(
            [statistics.contrast(each[ABS], each[MAX_PACK]) for each in self.scores.values()]
        )

    def correlated(self) -> dict[str, statistics.Contrast]:
        """What correlated subchannels change for each policy, corrected together."""
        first, other = self.scores[PAPER], self.scores[CORRELATED]
        found = [statistics.contrast(other[policy], first[policy]) for policy in first]
        return dict(zip(first, statistics.correct(found), strict=True))

    def agreement(self) -> list[float]:
        """Kendall's tau of the policies' order on each channel with that on the first."""
        means = [
            [float(scores.mean()) for scores in by_policy.values()]
            for by_policy in self.scores.values()
        ]
        return [float(stats.kendalltau(means[0], each).statistic) for each in means]


def radio_scenario() -> Scenario:
    """The preset ``paper``; its subchannels get the 180 kHz that a delay profile needs."""
    return Scenario.preset("paper").with_(**{"cell.subchannel_bandwidth_hz": 180e3})


def compare_channels(
    scenario: Scenario | None = None,
    seeds: int | Iterable[int] = 20,
    out: Path | str = "runs/radio-paper",
    **options: Any,
) -> RadioStudy:
    """Run the policies on every channel, and write the part of docs/results.md about them.

    The scenario is that of `radio_scenario` by default; the other options are those of
    `agewise.sweep`. A folder that is partly filled is continued.
    """
    base = radio_scenario() if scenario is None else scenario
    variations = {
        name: {"channel": base.with_(**changes).resolved()["channel"]}
        for name, changes in CHANNELS.items()
    }
    plan = Plan.of(base, POLICIES, seeds, variations.values(), baseline=make_policy(MAX_PACK))
    result = execute(plan, out, replace(RunOptions.of(options), fail_fast=True))
    scores = {
        name: {policy: _scores(result, plan, policy, variation) for policy in POLICIES}
        for name, variation in variations.items()
    }
    study = RadioStudy(result, scores, len(plan.seeds))
    write_document(result.path / "radio.md", radio_markdown(study))
    return study


def _scores(
    result: Result, plan: Plan, policy: str, variation: Mapping[str, Any]
) -> NDArray[np.float64]:
    histories = result.histories(make_policy(policy), variation)
    return np.array([np.nanmean(histories[seed].accuracy) for seed in plan.seeds])


def radio_markdown(study: RadioStudy) -> str:
    """The study as a part of docs/results.md: a row per channel, and whether the order survives."""
    gains, agreement = study.gains(), study.agreement()
    rows: list[list[Cell]] = [
        [name, *map(statistics.estimate, by_policy.values()), gain, tau]
        for (name, by_policy), gain, tau in zip(study.scores.items(), gains, agreement, strict=True)
    ]
    columns = [
        Column("channel", kind="words"),
        *(Column(policy, ".1f", 100.0) for policy in POLICIES),
        Column("age-based minus max-pack", ".1f", 100.0),
        Column("order as on the first (tau)", ".2f"),
    ]
    text = (
        "Six policies on the paper's channel, on one in which subchannels are correlated (EVA), "
        "with shadowing of 8 dB, with UEs that walk (by random waypoints, which also brings them "
        "nearer to the access point on average), with gains that are known 5 ms late, and with all "
        "of these: mean accuracy over the rounds in percent with 95% intervals, "
        f"{counted(study.seeds, 'seed')}. {family_text(gains, MAX_PACK, 'channels')}\n"
    )
    table = Table("", columns, rows).to_markdown()
    return "\n".join(["## Other channels\n", text, table, _verdict(study), _flattery(study)])


def _flattery(study: RadioStudy) -> str:
    """How much better policies look where every subchannel fades on its own."""
    changes = study.correlated()
    parts = [f"{policy} {contrast_text(one)}" for policy, one in changes.items()]
    family = family_text(changes.values(), "itself on the paper's channel", "policies")
    return (
        "What independent subchannels flatter: with correlated ones the mean accuracy changes, in "
        f"points, by {'; '.join(parts)}. {family}\n"
    )


def _verdict(study: RadioStudy) -> str:
    """In one paragraph: where age-based is shown to win, to lose, or neither."""
    found: dict[str, list[str]] = {"above": [], "below": [], "": []}
    sides = {"better": "above", "worse": "below"}
    for name, gain in zip(study.scores, study.gains(), strict=True):
        found[sides.get(gain.verdict, "")].append(name)
    parts = [
        f"{ABS} is shown to be {side} {MAX_PACK} with: {and_list(names)}"
        for side, names in found.items()
        if side and names
    ]
    if found[""]:
        reason = too_few(study.seeds) or not_shown(study.seeds)
        parts.append(f"which of the two is ahead is open ({reason}) with: {and_list(found[''])}")
    if not found["below"] and not found[""]:
        parts.append("the paper's order of the two survives on every channel")
    return f"{sentence_case('; '.join(parts))}.\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--out", default="runs/radio-paper")
    options = parser.parse_args()
    try:
        print(radio_markdown(compare_channels(seeds=options.seeds, out=options.out)))
    except ValueError as error:
        raise SystemExit(str(error)) from None
